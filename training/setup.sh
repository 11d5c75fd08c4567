#!/usr/bin/env bash
# Makes the trainer's Python environment, once: PyTorch, transformers, PEFT (4 GB to fetch).
# usage: setup.sh VENV
set -euo pipefail

venv=$1
here=$(cd "$(dirname "$0")" && pwd)
stamp=$venv/stair-train.installed

if [ "$here/pyproject.toml" -nt "$stamp" ]; then
    echo "installing the trainer's packages into $venv: PyTorch, transformers, PEFT, gguf"
    python3 -m venv "$venv"
    "$venv/bin/python" - "$here/pyproject.toml" >"$venv/requirements.txt" <<'PY'
import sys, tomllib
project = tomllib.load(open(sys.argv[1], "rb"))["project"]
print("\n".join(project["dependencies"] + project["optional-dependencies"]["test"]))
PY
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$venv/requirements.txt"
    touch "$stamp"
fi
