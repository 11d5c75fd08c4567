"""A weighted sum of adapters as one of the first one's rank: `python -m stair_train.blend -h`.

What several runs have learnt about a document adds up in part, so the sum is a better beginning for the
next run than any of them alone (Wortsman et al., *Model soups*, ICML 2022). The sum of two products of
rank r has rank 2r; the nearest of rank r is what its largest singular values leave.
"""

import argparse
import math
import sys
from pathlib import Path

import gguf
import numpy as np

from . import adapter
from .errors import TrainingError

# What says where an adapter belongs. All of a blend must belong to one base; the contents are the first's.
BASE, CONTENTS = "stair.train.base_adapter", "stair.train.prefix_checksum"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m stair_train.blend", description=__doc__.partition("\n")[0])
    parser.add_argument("adapters", nargs="+", type=_weighted, metavar="ADAPTER.gguf@WEIGHT")
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="OUT.gguf")
    given = parser.parse_args(arguments)
    try:
        lost = blend(given.adapters, given.output)
    except (TrainingError, OSError) as error:
        print(f"stair_train.blend: {error}", file=sys.stderr)
        return 1
    print(f"{given.output}: the largest share of a matrix's square sum that its rank does not hold is {lost:.4f}")
    return 0


def blend(adapters: list[tuple[Path, float]], out: Path) -> float:
    """Writes the sum; returns the largest share of a matrix's square sum that was cut off."""
    readers = [(_open(path), weight) for path, weight in adapters]
    first = readers[0][0]
    names = {tensor.name for tensor in first.tensors}
    for (reader, _), (path, _) in zip(readers, adapters):
        same = all(_text(reader, key) == _text(first, key) for key in ("general.architecture", BASE))
        if not same or {tensor.name for tensor in reader.tensors} != names:
            raise TrainingError(f"{path} was trained on another base than {adapters[0][0]}, or for other matrices")
    pairs = [(_matrices(reader), _scale(reader) * weight) for reader, weight in readers]
    scale, tensors, lost = _scale(first), {}, 0.0
    for name in sorted(name.removesuffix("_a") for name in names if name.endswith(".lora_a")):
        like_a, like_b = (pairs[0][0][f"{name}_{side}"] for side in "ab")
        b = np.concatenate([weight * matrices[f"{name}_b"] for matrices, weight in pairs], axis=1)
        a = np.concatenate([matrices[f"{name}_a"] for matrices, _ in pairs], axis=0)
        if b.shape[0] != like_b.shape[0] or a.shape[1] != like_a.shape[1]:
            raise TrainingError(f"{name}: the adapters' matrices have other sizes")
        a, b, cut = _nearest(a, b / scale, len(like_a))
        # B learns faster than A, by a ratio that was chosen for such sizes of both.
        sizes = [float(np.linalg.norm(matrix)) for matrix in (like_a, b, like_b, a)]
        ratio = np.sqrt(sizes[0] * sizes[1] / (sizes[2] * sizes[3])) if all(sizes) else 1.0
        tensors[f"{name}_a"], tensors[f"{name}_b"] = a * ratio, b / ratio
        lost = max(lost, cut)
    origin = {key: text for key in (CONTENTS, BASE) if (text := _text(first, key))}
    alpha = first.get_field("adapter.lora.alpha").contents()
    adapter.write_tensors(out, tensors, _text(first, "general.architecture"), alpha, origin)
    return lost


def _nearest(a: np.ndarray, b: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray, float]:
    """The factors of rank `rank` whose product is nearest to `b @ a`, and what of its square sum is cut off."""
    outer, upper = np.linalg.qr(b)
    inner, lower = np.linalg.qr(a.T)
    left, values, right = np.linalg.svd(upper @ lower.T)
    root = np.sqrt(values[:rank])
    cut = (values[rank:] ** 2).sum() / max((values**2).sum(), 1e-30)
    return (right[:rank] * root[:, None]) @ inner.T, (outer @ left[:, :rank]) * root, float(cut)


def _open(path: Path) -> gguf.GGUFReader:
    try:
        reader = gguf.GGUFReader(path)
    except (ValueError, IndexError) as error:
        raise TrainingError(f"{path}: not an adapter in GGUF: {error}") from error
    if _text(reader, "adapter.type") != "lora" or not reader.get_field("adapter.lora.alpha"):
        raise TrainingError(f"{path}: not a LoRA adapter that says its alpha")
    return reader


def _text(reader: gguf.GGUFReader, key: str) -> str | None:
    field = reader.get_field(key)
    return field.contents() if field else None


def _matrices(reader: gguf.GGUFReader) -> dict[str, np.ndarray]:
    return {t.name: np.float32(gguf.dequantize(t.data, t.tensor_type)) for t in reader.tensors}


def _scale(reader: gguf.GGUFReader) -> float:
    """What the product of A and B is multiplied by: alpha over rank."""
    rank = next((len(t.data) for t in reader.tensors if t.name.endswith(".lora_a")), 0)
    if rank == 0:
        raise TrainingError("an adapter holds no pair of matrices")
    return reader.get_field("adapter.lora.alpha").contents() / rank


def _weighted(text: str) -> tuple[Path, float]:
    path, _, weight = text.rpartition("@")
    if not path:
        raise argparse.ArgumentTypeError(f"{text!r} names no weight: ADAPTER.gguf@0.7")
    if not math.isfinite(float(weight)):
        raise argparse.ArgumentTypeError(f"{weight} is no weight")
    return Path(path), float(weight)


if __name__ == "__main__":
    sys.exit(main())
