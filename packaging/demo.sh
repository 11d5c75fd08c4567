#!/usr/bin/env bash
# Builds the handbook's index and asks it three questions. usage: demo.sh STAIR MODEL.gguf INDEX.stair
set -euo pipefail

stair=$1
model=$2
index=$3
handbook=$(dirname "$0")/../examples/handbook/handbook.md

if [ ! -s "$index" ] || [ "$handbook" -nt "$index" ] || [ "$model" -nt "$index" ]; then
    echo "reading the handbook and building its index:"
    "$stair" build "$handbook" -m "$model" -o "$index"
    echo
fi
echo "asking which section of the handbook answers each question, three sections each, best first:"
echo
"$stair" retrieve -i "$index" -m "$model" -k 3 \
    "How many days of holiday do I get in a year?" \
    "What do I do when I lose my access badge?" \
    "Who has to agree before I can work from home?"
cat <<'TEXT'
Each line is a section that exists in the handbook: the model cannot name another. The number is the
natural logarithm of the probability that it gives the section's title. This default model is small
and was never trained on the handbook, so the sections are real and most of them are wrong; training
one is the next step (see README.md).
TEXT
echo "ask your own:"
echo "  $stair retrieve -i $index -m $model \"...\""
