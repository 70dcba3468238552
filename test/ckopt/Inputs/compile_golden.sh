#!/usr/bin/env bash
# compile_golden.sh GOLDEN OUT NAME...: golden networks for CUDA, as OUT/NAME.
set -euo pipefail
golden=$1 out=$2
shift 2
for name in "$@"; do
  folder=$golden/$name
  loss=$(sed -n 's/.*"loss": "\(.*\)".*/\1/p' "$folder/about.json")
  ckopt compile "$folder/model.onnx" --loss="$loss" --momentum=0.9 --clip-norm=1 --target=cuda --quiet -o "$out/$name" >/dev/null
done
