#!/usr/bin/env bash
# The handbook's index, and the model that was trained on it: the base with the adapter merged in.
# usage: handbook.sh STAIR BASE.gguf OUT.gguf INDEX.stair
set -euo pipefail

stair=$1
base=$2
out=$3
index=$4
handbook=$(cd "$(dirname "$0")/../examples/handbook" && pwd)

newer() { [ ! -s "$2" ] || [ "$1" -nt "$2" ]; }

questions=("$handbook/questions.jsonl" "$handbook/training-questions.jsonl")
if newer "$handbook/handbook.md" "$index" || [ "$base" -nt "$index" ] ||
    newer "${questions[0]}" "$index" || newer "${questions[1]}" "$index"; then
    echo "reading the handbook and its training questions, and building the index:"
    "$stair" build "$handbook/handbook.md" -m "$base" -o "$index" -q "${questions[0]}" -q "${questions[1]}"
    echo
fi
# The model says which index it was made with, and what was tuned is bound to its bytes.
if newer "$handbook/adapter/adapter.gguf" "$out" || [ "$base" -nt "$out" ] || [ "$index" -nt "$out" ]; then
    echo "merging what was learnt about the handbook into the model:"
    "$stair" merge "$base" "$handbook/adapter/adapter.gguf" -o "$out" --type q8_0 --index "$index"
    echo
fi
# What was chosen on the development questions: the lexical weight, and when to refuse.
cp "$handbook/adapter/tune.json" "${out%.gguf}.tune.json"
