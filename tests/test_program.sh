#!/usr/bin/env bash
# The sprat program from outside: statuses, output, run folders, interruption.
#   test_program.sh SPRAT NAME      runs check_NAME below; 77: skipped
set -u
. "$(dirname "$0")/outside.sh"
sprat=$(realpath "$1")
configs=$(realpath "$(dirname "$0")/../configs")
shift
scratch
write_tiny

# expect STATUS ARGUMENT...: run sprat; its output is in `out` and `err`.
expect() {
  local want=$1 status
  shift
  timeout 120 "$sprat" "$@" >out 2>err </dev/null
  status=$?
  [ $status -eq "$want" ] || fault "status $status, want $want: sprat $*"
}

# The only line of `out` is one JSON object; python3 is not needed for that.
only_json() {
  [ "$(wc -l <out)" -eq 1 ] && grep -qE '^\{.*\}$' out ||
    fault "want one line with an object on standard output"
  [ ! -s err ] || fault "want nothing on standard error"
}

weights() { sha256sum <"$1/checkpoints/last/model.safetensors"; }

check_usage() {
  expect 2
  expect 0 help
  said out 'usage: sprat VERB' 'gradcheck'
  expect 0 help train
  said out 'usage: sprat train CONFIG' 'overwrite' 'sprat train configs/'
  expect 0 train --help
  expect 2 trian tiny.yaml
  said err "sprat: trian: no such verb; did you mean train"
  expect 2 train tiny.yaml --overwrit
  said err 'did you mean --overwrite'
  expect 2 train
  said err 'usage: sprat train'
  expect 2 bench tiny.yaml --steps 0
  expect 2 bench tiny.yaml --steps many
  expect 2 bench tiny.yaml --steps
  expect 2 bench tiny.yaml --steps 1000001
  said err 'whole number from 1 to 1000000$'
  expect 2 bench tiny.yaml --json --json
  expect 2 eval nowhere
  said err 'nowhere'
  expect 2 eval nowhere --split tset
  said err 'did you mean test'
  expect 2 train nothing.yaml
  said err 'nothing.yaml'
  expect 2 list modles
  said err 'did you mean models'
  expect 2 help train eval
  expect 0 help help
  said out 'usage: sprat VERB'
  expect 0 help doctor
  said out '^usage: sprat doctor \[--json\]$'
  expect 2 train tiny.yaml --lr 0.1
  said err 'lr: no such option; there are: --run' 'as section.key=value'
  expect 2 check tiny.yaml --epochs 3
  said err '^sprat: --epochs: sprat check takes no options$' 'section.key=value'
  expect 2 --json
  said err 'there are: train, resume'
  expect 2 gradcheck rleu
  said err 'did you mean relu'
}

check_listing() {
  expect 0 list
  said out '^models' '^optimizers' 'optim.lr' 'train.batch' '^ops' 'relu'
  expect 0 list optimizers
  said out 'sgd' 'optim.momentum'
  expect 0 list model.depth train.winograd
  said out '^    model.depth ' 'of resnet' '^    train.winograd .*auto.off'
  expect 2 list train.winogard
  expect 0 list ops
  said out 'relu'
  expect 2 list furniture
  said err ' ops, models, model, data sets, data, train, optimizers,'
  expect 2 list modles
  said err 'did you mean models'
  expect 0 version
  said out "^sprat [0-9]" 'BLAS: ' 'libpng: ' 'MPI: (none|[A-Z])'
  expect 0 gradcheck relu
  said out '^relu .* ok$'
  "$sprat" list >/dev/full 2>err
  [ $? -eq 1 ] || fault "a full disk behind standard output: want status 1"
  said err 'standard output'
  "$sprat" list >&- 2>err
  [ $? -eq 1 ] || fault "a closed standard output: want status 1"
  said err 'standard output cannot be written'
}

