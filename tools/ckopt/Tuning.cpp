//===- Tuning.cpp - which form of a contraction is fastest here -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: the built-in library table knows a few machines. Method: each
// contraction of a step runs alone in each of its forms, the forms by turns, so
// that what else the machine does hits them alike, and the least time of each
// counts: the clock's, or with one thread that of the processor. A form is
// chosen over the step's own only if it is clearly faster. Complexity: some
// runs of each form; memory of the largest contraction.
//
//===----------------------------------------------------------------------===//
#include "Tuning.h"
#include "ckopt/Runtime/LibraryTable.h"
#include "ckopt/Runtime/ckrt.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "ckopt/Target/LibraryTableFile.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <memory>

using namespace ckopt;
using runtime::LibraryForm;
using runtime::PrimitiveDesc;
using runtime::PrimitiveKind;

/// How much less time a form has to take to be chosen over the step's own.
static constexpr double kClearlyFaster = 0.97;
static constexpr int kLeastRounds = 5, kMostRounds = 200;
/// Seconds of all rounds of one contraction, but for the least rounds.
static constexpr double kEnough = 0.2;

namespace {

/// Bytes aligned as the arena's are.
class Buffer {
public:
  explicit Buffer(int64_t bytes)
      : bytes(std::max<size_t>(64, llvm::alignTo(size_t(bytes), 64))),
        data(std::aligned_alloc(64, this->bytes)) {}
  Buffer(Buffer &&other) : bytes(other.bytes), data(other.data) {
    other.data = nullptr;
  }
  ~Buffer() { std::free(data); }
  /// About one in f32, one in bf16: denormals and infinities change times.
  bool fill() {
    if (data)
      std::fill_n(static_cast<uint32_t *>(data), bytes / 4, 0x3f803f80u);
    return data;
  }
  void *get() const { return data; }

private:
  size_t bytes;
  void *data;
};

/// Elements from the first to the last one, of dimensions and strides.
int64_t extent(std::initializer_list<std::pair<int64_t, int64_t>> dims) {
  int64_t last = 0;
  for (auto [size, stride] : dims)
    last += (size - 1) * stride;
  return last + 1;
}

/// Elements of the operands and the result, in the order of arguments.
std::vector<int64_t> elementsOf(const PrimitiveDesc &desc) {
  if (runtime::isConvolution(desc.kind))
    return elementsOf(runtime::productOf(desc));
  const runtime::MatMulDesc &m = desc.matmul;
  auto all = [&](const int64_t *batch, int64_t rows, int64_t row, int64_t cols,
                 int64_t col) {
    return extent({{m.batch[0], batch[0]},
                   {m.batch[1], batch[1]},
                   {rows, row},
                   {cols, col}});
  };
  int64_t c = all(m.cBatch, m.m, m.cRow, m.n, m.cCol);
  std::vector<int64_t> result = {all(m.aBatch, m.m, m.aRow, m.k, m.aCol),
                                 all(m.bBatch, m.k, m.bRow, m.n, m.bCol), c};
  if (desc.accumulate)
    result.push_back(c);
  return result;
}

double timeNow(int32_t threads) {
  timespec time = {};
  clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC,
                &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// One form of a contraction.
struct Contestant {
  LibraryForm form;
  PrimitiveDesc desc;
  int64_t workspace = 0; ///< bytes
  int64_t index = -1;    ///< in the environment
  double least = 0;      ///< seconds
};

using Environment = std::unique_ptr<ckrt_env, decltype(&ckrt_env_destroy)>;

} // namespace

/// Makes the forms that a library runs, the step's first. A product by plain
/// loops is no form worth timing.
static std::vector<Contestant> contestantsOf(const PrimitiveDesc &desc,
                                             int32_t threads) {
  std::vector<Contestant> result;
  std::vector<LibraryForm> forms = {desc.form};
  for (LibraryForm form : runtime::formsOf(desc))
    if (form != desc.form)
      forms.push_back(form);
  for (LibraryForm form : forms) {
    PrimitiveDesc formed = desc;
    formed.form = form;
    std::string error;
    auto primitive = runtime::Primitive::create(formed, threads, error);
    if (primitive && primitive->implementation() != "plain loop")
      result.push_back({form, formed, primitive->workspaceBytes()});
    else if (form == desc.form)
      return {};
  }
  return result;
}

/// Runs the forms by turns and notes the least time of each.
static llvm::Error race(int32_t threads, std::vector<Contestant> &contestants) {
  const PrimitiveDesc &desc = contestants.front().desc;
  auto fail = [&] {
    return makeError(ExitInternal,
                     runtime::describe(desc) + ": " + ckrt_last_error());
  };
  Environment env(ckrt_env_create(threads, /*keep_denormals=*/0),
                  ckrt_env_destroy);
  int64_t workspace = 0;
  for (Contestant &contestant : contestants) {
    workspace = std::max(workspace, contestant.workspace);
    if (!env || ckrt_env_add_primitive(env.get(), &contestant.desc,
                                       &contestant.index) != CKRT_OK)
      return fail();
  }
  std::vector<Buffer> buffers;
  for (int64_t elements : elementsOf(desc))
    buffers.emplace_back(elements * 4); // results of bf16 may be of f32
  buffers.emplace_back(workspace);
  std::vector<void *> args;
  for (Buffer &buffer : buffers) {
    if (!buffer.fill())
      return makeError(ExitInternal,
                       "no memory to time " + runtime::describe(desc));
    args.push_back(buffer.get());
  }
  double all = 0;
  for (int i = 0; i <= kMostRounds && (i <= kLeastRounds || all < kEnough); ++i)
    for (Contestant &contestant : contestants) {
      double start = timeNow(threads);
      if (ckrt_execute(env.get(), contestant.index, args.data(), args.back()) !=
          CKRT_OK)
        return fail();
      double time = timeNow(threads) - start;
      if (i == 0)
        continue; // the first run makes code
      all += time;
      if (contestant.least == 0 || time < contestant.least)
        contestant.least = time;
    }
  return llvm::Error::success();
}

/// The rule for this contraction alone, as text.
static std::string ruleText(const PrimitiveDesc &desc) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  json.object([&] { writeExactRule(desc, LibraryForm::Default, json); });
  return text;
}

