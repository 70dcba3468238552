//===- TextHandlers.cpp - counts of n-grams of integers -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TfIdfVectorizer counts, for each n-gram of a constant pool, how often it
// occurs in a row, with 0 to max_skip_count elements left out between its
// parts. Each length and skip is one comparison of all windows with all
// n-grams. Work: windows * n-grams * length.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

namespace {
/// The node's attributes, checked.
struct Pool {
  Shape starts;  ///< where the n-grams of each length begin in `items`
  Shape items;   ///< all n-grams, one after another
  Shape columns; ///< of the result, by n-gram
  int64_t least, most, skips, width = 0;
};
} // namespace

static std::optional<Pool> readPool(NodeImporter &n) {
  Pool pool{n.attrInts("ngram_counts"),      n.attrInts("pool_int64s"),
            n.attrInts("ngram_indexes"),     n.attrInt("min_gram_length", 0),
            n.attrInt("max_gram_length", 0), n.attrInt("max_skip_count", 0)};
  if (n.hasAttr("pool_strings")) {
    n.unsupported() << "strings";
    return std::nullopt;
  }
  int64_t lengths = int64_t(pool.starts.size()), grams = 0;
  bool good = pool.least >= 1 && pool.most >= pool.least &&
              pool.most <= lengths && pool.skips >= 0;
  for (int64_t i = 0; good && i < lengths; ++i) {
    int64_t end = i + 1 < lengths ? pool.starts[size_t(i) + 1]
                                  : int64_t(pool.items.size());
    int64_t count = end - pool.starts[size_t(i)];
    good = pool.starts[size_t(i)] >= 0 && count >= 0 && count % (i + 1) == 0;
    grams += good ? count / (i + 1) : 0;
  }
  good &= grams == int64_t(pool.columns.size());
  for (int64_t column : pool.columns) {
    good &= column >= 0 && column < (1 << 24);
    pool.width = std::max(pool.width, column + 1);
  }
  if (good)
    return pool;
  n.error() << "the pool, its counts and its indexes do not fit each other";
  return std::nullopt;
}

/// Returns [rows, grams] f32: occurrences of the n-grams of one length with one
/// skip.
static Value countGrams(NodeImporter &n, Value x, ArrayRef<int64_t> grams,
                        int64_t length, int64_t skip) {
  int64_t rows = n.shape(x)[0], stride = skip + 1;
  int64_t windows = n.shape(x)[1] - (length - 1) * stride;
  int64_t count = int64_t(grams.size()) / length;
  Type f32 = n.b.getF32Type();
  if (windows <= 0)
    return n.splat(0, n.tensor({rows, count}, f32));
  Value match;
  for (int64_t k = 0; k < length; ++k) {
    Shape parts;
    for (int64_t g = 0; g < count; ++g)
      parts.push_back(grams[size_t(g * length + k)]);
    Value part =
        n.reshape(n.sliceAxis(x, 1, k * stride, windows), {rows, windows, 1});
    Value same = n.compare(ComparePredicate::EQ, part, n.intConstant(parts));
    match = match ? n.broadcast<AndOp>({match, same}) : same;
  }
  return n.reduce(ReduceKind::Sum, n.cast(match, f32), {1}, false);
}

/// Returns counts by column of the result, [rows, width].
static Value countAll(NodeImporter &n, Value x, const Pool &pool) {
  SmallVector<Value> counts;
  Shape columns;
  int64_t id = 0;
  for (size_t i = 0; i < pool.starts.size(); ++i) {
    int64_t length = int64_t(i) + 1;
    size_t begin = size_t(pool.starts[i]);
    size_t end = i + 1 < pool.starts.size() ? size_t(pool.starts[i + 1])
                                            : pool.items.size();
    ArrayRef<int64_t> grams = ArrayRef(pool.items).slice(begin, end - begin);
    int64_t count = int64_t(grams.size()) / length;
    if (length >= pool.least && length <= pool.most && count) {
      // With a larger skip, no window fits into a row.
      int64_t widest = length == 1 ? 0 : (n.shape(x)[1] - 1) / (length - 1) - 1;
      int64_t last = std::clamp<int64_t>(widest, 0, pool.skips);
      Value sum;
      for (int64_t skip = 0; skip <= last; ++skip) {
        Value part = countGrams(n, x, grams, length, skip);
        sum = sum ? n.add(sum, part) : part;
      }
      counts.push_back(sum);
      columns.append(pool.columns.begin() + id,
                     pool.columns.begin() + id + count);
    }
    id += count;
  }
  Type f32 = n.b.getF32Type();
  if (counts.empty())
    return n.splat(0, n.tensor({n.shape(x)[0], pool.width}, f32));
  // A product with a matrix of zeros and ones moves each count to its column.
  Shape all(size_t(pool.width));
  for (int64_t c = 0; c < pool.width; ++c)
    all[size_t(c)] = c;
  Value place =
      n.compare(ComparePredicate::EQ,
                n.reshape(n.intConstant(columns), {int64_t(columns.size()), 1}),
                n.intConstant(all));
  return n.matmul(n.concat(counts, 1), n.cast(place, f32));
}

static LogicalResult tfIdfVectorizer(NodeImporter &n) {
  Value x = n.in(0);
  auto pool = readPool(n);
  if (!x || !pool)
    return failure();
  bool single = n.rank(x) == 1;
  if (!single && n.rank(x) != 2) {
    n.error() << "needs an operand of rank 1 or 2";
    return failure();
  }
  if (isa<FloatType>(n.element(x))) {
    n.error() << "counts integers";
    return failure();
  }
  if (single)
    x = n.reshape(x, {1, n.shape(x)[0]});
  x = n.cast(x, n.b.getI64Type());
  if (!x)
    return failure();
  Value counts = countAll(n, x, *pool);
  std::string mode = n.attrString("mode", "");
  if (!counts || (mode != "TF" && mode != "IDF" && mode != "TFIDF")) {
    n.error() << "mode '" << mode << "' is none of TF, IDF, TFIDF";
    return failure();
  }
  if (mode == "IDF")
    counts =
        n.cast(n.compare(ComparePredicate::GT, counts, n.scalar(0, counts)),
               n.b.getF32Type());
  std::vector<double> weights = n.attrFloats("weights");
  if (mode != "TF" && !weights.empty()) {
    if (int64_t(weights.size()) != pool->width) {
      n.error() << "needs a weight for each of " << pool->width << " columns";
      return failure();
    }
    SmallVector<float> numbers(weights.begin(), weights.end());
    auto type = n.tensor({pool->width}, n.b.getF32Type());
    counts = n.mul(counts,
                   ConstantOp::create(n.b, n.loc,
                                      cast<ElementsAttr>(DenseElementsAttr::get(
                                          type, ArrayRef<float>(numbers)))));
  }
  n.set(0, single ? n.reshape(counts, {pool->width}) : counts);
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::textHandlers() {
  static const HandlerEntry entries[] = {
      {"TfIdfVectorizer", 9, tfIdfVectorizer},
  };
  return entries;
}
