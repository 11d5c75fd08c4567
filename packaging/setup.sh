#!/usr/bin/env bash
# Installs what is missing to build libstair on Debian or Ubuntu, and says what and why first.
# usage: setup.sh [test]     with "test" also what only the tests need
set -euo pipefail

packages=()
need() { # need PACKAGE REASON
    echo "missing: $1 ($2)"
    packages+=("$1")
}
has() { command -v "$1" > /dev/null 2>&1; }

has c++ || need g++ "compiles llama.cpp"
has cmake || need cmake "configures llama.cpp"
has make || need make "runs this build"
ls /usr/lib/llvm-*/lib/libclang*.so* /usr/lib/*/libclang*.so* > /dev/null 2>&1 || need libclang-dev "reads llama.cpp's header"
has clang || need clang "its headers are used with libclang"
has python3 || need python3 "fetches the default model"
python3 -m pip --version > /dev/null 2>&1 || need python3-pip "fetches the default model"
if [ "${1:-}" = test ]; then
    has pkg-config || need pkg-config "finds the installed library"
    has nm || need binutils "checks the library's symbols"
    has mcs || need mono-mcs "compiles the C# binding"
    has mono || need mono-runtime "runs the C# binding"
    has mcs && [ -e /usr/lib/mono/4.5/System.Core.dll ] || need libmono-system-core4.0-cil "the C# binding's base classes"
fi
if [ ${#packages[@]} -gt 0 ]; then
    install="apt-get install -y --no-install-recommends ${packages[*]}"
    if [ "$(id -u)" = 0 ] && has apt-get; then
        echo "installing: ${packages[*]}"
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive $install > /dev/null
    else
        echo "install them as root, then run this again: $install" >&2
        exit 1
    fi
fi

# These are too old in Debian's packages, so they are named and not installed.
older() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" != "$1" ]; }
if ! has cargo; then
    echo "missing: Rust 1.88 or later; install it with rustup (https://rustup.rs)" >&2
    exit 1
fi
rust=$(rustc --version | cut -d' ' -f2)
if older 1.88.0 "$rust"; then
    echo "Rust $rust is too old: 1.88 is needed; run 'rustup update'" >&2
    exit 1
fi
if [ "${1:-}" = test ]; then
    if ! has go; then
        echo "missing: Go 1.24 or later, for the Go binding's tests (https://go.dev/dl)" >&2
        exit 1
    fi
    go=$(go env GOVERSION | sed 's/^go//')
    if older 1.24 "$go"; then
        echo "Go $go is too old: 1.24 is needed" >&2
        exit 1
    fi
fi