check_mistakes() {
  cat >wrong.yaml <<'YAML'
model: {name: mlp, hiden: 4}
data: {name: synthetic}
train: {epocs: 3, batch: many}
optim: {lr: -1, momentum: 0.9, momentum: 0.8}
YAML
  expect 2 train wrong.yaml optim.nestrov=true --run wrong
  said err 'wrong.yaml:1:20:.*hiden.*hidden' 'wrong.yaml:3:9:.*epocs.*epochs' \
    'wrong.yaml:3:.*many' 'wrong.yaml:4:.*-1' 'wrong.yaml:4:.*momentum' \
    'nestrov.*nesterov'
  [ ! -e wrong ] || fault "a run folder in spite of mistakes"
  expect 2 check wrong.yaml
  # What only the model can know has a place, too.
  printf 'model:\n  name: vgg\n  depth: 12\ndata: {name: synthetic}\n' >odd.yaml
  expect 2 check odd.yaml
  said err 'odd.yaml:3:3: model.depth: no vgg has 12'
  expect 2 check tiny.yaml train.batch
  said err 'train.batch=VALUE'
  expect 0 check tiny.yaml
  said out '^cpu    1 thread,'
  expect 2 check tiny.yaml train.reference=true train.winograd=4
  said err 'argument: train.winograd: 4 contradicts train.reference=true'
  # Of another kind of CPU.
  local isa=neon
  [ "$(uname -m)" != aarch64 ] || isa=avx2
  expect 2 check tiny.yaml train.isa=$isa
  said err "isa '$isa' is not on this processor, which has .*base"
  expect 2 check tiny.yaml data.name=cifar10 data.root=nowhere
  said err 'nowhere'
}

check_json() {
  expect 0 info tiny.yaml --json
  only_json
  said out '"params":' '"params_1d":' '"macs":' '"activation_mib":' \
    '"unplanned_mib":' '"lower_bound_mib":' \
    '"tensors":\[\{"name":"[^"]*","shape":\[[0-9,]*\],"params":' \
    '"dense_bytes":' '"packet_bytes":' '"compression_ratio":'
  expect 0 bench tiny.yaml --steps 3 --json
  only_json
  local key
  for key in step_ms step_ms_min step_ms_max items_per_s gflops peak_gflops \
    fraction_of_peak forward_ms backward_ms optim_ms exchange_ms \
    peak_rss_mib threads ranks isa; do
    said out "\"$key\":"
  done
  expect 0 bench tiny.yaml --steps 3 --ops --json
  only_json
  for key in name op pass algorithm; do
    said out "\"$key\":(\"[a-z]|null)"
  done
  for key in ms gflops gbytes_per_s share bound; do
    said out "\"$key\":[0-9.e-]+[,}]"
  done
  said out '"bandwidth_gbytes_per_s":[0-9]' '"bound_by":"bytes"' \
    '"ops":\[\{"name":"fc1","op":"matmul","pass":"forward",' \
    '\{"name":"fc1","op":"matmul","pass":"backward bias",' \
    '"op":"sgd","pass":"update"' '"op":"outside","pass":"step".*\]\}$'
  expect 0 info tiny.yaml
  expect 0 bench tiny.yaml --steps 3
  [ "$(wc -l <out)" -eq 7 ] || fault "want 7 lines without --ops"
  expect 0 bench tiny.yaml --steps 3 --ops
  said out '^fc1 +matmul +forward +[a-z0-9]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ %' \
    '^relu +relu +backward ' '^optimizer +sgd +update' '^outside +outside' \
    '^2 +matmul +backward weights' '^all .* 100\.0 %'
}

