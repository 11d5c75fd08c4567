#!/usr/bin/env bash
# The tests under AddressSanitizer, ThreadSanitizer and valgrind, with the stable compiler.
#
#   tests/sanitize.sh BUILD_DIR MODEL.gguf [PART...]     # target/release, after `make build`
#
# PART is one of these; without any, all in turn:
#
#   address-pure      documents, prompt, tokens, index and search, without llama.cpp
#   address-capi      the C functions (tests/capi.rs) and all unit tests, on the model
#   thread-worker     the unit tests of what threads share: worker, handles, cancellation, log
#   valgrind-pure     index, search and words: memory that was never written
#
# BUILD_DIR's llama.cpp is linked as it is: what a sanitizer sees of it is its calls of malloc and
# free. Nor is Rust's own library instrumented, which would take its source and a nightly compiler.
# So ThreadSanitizer knows the locks of this library and not those inside llama.cpp and OpenMP, and
# would report each exchange between their threads; it runs only where neither has any.
#
#   STAIR_SANITIZE_DIR    where it builds     default: target/sanitize
set -euo pipefail

if [ $# -lt 2 ]; then
    sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
build=$(cd "$1" && pwd)
model=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
shift 2
cd "$(dirname "$0")/.."
folder=${STAIR_SANITIZE_DIR:-$PWD/target/sanitize}
triple=$(rustc -vV | sed -n 's/^host: //p')
export STAIR_TEST_MODEL=$model STAIR_REQUIRE_MODEL=1 RUST_BACKTRACE=1
# What is random runs often enough elsewhere.
export PROPTEST_CASES=${PROPTEST_CASES:-32}
export ASAN_OPTIONS=detect_stack_use_after_return=1
# The last owner of an Arc waits for the others with a fence, which ThreadSanitizer does not know; in a
# standard library that is built for it stands something else.
mkdir -p "$folder"
echo "race:drop_slow" > "$folder/thread.suppressions"
export TSAN_OPTIONS="ignore_noninstrumented_modules=1 suppressions=$folder/thread.suppressions"
export LD_LIBRARY_PATH=$build/stair-backends${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# check SANITIZER CARGO_ARGUMENTS...
check() {
    local sanitizer=$1 flags="-Zsanitizer=$1"
    shift
    # Rust's own library is without it, as said above, and the compiler wants to hear that it may be.
    [ "$sanitizer" = thread ] && flags+=" -Cunsafe-allow-abi-mismatch=sanitizer"
    RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$folder/$sanitizer RUSTFLAGS=$flags \
        cargo test --quiet --release --target "$triple" "$@"
}

part() {
    local -a llama pure=(--no-default-features --features building)
    printf '\n== %s\n' "$1"
    case $1 in
        address-pure) check address "${pure[@]}" --lib --tests ;;
        address-capi)
            mapfile -t llama < <(tests/llama.sh "$build")
            check address "${llama[@]}" --lib --test capi
            ;;
        thread-worker)
            mapfile -t llama < <(tests/llama.sh "$build")
            check thread "${llama[@]}" --lib -- engine::worker engine::log capi::handle capi::boundary cancel
            ;;
        valgrind-pure)
            local runner=CARGO_TARGET_${triple//-/_}_RUNNER
            CARGO_TARGET_DIR=$folder/valgrind PROPTEST_CASES=2 \
                env "${runner^^}=valgrind --quiet --error-exitcode=9" \
                cargo test --quiet --release --target "$triple" "${pure[@]}" --lib -- index:: search:: lexical::
            ;;
        *)
            echo "sanitize: there is no part $1" >&2
            exit 2
            ;;
    esac
}

if [ $# -eq 0 ]; then
    set -- address-pure address-capi thread-worker valgrind-pure
fi
for one in "$@"; do
    part "$one"
done
printf '\n== all passed\n'
