//===- Roofline.cpp - the best times of single shapes ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A roofline needs the best time that any library or layout reaches on a shape
// alone. This program reads one shape a line, as `ckopt bench --profile` writes
// them into its report (runtime::describe), or `copy BYTES`, and answers each
// with the least seconds and what reached them:
//
//   copy 1048576                    a copy that reads and writes 1 MiB in all
//   matmul f32 512x3072x768
//   convolution weight gradient f32 8x64x56x56 to 64x56x56, kernel 3x3, ...
//   attention gradient f32 2x12: 256x256, heads of 64, causal
//
// Attention: the sum of its two (five) products, for the scores that causality
// and a window allow where there are as many queries as keys. Products: oneDNN
// with orders of its own choice, with plain ones and with each operand
// transposed, OpenBLAS; adding to a tensor is not counted. Convolutions: oneDNN
// with orders of its choice and channels last, pointwise ones also as products.
// Changing orders is not counted. Seconds are of processor time with one
// thread, else of the clock. Padding beside the kernel is split evenly,
// dilation taken as 1: what `bench` writes does not say. Complexity: some runs
// of every shape.
//
//===----------------------------------------------------------------------===//
#include "../lib/Runtime/Cpu/OpenMP.h"

#include <algorithm>
#include <array>
#include <cblas.h>
#include <cstring>
#include <ctime>
#include <dnnl.hpp>
#include <functional>
#include <iostream>
#include <regex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

using dnnl::memory;
using Dims = memory::dims;

namespace {

struct Best {
  double seconds = 0;
  std::string by;

