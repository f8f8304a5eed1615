#!/usr/bin/env bash
# The sprat program on several ranks, from outside: how jobs end, what they
# leave, and that going on is as if they had never stopped.
#   test_ranks_program.sh SPRAT NAME [SHIM]   runs check_NAME below; 77: skipped
set -u
. "$(dirname "$0")/outside.sh"
sprat=$(realpath "$1")
configs=$(realpath "$(dirname "$0")/../configs")
shift
shim=$(realpath "${2:-/dev/null}")
use_mpi
scratch
write_tiny

# Dropout, states that are carried on, and what a compressor has not yet sent.
cat >text.yaml <<'YAML'
model: {name: lstm_lm, hidden: 16, embedding: 16, layers: 2, dropout: 0.3}
data: {name: synthetic, vocab: 50, train: 4000, test: 400}
train: {epochs: 3, batch: 10, bptt: 7, eval_batch: 8, threads: 1, seed: 5,
  checkpoint_steps: 10, keep: 3}
optim: {lr: 0.5, momentum: 0.9, clip: 0.5}
compress: {name: dgc, ratio: 0.01, warmup: [1, 0.25], warmup_epochs: 1}
log: {every: 1}
YAML

# job STATUS COMMAND...: under mpirun, whose status is that of the ranks.
job() {
  local want=$1 status
  shift
  timeout --kill-after=5 120 mpirun "$@" >out 2>err </dev/null
  status=$?
  [ $status -eq "$want" ] || fault "status $status, want $want: mpirun $*"
}

ended() { # ended RUN STATUS
  grep -q "\"status\": \"$2\"" "$1/result.json" ||
    fault "$1/result.json: want status $2"
}

