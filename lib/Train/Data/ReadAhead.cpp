//===- ReadAhead.cpp - the next batch while a step runs -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One batch is read at a time, by the thread alone; whoever uses the source
// waits for it before touching anything that the thread does. A batch that was
// read and not asked for is forgotten by the next seek, which says where to go
// on. Where no thread can be had, batches are read when they are asked for.
// Memory: one batch more; whoever takes tensors gives those of the batch before
// for them, and nothing is copied.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Data/ReadAhead.h"
#include "ckopt/Base/Thread.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/HostTensor.h"
#include <condition_variable>
#include <cstring>
#include <mutex>

using namespace llvm;

namespace ckopt {

class ReadAheadSource::Reader {
public:
  explicit Reader(BatchSource &source) : source(source) {
    hasThread = thread.start([this] { work(); }) == 0;
  }
  ~Reader() {
    forget();
    {
      std::lock_guard lock(mutex);
      state = State::Stopping;
    }
    changed.notify_all();
    thread.join();
  }

  /// Begins to read these samples.
  void request(const Part &samples) {
    {
      std::lock_guard lock(mutex);
      part = samples;
      state = State::Requested;
    }
    changed.notify_all();
  }
  bool readsAhead() const { return hasThread; }
  /// Waits for the batch that was requested last; false: none was.
  bool wait() {
    std::unique_lock lock(mutex);
    if (!hasThread && state == State::Requested) {
      read();
      state = State::Read;
    }
    changed.wait(lock, [&] { return state != State::Requested; });
    return state == State::Read;
  }
  /// Gives away what wait() found.
  Expected<int64_t> take(Give give) {
    Expected<int64_t> result = std::move(*given);
    forget();
    names = nextNames;
    for (size_t i = 0; result && i < buffers.size(); ++i) {
      const SourceField &field = source.fields()[i];
      size_t all = size_t(buffers[i].sizeInBytes());
      give(i, buffers[i],
           field.batched && held()
               ? all / size_t(held()) * size_t(part.within(*result))
               : all);
    }
    return result;
  }
  /// Drops what was read and not taken.
  void forget() {
    if (!wait())
      return;
    if (given && !*given)
      consumeError(given->takeError());
    given.reset();
    std::lock_guard lock(mutex);
    state = State::Idle;
  }
  const Part &requested() const { return part; }

  std::vector<std::string> names; ///< of the samples taken last

private:
  enum class State { Idle, Requested, Read, Stopping };

  int64_t held() const { return part.within(part.count); }

  void read() {
    std::vector<void *> to;
    buffers.resize(source.fields().size());
    for (size_t i = 0; i < buffers.size(); ++i) {
      const SourceField &field = source.fields()[i];
      std::vector<int64_t> shape = field.shape;
      if (field.batched)
        shape.insert(shape.begin(), held());
      if (buffers[i].dtype() != field.dtype ||
          buffers[i].shape() != ArrayRef(shape))
        buffers[i] = HostTensor(field.dtype, std::move(shape));
      to.push_back(buffers[i].mutableRawData());
    }
    given.emplace(part.rows ? source.nextRows(part.count, *part.rows, to)
                            : source.next(part.count, to));
    nextNames.clear();
    if (*given)
      for (int64_t i = 0; i < **given; ++i)
        nextNames.push_back(source.nameSample(i));
  }

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] {
        return state == State::Requested || state == State::Stopping;
      });
      if (state == State::Stopping)
        return;
      lock.unlock(); // others only wait while it is Requested
      read();
      lock.lock();
      state = State::Read;
      changed.notify_all();
    }
  }

  BatchSource &source;
  std::mutex mutex;
  std::condition_variable changed;
  State state = State::Idle;
  Part part;
  std::vector<HostTensor> buffers;
  std::optional<Expected<int64_t>> given;
  std::vector<std::string> nextNames;
  bool hasThread = false;
  Thread thread; ///< last: it uses the others
};

ReadAheadSource::ReadAheadSource(std::unique_ptr<BatchSource> given)
    : source(std::move(given)), reader(std::make_unique<Reader>(*source)) {}

ReadAheadSource::~ReadAheadSource() = default;

Error ReadAheadSource::seek(uint64_t seed, DataPosition place) {
  reader->forget();
  return source->seek(seed, place);
}

Expected<int64_t> ReadAheadSource::next(const Part &part, Give give) {
  if (!reader->wait())
    reader->request(part);
  reader->wait();
  if (reader->requested() != part)
    return inputError("batches of one size are read ahead, not of " +
                      Twine(part.count) + " after " +
                      Twine(reader->requested().count));
  Expected<int64_t> given = reader->take(give);
  if (given && *given == part.count && reader->readsAhead())
    reader->request(part);
  return given;
}

/// Copies to buffers of the caller.
static auto copyTo(ArrayRef<void *> to) {
  return [to](size_t field, const HostTensor &read, size_t bytes) {
    std::memcpy(to[field], read.rawData(), bytes);
  };
}

Expected<int64_t> ReadAheadSource::next(int64_t count, ArrayRef<void *> to) {
  return next(Part{count, std::nullopt}, copyTo(to));
}

Expected<int64_t> ReadAheadSource::nextRows(int64_t count, RowRange rows,
                                            ArrayRef<void *> to) {
  return next(Part{count, rows}, copyTo(to));
}

Expected<int64_t> ReadAheadSource::nextTensors(int64_t count,
                                               std::optional<RowRange> rows,
                                               MutableArrayRef<HostTensor> to) {
  return next(Part{count, rows}, [to](size_t field, HostTensor &read, size_t) {
    std::swap(to[field], read);
  });
}

std::string ReadAheadSource::nameSample(int64_t i) const {
  return size_t(i) < reader->names.size() ? reader->names[size_t(i)] : "";
}

Expected<std::unique_ptr<BatchSource>> ReadAheadSource::holdOut(double share,
                                                                uint64_t seed) {
  reader->forget();
  return source->holdOut(share, seed);
}

} // namespace ckopt
