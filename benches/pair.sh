#!/usr/bin/env bash
# What two processes cost each other whose threads wait by spinning, and what a shorter spin costs one
# that is alone.
#
#   benches/pair.sh STAIR MODEL.gguf INDEX.stair [SETTING...]
#
# A SETTING is NAME=VALUE, a variable of libgomp. For each of them in turn it starts two `stair retrieve`
# with a thread for every processor that it may use. One is asked while the other sleeps, then both are asked
# at the same time. It prints the median of a question's seconds alone, that as a multiple of the first
# setting's; the median in company, and that as a multiple of the first setting's alone: 2 is what sharing
# costs without any loss. A question that is given up counts as the time that it got. It needs python3.
#
#   STAIR_PAIR_ROUNDS    rounds of three questions          default: 3
#   STAIR_PAIR_TIMEOUT   seconds until one is given up      default: 60
set -euo pipefail

if [ $# -lt 3 ]; then
    sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
exec python3 - "$@" <<'PY'
import json, os, statistics, subprocess, sys, threading

build, model, index, *settings = sys.argv[1:]
# libgomp's own choice is 300,000 turns. It is asked for by its number, because the command makes another
# one where there is none.
settings = settings or ["GOMP_SPINCOUNT=300000", "GOMP_SPINCOUNT=10000", "GOMP_SPINCOUNT=1000",
                        "GOMP_SPINCOUNT=300", "GOMP_SPINCOUNT=100", "GOMP_SPINCOUNT=0", "OMP_WAIT_POLICY=passive"]
rounds = int(os.environ.get("STAIR_PAIR_ROUNDS", "3"))
timeout = float(os.environ.get("STAIR_PAIR_TIMEOUT", "60"))
processors = len(os.sched_getaffinity(0))
questions = ["How many days of holiday do I get in a year?", "Who may drive a forklift?",
             "How long does a password have to be?"]


class Stair:
    def __init__(self, setting):
        rest = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
        command = [build, "retrieve", "-i", index, "-m", model, "-k", "3", "--json", "--stats", "--no-tune",
                   "--threads", str(processors), "--timeout-ms", str(int(timeout * 1000))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**rest, **dict([setting.split("=", 1)])})
        self.ask(questions[0])

    def ask(self, question):
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return answer["stats"]["search_ms"] / 1000 if "stats" in answer else timeout

    def ask_all(self, times):
        for question in questions:
            times.append(self.ask(question))
            if times[-1] == timeout:
                break

    def end(self):
        # Not by the end of its input: it may be in a decode that takes minutes.
        self.process.kill()
        self.process.wait()


print("load average:", " ".join(open("/proc/loadavg").read().split()[:3]), flush=True)
alone = {name: [] for name in settings}
beside = {name: [] for name in settings}
for _ in range(rounds):
    for name in settings:
        pair = [Stair(name), Stair(name)]
        pair[0].ask_all(alone[name])
        threads = [threading.Thread(target=stair.ask_all, args=(beside[name],)) for stair in pair]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for stair in pair:
            stair.end()
print(f"{'':<25}{'alone s':>9}{'x first':>9}{'two s':>9}{'x first':>9}")
first = statistics.median(alone[settings[0]])
for name in settings:
    one, two = statistics.median(alone[name]), statistics.median(beside[name])
    print(f"{name:<25}{one:>9.3f}{one / first:>9.2f}{two:>9.3f}{two / first:>9.1f}")
PY