# The arrays of all ranks and together, of the last checkpoint.
state() { (cd "$1/checkpoints/last" && sha256sum ./*.safetensors); }

# The processes of the ranks: children of what mpirun has started.
ranks_of() { pgrep -P "$1" -x sprat; }

# The process of one rank, as the launcher has told it: rank_of MPIRUN RANK
rank_of() {
  local pid
  for pid in $(ranks_of "$1"); do
    tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null |
      grep -qx "OMPI_COMM_WORLD_RANK=$2" && echo "$pid"
  done
}

once() { # once PATTERN: of all ranks one says it
  [ "$(grep -cE -- "$1" err)" -eq 1 ] || fault "want one message with: $1"
}

# begin RUN RANKS ARGUMENT...: in the background, as $mpi; waits until step 5.
begin() {
  local run=$1 n=$2 i
  shift 2
  mpirun -n "$n" "$sprat" "$@" --run "$run" >out 2>err </dev/null &
  mpi=$!
  for i in $(seq 300); do
    grep -q '"step":5,' "$run/metrics.jsonl" 2>/dev/null && return
    sleep 0.1
  done
  fault "$run does not come to step 5"
}

# Everything that a run tells is told once, and it ends as one on one rank does.
check_run() {
  job 0 -n 3 "$sprat" train tiny.yaml --run run
  [ "$(grep -c 'epoch 3/3 done' out)" -eq 1 ] || fault "want one line an epoch"
  said out 'up to 6 on each of 3 ranks' 'exchange none'
  said run/result.json '"ranks": 3' '"mpi_bytes"' '"collectives"'
  ended run done
  "$sprat" eval run >out 2>err || fault "eval of a run on ranks"
  job 2 -n 2 "$sprat" train tiny.yaml --run run
  [ "$(grep -c 'there already' err)" -eq 1 ] || fault "want one message"
  job 2 -n 2 "$sprat" train tiny.yaml optim.nam=x --run no
  [ "$(grep -c 'optim.nam' err)" -eq 1 ] || fault "want one message"
  job 4 -n 2 "$sprat" train tiny.yaml optim.lr=1e6 optim.weight_decay=1000 \
    --run far
  said err 'not finite'
  ended far not_finite
  job 2 -n 2 "$sprat" eval run
  said err 'eval: is one process'
  # Packets that would all travel dense are no compression.
  job 2 -n 8 "$sprat" train tiny.yaml compress.name=dgc compress.ratio=0.3 \
    compress.warmup=[] --run dense
  said err 'would compress nothing on 8 ranks'
  # The only rank of a compressor: all of it, and a warning.
  "$sprat" train tiny.yaml compress.name=dgc compress.warmup=[] --run one \
    >out 2>err || fault "dgc on one rank"
  said out 'warning: compress.name is dgc, but this is the only rank'
  [ "$(grep -o '"mpi_bytes": 0' one/result.json | head -1)" ] ||
    fault "want no bytes over MPI on one rank"
}

# The ranks' timelines are one, on one clock, and every other file has every
# step once, when a rank was killed on the way, and on fewer ranks in the end.
check_trace() {
  local check=$shim k
  begin run 3 train text.yaml train.epochs=100000 log.trace=true \
    log.trace_steps=30 log.csv=true log.tensorboard=true
  kill -9 "$(rank_of $mpi 1)"
  wait $mpi
  [ $? -ne 0 ] || fault "want a status that is not 0"
  # The step from which it goes on, by the checkpoint.
  k=$(grep -oE '"step": ?[0-9]+' run/checkpoints/last/manifest.json | head -1)
  k=${k##*[: ]}
  job 0 -n 3 "$sprat" resume run train.max_steps=$((k + 40)) \
    log.trace_steps=100
  "$check" run/trace.json 3 1 $((k < 30 ? k : 30)) >out 2>err &&
    "$check" run/trace.json 3 $((k + 1)) $((k + 40)) >out 2>err ||
    fault "the trace of 3 ranks, killed and gone on from $k"
  said run/log.txt "trace .* 40 steps, .* to $((k + 40)), on 3 ranks whose clock"
  job 0 -n 2 "$sprat" resume run train.max_steps=$((k + 60))
  "$check" run/trace.json 2 $((k + 41)) $((k + 60)) |
    grep -v 'rank that is not there' >out && fault "the trace goes on wrongly"
  said run/log.txt "trace .* 20 steps, $((k + 41)) to $((k + 60)), on 2 ranks" \
    'rank 1 .*computing .*waiting .*last at [0-9]+ of [0-9]+, by'
  cut -d, -f2 run/steps.csv | tail -n +2 | diff - <(seq $((k + 60))) >out ||
    fault "steps.csv: want each step once"
}

# What ranks must have in common is compared before step 0.
check_differ() {
  job 2 -n 1 "$sprat" train tiny.yaml --run a : -n 1 "$sprat" check tiny.yaml
  said err 'the command: rank 1'
  job 2 -n 1 "$sprat" train tiny.yaml --run a : \
    -n 1 "$sprat" train tiny.yaml --run b
  said err 'the command: rank 1' 'run b' 
  job 2 -n 1 "$sprat" train tiny.yaml --run a : \
    -n 1 "$sprat" train tiny.yaml 'model.hidden=[64]' --run a
  said err 'the configuration.*rank 1' 'hidden'
  # Another build of the same version.
  cp "$sprat" sprat
  printf x >>sprat
  job 2 -n 1 "$sprat" train tiny.yaml --run d : \
    -n 1 ./sprat train tiny.yaml --run d
  said err 'the program: rank 1 differs .*SHA-256 [0-9a-f]{64}" on rank 1'
  mkdir here there
  printf 'P' >here/x
  for d in here there; do
    mkdir -p $d/text
    echo 'a b c d e f g h a b c d' >$d/text/train.txt
    cp $d/text/train.txt $d/text/test.txt
    cp $d/text/train.txt $d/text/valid.txt
  done
  echo 'a b c d e f g h a b c a' >there/text/train.txt
  cat >words.yaml <<'YAML'
model: {name: lstm_lm, hidden: 8, embedding: 8}
data: {name: text, root: text}
train: {epochs: 1, batch: 2, bptt: 3, threads: 1}
YAML
  job 2 -n 1 -x SPRAT_DATA=here "$sprat" train words.yaml --run b : \
    -n 1 -x SPRAT_DATA=there "$sprat" train words.yaml --run b
  said err 'rank 1' 'train'
  job 2 -n 1 -x SPRAT_DATA=here "$sprat" train words.yaml --run c : \
    -n 1 -x SPRAT_DATA=nowhere "$sprat" train words.yaml --run c
  said err 'rank 1' 'nowhere'
  [ ! -e a ] && [ ! -e b ] && [ ! -e c ] && [ ! -e d ] || fault "want no run folder"
  # Weights of full rank here, of low rank there.
  "$sprat" train tiny.yaml lowrank.name=pufferfish lowrank.warmup_epochs=1 \
    lowrank.full= --run low >out 2>err || fault "status $?: low"
  cp low/checkpoints/start/model.safetensors here/w
  cp low/checkpoints/last/model.safetensors there/w
  for d in here there; do cp tiny.yaml $d; done
  set -- "$sprat" train tiny.yaml lowrank.name=pufferfish \
    lowrank.warmup_epochs=0 lowrank.full= model.init=w --run "$PWD/e"
  job 2 -n 1 -wdir here "$@" : -n 1 -wdir there "$@"
  said err 'rank 1 .*w: of another model' '_u.weight: not in the model'
  job 2 -n 1 -wdir there "$@" : -n 1 -wdir here "$@"
  said err 'rank 1 .*w: of another model' '_u.weight: missing'
  [ ! -e e ] || fault "want no run folder"
}

# A file system that one host has mounted to be read only is found before step 0.
check_read_only() {
  mkdir here
  unshare -m mount --bind here here 2>/dev/null ||
    { echo "skipped: may not mount"; exit 77; }
  job 2 -n 1 "$sprat" train tiny.yaml --run here/run : -n 1 unshare -m bash -c \
    'mount --bind here here && mount -o remount,ro,bind here && exec "$@"' \
    read_only "$sprat" train tiny.yaml --run here/run
  once 'rank 1 \(.*: cannot save checkpoints in here/run/checkpoints: Read-only'
  [ ! -e here/run ] || fault "want no run folder"
}

check_signal() {
  begin run 3 train text.yaml train.epochs=100000 train.checkpoint_steps=0
  kill -USR1 $mpi
  wait $mpi
  [ $? -eq 3 ] || fault "SIGUSR1: want status 3"
  ended run stopped
  job 0 -n 3 "$sprat" resume run train.epochs=1
}

# A folder that is gone is not made anew by halves.
check_removed() {
  begin run 2 train text.yaml train.epochs=100000
  mv run gone
  wait $mpi
  [ $? -eq 1 ] || fault "want status 1"
  said err 'the run.s folder was removed|No such file or directory' # while saving
  [ ! -e run ] || fault "want no half of a run"
}

# gone NAME SIGNAL: rank 1 gets it; the job ends within the time-out, and its
# last checkpoint can be gone on from.
gone() {
  local i
  begin "$1" 3 train text.yaml train.epochs=100000 dist.timeout_s=2
  kill "-$2" "$(rank_of $mpi 1)" || fault "there is no rank 1"
  for i in $(seq 150); do
    kill -0 $mpi 2>/dev/null || break
    sleep 0.1
  done
  kill -0 $mpi 2>/dev/null && fault "$2: the job goes on" && kill -9 $mpi
  wait $mpi
  [ $? -ne 0 ] || fault "$2: want a status that is not 0"
  [ "$2" != STOP ] || said err 'rank 1 \(.*has not answered'
  job 0 -n 3 "$sprat" resume "$1" train.epochs=1
}

check_lost() {
  gone killed KILL
  gone halted STOP
  ended halted done
}

# A rank that cannot write its file fails the save on all, and older
# checkpoints stay.
check_full() {
  mkdir small
  if ! mount -t tmpfs -o size=300k tmpfs small 2>/dev/null; then
    echo "skipped: may not mount a small file system"
    exit 77
  fi
  job 1 -n 3 "$sprat" train text.yaml train.keep=1000 train.epochs=1000 \
    --run small/run
  said err 'space'
  [ "$(grep -c 'the older checkpoints are as they were' err)" -eq 1 ] ||
    fault "want one message"
  [ -z "$(find small/run/checkpoints -name '.tmp*')" ] ||
    fault "want no half of one"
  "$sprat" eval small/run >out 2>err || fault "eval after a full disk"
  umount small
}

# Killed at five moments, and gone on from each time: the bits are those of a
# run that never was.
check_kill() {
  local i=0 met=0 from more step
  job 0 -n 4 "$sprat" train text.yaml train.epochs=30 --run whole
  begin parts 4 train text.yaml train.epochs=30
  for more in 13 7 33 28 51; do
    # From where this job goes on, and so many steps further.
    while [ "$(grep -c '^resume ' parts/log.txt)" -lt $i ] &&
      kill -0 $mpi 2>/dev/null; do
      sleep 0.02
    done
    from=$(grep -oE '^resume +after step [0-9]+' parts/log.txt | tail -1)
    while step=$(tail -1 parts/metrics.jsonl | grep -o '"step":[0-9]*');
          step=${step#*:}; from=${from##* };
          [ "${step:-0}" -lt $((${from:-0} + more)) ] &&
            kill -0 $mpi 2>/dev/null; do
      sleep 0.02
    done
    kill -9 $(ranks_of $mpi) 2>/dev/null
    wait $mpi || met=$((met + 1))
    [ $i -eq 4 ] || { mpirun -n 4 "$sprat" resume parts >out 2>err & mpi=$!; }
    i=$((i + 1))
  done
  [ $met -eq 5 ] || fault "only $met of 5 kills met a job at work"
  job 0 -n 4 "$sprat" resume parts
  [ "$(state parts)" = "$(state whole)" ] ||
    fault "the bits differ from those of a run that never stopped"
  [ "$(tail -1 parts/hashes.jsonl)" = "$(tail -1 whole/hashes.jsonl)" ] ||
    fault "the hashes differ"
}

# On other ranks the sum of what was not sent stays.
check_other() {
  local n
  job 0 -n 4 "$sprat" train text.yaml train.max_steps=100 --run from
  for n in 2 8; do
    rm -rf on
    cp -a from on
    job 0 -n $n "$sprat" resume on train.max_steps=160
    said out "ranks    $n, up to here there were 4" 'exact .*not yet sent'
  done
  job 2 -n 4 "$sprat" resume from compress.name=none
  said err 'compress'
  for n in 4 2; do # a momentum that the compressor would have to keep, or not
    job 2 -n $n "$sprat" resume from optim.momentum=0
    said err 'optim.momentum: .*holds momenta .*dgc_momentum'
  done
}

# Two ranks have the same weights whatever the exchange: every hash of a run is
# reproduced by replaying it.
check_verify() {
  job 0 -n 2 "$sprat" train text.yaml train.max_steps=60 --run run
  job 0 -n 2 "$sprat" resume run train.max_steps=0
  job 0 -n 2 "$sprat" verify run --steps 100
  said out '1 parameter hash '
  job 2 -n 3 "$sprat" verify run --steps 100
  said err '2 ranks'
}

# sum PATTERN FILE: of the numbers behind it.
sum() { grep -oE "\"$1\": [0-9]+" "$2" | awk '{ s += $2 } END { print s + 0 }'; }

# What is told as handed to MPI is what a layer before MPI counts, and a packet
# is made of what the format says.
check_bytes() {
  [ -f "$shim" ] || { echo "skipped: a sanitizer is loaded first"; exit 77; }
  local run kept=compress.warmup=[] k
  for run in none dgc gradient_dropping terngrad fp16 powersgd signum; do
    [ $run = dgc ] || kept=train.seed=3
    [ $run != dgc ] || kept=compress.warmup=[]
    [ $run != signum ] || kept=optim.momentum=0
    job 0 -n 2 -x LD_PRELOAD="$shim" "$sprat" train tiny.yaml $kept \
      compress.name=$run train.max_steps=3 --run $run
    # All but what the ranks say to each other after the result was written.
    told=$(sed -n '/"collectives"/,$p' $run/result.json |
      grep -oE '"mpi_bytes": [0-9]+' | awk '{ s += $2 } END { print s }')
    counted=$(awk '/^shim: 0/ { print $3 }' err)
    [ -n "$counted" ] && [ $((counted - told)) -ge 0 ] &&
      [ $((counted - told)) -le 64 ] ||
      fault "$run: told $told bytes, counted ${counted:-none}"
  done
  # 128 x 36 + 4 x 128 weights at 0.1 %, three steps: 5 and 1 entries each, of
  # 4 + 2 bytes, and 8 bytes of headers for either.
  k=$(sed -n '/"bytes"/,/"tensors"/p' dgc/result.json)
  [[ $k = *'"headers": 48,'*'"values": 72,'*'"places": 36,'* ]] ||
    fault "packets are not of 18 entries: $k"
}

# What rank 0 alone cannot write ends all, with its reason.
check_metrics() {
  job 1 --mca btl self,tcp -n 1 bash -c 'ulimit -f 64 && exec "$@"' limited \
    "$sprat" train text.yaml train.epochs=1000 train.checkpoint_steps=0 \
    --run run : -n 2 "$sprat" train text.yaml train.epochs=1000 \
    train.checkpoint_steps=0 --run run
  once 'metrics.jsonl: File too large'
  ! grep -q 'not answered' err || fault "ranks were left waiting"
  ended run failed
}

# Two copies of the images, one for rank 1 alone.
images() {
  local i k
  base64 -d >grey.png <<'B64'
iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAAAAABX3VL4AAAADklEQVR42mPgOsEQJQcABCoBS9Oj
KMcAAAAASUVORK5CYII=
B64
  mkdir -p here/set/{train,test}/{a,b}
  for k in here/set/*/*; do
    for i in $(seq 40); do cp grey.png "$k/$i.png"; done
  done
  cp -r here there
}

# broken PART: rank 1 cannot read it any more.
broken() {
  local i file
  mpirun -n 1 -x SPRAT_DATA=here "$sprat" train images.yaml --run "$1" : \
    -n 1 -x SPRAT_DATA=there "$sprat" train images.yaml --run "$1" \
    >out 2>err </dev/null &
  mpi=$!
  for i in $(seq 300); do
    grep -q '"step":5,' "$1/metrics.jsonl" 2>/dev/null && break
    sleep 0.1
  done
  for file in there/set/"$1"/*/*.png; do echo broken >"$file"; done
  wait $mpi
  [ $? -eq 1 ] || fault "want status 1"
  once 'rank 1 \(.*there/set/'"$1"'/.*png'
  ended "$1" failed
}

check_reading() {
  cat >images.yaml <<'YAML'
model: {name: mlp}
data: {name: folder, root: set, channels: 1}
train: {epochs: 100000, batch: 4, threads: 1}
log: {every: 1}
YAML
  images
  broken train
  rm -r here there
  images
  broken test
}

# stopped RANKS FILE OVERRIDE...: and gone on from, has the bits of a run that
# never was; so have the ranks' own files.
stopped() {
  local n=$1
  shift
  rm -rf whole parts
  job 0 -n "$n" "$sprat" train "$@" --run whole
  job 0 -n "$n" "$sprat" train "$@" train.max_steps=23 --run parts
  job 0 -n "$n" "$sprat" resume parts train.max_steps=40
  [ "$(state parts)" = "$(state whole)" ] ||
    fault "the bits differ from those of a run that never stopped: $*"
}

check_resume() {
  cat >norm.yaml <<'YAML'
model: {name: resnet, depth: 8, width: 0.25}
data: {name: synthetic, shape: [8, 8, 3], classes: 4, train: 96, test: 16}
train: {epochs: 9, batch: 8, threads: 1, seed: 3}
optim: {lr: 0.05, momentum: 0.9}
compress: {name: dgc, ratio: 0.01, warmup: [0.25], warmup_epochs: 1}
YAML
  local steps=train.max_steps=40
  stopped 4 text.yaml $steps dist.hierarchy=node dist.ranks_per_node=2
  stopped 3 norm.yaml $steps dist.sync_bn=true
  stopped 3 text.yaml $steps dist.exchange=merge
  stopped 4 norm.yaml $steps dist.exchange=merge dist.hierarchy=node \
    dist.ranks_per_node=2
}

# Weights with one infinite number, which only a word in rank 1's column meets:
# what the others encode is as good as ever.
# Rounds of pruning with batch norms, whose statistics are each rank's own: the
# same bits when stopped within a round, at its end and at the rewinding; on
# other ranks they go on with averages.
check_prune() {
  cat >prune.yaml <<'YAML'
model: {name: resnet, depth: 8, width: 0.25}
data: {name: synthetic, shape: [8, 8, 3], classes: 4, train: 96, test: 16}
train: {epochs: 5, batch: 8, threads: 1, seed: 3, keep: 0}
optim: {lr: 0.05, momentum: 0.9, weight_decay: 0.001}
dist: {check_every: 1}
prune: {name: magnitude, share: 0.3, rounds: 2, rewind_epoch: 1}
YAML
  local steps
  job 0 -n 3 "$sprat" train prune.yaml --run whole
  said out 'round 2/2, 49\.' 'prune  .* removed'
  job 0 -n 3 "$sprat" train prune.yaml --run parts train.max_steps=12
  for steps in 13 60 61 107 108 120 0; do
    job 0 -n 3 "$sprat" resume parts train.max_steps=$steps
    [ $steps -ne 108 ] || cp -r parts other
  done
  [ "$(state whole)" = "$(state parts)" ] ||
    fault "parts differ from a run that never stopped"
  job 0 -n 3 "$sprat" verify whole --steps 1000
  said out '1 parameter hash '
  job 0 -n 2 "$sprat" resume other train.max_steps=0
  said out 'round 2/2, 49\.' \
    'statistics go back to their average over 3 ranks: there are 2 now'
  ended other done
}

# Low rank from step 12 on, with what was not sent and running statistics: a run
# that stops before, at or behind the switch goes on as if it had not.
write_switch() {
  cat >switch.yaml <<'YAML'
model: {name: resnet, depth: 8, shortcut: B}
data: {name: synthetic, shape: [8, 8, 3], classes: 4, train: 96, test: 40,
  augment: flip}
train: {epochs: 3, batch: 16, eval_batch: 16, threads: 1, keep: 100}
optim: {lr: 0.05, momentum: 0.9}
compress: {name: dgc, ratio: 0.05, warmup: []}
lowrank: {name: pufferfish, warmup_epochs: 2, full: conv1}
YAML
}

check_switch() {
  local how at
  write_switch
  for how in 'residual=flush' 'residual=project lowrank.at_switch=project'; do
    # shellcheck disable=SC2086 # two arguments
    set -- switch.yaml lowrank.$how
    job 0 -n 4 "$sprat" train "$@" --run whole --overwrite
    [ "$(grep -c '^switch .* rank  ' out)" -eq 9 ] || fault "want 9 layers"
    for at in 11 12 13; do
      job 0 -n 4 "$sprat" train "$@" train.max_steps=$at --run part --overwrite
      job 0 -n 4 "$sprat" resume part train.max_steps=0
      [ "$(state whole)" = "$(state part)" ] ||
        fault "$how, stopped after $at: not the same"
    done
  done
  "$sprat" eval part --checkpoint step-00000012 --json >out 2>err ||
    fault 'the checkpoint of full rank cannot be scored'
  job 0 -n 2 "$sprat" resume part train.epochs=4
}

# number KEY...: the number in $run/result.json behind the first of these keys
# and, behind that, each next one.
number() {
  local key text
  text=$(tr -d ' \n' <"$run/result.json")
  for key; do text=${text#*"\"$key\":"}; done
  echo "${text%%[!-+.e0-9]*}"
}

# The bytes of a run with a switch are those behind it, with its own. Of 14508
# weights the flush is a sum over two ranks, which hands half of them to MPI
# twice; factors go to the other rank from the one that has found them.
check_switch_bytes() {
  local run=run step uses use
  write_switch
  sed -E 's/warmup_epochs: 2/warmup_epochs: 1/; s/resnet, depth: 8.*/mlp, hidden: [64, 32]}/' \
    switch.yaml >bytes.yaml
  job 0 -n 2 "$sprat" train bytes.yaml lowrank.full= --run run
  said out 'switch .* bytes handed to MPI, beside'
  [ "$(number bytes from_step)" = 6 ] || fault 'want bytes from step 6 on'
  [ "$(number bytes to_step)" = 18 ] || fault 'want bytes to step 18'
  uses=0
  for use in dense sizes packet node status; do
    grep -q "\"$use\": {" run/result.json || continue
    step=$(number bytes collectives $use mpi_bytes)
    uses=$((uses + step))
  done
  [ "$(number bytes ranks mpi_bytes)" = "$uses" ] ||
    fault "ranks[0] has $(number bytes ranks mpi_bytes), collectives $uses"
  [ "$(number bytes collectives switch mpi_bytes)" -ge 58032 ] ||
    fault 'the flush is not in what the switch has sent'
}

