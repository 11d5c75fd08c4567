"""The check behind device.sh: prints a report on FOLDER and ends with PASS or FAIL."""

import json
import os
import subprocess
import sys
from pathlib import Path

import gpu
from asking import ask, percentile
from comparing import compare, recall

QUESTIONS = int(os.environ.get("STAIR_DEVICE_QUESTIONS", "32"))
CALLERS = [int(n) for n in os.environ.get("STAIR_DEVICE_CALLERS", "1 8 64").split()]
SECONDS = float(os.environ.get("STAIR_DEVICE_SECONDS", "20"))
REFERENCE_SECONDS = float(os.environ.get("STAIR_DEVICE_REFERENCE_SECONDS", "120"))
NOISE_CALLERS = 8
TOLERANCE = os.environ.get("STAIR_DEVICE_TOLERANCE")


def main(folder):
    failures = []

    def check(holds, what):
        if not holds:
            failures.append(what)
            say(f"  FAILED: {what}")

    say("== what runs")
    for name, value in json.loads((folder / "carried.json").read_text()).items():
        say(f"  {name}: {value}")

    say("== devices")
    smi = gpu.query("name,driver_version,memory.used")
    say(f"  nvidia-smi: {', '.join(smi[:2]) if smi else 'no GPU'}")
    seen = devices(folder)
    for device in seen["devices"]:
        say(f"  {device['name']}: {device['description']}, {device['mib']} MiB ({device['kind']})")
    say(f"  CUDA plugin: {seen['cuda_plugin']}")
    on_gpu = any(device["kind"] == "gpu" for device in seen["devices"])
    check(on_gpu or not smi, "the machine has a GPU and ggml does not see it")
    if not on_gpu:
        say("  no GPU: CPU only")

    asked = [json.loads(line) for line in (folder / "questions.jsonl").read_text().splitlines()]
    asked = asked[:QUESTIONS]
    questions = [question["query"] for question in asked]
    gold = [question["section"] for question in asked]

    say(f"== reference: {len(questions)} questions on the CPU, one at a time")
    reference = ask(folder, questions, gpu=False, count=len(questions), seconds=REFERENCE_SECONDS)
    row(reference)
    sound(check, "CPU", reference)
    check(reference.answers, "the CPU answered nothing")
    say(f"  right section first {share(recall(reference.answers, gold, 1))}, "
        f"in three {share(recall(reference.answers, gold, 3))}")

    say(f"== the same, {NOISE_CALLERS} at a time")
    count = max(len(questions), 4 * NOISE_CALLERS)
    noisy = ask(folder, questions, gpu=False, callers=NOISE_CALLERS, count=count, seconds=REFERENCE_SECONDS)
    row(noisy)
    sound(check, f"CPU, {NOISE_CALLERS} at a time", noisy)
    noise = compare(reference.answers, noisy.answers, float("inf"))
    say(f"  against the reference: {noise.words()}")
    # Quantised weights multiply rounded activations, and what is rounded up and what down changes
    # with the shape of a batch. What the CPU does to itself in this way, a GPU may do, and more.
    tolerance = float(TOLERANCE) if TOLERANCE else min(2.0, max(0.5, 3 * noise.largest))
    say(f"  so differences up to {tolerance:.2f} pass")

    say("== libstair.so through stair.h")
    first = reference.answers[0] if reference.answers else {}
    if first.get("hits"):
        through_c(check, folder, first, tolerance)

    where = "GPU" if on_gpu else "CPU"
    runs = [(callers, None) for callers in CALLERS]
    if on_gpu and CALLERS and CALLERS[-1] > 8:
        runs.append((CALLERS[-1], CALLERS[-1]))
    for callers, parallel in runs:
        shared = f", {parallel} of them in a decode" if parallel else ""
        say(f"== {where}: {callers} at a time{shared}")
        with gpu.Peak() as peak:
            run = ask(folder, questions, gpu=True, callers=callers, parallel=parallel, seconds=SECONDS)
        row(run)
        sound(check, f"{where}, {callers} at a time", run)
        check(run.answers, "nothing was answered")
        same = compare(reference.answers, run.answers, tolerance)
        say(f"  against the reference: {same.words()}")
        for line in same.wrong[:5]:
            say(f"    {line}")
        check(same.questions, "no answer to compare")
        check(not same.wrong, f"{len(same.wrong)} differences above {tolerance:.2f}")
        if smi:
            say(f"  GPU memory at most {peak.memory} MiB ({smi[2]} MiB before), load at most {peak.load} %")
            if on_gpu:
                check(not smi[2].isdigit() or peak.memory > int(smi[2]), "the GPU's memory was not used")
        if callers == 1 and on_gpu and run.times() and reference.times():
            ratio = percentile(reference.times(), 50) / percentile(run.times(), 50)
            say(f"  one query: {ratio:.1f} times the speed of the CPU here ({os.cpu_count()} cores)")

    say("")
    if failures:
        say(f"FAIL: {'; '.join(failures)}")
        return 1
    say("PASS" if on_gpu else "PASS (no GPU: CPU only)")
    return 0


def say(line):
    print(line, flush=True)


def share(value):
    return f"{100 * value:.1f} %"


def devices(folder):
    """In a process of its own: what breaks there breaks nothing here."""
    script = Path(__file__).with_name("devices.py")
    command = [sys.executable, str(script), str(folder / "lib" / "stair-backends")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    for line in done.stderr.strip().splitlines():
        say(f"  ggml: {line}")
    if done.returncode != 0:
        return {"devices": [], "cuda_plugin": f"devices.py ended with {done.returncode}"}
    return json.loads(done.stdout)


def through_c(check, folder, expected, tolerance):
    """Asks with the C example what the command has answered."""
    command = [folder / "bin/ask", folder / "model.gguf", folder / "index.stair", expected["query"]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    say(f"  {' '.join(done.stdout.split())[:160]}")
    check(done.returncode == 0 and not done.stderr, f"ask ended with {done.returncode}: {done.stderr[:300]}")
    scores = [float(line.rsplit(None, 1)[1]) for line in done.stdout.splitlines() if line.startswith("  ")]
    wanted = [hit["log_prob"] for hit in expected["hits"]]
    # Rounded to three places when they were printed.
    close = all(abs(score - other) <= tolerance + 0.001 for score, other in zip(scores, wanted))
    check(len(scores) == len(wanted) and close, f"ask scored {scores} and the command {wanted}")


def sound(check, name, run):
    check(run.code == 0 or (run.cut and run.answers), f"{name}: stair ended with {run.code}")
    check(not run.noise, f"{name}: something was written to standard error: {run.noise[:300]!r}")
    check(not run.errors(), f"{name}: errors, such as {run.errors()[:1]}")


def row(run):
    times = run.times()
    warm = run.warm.get("stats", {})
    say(f"  load {run.load_s:.2f} s; prefill {warm.get('prefill_ms', float('nan')):.0f} ms "
        f"({warm.get('prefix_tokens', 0)} tokens)")
    say(f"  {len(times)} queries: p50 {percentile(times, 50):.1f} ms, p95 {percentile(times, 95):.1f} ms, "
        f"{len(times) / max(run.wall_s, 1e-9):.2f} a second; "
        f"{run.stat('decodes'):.1f} decodes, {run.stat('search_tokens'):.0f} search tokens each"
        f"{'; cut off before the last' if run.cut else ''}")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
