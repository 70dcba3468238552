//===- InitRule.h - first values that are one number ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CORE_INITRULE_H
#define CKOPT_LIB_RUNTIME_CORE_INITRULE_H

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

namespace ckopt::runtime {

/// Returns the number that the rule gives all elements, nothing for rules that
/// draw random numbers and for text that is no rule.
inline std::optional<double> initialNumber(std::string_view rule) {
  if (rule.empty() || rule == "zeros")
    return 0.0;
  if (rule == "ones")
    return 1.0;
  double value = 0;
  const char *end = rule.data() + rule.size();
  auto [rest, error] = std::from_chars(rule.data(), end, value);
  if (error != std::errc() || rest != end || !std::isfinite(value))
    return std::nullopt;
  return value;
}

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_CORE_INITRULE_H
