#!/usr/bin/env bash
# How good the systems are: asks every test question, prints the figures of the README and more, and writes
# eval.json (percent) beside the folder OUT, the predictions and reports into it.
#
#   packaging/eval.sh STAIR BASE.gguf HANDBOOK.gguf HANDBOOK.stair OUT
#
# Besides the handbook it takes the books in ../shared/books, each where there is a model for it, merged
# from examples/BOOK/adapter by packaging/book.sh:
#   models/BOOK-q8_0.gguf       trained with the table of contents (docs/training.md)
#   models/BOOK-dsi-q8_0.gguf   trained without it
# A book without a model is asked *cold*, of the model of another one. What is missing is said. Indexes hold
# the training questions (`stair build --questions`); bm25 and lexical are asked over one that does not. With DENSE_VENV=FOLDER a sentence embedder is asked too; its
# environment is made there (4 GB).
set -euo pipefail

stair=$1
base=$2
handbook_model=$3
handbook_index=$4
out=$5
root=$(cd "$(dirname "$0")/.." && pwd)
models=$(dirname "$base")
cold=$models/microbiology-q8_0
# A model is sure of itself where it knows nothing. Of 25 development questions of Economics, 10 puts 52 %
# first, 30 and 100 put 60 %.
cold_weight=30

main() {
    mkdir -p "$out"
    document handbook "$handbook_index" "$handbook_model" "$root/examples/handbook/questions.jsonl"
    local book
    for book in microbiology principles-economics-3e; do
        local folder=$root/../shared/books/$book
        if [ ! -s "$folder/book.md" ]; then
            echo "eval: no book $book: left out"
            continue
        fi
        local index=$out/$book.stair more=$root/examples/$book/training-questions.jsonl
        local asked=(-q "$folder/questions.jsonl")
        [ ! -s "$more" ] || asked+=(-q "$more")
        "$root/packaging/book.sh" "$stair" "$base" "$book" "$models"
        "$stair" build "$folder/book.md" -m "$base" -o "$index" "${asked[@]}" >/dev/null
        document "$book" "$index" "$models/$book-q8_0.gguf" "$folder/questions.jsonl" "${asked[@]}"
    done
    python3 "$root/packaging/eval.py" "$out" | tee "$out/table.md"
}

# document NAME INDEX MODEL QUESTIONS [-q KNOWN.jsonl...]
document() {
    local name=$1 index=$2 model=$3 questions=$4
    shift 4
    echo "== $name"
    # What an earlier run left would stand beside the new figures.
    rm -f "$out/$name-"*.json*
    "$stair" audit -i "$index" "$questions" || true
    local document=$root/examples/handbook/handbook.md plain=$out/$name-plain.stair
    [ "$name" = handbook ] || document=$(dirname "$questions")/book.md
    "$stair" build "$document" -m "$base" -o "$plain" >/dev/null
    ask "$name" bm25 "$plain" "" "$questions"
    ask "$name" lexical "$plain" "" "$questions"
    ask "$name" lexical-asked "$index" "" "$questions"
    if [ -s "$model" ]; then
        ask "$name" stair "$index" "$model" "$questions"
        ask "$name" stair-local "$index" "$model" "$questions"
        if [ -s "${model%.gguf}.tune.json" ]; then
            ask "$name" hybrid "$index" "$model" "$questions"
        else
            echo "eval: no hybrid for $name: choose its weight with \`stair tune\`"
        fi
    elif [ -s "$cold.gguf" ]; then
        echo "eval: no model was trained for $name: asking $cold.gguf, which takes seconds a question"
        ask "$name" stair-cold "$plain" "$cold.gguf" "$questions" --no-tune
        ask "$name" hybrid-cold "$plain" "$cold.gguf" "$questions" --no-tune --lexical-weight "$cold_weight"
    else
        echo "eval: no stair for $name: it needs training (docs/training.md) into $model"
    fi
    local dsi=${model%-q8_0.gguf}-dsi-q8_0.gguf
    if [ -s "$dsi" ]; then
        "$stair" build --no-toc "$document" -m "$base" -o "$out/$name-dsi.stair" >/dev/null
        ask "$name" dsi "$out/$name-dsi.stair" "$dsi" "$questions" --no-tune
        if [ -s "${dsi%.gguf}.tune.json" ]; then
            "$stair" build --no-toc "$document" -m "$base" -o "$out/$name-dsi.stair" "$@" >/dev/null
            ask "$name" hybrid-dsi "$out/$name-dsi.stair" "$dsi" "$questions"
        fi
    else
        echo "eval: no dsi for $name: it needs training into $dsi"
    fi
    if [ -n "${DENSE_VENV:-}" ]; then
        "$root/training/dense/run.sh" "$stair" "$plain" "$document" "$questions" "$out/$name-dense.jsonl" "$DENSE_VENV" -k 3
    fi
    "$stair" compare --json "$out/$name-"*.jsonl >"$out/$name-compare.json"
    "$stair" compare "$out/$name-"*.jsonl | tee "$out/$name-compare.txt"
    "$stair" report "$out/$name-"*.jsonl -o "$out/$name-report.html"
}

# ask NAME SYSTEM INDEX MODEL QUESTIONS [OPTION...]
ask() {
    local name=$1 system=$2 index=$3 model=$4 questions=$5 kind=${2%-asked}
    kind=${kind%-cold}
    shift 5
    "$stair" eval -i "$index" ${model:+-m "$model"} "$questions" -k 3 --split test \
        --system "${kind%-dsi}" --name "$system" --out "$out/$name-$system.jsonl" --json "$@" \
        >"$out/$name-$system.json"
    echo "eval: $name $system done"
}

main
