"""Reads training data: token ids with the span that is the target, as `stair train-data` writes them.

The prompt is the engine's own and arrives as tokens, so nothing here knows its words.
"""

import json
import random
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from .errors import TrainingError

FORMAT, VERSION = "stair-train-data", 1


@dataclass(frozen=True)
class Example:
    """Tokens that follow the shared prefix; `tokens[start:end]` is the title and its terminator.

    Where no section answers, `section` is None and the title is empty.
    """

    id: str
    task: str
    section: int | None
    tokens: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Data:
    """One file: the tokens that all examples share, the leaves' titles, and the examples."""

    path: Path
    header: dict
    prefix: tuple[int, ...]
    leaves: dict[int, tuple[int, ...]]
    examples: tuple[Example, ...]

    def of_task(self, *tasks: str) -> list[Example]:
        return [example for example in self.examples if example.task in tasks]


def read(path: str | Path) -> Data:
    """Reads a file whole and checks every span and token in it."""
    path = Path(path)
    lines = _lines(path)
    if not lines:
        raise TrainingError(f"{path} is empty: write it with `stair train-data`")
    header = _object(path, 1, lines[0])
    if header.get("format") != FORMAT or header.get("version") != VERSION:
        raise TrainingError(
            f"{path}: the first line says format {header.get('format')!r} version "
            f"{header.get('version')!r}, not {FORMAT!r} version {VERSION}: write it again with "
            "this version's `stair train-data`"
        )
    vocabulary, prefix, leaves = _of_header(path, header)
    examples = []
    ids = set()
    for number, line in enumerate(lines[1:], 2):
        fields = _object(path, number, line)
        try:
            start, end = fields["target"]
            example = Example(
                fields["id"], fields["task"], fields["section"], tuple(fields["tokens"]), start, end
            )
        except (KeyError, TypeError, ValueError) as error:
            raise TrainingError(f"{path}:{number}: not an example: {error}") from error
        if not 0 < start < end <= len(example.tokens):
            raise TrainingError(
                f"{path}:{number}: the target {start}..{end} lies outside the example's "
                f"{len(example.tokens)} tokens"
            )
        if example.section is not None and example.section not in leaves:
            raise TrainingError(f"{path}:{number}: section {example.section} is not a leaf")
        if max(example.tokens) >= vocabulary or min(example.tokens) < 0:
            raise TrainingError(
                f"{path}:{number}: token {max(example.tokens)} in a vocabulary of {vocabulary}"
            )
        if example.id in ids:
            raise TrainingError(f"{path}:{number}: the id {example.id!r} appears twice")
        ids.add(example.id)
        examples.append(example)
    if not examples:
        raise TrainingError(f"{path} has no example: did the split name the right questions?")
    return Data(path, header, prefix, leaves, tuple(examples))


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise TrainingError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TrainingError(
            f"{path}: not UTF-8 at byte {error.start}: write it with `stair train-data`"
        ) from error
    # Not `splitlines`: JSON may hold other line breaks as they are.
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _of_header(path: Path, header: dict) -> tuple[int, tuple[int, ...], dict[int, tuple[int, ...]]]:
    """Size of the vocabulary, prefix and leaves."""
    try:
        leaves = {leaf["section"]: tuple(leaf["tokens"]) for leaf in header["leaves"]}
        return int(header["vocabulary_size"]), tuple(header["prefix"]), leaves
    except (KeyError, TypeError, ValueError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else error
        raise TrainingError(
            f"{path}:1: not a header of training data: {what}: write it again with `stair train-data`"
        ) from error


def check_same_prompt(train: Data, dev: Data) -> None:
    """Training and development data must come from one index and one vocabulary."""
    for key in ("vocabulary_fingerprint", "vocabulary_size", "prefix", "leaves"):
        if train.header.get(key) != dev.header.get(key):
            raise TrainingError(
                f"{train.path} and {dev.path} differ in `{key}`: write both with the same index "
                "and the same model"
            )


class Order:
    """Which examples a step sees: a pure function of seed and step, so a resumed run needs no state.

    Each batch holds `share` retrieval examples; the rest are ingestion. Both kinds are gone
    through in passes, each pass shuffled anew. Batches are formed of `WINDOW` at a time, sorted by
    length, so that little is padding.
    """

    WINDOW = 4

    def __init__(self, examples: list[Example], batch: int, share: float, seed: int):
        kinds = [
            [e for e in examples if e.task == "retrieval"],
            [e for e in examples if e.task != "retrieval"],
        ]
        wanted = round(batch * share)
        if not kinds[0] or not kinds[1]:
            wanted = batch if kinds[0] else 0
        self.batch = batch
        self.counts = [wanted, batch - wanted]
        self.kinds = kinds
        self.seed = seed
        self.steps_per_epoch = max(1, -(-len(examples) // batch))

    def step(self, step: int) -> list[Example]:
        """The examples of one step, shortest first."""
        window, index = divmod(step, self.WINDOW)
        chosen = []
        for kind, (examples, count) in enumerate(zip(self.kinds, self.counts)):
            first = window * count * self.WINDOW
            chosen += [self._nth(kind, examples, first + i) for i in range(count * self.WINDOW)]
        chosen.sort(key=lambda example: len(example.tokens))
        order = list(range(self.WINDOW))
        random.Random(f"{self.seed} window {window}").shuffle(order)
        return chosen[order[index] * self.batch :][: self.batch]

    def _nth(self, kind: int, examples: list[Example], n: int) -> Example:
        epoch, place = divmod(n, len(examples))
        return examples[_permutation(self.seed, kind, epoch, len(examples))[place]]


@lru_cache(maxsize=8)
def _permutation(seed: int, kind: int, epoch: int, length: int) -> list[int]:
    order = list(range(length))
    random.Random(f"{seed} kind {kind} epoch {epoch}").shuffle(order)
    return order


def _object(path: Path, number: int, line: str) -> dict:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise TrainingError(f"{path}:{number}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise TrainingError(f"{path}:{number}: not a JSON object")
    return value
