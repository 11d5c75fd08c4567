"""The model that is trained: loaded from a GGUF file or a Hugging Face folder, with LoRA or whole."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import gguf
import torch
import transformers
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

from . import attention
from .errors import TrainingError

MIB = 1 << 20

# llama.cpp's name of an architecture where it differs from transformers' `model_type`.
ARCHITECTURES = {"mistral": "llama", "ministral3": "mistral3"}


@dataclass
class Base:
    """A loaded model; `path` is what was given, `architecture` llama.cpp's name of it."""

    model: torch.nn.Module
    path: Path
    architecture: str


def device_and_dtype() -> tuple[torch.device, torch.dtype]:
    """One CUDA GPU when there is one; bf16 where the hardware multiplies it."""
    if torch.cuda.is_available():
        return torch.device("cuda"), torch.bfloat16
    fast = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return torch.device("cpu"), torch.bfloat16 if fast else torch.float32


def load(path: str | Path, device, dtype, qlora: bool = False) -> Base:
    """Loads a base model with this package's attention."""
    path = Path(path)
    if not path.exists():
        raise TrainingError(f"{path}: no such file or folder: --base wants a GGUF file or a folder")
    options = {"dtype": dtype, "attn_implementation": attention.NAME}
    if qlora:
        options |= _four_bits(path, device)
    try:
        if path.is_file():
            architecture = _architecture(path)
            model = AutoModelForCausalLM.from_pretrained(
                path.parent, gguf_file=path.name, **options, **_dense()
            )
        else:
            kind = AutoConfig.from_pretrained(path).model_type
            architecture = ARCHITECTURES.get(kind, kind)
            model = AutoModelForCausalLM.from_pretrained(path, **options)
    except (OSError, ValueError, KeyError) as error:
        raise TrainingError(f"{path}: cannot be loaded as a model: {error}") from error
    if not qlora:
        model.to(device)
    return Base(model, path, architecture)


def merged_adapter(path: Path) -> str | None:
    """Which adapter `stair merge` has put into the model, if any."""
    field = gguf.GGUFReader(path).get_field("stair.provenance.adapter") if path.is_file() else None
    return field.contents() if field else None


def with_lora(base: Base, rank: int, alpha: float, dropout: float) -> torch.nn.Module:
    """Adapters on every projection; everything else is frozen. The adapters are f32."""
    config = LoraConfig(
        r=rank,
        lora_alpha=alpha,
        lora_dropout=dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    return get_peft_model(base.model, config)


def check_vocabulary(base: Base, size: int) -> None:
    """Training data made with another tokenizer cannot train this model."""
    rows = base.model.get_input_embeddings().weight.shape[0]
    if size != rows:
        raise TrainingError(
            f"the training data's vocabulary has {size} tokens, {base.path} has {rows}: run "
            "`stair train-data` with this model"
        )


def fingerprint(path: Path) -> str:
    """Differs where the base does: of a GGUF file all of it is hashed.

    Of a folder, whose weights may be many GB, its config.json and of each file of weights the name, the
    size, and the first and the last MiB: a change that leaves all of these alone is not seen.
    """
    hashed = hashlib.sha256()
    try:
        if path.is_file():
            with open(path, "rb") as file:
                while block := file.read(MIB):
                    hashed.update(block)
            return hashed.hexdigest()
        config = path / "config.json"
        hashed.update(config.read_bytes() if config.exists() else b"none")
        for weights in sorted([*path.glob("*.safetensors"), *path.glob("*.bin")]):
            size = weights.stat().st_size
            hashed.update(f"{weights.name} {size}".encode())
            with open(weights, "rb") as file:
                hashed.update(file.read(MIB))
                file.seek(max(0, size - MIB))
                hashed.update(file.read(MIB))
    except OSError as error:
        raise TrainingError(f"{path}: cannot be read: {error}") from error
    return hashed.hexdigest()


def _architecture(path: Path) -> str:
    try:
        reader = gguf.GGUFReader(path)
    except (ValueError, IndexError, OSError) as error:
        raise TrainingError(f"{path}: not a GGUF file: {error}") from error
    return reader.get_field("general.architecture").contents()


def _dense() -> dict:
    """Newer transformers would leave GGUF weights packed, which no gradient passes."""
    config = getattr(transformers, "GgufConfig", None)
    return {"quantization_config": config(dequantize=True)} if config else {}


def _four_bits(path: Path, device) -> dict:
    if device.type != "cuda":
        raise TrainingError("--qlora needs a CUDA GPU: leave it out on this machine")
    if path.is_file():
        raise TrainingError("--qlora wants a Hugging Face folder as --base, not a GGUF file")
    from transformers import BitsAndBytesConfig

    four_bits = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )
    return {"quantization_config": four_bits, "device_map": {"": 0}}
