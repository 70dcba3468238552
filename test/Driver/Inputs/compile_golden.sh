#!/usr/bin/env bash
# compile_golden.sh GOLDEN OUT: each golden network for CUDA, as OUT/NAME.
set -euo pipefail
for folder in "$1"/*/; do
  name=$(basename "$folder")
  loss=$(sed -n 's/.*"loss": "\(.*\)".*/\1/p' "$folder/about.json")
  ckopt compile "$folder/model.onnx" --loss="$loss" --momentum=0.9 --clip-norm=1 --target=cuda --quiet -o "$2/$name" >/dev/null
done
