#!/usr/bin/env bash
# The committed adapter makes the default model answer: merged and asked test questions of the
# handbook, it must do far better than chance (2 %), name only real leaves, and refuse what the handbook
# does not answer more often than what it does. How much better, `make eval` prints.
# usage: handbook.sh STAIR BASE.gguf WORK
set -euo pipefail

stair=$1
base=$2
work=$3
root=$(cd "$(dirname "$0")/.." && pwd)
questions=$root/examples/handbook/questions.jsonl

mkdir -p "$work"
"$root/packaging/handbook.sh" "$stair" "$base" "$work/handbook-q8_0.gguf" "$work/handbook.stair"
python3 "$root/examples/handbook/check.py"
cat "$questions" "$root/examples/handbook/training-questions.jsonl" >"$work/all.jsonl"
"$stair" audit --strict -i "$work/handbook.stair" "$work/all.jsonl" >/dev/null
# Every twentieth question that is answerable, and every second that is not.
python3 - "$questions" >"$work/questions.jsonl" <<'PY'
import json, sys
test = [q for q in map(json.loads, open(sys.argv[1])) if q["split"] == "test"]
answerable = [q for q in test if q["section"]]
other = [q for q in test if not q["section"]]
for question in answerable[::20] + other[::2]:
    print(json.dumps(question))
PY
"$stair" eval -i "$work/handbook.stair" -m "$work/handbook-q8_0.gguf" --no-cache "$work/questions.jsonl" \
    -k 3 --split test --system hybrid --callers 4 --out "$work/predictions.jsonl" --json >"$work/figures.json"
python3 - "$work/figures.json" <<'PY'
import json, sys
figures = json.load(open(sys.argv[1]))
recall = figures["answerable"]["recall_at_1"]["value"]
refused = {kind: figures["refusal"][kind]["value"] for kind in ("answerable", "unanswerable")}
print(f"Recall@1 {recall:.2f} on {figures['counts']['answerable']}; refused {refused}")
assert figures["hallucination"]["value"] == 0
assert recall >= 0.75
assert refused["unanswerable"] > refused["answerable"]
PY
