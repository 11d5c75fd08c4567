"""What was learnt as GGUF in llama.cpp's naming: a LoRA, written and read, or a fully tuned model."""

import os
from pathlib import Path

import gguf
import numpy as np
import torch

from .errors import TrainingError

# Hugging Face rotates halves of a head here and llama.cpp neighbours (its ROPE_TYPE_NORM): its converter
# interleaves the rows of queries and keys.
INTERLEAVED = {"arcee", "granite", "granitemoe", "llama", "mistral3", "olmo", "smollm3"}

# Both rotate halves here, or both neighbours: rows stay as they are.
AS_THEY_ARE = {
    "apertus", "cohere2", "ernie4_5", "exaone4", "gemma", "gemma2", "gemma3", "glm4", "nemotron", "olmo2",
    "olmoe", "phi3", "qwen2", "qwen2moe", "qwen3", "qwen3moe", "seed_oss", "stablelm", "starcoder2",
}


def check_architecture(architecture: str) -> None:
    """An adapter with rows in the wrong order loads, and answers wrongly."""
    _is_interleaved(architecture)


def write_lora(path: Path, state: dict, architecture: str, config, alpha: float, origin: dict[str, str]) -> None:
    """`state`: name -> tensor as PEFT names them. Written beside `path` and renamed over it.

    `origin`: metadata that says what it was trained on; `stair merge` compares it.
    """
    names = _names(architecture, config.num_hidden_layers)
    interleaved = _is_interleaved(architecture)
    tensors = {}
    for key in sorted(state):
        name, side = _lora_name(names, key)
        values = state[key].float().numpy()
        if side == "b" and interleaved:
            values = _rotary_order(name, values, config)
        tensors[f"{name}.lora_{side}"] = values
    write_tensors(path, tensors, architecture, alpha, origin)


def write_tensors(path: Path, tensors: dict, architecture: str, alpha: float, origin: dict[str, str]) -> None:
    """The same of `tensors` in llama.cpp's names and order."""
    partial = _beside(path)
    writer = gguf.GGUFWriter(partial, architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    for key, value in origin.items():
        writer.add_string(key, value)
    for name, values in tensors.items():
        writer.add_tensor(name, values.astype(np.float16))
    _write(writer, partial, path)


def read_lora(path: Path, shapes: dict, architecture: str, config, alpha: float) -> dict:
    """What `write_lora` wrote of the names of `shapes`: name -> tensor in f32. It must hold nothing else."""
    try:
        reader = gguf.GGUFReader(path)
        fields = ("adapter.type", "adapter.lora.alpha", "general.architecture")
        kind, scale, of = (reader.get_field(field).contents() for field in fields)
    except (ValueError, IndexError, OSError, AttributeError) as error:
        raise TrainingError(f"{path}: not an adapter in GGUF: {error}") from error
    other = TrainingError(f"{path} was trained on another base, or with another --rank")
    if of != architecture:
        raise other
    # The file has it in f32.
    if kind != "lora" or scale != np.float32(alpha):
        raise TrainingError(f"{path}: a {kind} of alpha {scale:g}, and --alpha is {alpha:g}: give its own")
    names = _names(architecture, config.num_hidden_layers)
    interleaved = _is_interleaved(architecture)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    state = {}
    for key, shape in shapes.items():
        name, side = _lora_name(names, key)
        tensor = tensors.pop(f"{name}.lora_{side}", None)
        values = None if tensor is None else gguf.dequantize(tensor.data, tensor.tensor_type)
        if values is None or values.shape != tuple(shape):
            raise other
        if side == "b" and interleaved:
            values = _hugging_face_order(name, values, config)
        state[key] = torch.from_numpy(np.array(values, dtype=np.float32))
    if tensors:
        raise other
    return state


def check_model(state: dict, architecture: str, config, base: Path) -> None:
    """Untrained weights, written as `write_model` does, must be those of `base`.

    Of some architectures GGUF keeps others than Hugging Face (Gemma's norms plus one): a model written so
    would load, and answer wrongly.
    """
    tuned = _gguf_weights(state, architecture, config)
    names = _names(architecture, config.num_hidden_layers)
    unnamed = [key for key in state if not key.startswith("lm_head.") and not _has_name(names, key)]
    if unnamed:
        raise TrainingError(
            f"llama.cpp has no name for {unnamed[0]!r} in {architecture!r}, so --full cannot write it: train without --full"
        )
    for tensor in gguf.GGUFReader(base).tensors:
        values = tuned.get(tensor.name)
        if values is None:
            continue
        own = gguf.dequantize(tensor.data, tensor.tensor_type)
        # bf16 has 8 bits.
        if values.shape != own.shape or np.linalg.norm(values - own) > 0.01 * np.linalg.norm(own):
            raise TrainingError(
                f"{base}: {tensor.name!r} of {architecture!r} is kept otherwise in GGUF than it is trained, "
                "so --full cannot write it back: train without --full, or give the Hugging Face folder and "
                "convert the model that comes out"
            )


def write_model(path: Path, state: dict, architecture: str, config, base: Path) -> None:
    """A fully tuned model: the base's metadata, f16 matrices, f32 vectors."""
    reader = gguf.GGUFReader(base)
    tuned = _gguf_weights(state, architecture, config)
    partial = _beside(path)
    writer = gguf.GGUFWriter(partial, architecture)
    skipped = {"GGUF.version", "GGUF.tensor_count", "GGUF.kv_count", "general.architecture"}
    for field in reader.fields.values():
        if field.name in skipped:
            continue
        if field.name == "general.file_type":
            writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
            continue
        sub = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=sub)
    for tensor in reader.tensors:
        values = tuned.get(tensor.name)
        if values is None:
            values = gguf.dequantize(tensor.data, tensor.tensor_type)
        kind = np.float32 if values.ndim == 1 else np.float16
        writer.add_tensor(tensor.name, values.astype(kind))
    _write(writer, partial, path)


