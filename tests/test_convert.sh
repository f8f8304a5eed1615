#!/usr/bin/env bash
# Weights that other programs read, and weights of theirs: what is refused; and
# where PyTorch, onnx and OpenCV are, networks that were trained here give the
# same logits in PyTorch, and as ONNX by two evaluators; those that PyTorch saved
# give the same here.
#   test_convert.sh SPRAT LOGITS SOURCE-FOLDER      77: skipped
set -u
. "$(dirname "$0")/outside.sh"
sprat=$(realpath "$1")
logits=$(realpath "$2")
oracle="$(realpath "$3")/tests/convert_oracle.py"
scratch
ulimit -c 0

# refused WORDS ARGUMENT...: status 2, and says so.
refused() {
  local words=$1
  shift
  "$sprat" "$@" >out 2>err </dev/null
  [ $? = 2 ] || fault "status is not 2: $*"
  said err "$words"
}

write_tiny
"$sprat" train tiny.yaml train.max_steps=1 --run tiny >out 2>err ||
  fault "status $?: train"
refused 'where to\? Give -o FILE' export tiny
refused 'did you mean onnx' export tiny --as onxn -o w
refused 'does not tell as what' export tiny -o w.onxn
refused 'no such checkpoint' export tiny --checkpoint first -o w.npz
refused 'there is no such folder|cannot' export nowhere -o w.npz
refused 'cannot create' export tiny -o nowhere/w.npz
refused 'did you mean -o|no such option' export tiny --o w.npz
refused '-o needs a value' export tiny -o
refused 'there is no file w.npz' import w.npz tiny.yaml -o w
echo nothing of numbers >in.npz
refused 'where to\? Give -o FILE' import in.npz tiny.yaml
refused 'usage: sprat import' import in.npz -o w
refused 'in.npz: is none of what can be read: a safetensors file, an .npz' \
  import in.npz tiny.yaml -o w
refused 'tiny.yaml: is not written, for it is what is read' \
  import in.npz tiny.yaml -o tiny.yaml
refused 'checkpoints is of the run' \
  export tiny -o tiny/checkpoints/last/model.safetensors
refused 'let its name end in .safetensors' import in.npz tiny.yaml -o w.npz
refused 'no such checkpoint; there is last, and tiny/checkpoints' \
  eval tiny --checkpoint first
refused 'first 8 bytes .*`sprat import` makes' \
  train tiny.yaml model.init=in.npz --run other
[ ! -e w ] && [ ! -e w.npz ] || fault "something was written"
[ $failed = 0 ] || exit 1

/usr/bin/python3 -c 'import cv2, numpy, onnx, torch' 2>err ||
  { echo "skipped: $(tail -1 err)"; exit 77; }

cat >images.yaml <<'YAML'
data: {name: synthetic, shape: [32, 32, 3], classes: 10, train: 48, test: 10,
  normalize: half}
train: {max_steps: 6, batch: 8, threads: 1, seed: 3}
optim: {lr: 0.01}
YAML
cat >text.yaml <<'YAML'
model: {name: lstm_lm, hidden: 12, dropout: 0.3}
data: {name: synthetic, vocab: 50, train: 2000, test: 200}
train: {max_steps: 6, batch: 8, bptt: 5, threads: 1, seed: 3}
optim: {lr: 0.5}
YAML

# run COMMAND...: which has to succeed.
run() { "$@" >out 2>err </dev/null || fault "status $?: $*"; }

# exported NAME FORMS CONFIG...: trained, exported, and run.
exported() {
  local name=$1 forms=$2 form
  shift 2
  run "$sprat" train "$@" --run "$name"
  for form in $forms; do
    run "$sprat" export "$name" --checkpoint last -o "ours/$name.$form"
  done
  run "$logits" "$name" last "ours/$name.in" "ours/$name.mine"
}

# imported NAME CONFIG...: made weights to start from, and run.
imported() {
  local name=$1
  shift
  run "$sprat" import "theirs/$name.pth" "$@" -o "theirs/$name.weights"
  run "$sprat" train "$@" model.init="theirs/$name.weights" train.max_steps=1 \
    --run "$name-imported"
  run "$logits" "$name-imported" start "theirs/$name.in" "theirs/$name.mine"
}

ours="resnet20-a resnet14-b resnet50 lowrank vgg11 vgg11-single alexnet
  language language-tied"
theirs="resnet50 vgg11-torchvision language language-tied"
mkdir ours theirs
run /usr/bin/python3 "$oracle" begin "$ours" "$theirs"

all='safetensors npz onnx'
exported resnet20-a "$all" images.yaml model.name=resnet model.depth=20
exported resnet14-b "$all" images.yaml model.name=resnet model.depth=14 \
  model.shortcut=B model.width=0.5
exported resnet50 "$all" images.yaml model.name=resnet model.depth=50 \
  model.stem=imagenet model.width=0.125 data.shape=[64,64,3] train.max_steps=3
exported lowrank "$all" images.yaml model.name=resnet model.depth=18 \
  model.width=0.125 lowrank.name=pufferfish lowrank.warmup_epochs=0 \
  lowrank.rank_ratio=0.5 lowrank.extra_norm=true
exported vgg11 "$all" images.yaml model.name=vgg model.depth=11 \
  model.width=0.125 data.shape=[64,64,3]
exported vgg11-single "$all" images.yaml model.name=vgg model.depth=11 \
  model.width=0.125 model.fc=1
exported alexnet "$all" images.yaml model.name=alexnet model.width=0.125 \
  data.shape=[67,67,3]
exported language 'safetensors npz' text.yaml
exported language-tied 'safetensors npz' text.yaml model.tied=true \
  model.biases=1

imported resnet50 images.yaml model.name=resnet model.depth=50 \
  model.stem=imagenet model.width=0.125 data.shape=[64,64,3]
imported vgg11-torchvision images.yaml model.name=vgg model.depth=11 \
  model.width=0.125 data.shape=[64,64,3]
imported language text.yaml
imported language-tied text.yaml model.tied=true model.biases=1

run /usr/bin/python3 "$oracle" end "$ours" "$theirs"
cat out
[ $failed = 0 ]
