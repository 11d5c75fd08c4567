"""Reading training data, and which examples a step sees."""

import json

import pytest

from conftest import example
from stair_train import data
from stair_train.data import Order
from stair_train.errors import TrainingError


def test_a_file_is_read_whole(data_file, examples):
    read = data.read(data_file("train.jsonl"))
    assert read.examples == tuple(examples)
    assert len(read.leaves) == 3


def test_an_example_may_have_no_section(data_file, examples):
    path = data_file("train.jsonl")
    lines = path.read_text().splitlines()
    lines[2] = json.dumps(json.loads(lines[2]) | {"section": None})
    path.write_text("\n".join(lines))
    assert data.read(path).examples[1].section is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": [0, 3]}, "target 0..3"),
        ({"target": [3, 99]}, "target 3..99"),
        ({"section": 9}, "section 9 is not a leaf"),
        ({"tokens": [1, 2, 3, 4, 5, 64]}, "token 64 in a vocabulary of 64"),
        ({"id": "a"}, "'a' appears twice"),
        ({"target": None}, "not an example"),
    ],
)
def test_a_broken_example_is_named_by_its_line(data_file, change, message):
    path = data_file("train.jsonl")
    lines = path.read_text().splitlines()
    lines[2] = json.dumps(json.loads(lines[2]) | change)
    path.write_text("\n".join(lines))
    with pytest.raises(TrainingError, match=message) as error:
        data.read(path)
    assert "train.jsonl:3:" in str(error.value)


def test_an_empty_file_another_format_and_no_examples_say_so(tmp_path, data_file):
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    with pytest.raises(TrainingError, match="is empty"):
        data.read(empty)
    with pytest.raises(TrainingError, match="version 2"):
        data.read(data_file("other.jsonl", version=2))
    with pytest.raises(TrainingError, match="no example"):
        data.read(data_file("none.jsonl", []))


def test_a_line_ends_at_a_line_feed_alone(data_file, examples):
    path = data_file("train.jsonl")
    text = path.read_text()
    path.write_bytes(text.replace('"a"', '"a\u2028\x85b"').replace("\n", "\r\n").encode())
    read = data.read(path)
    assert [e.id for e in read.examples] == ["a\u2028\x85b"] + [e.id for e in examples[1:]]


def test_what_is_not_utf_8_says_so(data_file):
    path = data_file("train.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"a"', b'"\xe9"'))
    with pytest.raises(TrainingError, match="train.jsonl: not UTF-8 at byte .*stair train-data"):
        data.read(path)


@pytest.mark.parametrize("key", ["vocabulary_size", "prefix", "leaves"])
def test_a_header_with_something_left_out_says_so(data_file, key):
    path = data_file("train.jsonl")
    header, _, rest = path.read_text().partition("\n")
    kept = {k: v for k, v in json.loads(header).items() if k != key}
    path.write_text(json.dumps(kept) + "\n" + rest)
    with pytest.raises(TrainingError, match=f"train.jsonl:1: .*no '{key}': write it again"):
        data.read(path)
    with pytest.raises(TrainingError, match="other.jsonl:1: not a header"):
        data.read(data_file("other.jsonl", **{key: None}))


def test_training_and_development_data_must_agree(data_file):
    train = data.read(data_file("train.jsonl"))
    data.check_same_prompt(train, data.read(data_file("dev.jsonl")))
    others = {"prefix": [5], "vocabulary_fingerprint": "g", "vocabulary_size": 65}
    for key, value in others.items():
        with pytest.raises(TrainingError, match=f"differ in `{key}`"):
            data.check_same_prompt(train, data.read(data_file("other.jsonl", **{key: value})))


def many(count: int, task: str) -> list:
    return [example(0, [40 + n % 5] * (1 + n % 7), f"{task}{n}", task) for n in range(count)]


def test_every_example_comes_once_a_pass_and_shares_are_kept():
    order = Order(many(24, "retrieval") + many(40, "ingestion"), batch=8, share=0.5, seed=3)
    seen = [e.id for step in range(4 * order.WINDOW) for e in order.step(step)]
    questions = [id for id in seen if id.startswith("retrieval")]
    assert len(questions) == len(seen) // 2
    counts = {id: questions.count(id) for id in questions}
    assert len(counts) == 24 and set(counts.values()) <= {2, 3}


def test_a_step_is_a_function_of_seed_and_number():
    examples = many(24, "retrieval") + many(40, "ingestion")
    first, second = (Order(examples, 8, 0.5, seed=3) for _ in range(2))
    assert [second.step(n) for n in (9, 2, 5)] == [first.step(n) for n in (9, 2, 5)]
    assert Order(examples, 8, 0.5, seed=4).step(0) != first.step(0)


def test_one_kind_alone_fills_the_batch():
    for task in ("retrieval", "ingestion"):
        assert len(Order(many(5, task), 8, 0.5, seed=0).step(3)) == 8
