#!/bin/sh
# Builds a fuzz target with the stable compiler and runs it:
#   fuzz/run.sh TARGET SECONDS [INPUT...]
# With inputs, runs these alone. FUZZ_TARGET_DIR is where it is built (default fuzz/target).
set -eu
from=$PWD
cd "$(dirname "$0")"
target=$1
seconds=$2
shift 2

build=${FUZZ_TARGET_DIR:-$PWD/target}
triple=$(rustc -vV | sed -n 's/^host: //p')
sancov="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
sancov="$sancov -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
sancov="$sancov -Cllvm-args=-sanitizer-coverage-pc-table"
sancov="$sancov -Cllvm-args=-sanitizer-coverage-trace-compares"
sancov="$sancov -Cllvm-args=-simplifycfg-branch-fold-threshold=0"
RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$build \
    RUSTFLAGS="$sancov --cfg fuzzing -Zsanitizer=address -Ccodegen-units=1" \
    cargo build --release --target "$triple" --bin "$target"

if [ $# -gt 0 ]; then
    cd "$from"
    exec "$build/$triple/release/$target" "$@"
fi
mkdir -p "corpus/$target" "artifacts/$target"
if [ -f "seeds/$target.dict" ]; then
    set -- "-dict=seeds/$target.dict"
fi
exec nice -n 19 "$build/$triple/release/$target" "corpus/$target" "seeds/$target" "$@" \
    "-max_total_time=$seconds" -timeout=10 -rss_limit_mb=4096 \
    "-artifact_prefix=artifacts/$target/" -print_final_stats=1
