"""The training loop."""

import hashlib
import json
import math
import shutil
import signal
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from peft.helpers import disable_input_dtype_casting
from safetensors import SafetensorError
from tqdm import tqdm

from . import adapter, checkpoint
from . import base as bases
from .base import Base
from .data import Data, Order
from .decode import recall_at_1
from .errors import TrainingError
from .packing import backward, prefix_state


@dataclass
class Options:
    """What decides the course of a run; a resumed run must have the same."""

    rank: int = 16
    alpha: float = 32.0
    dropout: float = 0.0
    full: bool = False
    learning_rate: float = 1e-3
    ratio: float = 8.0
    batch: int = 32
    share: float = 0.5
    epochs: int = 200
    minutes: float = math.inf
    warmup: int = 20
    patience: int = 20
    hold: int = 0
    seed: int = 0


class Stopped(Exception):
    """Asked to end by a signal; everything is saved."""


class Trainer:
    """One run in one folder."""

    def __init__(self, base: Base, model, train: Data, dev: Data | None, run: Path, options: Options):
        self.base, self.model, self.train, self.dev = base, model, train, dev
        self.run, self.options = run, options
        # Not after an hour, when the first adapter is written.
        if not options.full or base.path.is_file():
            adapter.check_architecture(base.architecture)
        if options.full and base.path.is_file():
            adapter.check_model(model.state_dict(), base.architecture, base.model.config, base.path)
        self.device = next(model.parameters()).device
        self.order = Order(list(train.examples), options.batch, options.share, options.seed)
        self.trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self.optimizer = torch.optim.AdamW(
            self._groups(), lr=options.learning_rate, betas=(0.9, 0.98), weight_decay=0.0
        )
        self.step, self.seconds = 0, 0.0
        # The step of the last evaluation.
        self.evaluated = -1
        self.best = {"recall": -1.0, "epoch": 0, "weights": None}
        self.held = None
        self.signal = None
        # Once: every save has it.
        self.identity = self._identity(bases.fingerprint(base.path))

    def _groups(self) -> list[dict]:
        """A LoRA's B starts at zero and is given a larger rate than A (LoRA+, Hayou et al. 2024)."""
        b = [value for name, value in self.trained.items() if ".lora_B." in name]
        rest = [value for name, value in self.trained.items() if ".lora_B." not in name]
        groups = [{"params": rest, "ratio": 1.0}, {"params": b, "ratio": self.options.ratio}]
        return [group for group in groups if group["params"]]

    def _identity(self, base: str) -> str:
        """Runs differ when their data, base or options do."""
        hashed = hashlib.sha256()
        for path in [self.train.path, self.dev.path if self.dev else None]:
            hashed.update(path.read_bytes() if path else b"none")
        hashed.update(base.encode())
        varying = {"epochs", "minutes", "patience"}
        fixed = {k: v for k, v in asdict(self.options).items() if k not in varying}
        hashed.update(json.dumps(fixed, sort_keys=True).encode())
        return hashed.hexdigest()

    def resume(self) -> bool:
        """Goes on from the folder's checkpoint, where it has one."""
        state = checkpoint.load(self.run)
        if state is None:
            return False
        if state["identity"] == self._identity(self.base.path.name):
            print(
                f"{self.run} holds a run of an earlier version, which noted its base by name alone: whether "
                f"{self.base.path} is what it began with cannot be told; it is taken to be, and noted",
                file=sys.stderr,
            )
        elif state["identity"] != self.identity:
            raise TrainingError(
                f"{self.run} holds a run with other data, base or options: name another folder "
                "with -o, or remove this one"
            )
        with torch.no_grad():
            for name, value in state["weights"].items():
                self.trained[name].copy_(value)
        self.optimizer.load_state_dict(state["optimizer"])
        self._set_randomness(state)
        self.step, self.seconds, self.best = state["step"], state["seconds"], state["best"]
        self.evaluated = state["evaluated"] if "evaluated" in state else self._last_logged()
        # Computed anew it would be of later weights than an unbroken run has it of.
        self.held = _held_to(state.get("held"), self.device)
        return True

    def _last_logged(self) -> int:
        """The step of the last evaluation, of a run whose checkpoint does not say it."""
        return max((step for step, _ in self._log() if step <= self.step), default=-1)

    def _log(self) -> list[tuple[int, str]]:
        """The log's lines behind their steps; what a kill cut off is left out."""
        path = self.run / "log.jsonl"
        if not path.exists():
            return []
        found = []
        for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
            try:
                found.append((int(json.loads(line)["step"]), line))
            except (ValueError, KeyError, TypeError):
                continue
        return found

    def _cut_log(self) -> None:
        """Takes away what was logged and not saved: it is evaluated again."""
        with checkpoint.writing(self.run / "log.jsonl") as path:
            kept = [line for step, line in self._log() if step <= self.evaluated]
            partial = path.with_name(path.name + ".part")
            partial.write_text("".join(line + "\n" for line in kept), encoding="utf-8")
            partial.replace(path)

    def _set_randomness(self, state: dict) -> None:
        torch.set_rng_state(state["rng"])
        if self.device.type == "cuda" and state.get("cuda_rng") is not None:
            torch.cuda.set_rng_state(state["cuda_rng"], self.device)

    def start_from(self, run: Path) -> None:
        """Takes the best weights of another run, or of an adapter's GGUF; everything else begins anew."""
        if not run.exists():
            raise TrainingError(f"{run}: no such file or folder: --start-from wants a run or an adapter")
        weights = self._adapter(run) if run.is_file() else self._best_of(run)
        if {n: v.shape for n, v in weights.items()} != {n: v.shape for n, v in self.trained.items()}:
            raise TrainingError(
                f"{run} trained other weights: give the same base, --rank and --full as it had"
            )
        with torch.no_grad():
            for name, value in weights.items():
                self.trained[name].copy_(value)

    def _best_of(self, run: Path) -> dict[str, torch.Tensor]:
        state = checkpoint.load(run)
        if state is None or state["best"]["weights"] is None:
            raise TrainingError(f"{run} holds no run with weights to start from")
        return state["best"]["weights"]

    def _adapter(self, path: Path) -> dict[str, torch.Tensor]:
        if self.options.full:
            raise TrainingError(f"{path} is an adapter, and --full trains all weights: leave one out")
        names = {_peft_name(name): name for name in self.trained}
        shapes = {key: self.trained[name].shape for key, name in names.items()}
        config, alpha = self.base.model.config, self.options.alpha
        state = adapter.read_lora(path, shapes, self.base.architecture, config, alpha)
        return {names[key]: value for key, value in state.items()}

    def save(self) -> None:
        checkpoint.save(
            self.run,
            {
                "identity": self.identity,
                "weights": self.weights(),
                "optimizer": self.optimizer.state_dict(),
                "rng": torch.get_rng_state(),
                "cuda_rng": torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else None,
                "held": _held_to(self.held, "cpu"),
                "step": self.step,
                "evaluated": self.evaluated,
                "seconds": self.seconds,
                "best": self.best,
            },
        )

    def weights(self) -> dict[str, torch.Tensor]:
        return {name: value.detach().cpu().clone() for name, value in self.trained.items()}

    def progress(self) -> float:
        """How much of the schedule is behind, 0 to 1: by steps or by time, whichever is further."""
        total = self.options.epochs * self.order.steps_per_epoch
        return max(self.step / total, self.seconds / 60 / self.options.minutes)

    def learning_rate(self) -> float:
        """Linear warm-up, then a cosine down to a twentieth."""
        warm = min(1.0, (self.step + 1) / max(1, self.options.warmup))
        cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, self.progress())))
        return self.options.learning_rate * warm * (0.05 + 0.95 * cosine)

    def one_step(self) -> float:
        """One update; returns the loss, nats a target token."""
        options = self.options
        if options.hold and (self.held is None or self.step % options.hold == 0):
            self.held = prefix_state(self.model, self.train.prefix, self.device)
        examples = self.order.step(self.step)
        value = backward(self.model, self.train.prefix, examples, self.device, self.held)
        self._check_finite("loss", value)
        # A gradient may be infinite where the loss is not, and AdamW would make weights of it.
        norm = torch.nn.utils.clip_grad_norm_(self.trained.values(), 1.0)
        self._check_finite("gradient's norm", norm.item())
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate() * group["ratio"]
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        return value

    def _check_finite(self, what: str, value: float) -> None:
        if not math.isfinite(value):
            whole = "the last checkpoint is whole; " if checkpoint.exists(self.run) else ""
            raise TrainingError(
                f"the {what} is {value} at step {self.step}: {whole}start a new run with a learning "
                f"rate below {self.options.learning_rate:g}"
            )

    def evaluate(self, losses: list[float]) -> bool:
        """Dev Recall@1 and one line of the log; whether the weights are the best so far."""
        began = time.monotonic()
        questions = self.dev.of_task("retrieval") if self.dev else []
        # No title is right of a question that nothing answers.
        questions = [question for question in questions if question.section is not None]
        self.model.eval()
        recall = recall_at_1(
            self.model, self.train.prefix, self.train.leaves, questions, self.device, self.options.batch
        )
        self.model.train()
        epoch = self.step / self.order.steps_per_epoch
        better = recall > self.best["recall"] or not questions
        if better:
            self.best = {"recall": recall, "epoch": epoch, "weights": self.weights()}
        line = {
            "step": self.step,
            "epoch": round(epoch, 3),
            "examples": self.step * self.options.batch,
            "loss": round(sum(losses) / max(1, len(losses)), 4),
            "dev_recall_at_1": round(100 * recall, 2),
            "dev_questions": len(questions),
            "learning_rate": self.learning_rate(),
            "examples_per_second": round(self.step * self.options.batch / max(1e-9, self.seconds), 2),
            "minutes": round(self.seconds / 60, 2),
            "evaluation_seconds": round(time.monotonic() - began, 1),
        }
        with checkpoint.writing(self.run / "log.jsonl") as path, open(path, "a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")
        self.evaluated = self.step
        return better

    def export(self) -> None:
        """Writes the best weights so far."""
        weights, config = self.best["weights"], self.base.model.config
        architecture = self.base.architecture
        if self.options.full:
            tuned = dict(self.base.model.state_dict())
            tuned.update({name: value.to(torch.bfloat16) for name, value in weights.items()})
            self._write_folder("model", self.base.model, tuned)
            if self.base.path.is_file():
                with checkpoint.writing(self.run / "model.gguf") as path:
                    adapter.write_model(path, tuned, architecture, config, self.base.path)
            return
        self._write_folder("peft", self.model, {k: v.to(torch.bfloat16) for k, v in weights.items()})
        named = {_peft_name(name): value for name, value in weights.items()}
        with checkpoint.writing(self.run / "adapter.gguf") as path:
            adapter.write_lora(path, named, architecture, config, self.options.alpha, self._origin())

    def _origin(self) -> dict[str, str]:
        """What the adapter belongs to, as far as it is known."""
        origin = {
            "stair.train.prefix_checksum": self.train.header.get("prefix_checksum"),
            "stair.train.base_adapter": bases.merged_adapter(self.base.path),
        }
        return {key: value for key, value in origin.items() if value}

    def _write_folder(self, name: str, model, weights: dict[str, torch.Tensor]) -> None:
        """Written beside and renamed, so that a full disk leaves the folder before it whole."""
        partial, before = self.run / f"{name}.part", self.run / f"{name}.before"
        with checkpoint.writing(self.run / name) as path:
            for left in (partial, before):
                shutil.rmtree(left, ignore_errors=True)
                if left.is_file():
                    left.unlink()
            try:
                # Of its own copy: it takes what it has written out of it.
                model.save_pretrained(partial, state_dict=dict(weights))
            except (OSError, SafetensorError):
                shutil.rmtree(partial, ignore_errors=True)
                raise
            # A folder cannot be renamed over another.
            if path.exists():
                path.rename(before)
            partial.rename(path)
            shutil.rmtree(before, ignore_errors=True)

    def fit(self, evaluate_every: float, save_every: float) -> float:
        """Trains to the end of the schedule or of the patience; returns the best dev Recall@1.

        `evaluate_every` in epochs, `save_every` in minutes.
        """
        self._listen()
        self._cut_log()
        if self.best["weights"] is not None:
            # Saved, and perhaps not written when the run was ended.
            self.export()
        every = max(1, round(evaluate_every * self.order.steps_per_epoch))
        saved = time.monotonic()
        losses: list[float] = []
        bar = tqdm(total=100, unit="%", bar_format="{l_bar}{bar}| {elapsed}<{remaining} {postfix}")
        self.model.train()
        try:
            while self.progress() < 1.0 and not self._out_of_patience():
                began = time.monotonic()
                with self._compute():
                    losses.append(self.one_step())
                self.seconds += time.monotonic() - began
                bar.n = round(100 * min(1.0, self.progress()), 1)
                bar.set_postfix_str(
                    f"loss {sum(losses[-20:]) / len(losses[-20:]):.3f}, dev R@1 "
                    f"{100 * max(0.0, self.best['recall']):.1f}, "
                    f"{self.step * self.options.batch / self.seconds:.1f} examples/s"
                )
                if self.step % every == 0:
                    self._record(losses)
                    losses, saved = [], time.monotonic()
                elif time.monotonic() - saved > 60 * save_every:
                    self.save()
                    saved = time.monotonic()
                if self.signal is not None:
                    self.save()
                    raise Stopped(signal.Signals(self.signal).name)
            if self.step != self.evaluated:
                self._record(losses)
        finally:
            bar.close()
        return self.best["recall"]

    def _record(self, losses: list[float]) -> None:
        """Evaluates, saves and then exports, so that what a full disk keeps from being exported is saved."""
        with self._compute():
            better = self.evaluate(losses)
        self.save()
        if better:
            self.export()

    def _out_of_patience(self) -> bool:
        epoch = self.step / self.order.steps_per_epoch
        return self.best["recall"] >= 0 and epoch - self.best["epoch"] > self.options.patience

    def _compute(self):
        return _Compute(self.model, self.base.model.dtype, self.device.type)

    def _listen(self) -> None:
        def remember(number, frame):
            self.signal = number

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, remember)


def _held_to(held: dict | None, device) -> dict | None:
    """A prefix's keys and values on another device."""
    if held is None:
        return None
    return {layer: (keys.to(device), values.to(device)) for layer, (keys, values) in held.items()}


def _peft_name(name: str) -> str:
    """A trained weight as PEFT's files name it."""
    return name.replace(".default", "").removesuffix(".weight")


class _Compute:
    """Multiplies in the base's type while the trained weights stay f32."""

    def __init__(self, model, dtype, device: str):
        self.autocast = torch.autocast(device, dtype, enabled=dtype != torch.float32)
        self.casting = disable_input_dtype_casting(model)

    def __enter__(self):
        self.casting.__enter__()
        self.autocast.__enter__()

    def __exit__(self, *error):
        self.autocast.__exit__(*error)
        self.casting.__exit__(*error)
