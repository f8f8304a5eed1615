#!/usr/bin/env bash
# tools/netlab: hosts of their own, links as slow as asked, counted bytes, and
# nothing left behind.
#   test_netlab.sh SOURCE-FOLDER      77: skipped
set -u
. "$(dirname "$0")/outside.sh"
netlab=$(realpath "$1")/tools/netlab
scratch
PATH=$PATH:/usr/sbin:/sbin

# lab STATUS ARGUMENT...: run it; its output is in `out` and `err`. No
# namespace may remain.
lab() {
  local want=$1 status pid
  shift
  "$netlab" "$@" >out 2>err </dev/null &
  pid=$!
  wait $pid
  status=$?
  [ $status -eq "$want" ] || fault "status $status, want $want: netlab $*"
  gone $pid
}

gone() {
  ! command -v ip >/dev/null || ! ip netns list | grep "^netlab-$1-" ||
    fault "namespaces remain"
}

mistakes() {
  lab 2
  said err '^usage: tools/netlab'
  lab 2 2 1gbit
  lab 2 1 1gbit true
  said err 'N: 1 is not a whole number from 2 to 200'
  lab 2 2 fast true
  said err 'fast is no rate.*kbit'
  lab 2 2 1kbit true
  lab 2 --ranks-per-host 0 2 1gbit true
  lab 2 --unknown 2 1gbit true
}

# Whether there is all that a lab needs.
able() {
  local tool
  for tool in ip tc unshare setpriv taskset hostname cc mpirun mpicc; do
    command -v $tool >/dev/null || { echo "skipped: no $tool"; return 1; }
  done
  [ "$(id -u)" -eq 0 ] || { echo "skipped: not root"; return 1; }
  ip netns add netlab-test-$$ 2>/dev/null &&
    ip -n netlab-test-$$ link add veth0 type veth peer name veth1 &&
    tc -n netlab-test-$$ qdisc add dev veth0 root tbf rate 1mbit burst 16kb \
      latency 1ms
  local status=$?
  ip netns del netlab-test-$$ 2>/dev/null
  [ $status -eq 0 ] || echo "skipped: no namespaces, links or limits here"
  return $status
}

refusals() {
  local tool
  setpriv --reuid 65534 --clear-groups cp /dev/null /dev/null 2>/dev/null &&
    setpriv --reuid 65534 --clear-groups test -x "$netlab" && {
    setpriv --reuid 65534 --clear-groups "$netlab" 2 none true 2>err
    [ $? -eq 2 ] || fault "without root: want status 2"
    said err 'need root'
  }
  mkdir bin
  for tool in bash awk id unshare setpriv mount taskset hostname cc; do
    ln -s "$(command -v $tool)" bin/$tool
  done
  PATH=$work/bin lab 2 2 none true
  said err 'mpirun is missing.*openmpi-bin'
}

# Rank 0 sends 1,000,000 bytes to rank 1: 80 ms at 100 Mbit/s and 1,448 bytes
# in packets of 1,514 (its interface sees larger ones before they are cut).
transfer() {
  cat >send.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
static char message[1000000];
int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double begin = MPI_Wtime();
    if (rank == 0)
        MPI_Send(message, sizeof message, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    else
        MPI_Recv(message, sizeof message, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (rank == 1)
        printf("%.0f ms, %s, %s\n", (MPI_Wtime() - begin) * 1e3,
               getenv("LAB_TEST"), argc > 1 ? argv[1] : "");
    MPI_Finalize();
    return argc > 2 ? atoi(argv[2]) : 0;
}
C
  mpicc -o send send.c || { fault "mpicc"; return; }
  LAB_TEST='a b' lab 6 --json report 2 100mbit ./send "c  'd'" 6
  said out "^[0-9]+ ms, a b, c  'd'$"
  said err 'netlab: 2 hosts at 100mbit: 100000 bytes take' \
    'netlab: host1 sent [0-9]+ bytes in [0-9]+ packets, received' \
    'netlab: host2 sent'
  said report '^\{"rate":"100mbit","bits_per_s":100000000,' \
    '"status":6,"hosts":\[\{"host":"host1","address":"10.99.0.1","tx_bytes":'
  awk '$1 < 75 { exit 1 }' out || fault "faster than the link"
  awk '/host1 sent/ && ($4 < 1000000 || $4 > 1100000) { exit 1 }
    /host2 sent/ && $4 > 100000 { exit 1 }
    /host2 sent/ && ($10 < 1000000 || $10 > 1100000) { exit 1 }' err ||
    fault "the counters do not fit 1,000,000 bytes"
}

# Three hosts of two ranks: names, order, places, and a look-up.
places() {
  lab 0 --ranks-per-host 2 --mpirun '-x LAB=yes' 3 none bash -c \
    'echo "$OMPI_COMM_WORLD_RANK $(hostname) $(getent hosts host3) $LAB $PWD"'
  sort out | sed 's/ \+/ /g' >sorted
  for k in 1 2 3; do
    echo "$((2 * k - 2)) host$k 10.99.0.3 host3 yes $work"
    echo "$((2 * k - 1)) host$k 10.99.0.3 host3 yes $work"
  done >want
  cmp -s sorted want || fault "ranks are not where they should be"
  said err 'host3 sent'
}

# Interrupted in the middle, or killed.
interrupted() {
  local pid signal
  set -m # or the background would ignore SIGINT
  for signal in USR1 INT; do
    "$netlab" 2 none bash -c \
      'trap "exit 9" USR1; echo up; while :; do sleep 0.1; done' \
      >out 2>err </dev/null &
    pid=$!
    for _ in $(seq 100); do
      [ "$(grep -c up out)" -lt 2 ] || break
      sleep 0.1
    done
    kill -s $signal $pid
    wait $pid
    set -- $? $signal
    [ "$2 $1" = "USR1 9" ] || [ "$2 $1" != "INT 0" ] ||
      fault "SIG$2: status $1"
    gone $pid
  done
  set +m
}

mistakes
able || exit $((failed > 0 ? 1 : 77))
refusals
transfer
places
interrupted
[ $failed -eq 0 ]
