# What the tests of programs from outside share; they source it. Bash.

# scratch: the present folder becomes an empty one, which is removed at the end;
# a small file system may be mounted there as `small`.
scratch() {
  work=$(mktemp -d)
  trap '[ ! -d "$work/small" ] || umount "$work/small" 2>/dev/null
    rm -rf "$work"' EXIT
  cd "$work" || exit 1
}

failed=0

# fault WHAT: count a mistake, and show what the program has said.
fault() {
  echo "  FAILED: $*"
  sed 's/^/    | /' out err 2>/dev/null | head -40
  failed=$((failed + 1))
}

# said FILE PATTERN...: each must be found in it.
said() {
  local file=$1 pattern
  shift
  for pattern in "$@"; do
    grep -qE -- "$pattern" "$file" || fault "$file does not say: $pattern"
  done
}

# use_mpi: jobs of ranks as root, too; more ranks than cores; nothing but this
# machine's memory. Open MPI leaves memory to the system when it ends.
use_mpi() {
  command -v mpirun >/dev/null || { echo "skipped: no mpirun"; exit 77; }
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader
  export OMPI_MCA_pml=ob1 OMPI_MCA_mtl='^ofi,psm,psm2'
  export OMPI_MCA_hwloc_base_binding_policy=none
  export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
}

# tiny.yaml: a network and data so small that an epoch takes milliseconds.
write_tiny() {
  cat >tiny.yaml <<'YAML'
model: {name: mlp}
data: {name: synthetic, shape: [6, 6, 1], classes: 4, train: 256, test: 64}
train: {epochs: 3, batch: 16, threads: 1, seed: 3}
optim: {lr: 0.05}
YAML
}
