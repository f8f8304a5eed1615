#!/usr/bin/env bash
# What is generated from tables and headers is current, and programs read it.
#   test_generated.sh SOURCE-FOLDER BUILD-FOLDER NAME      77: skipped
# NAME: config (docs/config.md), man (manual pages), completion.
set -u
. "$(dirname "$0")/outside.sh"
source=$(realpath "$1")
build=$(realpath "$2")
sprat=$build/sprat
name=$3
scratch

verbs() { "$sprat" help | sed -nE 's/^  ([a-z]+) .*/\1/p'; }

# On a full disk there is no page, and it is said.
check_full() {
  local generate=$build/tools/sprat-generate
  [ -w /dev/full ] || return
  "$generate" config >/dev/full 2>err && fault "config on a full disk: 0"
  said err 'standard output cannot be written'
  mkdir pages && ln -s /dev/full pages/sprat-config.5
  "$generate" man pages 2>err && fault "a page on a full disk: 0"
  said err 'sprat-config\.5 cannot be'
}

check_config() {
  check_full
  "$build/tools/sprat-generate" config >out || fault "status $?"
  cmp -s out "$source/docs/config.md" && return
  diff "$source/docs/config.md" out | head -20
  fault "docs/config.md is not current. In the folder of the sources, run:" \
    "build/tools/sprat-generate config >docs/config.md"
}

# Warnings of whichever programs format pages.
lint() {
  if command -v man >/dev/null; then
    MANWIDTH=80 man --warnings -l "$1" >out 2>err || fault "man $1: $?"
    [ ! -s err ] || fault "man warns of $1"
    [ -s out ] || fault "man shows nothing of $1"
  elif command -v groff >/dev/null; then
    groff -man -ww -Tutf8 "$1" 2>err >out || fault "groff $1: $?"
    [ ! -s err ] || fault "groff warns of $1"
  fi
  # Mandoc wants a date, which would change with every build.
  if command -v mandoc >/dev/null; then
    mandoc -Tlint -W warning "$1" 2>&1 |
      grep -v 'missing date' >out && fault "mandoc warns of $1"
  fi
}

check_man() {
  local verb page function
  command -v man >/dev/null || command -v groff >/dev/null ||
    command -v mandoc >/dev/null || { echo "skipped: no man"; exit 77; }
  for verb in $(verbs); do
    [ "$verb" = help ] && continue
    page=$build/tools/sprat-$verb.1
    [ -f "$page" ] || { fault "no page of $verb"; continue; }
    grep -q "^sprat.-$verb .- ." "$page" || fault "$page has no name line"
    grep -q "BR sprat.-$verb (1)" "$build/tools/sprat.1" ||
      fault "sprat(1) does not name $verb"
  done
  "$source/tools/man-api" "$work/man3" 0 || fault "man-api: $?"
  for function in sp_compile sp_train sp_registry_add sp_conv sp_op; do
    grep -q '^.so man3/sprat-' "man3/$function.3" ||
      fault "no page leads from $function"
  done
  grep -q 'sp_train(const sp_config' man3/sprat-train.h.3 || fault "sp_train"
  grep -q 'Train as configured, into a new run folder' man3/sprat-train.h.3 ||
    fault "its comment is not on the page"
  for page in "$build"/tools/sprat*.[15] "$source"/docs/sprat-*.5 \
    man3/sprat-*.h.3; do
    lint "$page"
  done
}

# completes LINE WANT...: bash completes it, among others, to these words.
completes() {
  local line=$1 want
  shift
  COMP_LINE=$line COMP_POINT=${#line} COMP_WORDS=($line) COMPREPLY=()
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  [[ $line != *' ' ]] || { COMP_WORDS+=(''); COMP_CWORD=$((COMP_CWORD + 1)); }
  _sprat sprat
  for want; do
    printf '%s\n' "${COMPREPLY[@]}" | grep -qxF -- "$want" ||
      fault "'$line' is not completed to '$want' but to: ${COMPREPLY[*]}"
  done
}

# completes_not LINE WORD...: and not to these.
completes_not() {
  local line=$1 word
  shift
  completes "$line"
  for word; do
    printf '%s\n' "${COMPREPLY[@]}" | grep -qxF -- "$word" &&
      fault "'$line' is completed to '$word'"
  done
}

check_bash() {
  . "$build/tools/sprat"
  mkdir -p runs/first configs
  touch configs/one.yaml notes.txt base.yaml
  # shellcheck disable=SC2046
  completes 'sprat ' $(verbs)
  completes 'sprat tr' train
  completes_not 'sprat tr' eval
  completes 'sprat help gr' gradcheck
  completes 'sprat train ' base.yaml configs
  completes_not 'sprat train ' notes.txt optim.lr=
  completes 'sprat train configs/' configs/one.yaml
  completes 'sprat train base.yaml --' --run --overwrite --help
  completes 'sprat train base.yaml --run r' runs
  completes 'sprat train base.yaml --run runs/x op' optim.lr= optim.name=
  completes 'sprat train base.yaml optim.na' optim.name=
  completes 'sprat train base.yaml train.winograd=' auto off 2 4
  completes 'sprat train base.yaml optim.name=s' sgd
  completes_not 'sprat train base.yaml optim.name=s' adam
  completes 'sprat resume runs/first train.planner=' true false
  completes 'sprat eval --split ' train valid test
  completes 'sprat eval --split=v' valid
  completes 'sprat eval r' runs
  completes 'sprat eval runs/first --checkpoint b' best
  completes 'sprat predict runs/first ' notes.txt
  completes 'sprat gradcheck re' relu
  completes 'sprat list sched' schedule
  completes 'sprat list train.wino' train.winograd
  completes_not 'sprat version ' notes.txt base.yaml
  # As bash is, where "=" is no end of a word.
  COMP_WORDBREAKS=' ' completes 'sprat info base.yaml optim.name=s' \
    optim.name=sgd
}

check_completion() {
  check_bash
  if command -v zsh >/dev/null; then
    zsh -n "$build/tools/_sprat" 2>err || fault "zsh does not read its own"
  fi
  if command -v fish >/dev/null; then
    export HOME=$work XDG_CONFIG_HOME=$work XDG_DATA_HOME=$work
    fish -n "$build/tools/sprat.fish" 2>err || fault "fish does not read its own"
    fish -c "source $build/tools/sprat.fish
      complete -C 'sprat tr'
      complete -C 'sprat train optim.name=s'
      complete -C 'sprat eval --sp'
      complete -C 'sprat gradcheck re'" >out 2>err || fault "fish: $?"
    said out '^train' '^optim.name=sgd' '^--split' '^relu'
  fi
}

check_"$name"
[ $failed = 0 ]
