#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Times training steps, and PyTorch's beside them if a Python with torch is
# given: alternately, so that a noisy machine is as noisy for both.
# Usage: test/bench/pair.sh MODELS_DIR [PYTHON BENCH_TORCH.py] [ROUNDS]
#   MODELS_DIR holds resnet50.onnx and gpt2_small.onnx (weights as inputs).
set -euo pipefail
models=$1
python=${2:-}
torch_bench=${3:-}
rounds=${4:-3}
ckopt=${CKOPT:-build/bin/ckopt}
ours() { # MODEL BATCH flags...
  local model=$1 batch=$2
  shift 2
  "$ckopt" bench "$models/$model.onnx" --batch="$batch" --loss=cross_entropy \
    --optimizer=sgd --momentum=0.9 --threads=2 --steps=5 "$@" |
    grep -E '^step|planned peak' | sed "s/^/ckopt $model b$batch $* /"
}
for ((round = 1; round <= rounds; ++round)); do
  for pair in "resnet50 8 channels_last" "gpt2_small 2 -"; do
    read -r model batch flag <<<"$pair"
    if [ -n "$python" ]; then
      STEPS=5 "$python" "$torch_bench" "$model" "$batch" none 2 "$flag" momentum fused |
        grep '^{' | sed "s/^/torch /"
    fi
    ours "$model" "$batch"
    ours "$model" "$batch" --activation-ratio=0.6
  done
done
