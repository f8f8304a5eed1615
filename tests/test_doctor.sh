#!/usr/bin/env bash
# What `sprat doctor` finds where it is put.
#   test_doctor.sh SPRAT MPI      MPI: true, or the program has none
set -u
. "$(dirname "$0")/outside.sh"
sprat=$(realpath "$1")
mpi=$2
[ "$mpi" != true ] || use_mpi
scratch
export SPRAT_DATA=$work/none

# doctor STATUS ARGUMENT...: its output is in `out` and `err`.
doctor() {
  local want=$1 status
  shift
  timeout 120 env PATH="${path:-$PATH}" "$sprat" doctor "$@" >out 2>err \
    </dev/null
  status=$?
  [ $status -eq "$want" ] || fault "status $status, want $want: doctor $*"
}

echo "A machine that will do"
OMP_NUM_THREADS=3 OMP_PROC_BIND=false doctor 0
said out '^(ok|note) +OpenBLAS +OpenBLAS [0-9]' '^ok +LAPACK +[0-9]' \
  '^ok +libpng +1\.' '^ok +zlib +1\.' '^ok +libyaml +0\.' \
  '^(ok|note) +CPU .*base' '^(ok|note) +cores +[0-9]+ thread' \
  '^ok +numbers +convolution, base: right' \
  '^ok +numbers +convolution, OpenBLAS: right' \
  '^ok +numbers +factors, LAPACK: right' \
  '^(ok|note) +peak +[0-9]+ GFLOP/s' '^(ok|note) +runs +\. can hold runs' \
  'OMP_NUM_THREADS=3 \(no effect' '^note +variable +OMP_PROC_BIND=false' \
  '-> unless it is meant: unset OMP_PROC_BIND' \
  '^note +data +cifar10 is not here' '-> tools/get-data cifar10' \
  '^0 problems, [0-9]+ notes?$'
grep -q '^problem' out && fault "a problem, but status 0"
[ -z "$(find . -name '.doctor*')" ] || fault "it left files behind"
[ "$mpi" = true ] && said out 'launcher +mpirun -n 2: both ranks met'
[ "$mpi" = true ] || said out '^note +MPI +none'

echo "One core"
if command -v taskset >/dev/null; then
  taskset -c "$(taskset -cp $$ | sed -E 's/.*: ([0-9]+).*/\1/')" \
    "$sprat" doctor >out 2>err || fault "status $?"
  said out '1 thread' 'GFLOP/s of multiply-adds by one thread, [0-9]+ by 1 '
fi

echo "One object"
doctor 0 --json
[ "$(wc -l <out)" -eq 1 ] && [ ! -s err ] || fault "want one line"
said out '^\{"findings":\[\{"mark":"ok","topic":"sprat","text":' \
  '\],"problems":0,"notes":[0-9]+\}$' '"remedy":null' \
  '"remedy":"tools/get-data ptb"'

echo "Data that lack a file, and some that are none"
mkdir -p data/cifar10 data/ptb
printf '' >data/cifar10/data_batch_1.bin
echo "the ship" >data/ptb/ptb.train.txt
SPRAT_DATA=$work/data doctor 1
said out '^problem +data +.*data/cifar10.*' \
  '^problem +data +.*ptb\.valid\.txt' '^[2-9] problems'
SPRAT_DATA=$work/data doctor 1 --json
said out '"mark":"problem","topic":"data"' '"problems":[2-9]'

echo "A folder that no run can be written to"
ln -s /proc runs
doctor 1
said out '^problem +runs .*runs/\.doctor' '-> .*--run'
rm runs

echo "Files that cannot grow"
mkdir small && cd small || exit 1
(
  trap '' XFSZ
  ulimit -f 0
  PATH=/nowhere "$sprat" doctor
) 2>&1 </dev/null | cat >../out
cd ..
said out '^problem +runs .*cannot write \./\.doctor'
[ -z "$(ls -A small)" ] || fault "it left $(ls -A small) behind"

if [ "$mpi" = true ]; then
  echo "Launchers that do not launch"
  mkdir bin
  printf '#!/bin/sh\necho ------\necho "no slots here" >&2\nexit 3\n' \
    >bin/mpirun
  chmod +x bin/mpirun
  path=$work/bin:$PATH doctor 1
  said out '^problem +launcher +mpirun -n 2 failed: no slots here$'
  printf '#!/bin/sh\nexit 3\n' >bin/mpirun
  path=$work/bin:$PATH doctor 1
  said out '^problem +launcher +mpirun -n 2 failed: it says nothing$'
  path=$work/empty doctor 0
  said out '^note +launcher +there is no mpirun'

  echo "Started by one that ignores the ends of children"
  (trap '' CHLD; "$sprat" doctor) >out 2>err </dev/null || fault "status $?"
  said out 'launcher +mpirun -n 2: both ranks met'

  echo "Ranks"
  timeout 120 mpirun -n 3 "$sprat" doctor >out 2>err || fault "status $?"
  said out '^ok +ranks +3 on 1 host$' '^ok +sum +of 4 bytes' \
    '^(ok|note) +cores' '^ok +folder +all ranks see' '^0 problems'
  [ -z "$(find . -name '.doctor*')" ] || fault "ranks left files behind"
fi
[ $failed = 0 ]