def _gguf_weights(state: dict, architecture: str, config) -> dict[str, np.ndarray]:
    """All of `state` that llama.cpp has a name for, by that name and in its order."""
    names = _names(architecture, config.num_hidden_layers)
    interleaved = _is_interleaved(architecture)
    weights = {}
    for key, tensor in state.items():
        module, _, kind = key.rpartition(".")
        try:
            name = f"{names(module).removesuffix('.weight')}.{kind}"
        except TrainingError:
            continue
        values = tensor.detach().float().cpu().numpy()
        weights[name] = _rotary_order(name, values, config) if interleaved else values
    return weights


def _has_name(names, key: str) -> bool:
    try:
        names(key.rpartition(".")[0])
    except TrainingError:
        return False
    return True


def _beside(path: Path) -> Path:
    """Where the file is written before it is whole; no other file or folder of a run is written there."""
    return path.with_name(path.name + ".part")


def _write(writer: gguf.GGUFWriter, partial: Path, path: Path) -> None:
    """The whole file, renamed over `path`; half a file takes no room."""
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    os.replace(partial, path)


def _is_interleaved(architecture: str) -> bool:
    if architecture not in INTERLEAVED | AS_THEY_ARE:
        raise TrainingError(
            f"in what order llama.cpp keeps the queries and keys of {architecture!r} is not known here, so no "
            f"adapter can be written: train a base of {', '.join(sorted(INTERLEAVED | AS_THEY_ARE))}"
        )
    return architecture in INTERLEAVED


def _lora_name(names, key: str) -> tuple[str, str]:
    """llama.cpp's name of the matrix that PEFT's `key` belongs to, and "a" or "b"."""
    module, _, side = key.removeprefix("base_model.model.").rpartition(".lora_")
    return names(module), side[0].lower()


def _names(architecture: str, layers: int):
    known = {name: kind for kind, name in gguf.MODEL_ARCH_NAMES.items()}
    if architecture not in known:
        raise TrainingError(f"llama.cpp's package `gguf` knows no architecture {architecture!r}")
    table = gguf.get_tensor_name_map(known[architecture], layers)

    def name(module: str) -> str:
        found = table.get_name(module)
        if found is None:
            raise TrainingError(f"llama.cpp has no name for {module!r} in {architecture!r}")
        return f"{found}.weight"

    return name


def _rotary_order(name: str, values: np.ndarray, config) -> np.ndarray:
    """Rows of a query or key projection, or of its bias, as llama.cpp's `INTERLEAVED` want them.

    Hugging Face rotates dimension i with i + d/2, llama.cpp i with i + 1: the two halves of each
    head are interleaved.
    """
    heads = _rotated_heads(name, config)
    if heads is None:
        return values
    half = len(values) // heads // 2
    return values.reshape(heads, 2, half, -1).swapaxes(1, 2).reshape(values.shape)


def _hugging_face_order(name: str, values: np.ndarray, config) -> np.ndarray:
    """The inverse of `_rotary_order`."""
    heads = _rotated_heads(name, config)
    if heads is None:
        return values
    half = len(values) // heads // 2
    return values.reshape(heads, half, 2, -1).swapaxes(1, 2).reshape(values.shape)


def _rotated_heads(name: str, config) -> int | None:
    """Heads of a projection whose rows are rotated."""
    module = name.rpartition(".")[0]
    if module.endswith("attn_q"):
        return config.num_attention_heads
    if module.endswith("attn_k"):
        return config.num_key_value_heads
    return None
