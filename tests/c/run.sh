#!/usr/bin/env bash
# Tests the C ABI and the C++ binding as their users meet them: the header, the built library and,
# with a model and an index, the examples.
#
#     tests/c/run.sh LIBDIR INCLUDEDIR [MODEL.gguf INDEX.stair]
#
# LIBDIR holds libstair.so, INCLUDEDIR holds stair.h. CC and CXX choose the compilers.
set -u

if [ $# -ne 2 ] && [ $# -ne 4 ]; then
    echo "usage: tests/c/run.sh LIBDIR INCLUDEDIR [MODEL.gguf INDEX.stair]" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
lib=$(cd "$1" && pwd) && include=$(cd "$2" && pwd) || exit 2
model=${3:-} index=${4:-}
cc=${CC:-gcc} cxx=${CXX:-g++}
questions=("How long do I have to hand in a receipt?" "Who may work from abroad, and for how long?")

work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
out=$work/out
passed=0 failed=0
limit="timeout ${TIMEOUT:-300}" # seconds for each run

warn="-Wall -Wextra -Wpedantic -Werror"
c="$cc -std=c11 $warn -g -O1 -I$include"
cpp="$cxx -std=c++17 $warn -g -O1 -I$include -I$root/bindings/cpp"
sanitize="-fsanitize=address,undefined -fno-sanitize-recover=undefined"

# The library is asked for by its soname; cargo leaves it under its plain name.
if [ ! -e "$lib/libstair.so.0" ]; then
    mkdir "$work/lib" && ln -s "$lib"/* "$work/lib"
    ln -s libstair.so "$work/lib/libstair.so.0"
    lib=$work/lib
fi
link="-L$lib -lstair -pthread -Wl,-rpath,$lib"

export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1

# check NAME COMMAND...: runs the command; on failure shows what it said.
check() {
    local name=$1 status
    shift
    "$@" >"$out" 2>&1
    status=$?
    if [ $status -eq 0 ]; then
        passed=$((passed + 1))
        echo "ok      $name"
    else
        failed=$((failed + 1))
        echo "FAILED  $name (exit status $status)"
        sed 's/^/        /' "$out" | head -n 40
    fi
    return $status
}

# balanced PROGRAM ARGUMENT...: runs it and fails if it forgets to free a handle. A sanitized
# program must load its own runtime first, and looks for other leaks.
balanced() {
    case $1 in
    *_asan) $limit "$@" ;;
    *) $limit env LD_PRELOAD="$work/balance.so" "$@" ;;
    esac
}

# says STATUS TEXT COMMAND...: whether the command ends so and has the text on stderr, on one line.
says() {
    local want=$1 text=$2 status
    shift 2
    balanced "$@" >"$work/stdout" 2>"$work/stderr"
    status=$?
    cat "$work/stdout" "$work/stderr"
    [ $status -eq "$want" ] && [ "$(wc -l <"$work/stderr")" -eq 1 ] && [ ! -s "$work/stdout" ] &&
        grep -qF -- "$text" "$work/stderr"
}

declared() {
    $cc -std=c11 -E -P -I"$include" -include stair.h -x c /dev/null |
        grep -oE '\bstair_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u
}
exported() {
    nm -D --defined-only "$lib/libstair.so" | awk '{ sub(/@.*/, "", $NF); print $NF }' | sort -u
}
same_functions() {
    declared >"$work/declared" && exported >"$work/exported"
    [ -s "$work/declared" ] && diff "$work/declared" "$work/exported"
}
error_codes() { grep -oE '\bSTAIR_ERR_[A-Z0-9_]+' "$1" | grep -vxF STAIR_ERR_ | sort -u; }
same_error_codes() {
    error_codes "$include/stair.h" >"$work/codes" && [ -s "$work/codes" ] &&
        diff "$work/codes" <(error_codes "$root/bindings/cpp/stair.hpp")
}
soname() {
    readelf -d "$lib/libstair.so" | grep SONAME | tee /dev/stderr | grep -qF '[libstair.so.0]'
}

# ---------------------------------------------------------------------------- header and library
check "exports are the functions of the header (< header, > library)" same_functions
check "soname is libstair.so.0" soname
check "stair.hpp has the error codes of the header" same_error_codes

# builds NAME COMPILE...: compiles to $work/NAME and, if that works, runs it.
builds() {
    local name=$1
    shift
    check "$name compiles" "$@" -o "$work/$name" $link
}
builds header_c11 $c "$here/header_c11.c" && check "header_c11" $limit "$work/header_c11"
builds header_cpp17 $cpp "$here/header_cpp17.cpp" &&
    check "header_cpp17" $limit "$work/header_cpp17"
builds null_sweep $c "$here/null_sweep.c" && check "null_sweep" $limit "$work/null_sweep"
builds null_sweep_asan $c $sanitize "$here/null_sweep.c" &&
    check "null_sweep, sanitized" $limit "$work/null_sweep_asan"

