#!/usr/bin/env bash
# Asks the handbook a few questions. usage: demo.sh STAIR MODEL.gguf INDEX.stair
set -euo pipefail

stair=$1
model=$2
index=$3

echo "asking which section of the handbook answers each question, three sections each, best first:"
echo
"$stair" retrieve -i "$index" -m "$model" -k 3 \
    "How many days of holiday do I get in a year?" \
    "I lost the card that opens the doors. What now?" \
    "Who has to agree before I can work from home?" \
    "What is the capital of Australia?"
cat <<'TEXT'

Each line is a section that exists in the handbook: the model cannot name another. In brackets stand
the sections above it, at the end the probability that the model gives to its title. The order counts
the words of question and sections too. Where nothing seems to answer, that is said, and the lines
below are only the nearest.
TEXT
echo "ask your own:"
echo "  $stair retrieve -i $index -m $model \"...\""
