#!/usr/bin/env bash
# What a question costs when other programs keep the processors busy: the reason for OpenMP.
#
#   benches/busy.sh STAIR MODEL.gguf INDEX.stair [OTHER_STAIR]
#
# It asks the same question after the table of contents is decoded, on the machine as it is, and
# beside one busy loop for each processor that it may use; with one thread and with all of them, in
# turn, and prints the times and how often longer the busy ones are. With OTHER_STAIR, another build
# of the command (one without OpenMP), it does the same with that one in the same run. Last it prints
# the processor time that the library takes in two seconds of rest after an answer. It needs python3.
#
#   STAIR_BUSY_ROUNDS    rounds, of which the median counts      default: 3
#   STAIR_BUSY_TIMEOUT   seconds until a question is given up    default: 300
set -euo pipefail

if [ $# -lt 3 ]; then
    sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
exec python3 - "$@" <<'PY'
import json, os, statistics, subprocess, sys, time

model, index = sys.argv[2:4]
builds = {"stair": sys.argv[1]}
if len(sys.argv) > 4:
    builds["other"] = sys.argv[4]
rounds = int(os.environ.get("STAIR_BUSY_ROUNDS", "3"))
timeout = float(os.environ.get("STAIR_BUSY_TIMEOUT", "300"))
processors = len(os.sched_getaffinity(0))
question = "How many days of holiday do I get in a year?\n"


def processor_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Stair:
    def __init__(self, build, threads):
        command = [builds[build], "retrieve", "-i", index, "-m", model, "-k", "3", "--json", "--stats",
                   "--threads", str(threads), "--timeout-ms", str(int(timeout * 1000))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask()

    def ask(self):
        self.process.stdin.write(question)
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        # One that was given up took at least this long.
        return answer["stats"]["search_ms"] / 1000 if "stats" in answer else timeout

    def rest(self):
        before = processor_seconds(self.process.pid)
        time.sleep(2)
        return processor_seconds(self.process.pid) - before


def busy():
    return [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processors)]


print("load average:", " ".join(open("/proc/loadavg").read().split()[:3]))
stairs = {(build, threads): Stair(build, threads) for threads in sorted({1, processors}) for build in builds}
quiet = {key: [] for key in stairs}
loaded = {key: [] for key in stairs}
rest = {}
for _ in range(rounds):
    for key, stair in stairs.items():
        quiet[key].append(stair.ask())
        rest[key] = stair.rest()
    loops = busy()
    time.sleep(0.5)
    for key, stair in stairs.items():
        loaded[key].append(stair.ask())
    for loop in loops:
        loop.kill()
        loop.wait()
print(f"{'':<22}{'alone s':>10}{'busy s':>10}{'ratio':>8}{'s of 2 at rest':>16}")
for (build, threads), stair in stairs.items():
    stair.process.stdin.close()
    stair.process.wait()
    alone, beside = (statistics.median(times[build, threads]) for times in (quiet, loaded))
    name = f"{build}, {threads} thread" + ("s" if threads > 1 else "")
    print(f"{name:<22}{alone:>10.2f}{beside:>10.2f}{beside / alone:>8.1f}{rest[build, threads]:>16.2f}")
PY