# ----------------------------------------------------------------------------------- stair.hpp
# The second file is linked first, so that what both define is what it defines.
check "stair.hpp compiles, first of two files" $cpp -c "$here/odr_a.cpp" -o "$work/odr_a.o"
mode() {
    local name=$1
    shift
    check "stair.hpp compiles, second of two files, $name" \
        $cpp "$@" -c "$here/odr_b.cpp" -o "$work/odr_b.o" &&
        check "stair.hpp in two files, $name" \
            $cxx "$work/odr_b.o" "$work/odr_a.o" -o "$work/odr" $link &&
        check "stair.hpp in two files, $name, runs" $limit "$work/odr"
}
mode "both C++17" -std=c++17
mode "one without exceptions" -fno-exceptions
mode "one without exceptions by macro" -DSTAIR_NO_EXCEPTIONS
mode "one without exceptions and RTTI" -fno-exceptions -fno-rtti
mode "one C++23" -std=c++2b
mode "one C++23 without exceptions" -std=c++2b -fno-exceptions
mode "one C++23 without exceptions and RTTI" -std=c++2b -fno-exceptions -fno-rtti

builds stair_hpp $cpp $sanitize "$here/stair_hpp.cpp"
builds stair_hpp_23 $cpp -std=c++2b -fno-exceptions "$here/stair_hpp.cpp"
builds handles $c -D_DEFAULT_SOURCE "$here/handles.c"
builds handles_asan $c -D_DEFAULT_SOURCE $sanitize "$here/handles.c"

# ------------------------------------------------------------------------------------ examples
builds ask_c $c "$root/examples/c/ask.c"
builds ask_cpp $cpp "$root/examples/cpp/ask.cpp"
check "balance compiles" $c -fPIC -shared "$here/balance.c" -o "$work/balance.so"
builds ask_c_asan $c $sanitize "$root/examples/c/ask.c"
builds ask_cpp_asan $cpp $sanitize "$root/examples/cpp/ask.cpp"
for ask in ask_c ask_cpp ask_c_asan ask_cpp_asan; do
    [ -x "$work/$ask" ] || continue
    check "$ask: usage" says 2 "usage: ask " "$work/$ask" model index
    check "$ask: no model" says 1 "error: NOT_FOUND: " "$work/$ask" /nonexistent/m i question
done

# A question to the index may take long with a model that was not trained for it, so that most are
# asked of the small index that "handles" builds.
if [ -n "$model" ]; then
    small=$work/small.stair
    check "handles" $limit "$work/handles" "$model" "$index" "$small"
    check "handles, sanitized" $limit "$work/handles_asan" "$model" "$index" "$small"
    check "stair_hpp, C++17, sanitized" \
        $limit "$work/stair_hpp" "$model" "$index" "$work/built.stair"
    check "stair_hpp, C++23 without exceptions" \
        $limit "$work/stair_hpp_23" "$model" "$index" "$work/built.stair"

    answers() {
        balanced "$work/$1" "$model" "$small" --callers 3 "${questions[@]}" >"$work/$1.answers"
    }
    same_answers() { diff "$work/ask_c.answers" "$work/$1.answers"; }
    shaped() {
        cat "$work/ask_c.answers"
        [ "$(grep -cE '^  [1-3]\. .+  \(.+\)  -?[0-9]+\.[0-9]{3}$' "$work/ask_c.answers")" = 6 ] &&
            tail -n 1 "$work/ask_c.answers" |
            grep -qx '3 callers, 2 answers each: all the same'
    }
    for ask in ask_c ask_cpp ask_c_asan ask_cpp_asan; do
        check "$ask: answers" answers $ask
    done
    check "ask_c: answers have the agreed form" shaped
    for ask in ask_cpp ask_c_asan ask_cpp_asan; do
        check "$ask: answers as ask_c" same_answers $ask
    done
    large() {
        local ask
        for ask in ask_c ask_cpp_asan; do
            $limit "$work/$ask" "$model" "$index" "${questions[0]}" >"$work/$ask.large" || return
        done
        diff "$work/ask_c.large" "$work/ask_cpp_asan.large"
    }
    # Three sections are the default, and all where there are fewer.
    two() {
        balanced "$work/$1" "$model" "$work/built.stair" question >"$work/$1.two" &&
            [ "$(grep -c '^  [12]\. ' "$work/$1.two")" = 2 ] && [ "$(wc -l <"$work/$1.two")" = 4 ]
    }
    check "ask_c and ask_cpp_asan: the same answers about the index" large
    for ask in ask_c ask_cpp ask_c_asan ask_cpp_asan; do
        check "$ask: model and index swapped" \
            says 1 "error: NOT_A_MODEL: " "$work/$ask" "$index" "$model" question
        check "$ask: no index" says 1 "error: NOT_FOUND: " "$work/$ask" "$model" /nonexistent/i q
        check "$ask: empty question" \
            says 1 "error: EMPTY_QUESTION: " "$work/$ask" "$model" "$index" " "
        check "$ask: two sections in all" two $ask
    done
fi

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
