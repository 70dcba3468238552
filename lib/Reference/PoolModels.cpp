//===- PoolModels.cpp - meaning of pooling --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Models.h"
#include <limits>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::reference;

namespace {
/// The points of one window that lie in the input: row-major positions in the
/// kernel and offsets in the input's spatial block.
struct Window {
  SmallVector<std::pair<int64_t, int64_t>> points;
};
} // namespace

/// The window of each output position.
template <typename Op>
static std::vector<Window> findWindows(Op op, ArrayRef<int64_t> input,
                                       ArrayRef<int64_t> output) {
  std::vector<Window> windows;
  SmallVector<int64_t> strides = rowMajorStrides(input);
  forEachIndex(output, [&](ArrayRef<int64_t> o, int64_t) {
    Window &window = windows.emplace_back();
    forEachIndex(op.getKernel(), [&](ArrayRef<int64_t> k, int64_t position) {
      int64_t offset = 0;
      for (size_t d = 0; d < input.size(); ++d) {
        int64_t at = o[d] * op.getStrides()[d] - op.getPadsLow()[d] +
                     k[d] * op.getDilations()[d];
        if (at < 0 || at >= input[d])
          return;
        offset += at * strides[d];
      }
      window.points.push_back({position, offset});
    });
  });
  return windows;
}

/// Calls `fn(window, inBase, out)` for each output element: the base is the
/// offset of its channel in the input.
template <typename Op, typename Fn>
static void forEachWindow(Op op, ArrayRef<int64_t> input,
                          ArrayRef<int64_t> output, Fn fn) {
  std::vector<Window> windows =
      findWindows(op, input.drop_front(2), output.drop_front(2));
  int64_t inSize = ShapedType::getNumElements(input.drop_front(2));
  for (int64_t channel = 0; channel < input[0] * input[1]; ++channel)
    for (size_t o = 0; o < windows.size(); ++o)
      fn(windows[o], channel * inSize,
         channel * int64_t(windows.size()) + int64_t(o));
}

static LogicalResult interpretMaxPool(MaxPoolOp op, Operands in, Results out,
                                      const Environment &) {
  forEachWindow(op, in[0]->getShape(), out[0].getShape(),
                [&](const Window &window, int64_t base, int64_t o) {
                  double best = -std::numeric_limits<double>::infinity();
                  int64_t winner = -1;
                  for (auto [position, offset] : window.points) {
                    double value = in[0]->real(base + offset);
                    bool firstNaN = std::isnan(value) && !std::isnan(best);
                    if (winner < 0 || firstNaN || value > best) {
                      best = value;
                      winner = position;
                    }
                  }
                  out[0].real(o) = best;
                  out[1].integer(o) = std::max<int64_t>(winner, 0);
                });
  return success();
}

static LogicalResult interpretMaxPoolGrad(MaxPoolGradOp op, Operands in,
                                          Results out, const Environment &) {
  forEachWindow(op, out[0].getShape(), in[0]->getShape(),
                [&](const Window &window, int64_t base, int64_t o) {
                  for (auto [position, offset] : window.points)
                    if (position == in[1]->integer(o))
                      out[0].real(base + offset) += in[0]->real(o);
                });
  return success();
}

/// Returns the number that a window's sum is divided by. Type inference keeps
/// every window inside of the padded input, so if padding counts it is the
/// kernel's size.
template <typename Op> static double divisor(Op op, const Window &window) {
  return op.getCountIncludePad()
             ? double(ShapedType::getNumElements(op.getKernel()))
             : double(window.points.size());
}

static LogicalResult interpretAvgPool(AvgPoolOp op, Operands in, Results out,
                                      const Environment &) {
  forEachWindow(op, in[0]->getShape(), out[0].getShape(),
                [&](const Window &window, int64_t base, int64_t o) {
                  double sum = 0;
                  for (auto [position, offset] : window.points)
                    sum += in[0]->real(base + offset);
                  if (!window.points.empty())
                    out[0].real(o) = sum / divisor(op, window);
                });
  return success();
}

static LogicalResult interpretAvgPoolGrad(AvgPoolGradOp op, Operands in,
                                          Results out, const Environment &) {
  forEachWindow(op, out[0].getShape(), in[0]->getShape(),
                [&](const Window &window, int64_t base, int64_t o) {
                  for (auto [position, offset] : window.points)
                    out[0].real(base + offset) +=
                        in[0]->real(o) / divisor(op, window);
                });
  return success();
}

void reference::attachPoolModels(MLIRContext *context) {
  attachModel<MaxPoolOp, interpretMaxPool>(context);
  attachModel<MaxPoolGradOp, interpretMaxPoolGrad>(context);
  attachModel<AvgPoolOp, interpretAvgPool>(context);
  attachModel<AvgPoolGradOp, interpretAvgPoolGrad>(context);
}
