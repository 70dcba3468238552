//===- SettingNames.h - names of settings in messages -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_SETTINGNAMES_H
#define CKOPT_BASE_SETTINGNAMES_H

#include <algorithm>
#include <string>
#include <string_view>

namespace ckopt {

/// Names of settings, separated by blanks: those of flags without dashes, and
/// of options in C. Each is a flag (unittests/CAPI/FrontsTest.cpp).
inline constexpr std::string_view kSettingNames =
    " accumulate activation-ratio allow-inference-export attention augment "
    "batch best-by beta budget budget-ratio budgets calibrate check-finite "
    "checkpoint checkpoint-every chunk-vocab class-axis class-weights "
    "clip-norm collectives compile-from compile-to compute-type constant "
    "cost-model cpu cuda-emulation cuda-libs cuda-programmatic-launches "
    "cuda-weight-copies "
    "cuda-workspace dampening data "
    "data-cache delta device device-rates dim dora early-stop effort ema "
    "ema-out epochs fixed-order freeze freeze-norms group group-size holdout "
    "ignore-index images init inputs keep-best keep-f32 kernel-cache "
    "label-smoothing layout library-table log lora lora-alpha lora-dropout "
    "lora-targets loss loss-scale loss-scale-growth-interval loss-scale-init "
    "lr lr-anneal lr-div-factor lr-final-div-factor lr-gamma lr-milestones "
    "lr-pct-start lr-schedule lr-step-size lr-unit margin matmul-precision "
    "max-steps memory-budget metrics min-lr-ratio minimum momentum "
    "multiprocessors nccl-id nesterov no-overlap normalize optimizer "
    "order-only parallel param-type pareto plan-hint plan-out pos-weight "
    "precision profile profile-out quiet rank-timeout reduction remat-compare "
    "resize resume save-trained sequence shape sm soft-targets state-type "
    "strategy sync-batchnorm target targets threads tile-rows timeline "
    "token-type tokens total-steps train type unused-inputs validate-every "
    "validation verify-remat warmup-start warmup-steps weights ";

/// The keyword in Python.
inline std::string keywordOf(std::string_view name) {
  std::string keyword(name == "memory-budget" ? "budget" : name);
  std::replace(keyword.begin(), keyword.end(), '-', '_');
  return keyword;
}

/// A setting's name in a message; an unknown name does not compile.
struct SettingName {
  consteval SettingName(const char *text) : name(text) {
    size_t at = 0;
    do {
      at = kSettingNames.find(name, at + 1);
      if (at == kSettingNames.npos)
        thereIsNoSuchSetting();
    } while (kSettingNames[at - 1] != ' ' ||
             kSettingNames[at + name.size()] != ' ');
  }

  std::string_view name;

private:
  static void thereIsNoSuchSetting() {}
};

} // namespace ckopt

#endif // CKOPT_BASE_SETTINGNAMES_H
