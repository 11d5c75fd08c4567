#!/bin/sh
# Builds the .NET binding and its example, and runs the binding's tests.
#
# usage: bindings/dotnet/run.sh LIBDIR [MODEL INDEX]
#   LIBDIR   the folder of libstair.so
#   MODEL    a GGUF model, and INDEX an index built for it: the tests that retrieve
#   OUT      (environment) the folder to build in; target/dotnet
#
# Needs mcs and mono. Where there is a .NET SDK too, that builds everything once more.
set -eu

if [ $# -ne 1 ] && [ $# -ne 3 ]; then
    sed -n '4,7s/^# //p' "$0" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${OUT:-$root/target/dotnet}
mkdir -p "$out"

export LD_LIBRARY_PATH="$(cd "$1" && pwd)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export STAIR_TEST_MODEL="${2:-}" STAIR_TEST_INDEX="${3:-}"
export STAIR_TEST_HEADER="$root/include/stair.h" STAIR_TEST_LAYOUT="$out/layout.txt"

${CC:-cc} -I"$root/include" -o "$out/layout" "$here/tests/layout.c"
"$out/layout" > "$STAIR_TEST_LAYOUT"

mcs -warnaserror -warn:4 -debug -target:library -doc:"$out/Stair.xml" -out:"$out/Stair.dll" "$here"/Stair/*.cs
mcs -warnaserror -warn:4 -debug -r:"$out/Stair.dll" -out:"$out/ask.exe" "$root/examples/dotnet/Ask.cs"
mcs -warnaserror -warn:4 -debug -out:"$out/tests.exe" "$here/tests/Tests.cs" "$here"/Stair/*.cs
mono --debug "$out/tests.exe"

if command -v dotnet > /dev/null && [ -n "$(dotnet --list-sdks)" ]; then
    dotnet build -nologo -v:quiet -o "$out/sdk/ask" "$root/examples/dotnet/Ask.csproj"
    dotnet build -nologo -v:quiet -o "$out/sdk/tests" "$here/tests/Tests.csproj"
    dotnet "$out/sdk/tests/stair-dotnet-tests.dll"
fi
