#!/usr/bin/env bash
# What an installation gives is all that programs need: those of examples/ are
# built with pkg-config alone, against the shared and the static library, and
# run.
#   test_installed.sh SOURCE-FOLDER BUILD-FOLDER SANITIZERS MPI    77: skipped
set -u
. "$(dirname "$0")/outside.sh"
source=$(realpath "$1")
build=$(realpath "$2")
# Programs that know nothing of sanitizers cannot use a library that does.
[ "$3" = none ] || exit 77
mpi=$4
[ "$mpi" != true ] || use_mpi
scratch

DESTDIR=$work/root meson install -C "$build" --no-rebuild --quiet \
  >out 2>err || { fault "meson install"; exit 1; }
pc=$(find root -name sprat.pc)
library=$work/$(dirname "$(dirname "$pc")")
share=$work/$(dirname "$(find root -type d -name man | head -1)")
export PKG_CONFIG_PATH=$library/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/root
export LD_LIBRARY_PATH=$library
bin=$(dirname "$(find "$work/root" -type f -name sprat -path '*/bin/*')")

echo "What is where"
for file in man/man1/sprat.1 man/man1/sprat-train.1 man/man3/sprat-graph.h.3 \
  man/man3/sp_compile.3 man/man5/sprat-config.5 man/man5/sprat-run.5 \
  bash-completion/completions/sprat zsh/site-functions/_sprat \
  fish/vendor_completions.d/sprat.fish; do
  [ -s "$share/$file" ] || fault "$file is not installed"
done
twice=$(find "$share/man" -type f -name '*.[1-9]' -printf '%f\n' |
  sed 's/\.[1-9]$//' | sort | uniq -d)
[ -z "$twice" ] || fault "pages of one name in two sections: $twice"
"$bin/sprat" version >out 2>err || fault "the installed program: $?"
said out "^sprat $(pkg-config --modversion sprat)$"

# try NAME: the programs in ./NAME do what they say.
try() {
  cd "$1" || exit 1
  ./engine >out 2>err || fault "$1: engine: $?"
  said out '^loss [0-9.]+, after a step [0-9.]+$'
  ./layer >out 2>err || fault "$1: layer: $?"
  said out '^gradients are right to [0-9.]+e-0[4-9]$' '^model +swish_net: 1316' \
    '^epoch 5/5 done .* test 0\.[0-9]+ 9[0-9]|100'
  ./compressor >out 2>err || fault "$1: compressor: $?"
  # A packet begins with its size and its scale.
  said out '^exchange bytes, 4 of 4' \
    '^bytes .* 1348 in packets \(values 1316, places 0, headers 32\)'
  cp "$work/tiny.yaml" .
  ./program tiny.yaml train.epochs=2 >out 2>err || fault "$1: program: $?"
  said out '^epoch 2/2 done' '^64 test samples: loss [0-9.]+, [0-9.]+ % right$'
  ./program >out 2>err && fault "$1: no configuration"
  said err '^usage: program CONFIG'
  ./program tiny.yaml train.epoch=2 >out 2>err && fault "$1: wrong key"
  said err '^program: argument "train.epoch=2"'
  cd ..
}

write_tiny
# Programs may have been built in the source folder: -B makes them anew.
echo "The shared library"
cp -r "$source/examples" shared
make -B -C shared CFLAGS='-std=c11 -Wall -Wextra -Werror' >out 2>err ||
  fault "examples do not build"
try shared
if [ "$mpi" = true ]; then
  (cd shared && timeout 120 mpirun -n 2 ./compressor >../out 2>../err) ||
    fault "compressor on two ranks: $?"
  [ "$(grep -c '^bytes' out)" -eq 1 ] || fault "both ranks talk"
  said out '16 on each of 2 ranks' '^bytes .* 1348 in packets'
fi

echo "The static library"
rm "$library"/libsprat.so*
cp -r "$source/examples" static
make -B -C static PKG_CONFIG='pkg-config --static' >out 2>err ||
  fault "examples do not build"
try static
[ $failed = 0 ]
