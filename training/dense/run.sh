#!/usr/bin/env bash
# The dense baseline's predictions for a document.
#   training/dense/run.sh STAIR INDEX.stair DOCUMENT QUESTIONS.jsonl OUT.jsonl VENV [OPTION...]
# VENV is made when it is missing (PyTorch and sentence-transformers, 4 GB to fetch).
set -euo pipefail

stair=$1 index=$2 document=$3 questions=$4 out=$5 venv=$6
shift 6
here=$(cd "$(dirname "$0")" && pwd)

if [ ! -e "$venv/dense.installed" ]; then
    echo "dense: installing sentence-transformers and its model into $venv"
    [ -e "$venv/bin/python" ] || python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    touch "$venv/dense.installed"
fi
"$stair" inspect "$index" --json >"$out.index.json"
HF_HUB_OFFLINE=1 "$venv/bin/python" "$here/dense.py" "$out.index.json" "$document" "$questions" --out "$out" "$@"
rm "$out.index.json"
