#!/usr/bin/env bash
# The same small program in five languages gives the same output, byte by byte.
# usage: examples.sh BUILD_DIR PREFIX MODEL.gguf INDEX.stair
set -euo pipefail

build=$1
prefix=$2
model=$3
index=$4
out=$build/example-outputs
mkdir -p "$out"
lib=$prefix/lib
questions=("How many days of holiday do I get in a year?" "Wie lange ist die Kündigungsfrist? 🙂")

run() { # run NAME COMMAND...
    local name=$1
    shift
    echo "running the example in $name"
    "$@" "$model" "$index" --callers 8 "${questions[@]}" > "$out/$name.txt"
}

gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -I "$prefix/include" examples/c/ask.c -o "$out/ask-c" -L "$lib" -lstair -pthread
g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -I "$prefix/include" examples/cpp/ask.cpp -o "$out/ask-cpp" -L "$lib" -lstair -pthread
(cd examples/go && go build -o "$out/ask-go" .)
mcs -nologo -out:"$out/ask.exe" -recurse:'bindings/dotnet/Stair/*.cs' examples/dotnet/Ask.cs
cargo build --quiet --release --example ask

export LD_LIBRARY_PATH=$lib
run c "$out/ask-c"
run cpp "$out/ask-cpp"
run go "$out/ask-go"
run dotnet mono "$out/ask.exe"
run rust "$build/examples/ask"

cat "$out/c.txt"
for name in cpp go dotnet rust; do
    cmp "$out/c.txt" "$out/$name.txt" || { echo "the example in $name differs from the one in C" >&2; exit 1; }
done
[ "$(grep -c '^  [1-3]\. ' "$out/c.txt")" = 6 ] || { echo "expected three sections for each of two questions" >&2; exit 1; }
echo "5 passed, 0 failed"
