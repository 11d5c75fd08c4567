#!/usr/bin/env bash
# The promise of one build for every x86-64-v2 machine: the command on an emulated processor of 2008
# (Nehalem: SSE4.2 and no AVX), where an instruction of a later one ends it with SIGILL.
#
#   tests/baseline.sh BUILD_DIR MODEL.gguf        # target/release, after `make build`
#
# Needs qemu-x86_64 (Debian: qemu-user). The emulator is slow: a minute on an idle machine.
set -euo pipefail

if [ $# -ne 2 ]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
stair=$(cd "$1" && pwd)/stair
model=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# emulated ARGUMENTS...: the command on the old processor, and what its loader does in a file.
emulated() {
    rm -f "$folder"/loader.*
    # With the spin count set, the command does not begin anew, which would be outside the emulator.
    qemu-x86_64 -cpu Nehalem -E OMP_NUM_THREADS=1 -E GOMP_SPINCOUNT=1000 -E LD_DEBUG=files \
        -E LD_DEBUG_OUTPUT="$folder/loader" "$stair" "$@"
}
# ggml opens every plugin to ask how well it suits, and then the best one again.
kernels() {
    sed -n 's|.*file=.*/\(libggml-cpu-[a-z0-9]*\)\.so .*generating link map.*|\1|p' "$folder"/loader.* |
        tail -n 1
}
sse42() {
    if [ "$(kernels)" != libggml-cpu-sse42 ]; then
        echo "baseline: the kernels are $(kernels) and not libggml-cpu-sse42" >&2
        exit 1
    fi
    echo "kernels: $(kernels)"
}

emulated build examples/handbook/handbook.md -m "$model" -o "$folder/handbook.stair"
sse42
emulated verify "$folder/handbook.stair"
emulated inspect "$folder/handbook.stair" | sed -n 1,3p
# The kernels for words are the library's own, and no plugin.
emulated retrieve -i "$folder/handbook.stair" -k 1 "How long is my notice period?"
printf '# Rules\n\n## Leave\n\nTen days.\n\n## Travel\n\nBy train.\n' > "$folder/rules.md"
emulated build "$folder/rules.md" -m "$model" -o "$folder/rules.stair"
emulated retrieve -i "$folder/rules.stair" -m "$model" -k 1 --threads 1 --max-parallel 1 \
    --max-question-tokens 64 "May I take the train?"
sse42
echo "baseline: passed"
