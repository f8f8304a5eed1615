#!/usr/bin/env bash
# Documents do what they say. The files and changes that they show go into a
# copy of the sources, which is built; their commands are run, and what these
# print is compared with what is shown.
#   test_docs.sh SOURCE-FOLDER SPRAT SANITIZERS MPI      77: skipped
# SANITIZERS: of the build, or none. MPI: true, or mpirun is not called.
# In a document:
#   **`FILE`**                  the block below is this new file
#   **`FILE`**, after `TEXT`    the block below goes behind this text in FILE
#   ```console                  lines "$ COMMAND" and what they print. A line
#                               "..." is any lines, a number is any number;
#                               `echo $?` may follow a command that fails.
# Blocks of other kinds without such a line are not looked at.
set -uo pipefail
. "$(dirname "$0")/outside.sh"
source=$(realpath "$1")
sprat=$(realpath "$2")
# Code for readers needs no sanitizer: what it calls is tested with them.
[ "$3" = none ] || exit 77
mpi=$4
[ "$mpi" != true ] || use_mpi
scratch
tree=$work/tree

# blocks DOCUMENT FOLDER: NNN.kind, NNN.title and NNN.text for each block.
blocks() {
  mkdir -p "$2"
  awk -v out="$2" '
    !inside && /^\*\*`/ { title = $0; next }
    !inside && /^```/ {
      inside = 1
      file = sprintf("%s/%03d", out, ++n)
      print substr($0, 4) >(file ".kind")
      print title >(file ".title")
      printf "" >(file ".text")
      next
    }
    inside && /^```$/ { inside = 0; title = ""; next }
    inside { print >(file ".text"); next }
    NF { title = "" }
    END { exit inside || !n }' "$1" || fault "$1: no blocks, or one is open"
}

# insert FILE TEXT BLOCK: after TEXT, as lines where it ends its line.
insert() {
  TEXT=$2 awk '
    NR == FNR { block = block $0 "\n"; next }
    !done && (at = index($0, ENVIRON["TEXT"])) {
      head = substr($0, 1, at - 1) ENVIRON["TEXT"]
      tail = substr($0, length(head) + 1)
      done = 1
      if (tail == "") {
        printf "%s\n%s", head, block
      } else {
        sub(/\n$/, "", block)
        print head block " " tail
      }
      next
    }
    { print }
    END { exit !done }' "$3" "$1" >"$work/inserted" &&
    cp "$work/inserted" "$1"
}

# apply FOLDER: the files and changes of a document, in the present folder.
apply() {
  local text title file after
  local shape='^\*\*`([^`]+)`\*\*(, after `(.+)`)?$'
  for text in "$1"/*.text; do
    title=$(<"${text%.text}.title")
    [ -n "$title" ] || continue
    [[ $title =~ $shape ]] || { fault "what does it mean: $title"; continue; }
    file=${BASH_REMATCH[1]} after=${BASH_REMATCH[3]}
    if [ -n "$after" ]; then
      insert "$file" "$after" "$text" || fault "$file: no '$after' in it"
    else
      [ ! -e "$file" ] || fault "$file: is there already"
      mkdir -p "$(dirname "$file")"
      cp "$text" "$file"
      echo "$file" >>"$work/new"
    fi
  done
}

# What differs from machine to machine and from run to run.
mask() {
  sed -E '/^fatal: not a git/d; s/ \(best\)//
    s/-?\bnan\b/#/g; s/[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?/#/g
    s/([| ])[-+]#/\1#/g
    s/# min # s/# s/g; s/# threads?/# threads/; s/ in [^ ]+: / in FOLDER: /
    s/(avx#|neon|base)(,|$)/isa\2/g
    s/ +/ /g; s/ $//'
}

# compare COMMAND SHOWN: with what is in $work/out.
compare() {
  local got pattern end=$'\n'
  got=$(mask <"$work/out")
  pattern=$(mask <<<"$2" | sed -E '/^\.\.\.$/!s/[^[:alnum:] ]/\\&/g
    s/^\.\.\.$/*/')
  pattern=${pattern//"$end*$end"/"$end*"}
  [[ $pattern != *"$end*" ]] || pattern=${pattern%"$end*"}'*'
  [ "$1" != 'echo $?' ] || pattern=$2 got=$(<"$work/out") # to the digit
  # shellcheck disable=SC2053
  [[ $got == $pattern ]] && return
  fault "$1: prints (<) other than what is shown (>)"
  diff <(echo "$got") <(mask <<<"$2") | head -40
}

# execute BLOCK: its commands, in the present folder.
execute() {
  local line command='' shown='' status=0
  while IFS= read -r line; do
    if [[ $line != '$ '* ]]; then
      shown+=$line$'\n'
      continue
    fi
    [ -z "$command" ] || compare "$command" "${shown%$'\n'}"
    command=${line#'$ '} shown=
    if [ "$command" = 'echo $?' ]; then
      echo $status >"$work/out"
      [ "$status" != 0 ] || fault "$1: nothing failed before echo"
      status=0
      continue
    fi
    [ "$status" = 0 ] || fault "status $status before: $command"
    status=0
    if [ "$mpi" != true ] && [[ $command == mpirun* ]]; then
      command=
      continue
    fi
    timeout 300 bash -c "$command" >"$work/out" 2>&1 </dev/null || status=$?
  done <"$1"
  [ -z "$command" ] || compare "$command" "${shown%$'\n'}"
  if [ "$status" != 0 ]; then
    fault "status $status: $command"
    head -30 "$work/out"
  fi
}

execute_all() { # execute_all FOLDER
  local text
  for text in "$1"/*.text; do
    [ "$(<"${text%.text}.kind")" != console ] || execute "$text"
  done
}

# The sources without what builds and runs leave in them.
copy_sources() {
  local entry
  mkdir "$tree"
  cp "$source/.clang-format" "$tree"
  for entry in "$source"/*; do
    [ -e "$entry/build.ninja" ] || [ "${entry##*/}" = runs ] ||
      cp -r "$entry" "$tree"
  done
}

# Build the program and the library with what the documents add, once. Little
# is computed, so compiling fast counts more than running fast.
build() {
  local libraries file tests
  tests=$(sed -nE 's#^(tests/test_.*)\.c$#\1#p' "$work/new")
  meson setup build -Doptimization=1 >"$work/log" 2>&1 &&
    libraries=$(ninja -C build -t targets all |
      sed -nE 's/^([^:]*libsprat\.(a|so[.0-9]*)): [^:]*_LINKER.*/\1/p') &&
    ninja -C build --quiet sprat $libraries $tests >>"$work/log" 2>&1 &&
    DESTDIR=$work/root meson install -C build --no-rebuild --quiet \
      --tags runtime,devel >>"$work/log" 2>&1 ||
    { fault "the copy does not build"; tail -30 "$work/log"; return; }
  while read -r file; do
    grep -F "$file" "$work/log" | grep 'warning:' && fault "$file: warnings"
  done <"$work/new"
}

# A program outside finds the library as if it were installed.
find_library() {
  local pc
  pc=$(find "$work/root" -name sprat.pc)
  export PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$work/root
  export LD_LIBRARY_PATH=${pc%/pkgconfig/*}
}

format() {
  command -v clang-format >/dev/null || return 0
  grep '\.c$' "$work/new" | xargs clang-format --dry-run --Werror ||
    fault "the code in the documents is not as clang-format writes it"
}

tutorials() {
  local name names='add-a-layer add-a-model add-a-compressor use-the-library'
  copy_sources
  cd "$tree" || exit 1
  for name in $names; do
    blocks "docs/$name.md" "$work/$name"
    apply "$work/$name"
  done
  format
  build
  [ $failed = 0 ] || return
  find_library
  for name in $names; do execute_all "$work/$name"; done
  [ $failed != 0 ] || grep -qE '"test_top1": (9[5-9]|100)' \
    runs/stripes/result.json || fault "stripes were not learned"
}

# The commands of those that build nothing, with the program that is being
# tested.
guides() {
  local name
  if [ ! -d "${SPRAT_DATA:-/nowhere}/fashion-mnist" ] &&
    [ ! -d /usr/share/datasets/fashion-mnist ]; then
    echo "README.md, docs/low-rank.md, docs/tutorial.md: left out, there is" \
      "no fashion-mnist"
    return
  fi
  mkdir -p "$work/readme/build"
  cd "$work/readme" || exit 1
  ln -s "$sprat" build/sprat
  ln -s "$source/configs" "$source/tools" "$source/README.md" .
  for name in README docs/{low-rank,report,sharing-weights,tables,text} \
    docs/{tutorial,watching}; do
    blocks "$source/$name.md" "$work/$name"
    apply "$work/$name"
    rm -rf runs # each document names its runs as it likes
    execute_all "$work/$name"
  done
}

tutorials
guides
[ $failed = 0 ]
