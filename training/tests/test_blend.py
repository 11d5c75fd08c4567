"""Adapters added up."""

import gguf
import numpy as np
import pytest

from stair_train import adapter, blend

NAMES = ("blk.0.attn_q.weight", "blk.0.ffn_up.weight")


def written(path, seed: int, rank: int = 2, origin: dict | None = None) -> dict:
    """An adapter of rank `rank`; what it adds to each matrix."""
    random = np.random.default_rng(seed)
    tensors, added = {}, {}
    for name in NAMES:
        a, b = random.normal(size=(rank, 6)), random.normal(size=(5, rank))
        tensors |= {f"{name}.lora_a": a.astype(np.float16), f"{name}.lora_b": b.astype(np.float16)}
        added[name] = 8.0 / rank * tensors[f"{name}.lora_b"].astype(float) @ tensors[f"{name}.lora_a"].astype(float)
    adapter.write_tensors(path, tensors, "llama", 8.0, origin or {})
    return added


def read(path) -> tuple[dict, int]:
    reader = gguf.GGUFReader(path)
    tensors = {t.name: np.array(t.data, float) for t in reader.tensors}
    rank = len(tensors[f"{NAMES[0]}.lora_a"])
    scale = reader.get_field("adapter.lora.alpha").contents() / rank
    return {n: scale * tensors[f"{n}.lora_b"] @ tensors[f"{n}.lora_a"] for n in NAMES}, rank


def test_the_sum_is_the_nearest_of_the_first_one_s_rank(tmp_path, capsys):
    a, b, out = tmp_path / "a@home.gguf", tmp_path / "b.gguf", tmp_path / "out.gguf"
    first = written(a, 1, origin={"stair.train.prefix_checksum": "c0ffee"})
    second = written(b, 2, rank=3)
    assert blend.main([f"{a}@0.7", f"{b}@0.3", "-o", str(out)]) == 0
    found, rank = read(out)
    assert rank == 2
    shares = []
    for name in NAMES:
        exact = 0.7 * first[name] + 0.3 * second[name]
        values = np.linalg.svd(exact)[1]
        off = np.linalg.norm(found[name] - exact)
        # Nearest of rank 2 (Eckart and Young 1936), up to f16.
        assert off == pytest.approx(np.linalg.norm(values[2:]), rel=1e-2)
        shares.append((values[2:] ** 2).sum() / (values**2).sum())
    assert f"{max(shares):.3f}" in capsys.readouterr().out
    assert gguf.GGUFReader(out).get_field("stair.train.prefix_checksum").contents() == "c0ffee"


def test_one_adapter_stays_what_it_is(tmp_path):
    path, out = tmp_path / "a.gguf", tmp_path / "out.gguf"
    added = written(path, 1)
    assert blend.blend([(path, 1.0)], out) == pytest.approx(0, abs=1e-6)
    for name, values in read(out)[0].items():
        assert np.allclose(values, added[name], atol=2e-2)


def test_what_does_not_belong_together_is_refused(tmp_path, capsys):
    a, b, out = tmp_path / "a.gguf", tmp_path / "b.gguf", tmp_path / "out.gguf"
    written(a, 1)
    written(b, 2, origin={"stair.train.base_adapter": "one"})
    assert blend.main([f"{a}@1", f"{b}@1", "-o", str(out)]) == 1
    assert "another base" in capsys.readouterr().err
    b.write_bytes(b"GGUF")
    assert blend.main([f"{a}@1", f"{b}@1", "-o", str(out)]) == 1
    assert "not an adapter" in capsys.readouterr().err
    assert not out.exists()
