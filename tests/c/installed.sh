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
# A tree at a place whose name must be quoted, by pkg-config and through CMake.
spaced() {
    local place="$work/pre fix" flags pc
    pc=$place${lib#"$prefix"}/pkgconfig
    mkdir "$place" && cp -a "$prefix/." "$place" &&
        sed -i "s|^prefix=.*|prefix=$place|" "$pc/stair.pc" || return
    export PKG_CONFIG_PATH=$pc
    eval "flags=($(pkg-config --cflags --libs --static stair))"
    ${CC:-cc} -std=c11 "$root/examples/c/ask.c" -o "$work/ask_spaced" "${flags[@]}" -pthread &&
        sed 's/^find_package(Stair .*/find_package(PkgConfig REQUIRED)\
            pkg_check_modules(STAIR REQUIRED IMPORTED_TARGET stair)/
            s/stair::stair/PkgConfig::STAIR/' "$root/examples/cpp/CMakeLists.txt" >"$work/CMakeLists.txt" &&
        cp "$root/examples/cpp/ask.cpp" "$work" && cmake -S "$work" -B "$work/spaced" &&
        cmake --build "$work/spaced" && starts "$work/spaced/ask"
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
# finds VERSION: whether CMake takes the tree for this version, or for this range.
finds() {
    printf 'cmake_minimum_required(VERSION 3.19)\nproject(finds NONE)\nfind_package(Stair %s REQUIRED)\n' \
        "$1" >"$work/CMakeLists.txt"
    rm -rf "$work/found"
    cmake -S "$work" -B "$work/found" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null 2>&1
}
ranges() {
    local version
    for version in 0.1 0.1.0 0.0.5...0.9 0.1...0.1.0 0.1...'<0.2'; do
        finds "$version" || { echo "not found: $version"; return 1; }
    done
    for version in 0.0 0.2 1 0.1.1...0.9 0.0.1...0.0.9 0.0.5...'<0.1' 0.2...1; do
        ! finds "$version" || { echo "found: $version"; return 1; }
    done
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
# A prefix may end in lib, and a system may put libraries below lib.
mkdir -p "$work/in/lib" "$work/triplet/lib/x86_64-linux-gnu"
cp -a "$prefix/." "$work/in/lib"
check "CMake, prefix that ends in lib" by_cmake in_lib "$work/in/lib"
cp -a "$lib/." "$work/triplet/lib/x86_64-linux-gnu"
cp -a "$prefix/include" "$work/triplet"
check "CMake, libraries below lib" \
    by_cmake below_lib "$work/triplet/lib/x86_64-linux-gnu/cmake/Stair"
check "pkg-config, also from CMake, prefix with a space" spaced
check "CMake, ranges of versions" ranges
check "CMake refuses a version that is too new" too_new

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
