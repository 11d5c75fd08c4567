#!/usr/bin/env bash
# Checks and measures libstair on a machine with an NVIDIA GPU, where it builds nothing: it runs
# what packaging/cuda/carry.sh put into a folder.
#
#   benches/device.sh receive PART...   takes parts in; when the last is there, unpacks the folder
#   benches/device.sh [FOLDER]          checks and measures
#
# It prints the devices, the GPU's answers against the CPU's of the same run, and speeds, and ends
# with a line PASS or FAIL and the exit status that goes with it. Without a GPU it does the same on
# the CPU, and says so. It needs python3.
#
#   STAIR_DEVICE            the folder                               default: /tmp/stair-device
#   STAIR_DEVICE_QUESTIONS  questions to compare                     default: 32
#   STAIR_DEVICE_CALLERS    how many to ask at once, in turn         default: 1 8 64
#   STAIR_DEVICE_SECONDS    time for each of them                    default: 20
#   STAIR_DEVICE_REFERENCE_SECONDS  time for the CPU's answers       default: 120
#   STAIR_DEVICE_THREADS    threads that compute on the CPU          default: all
#   STAIR_DEVICE_TOLERANCE  largest difference of two log_probs      default: 3 times what the CPU
#                           makes with another batch shape, 0.5 at least
set -euo pipefail

receive() {
    local folder=$1 part
    shift
    mkdir -p "$folder.parts"
    for part in "$@"; do
        cp "$part"/part.* "$part/SHA256SUMS" "$folder.parts/"
    done
    if ! (cd "$folder.parts" && sha256sum --check --quiet SHA256SUMS) >/dev/null 2>&1; then
        local there all
        there=$(find "$folder.parts" -name 'part.*' | wc -l)
        all=$(wc -l <"$folder.parts/SHA256SUMS")
        if [ "$there" -ge "$all" ]; then
            echo "device: the parts in $folder.parts are damaged: remove that folder and send all again" >&2
            exit 1
        fi
        echo "device: $there of $all parts are here"
        return
    fi
    rm -rf "$folder"
    mkdir -p "$folder"
    cat "$folder.parts"/part.* | python3 -c '
import sys, tarfile
with tarfile.open(fileobj=sys.stdin.buffer, mode="r|xz") as archive:
    archive.extractall(sys.argv[1])' "$folder"
    rm -rf "$folder.parts"
    echo "device: all parts are here, unpacked in $folder"
}

# Folders that may hold cublas, which is too large to carry: where CUDA is installed, and PyTorch's.
cuda_folders() {
    local folder
    for folder in /usr/local/cuda/lib64 /usr/local/cuda-13*/lib64 /usr/local/cuda-13*/targets/x86_64-linux/lib; do
        echo "$folder"
    done
    python3 -c 'import sys; [print(p + "/nvidia/cu13/lib") for p in sys.path if p.endswith("-packages")]'
}

main() {
    local here folder
    here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
    folder=${STAIR_DEVICE:-/tmp/stair-device}
    if [ "${1:-}" = receive ]; then
        shift
        receive "$folder" "$@"
        exit 0
    fi
    # carry.sh puts this script into the folder, too.
    [ -x "$here/bin/stair" ] && folder=$here
    folder=$(realpath "${1:-$folder}")
    if [ ! -x "$folder/bin/stair" ]; then
        echo "device: no stair in $folder/bin: make the folder with packaging/cuda/carry.sh" >&2
        exit 1
    fi
    local library=${LD_LIBRARY_PATH:-} found
    if [ -e "$folder/lib/stair-backends/libggml-cuda.so" ] && [ ! -e "$folder/lib/stair-backends/libcublas.so.13" ]; then
        while read -r found; do
            if [ -e "$found/libcublas.so.13" ]; then
                echo "device: cublas from $found"
                library=$found${library:+:$library}
                break
            fi
        done < <(cuda_folders)
    fi
    LD_LIBRARY_PATH=$library exec python3 "$here/device/measure.py" "$folder"
}

main "$@"
