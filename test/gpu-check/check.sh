#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Packs two small networks with tools/gpu-check and runs the archive on the
# stand-in driver: all checks pass there; a kernel that fails, findings of
# compute-sanitizer (a script in its place), a report that cannot be written and
# a machine without a driver are found and said.
# Usage: check.sh SOURCE BUILD PYTHON
set -euo pipefail
source=$1 build=$2 python=$3
work=$build/test/gpu-check
rm -rf "$work"
mkdir -p "$work"
cd "$work"
fail() { echo "check.sh: $*" >&2; exit 1; }

"$python" "$source/tools/gpu-check/pack" -o archive.tar.gz --build="$build" --networks=mlp,lenet --large= --work=8000000 --emulation \
  >pack.log 2>&1 || { cat pack.log; fail "pack"; }
grep -q '^archive.tar.gz: [0-9.]* MiB (at most 60), 2 networks' pack.log && grep -q ' KiB  steps/lenet$' pack.log ||
  { cat pack.log; fail "what takes the room is not said"; }
# A name with a space; all runs start in another folder.
mkdir "un packed"
tar xf archive.tar.gz -C "un packed"
there="un packed/gpu-check"
for binary in "$there"/bin/* "$there"/lib/*; do
  ! ldd "$binary" | grep -Ev 'linux-vdso|/(libc|libm|libgcc_s)\.so|/ld-linux' || fail "$binary needs more than the C library"
  ! grep -qF "$build" "$binary" || fail "$binary names the folder it was built in"
done
# Nothing of the build is used from here on but the stand-in.
standin=$build/cuda-standin/libcuda.so.1
on_standin() {
  env -u CUDA_HOME -u LD_LIBRARY_PATH PATH=/usr/bin:/bin CKOPT_CUDA_DRIVER="$standin" CKOPT_CUBLASLT="$standin" \
    CKOPT_CUDNN="$standin" "$@"
}

# One log of all processes: each opens it anew.
mkfifo pipe
cat pipe >calls &
reader=$!
exec 9>pipe
on_standin CKOPT_STANDIN_LOG="$work/pipe" "$there"/run --output=report.md >run.log 2>&1 9>&- ||
  { cat run.log; fail "run"; }
exec 9>&-
wait $reader
grep -q '^All checks passed' report.md || fail "no verdict in the report"
grep -Eq '^\| lenet \| [0-9]+, [0-9]+, [0-9]+, [0-9]+ \| [0-9.]+e-[0-9]+ \| yes \| yes \| yes \| not run \|$' report.md ||
  { cat report.md; fail "no row for lenet"; }
[ "$(sed -n 's/^| lenet | \([0-9]*\), .*/\1/p' report.md)" -gt "$(sed -n 's/^| lenet | [0-9]*, [0-9]*, [0-9]*, \([0-9]*\) .*/\1/p' report.md)" ] ||
  fail "the smallest budget of lenet is not below the largest plan"
[ "$(grep -Ec '^\| (mlp|lenet) \| (tf32|bf16) \| ([0-9.e-]+) \| \3 \([0-9.e-]+ to [0-9.e-]+\) \| [0-9.e-]+ \| 0 \| yes \| yes \| not run \|$' report.md)" -eq 4 ] ||
  { cat report.md; fail "no rows for rounded operands"; }
grep -q 'compute-sanitizer is not installed' report.md || fail "a skipped check is not said"
[ "$(grep -c cuInit calls)" -gt 48 ] || fail "the log lacks processes"
! grep -E 'VIOLATION|LEAK' calls || fail "the stand-in objects"

# The part for large networks, on a small one.
for libraries in none all; do
  for budget in 0 1; do
    mkdir -p "$there"/steps/toy/$libraries
    cp -r "$there"/steps/lenet/training/$budget "$there"/steps/lenet/training/$budget.so "$there"/steps/toy/$libraries
  done
  cp -r "$there"/steps/toy/$libraries/0 "$there"/steps/toy/$libraries/tf32
  cp "$there"/steps/toy/$libraries/0.so "$there"/steps/toy/$libraries/tf32.so
done
cp -r "$there"/steps/toy/none/0 "$there"/steps/toy/none/bf16
cp "$there"/steps/toy/none/0.so "$there"/steps/toy/none/bf16.so
mv "$there"/cases "$there"/all-cases
echo "large toy x target 6 -1:1 0:10" >"$there"/cases
on_standin "$there"/run --output=large.md --steps=3 >large.log 2>&1 || { cat large.log; fail "run of a large network"; }
[ "$(grep -Ec '^\| toy, batch 6 \| ckopt, --cuda-libs=(none|all), .* \| [0-9.]+ s \| [0-9.]+ s \|' large.md)" -eq 7 ] && grep -q -- '--cuda-libs=none, no budget, bf16 | [0-9.]* s' large.md ||
  { cat large.md; fail "no rows for a large network"; }

