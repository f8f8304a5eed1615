#!/usr/bin/env bash
# Training on several ranks: the laws of ranks_laws.c on 1 to 4 of them.
#   test_ranks.sh RANKS-LAWS      77: skipped, there is no mpirun
set -euo pipefail
. "$(dirname "$0")/outside.sh"
laws=$(realpath "$1")
use_mpi
scratch

cat >config.yaml <<'END'
model: {name: mlp, hidden: [32, 16]}
data: {name: synthetic, shape: [4, 4, 3], classes: 4, train: 48, test: 8}
train: {epochs: 9, batch: 12, threads: 1}
optim: {name: sgd, momentum: 0.9, lr: 0.1}
END
for ranks in 1 2 3 4; do
  echo "== $ranks ranks"
  if [ "$ranks" -eq 1 ]; then
    "$laws" "$work/config.yaml"
  else
    timeout 120 mpirun -n "$ranks" "$laws" "$work/config.yaml"
  fi
done
