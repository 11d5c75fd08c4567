#!/usr/bin/env bash
# The models of a book whose adapters are in examples/BOOK/adapter: the base with each merged in.
#   adapter.gguf  trained with the table of contents  -> MODELS/BOOK-q8_0.gguf
#   dsi.gguf      trained without it                  -> MODELS/BOOK-dsi-q8_0.gguf
# usage: book.sh STAIR BASE.gguf BOOK MODELS
set -euo pipefail

stair=$1
base=$2
book=$3
models=$4
adapters=$(cd "$(dirname "$0")/.." && pwd)/examples/$book/adapter

# merged ADAPTER OUT
merged() {
    [ -s "$1" ] || return 0
    if [ ! -s "$2" ] || [ "$1" -nt "$2" ] || [ "$base" -nt "$2" ]; then
        "$stair" merge "$base" "$1" -o "$2" --type q8_0
    fi
}

merged "$adapters/adapter.gguf" "$models/$book-q8_0.gguf"
merged "$adapters/dsi.gguf" "$models/$book-dsi-q8_0.gguf"

# tuned TUNE.json MODEL.gguf
tuned() {
    if [ -s "$1" ] && [ -s "$2" ]; then
        cp "$1" "${2%.gguf}.tune.json"
    fi
}

tuned "$adapters/tune.json" "$models/$book-q8_0.gguf"
tuned "$adapters/dsi-tune.json" "$models/$book-dsi-q8_0.gguf"
