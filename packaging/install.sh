#!/usr/bin/env bash
# Installs a build. usage: install.sh TARGET_DIR/release DESTDIR PREFIX VERSION
set -euo pipefail

build=$1
prefix=$3
version=$4
root=$2$prefix
here=$(cd "$(dirname "$0")" && pwd)
major=${version%%.*}

install -d "$root"/{bin,include,lib/stair-backends,lib/pkgconfig,lib/cmake/Stair}
install -m 755 -s "$build/stair" "$root/bin/stair"
install -m 644 "$here/../include/stair.h" "$here/../bindings/cpp/stair.hpp" "$root/include/"
install -m 755 -s "$build/libstair.so" "$root/lib/libstair.so.$version"
ln -sf "libstair.so.$version" "$root/lib/libstair.so.$major"
ln -sf "libstair.so.$major" "$root/lib/libstair.so"
install -m 644 "$build/libstair.a" "$root/lib/libstair.a"
# What an older one had and this one has not would still be loaded.
rm -f "$root"/lib/stair-backends/lib{ggml,llama}*.so*
for file in "$build"/stair-backends/*; do
    install -m 755 -s "$file" "$root/lib/stair-backends/"
done
# What a program that links libstair.a links as well; the libraries of llama.cpp have no plain names.
private="\"-L\${libdir}/stair-backends\" -l:libllama.so.0 -l:libggml.so.0 -l:libggml-base.so.0 -lstdc++ -lm -lpthread -ldl -lgcc_s"
minor=${version#*.}
# As the right side of sed's s|||: these mean something there.
plain=$(printf %s "$prefix" | sed 's/[\\&|]/\\&/g')
fill() { # fill TEMPLATE FILE
    sed -e "s|@VERSION@|$version|g" -e "s|@PREFIX@|$plain|g" -e "s|@VERSION_MAJOR@|$major|g" \
        -e "s|@VERSION_MINOR@|${minor%%.*}|g" -e 's|@LIBDIR@|${prefix}/lib|g' \
        -e 's|@INCLUDEDIR@|${prefix}/include|g' -e "s|@LIBS_PRIVATE@|$private|g" "$1" > "$2"
    chmod 644 "$2"
}
fill "$here/stair.pc.in" "$root/lib/pkgconfig/stair.pc"
fill "$here/StairConfig.cmake.in" "$root/lib/cmake/Stair/StairConfig.cmake"
fill "$here/StairConfigVersion.cmake.in" "$root/lib/cmake/Stair/StairConfigVersion.cmake"
