#!/usr/bin/env bash
# Makes a folder that benches/device.sh runs on a machine with a GPU, and cuts it into parts.
#
#   packaging/cuda/carry.sh FOLDER -m MODEL.gguf [-d DOCUMENT.md -q QUESTIONS.jsonl] [--cublas]
#
# In FOLDER come: `stair-device`, which runs here as well (FOLDER/stair-device/device.sh), and the
# same packed, in parts FOLDER/1, FOLDER/2, ... of at most 60 MiB, for a transfer that takes no more
# at once: `benches/device.sh receive FOLDER/1` there, and so on, in any order.
#
# The document is Microbiology out of ../shared/books where that is, else examples/handbook. Each
# question is a line {"query": ..., "section": "4.2 Title"}; of a file with splits, `test` is taken.
# cublas, 600 MB, comes along with --cublas only: device.sh finds that of an installed CUDA 13 or
# PyTorch.
#
#   CARGO_TARGET_DIR    where build.sh built                default: target/cuda
#   STAIR_CUDA_TOOLKIT  where toolkit.sh laid the compiler  default: target/cuda-toolkit
set -euo pipefail

main() {
    local here root folder='' model='' document='' questions='' cublas=no
    here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
    root=$(cd "$here/../.." && pwd)
    while [ $# -gt 0 ]; do
        case $1 in
            -m) model=$2; shift 2 ;;
            -d) document=$2; shift 2 ;;
            -q) questions=$2; shift 2 ;;
            --cublas) cublas=yes; shift ;;
            -*) usage ;;
            *) folder=$1; shift ;;
        esac
    done
    [ -n "$folder" ] && [ -n "$model" ] || usage
    local built=${CARGO_TARGET_DIR:-$root/target/cuda}/release
    local toolkit=${STAIR_CUDA_TOOLKIT:-$root/target/cuda-toolkit}/nvidia/cu13
    local book=$root/../shared/books/microbiology
    if [ -z "$document" ]; then
        document=$root/examples/handbook/handbook.md
        if [ -d "$book" ]; then
            document=$book/book.md
            questions=${questions:-$book/questions.jsonl}
        fi
    fi
    if [ ! -x "$built/stair" ]; then
        echo "carry: nothing built in $built: run packaging/cuda/build.sh" >&2
        exit 1
    fi

    local to=$folder/stair-device
    rm -rf "$folder"
    mkdir -p "$to/bin" "$to/lib/stair-backends"
    cp "$built/stair" "$to/bin/"
    local soname
    soname=$(readelf -d "$built/libstair.so" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
    cp "$built/libstair.so" "$to/lib/$soname"
    ln -s "$soname" "$to/lib/libstair.so"
    cp "$built"/stair-backends/*.so* "$to/lib/stair-backends/"
    strip "$to/bin/stair"
    strip --strip-unneeded "$to/lib/$soname" "$to"/lib/stair-backends/*.so*
    if [ -e "$to/lib/stair-backends/libggml-cuda.so" ]; then
        cp "$toolkit/lib/libcudart.so.13" "$to/lib/stair-backends/"
        if [ "$cublas" = yes ]; then
            cp "$toolkit"/lib/libcublas{,Lt}.so.13 "$to/lib/stair-backends/"
        fi
    else
        echo "carry: $built holds no libggml-cuda.so: this folder is for the CPU" >&2
    fi
    # The library through its C header, too: the command has the library's code in it.
    cc -std=c11 -O2 -I "$root/include" "$root/examples/c/ask.c" -o "$to/bin/ask" -pthread \
        -L "$to/lib" -lstair -Wl,--disable-new-dtags,-rpath,'$ORIGIN/../lib' \
        -Wl,-rpath-link,"$to/lib/stair-backends"
    cp -L "$model" "$to/model.gguf"
    cp "$root/benches/device.sh" "$to/"
    mkdir "$to/device"
    cp "$root"/benches/device/*.py "$to/device/"

    "$to/bin/stair" build "$document" -m "$to/model.gguf" -o "$to/index.stair" --no-text --json >"$to/build.json"
    "$to/bin/stair" inspect "$to/index.stair" --json |
        python3 "$here/questions.py" "$questions" >"$to/questions.jsonl"
    python3 - "$to" "$document" "$model" "$(date -u +%FT%TZ)" <<'PY' >"$to/carried.json"
import json, pathlib, sys
to, document, model, when = sys.argv[1:]
to = pathlib.Path(to)
files = [*(to / "bin").iterdir(), *(to / "lib").rglob("*.so*")]
sizes = {f.name: f.stat().st_size for f in files if not f.is_symlink() and "ggml-cpu" not in f.name}
built = json.loads((to / "build.json").read_text())
print(json.dumps({
    "made": when,
    "model": f"{pathlib.Path(model).name}, {(to / 'model.gguf').stat().st_size:,} bytes",
    "document": f"{built['title']}: {built['leaves']} sections, {built['prefix_tokens']} tokens, "
                f"{built['trie_nodes']} nodes",
    "questions": len((to / "questions.jsonl").read_text().splitlines()),
    "bytes": ", ".join(f"{name} {size:,}" for name, size in sorted(sizes.items())),
}))
PY
    rm "$to/build.json"

    echo "carry: packing"
    (
        cd "$to"
        python3 -c '
import lzma, sys, tarfile
with lzma.open(sys.stdout.buffer, "w", preset=1) as packed:
    with tarfile.open(fileobj=packed, mode="w|") as archive:
        archive.add(".")'
    ) | split -b 60M -d -a 2 - "$folder/part."
    (cd "$folder" && sha256sum part.*) >"$folder/SHA256SUMS"
    local part n=0
    for part in "$folder"/part.*; do
        n=$((n + 1))
        mkdir "$folder/$n"
        mv "$part" "$folder/$n/"
        cp "$folder/SHA256SUMS" "$folder/$n/"
    done
    rm "$folder/SHA256SUMS"
    echo "carry: $to, $(du -sh "$to" | cut -f1), in $n parts:"
    du -h "$folder"/[0-9]*/part.* | sed 's/^/       /'
    exit 0
}

usage() {
    echo "usage: carry.sh FOLDER -m MODEL.gguf [-d DOCUMENT.md -q QUESTIONS.jsonl] [--cublas]" >&2
    exit 2
}

main "$@"
