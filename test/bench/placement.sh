#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# How many bytes packing adds: the arena of plans with `--pack` over their load,
# and whether a smaller one is ruled out for their steps. Runs ckopt-plan only.
# Usage: test/bench/placement.sh GRAPH.json...
#   CKOPT_PLAN: the tool (build/bin/ckopt-plan); RATIOS: "0.9 0.7 0.5 0.3";
#   LIMIT: 4 (seconds of search a plan; GRAPHs of 10,000 nodes need 10).
set -euo pipefail
plan=${CKOPT_PLAN:-build/bin/ckopt-plan}
ratios=${RATIOS:-0.9 0.7 0.5 0.3}
limit=${LIMIT:-4}
bytes() { # label, in what the tool says
  sed -nE "s/^$1 .*\(([0-9,]+) B\).*/\1/p" | head -1 | tr -d ,
}
cell() { # graph ratio -> arena/load, - (none found) or x (none exists)
  local code=0 text
  text=$("$plan" "$1" --budget-ratio="$2" --pack --time-limit="$limit" 2>/dev/null) || code=$?
  case $code in
  0) awk "BEGIN { printf \"%.4f\", $(bytes arena <<<"$text") / $(bytes peak <<<"$text") }" ;;
  2) echo x ;;
  *) echo - ;;
  esac
}
echo "| graph |$(for ratio in $ratios; do printf ' %s |' "$ratio"; done)"
echo "| --- |$(for _ in $ratios; do printf ' ---: |'; done)"
for graph in "$@"; do
  line="| $(basename "$graph" .json) |"
  for ratio in $ratios; do
    line+=" $(cell "$graph" "$ratio") |"
  done
  echo "$line"
done
