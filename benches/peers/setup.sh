#!/usr/bin/env bash
# Makes the peers' environments in FOLDER, once: a Python one with PyTorch and transformers, a Node.js
# one with node-llama-cpp. Removing FOLDER removes all of it. What cannot be had is said, and left out.
#
#   benches/peers/setup.sh FOLDER
#
#   PEERS_PYTHON   a Python that has PyTorch, transformers and gguf already: nothing is installed
#   PEERS_NODE     a folder whose node_modules has node-llama-cpp already
set -euo pipefail

folder=$1
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"

stale() { [ "$1" -nt "$2" ]; }

python() {
    local stamp=$folder/venv/peers.installed
    stale "$here/requirements.txt" "$stamp" || return 0
    echo "peers: installing PyTorch and transformers into $folder/venv (4 GB to fetch)"
    python3 -m venv "$folder/venv" &&
        "$folder/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt" &&
        touch "$stamp"
}

node() {
    local stamp=$folder/node/peers.installed
    stale "$here/package.json" "$stamp" || return 0
    echo "peers: installing node-llama-cpp into $folder/node"
    mkdir -p "$folder/node"
    cp "$here/package.json" "$folder/node/"
    # Its installer would look for other builds of llama.cpp; the one for this kind of machine is a
    # package of its own, and those for GPUs are 700 MB.
    (cd "$folder/node" && npm install --silent --no-audit --no-fund --ignore-scripts --omit=optional) || return 1
    # This plugin ends in SIGILL where the processor has AMX and the system does not grant it; libstair's
    # own build leaves it out too (ARCHITECTURE.md).
    find "$folder/node/node_modules" -name 'libggml-cpu-sapphirerapids.so' -delete
    touch "$stamp"
}

[ -n "${PEERS_PYTHON:-}" ] || python || echo "peers: no Python environment: transformers is left out"
[ -n "${PEERS_NODE:-}" ] || node || echo "peers: no Node.js environment: node-llama-cpp is left out"
