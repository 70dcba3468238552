#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Counts registers, spills and waits for memory in the machine code of a golden
# network's products and convolutions, and in its sums of columns and its rows
# (scripts/kernel-counts); skipped, and said so, where ptxas or cuobjdump is
# missing. A bound below what they have must fail, or nothing is counted.
# Usage: kernel_counts.sh SOURCE CKOPT PYTHON
set -euo pipefail
source=$1 ckopt=$2 python=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "kernel_counts.sh: $*" >&2; exit 1; }
counts=("$python" "$source/scripts/kernel-counts")
"${counts[@]}" "$work" >"$work/skipped" 2>&1 && status=0 || status=$?
[ $status -ne 77 ] || { cat "$work/skipped"; exit 77; }
for precision in f32 tf32 bf16; do
  "$ckopt" compile "$source/test/data/models/digits_cnn.onnx" --loss=cross_entropy --optimizer=sgd --lr=0.1 --batch=64 \
    --target=cuda --sm=90 --matmul-precision=$precision -o "$work/$precision" >"$work/log" 2>&1 ||
    { cat "$work/log"; fail "compile"; }
done
# Kernels of two slices are no loops, and counted as a whole: each slice may wait.
"${counts[@]}" --most-registers=128 --most-waits=3 "$work"/{f32,tf32,bf16} || fail "a bound does not hold"
! "${counts[@]}" --most-registers=8 "$work/tf32" >/dev/null 2>&1 || fail "nothing is counted"

"$ckopt" compile "$source/test/data/models/byte_gpt.onnx" --loss=cross_entropy --optimizer=sgd --lr=0.1 --batch=16 \
  --target=cuda --sm=90 --attention=off -o "$work/gpt" >"$work/log" 2>&1 || { cat "$work/log"; fail "compile"; }
# Moments and sums of columns have all rows of a tile on their way, of several tensors, too: what
# ptxas does of its own accord is to keep 4 or 5, in fewer registers.
"${counts[@]}" --only='k_reduction_.*_s0' --least-in-flight=12 --most-registers=128 "$work"/{f32,bf16,gpt} ||
  fail "loads of columns wait for each other"
# A row's own vectors come first, what scales it when it is summed up.
"${counts[@]}" --only='k_row_.*_s0' --most-waits=3 "$work/gpt" || fail "loads of rows wait for each other"
! "${counts[@]}" --only='k_row_.*_s0' --least-in-flight=8 "$work/gpt" >/dev/null 2>&1 || fail "no flight is counted"

# The times that such counts lead to, beside those of plans: a GPU that takes a millisecond to start a kernel
# takes longer for all of them, and networks that nobody measured are an error.
times=("$python" "$source/scripts/kernel-times" "--ckopt=$ckopt" "$source/test/data/models/digits_cnn.onnx"
  --loss=cross_entropy --optimizer=sgd --batch=64 --sm=90 --cuda-libs=none --matmul-precision=tf32)
echo '{"format": "ckopt-profile/1", "device": "h200", "rates": {"overhead": 1e-3}}' >"$work/rates.json"
"${times[@]}" --device-rates=h200 >"$work/times" || fail "kernel-times"
"${times[@]}" --device-rates="$work/rates.json" >"$work/slow" || fail "kernel-times by a file"
of() { sed -n "s/^$2 *counted *\([0-9.]*\) ms.*/\1/p" "$work/$1"; }
for kind in elementwise products reductions rows updates all; do
  [ -n "$(of times $kind)" ] || { cat "$work/times"; fail "no time of $kind"; }
  "$python" -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(not b > a + 0.9)' "$(of times $kind)" "$(of slow $kind)" ||
    fail "starting a kernel of $kind does not count"
done
! "${times[@]}" --measured="$source/test/Driver/Inputs/measured.json:digits_cnn:tf32" >/dev/null 2>&1 || fail "nothing was measured"
# Products of halves have a rate of their own.
for precision in f32 bf16; do
  "$python" "$source/scripts/kernel-times" "--ckopt=$ckopt" "$source/test/data/models/byte_gpt.onnx" --loss=cross_entropy --batch=256 \
    --optimizer=sgd --sm=90 --cuda-libs=none --precision=$precision --device-rates=h200 >"$work/$precision.txt" || fail "kernel-times by $precision"
done
"$python" -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(not b < 0.6 * a)' "$(of f32.txt products)" "$(of bf16.txt products)" ||
  { cat "$work"/{f32,bf16}.txt; fail "halves are no faster"; }
