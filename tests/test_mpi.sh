#!/usr/bin/env bash
# Operations between ranks under mpirun, and jobs of which one rank goes wrong.
#   test_mpi.sh COMM_RANKS REFUSE_RANKS     77: skipped, there is no mpirun
set -u
. "$(dirname "$0")/outside.sh"
ranks=$(realpath "$1")
refuse=$(realpath "$2")
use_mpi
scratch
export UBSAN_OPTIONS=halt_on_error=1

# job SECONDS RANKS SCENARIO: what it says is in `out` and `err`.
job() {
  local limit=$1 n=$2
  shift 2
  timeout --kill-after=2 "$limit" mpirun -n "$n" "$ranks" "$@" >out 2>err </dev/null
  status=$?
}

# Without mpirun: a job of one.
"$ranks" everything >out 2>err || fault "one rank alone"
for n in 1 2 3 4; do
  job 60 $n everything
  [ $status -eq 0 ] && grep -q "^$n ranks: done" out ||
    fault "status $status on $n ranks"
done

# Stopped as a whole, for longer than the time-out.
job 30 3 suspended
[ $status -eq 0 ] || fault "status $status when suspended"

# A job in which rank 1 goes wrong ends within the time-out, with a status and
# a reason.
goes_wrong() {
  job 30 "$1" "$2"
  [ $status -ne 0 ] && [ $status -ne 124 ] && [ $status -ne 137 ] ||
    fault "status $status when rank 1 $2"
}

goes_wrong 3 stops
# Whoever is first ends the others, who may have said nothing yet.
said err 'rank [02]: dense: waited 1 s for rank 1 \([^)]*\), which has not answered$'
goes_wrong 3 computes
said err 'rank [02]: dense: waited 1 s for rank 1 \(.*\), which is still at operation ([0-9]+) of ([0-9]+)'
goes_wrong 2 differs
said err 'rank [01]: rank [01] \(.*\) sent|MPI_Test failed: .*truncated'
goes_wrong 2 unclosed
said err 'sprat: check: waited 1 s for rank 1 \(.*\), which is still at operation'
# Nor is the time counted in which a rank did not run itself.
goes_wrong 2 continued
said err 'rank 0: dense: waited 1 s for rank 1 .*; this process itself did not run for [34] s'
# What comes too late is not received into arrays that nobody keeps.
goes_wrong 2 late
said err 'rank 0: "\.\."; save: waited 1 s for rank 1'
# MPI that begins too late finds what it was given.
goes_wrong 2 unopened
said err 'MPI has not begun within 0.2 s' 'of 2 ranks, lowest -5'
job 30 3 dies
[ $status -ne 0 ] && [ $status -ne 124 ] || fault "status $status: rank 1 dies"
said err 'signal 9'

# refused SCENARIO STATUS MESSAGES: how an error is told, and ends the job.
refused() {
  timeout --kill-after=2 15 mpirun -n 3 "$refuse" "$1" >out 2>err </dev/null
  status=$?
  [ $status -eq "$2" ] || fault "status $status, want $2: $1"
  [ "$(grep -c '^sprat: ' err)" -eq "$3" ] || fault "want $3 message(s): $1"
}

refused together 2 1
said err '^sprat: rank 1 \([^)]*\): no disk$'
refused differ 2 1
said err '^sprat: it: rank 1 differs from rank 0'
refused stopped 2 1
said err '^sprat: stopped by all$'
refused alone 1 1
said err '^sprat: rank 1 \([^)]*\): no disk$'

[ $failed -eq 0 ] || exit 1
echo "all as it should be"
