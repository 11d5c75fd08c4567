#!/bin/sh
# Builds a fuzz target with the stable compiler and runs it:
#   fuzz/run.sh TARGET SECONDS [INPUT...]
# With inputs, runs these alone. FUZZ_TARGET_DIR is where it is built (default fuzz/target). The
# targets that need llama.cpp link the one that `make build` made: LLAMA_BUILD is where (default
# target/release).
set -eu
from=$PWD
fuzz=$(cd "$(dirname "$0")" && pwd)
llama=${LLAMA_BUILD:-$fuzz/../target/release}
target=$1
seconds=$2
shift 2
inputs=$#

build=${FUZZ_TARGET_DIR:-$fuzz/target}
triple=$(rustc -vV | sed -n 's/^host: //p')
engine=
options=
case $target in
    abi | adapter | predictions | tuning)
        # One argument a line.
        engine=$(printf '%s\n' --features engine && "$fuzz/../tests/llama.sh" "$llama")
        ;;
esac
case $target in
    # What goes to standard output and standard error is the library's then; see src/silence.rs.
    abi) options=-close_fd_mask=3 ;;
esac

sancov="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
sancov="$sancov -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
sancov="$sancov -Cllvm-args=-sanitizer-coverage-pc-table"
sancov="$sancov -Cllvm-args=-sanitizer-coverage-trace-compares"
sancov="$sancov -Cllvm-args=-simplifycfg-branch-fold-threshold=0"
cd "$fuzz"
(
    IFS='
'
    # shellcheck disable=SC2086  # split at line breaks
    RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$build \
        RUSTFLAGS="$sancov --cfg fuzzing -Zsanitizer=address -Ccodegen-units=1" \
        cargo build --release --target "$triple" --bin "$target" $engine
)

# Targets that write files wait for the disk at each; where memory is a folder, for nothing. A run
# that ends at a crash removes none of its own.
memory=/dev/shm
[ -d $memory ] || memory=${TMPDIR:-/tmp}
TMPDIR=$(mktemp -d -p "$memory")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
export LD_LIBRARY_PATH="$build/$triple/release/stair-backends${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
run="$build/$triple/release/$target"
if [ "$inputs" -gt 0 ]; then
    cd "$from"
    # shellcheck disable=SC2086  # none of the options has a space in it
    "$run" $options "$@"
    exit
fi
mkdir -p "corpus/$target" "artifacts/$target"
if [ -f "seeds/$target.dict" ]; then
    options="$options -dict=seeds/$target.dict"
fi
# shellcheck disable=SC2086  # none of the options has a space in it
nice -n 19 "$run" "corpus/$target" "seeds/$target" $options \
    "-max_total_time=$seconds" -timeout=10 -rss_limit_mb=4096 \
    "-artifact_prefix=artifacts/$target/" -print_final_stats=1