check_run() {
  expect 0 train tiny.yaml --run run
  local file
  for file in config.yaml metrics.jsonl result.json log.txt hashes.jsonl \
    checkpoints/start/manifest.json checkpoints/last/model.safetensors \
    checkpoints/last/optim.safetensors checkpoints/best/manifest.json; do
    [ -e run/$file ] || fault "run/$file is not there"
  done
  [ "$(grep -c '"kind":"epoch"' run/metrics.jsonl)" -eq 3 ] ||
    fault "want three epoch lines"
  expect 0 eval run --json
  only_json
  said out '"split":"test"' '"checkpoint":"last"' '"count":64' '"loss":' \
    '"top1":'
  expect 0 eval run --checkpoint start --split train --json
  said out '"count":256'
  expect 2 eval run --checkpoint nothing
  expect 2 verify run
  said err "no parameter hash"
  expect 0 train tiny.yaml train.epochs=13 --run long
  expect 0 verify long
  said out "2 parameter hashes"
  # The run's own configuration gives the run again.
  expect 0 train run/config.yaml --run again
  [ "$(weights run)" = "$(weights again)" ] || fault "again is not the same"
  # 3 epochs and 3 more are 6.
  expect 0 train tiny.yaml train.epochs=6 --run six
  expect 0 resume run train.epochs=6
  [ "$(weights run)" = "$(weights six)" ] || fault "3 + 3 epochs are not 6"
  # Images of another size fit a network of convolutions.
  expect 0 train tiny.yaml model.name=resnet model.depth=8 model.width=0.25 \
    train.epochs=1 --run size
  expect 0 resume size train.epochs=2 'data.shape=[8,8,1]'
  said out '^warning: the images are 8x8x1 now, up to here they were 6x6x1$'
}

check_folders() {
  expect 0 train tiny.yaml --run here
  expect 2 train tiny.yaml --run here
  said err 'here' 'overwrite'
  expect 0 train tiny.yaml --run here --overwrite
  mkdir mine && echo precious >mine/file
  expect 2 train tiny.yaml --run mine --overwrite
  mv mine/file mine/config.yaml
  expect 2 train tiny.yaml --run mine --overwrite
  [ -e mine/config.yaml ] || fault "a folder that is no run was removed"
  "$sprat" train tiny.yaml --run closed <&- >&- 2>&-
  [ $? -eq 0 ] || fault "without standard streams: want status 0"
  "$sprat" resume closed train.epochs=4 >&- 2>err
  [ $? -eq 0 ] && [ ! -s err ] || fault "want status 0 and no message"
  grep -q "epoch 4/4" closed/log.txt || fault "it did not go on"
  ! grep -q epoch closed/.lock || fault "progress went into a file of the run"
  [ "$(grep -c ^run closed/log.txt)" -eq 2 ] || fault "a line stands twice"
  rm here/log.txt && mkfifo here/log.txt
  expect 2 resume here train.epochs=4
  said err 'log.txt: it is not a regular file'
  echo text >file
  expect 2 train tiny.yaml --run file
  expect 2 train tiny.yaml --run file/below
  expect 2 train tiny.yaml --run /proc/sprat
  expect 2 resume nowhere
  said err 'nowhere'
  expect 0 train tiny.yaml
  [ -d runs ] && ls -d runs/tiny-[0-9]*-[0-9]* >/dev/null ||
    fault "want runs/tiny-DATE-TIME"
}

check_damage() {
  expect 0 train tiny.yaml --run hurt
  local file
  file=$(realpath hurt/checkpoints/last)/model.safetensors
  cp "$file" kept
  head -c 200 kept >"$file"
  expect 2 eval hurt
  said err 'model.safetensors'
  expect 2 resume hurt train.epochs=5
  { head -c 900 kept; printf '\377\377'; tail -c +903 kept; } >"$file"
  expect 2 eval hurt
  cp kept "$file"
  expect 0 eval hurt
  expect 2 train tiny.yaml model.init=tiny.yaml --run never
}

check_not_finite() {
  expect 4 train tiny.yaml optim.lr=1e6 optim.weight_decay=1000 \
    --run nan
  said err 'step' '(fc|layer|loss|matmul|linear)'
  expect 0 eval nan --json
  only_json
  [ -e nan/checkpoints/start/manifest.json ] || fault "start is not there"
}

