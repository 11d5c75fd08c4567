"""The state of a run on disk: killed at any moment, it loses what came after the last save."""

import os
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError

from .errors import TrainingError

FILE = "checkpoint.pt"


def exists(run: Path) -> bool:
    """Whether there is something to go on from."""
    return (run / FILE).exists()


def save(run: Path, state: dict) -> None:
    """Written beside and renamed over, so that a full disk leaves the last checkpoint whole."""
    partial = run / (FILE + ".part")
    try:
        with open(partial, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, run / FILE)
    except (OSError, RuntimeError) as error:
        partial.unlink(missing_ok=True)
        raise _unwritten(run / FILE, error) from error


@contextmanager
def writing(path: Path):
    """Around what writes a file or a folder of a run: a full disk is said in one line."""
    try:
        yield path
    except (OSError, SafetensorError) as error:
        raise _unwritten(path, error) from error


def _unwritten(path: Path, error: Exception) -> TrainingError:
    then = "goes on from the last checkpoint" if exists(path.parent) else "starts over: there is no checkpoint yet"
    return TrainingError(
        f"{path}: cannot be written: {error}; make room and run the same command again: it {then}"
    )


def load(run: Path) -> dict | None:
    """The last checkpoint, or None where a run has none."""
    path = run / FILE
    if not exists(run):
        return None
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # A damaged file fails in many ways, each of them meaning this.
        raise TrainingError(f"{path}: damaged ({error}): remove it to start over") from error
