#!/usr/bin/env bash
# bench-kernels from outside: its options, shapes and statuses, not its numbers.
#   test_bench_kernels.sh BENCH-KERNELS
set -u
bench=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

fault() {
  echo "FAILED: $*"
  sed 's/^/    | /' out err | head -20
  failed=$((failed + 1))
}

# run STATUS PATTERN ARGUMENT...: called by another name; the pattern must be
# found in what it says.
run() {
  local want=$1 pattern=$2 status
  shift 2
  (exec -a some/name "$bench" "$@") >out 2>err
  status=$?
  [ $status -eq "$want" ] || fault "status $status, want $want: $*"
  cat out err | grep -qE -- "$pattern" || fault "$* does not say: $pattern"
}

small='4 4 8 8 3'
run 0 '^4 4 8 8 3 1 1 1 +2 input +F\(2x2\) +[0-9.]+ .* %$' \
  --pass=input --batch 2 --seconds 0 "$small" --isa=base
[ "$(wc -l <out)" -eq 5 ] || fault "want a head and three algorithms"
run 0 '^1 1 20 30 1 1 0 1 +2 input +packed +[0-9.]+ .* % +[0-9.]+ GB/s$' \
  --batch 2 --seconds 0 '1 1 20 30 1' --algorithm packed
[ "$(wc -l <out)" -eq 4 ] || fault "want a head and two passes"
for help in -h --help; do
  run 0 '^usage: some/name' "$small" $help
done

run 2 '^some/name: --thread: no such option; .* --threads' --thread 2
run 2 '^some/name: -x: no such option' -x
run 2 '^some/name: --pass: want forward' --pass
run 2 '^some/name: --pass back: want forward, input or weights' --pass back
run 2 '^some/name: --algorithm F: want direct' --algorithm F
run 2 '^some/name: --isa nein: want one that' --isa nein
run 2 '^some/name: --seconds nan: want a number' --seconds nan
run 2 '^some/name: --batch 0: want a whole number from 1' --batch=0
for threads in 0 257 2x; do
  run 2 "^some/name: --threads $threads: .* from 1 to 256" --threads $threads
done

run 2 '^some/name: "4 4 8": want "H W' '4 4 8'
run 2 'want "H W' '4 4 8 8 3 1 1 1 1'
run 2 '"4 4 8 8 3 1 3": PAD must be less than K' '4 4 8 8 3 1 3'
run 2 'GROUPS must divide CIN and COUT' '4 4 8 8 3 1 1 3'
run 2 'K must not be larger' '4 4 8 8 9 1 0'
run 2 '2\^31' '1 1 1000000 1000000 1000000'
run 2 'F\(4x4\): .* no shape here' --algorithm 'F(4x4)' '4 4 8 8 3 2'
run 2 'packed: .* no shape here' --algorithm packed '4 4 8 8 3'

"$bench" --seconds 0 --pass input "$small" >/dev/full 2>err
[ $? -eq 1 ] || fault "a full disk behind standard output: want status 1"
grep -q 'standard output cannot be written' err || fault "it does not say so"
[ $failed = 0 ]
