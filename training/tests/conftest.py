"""A tiny random model that stands for a real one, and the data to train it."""

import json

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from stair_train import attention
from stair_train.data import Example

# So small a model is slower on several threads than on one.
torch.set_num_threads(1)

VOCABULARY = 64
PREFIX = tuple(range(3, 20))
LEAVES = {0: (21, 30, 31, 2), 1: (21, 32, 33, 2), 2: (22, 34, 2)}


def model(implementation: str = attention.NAME, **changes):
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=True,
        attn_implementation=implementation,
        **changes,
    )
    return LlamaForCausalLM(config).float()


def example(section: int | None, question: list[int], id: str = "", task: str = "retrieval") -> Example:
    """Where no section answers the terminator follows at once."""
    tokens = tuple(question) + (LEAVES[section] if section is not None else (2,))
    return Example(id, task, section, tokens, len(question), len(tokens))


@pytest.fixture
def examples() -> list[Example]:
    return [
        example(0, [40, 41, 42], "a"),
        example(1, [43, 44], "b"),
        example(2, [45, 46, 47, 48, 49], "c"),
        example(0, [50], "d", "ingestion"),
    ]


@pytest.fixture
def data_file(tmp_path, examples):
    def write(name: str, chosen=examples, **changes):
        header = {
            "format": "stair-train-data",
            "version": 1,
            "prefix_checksum": "00c0ffee00c0ffee",
            "vocabulary_fingerprint": "f",
            "vocabulary_size": VOCABULARY,
            "prefix": PREFIX,
            "leaves": [{"section": s, "identifier": str(s), "tokens": t} for s, t in LEAVES.items()],
        } | changes
        lines = [header] + [
            {"id": e.id, "task": e.task, "section": e.section, "tokens": e.tokens, "target": [e.start, e.end]}
            for e in chosen
        ]
        path = tmp_path / name
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    return write
