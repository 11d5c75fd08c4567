#!/usr/bin/env bash
# The trainer's own tests, on a tiny model. usage: test.sh VENV
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
"$here/setup.sh" "$1"
venv=$(cd "$1" && pwd)
cd "$here"
"$venv/bin/python" -m pytest --quiet -p no:cacheprovider tests
