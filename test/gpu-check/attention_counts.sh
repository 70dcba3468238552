#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Shows that attention's kernels, forward and backward, take at most 128
# registers (scripts/kernel-counts), for heads of several sizes, with and without
# causality and masks, and where tiles are not full; and that they spill nothing,
# but for the bytes of the table in docs/attention.md: of causal kernels with a
# mask and tiles that are not full, and of gradients where f32 is rounded to
# halves. A bound below what they have must fail, or nothing is counted. Skipped,
# and said so, where ptxas or cuobjdump is missing.
# Usage: attention_counts.sh SOURCE CKOPT PYTHON
set -euo pipefail
source=$1 ckopt=$2 python=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "attention_counts.sh: $*" >&2; exit 1; }
counts=("$python" "$source/scripts/kernel-counts")
"${counts[@]}" "$work" >"$work/skipped" 2>&1 && status=0 || status=$?
[ $status -ne 77 ] || { cat "$work/skipped"; exit 77; }
# spilled SM PRECISION: the most bytes that a kernel may spill.
spilled() {
  case "$1 $2" in
    "90 --precision=bf16") echo 16 ;;
    *--precision=bf16) echo 0 ;;
    "90 "*=bf16 | "90 "*=f16) echo 412 ;;
    *=bf16 | *=f16) echo 352 ;;
    "90 --matmul-precision=f32") echo 116 ;;
    *=f32) echo 108 ;;
    "90 --matmul-precision=tf32") echo 32 ;;
    *) echo 48 ;;
  esac
}
for columns in 32 64 80 96 128; do
  for sm in 80 90; do
    for precision in --matmul-precision={f32,tf32,bf16,f16} --precision=bf16; do
      step=$work/$columns-$sm$precision
      "$ckopt" compile "$source/test/data/models/attention/heads_of_$columns.onnx" --loss=output:loss --optimizer=sgd \
        --target=cuda --sm=$sm --cuda-libs=none --attention=on $precision -o "$step" >"$work/log" 2>&1 ||
        { cat "$work/log"; fail "compile"; }
      "${counts[@]}" --most-registers=128 --most-spilled="$(spilled $sm $precision)" "$step" >"$work/counts" || { cat "$work/counts"; fail "$step: a bound does not hold"; }
      [ "$(grep -c registers "$work/counts")" -ge 6 ] || { cat "$work/counts"; fail "$step: no attention"; }
    done
  done
done
! "${counts[@]}" --most-registers=64 "$work/64-90--precision=bf16" >/dev/null 2>&1 || fail "nothing is counted"
