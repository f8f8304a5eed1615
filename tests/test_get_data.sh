#!/usr/bin/env bash
# Test tools/get-data without a network: archives are made here, and `curl` is
# a script that fails or copies. A copy of the tool with checksums of the small
# files made here shows the good paths; the tool itself must refuse these.
#   tests/test_get_data.sh SOURCE-FOLDER
set -euo pipefail
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset SPRAT_DATA

mkdir tool bin
cp "$source/tools/get-data" tool/
PATH=$work/bin:$PATH

no_network() {
  printf '#!/bin/sh\necho "curl: no route" >&2\nexit 6\n' >bin/curl
  chmod +x bin/curl
}

# curl that gives $1 and notes the address.
network_with() {
  cat >bin/curl <<END
#!/bin/sh
while [ \$# -gt 1 ]; do
  [ "\$1" != --output ] || cp "$1" "\$2"
  shift
done
echo "\$1" >>"$work/addresses"
END
  chmod +x bin/curl
}

# run STATUS COMMAND...: the output goes to ./out.
run() {
  local want=$1 got=0
  shift
  "$@" >out 2>&1 || got=$?
  [ "$got" = "$want" ] || { echo "status $got, not $want: $*"; cat out; exit 1; }
}

says() {
  local word
  for word; do
    grep -qF -- "$word" out || { echo "'$word' is not said:"; cat out; exit 1; }
  done
}

# Nothing of set $1 may be left in folder $2, hidden or not.
leaves_nothing() {
  if [ -e "$2/$1" ] || [ -n "$(find "$2" -name '.get-data*' 2>/dev/null)" ]; then
    echo "something is left in $2"
    exit 1
  fi
}

# Make the archive of set $1: folder $2 in archive $3 with the files that follow.
make() {
  local name=$1 inside=$2 archive=$3 file
  shift 3
  mkdir -p "made/$inside"
  for file; do
    echo "$name $file" >"made/$inside/$file"
    echo "$(sha256sum <"made/$inside/$file" | cut -d' ' -f1)  $name/$file" >>tool/get-data.sums
  done
  tar czf "$archive" -C made "${inside%%/*}"
}

make cifar10 cifar-10-batches-bin cifar-10-binary.tar.gz data_batch_1.bin test_batch.bin
make cifar100 cifar-100-binary cifar-100-binary.tar.gz train.bin test.bin
make ptb simple-examples/data simple-examples.tgz ptb.train.txt ptb.valid.txt ptb.test.txt

# Without network: what to bring and where to.
no_network
run 2 tool/get-data cifar10
says https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz datasets/cifar-10-binary.tar.gz --from
leaves_nothing cifar10 datasets
run 2 tool/get-data wikitext-2 folder
says smerity.com metamind folder/wikitext-2-v1.zip

# An archive on disk, named or in its place.
run 0 tool/get-data cifar10 here --from cifar-10-binary.tar.gz
says here/cifar10
cmp here/cifar10/test_batch.bin made/cifar-10-batches-bin/test_batch.bin
mkdir there
cp cifar-100-binary.tar.gz there/
SPRAT_DATA=$work/there run 0 tool/get-data cifar100
cmp there/cifar100/train.bin made/cifar-100-binary/train.bin

# Once more: nothing to do. Not whole: said, and left alone.
run 0 tool/get-data cifar10 here
says 'is there and right'
echo other >here/cifar10/test_batch.bin
run 2 tool/get-data cifar10 here
says cifar10/test_batch.bin 'not whole'
rm here/cifar10/test_batch.bin
run 2 tool/get-data cifar10 here
says cifar10/test_batch.bin
[ -f here/cifar10/data_batch_1.bin ]

# From the network.
network_with "$work/simple-examples.tgz"
run 0 tool/get-data ptb net
cmp net/ptb/ptb.valid.txt made/simple-examples/data/ptb.valid.txt
grep -qx 'http://www.fit.vutbr.cz/~imikolov/rnnlm/simple-examples.tgz' addresses

# A set that is one file, as it comes.
echo 'To be' >play
echo "$(sha256sum <play | cut -d' ' -f1)  tinyshakespeare/input.txt" >>tool/get-data.sums
network_with "$work/play"
run 0 tool/get-data tinyshakespeare net
cmp net/tinyshakespeare/input.txt play
echo 'or not' >play
run 2 tool/get-data tinyshakespeare bad --from play
says 'wrong checksum' tinyshakespeare/input.txt
leaves_nothing tinyshakespeare bad

# Damage: a wrong checksum, half an archive, another archive.
run 2 "$source/tools/get-data" cifar10 bad --from cifar-10-binary.tar.gz
says 'wrong checksum' cifar10/data_batch_1.bin cifar10/data_batch_5.bin
leaves_nothing cifar10 bad
head -c 100 cifar-10-binary.tar.gz >half.tar.gz
run 2 tool/get-data cifar10 bad --from half.tar.gz
says half.tar.gz damaged
leaves_nothing cifar10 bad
run 2 tool/get-data cifar10 bad --from cifar-100-binary.tar.gz
says cifar10/test_batch.bin
leaves_nothing cifar10 bad

# Wrong use.
run 2 tool/get-data
says NAME
run 2 tool/get-data mnist
says cifar100 wikitext-2 tinyshakespeare
run 2 tool/get-data ptb bad --from none.tgz
says none.tgz
run 2 tool/get-data ptb bad --from
run 2 tool/get-data ptb a b
run 2 tool/get-data --help

# Every set has checksums, each of the right length.
for name in cifar10 cifar100 ptb wikitext-2 tinyshakespeare; do
  grep -Eq "^[0-9a-f]{64}  $name/" "$source/tools/get-data.sums"
done
! grep -Evq '^[0-9a-f]{64}  [a-z0-9-]+/[A-Za-z0-9_.]+$' "$source/tools/get-data.sums"