# spoil FILE TENSOR: its last number becomes none.
spoil() {
  local size end
  size=$(od -An -t u8 -N 8 "$1")
  end=$(head -c $((8 + size)) "$1" | tr '}' '\n' |
    sed -nE "/\"$2\"/s/.*\"data_offsets\":\[[0-9]+,([0-9]+)\].*/\\1/p")
  printf '\0\0\300\177' | dd of="$1" bs=1 conv=notrunc \
    seek=$((8 + size + end - 4)) 2>err || fault "dd"
}

# A switch that fails does so on all ranks, with one message.
check_switch_fails() {
  write_switch
  "$sprat" train switch.yaml compress.name=none train.max_steps=1 --run start \
    >out 2>err || fault 'one rank'
  cp start/checkpoints/start/model.safetensors bad.safetensors
  spoil bad.safetensors fc.weight
  job 4 -n 2 "$sprat" train switch.yaml compress.name=none \
    lowrank.warmup_epochs=0 model.init=bad.safetensors --run fails
  once 'cannot be factorized: not all of its weights are finite'
  ended fails not_finite
}

# Other compressors over the switch: with matrices that they take and others,
# and with momenta that are each rank's own.
check_switch_others() {
  local how
  write_switch
  grep -v '^compress' switch.yaml >others.yaml
  for how in 'name=powersgd compress.rank=2' \
    'name=powersgd compress.rank=2 lowrank.residual=project' \
    'name=signum optim.momentum=0 lowrank.at_switch=project'; do
    # shellcheck disable=SC2086 # several arguments
    set -- others.yaml compress.$how
    job 0 -n 3 "$sprat" train "$@" --run whole --overwrite
    [ "$(grep -c '^switch .* rank  ' out)" -eq 9 ] || fault "want 9 layers"
    job 0 -n 3 "$sprat" train "$@" train.max_steps=12 --run part --overwrite
    job 0 -n 3 "$sprat" resume part train.max_steps=0
    [ "$(state whole)" = "$(state part)" ] || fault "$how: not the same"
  done
  job 2 -n 3 "$sprat" train others.yaml compress.name=powersgd \
    compress.rank=40 lowrank.rank_ratio=0.01 --run never
  once 'compress.name: powersgd'
  [ ! -e never ] || fault 'a folder, though nothing was trained'
}

