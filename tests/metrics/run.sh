#!/usr/bin/env bash
# Compares our metrics with pytrec_eval's. usage: run.sh BUILD_DIR
#
# pytrec_eval is Python; it goes into an environment of its own in BUILD_DIR, made once.
set -euo pipefail

build=$(cd "$1" && pwd)
venv=$build/pytrec-venv
if [ ! -e "$venv/ready" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check pytrec_eval-terrier==0.5.11
    touch "$venv/ready"
fi
"$venv/bin/python" "$(dirname "$0")/pytrec.py" "$build/stair"