# A run that lasts until it is told otherwise, in the background.
long_run() {
  "$sprat" train tiny.yaml train.epochs=100000 --run "$1" >out 2>err &
  pid=$!
  for _ in $(seq 100); do
    [ -e "$1/checkpoints/last" ] && grep -q '"kind":"epoch"' \
      "$1/metrics.jsonl" 2>/dev/null && return
    sleep 0.1
  done
  fault "$1 does not start"
}

check_signals() {
  local signal
  for signal in TERM USR1 INT; do
    long_run stop-$signal
    kill -s $signal $pid
    wait $pid
    [ $? -eq 3 ] || fault "SIG$signal: want status 3"
    expect 0 eval stop-$signal
  done
  expect 3 train tiny.yaml train.epochs=100000 train.max_minutes=0.005 \
    --run minutes
  expect 0 eval minutes
}

check_twice() {
  long_run busy
  expect 2 resume busy
  said err 'busy'
  expect 2 train tiny.yaml --run busy --overwrite
  kill -TERM $pid
  wait $pid
}

# Killed at arbitrary moments and resumed: the same bits as never killed.
check_kill() {
  local options=(train.epochs=12 train.checkpoint_steps=5) status i
  expect 0 train tiny.yaml "${options[@]}" --run whole
  "$sprat" train tiny.yaml "${options[@]}" --run killed >out 2>err &
  pid=$!
  for i in 1 2 3 4 5 6 7; do
    sleep 0.0$((i * 13 % 10))
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    if [ -e killed/checkpoints/last ]; then
      "$sprat" resume killed >out 2>err &
    else # killed before step 0
      rm -rf killed
      "$sprat" train tiny.yaml "${options[@]}" --run killed >out 2>err &
    fi
    pid=$!
  done
  wait $pid
  status=$?
  [ $status -eq 0 ] || fault "status $status of the last resumption"
  [ "$(weights whole)" = "$(weights killed)" ] ||
    fault "killed and resumed is not the same as never killed"
}

# A disk that is full is an error with its reason, and what was saved stays.
check_full_disk() {
  (ulimit -f 24 && exec timeout 60 "$sprat" train tiny.yaml \
    train.epochs=2000 log.every=1 --run limited) >out 2>err
  [ $? -eq 1 ] || fault "limit of file sizes: want status 1"
  said err 'metrics.jsonl: File too large'
  expect 0 eval limited
  (ulimit -f 24 && exec timeout 60 "$sprat" train tiny.yaml log.trace=true \
    log.trace_steps=200 train.epochs=20 --run timeline) >out 2>err
  [ $? -eq 1 ] || fault "limit of file sizes, with a trace: want status 1"
  said err 'trace/rank-0000.json: File too large'
  expect 0 eval timeline
  mkdir small
  if ! mount -t tmpfs -o size=400k tmpfs small 2>/dev/null; then
    echo "skipped: may not mount a small file system"
    exit 77
  fi
  timeout 60 "$sprat" train tiny.yaml train.epochs=2000 train.keep=1000 \
    --run small/run >out 2>err
  [ $? -eq 1 ] || fault "full disk: want status 1"
  said err 'space'
  expect 0 eval small/run
  rm -r small/run
  # Where not even the first checkpoint fits, no run has begun, or is left.
  head -c 380000 /dev/zero >small/rest
  expect 2 train tiny.yaml --run small/run
  said err 'space'
  [ ! -e small/run ] || fault "full disk: a run folder without a checkpoint"
  rm small/rest
  # In the epoch of the switch to low rank what was saved stays, and goes on.
  cat >low.yaml <<'YAML'
model: {name: mlp, hidden: [64]}
lowrank: {name: pufferfish, warmup_epochs: 1, full: ""}
YAML
  expect 0 train tiny.yaml low.yaml --run whole
  expect 0 train tiny.yaml low.yaml train.epochs=1 --run small/run
  head -c 1M /dev/zero >small/rest 2>err && fault "a disk that is not full"
  truncate -s -32K small/rest
  expect 1 resume small/run train.epochs=3
  said out 'switch .* factorized'
  said err 'space'
  expect 0 eval small/run
  rm small/rest
  expect 0 resume small/run train.epochs=3
  cmp whole/checkpoints/last/model.safetensors \
    small/run/checkpoints/last/model.safetensors || fault "another end"
  umount small
}