# Ranks that training chooses are those of one rank, and decay of products goes
# on behind the switch.
check_auto() {
  local decisions='^(ranks|switch) .*(stable|rank  )'
  cat >auto.yaml <<'YAML'
model: {name: mlp, hidden: [8]}
data: {name: synthetic, shape: [8, 8, 3], classes: 4, train: 128, test: 40}
train: {epochs: 14, batch: 16, threads: 1}
optim: {lr: 0.3, momentum: 0.9, weight_decay: 0.05}
schedule: {name: step, at: [1], factor: 1e-6}
lowrank: {name: pufferfish, rank: auto, warmup_epochs: 1, full: "",
  frobenius_decay: true}
dist: {check_every: 1}
YAML
  "$sprat" train auto.yaml --run one >out 2>err || fault 'one rank'
  grep -E "$decisions" out | sed 's/(found in.*//' >one.txt
  [ "$(grep -c . one.txt)" -ge 13 ] || fault 'one rank decides nothing'
  grep -q '^switch ' one.txt || fault 'one rank does not switch'
  job 0 -n 2 "$sprat" train auto.yaml --run two
  grep -E "$decisions" out | sed 's/(found in.*//' >two.txt
  sed -E 's/ [0-9.]+ % lost//' one.txt >one.decisions
  sed -E 's/ [0-9.]+ % lost//' two.txt >two.decisions
  cmp one.decisions two.decisions || fault 'two ranks decide otherwise than one'
  job 0 -n 2 "$sprat" train auto.yaml train.max_steps=100 --run part
  job 0 -n 2 "$sprat" resume part train.max_steps=0
  [ "$(state two)" = "$(state part)" ] || fault 'a part and the rest differ'
}

