#!/usr/bin/env bash
# Trains an adapter for the handbook from nothing. Stopped, it goes on when called again. The committed
# adapter came of three runs, see examples/handbook/README.md.
#
#   training/handbook.sh STAIR BASE.gguf WORK [MINUTES]
#
# WORK holds the environment, the examples and the run; WORK/run/adapter.gguf is the result.
set -euo pipefail

stair=$(realpath "$1")
base=$(realpath "$2")
work=$3
minutes=${4:-120}
here=$(cd "$(dirname "$0")" && pwd)
handbook=$here/../examples/handbook

mkdir -p "$work"
work=$(realpath "$work")
"$here/setup.sh" "$work/venv"
"$stair" build "$handbook/handbook.md" -m "$base" -o "$work/handbook.stair" >/dev/null
cat "$handbook/questions.jsonl" "$handbook/training-questions.jsonl" >"$work/questions.jsonl"
"$stair" train-data -i "$work/handbook.stair" -m "$base" -q "$work/questions.jsonl" --split train \
    --window 20 --overlap 10 --max-sentence 30 -o "$work/train.jsonl"
"$stair" train-data -i "$work/handbook.stair" -m "$base" -q "$work/questions.jsonl" --split dev \
    --tasks retrieval -o "$work/dev.jsonl"
cd "$here"
exec "$work/venv/bin/python" -m stair_train --base "$base" --data "$work/train.jsonl" \
    --dev "$work/dev.jsonl" -o "$work/run" --batch 64 --share 0.88 --hold 10 --minutes "$minutes"
