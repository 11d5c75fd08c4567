#!/usr/bin/env bash
# Tests an installed libstair as its users find it: by pkg-config, and by CMake also after the tree
# was moved.
#
#     tests/c/installed.sh PREFIX [LIBDIR]
#
# PREFIX may be a staged tree ($DESTDIR/usr). LIBDIR is PREFIX/lib if it is not given. Needs
# pkg-config and cmake; CC and CXX as usual.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
prefix=$(cd "$1" && pwd)
lib=${2:-$prefix/lib}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Whether the program starts: it has found its library, and prints its usage.
starts() {
    local status=0
    "$@" 2>"$work/usage" || status=$?
    cat "$work/usage"
    [ $status -eq 2 ] && grep -q '^usage: ask ' "$work/usage"
}
by_pkg_config() {
    export PKG_CONFIG_PATH=$lib/pkgconfig
    ${CC:-cc} -std=c11 "$root/examples/c/ask.c" -o "$work/ask_c" \
        $(pkg-config --define-variable=prefix="$prefix" --cflags --libs stair) -pthread &&
        LD_LIBRARY_PATH=$lib starts "$work/ask_c"
}
by_cmake() {
    cmake -S "$root/examples/cpp" -B "$work/$1" -DCMAKE_PREFIX_PATH="$2" &&
        cmake --build "$work/$1" && starts "$work/$1/ask"
}
# On a machine without OpenMP's library the installed one serves, so it must be the one that is found.
brings_openmp() {
    local found
    for file in "$prefix/bin/stair" "$lib/libstair.so"; do
        ldd "$file" || return
        found=$(ldd "$file" | sed -n 's/.*libgomp.so.1 => \(.*\) (.*/\1/p')
        [ "$(realpath "$found")" = "$(realpath "$lib/stair-backends/libgomp.so.1")" ] || return
    done
}
too_new() {
    sed 's/Stair 0.1/Stair 99.0/' "$root/examples/cpp/CMakeLists.txt" >"$work/CMakeLists.txt" &&
        cp "$root/examples/cpp/ask.cpp" "$work" &&
        ! cmake -S "$work" -B "$work/new" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null 2>&1
}

failed=0 passed=0
check() {
    local name=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        passed=$((passed + 1))
        echo "ok      $name"
    else
        failed=$((failed + 1))
        echo "FAILED  $name"
        sed 's/^/        /' "$work/out"
    fi
}
check "no placeholder is left" \
    sh -c "! grep -rnE '@[A-Z_]+@' '$lib/pkgconfig/stair.pc' '$lib/cmake/Stair'"
check "OpenMP's library comes along" brings_openmp
check "pkg-config" by_pkg_config
check "CMake" by_cmake here "$prefix"
mkdir "$work/moved"
cp -a "$prefix/." "$work/moved"
check "CMake, tree moved" by_cmake moved "$work/moved"
check "CMake refuses a version that is too new" too_new

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
