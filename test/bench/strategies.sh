#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compares all strategies on graph files: extra cost in percent of the cost
# without recomputation, as a Markdown table. "-": none found, "x": proven that
# nothing fits. Runs ckopt-plan with the published strategies only.
# Usage: test/bench/strategies.sh GRAPH.json...
#   CKOPT_PLAN: the tool (build/bin/ckopt-plan-baselines); RATIOS: "0.7 0.5";
#   STRATEGIES; LIMIT: seconds a plan (20).
set -euo pipefail
plan=${CKOPT_PLAN:-build/bin/ckopt-plan-baselines}
ratios=${RATIOS:-0.7 0.5}
strategies=${STRATEGIES:-none all sqrt revolve rotor mincut lowerset greedy dtr segments prices auto}
limit=${LIMIT:-20}
printf '| graph | budget |'
for strategy in $strategies; do printf ' %s |' "$strategy"; done
printf '\n| --- | ---: |'
for strategy in $strategies; do printf ' ---: |'; done
printf '\n'
for graph in "$@"; do
  for ratio in $ratios; do
    printf '| %s | %s |' "$(basename "$graph" .json)" "$ratio"
    for strategy in $strategies; do
      code=0
      text=$("$plan" "$graph" --budget-ratio="$ratio" --strategy="$strategy" \
        --time-limit="$limit" 2>/dev/null) || code=$?
      case $code in
      0)
        extra=$(sed -nE 's/.* ([0-9.]+) % more cost.*/\1/p' <<<"$text")
        printf ' %s |' "${extra:-0}"
        ;;
      2) printf ' x |' ;;
      3) printf ' - |' ;;
      *) printf ' error %s |' "$code" ;;
      esac
    done
    printf '\n'
  done
done