# Scripts in the place of tools: a sanitizer that finds something with one of its
# tools, and a PyTorch whose compiled network has another number of parameters.
mkdir tools
cat >tools/compute-sanitizer <<'END'
#!/bin/bash
[ "$1" != --version ] || { echo "Version 1.2.3"; exit; }
while [[ $1 == --* ]]; do
  case $1 in --tool) tool=$2 ;; --log-file) log=$2 ;; --error-exitcode) found=$2 ;; esac
  shift 2
done
"$@" || exit
[ $tool != racecheck ] || { printf '========= COMPUTE-SANITIZER\n========= Error: Race reported\n=========\n' >"$log"; exit $found; }
END
cat >tools/python3 <<'END'
#!/bin/bash
[ "$1" != -c ] || { echo "1.2.3 yes"; exit; }
[ "$5" = --tf32=off ] || { echo "no TF32 today" >&2; exit 1; }
[ "$4" = eager ] && count=15734 || count=1
printf 'row PyTorch %s | 0.1 s | 0.2 s | | 1.0 MiB | 2.0 MiB\nparameters %d\n' "$4" $count
END
chmod +x tools/*
grep '^golden mlp' "$there"/all-cases >>"$there"/cases
code=0
on_standin PATH="$work/tools:/usr/bin:/bin" "$there"/run --output=tools.md --steps=2 >tools.log 2>&1 || code=$?
[ $code -eq 1 ] && grep -q '^| compute-sanitizer | 1.2.3 |$' tools.md &&
  grep -q '^| mlp | .* | memcheck, synccheck, initcheck |$' tools.md &&
  grep -q '^- mlp/gradients/3 under racecheck: .*Race reported' tools.md && grep -q 'Race reported' tools.mlp.gradients.3.racecheck.log &&
  grep -q '^| toy, batch 6 | PyTorch eager | 0.1 s | 0.2 s |' tools.md &&
  grep -q '^- toy: 1 parameters in PyTorch, 15734 in ckopt' tools.md && grep -q '^- toy in PyTorch (eager, TF32 on): no TF32 today' tools.md &&
  grep -q '^## Failed (2)' tools.md || { cat tools.log; fail "exit code $code with scripts for tools"; }

# Every step fails: rows and the exit code say so.
grep '^golden mlp' "$there"/all-cases >"$there"/cases
code=0
on_standin CKOPT_STANDIN_FAIL=cuGraphLaunch:1:719 "$there"/run --output=failed.md >failed.log 2>&1 || code=$?
[ $code -eq 1 ] || { cat failed.log; fail "exit code $code where every step fails"; }
grep -q '^## Failed' failed.md && grep -q '^| mlp .*| no | no | no |' failed.md ||
  { cat failed.md; fail "failures are not in the report"; }

# Operands that are not rounded; gradients ten times as far off as those of the
# kernels as CPU code.
grep '^golden mlp' "$there"/all-cases >"$there"/cases
grep '^rounded mlp .* tf32 ' "$there"/all-cases >>"$there"/cases
sed -n 's/^\(rounded mlp .* bf16\) .*/\1 0.000277/p' "$there"/all-cases >>"$there"/cases
for budget in 0 1; do
  rm -r "$there"/steps/mlp/tf32/$budget
  cp -r "$there"/steps/mlp/gradients/$((budget * 3)) "$there"/steps/mlp/tf32/$budget
done
cp "$there"/steps/mlp/gradients/0.so "$there"/steps/mlp/tf32/0.so
cp "$there"/steps/mlp/gradients/3.so "$there"/steps/mlp/tf32/1.so
code=0
on_standin "$there"/run --output=other.md >other.log 2>&1 || code=$?
[ $code -eq 1 ] && grep -Eq '^- mlp by tf32: error of the gradients [0-9.]+e-0[678], not from [0-9.]+e-05 to ' other.md &&
  grep -Eq '^- mlp by bf16: error of the gradients 0.0027[0-9]*, not from [0-9.]+e-05 to 0.00255 \(0.000277 as CPU code\)' other.md && grep -q '^## Failed (2)' other.md ||
  { cat other.log; fail "exit code $code where operands are not rounded, or gradients far off"; }

# A reference that is missing.
sed -i 's/grad/gra_/; t' "$there"/golden/mlp/expect.safetensors
code=0
on_standin "$there"/run --output=off.md >off.log 2>&1 || code=$?
[ $code -eq 1 ] && grep -q "^- mlp, budget 0: .*does not make 'gra_/" off.md ||
  { cat off.log; fail "exit code $code where a reference is missing"; }

# A full disk.
code=0
on_standin "$there"/run --output=/dev/full >full.log 2>&1 || code=$?
[ $code -eq 74 ] && grep -q '/dev/full cannot be written' full.log || { cat full.log; fail "exit code $code on a full disk"; }

# No driver.
code=0
on_standin CKOPT_CUDA_DRIVER="$work/none.so" "$there"/run --output=none.md >none.log 2>&1 || code=$?
[ $code -eq 10 ] && grep -q 'nothing could be run (exit code 10)' none.log ||
  { cat none.log; fail "exit code $code without a driver"; }
rm -rf "un packed" archive.tar.gz
