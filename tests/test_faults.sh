#!/usr/bin/env bash
# What fails once in the middle of a run costs no more than itself: for a call
# that opens, writes, syncs, renames, ... and for a request for memory, one
# after the other is made to fail (faults.c), and then
#   - the program ends with a status that is documented, and says why;
#   - it never claims to be done when something was lost;
#   - the run can be evaluated, or has nothing yet and says so;
#   - resumed, it ends with the bits of a run that nothing happened to.
#   test_faults.sh SPRAT SPRAT_FAULTS [POINTS]
# SPRAT_FAULTS is the program with the replaced calls. POINTS: how many of the
# calls of each kind are tried, evenly spread (12); `all`: every one.
set -u
. "$(dirname "$0")/outside.sh"
sprat=$(realpath "$1")
faulty=$(realpath "$2")
points=${3:-12}
# Much is synced: in memory, if there is such a place.
[ -n "${TMPDIR:-}" ] || [ ! -w /dev/shm ] || export TMPDIR=/dev/shm
scratch
cat >tiny.yaml <<'YAML'
model: {name: mlp, hidden: [8]}
data: {name: synthetic, shape: [4, 4, 1], classes: 3, train: 48, test: 12}
train: {epochs: 2, batch: 12, threads: 1, seed: 3, checkpoint_steps: 3}
optim: {lr: 0.05}
compress: {name: dgc, warmup: [], ratio: 0.1}
log: {every: 1, csv: true, tensorboard: true, tensors: true}
YAML
cat >table.yaml <<'YAML'
configs: [tiny.yaml]
metric: test_top1
rows: [{name: plain, seeds: [3]}]
YAML

weights() { sha256sum <"$1/checkpoints/last/model.safetensors"; }

# The lines of a run that time and place do not change.
lines() {
  sed -E 's/"(seconds|items_per_s|peak_rss_mib|wall_time)":[^,}]*//g' \
    "$1/metrics.jsonl" | grep -v '"kind":"time"'
  cat "$1/hashes.jsonl"
}

# plain ARGUMENT...: the program without faults.
plain() { timeout 60 "$sprat" "$@" >out 2>err </dev/null; }

# broken KIND:K ARGUMENT...: the program with a fault; its name is in $what.
broken() {
  local fault=$1
  shift
  rm -f log
  SPRAT_FAULT=$fault SPRAT_FAULT_LOG=log timeout 60 "$faulty" "$@" \
    >out 2>err </dev/null
  status=$?
  what="$1, $fault: $(sed -n 's/^fault //p' log | head -1)"
}

# A status that is documented and a message, or all that was to be done.
check_end() {
  case $fault_kind:$status in
    die:137) ;;
    *:[0-4]) ;;
    *) fault "$what: status $status" ;;
  esac
  [ $status -eq 0 ] || [ "$fault_kind" = die ] ||
    grep -qE '^(sprat|table +failed): .' out err ||
    fault "$what: status $status without a message"
}

# The run is as one that nothing happened to.
check_whole() {
  [ "$(weights run)" = "$(weights whole)" ] || fault "$what: $1: other weights"
  [ "$(lines run)" = "$(lines whole)" ] || fault "$what: $1: other metrics"
  grep -q '"status": *"done"' run/result.json ||
    fault "$what: $1: it is not said to be done"
  local left
  left=$(find run -name '*.tmp' -o -path '*/checkpoints/.*')
  [ -z "$left" ] || fault "$what: $1: left behind: $left"
}

# All that a run consists of.
state() {
  find "$1" ! -name .lock -printf '%p %l\n'
  find "$1" ! -name .lock -type f -exec sha256sum {} +
}

# Whatever happened, if anything did: evaluate, resume, compare.
check_after() {
  [ $status -ne 0 ] || check_whole "ended"
  [ -e run ] || return
  [ "$(state run)" != "$before" ] || return
  if [ -e run/checkpoints/last ]; then
    plain eval run || fault "$what: cannot be evaluated"
    plain resume run || fault "$what: cannot be resumed"
    check_whole "resumed"
    return
  fi
  plain eval run
  [ $? -eq 2 ] && grep -q run err || fault "$what: eval of nothing"
  plain train tiny.yaml --run run --overwrite ||
    fault "$what: cannot begin anew"
  check_whole "anew"
}

# Calls of a kind that a command makes: their number.
count() {
  local kind=$1
  shift
  rm -f log
  SPRAT_FAULT_LOG=log "$faulty" "$@" >out 2>err </dev/null ||
    fault "without a fault: $*"
  sed -n "s/^$kind //p" log
}