  /// Times `run` some times and keeps the least.
  void offer(const std::string &name, const std::function<void()> &run);
};

double now() {
  timespec time = {};
  clock_gettime(omp_get_max_threads() == 1 ? CLOCK_PROCESS_CPUTIME_ID
                                           : CLOCK_MONOTONIC,
                &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

void Best::offer(const std::string &name, const std::function<void()> &run) {
  constexpr int kLeastRuns = 3, kMostRuns = 200;
  constexpr double kEnough = 0.05, kHopeless = 1.2;
  run();
  double all = 0;
  for (int i = 0; i < kMostRuns && (i < kLeastRuns || all < kEnough); ++i) {
    double start = now();
    run();
    double time = now() - start;
    all += time;
    if (seconds > 0 && time > kHopeless * seconds)
      return;
    if (time > 0 && (seconds == 0 || time < seconds)) {
      seconds = time;
      by = name;
    }
  }
}

dnnl::engine &engine() {
  static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

/// A buffer of small numbers: denormals and infinities would change times.
memory filled(const memory::desc &desc) {
  memory made(desc, engine());
  std::memset(made.get_data_handle(), 0, desc.get_size());
  size_t count = desc.get_size() / 4;
  auto *words = static_cast<uint32_t *>(made.get_data_handle());
  // 0x3f80 is one in bf16, 0x3f803f80 about one in f32.
  std::fill(words, words + count, 0x3f803f80u);
  return made;
}

/// Runs a primitive on fresh memory for the orders that it chose.
template <typename Descriptor>
void offer(Best &best, const std::string &name, const Descriptor &pd,
           const std::vector<std::pair<int, memory::desc>> &args) {
  dnnl::stream stream(engine());
  std::unordered_map<int, memory> bound;
  for (const auto &[index, desc] : args)
    bound.emplace(index, filled(desc));
  dnnl::primitive primitive(pd.get());
  best.offer(name, [&] {
    primitive.execute(stream, bound);
    stream.wait();
  });
}

struct Types {
  memory::data_type in = memory::data_type::f32, out = in;
};

Types parseTypes(const std::string &type, bool wide) {
  Types types;
  if (type == "bf16")
    types.in = types.out = memory::data_type::bf16;
  if (wide)
    types.out = memory::data_type::f32;
  return types;
}

Dims parseDims(const std::string &text) {
  Dims dims;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('x', at), text.size());
    dims.push_back(std::stoll(text.substr(at, end - at)));
    at = end + 1;
  }
  return dims;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// A matrix, or a batch of them, row-major or transposed.
memory::desc matrix(const Dims &dims, memory::data_type type, bool transposed) {
  using Tag = memory::format_tag;
  bool batched = dims.size() == 3;
  return {dims, type,
          transposed ? (batched ? Tag::acb : Tag::ba)
                     : (batched ? Tag::abc : Tag::ab)};
}

void offerBlas(Best &best, int64_t m, int64_t n, int64_t k) {
  std::vector<float> a(size_t(m * k), 1), b(size_t(k * n), 1),
      c(size_t(m * n), 0);
  for (CBLAS_TRANSPOSE right : {CblasNoTrans, CblasTrans})
    best.offer("OpenBLAS", [&] {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, right, blasint(m), blasint(n),
                  blasint(k), 1, a.data(), blasint(k), b.data(),
                  blasint(right == CblasNoTrans ? n : k), 0, c.data(),
                  blasint(n));
    });
}

void offerProduct(Best &best, const std::string &name, const memory::desc &a,
                  const memory::desc &b, const memory::desc &c) try {
  dnnl::matmul::primitive_desc pd(engine(), a, b, c);
  offer(best, name, pd,
        {{DNNL_ARG_SRC, pd.src_desc()},
         {DNNL_ARG_WEIGHTS, pd.weights_desc()},
         {DNNL_ARG_DST, pd.dst_desc()}});
} catch (const dnnl::error &) {
  // The library refuses these orders: others remain.
}

void timeProduct(Best &best, int64_t batch, int64_t m, int64_t n, int64_t k,
                 const Types &types) {
  Dims aDims = {m, k}, bDims = {k, n}, cDims = {m, n};
  if (batch > 1)
    for (Dims *dims : {&aDims, &bDims, &cDims})
      dims->insert(dims->begin(), batch);
  auto any = memory::format_tag::any;
  offerProduct(best, "oneDNN, own orders", {aDims, types.in, any},
               {bDims, types.in, any}, {cDims, types.out, any});
  memory::desc c = matrix(cDims, types.out, false);
  for (auto [left, right] : {std::pair(0, 0), {0, 1}, {1, 0}})
    offerProduct(best, "oneDNN, plain", matrix(aDims, types.in, left != 0),
                 matrix(bDims, types.in, right != 0), c);
  if (batch == 1 && types.in == memory::data_type::f32)
    offerBlas(best, m, n, k);
}

/// Returns the share of scores that causality and a window (0: none) allow.
double allowedScores(int64_t queries, int64_t keys, bool causal,
                     int64_t window) {
  if (!causal || queries != keys)
    return 1;
  double scores = 0;
  for (int64_t row = 0; row < queries; ++row)
    scores += double(window > 0 ? std::min(row + 1, window) : row + 1);
  return scores / double(keys) / double(keys);
}

/// Attention of `heads` heads in all; `depth` of queries and keys, `width` of
/// values; `share` of the scores are allowed.
void timeAttention(Best &best, bool gradient, int64_t heads, int64_t queries,
                   int64_t keys, int64_t depth, int64_t width, double share) {
  Types types;
  auto add = [&](int64_t m, int64_t n, int64_t k) {
    Best one;
    timeProduct(one, heads, m, n, k, types);
    best.seconds += one.seconds;
    best.by = "products: " + one.by;
  };
  add(queries, keys, depth);
  if (!gradient) {
    add(queries, width, keys);
  } else {
    add(queries, keys, width);
    add(keys, width, queries);
    add(queries, depth, keys);
    add(keys, depth, queries);
  }
  best.seconds *= share;
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

enum class Kind { Forward, InputGrad, WeightGrad };

struct Convolution {
  Kind kind = Kind::Forward;
  Types types;
  Dims x, y, weights, strides, dilates, padsLo, padsHi;
};

Convolution makeConvolution(Kind kind, const Types &types, const Dims &x,
                            const Dims &y, const Dims &kernel,
                            const Dims &strides, int64_t groups) {
  Convolution c = {kind, types, x, y, {}, strides, {}, {}, {}};
  c.y.insert(c.y.begin(), x[0]);
  if (groups > 1)
    c.weights.push_back(groups);
  c.weights.push_back(c.y[1] / groups);
  c.weights.push_back(x[1] / groups);
  for (size_t d = 0; d < kernel.size(); ++d) {
    c.weights.push_back(kernel[d]);
    c.dilates.push_back(0);
    int64_t padding = (c.y[d + 2] - 1) * strides[d] + kernel[d] - x[d + 2];
    // An extent that strides do not fill leaves a negative rest at its end.
    c.padsLo.push_back(std::max<int64_t>(0, (padding + 1) / 2));
    c.padsHi.push_back(padding - c.padsLo.back());
  }
  return c;
}

void offerOrders(Best &best, const std::string &name, const Convolution &c,
                 memory::format_tag order) try {
  auto x = [&](memory::data_type type) {
    return memory::desc(c.x, type, order);
  };
  auto y = [&](memory::data_type type) {
    return memory::desc(c.y, type, order);
  };
  auto w = [&](memory::data_type type) {
    return memory::desc(c.weights, type, memory::format_tag::any);
  };
  auto in = c.types.in;
  auto direct = dnnl::algorithm::convolution_direct;
  bool isForward = c.kind == Kind::Forward;
  // The hint of a gradient is a forward convolution of one type.
  dnnl::convolution_forward::primitive_desc forward(
      engine(), dnnl::prop_kind::forward_training, direct, x(in), w(in),
      y(isForward ? c.types.out : in), c.strides, c.dilates, c.padsLo,
      c.padsHi);
  if (isForward)
    return offer(best, name, forward,
                 {{DNNL_ARG_SRC, forward.src_desc()},
                  {DNNL_ARG_WEIGHTS, forward.weights_desc()},
                  {DNNL_ARG_DST, forward.dst_desc()}});
  if (c.kind == Kind::InputGrad) {
    dnnl::convolution_backward_data::primitive_desc pd(
        engine(), direct, x(c.types.out), w(in), y(in), c.strides, c.dilates,
        c.padsLo, c.padsHi, forward);
    return offer(best, name, pd,
                 {{DNNL_ARG_DIFF_SRC, pd.diff_src_desc()},
                  {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                  {DNNL_ARG_DIFF_DST, pd.diff_dst_desc()}});
  }
  dnnl::convolution_backward_weights::primitive_desc pd(
      engine(), direct, x(in), w(c.types.out), y(in), c.strides, c.dilates,
      c.padsLo, c.padsHi, forward);
  offer(best, name, pd,
        {{DNNL_ARG_SRC, pd.src_desc()},
         {DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc()},
         {DNNL_ARG_DIFF_DST, pd.diff_dst_desc()}});
} catch (const dnnl::error &) {
  // The library refuses this order: others remain.
}

void timeConvolution(Best &best, const Convolution &c) {
  using Tag = memory::format_tag;
  constexpr std::array<Tag, 3> kChannelsLast = {Tag::nwc, Tag::nhwc,
                                                Tag::ndhwc};
  size_t rank = c.strides.size();
  offerOrders(best, "oneDNN, own orders", c, Tag::any);
  offerOrders(best, "oneDNN, channels last", c, kChannelsLast[rank - 1]);
  auto is = [](const Dims &dims, int64_t value) {
    return std::all_of(dims.begin(), dims.end(),
                       [&](int64_t d) { return d == value; });
  };
  Dims kernel(c.weights.end() - int64_t(rank), c.weights.end());
  if (c.weights.size() != rank + 2 || !is(kernel, 1) || !is(c.strides, 1) ||
      !is(c.padsLo, 0) || !is(c.padsHi, 0))
    return;
  int64_t points = c.x[0], in = c.x[1], out = c.y[1];
  for (size_t d = 2; d < c.x.size(); ++d)
    points *= c.x[d];
  if (c.kind == Kind::Forward)
    timeProduct(best, 1, points, out, in, c.types);
  else if (c.kind == Kind::InputGrad)
    timeProduct(best, 1, points, in, out, c.types);
  else
    timeProduct(best, 1, in, out, points, c.types);
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

void timeCopy(Best &best, int64_t bytes) {
  // Beyond all caches the rate no longer depends on the size.
  constexpr int64_t kMost = int64_t(256) << 20;
  int64_t half = std::clamp<int64_t>(std::min(bytes, kMost) / 2, 1, kMost);
  std::vector<char> from(size_t(half), 1), to(size_t(half), 2);
  int64_t share = (half + omp_get_max_threads() - 1) / omp_get_max_threads();
  struct Work {
    const char *from;
    char *to;
    int64_t bytes, share;
  } work = {from.data(), to.data(), half, share};
  auto part = [](void *data) {
    const auto &all = *static_cast<Work *>(data);
    int64_t begin = std::min(all.bytes, all.share * omp_get_thread_num());
    int64_t end = std::min(all.bytes, begin + all.share);
    std::memcpy(all.to + begin, all.from + begin, size_t(end - begin));
  };
  best.offer("copy", [&] {
    GOMP_parallel(part, &work, unsigned(omp_get_max_threads()), 0);
  });
  best.seconds *= double(std::max<int64_t>(bytes, 1)) / double(2 * half);
}

bool answer(const std::string &line, Best &best) {
  static const std::regex copy("copy ([0-9]+)");
  static const std::regex product(
      "matmul (f32|bf16)( to f32)? (?:([0-9x]+): )?([0-9x]+)(?:, added)?");
  static const std::regex convolution(
      "convolution( input gradient| weight gradient)? (f32|bf16)( to f32)? "
      "([0-9x]+) to ([0-9x]+), kernel ([0-9x]+), strides ([0-9x]+), groups "
      "([0-9]+).*");
  static const std::regex attention(
      "attention( gradient)? f32 ([0-9]+)x([0-9]+): ([0-9]+)x([0-9]+), heads "
      "of ([0-9]+)(?: and ([0-9]+))?(?:, [0-9]+ key heads)?(, causal)?"
      "(?:, window ([0-9]+))?(?:, bias)?(?:, mask)?(?:, dropout)?");
  std::smatch part;
  if (std::regex_match(line, part, copy)) {
    timeCopy(best, std::stoll(part[1]));
  } else if (std::regex_match(line, part, product)) {
    Dims extents = parseDims(part[4]);
    if (extents.size() != 3)
      return false;
    int64_t batch = 1;
    for (int64_t extent : parseDims(part[3]))
      batch *= extent;
    timeProduct(best, batch, extents[0], extents[1], extents[2],
                parseTypes(part[1], part[2].matched));
  } else if (std::regex_match(line, part, attention)) {
    auto number = [&](int i) { return std::stoll(part[i]); };
    timeAttention(best, part[1].matched, number(2) * number(3), number(4),
                  number(5), number(6), number(part[7].matched ? 7 : 6),
                  allowedScores(number(4), number(5), part[8].matched,
                                part[9].matched ? number(9) : 0));
  } else if (std::regex_match(line, part, convolution)) {
    Kind kind = !part[1].matched          ? Kind::Forward
                : part[1].str()[1] == 'i' ? Kind::InputGrad
                                          : Kind::WeightGrad;
    Dims x = parseDims(part[4]), y = parseDims(part[5]);
    Dims kernel = parseDims(part[6]), strides = parseDims(part[7]);
    size_t rank = kernel.size();
    if (rank < 1 || rank > 3 || x.size() != rank + 2 || y.size() != rank + 1 ||
        strides.size() != rank)
      return false;
    timeConvolution(
        best, makeConvolution(kind, parseTypes(part[2], part[3].matched), x, y,
                              kernel, strides, std::stoll(part[8])));
  }
  return best.seconds > 0;
}

} // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    Best best;
    if (!answer(line, best)) {
      std::cerr << "ckopt-roofline: cannot time '" << line << "'\n";
      return 1;
    }
    std::cout << best.seconds << "\t" << best.by << std::endl;
  }
  return 0;
}
