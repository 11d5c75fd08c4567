#!/usr/bin/env bash
# Arguments that have cargo link the llama.cpp of an existing build in place of compiling it again:
# for builds of other flags (sanitizers, fuzzing), in folders of their own.
#
#   mapfile -t llama < <(tests/llama.sh BUILD_DIR)      # target/release, after `make build`
#   cargo build --target "$(rustc -vV | sed -n 's/^host: //p')" "${llama[@]}" ...
#
# What is built so finds the libraries through LD_LIBRARY_PATH=BUILD_DIR/stair-backends.
set -euo pipefail

build=$(cd "$1" && pwd)
output=$(ls -t "$build"/build/llama-cpp-sys-2-*/output 2>/dev/null | head -n 1)
if [ -z "$output" ]; then
    echo "llama: nothing is built in $build: run \`make build\`" >&2
    exit 1
fi
out=${output%/output}/out
key=target.$(rustc -vV | sed -n 's/^host: //p').llama
# list NAME: what the build script said under that name, as TOML. Its folders were absolute, and
# the build may have been moved.
list() {
    sed -n "s|^cargo:$1=||p" "$output" | sed "s|/[^=]*/build/llama-cpp-sys-2-[0-9a-f]*/out|$out|; s|.*|\"&\"|" | paste -sd,
}
printf '%s\n' --config "$key.rustc-link-lib=[$(list rustc-link-lib)]" \
    --config "$key.rustc-link-search=[$(list rustc-link-search)]" \
    --config "$key.rustc-env.OUT_DIR=\"$out\"" \
    --config "$key.root=\"$out\"" --config "$key.backends_dir=\"$out/backends\""
