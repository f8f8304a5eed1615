#!/usr/bin/env bash
# Tables by the program: kills, stops, ranks, statuses.
#   test_table.sh SPRAT NAME      runs check_NAME below; 77: skipped
set -u
. "$(dirname "$0")/outside.sh"
sprat=$(realpath "$1")
configs=$(realpath "$(dirname "$0")/../configs")
shift
# Memory, where there is some: the syncing of files costs nothing there.
[ ! -w /dev/shm ] || export TMPDIR=${TMPDIR:-/dev/shm}
scratch
write_tiny

cat >t.yaml <<'YAML'
title: a | b
configs: [tiny.yaml]
set: [train.epochs=10, train.keep=100, data.train=4096]
seeds: [1, 2]
baseline: dense
margin: 90
rows:
  - name: dense
  - name: "DGC, 1 %"
    set: [compress.name=dgc, compress.ratio=0.01, "compress.warmup=[]"]
YAML

# expect STATUS ARGUMENT...: run sprat table; its output is in `out` and `err`.
expect() {
  local want=$1 status
  shift
  timeout 120 "$sprat" table "$@" >out 2>err </dev/null
  status=$?
  [ $status -eq "$want" ] || fault "status $status, want $want: table $*"
}

# begin FILE: start `sprat table t.yaml --run T` and wait for a file.
begin() {
  "$sprat" table t.yaml --run T >at_work 2>&1 </dev/null &
  pid=$!
  for ((i = 0; i < 3000; i++)); do
    [ ! -e "$1" ] || return 0
    kill -0 $pid 2>/dev/null || break
    sleep 0.02
  done
  fault "no $1 while the table is at work"
}

# What must not depend on how often it was interrupted.
fixed() { sed 's/,[^,]*$//' "$1/table.csv"; }

same_tables() {
  diff <(fixed once) <(fixed T) >out || fault "not the same table"
  diff <(sed 's/|[^|]*|$//' once/table.md) <(sed 's/|[^|]*|$//' T/table.md) \
    >out || fault "not the same Markdown, but for times"
  diff once/table.tex T/table.tex >out || fault "not the same LaTeX"
}

check_kill() {
  expect 0 t.yaml --run once
  said out '^table    run 4 of 4: DGC, 1 %, seed 2$' \
    '^\| DGC, 1 % \| 2 \| .* \| equal within 90 \|' '^4 of 4 runs done'
  for file in dense/seed-1/checkpoints/step-00000512 \
    dense/seed-2/config.yaml dgc-1/seed-1/checkpoints/best \
    dgc-1/seed-2/checkpoints/step-00002048; do
    begin "T/$file"
    kill -9 $pid
    wait $pid 2>/dev/null
  done
  expect 0 t.yaml --run T
  same_tables
  said T/dense/seed-1/log.txt '^resume '
  # Every line of a run has its parameters' hash.
  [ "$(grep -cE '^run,.*,[0-9a-f]{64},[0-9.]+$' T/table.csv)" = 4 ] ||
    fault "no hashes"
  # Nothing is left to do.
  expect 0 t.yaml --run T
  ! grep -q '^run ' out || fault "trained what was done"
  same_tables
}

check_stop() {
  expect 0 t.yaml --run once
  begin T/dense/seed-1/checkpoints/step-00000512
  kill -USR1 $pid
  wait $pid
  [ $? -eq 3 ] || fault "stopped by a signal: want status 3"
  said T/table.md '\| dense \| 1 \|  \| under way \|'
  expect 3 t.yaml --run T --report
  said out '^0 of 4 runs done, 4 missing; verdicts: .* 1 open'
  begin T/dgc-1/seed-1/config.yaml
  # One at a time; a look is allowed.
  kill -STOP $pid
  expect 2 t.yaml --run T
  said err 'another process is at work on this table'
  expect 3 t.yaml --run T --report
  said out 'dense/seed-2'
  kill -TERM $pid
  kill -CONT $pid
  wait $pid
  expect 0 t.yaml --run T
  same_tables
}

check_mistakes() {
  expect 2
  expect 2 nowhere.yaml
  said err 'nowhere.yaml'
  expect 2 t.yaml --repot
  said err 'did you mean --report'
  cat >wrong.yaml <<'YAML'
configs: [tiny.yaml]
metrik: test_top1
rows:
  - name: a
    set: [optim.rl=1]
  - name: b
    sed: [optim.lr=1]
YAML
  expect 2 wrong.yaml
  said err '^sprat: wrong.yaml:2:1: .*did you mean metric' \
    '^sprat: wrong.yaml:7:5: .*did you mean seeds|set'
  [ ! -e runs ] || fault "a folder in spite of mistakes"
  sed -i '/metrik/d; /sed:/d' wrong.yaml
  expect 2 wrong.yaml
  said err '^sprat: wrong.yaml:3:11: row a: .*did you mean lr'
  # Two mistakes of a row are two lines of it.
  sed 's/optim.rl=1/optim.rl=1, train.seeed=1/' wrong.yaml >both.yaml
  expect 2 both.yaml
  said err 'both.yaml:3:11: row a: .*did you mean lr' \
    '^(sprat: )?both.yaml:3:11: row a: .*did you mean seed'
  sed -i 's/^rows/ranks: 3\nrows/; s/rl=1/lr=1/' wrong.yaml
  expect 2 wrong.yaml --run W
  said err '`mpirun -n 3 sprat table wrong.yaml --run W`'
  [ ! -e W ] || fault "a folder for the wrong number of ranks"
  expect 2 t.yaml --run tiny.yaml
  said err 'tiny.yaml'
  cp t.yaml ...yaml
  expect 2 ...yaml --report
  said err 'runs/tables/...yaml: there is no such folder'
  (cat t.yaml; printf '    note: n\n  - {name: c, set: ['
    printf 'optim.lr=1, %.0s' {1..99}; echo ']}') >long.yaml
  expect 2 long.yaml
  [ "$(grep -c 'a list holds at most 64' err)" = 1 ] || fault "said again"
  # A folder of somebody's.
  mkdir theirs
  echo mine >theirs/table.md
  expect 2 t.yaml --run theirs
  said err 'theirs: holds a table.md'
  expect 2 t.yaml --run theirs --report
  [ "$(cat theirs/table.md)" = mine ] || fault "a file was replaced"
  # Another run in a cell's place, and in the table's.
  "$sprat" train tiny.yaml --run T/dense/seed-1 >out 2>err
  expect 2 t.yaml --run T/dense/seed-1
  said err 'T/dense/seed-1: is the folder of a run, which a table'
  [ ! -e T/dense/seed-1/dense ] || fault "trained within a run"
  expect 2 t.yaml --run T
  said err 'T/dense/seed-1: is a run of another configuration: data.train is'
  [ ! -e T/dense/seed-2 ] || fault "trained beside a run that is not its own"
}

