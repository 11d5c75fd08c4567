#!/usr/bin/env bash
# The whole suite. usage: run.sh BUILD_DIR MODEL.gguf VERSION   (make test calls it)
set -euo pipefail

build=$(cd "$1" && pwd)
model=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
version=$3
cd "$(dirname "$0")/.."
stage=$build/stage
index=$build/test-handbook.stair
# As the command sets it: threads that wait for each other turn for a moment only.
export GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-1000}
export STAIR_TEST_MODEL=$model STAIR_TEST_INDEX=$index STAIR_REQUIRE_MODEL=1

part() { printf '\n== %s\n' "$*"; }

part "format and lints"
cargo fmt --check
cargo clippy --release --all-targets --features peers --quiet -- -D warnings

part "without llama.cpp: toc, prompt, tokens, index, search"
cargo test --quiet --no-default-features --features building --lib --tests

part "library, engine, C ABI and command"
# One after another: two that compute on the same processors wait for each other at every step of a decode.
RUST_TEST_THREADS=1 cargo test --quiet --release

part "metrics, against pytrec_eval"
tests/metrics/run.sh "$build"

part "the trainer"
training/test.sh "$build/training-venv"

part "the trained handbook"
tests/handbook.sh "$build/stair" "$model" "$build/trained"

part "install"
rm -rf "$stage"
packaging/install.sh "$build" "$stage" /usr "$version"
export PKG_CONFIG_PATH=$build/pkgconfig LD_LIBRARY_PATH=$stage/usr/lib
mkdir -p "$PKG_CONFIG_PATH"
sed "s|^prefix=.*|prefix=$stage/usr|" "$stage/usr/lib/pkgconfig/stair.pc" > "$PKG_CONFIG_PATH/stair.pc"
"$stage/usr/bin/stair" build examples/handbook/handbook.md -m "$model" -o "$index" > /dev/null
"$stage/usr/bin/stair" verify "$index"

part "installed files"
tests/c/installed.sh "$stage/usr"

part "C and C++"
tests/c/run.sh "$stage/usr/lib" "$stage/usr/include" "$model" "$index"

part "Go"
(cd bindings/go && go vet ./... && go test ./...)

part ".NET"
bindings/dotnet/run.sh "$stage/usr/lib" "$model" "$index"

part "the same program in five languages"
tests/examples.sh "$build" "$stage/usr" "$model" "$index"

part "all passed"
