#!/usr/bin/env bash
# All peers beside libstair, in one run: prints the tables, and writes the figures to
# TARGET/peers.json (those of the first document).
#
#   benches/peers/run.sh STAIR BASE.gguf HANDBOOK.gguf HANDBOOK.stair TARGET
#   benches/peers/run.sh STAIR MODEL.gguf BOOK.md QUESTIONS.jsonl TARGET NAME      one book of your own
#
# Besides the handbook it takes ../shared/books/microbiology where models/microbiology-q8_0.gguf, trained
# for it, is there. Environment:
#   PEERS_N          questions                                       default: 100
#   PEERS_COLD_N     of them for transformers without a cache        default: 20
#   PEERS_SYSTEMS    only these, with commas between                 default: all
#   PEERS_THREADS    threads, in every system                        default: all processors
#   PEERS_PYTHON, PEERS_NODE    see setup.sh
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)

main() {
    stair=$1
    target=$5
    environments=$target/peers
    mkdir -p "$environments"
    "$here/setup.sh" "$environments"
    python=${PEERS_PYTHON:-$environments/venv/bin/python}
    node=${PEERS_NODE:-$environments/node}
    [ -x "$python" ] || python=
    [ -d "$node/node_modules/node-llama-cpp" ] || node=
    if [ $# -gt 5 ]; then
        "$stair" build "$3" -m "$2" -o "$environments/$6.stair" >/dev/null
        measure "$6" "$environments/$6.stair" "$2" "$4" "$target/peers.json"
        return
    fi
    measure handbook "$4" "$3" "$root/examples/handbook/questions.jsonl" "$target/peers.json"
    local book=$root/../shared/books/microbiology model
    model=$(dirname "$3")/microbiology-q8_0.gguf
    if [ -s "$model" ] && [ -s "$book/book.md" ]; then
        "$stair" build "$book/book.md" -m "$2" -o "$environments/microbiology.stair" >/dev/null
        measure microbiology "$environments/microbiology.stair" "$model" "$book/questions.jsonl" \
            "$target/peers-microbiology.json"
    else
        echo "peers: no run over Microbiology: it needs $model, trained for it (docs/training.md)"
    fi
}

# measure NAME INDEX MODEL QUESTIONS FIGURES
measure() {
    echo "== $1"
    cargo bench --quiet --features peers --bench peers -- run --index "$2" --model "$3" --questions "$4" \
        -n "${PEERS_N:-100}" --cold "${PEERS_COLD_N:-20}" \
        ${PEERS_SYSTEMS:+--systems "$PEERS_SYSTEMS"} ${PEERS_THREADS:+--threads "$PEERS_THREADS"} \
        ${python:+--python "$python"} ${node:+--node "$node"} \
        --out "$environments/$1" --figures "$5"
}

main "$@"