# What copies and editors do to a folder; nothing is begun anew in its place.
check_damage() {
  local run=T/dense/seed-1
  expect 0 t.yaml --run T
  cp -a "$run" whole
  rm "$run/result.json" "$run/checkpoints/last"
  expect 2 t.yaml --run T
  said err "$run: has checkpoints, but no link .last.* .ln -s step-00002560 "
  ln -s step-00002560 "$run/checkpoints/last"
  expect 0 t.yaml --run T
  said out 'run 1 of 4: dense, seed 1, resumed'
  rm "$run/config.yaml"
  expect 2 t.yaml --run T
  said err "$run: has checkpoints, but no config.yaml"
  cp whole/config.yaml "$run"
  for edit in 's/"seconds": [0-9.e-]*/"seconds": 1e300/' \
    's/"params": /"params": -/' 's/"packet_bytes": /"packet_bytes": -/' \
    's/"test_top1": /"test_top1": -/'; do
    sed "$edit" whole/result.json >"$run/result.json"
    expect 2 t.yaml --run T --report
    said err "row dense: $run/result.json: .* which no run tells"
  done
  # Killed before the first checkpoint, nothing is lost.
  cp whole/result.json "$run"
  rm -r "$run/result.json" "$run"/checkpoints/[lbs]*
  expect 0 t.yaml --run T
  said out 'run 1 of 4: dense, seed 1$'
}

check_verdict() {
  cat >bad.yaml <<'YAML'
configs: [tiny.yaml]
seeds: [1, 2, 3]
baseline: dense
margin: 1
rows:
  - name: dense
  - name: untrained
    set: [optim.lr=0]
    judged: false
YAML
  expect 0 bad.yaml --run B
  said out '\| untrained \| 3 \| .* \| worse \|' '^6 of 6 runs done$' \
    'untrained: its verdict does not count'
  sed -i '/judged/d' bad.yaml
  expect 1 bad.yaml --run B
  said out '1 worse'
  sed -i 's/optim.lr=0/optim.lr=1e6, "model.hidden=[64,64,64]"/' bad.yaml
  expect 1 bad.yaml --run B2
  said out '^table    failed: .*not finite' '3 failed' '\| failed \|'
  said B2/table.csv '^run,untrained,2,failed,'
}

check_ranks() {
  use_mpi
  local m="mpirun -n 2"
  sed -i 's/^seeds/ranks: 2\nseeds/; s/epochs=10/epochs=4/' t.yaml
  expect 2 t.yaml --run T
  timeout 120 $m "$sprat" table t.yaml --run once >out 2>err </dev/null ||
    fault "two ranks: status $?"
  said out '^batch    16, 8 on each of 2 ranks' '^4 of 4 runs done'
  [ "$(grep -c '^4 of 4' out)" = 1 ] || fault "said by both"
  # Made by train, killed on the way, and a table that goes on with both.
  timeout 120 $m "$sprat" train tiny.yaml train.epochs=4 data.train=4096 \
    train.seed=1 --run T/dense/seed-1 >out 2>err </dev/null
  timeout 120 $m "$sprat" train tiny.yaml train.epochs=4 data.train=4096 \
    train.seed=2 train.max_minutes=0.00001 --run T/dense/seed-2 >out 2>err \
    </dev/null
  timeout 120 $m "$sprat" table t.yaml --run T >out 2>err </dev/null ||
    fault "two ranks, going on: status $?"
  ! grep -q 'run 1 of 4' out || fault "trained what was done"
  said out 'run 2 of 4: dense, seed 2, resumed'
  same_tables
  # One run fails on both ranks, and the next begins.
  sed -i 's/compress.name=dgc.*/optim.lr=1e6, "model.hidden=[64,64,64]"]/' t.yaml
  timeout 120 $m "$sprat" table t.yaml --run F >out 2>err </dev/null &&
    fault "a run that fails: want a status"
  said F/table.csv '^run,"DGC, 1 %",1,failed' '^run,"DGC, 1 %",2,failed'
  expect 1 t.yaml --run F --report
}

# Those that are brought; none of their data is opened.
check_configs() {
  local table
  mkdir T
  for table in "$configs"/tables/*.yaml; do
    expect 3 "$table" --run T --report
    said out '^0 of [0-9]+ runs done'
  done
}

"check_$1"
[ $failed = 0 ]
