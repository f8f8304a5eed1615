#!/usr/bin/env bash
# The program on hosts that are network namespaces: what it tells of the
# network is what the hosts' devices count, and adding up within hosts first
# changes nothing but the order of sums.
#   test_ranks_netlab.sh SPRAT SOURCE-FOLDER      77: skipped
set -u
. "$(dirname "$0")/outside.sh"
sprat=$(realpath "$1")
netlab=$(realpath "$2")/tools/netlab
scratch
"$netlab" 2 none true >out 2>err
if [ $? -eq 2 ]; then # no root, tools or namespaces
  echo "skipped: $(tail -1 err)"
  exit 77
fi

# 1,578,506 parameters: 6.3 MB of gradients.
cat >wide.yaml <<'YAML'
model: {name: mlp, hidden: [512]}
data: {name: synthetic, shape: [32, 32, 3], classes: 10, train: 160, test: 10}
train: {epochs: 1, batch: 16, threads: 1, seed: 3}
optim: {lr: 0.02, momentum: 0.9}
YAML

# lab RUN HOSTS RANKS-PER-HOST OVERRIDE...
lab() {
  local run=$1 hosts=$2 ranks=$3
  shift 3
  timeout 100 "$netlab" --json "$run.json" --ranks-per-host "$ranks" "$hosts" \
    none "$sprat" train wide.yaml "$@" --run "$run" >out 2>err </dev/null ||
    fault "status $?: $run on $hosts hosts"
}

# What rank 0 tells as sent to other hosts is what its host has sent, but for
# headers and mpirun's own messages.
counted() {
  local told tx
  told=$(sed -n '/"collectives"/,$p' "$1/result.json" |
    grep -oE '"net_bytes": [0-9]+' | awk '{ s += $2 } END { print s + 0 }')
  tx=$(grep -oE '"host1",[^}]*"tx_bytes":[0-9]+' "$1.json" |
    grep -oE '[0-9]+$')
  echo "$1: told $told bytes, its device counted $tx"
  awk -v told="$told" -v tx="$tx" -v least="$2" 'BEGIN {
    exit !(told >= least && tx >= told && tx <= 1.05 * told) }' ||
    fault "$1: told $told bytes, its device counted $tx"
}

# Some weights of each layer of a run, as text.
weights() {
  tail -c 400000 "$1/checkpoints/last/model.safetensors" |
    od -An -v -t f4 -w4
}

# 2 ranks send half the gradients twice: 10 steps of 4 x 1,578,506 bytes.
lab pair 2 1
counted pair 63140240
lab flat 4 2 train.max_steps=4
lab node 4 2 train.max_steps=4 dist.hierarchy=node
# Four hosts: 2 x 3/4 of the gradients; one rank of each sends.
counted node 37884144
grep -q '4 hosts' out || fault "want 4 hosts"
for run in flat node; do
  grep -q '"step": 4,' $run/result.json || fault "$run: want 4 steps"
done
for run in flat node; do weights $run >$run.txt; done
paste flat.txt node.txt | awk '
  { d = $1 > $2 ? $1 - $2 : $2 - $1 }
  !(d <= 1e-5) { bad = 1 }
  END { exit bad || NR != 100000 }' || fault "flat and by hosts differ by more than 1e-5"
[ $failed -eq 0 ] && echo "all checks passed"