# The numbers of calls to try, of 1 to $1.
chosen() {
  local step=1
  [ "$points" = all ] || [ "$1" -le "$points" ] || step=$(($1 / points))
  seq $((step / 2 + 1)) $step "$1"
}

# try KIND COUNT COMMAND...: the chosen calls of a command that writes to `run`.
try() {
  local fault_kind=$1 count=$2 k n=0
  shift 2
  for k in $(chosen "$count"); do
    rm -rf run
    before=
    [ "$1" != resume ] || { cp -a half run && before=$(state run); }
    broken "$fault_kind:$k" "$@"
    check_end
    check_after
    n=$((n + 1))
  done
  echo "$1: $n of $count calls, $fault_kind"
}

# reads KIND STATUSES COMMAND...: one that only reads: it says the same, or ends
# with one of these and a message; the run stays as it was.
reads() {
  local fault_kind=$1 statuses=$2 count k n=0
  shift 2
  count=$(count "$fault_kind" "$@")
  plain "$@" || fault "without a fault: $*"
  cp out told
  for k in $(chosen "$count"); do
    broken "$fault_kind:$k" "$@"
    check_end
    [[ " 0 $statuses " == *" $status "* ]] || fault "$what: status $status"
    [ $status -ne 0 ] || cmp -s out told || fault "$what: says another thing"
    n=$((n + 1))
  done
  [ "$(state whole)" = "$whole" ] || fault "$1: has changed the run"
  echo "$1: $n of $count calls, $fault_kind"
}

# makes KIND FILE COMMAND...: one that writes a file, which is whole or absent.
makes() {
  local fault_kind=$1 file=$2 count k n=0
  shift 2
  count=$(count "$fault_kind" "$@")
  mv "$file" wanted
  for k in $(chosen "$count"); do
    broken "$fault_kind:$k" "$@"
    check_end
    if [ -e "$file" ]; then
      cmp -s "$file" wanted || fault "$what: another file"
    elif [ $status -eq 0 ]; then
      fault "$what: status 0, but no file"
    fi
    rm -f "$file"
    [ ! -e "$file.tmp" ] || fault "$what: $file.tmp is left"
    n=$((n + 1))
  done
  [ "$(state whole)" = "$whole" ] || fault "$1: has changed the run"
  echo "$1: $n of $count calls, $fault_kind"
}

# tables KIND: a queue of runs: the same command goes on with what is missing.
tables() {
  local fault_kind=$1 count k n=0
  rm -rf T
  count=$(count "${fault_kind/die/files}" table table.yaml --run T)
  for k in $(chosen "$count"); do
    rm -rf T
    broken "$fault_kind:$k" table table.yaml --run T
    check_end
    if [ $status -ne 0 ]; then
      plain table table.yaml --run T --retry || fault "$what: cannot go on"
    fi
    [ "$(weights T/plain/seed-3)" = "$(weights whole)" ] ||
      fault "$what: other weights"
    grep -q '^| plain | 3 | 50.00 | done ' T/table.md ||
      fault "$what: the table lacks a run"
    [ -z "$(find T -name '*.tmp' -o -path '*/checkpoints/.*')" ] ||
      fault "$what: something is left behind"
    n=$((n + 1))
  done
  echo "table: $n of $count calls, $fault_kind"
}

plain train tiny.yaml --run whole || fault "the run itself"
whole=$(state whole)
plain export whole -o whole.npz || fault "its export"

begin=(train tiny.yaml --run run)
files=$(count files "${begin[@]}")
rm -rf run
memory=$(count memory "${begin[@]}")
for kind in files full die; do
  try $kind "$files" "${begin[@]}"
done
try memory "$memory" "${begin[@]}"

# Killed in the middle, and then something else happens.
rm -rf run
SPRAT_FAULT=die:$((files / 2)) "$faulty" "${begin[@]}" >out 2>err
mv run half
cp -a half run
files=$(count files resume run)
rm -rf run && cp -a half run
memory=$(count memory resume run)
for kind in files full die; do
  try $kind "$files" resume run
done
try memory "$memory" resume run

for kind in files memory; do
  reads $kind '1 2' eval whole
  reads $kind 2 compare whole whole
  makes $kind page.html report whole -o page.html
  makes $kind pics/accuracy.png report whole --png pics
  makes $kind pics/accuracy.svg report whole --svg pics
  makes $kind mine.npz export whole -o mine.npz
  makes $kind mine.onnx export whole -o mine.onnx
  makes $kind mine.safetensors import whole.npz tiny.yaml -o mine.safetensors
done
for kind in files die memory; do
  tables $kind
done
[ $failed -eq 0 ]
