#!/usr/bin/env bash
# Trains the two adapters of a textbook: with the table of contents, and without it for comparison
# (DSI). Stopped, it goes on when called again. The committed adapters came of more than one run, see
# examples/BOOK/README.md.
#
#   training/book.sh STAIR BASE.gguf BOOK WORK [MINUTES]
#
# BOOK is the name of a folder in ../shared/books, and of one in examples with training-questions.jsonl.
# WORK/stair/adapter.gguf and WORK/dsi/adapter.gguf are the results.
set -euo pipefail

stair=$(realpath "$1")
base=$(realpath "$2")
book=$3
work=$4
minutes=${5:-120}
here=$(cd "$(dirname "$0")" && pwd)
folder=$here/../../shared/books/$book

mkdir -p "$work"
work=$(realpath "$work")
"$here/setup.sh" "$work/venv"
"$stair" build "$folder/book.md" -m "$base" -o "$work/book.stair" >/dev/null
cat "$folder/questions.jsonl" "$here/../examples/$book/training-questions.jsonl" >"$work/questions.jsonl"

# run NAME [OPTION...]: OPTIONs are those of `stair train-data`.
run() {
    local name=$1
    shift
    "$stair" train-data -i "$work/book.stair" -m "$base" -q "$work/questions.jsonl" --split train \
        --window 20 --overlap 6 --max-sentence 30 --most-per-leaf 60 "$@" -o "$work/$name-train.jsonl"
    "$stair" train-data -i "$work/book.stair" -m "$base" -q "$folder/questions.jsonl" --split dev \
        --tasks retrieval "$@" -o "$work/$name-dev.jsonl"
    (
        cd "$here"
        "$work/venv/bin/python" -m stair_train --base "$base" --data "$work/$name-train.jsonl" \
            --dev "$work/$name-dev.jsonl" -o "$work/$name" --batch 64 --share 0.88 --hold 10 \
            --minutes "$minutes"
    )
}

run stair
run dsi --no-toc
