"""Writes what was learnt: a LoRA as GGUF in llama.cpp's naming, or a fully tuned model as GGUF."""

import os
from pathlib import Path

import gguf
import numpy as np

from .errors import TrainingError


def write_lora(path: Path, state: dict, architecture: str, config, alpha: float) -> None:
    """`state`: name -> tensor as PEFT names them. Written beside `path` and renamed over it."""
    names = _names(architecture, config.num_hidden_layers)
    partial = path.with_suffix(".part")
    writer = gguf.GGUFWriter(partial, architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    for key in sorted(state):
        module, _, side = key.removeprefix("base_model.model.").rpartition(".lora_")
        side = side[0].lower()
        name = names(module)
        values = state[key].float().numpy()
        if side == "b" and architecture == "llama":
            values = _rotary_order(name, values, config)
        writer.add_tensor(f"{name}.lora_{side}", values.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(partial, path)


def write_model(path: Path, state: dict, architecture: str, config, base: Path) -> None:
    """A fully tuned model: the base's metadata, f16 matrices, f32 vectors."""
    reader = gguf.GGUFReader(base)
    names = _names(architecture, config.num_hidden_layers)
    tuned = {}
    for key, tensor in state.items():
        try:
            tuned[names(key.removesuffix(".weight"))] = tensor.float().numpy()
        except TrainingError:
            continue
    partial = path.with_suffix(".part")
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
        elif architecture == "llama":
            values = _rotary_order(tensor.name, values, config)
        kind = np.float32 if values.ndim == 1 else np.float16
        writer.add_tensor(tensor.name, values.astype(kind))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(partial, path)


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
    """Rows of a query or key projection as llama.cpp's `llama` wants them.

    Hugging Face rotates dimension i with i + d/2, llama.cpp i with i + 1: the two halves of each
    head are interleaved.
    """
    if name.endswith("attn_q.weight"):
        heads = config.num_attention_heads
    elif name.endswith("attn_k.weight"):
        heads = config.num_key_value_heads
    else:
        return values
    rows, columns = values.shape
    return values.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
