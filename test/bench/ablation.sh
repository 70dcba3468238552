#!/usr/bin/env bash
# At equal arena bytes, what order, recomputation and placement each gain: the
# least extra cost (percent) whose arena fits a share of what the program order
# needs as best fit packs it. Runs ckopt-plan only.
#   order: other orders, no recomputation.   fixed: recomputation in the
#   program order, planned for 95 % of the bytes and packed afterwards, since
#   without placement in the loop room must be left for fragmentation.
#   joint: order, recomputation and placement together.
# Usage: test/bench/ablation.sh GRAPH.json...
#   CKOPT_PLAN: the tool (build/bin/ckopt-plan); RATIOS: "0.7 0.5"; LIMIT: 20.
set -euo pipefail
plan=${CKOPT_PLAN:-build/bin/ckopt-plan}
ratios=${RATIOS:-0.7 0.5}
limit=${LIMIT:-20}
extra() { # flags... -> percent, - or x
  local code=0 text
  text=$("$plan" "$@" --time-limit="$limit" 2>/dev/null) || code=$?
  case $code in
  0)
    text=$(sed -nE 's/.* ([0-9.]+) % more cost.*/\1/p' <<<"$text")
    echo "${text:-0}"
    ;;
  2) echo x ;;
  *) echo - ;;
  esac
}
echo '| graph | budget | order | fixed order, placed after | fixed order, joint placement | all joint |'
echo '| --- | ---: | ---: | ---: | ---: | ---: |'
for graph in "$@"; do
  for ratio in $ratios; do
    tight=$(awk "BEGIN { print $ratio * 0.95 }")
    echo "| $(basename "$graph" .json) | $ratio |" \
      "$(extra "$graph" --budget-ratio="$ratio" --pack --strategy=none) |" \
      "$(extra "$graph" --budget-ratio="$tight" --fixed-order) |" \
      "$(extra "$graph" --budget-ratio="$ratio" --fixed-order --pack) |" \
      "$(extra "$graph" --budget-ratio="$ratio" --pack) |"
  done
done
