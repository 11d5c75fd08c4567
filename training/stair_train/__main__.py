"""The command: `python -m stair_train --base BASE --data TRAIN.jsonl --dev DEV.jsonl -o RUN/`."""

import argparse
import json
import math
import sys
from dataclasses import asdict
from pathlib import Path

import torch

from . import base as bases
from . import checkpoint, data
from .errors import TrainingError
from .loop import Options, Stopped, Trainer


def main(arguments: list[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    try:
        return run(given)
    except TrainingError as error:
        print(f"stair_train: {error}", file=sys.stderr)
        return 1
    except Stopped as stopped:
        print(f"stair_train: {stopped}: saved; the same command goes on from here", file=sys.stderr)
        return 143


def parser() -> argparse.ArgumentParser:
    default = Options()
    p = argparse.ArgumentParser(prog="python -m stair_train", description=__doc__)
    p.add_argument("--base", required=True, help="the model to train: a GGUF file or a Hugging Face folder")
    p.add_argument("--data", required=True, help="what `stair train-data` wrote of the train split")
    p.add_argument("--dev", help="the same of the dev split: early stopping and the choice of weights")
    p.add_argument("-o", "--output", required=True, type=Path, help="folder of the run; resumed if it holds one")
    p.add_argument("--start-from", type=Path, metavar="RUN", help="begin with the best weights of another run, or with an adapter in GGUF")
    p.add_argument("--rank", type=int, default=default.rank, help="of the LoRA [%(default)s]")
    p.add_argument("--alpha", type=float, default=default.alpha, help="of the LoRA [%(default)s]")
    p.add_argument("--dropout", type=float, default=default.dropout, help="of the LoRA [%(default)s]")
    p.add_argument("--full", action="store_true", help="train all weights, not a LoRA")
    p.add_argument("--qlora", action="store_true", help="4-bit base weights (one CUDA GPU)")
    p.add_argument("--learning-rate", type=float, default=default.learning_rate, help="[%(default)s]")
    p.add_argument("--ratio", type=float, default=default.ratio, help="of the rate of a LoRA's B to that of its A [%(default)s]")
    p.add_argument("--batch", type=int, default=default.batch, help="examples a step [%(default)s]")
    p.add_argument("--share", type=float, default=default.share, help="of questions in a batch; the rest is the document's own text [%(default)s]")
    p.add_argument("--epochs", type=int, default=default.epochs, help="at most [%(default)s]")
    p.add_argument("--minutes", type=float, default=math.inf, help="at most, of training; the schedule fits itself in")
    p.add_argument("--warmup", type=int, default=default.warmup, help="steps [%(default)s]")
    p.add_argument("--patience", type=float, default=default.patience, help="epochs without a better dev Recall@1 [%(default)s]")
    p.add_argument("--hold", type=int, default=default.hold, metavar="STEPS", help="hold the prefix's keys and values fixed this many steps: faster and an approximation, since no gradient goes through them [off]")
    p.add_argument("--seed", type=int, default=default.seed)
    p.add_argument("--evaluate-every", type=float, default=1.0, metavar="EPOCHS", help="[%(default)s]")
    p.add_argument("--save-every", type=float, default=5.0, metavar="MINUTES", help="[%(default)s]")
    p.add_argument("--threads", type=int, help="CPU threads [all]")
    return p


def run(given: argparse.Namespace) -> int:
    options = Options(**{name: getattr(given, name) for name in asdict(Options())})
    if not 0 <= options.share <= 1 or options.batch < 1 or options.rank < 1:
        raise TrainingError("--share wants 0 to 1, --batch and --rank at least 1")
    if not 0 <= options.dropout < 1:
        raise TrainingError("--dropout wants 0 or more, and less than 1")
    if options.epochs < 1 or not options.minutes > 0:
        raise TrainingError("--epochs wants at least 1, --minutes more than 0")
    train = data.read(given.data)
    dev = data.read(given.dev) if given.dev else None
    if dev:
        data.check_same_prompt(train, dev)
    if given.threads:
        torch.set_num_threads(given.threads)
    torch.manual_seed(options.seed)
    device, dtype = bases.device_and_dtype()
    base = bases.load(given.base, device, dtype, given.qlora)
    bases.check_vocabulary(base, train.header["vocabulary_size"])
    if options.full:
        model = base.model.float()
    else:
        model = bases.with_lora(base, options.rank, options.alpha, options.dropout)
    try:
        given.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TrainingError(f"{given.output}: cannot be made: {error.strerror}: name another with -o") from error
    trainer = Trainer(base, model, train, dev, given.output, options)
    describe(trainer, dtype)
    if trainer.resume():
        check_beginning(given)
        print(f"resumed at step {trainer.step}", flush=True)
    elif given.start_from:
        trainer.start_from(given.start_from)
    settings = {key: value for key, value in asdict(options).items() if value != math.inf}
    if given.start_from:
        settings["start_from"] = given.start_from.name
    settings |= {"base": Path(given.base).name, "index": train.header.get("index_checksum")}
    with checkpoint.writing(given.output / "config.json") as path:
        path.write_text(json.dumps(settings, indent=1) + "\n")
    best = trainer.fit(given.evaluate_every, given.save_every)
    written = given.output / ("model.gguf" if options.full else "adapter.gguf")
    print(f"best dev Recall@1 {100 * best:.1f} at epoch {trainer.best['epoch']:.1f}; wrote {written}")
    return 0


def check_beginning(given: argparse.Namespace) -> None:
    """A run that is resumed began as its config.json says, and its weights come from there."""
    path = given.output / "config.json"
    try:
        began = json.loads(path.read_text()).get("start_from") if path.exists() else None
    except ValueError as error:
        raise TrainingError(f"{path}: damaged ({error}): remove it to go on") from error
    asked = given.start_from.name if given.start_from else None
    if began != asked:
        raise TrainingError(
            f"the run in {given.output} began {f'from {began}' if began else 'anew'}, and --start-from is "
            f"{asked or 'left out'}: give the same, or another folder with -o"
        )


def describe(trainer: Trainer, dtype) -> None:
    counts = {}
    for example in trainer.train.examples:
        counts[example.task] = counts.get(example.task, 0) + 1
    trained = sum(value.numel() for value in trainer.trained.values())
    print(
        f"{trainer.base.path.name} ({trainer.base.architecture}) on {trainer.device.type} in "
        f"{str(dtype).removeprefix('torch.')}, {trained:,} weights trained\n"
        f"{len(trainer.train.prefix)} tokens of prefix, {len(trainer.train.leaves)} leaves, examples "
        + ", ".join(f"{count} {task}" for task, count in sorted(counts.items()))
        + f"; {trainer.order.steps_per_epoch} steps an epoch",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
