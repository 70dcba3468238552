#!/usr/bin/env bash
# Packs two small networks with tools/gpu-check and runs the archive on the
# stand-in driver: all checks pass there; a kernel that fails, and a machine
# without a driver, are found and said.
# Usage: check.sh SOURCE BUILD PYTHON
set -euo pipefail
source=$1 build=$2 python=$3
work=$build/test/gpu-check
rm -rf "$work"
mkdir -p "$work"
cd "$work"
fail() { echo "check.sh: $*" >&2; exit 1; }

"$python" "$source/tools/gpu-check/pack" -o archive.tar.gz --build="$build" --networks=mlp,lenet --large= --effort=0.1 --emulation \
  >pack.log 2>&1 || { cat pack.log; fail "pack"; }
tar xf archive.tar.gz
# Nothing of the build is used from here on but the stand-in.
standin=$build/test/cuda-standin/libcuda.so.1
on_standin() {
  env -u CUDA_HOME PATH=/usr/bin:/bin CKOPT_CUDA_DRIVER="$standin" CKOPT_CUBLASLT="$standin" \
    CKOPT_CUDNN="$standin" "$@"
}

on_standin CKOPT_STANDIN_LOG="$work/calls" gpu-check/run --output=report.md >run.log 2>&1 ||
  { cat run.log; fail "run"; }
grep -q '^All checks passed' report.md || fail "no verdict in the report"
grep -Eq '^\| lenet \| [0-9]+, [0-9]+, [0-9]+, [0-9]+ \| [0-9.]+e-[0-9]+ \| yes \| yes \| yes \| not run \|$' report.md ||
  { cat report.md; fail "no row for lenet"; }
[ "$(sed -n 's/^| lenet | \([0-9]*\), .*/\1/p' report.md)" -gt "$(sed -n 's/^| lenet | [0-9]*, [0-9]*, [0-9]*, \([0-9]*\) .*/\1/p' report.md)" ] ||
  fail "the smallest budget of lenet is not below the largest plan"
grep -q 'compute-sanitizer is not installed' report.md || fail "a skipped check is not said"
! grep -E 'VIOLATION|LEAK' calls || fail "the stand-in objects"

# The part for large networks, on a small one.
for libraries in none all; do
  for budget in 0 1; do
    mkdir -p gpu-check/steps/toy/$libraries
    cp -r gpu-check/steps/mlp/training/$budget gpu-check/steps/mlp/training/$budget.so gpu-check/steps/toy/$libraries
  done
done
mv gpu-check/cases gpu-check/all-cases
echo "large toy x target 6 -1:1 -1:1" >gpu-check/cases
on_standin gpu-check/run --output=large.md --steps=3 >large.log 2>&1 || { cat large.log; fail "run of a large network"; }
[ "$(grep -Ec '^\| toy, batch 6 \| ckopt, --cuda-libs=(none|all), .* \| [0-9.]+ s \| [0-9.]+ s \|' large.md)" -eq 4 ] ||
  { cat large.md; fail "no rows for a large network"; }
mv gpu-check/all-cases gpu-check/cases

# Every step fails: rows and the exit code say so.
code=0
on_standin CKOPT_STANDIN_FAIL=cuGraphLaunch:1:719 gpu-check/run --output=failed.md >failed.log 2>&1 || code=$?
[ $code -eq 1 ] || { cat failed.log; fail "exit code $code where every step fails"; }
grep -q '^## Failed' failed.md && grep -q '^| mlp .*| no | no | no |' failed.md ||
  { cat failed.md; fail "failures are not in the report"; }

# References that are off by more than the tolerance.
sed -i 's/grad/gra_/; t' gpu-check/golden/mlp/expect.safetensors
code=0
on_standin gpu-check/run --output=off.md >off.log 2>&1 || code=$?
[ $code -eq 1 ] && grep -q "^- mlp, budget 0: .*does not make 'gra_/" off.md ||
  { cat off.log; fail "exit code $code where a reference is missing"; }

# No driver.
code=0
CKOPT_CUDA_DRIVER=$work/none.so gpu-check/run --output=none.md >none.log 2>&1 || code=$?
[ $code -eq 10 ] && grep -q 'nothing could be run (exit code 10)' none.log ||
  { cat none.log; fail "exit code $code without a driver"; }
rm -rf gpu-check archive.tar.gz
