#!/usr/bin/env bash
# Each file of a run folder cut short at some lengths, and with bytes changed:
# what a checkpoint consists of is refused by name, whatever else there is does
# not keep the run from going on to the same bits, or is refused by name.
#   test_torn.sh SPRAT
set -u
. "$(dirname "$0")/outside.sh"
sprat=$(realpath "$1")
# Much is synced: in memory, if there is such a place.
[ -n "${TMPDIR:-}" ] || [ ! -w /dev/shm ] || export TMPDIR=/dev/shm
scratch
cat >tiny.yaml <<'YAML'
model: {name: mlp, hidden: [8]}
data: {name: synthetic, shape: [4, 4, 1], classes: 3, train: 48, test: 12}
train: {epochs: 4, batch: 12, threads: 1, seed: 3}
optim: {lr: 0.05}
log: {every: 1, csv: true, tensorboard: true, tensors: true}
YAML

weights() { sha256sum <"$1/checkpoints/last/model.safetensors"; }

# plain STATUSES ARGUMENT...: the program must end with one of these.
plain() {
  local want=$1
  shift
  timeout 60 "$sprat" "$@" >out 2>err </dev/null
  status=$?
  [[ " $want " == *" $status "* ]] ||
    fault "$what: status $status, want $want: sprat $*"
}

# refused FILE ARGUMENT...: with a message that names the file.
refused() {
  local file=$1
  shift
  plain 2 "$@"
  grep -q "^sprat: .*$file" err || fault "$what: $1 does not name $file"
}

# Part k of a file: cut to nothing, to a byte, to a half, by a byte; or with a
# byte changed at the start, in the middle, at the end. False: nothing changed.
damages=7
damage() {
  local file=$1 k=$2 size at
  size=$(stat -c %s "$file")
  [ "$size" -gt 2 ] || return 1
  case $k in
    0) truncate -s 0 "$file" ;;
    1) truncate -s 1 "$file" ;;
    2) truncate -s $((size / 2)) "$file" ;;
    3) truncate -s $((size - 1)) "$file" ;;
    *)
      at=$(((size - 1) * (k - 4) / 2))
      printf '\a' | dd of="$file" bs=1 seek=$at conv=notrunc status=none
      ;;
  esac
}

# Of a checkpoint: its last is refused; evaluation needs no more than weights.
check_checkpoint() {
  refused "$1" resume run train.epochs=4
  case $1 in
    model.safetensors | manifest.json) refused "$1" eval run ;;
    *) plain '0 2' eval run ;;
  esac
  [ $status -eq 0 ] || grep -q "$1" err || fault "$what: eval names no $1"
}

# Of what people read: the run goes on, and ends as the whole one did.
check_told() {
  plain 0 resume run train.epochs=4
  [ "$(weights run)" = "$(weights whole)" ] || fault "$what: other weights"
  tr -d '\n' <run/metrics.jsonl | grep -q '^{.*}$' || fault "$what: torn lines"
  grep -q '"status": *"done"' run/result.json || fault "$what: not done"
}

# The settings may have become other valid ones; else they are refused.
check_settings() {
  plain '0 2' resume run train.epochs=4
  [ $status -eq 0 ] || grep -q 'config.yaml' err ||
    fault "$what: resume does not name config.yaml"
  plain '0 2' eval run
}

what="the whole run"
plain 0 train tiny.yaml --run whole
plain 0 train tiny.yaml train.epochs=2 --run half
last=checkpoints/$(readlink half/checkpoints/last)
(cd half && find . -type f ! -path './checkpoints/*' && find "$last" -type f) |
  sed 's,^\./,,' | sort >files
while read -r file; do
  for ((k = 0; k < damages; k++)); do
    rm -rf run
    cp -a half run
    what="$file, damage $k"
    damage "run/$file" $k || continue
    case $file in
      checkpoints/*) check_checkpoint "$(basename "$file")" ;;
      config.yaml) check_settings ;;
      *) check_told ;;
    esac
  done
done <files
echo "$(wc -l <files) files"
[ $failed -eq 0 ]
