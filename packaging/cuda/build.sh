#!/usr/bin/env bash
# Builds libstair with NVIDIA GPUs, on a machine that has none: no driver and no CUDA needed.
#
#   packaging/cuda/build.sh
#
# The result is the same library, command and folder stair-backends as of `cargo build --release`,
# with one more plugin in it, libggml-cuda.so, in target/cuda/release. The first run compiles CUDA
# kernels for 35 minutes on two cores; cargo keeps the objects, also of a run that was stopped.
#
#   CUDAARCHS           what to compile for, CMake's notation  default: 90 (H100, H200); "80;90" ...
#   CARGO_TARGET_DIR    where to build                         default: target/cuda
#   STAIR_CUDA_TOOLKIT  where toolkit.sh lays the compiler     default: target/cuda-toolkit
#   CUDA_PATH           an installed toolkit to use instead
#   STAIR_MODEL         a GGUF model to ask a question with at the end; none: that check is left out
set -euo pipefail

main() {
    local here root
    here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
    root=$(cd "$here/../.." && pwd)

    local tool
    for tool in cargo cmake c++ strip readelf python3; do
        if ! command -v "$tool" >/dev/null; then
            echo "cuda: $tool is missing; Debian: apt-get install build-essential cmake clang libclang-dev python3-pip" >&2
            exit 1
        fi
    done
    if [ -z "${CUDA_PATH:-}" ]; then
        local folder=${STAIR_CUDA_TOOLKIT:-$root/target/cuda-toolkit}
        "$here/toolkit.sh" "$folder"
        CUDA_PATH=$(cd "$folder/nvidia/cu13" && pwd)
    fi
    export CUDA_PATH
    export CUDAToolkit_ROOT=$CUDA_PATH
    export CUDACXX=$CUDA_PATH/bin/nvcc
    export CUDAARCHS=${CUDAARCHS:-90}
    # ggml overrides CUDAARCHS unless CMake is told by this name as well.
    export CMAKE_CUDA_ARCHITECTURES=$CUDAARCHS
    # Plugins find cudart and cublas beside themselves before they find them elsewhere.
    export CMAKE_INSTALL_RPATH='$ORIGIN'
    export CMAKE_MODULE_LINKER_FLAGS='-Wl,--disable-new-dtags'
    export CMAKE_SHARED_LINKER_FLAGS='-Wl,--disable-new-dtags'
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target/cuda}

    local profile=$CARGO_TARGET_DIR/release
    same_as_before CMAKE_CUDA_ARCHITECTURES "$CUDAARCHS"
    same_as_before CMAKE_CUDA_COMPILER "$CUDACXX"

    echo "cuda: compiling for $CUDAARCHS with $("$CUDACXX" --version | grep -o 'release.*')"
    echo "      into $CARGO_TARGET_DIR; the first time this takes 35 minutes on two cores"
    cd "$root"
    cargo build --release --features cuda

    local plugin=$profile/stair-backends/libggml-cuda.so
    if [ ! -e "$plugin" ]; then
        echo "cuda: FAILED: there is no $plugin" >&2
        exit 1
    fi
    # A new file: the old one is cargo's own, under a second name.
    strip --strip-unneeded -o "$plugin.part" "$plugin"
    mv "$plugin.part" "$plugin"
    echo "cuda: $plugin: $(stat -c %s "$plugin") bytes"
    "$here/check.sh" "$profile" ${STAIR_MODEL:+"$STAIR_MODEL"}
    echo "cuda: done. Beside libggml-cuda.so, or where the system finds them, it wants NVIDIA's"
    echo "      libcudart.so.13, libcublas.so.13 and libcublasLt.so.13, and the driver r580 or later."
    exit 0
}

# CMake is asked once and then keeps to what it was told.
same_as_before() {
    local cache before
    for cache in "$profile"/build/llama-cpp-sys-2-*/out/build/CMakeCache.txt; do
        before=$(sed -n "s/^$1:[A-Z]*=//p" "$cache" 2>/dev/null || true)
        if [ -n "$before" ] && [ "$before" != "$2" ]; then
            echo "cuda: $CARGO_TARGET_DIR was built with $1 = $before, not $2:" >&2
            echo "      remove it, or name another in CARGO_TARGET_DIR" >&2
            exit 1
        fi
    done
}

main "$@"