# size PARAMETERS 1-D MACS CONFIG OVERRIDE...: as `info` tells them.
size() {
  local want='"params":'$1,.*'"params_1d":'$2,'"macs":'$3,
  shift 3
  expect 0 info "$configs/$1" "${@:2}" --json
  grep -q "$want" out || fault "$*: want $want"
}

# The counts of He et al. 2015 (resnet), Wang et al. 2021 (resnet18, vgg19,
# wrn50-2), Lin et al. 2018 (alexnet, resnet50), by hand from the layers.
check_configs() {
  local file
  for file in "$configs"/*/*.yaml; do
    [[ $file != */tables/* ]] || continue
    expect 0 info "$file"
  done
  local a=cifar10/resnet20.yaml b=model.shortcut=B depth=model.depth
  size 269722 1386 40551040 $a
  size 464154 2282 68862592 $a $depth=32
  size 658586 3178 97174144 $a $depth=44
  size 853018 4074 125485696 $a $depth=56
  size 1727962 8106 252887680 cifar10/resnet110.yaml
  size 272474 1578 40813184 $a $b
  size 466906 2474 69124736 $a $b $depth=32
  size 661338 3370 97436288 $a $b $depth=44
  size 855770 4266 125747840 $a $b $depth=56
  size 1730714 8298 253149824 cifar10/resnet110.yaml $b
  size 11173962 9610 555422720 cifar10/resnet18.yaml
  size 11173834 9482 555422720 cifar10/resnet18.yaml model.stem_norm=false
  size 20560330 12042 398660608 cifar10/vgg19.yaml
  size 20035018 11018 398136320 cifar10/vgg19.yaml model.fc=1
  size 20035018 11018 398136320 pufferfish/vgg19-fc1.yaml
  size 20035018 11018 398136320 pufferfish/vgg19-lth.yaml
  size 15249354 9482 313725952 cifar10/vgg19.yaml $depth=16
  size 14724042 8458 313201664 cifar10/vgg19.yaml $depth=16 model.fc=1
  size 60965224 10568 724406816 imagenet/alexnet.yaml
  size 25557032 54120 4089184256 imagenet/resnet50.yaml
  size 68883240 69224 11398021120 imagenet/wrn50-2.yaml
  size 51034000 34000 51000000 ptb/dgc-1500.yaml
  size 66034000 34000 51000000 ptb/lstm1500.yaml
  size 85962278 45278 85917000 wikitext2/pufferfish-1500.yaml
}

# The configurations find their data and fit them.
check_data() {
  if [ ! -d "${SPRAT_DATA:-/nowhere}/cifar10" ]; then
    echo "skipped: CIFAR-10 is not there; set SPRAT_DATA"
    exit 77
  fi
  local file
  for file in "$configs"/*/*.yaml; do
    [[ $file != */tables/* ]] || continue
    # Whole batches of ImageNet take tens of GiB.
    ! grep -q 'normalize: imagenet' "$file" ||
      set -- train.batch=2 train.eval_batch=2
    expect 0 check "$file" "$@"
    set --
  done
}

check_text() {
  local i
  mkdir corpus
  for i in $(seq 40); do
    printf 'the cat sat on the mat\nthe dog ate it\n\n'
  done >corpus/train.txt
  head -30 corpus/train.txt >corpus/valid.txt
  tail -31 corpus/train.txt >corpus/test.txt
  cat >words.yaml <<'YAML'
model: {name: lstm_lm, hidden: 8}
data: {name: text, root: corpus}
train: {epochs: 2, batch: 4, bptt: 10, eval_batch: 2, threads: 1}
optim: {lr: 1}
YAML
  expect 0 train words.yaml --run prose
  # 6 + 1, 4 + 1 and 1 tokens a group of lines; 30 and 31 lines of them.
  said out '520 training, 130 validation, 131 test tokens, a vocabulary of 9' \
    'epoch 2/2 done .* ppl [0-9.]+  valid .* ppl' \
    'test .* ppl [0-9.]+ over 130 targets'
  expect 0 eval prose --split valid --json
  only_json
  said out '"count":129' '"ppl":'
  expect 0 eval prose
  said out '130 targets, loss [0-9.]+, perplexity'
  expect 0 sample prose --prompt 'the cat' --tokens 5 --seed 4
  said out '^the cat'
  mv out first
  expect 0 sample prose --prompt 'the cat' --tokens 5 --seed 4
  cmp -s out first || fault 'the same options gave another text'
  expect 2 sample prose --prompt 'the bird'
  said err "'bird'"
  expect 2 sample prose --temperature hot
  said err 'temperature hot'
  expect 2 sample prose --tokens 0
  expect 2 predict prose prose/config.yaml
  said err 'text'
  expect 0 train tiny.yaml --run pictures
  expect 2 sample pictures
  said err 'trained on images'
  # The arithmetic of a text that is too short, and where the key was set.
  expect 2 check words.yaml train.bptt=200
  said err 'argument: train.bptt' '520 tokens in 4 columns' \
    '130 each'
  expect 2 check words.yaml data.vocab=12
  said err 'data.vocab' ' 12' ' 9 '
  expect 2 info words.yaml
  said err 'data.vocab'
  expect 2 train words.yaml model.name=mlp 'model.hidden=[8]'
  said err 'mlp takes images'
  sed 's/mat/<unk>/' corpus/train.txt >corpus/new && mv corpus/{new,train.txt}
  expect 0 check words.yaml data.vocabulary=train
  # "mat" is in every third of 30 and of 31 lines.
  said out 'vocabulary of 9; 10 validation and 10 test words became <unk>'
  printf 'the \377 cat\n' >corpus/valid.txt
  expect 2 train words.yaml --run broken
  said err 'corpus/valid.txt' 'UTF-8'
}

check_predict() {
  expect 0 train tiny.yaml --run seer
  expect 2 predict seer
  expect 2 predict seer tiny.yaml
  said err 'tiny.yaml'
  expect 2 predict seer nowhere.png
  said err 'nowhere.png'
  # A grey PNG of 2 x 2 pixels.
  base64 -d >grey.png <<'B64'
iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAAAAABX3VL4AAAADklEQVR42mPgOsEQJQcABCoBS9Oj
KMcAAAAASUVORK5CYII=
B64
  expect 0 predict seer grey.png
  said out 'grey.png: [0-9a-z]+ [0-9.]+ %'
  expect 0 predict seer grey.png --json
  only_json
  said out '"file":"grey.png"' '"confidence":' '"count":1'
  mkdir -p folder/0 folder/1 folder/2 folder/3
  cp grey.png folder/0 && cp grey.png folder/1
  cp grey.png folder/2 && cp grey.png folder/3
  expect 0 predict seer folder
  said out '4 images, 4 with a known class, 25.00 %'
  expect 0 predict seer folder --json
  only_json
  said out '"labelled":4' '"top1":25' '"confusion":\[\['
  # Long names that differ in their last letter only.
  local long
  long=$(printf 'x%.0s' $(seq 80))
  mkdir -p set/{train,test}/"$long"{1,2}
  for folder in set/*/*; do cp grey.png "$folder"; done
  expect 0 train tiny.yaml data.name=folder data.root=set data.classes=2 \
    data.channels=1 train.batch=1 --run named
  expect 0 predict named grey.png --json
  only_json
  said out "\"${long}1\"" "\"${long}2\""
}

"check_$1"
[ $failed -eq 0 ]
