// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parts of the C++ standard library that most plain files include.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
