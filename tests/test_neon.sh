#!/usr/bin/env bash
# The kernels for 64-bit Arm: compiled by a cross-compiler, then run in an
# emulator against plain loops (cross_kernels.c).
#   test_neon.sh SOURCE-FOLDER COMPILER SANITIZERS      77: skipped
# COMPILER: gcc or clang, as Meson calls it. tools/setup cross installs what is
# wanted.
set -euo pipefail
source=$(realpath "$1")
compiler=$2 sanitizers=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

skip() {
  echo "skipped: $*"
  exit 77
}

# The builds without sanitizers have run the same.
[ "$sanitizers" = none ] || skip "not with sanitizers"
[ "$(uname -m)" != aarch64 ] || skip "this CPU has NEON: see cross-kernels"
if [ "$compiler" = clang ] && command -v clang >/dev/null; then
  c="['clang', '--target=aarch64-linux-gnu']"
else
  c="'aarch64-linux-gnu-gcc'"
fi
# clang takes its linker and libraries from gcc's.
command -v aarch64-linux-gnu-gcc >/dev/null ||
  skip "aarch64-linux-gnu-gcc is missing (Debian: gcc-aarch64-linux-gnu)"
echo '#include <stdio.h>' | aarch64-linux-gnu-gcc -E - >/dev/null 2>&1 ||
  skip "its C library is missing (Debian: libc6-dev-arm64-cross)"
qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) ||
  skip "qemu-aarch64 is missing (Debian: qemu-user)"

cat >"$work/aarch64.ini" <<END
[binaries]
c = $c
ar = 'aarch64-linux-gnu-ar'
exe_wrapper = '$qemu'
[built-in options]
c_link_args = '-static'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END

# run COMMAND...: its output is shown when it fails. Flags for this machine's
# own compiler are not for that one.
run() {
  env -u CC -u CFLAGS -u CPPFLAGS -u LDFLAGS "$@" >"$work/log" 2>&1 && return
  echo "FAILED: $*"
  cat "$work/log"
  exit 1
}

werror=false
[ "${CI:-}" != true ] || werror=true
run meson setup "$work/build" "$source" --cross-file "$work/aarch64.ini" \
  -Dkernels_only=true -Dwerror=$werror
run ninja -C "$work/build"
grep 'warning:' "$work/log" || true

status=0
"$qemu" "$work/build/tests/cross_kernels" | tee "$work/out" || status=$?
for part in direct winograd-2 winograd-4 norm elements softmax pool products \
  gates; do
  grep -Eq "^neon +$part " "$work/out" || { echo "no $part for neon"; status=1; }
done
exit $status
