"""Runs `stair retrieve` and times it."""

import itertools
import json
import os
import queue
import subprocess
import threading
import time
from dataclasses import dataclass, field

THREADS = os.environ.get("STAIR_DEVICE_THREADS")
PREFILL_SECONDS = 180  # more than loading and a prefill take anywhere


@dataclass
class Run:
    """What one run of the command gave."""

    answers: list = field(default_factory=list)  # parsed lines, in the order of the questions
    warm: dict = field(default_factory=dict)  # the answer that had to wait for the prefill
    load_s: float = 0.0  # from start to that answer, its own time left out
    wall_s: float = 0.0  # from the first question after it to the last answer
    noise: str = ""  # what was written to standard error
    code: int = 0
    cut: bool = False  # ended here, before it had answered all

    def times(self):
        """Milliseconds of each question, waiting included."""
        return sorted(answer["stats"]["total_ms"] for answer in self.answers if "stats" in answer)

    def stat(self, name):
        """The mean of a figure of the statistics."""
        values = [answer["stats"][name] for answer in self.answers if "stats" in answer]
        return sum(values) / max(1, len(values))

    def errors(self):
        return [answer["error"] for answer in [self.warm] + self.answers if "error" in answer]


def percentile(ordered, share):
    """The nearest-rank percentile of a sorted list."""
    if not ordered:
        return float("nan")
    return ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * share // 100) - 1))]


def ask(folder, questions, *, gpu, seconds, callers=1, parallel=None, count=None):
    """Asks the questions in a circle, at most `count` of them and for `seconds`, `callers` at a time.

    The first one is asked before that, to have the table of contents decoded. Who has not answered
    the last one after as long again is ended.
    """
    command = [f"{folder}/bin/stair", "retrieve", "-i", f"{folder}/index.stair"]
    command += ["-m", f"{folder}/model.gguf", "-k", "3", "--json", "--stats"]
    command += ["--callers", str(callers), "--no-cache"]
    if THREADS:
        command += ["--threads", THREADS]
    if parallel:
        command += ["--max-parallel", str(parallel)]
    environment = dict(os.environ)
    if not gpu:
        # Layers on the CPU are not enough: ggml would send large batches to the GPU all the same.
        environment["CUDA_VISIBLE_DEVICES"] = "-1"
        command += ["--gpu-layers", "0"]

    run = Run()
    started = time.monotonic()
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )

    def end():
        run.cut = True
        process.kill()

    killer = threading.Timer(PREFILL_SECONDS, end)
    killer.start()
    noise = []
    listener = threading.Thread(target=lambda: noise.append(process.stderr.read()))
    listener.start()
    # One place for each question that is asked and not answered: enough that no caller waits.
    room = queue.Queue()
    for _ in range(2 * callers):
        room.put(None)

    def write():
        begun = time.monotonic()
        try:
            for i, question in enumerate(itertools.cycle(questions)):
                room.get()
                if i == count or time.monotonic() - begun > seconds:
                    break
                process.stdin.write(question + "\n")
                process.stdin.flush()
            process.stdin.close()
        except OSError:
            pass  # the command ended; its exit code tells

    try:
        process.stdin.write(questions[0] + "\n")
        process.stdin.flush()
    except OSError:
        pass
    line = process.stdout.readline()
    if line:
        killer.cancel()
        killer = threading.Timer(2 * seconds, end)
        killer.start()
        run.warm = json.loads(line)
        now = time.monotonic()
        run.load_s = now - started - run.warm.get("stats", {}).get("total_ms", 0.0) / 1e3
        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        last = now
        for line in process.stdout:
            last = time.monotonic()
            if line.endswith("\n"):
                run.answers.append(json.loads(line))
            room.put(None)
        run.wall_s = last - now
    run.code = process.wait()
    killer.cancel()
    listener.join()
    run.noise = "".join(noise).strip()
    return run