llvm::Expected<Tuning> ckopt::tuneLibraries(const runtime::Manifest &manifest) {
  Tuning result;
  llvm::StringMap<size_t> known;
  std::vector<int64_t> calls(manifest.primitives.size());
  for (const runtime::CallInfo &call : manifest.calls)
    if (call.primitive >= 0)
      ++calls[size_t(call.primitive)];
  for (size_t i = 0; i < manifest.primitives.size(); ++i) {
    const PrimitiveDesc &desc = manifest.primitives[i];
    if (desc.form == LibraryForm::Default)
      continue;
    auto [entry, isNew] =
        known.try_emplace(ruleText(desc), result.contractions.size());
    if (!isNew) {
      result.contractions[entry->second].calls += calls[i];
      continue;
    }
    std::vector<Contestant> contestants = contestantsOf(desc, manifest.threads);
    if (contestants.size() < 2) {
      known.erase(entry);
      continue;
    }
    if (llvm::Error error = race(manifest.threads, contestants))
      return std::move(error);
    TunedContraction tuned{desc, {}, calls[i]};
    for (const Contestant &contestant : contestants)
      tuned.times.push_back({contestant.form, contestant.least});
    result.contractions.push_back(std::move(tuned));
  }
  return std::move(result);
}

const TunedContraction::Time &TunedContraction::best() const {
  const Time *best = &times.front();
  for (const Time &time : times)
    if (time.seconds <
        (best == &times.front() ? kClearlyFaster : 1) * best->seconds)
      best = &time;
  return *best;
}

static std::string formText(LibraryForm form) {
  return std::string(runtime::libraryFormName(form));
}

void Tuning::print(llvm::raw_ostream &os) const {
  TextTable table;
  table.addColumn("contraction");
  table.addColumn("calls", TextTable::Right);
  table.addColumn("form");
  table.addColumn("alone", TextTable::Right);
  table.addColumn("fastest");
  table.addColumn("alone", TextTable::Right);
  double now = 0, then = 0;
  for (const TunedContraction &tuned : contractions) {
    const auto &own = tuned.times.front(), &best = tuned.best();
    now += own.seconds * double(tuned.calls);
    then += best.seconds * double(tuned.calls);
    table.addRow({runtime::describe(tuned.desc), std::to_string(tuned.calls),
                  formText(own.form), formatSeconds(own.seconds),
                  formText(best.form), formatSeconds(best.seconds)});
  }
  os << "\n";
  table.print(os);
  os << "products and convolutions with a choice: " << formatSeconds(now)
     << ", by the table that was written " << formatSeconds(then) << "\n";
}

/// Adds the rules of one contraction: of a convolution as a product, also that
/// product's.
static void writeRules(const TunedContraction &tuned,
                       llvm::StringMap<bool> &written,
                       llvm::json::OStream &json) {
  LibraryForm best = tuned.best().form;
  auto write = [&](const PrimitiveDesc &desc, LibraryForm form) {
    if (!written.try_emplace(ruleText(desc)).second)
      return;
    json.object([&] {
      writeExactRule(desc, form, json);
      json.attributeObject("seconds", [&] {
        for (const TunedContraction::Time &time : tuned.times)
          json.attribute(formText(time.form), jsonNumber(time.seconds));
      });
    });
  };
  write(tuned.desc, best);
  if (runtime::isConvolution(tuned.desc.kind) &&
      best != LibraryForm::Convolution)
    write(runtime::productOf(tuned.desc), best);
}

llvm::Error Tuning::write(llvm::StringRef path,
                          llvm::StringRef cpuClass) const {
  return writeJsonFile(path, [&](llvm::json::OStream &json) {
    json.object([&] {
      json.attribute("format", kLibraryTableFormat);
      json.attributeObject("classes", [&] {
        json.attributeArray(cpuClass, [&] {
          llvm::StringMap<bool> written;
          for (const TunedContraction &tuned : contractions)
            writeRules(tuned, written, json);
        });
      });
    });
  });
}
