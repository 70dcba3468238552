#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Packs small networks with test/gpu and runs the archive on the stand-in driver:
# all passes there; a kernel that fails, other bits and a machine without a driver
# are found and said.
# Usage: check.sh SOURCE BUILD PYTHON
set -euo pipefail
source=$1 build=$2 python=$3
work=$build/test/gpu
rm -rf "$work" && mkdir -p "$work" && cd "$work"
fail() { echo "check.sh: $*" >&2; exit 1; }
"$python" "$source/test/gpu/pack" -o archive.tar.gz --build="$build" --networks=mlp --large=llama_tiny \
  --attentions=2x4/2x128x32:causal --work=8000000 --sm=90 --emulation >pack.log 2>&1 || { cat pack.log; fail "pack"; }
mkdir "un packed" # all runs start in another folder
tar xf archive.tar.gz -C "un packed"
there="un packed/ckopt-gpu"
standin=$build/cuda-standin/libcuda.so.1
# visit STATE EXPECTED-CODE ARGUMENTS...: variables for the stand-in are in $with.
visit() {
  local state=$1 expected=$2 code=0
  shift 2
  # shellcheck disable=SC2086
  env -u LD_LIBRARY_PATH CKOPT_CUDA_DRIVER="$standin" CKOPT_CUBLASLT="$standin" CKOPT_CUDNN="$standin" \
    CKOPT_STANDIN_KERNELS=ptx ${with:-} \
    "$python" "$there/run" --state="$state" --steps=2 --ckopt="$build/bin/ckopt" "$@" >"$state.log" 2>&1 || code=$?
  [ $code -eq "$expected" ] || { cat "$state.log"; fail "$state: exit code $code, not $expected"; }
}
told() { grep -Eq -- "$2" "$1/report.md" || { cat "$1/report.md"; fail "$1: the report lacks $2"; }; }

some='mlp/[^/]*(32|16|of)|ours|/cuDNN|tiny/(auto|train)' # all that the stand-in can do
visit all 0 --only="$some" --part=A --deadline=0
told all '^0 passed, 0 failed, 0 skipped, 5 not done by the deadline: run again$'
with="CKOPT_STANDIN_LOG=$work/calls" visit all 0 --only="$some"
told all '^\| mlp/f32 \| ok \| largest [0-9.]+e-0[5-9], together [0-9.e-]+, same_bits True \|$'
told all '^\| mlp/budgets of training \| ok \| planned \['
told all '^\| attention/2x4-2x128x32-causal/ours \| ok \| forward [0-9.e-]+, backward [0-9.e-]+ \|$'
told all '^\| attention/2x4-2x128x32-causal/cuDNN \| ok \| forward [0-9.e-]+, backward [0-9.e-]+, together [0-9.]+(e-[0-9]+)? \|$'
told all '^\| llama_tiny/train \| ok \| alone [0-9.]+, ratio [0-9.]+, wall [0-9.]+ \|$'
told all '^\| llama_tiny/auto/stored-bf16/0.5 \| ok \| best .*, slower '
told all '^\| llama_tiny/auto/stored-bf16/early \| ok \| best .*, slower '
told all '^11 passed, 0 failed, 0 skipped$'
grep -q 'cuLaunchKernelEx .* early' calls || fail "nothing begins early"
! grep -E 'VIOLATION|LEAK' calls || fail "the stand-in objects"
cp all/results.json before
with="CKOPT_STANDIN_FAIL=cuGraphLaunch:1:719" visit all 0 --only="$some" # nothing is run again
cmp before all/results.json

with="CKOPT_STANDIN_FAIL=cuGraphLaunch:1:719" visit broken 1 --only="$some" --part=AC
told broken '^\| mlp/f32 \| FAILED \| .*one by one'
told broken '^0 passed, 6 failed'
sed -i 's/"hash": "[0-9a-f]*"/"hash": "0123456789abcdef"/' "$there/cases.json"
visit bits 1 --only=mlp/f32
told bits '^\| mlp/f32 \| FAILED \| .*other bits than the same kernels as CPU code'
# Operands that are not rounded.
rm -r "$there"/steps/mlp/tf32/0* && cp -r "$there"/steps/mlp/f32/0* "$there"/steps/mlp/tf32/
visit exact 1 --only=mlp/tf32
told exact 'FAILED .*error of the gradients .*, not from '
# Another seed where the lock file is a new one.
mv "$there"/bin/ckopt-run "$there"/bin/true-run
# shellcheck disable=SC2016
printf '#!/bin/sh\ncase "$*" in *new.lock*) set -- "$@" --seed=1 ;; esac\nexec "${0%%ckopt-run}true-run" "$@"\n' >"$there"/bin/ckopt-run
chmod +x "$there"/bin/ckopt-run
visit twice 1 --only='tiny/auto/stored-bf16$'
told twice '^\| llama_tiny/auto/stored-bf16 \| FAILED \| .*other bits, [0-9a-f]+, in another run with [a-z0-9_.-]+new.lock \|$'
with="CKOPT_CUDA_DRIVER=$work/none.so" visit none 10
