#!/usr/bin/env bash
# Checks what build.sh built: the plugin links nothing that it should not, and without a driver, or
# without CUDA's libraries, the library is silent and answers on the CPU.
#
#   packaging/cuda/check.sh FOLDER [MODEL.gguf]
#
# FOLDER is target/cuda/release. With a model it also asks a question.
set -euo pipefail

main() {
    local here root built model toolkit plugins plugin scratch
    here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
    root=$(cd "$here/../.." && pwd)
    built=$(realpath "$1")
    model=${2:-}
    toolkit=${CUDA_PATH:-${STAIR_CUDA_TOOLKIT:-$root/target/cuda-toolkit}/nvidia/cu13}
    plugins=$built/stair-backends
    plugin=$plugins/libggml-cuda.so
    [ -e "$plugin" ] || fail "there is no $plugin"
    if [ "${STAIR_BACKENDS+set}" ]; then
        fail "STAIR_BACKENDS is set: it would be checked in place of $plugins"
    fi

    # libcuda.so.1 comes with the driver: a plugin that needed it could not even be loaded.
    local needed
    needed=$(readelf -d "$plugin" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    local unexpected
    unexpected=$(grep -vE '^lib(cudart|cublas)\.so\.[0-9]+$|^libggml-base\.so|^lib(stdc\+\+|m|gcc_s|c|dl|rt|pthread)\.so|^ld-linux' <<<"$needed" || true)
    [ -z "$unexpected" ] || fail "libggml-cuda.so needs $unexpected"
    local missing
    missing=$(LD_LIBRARY_PATH=$plugins ldd "$plugin" | grep 'not found' | grep -vE 'libcu(dart|blas|blasLt)\.so' || true)
    [ -z "$missing" ] || fail "libggml-cuda.so: $missing"
    echo "check: libggml-cuda.so needs no more than $(grep -E '^libcu' <<<"$needed" | tr '\n' ' ')of CUDA"

    scratch=$(mktemp -d)
    # shellcheck disable=SC2064  # now, while it is set
    trap "rm -rf '$scratch'" EXIT
    copy "$plugins" "$scratch/none"
    copy "$plugins" "$scratch/cudart"
    ln -s "$toolkit"/lib/libcudart.so.* "$scratch/cudart/"
    copy "$plugins" "$scratch/all"
    ln -s "$toolkit"/lib/libcudart.so.* "$toolkit"/lib/libcublas.so.* "$toolkit"/lib/libcublasLt.so.* "$scratch/all/"

    local state seen
    for state in none cudart all; do
        seen=$(python3 "$root/benches/device/devices.py" "$scratch/$state" 2>"$scratch/errors") ||
            fail "with CUDA's libraries ($state) beside the plugin ggml broke: $(cat "$scratch/errors")"
        grep -q '"kind": "cpu"' <<<"$seen" || fail "no CPU with CUDA's libraries ($state): $seen"
        if [ "$state" = all ]; then
            grep -q '"cuda_plugin": "loaded"' <<<"$seen" || fail "the plugin does not load: $seen"
        fi
        echo "check: CUDA's libraries beside the plugin: $state: $seen"
    done
    [ -n "$model" ] || exit 0

    # A document of three sections: this is not about speed.
    printf '# House rules\n\n## 1 Leave\n\nTwenty days.\n\n## 2 Travel\n\nBy train.\n\n## 3 Keys\n\nAt the desk.\n' \
        >"$scratch/x.md"
    "$built/stair" build "$scratch/x.md" -m "$model" -o "$scratch/x.stair" --json >/dev/null
    for state in none cudart all; do
        STAIR_BACKENDS=$scratch/$state "$built/stair" retrieve -i "$scratch/x.stair" -m "$model" -k 1 --json \
            --no-cache --threads 1 "How do I travel?" >"$scratch/answer" 2>"$scratch/errors" ||
            fail "stair ended with $? ($state): $(cat "$scratch/errors")"
        [ ! -s "$scratch/errors" ] || fail "stair was not silent ($state): $(cat "$scratch/errors")"
        [ "$(wc -l <"$scratch/answer")" = 1 ] || fail "more than an answer ($state): $(cat "$scratch/answer")"
        grep -q '^{"hits":\[{\|^{.*"hits":\[{' "$scratch/answer" || fail "no answer ($state): $(cat "$scratch/answer")"
        echo "check: with CUDA's libraries ($state) stair answers and is silent"
    done
    exit 0
}

# The folder's plugins under another path, where nothing of CUDA lies beside them.
copy() {
    mkdir "$2"
    local file
    for file in "$1"/*.so*; do
        case $file in
            */libcu*) ;;
            *) cp -l "$file" "$2/" 2>/dev/null || cp "$file" "$2/" ;;
        esac
    done
}

fail() {
    echo "check: FAILED: $*" >&2
    exit 1
}

main "$@"
