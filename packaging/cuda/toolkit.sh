#!/usr/bin/env bash
# Lays a CUDA toolkit out of PyPI wheels, for a machine without a GPU, a driver or CUDA.
#
#   packaging/cuda/toolkit.sh [FOLDER]     default: target/cuda-toolkit
#
# The toolkit is FOLDER/nvidia/cu13. The versions are pinned in requirements.txt, by SHA-256 too. A
# second run with the same pins does nothing.
set -euo pipefail

main() {
    local here root folder
    here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
    root=$(cd "$here/../.." && pwd)
    folder=${1:-$root/target/cuda-toolkit}
    if [ "$(uname -sm)" != "Linux x86_64" ]; then
        echo "cuda: the pinned wheels are for x86-64 Linux; this is $(uname -sm)" >&2
        exit 1
    fi
    if cmp -s "$here/requirements.txt" "$folder/requirements.txt"; then
        echo "cuda: toolkit ready in $folder"
        exit 0
    fi
    if ! python3 -m pip --version >/dev/null 2>&1; then
        echo "cuda: python3 with pip is needed to fetch the toolkit: apt-get install python3-pip" >&2
        exit 1
    fi
    echo "cuda: fetching NVIDIA's compiler and libraries from PyPI, 527 MB, into $folder (900 MB):"
    echo "      nvcc, crt and nvvm compile the kernels; cudart, cublas and cccl are what they use"

    local parts=$folder.part
    rm -rf "$parts"
    mkdir -p "$parts"
    python3 -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-compile \
        --root-user-action=ignore --no-deps --only-binary :all: --require-hashes \
        --target "$parts" -r "$here/requirements.txt"
    local toolkit=$parts/nvidia/cu13
    # The wheels are made for running programs: the linker wants names without a version, and nvcc
    # and CMake look in lib64.
    ln -s lib "$toolkit/lib64"
    local library
    for library in "$toolkit"/lib/lib*.so.*; do
        ln -sf "$(basename "$library")" "${library%%.so.*}.so"
    done
    chmod +x "$toolkit"/bin/* "$toolkit"/nvvm/bin/*
    "$toolkit/bin/nvcc" --version >/dev/null
    cp "$here/requirements.txt" "$parts/requirements.txt"
    rm -rf "$folder"
    mv "$parts" "$folder"
    echo "cuda: toolkit ready in $folder"
    exit 0
}

main "$@"
