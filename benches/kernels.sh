#!/usr/bin/env bash
# Compares ggml's kernels for the generations of x86-64 processors, on real decodes: each plugin
# that this machine can run is loaded alone, and answers the same question from a cold start.
#
#   benches/kernels.sh STAIR MODEL.gguf INDEX.stair
#
# It prints for each the time of the prefill and of a query, the best of several rounds in turn, and
# their ratios to the fastest; then the same for one and two threads with the plugin that is chosen
# by itself. It fails when a plugin dies or finds other sections than the rest. It needs python3.
#
#   STAIR_KERNELS           plugins to compare                       default: all beside STAIR
#   STAIR_KERNELS_ROUNDS    rounds                                   default: 3
#   STAIR_KERNELS_THREADS   threads that compute                     default: 1, so that other
#                           programs on the machine disturb least
set -euo pipefail

if [ $# -ne 3 ]; then
    sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
stair=$1
model=$2
index=$3
rounds=${STAIR_KERNELS_ROUNDS:-3}
threads=${STAIR_KERNELS_THREADS:-1}
plugins=$(dirname "$stair")/stair-backends
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One question: without AVX each round takes minutes.
echo "How many days of holiday do I get in a year?" >"$work/questions"

# run NAME THREADS: appends NAME, the exit status, the answer and the errors to the results.
run() {
    local name=$1 status=0
    echo "$name" >>"$work/results"
    STAIR_BACKENDS=$work/$name "$stair" retrieve -i "$index" -m "$model" -k 3 --json --stats \
        --deterministic --no-cache --threads "$2" <"$work/questions" >"$work/answers" 2>"$work/errors" || status=$?
    {
        echo "$status"
        tr '\n' '\t' <"$work/answers"
        echo
        tr '\n' ' ' <"$work/errors"
        echo
    } >>"$work/results"
}

# compare NAME:THREADS...: rounds in turn, then the table.
compare() {
    local round one
    : >"$work/results"
    for ((round = 0; round < rounds; round++)); do
        for one in "$@"; do
            run "${one%:*}" "${one#*:}"
        done
    done
    python3 - "$work/results" <<'PY'
import json, sys

found, times, failed = {}, {}, {}
lines = open(sys.argv[1], encoding="utf-8").read().split("\n")
for name, status, answers, errors in zip(lines[0::4], lines[1::4], lines[2::4], lines[3::4]):
    if status != "0":
        failed[name] = errors.strip() or f"it ended with status {status}"
        continue
    answers = [json.loads(answer) for answer in answers.split("\t") if answer]
    hits = [[hit["section"] for hit in answer["hits"]] for answer in answers]
    stats = [answer["stats"] for answer in answers]
    prefill = stats[0]["prefill_ms"]
    query = sum(one["search_ms"] for one in stats) / len(stats)
    found.setdefault(name, hits)
    if found[name] != hits:
        failed[name] = "its answers change from round to round"
    times.setdefault(name, []).append((prefill, query))

best = {name: [min(column) for column in zip(*all)] for name, all in times.items()}
first = [min(column) for column in zip(*best.values())] or [1, 1]
print(f"{'':<22}{'prefill ms':>12}{'ratio':>8}{'query ms':>12}{'ratio':>8}  sections")
reference = found[min(best, key=lambda name: best[name])] if best else None
code = 0 if best else 1
for name, (prefill, query) in sorted(best.items(), key=lambda item: sum(item[1])):
    same = "the same" if found[name] == reference else f"OTHERS: {found[name]} not {reference}"
    code |= found[name] != reference
    print(f"{name:<22}{prefill:>12.0f}{prefill / first[0]:>8.2f}{query:>12.0f}{query / first[1]:>8.2f}  {same}")
for name, why in failed.items():
    skipped = "no CPU kernels for this machine" in why
    code |= not skipped
    print(f"{name:<22}  {'not for this machine' if skipped else 'FAILED: ' + why}")
sys.exit(code)
PY
}

candidates=()
for plugin in ${STAIR_KERNELS:-"$plugins"/libggml-cpu-*.so}; do
    name=$(basename "$plugin" .so)
    name=${name#libggml-cpu-}
    mkdir "$work/$name"
    ln -s "$(realpath "$plugin")" "$work/$name/"
    candidates+=("$name:$threads")
done

echo "load average: $(cut -d' ' -f1-3 /proc/loadavg); $rounds rounds, $threads thread(s)"
code=0
compare "${candidates[@]}" || code=1
echo
for name in 1-thread 2-threads; do
    ln -s "$(realpath "$plugins")" "$work/$name"
done
compare 1-thread:1 2-threads:2 || code=1
echo "load average: $(cut -d' ' -f1-3 /proc/loadavg)"
exit "$code"