check_not_finite() {
  local i exchange
  mkdir text
  for i in $(seq 400); do
    [ "$i" -ne 330 ] || echo rare
    echo 'a b c d e'
  done >text/train.txt
  head -20 text/train.txt | tee text/valid.txt >text/test.txt
  cat >rare.yaml <<'YAML'
model: {name: lstm_lm, hidden: 8, embedding: 8, layers: 1}
data: {name: text, root: text}
train: {epochs: 1, batch: 2, bptt: 5, eval_batch: 2, threads: 1}
optim: {lr: 0.1, momentum: 0.9}
compress: {name: dgc, ratio: 0.05, warmup: []}
YAML
  "$sprat" train rare.yaml train.max_steps=1 --run start >out 2>err ||
    fault "one rank"
  cp "$(realpath start/checkpoints/start)/model.safetensors" bad.safetensors
  # The rare word is the last: its row ends the embedding.
  spoil bad.safetensors encoder.weight
  for exchange in gather merge; do
    job 4 -n 2 "$sprat" train rare.yaml model.init=bad.safetensors \
      dist.exchange=$exchange --run $exchange
    once 'rank 1 .*encoder.*not finite'
    ended $exchange not_finite
  done
}

# Eight ranks of a whole network, two steps: of every matrix a thousandth is
# sent, 4 bytes a value, 2 a place (no gap needs more), 4 + 4 of headers; all
# other parameters as they are.
check_eight() {
  local config=$configs/cifar10/resnet110.yaml
  local dense slots entries values places headers sent
  job 0 -n 8 "$sprat" train "$config" "$configs/dgc.yaml" data.name=synthetic \
    'data.shape=[32,32,3]' data.train=16 data.test=8 data.augment=none \
    train.batch=8 train.eval_batch=8 train.max_steps=2 train.threads=1 \
    'compress.warmup=[]' --run run
  said out 'batch    8, 1 on each of 8 ranks'
  "$sprat" info "$config" --json | tr '{' '\n' >tensors
  read -r dense slots entries <<<"$(sed -nE \
    's/.*"shape":\[([0-9,]*)\],"params":([0-9]+).*/\1 \2/p' tensors |
    awk '$1 ~ /,/ { n = $2 / 1000; k += n == int(n) ? n : int(n) + 1; s++
        next }
      { d += $2 }
      END { print d, s, k }')"
  sent=$(sed -n '/"bytes"/,/"tensors"/p' run/result.json)
  values=$(sum values <(echo "$sent")) places=$(sum places <(echo "$sent"))
  headers=$(sum headers <(echo "$sent"))
  [ "$(sum dense <(echo "$sent"))" -eq $((2 * 4 * dense)) ] &&
    [ "$headers" -eq $((2 * 8 * slots)) ] &&
    [ $((2 * places)) -eq "$values" ] &&
    [ "$values" -le $((2 * 4 * entries)) ] &&
    [ "$values" -ge $((2 * 4 * entries * 8 / 10)) ] ||
    fault "$dense numbers, $entries entries in $slots packets: $sent"
}

name=$1
"check_$name"
[ $failed -eq 0 ] || { echo "$name: $failed checks failed"; exit 1; }
echo "$name: all checks passed"
