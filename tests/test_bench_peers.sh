#!/usr/bin/env bash
# tools/bench-peers with programs in place of PyTorch and Sprat that always take
# the same times.
#   test_bench_peers.sh SOURCE-FOLDER
set -u
tool=$1/tools/bench-peers
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

fault() {
  echo "FAILED: $*"
  sed 's/^/    | /' out err | head -20
  failed=$((failed + 1))
}

# run STATUS ARGUMENT...: output in `out` and `err`; the programs start anew.
run() {
  local want=$1 status
  shift
  rm -f turn
  "$tool" "$@" >out 2>err
  status=$?
  [ $status -eq "$want" ] || fault "status $status, want $want: $*"
}

said() { # said FILE TEXT...
  local file=$1 text
  shift
  for text in "$@"; do
    grep -qF -- "$text" "$file" || fault "$file does not say: $text"
  done
}

# PyTorch takes 100, 300, 200 ms, in turn; Sprat 50, 100, 100 ms.
cat >python <<'SH'
#!/bin/sh
if [ "$1" = -c ]; then
  case $2 in *print*) echo 9.9 ;; esac
  exit 0
fi
echo "python $*" >>calls
[ -z "${OPENBLAS_CORETYPE+x}${OPENBLAS_L2_SIZE+x}" ] || exit 1
echo >>turn
ms=$(echo 100 300 200 | cut -d ' ' -f "$(wc -l <turn)")
echo "{\"network\": \"$2\", \"params\": 7, \"step_ms\": $ms," \
  "\"step_ms_min\": 1, \"peak_rss_mib\": 4$ms.4, \"layout\": \"fast\"}"
SH
cat >sprat <<'SH'
#!/bin/sh
echo "sprat $*" >>calls
[ -z "${OPENBLAS_CORETYPE+x}${OPENBLAS_L2_SIZE+x}" ] || exit 1
if [ "$1" = info ]; then
  echo "{\"params\":${PARAMS:-7},\"tensors\":[{\"params\":3}]}"
  exit
fi
ms=$(echo 50 100 100 | cut -d ' ' -f "$(wc -l <turn)")
echo "{\"step_ms\":$ms,\"step_ms_min\":1,\"peak_rss_mib\":203.6}"
SH
cat >broken <<'SH'
#!/bin/sh
exit 1
SH
chmod +x python sprat broken
export PYTHON=$work/python SPRAT=$work/sprat
export OPENBLAS_CORETYPE=x OPENBLAS_L2_SIZE=y

run 0 --pairs 3 --threads 2 --steps 4 resnet20
said out \
  '| network | PyTorch, ms | Sprat, ms | PyTorch / Sprat | PyTorch, MiB |' \
  '| --- | --- | --- | --- | --- | --- |' \
  '| resnet20 | 200.0 | 100.0 | 2.00 (2.00 to 3.00) | 4300 | 204 |' \
  '2 threads; medians over 3 pairs in turn' 'PyTorch 9.9' \
  "median of the pairs' ratios"
said err 'resnet20, pair 3 of 3: PyTorch 200.0 ms (fast), Sprat 100.0 ms'
[ "$(sed 's/ .*//' calls | tr '\n' ' ')" = \
  'python sprat sprat python sprat python sprat ' ] || fault "not in turn"
said calls 'torch_step.py resnet20 --steps 4 --threads 2' \
  'configs/cifar10/resnet20.yaml train.threads=2 --steps 4 --json'

run 0 --pairs=1 --threads=1 vgg19
said out '1 thread; medians over 1 pair in' '2.00 (2.00 to 2.00)'
run 0 --pairs 2 vgg19
said out '| vgg19 | 200.0 | 75.0 | 2.50 (2.00 to 3.00) | 4300 | 204 |'

PARAMS=8 run 1 resnet18
said err 'resnet18: Sprat has 8 parameters, PyTorch 7'
SPRAT=$work/broken run 1 resnet18
PYTHON=$work/broken run 2 resnet18
said err 'has no PyTorch' 'python3-torch' '/usr/bin/python3' 'PYTHON'
PYTHON=$work/nothing run 2
said err 'there is no'
SPRAT=$work/nothing run 2
said err 'nothing is no program'
[ ! -e turn ] || fault "measured without Sprat"
SPRAT=$work run 2
run 2 resnet19
said err 'resnet19: no such'
run 2 --pairs
run 2 --steps 0
said err "--steps needs a whole number from 1 on, not '0'"
run 2 --pairs=0
run 2 --pairs=
for help in -h --help; do
  run 0 $help
  said out 'tools/bench-peers [--pairs N]'
done

# A signal ends what runs: here Sprat, which would take for ever.
cat >endless <<'SH'
#!/bin/sh
[ "$1" != info ] || exec "${0%endless}sprat" "$@"
echo $$ >pid
exec sleep 600
SH
chmod +x endless
for signal in TERM INT; do
  rm -f turn pid
  set -m # or SIGINT is ignored
  SPRAT=$work/endless "$tool" resnet20 >out 2>err &
  set +m
  for _ in $(seq 100); do
    [ ! -s pid ] || break
    sleep 0.1
  done
  kill -s $signal $!
  wait $! 2>/dev/null
  status=$?
  [ $status -eq $((128 + $(kill -l $signal))) ] || fault "SIG$signal: $status"
  for _ in $(seq 100); do
    kill -0 "$(cat pid)" 2>/dev/null || break
    sleep 0.1
  done
  ! kill -0 "$(cat pid)" 2>/dev/null || fault "SIG$signal: Sprat still runs"
done
[ $failed = 0 ]
