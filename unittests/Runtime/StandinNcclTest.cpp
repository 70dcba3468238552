//===- StandinNcclTest.cpp - the stand-in's NCCL sees what is wrong -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two ranks of one process, on two devices, by the stand-in's NCCL: what tests
// of ranks on devices rely on. Each kind of mistake is made once, and must be
// logged; messages of a graph's branch that no event orders must give wrong
// bytes. Beside it the pieces that sums over ranks are cut into, and the pairs
// of starts and waits.
//
//===----------------------------------------------------------------------===//
#include "../../lib/Runtime/Cuda/Nccl.h"
#include "CudaFixture.h"

#include "ckopt/Runtime/DeviceCollectives.h"

#include "gmock/gmock.h"
#include <dlfcn.h>
#include <functional>
#include <thread>

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

namespace {

struct Rank {
  cuda::Context context = nullptr;
  cuda::Stream stream = nullptr;
  cuda::DevicePointer memory = 0;
  void *comm = nullptr;
  int result = 0; ///< of ncclCommInitRank
};

/// Two ranks, each with a stream and 256 bytes.
struct TwoRanks {
  explicit TwoRanks(int secondDevice = 1) {
    void *library = dlopen(CKOPT_STANDIN, RTLD_NOW | RTLD_LOCAL);
#define CKOPT_ENTRY(member, symbol, parameters)                                \
  cu.member = reinterpret_cast<decltype(cu.member)>(dlsym(library, #symbol));
#include "../../lib/Runtime/Cuda/DriverEntries.def"
#undef CKOPT_ENTRY
#define CKOPT_ENTRY(member, symbol, result, parameters)                        \
  nccl.member =                                                                \
      reinterpret_cast<decltype(nccl.member)>(dlsym(library, #symbol));
#include "../../lib/Runtime/Cuda/NcclEntries.def"
#undef CKOPT_ENTRY
    EXPECT_EQ(cu.init(0), 0);
    cuda::NcclId id;
    EXPECT_EQ(nccl.getUniqueId(&id), 0);
    std::vector<std::thread> threads;
    for (int number : {0, 1}) {
      Rank &rank = ranks[number];
      int device = number ? secondDevice : 0;
      EXPECT_EQ(cu.primaryRetain(&rank.context, device), 0);
      EXPECT_EQ(cu.ctxPushCurrent(rank.context), 0);
      EXPECT_EQ(cu.streamCreate(&rank.stream, 0), 0);
      EXPECT_EQ(cu.memAlloc(&rank.memory, 256), 0);
      threads.emplace_back([this, number, id] {
        Rank &own = ranks[number];
        EXPECT_EQ(cu.ctxPushCurrent(own.context), 0);
        own.result = nccl.commInitRank(&own.comm, 2, id, number);
      });
    }
    for (std::thread &thread : threads)
      thread.join();
  }
  /// Sends or receives bytes, in a group of its own.
  int move(int rank, bool sends, size_t bytes, int type = cuda::kNcclByte) {
    Rank &own = ranks[rank];
    EXPECT_EQ(cu.ctxPushCurrent(own.context), 0);
    EXPECT_EQ(nccl.groupStart(), 0);
    auto *at = reinterpret_cast<void *>(own.memory);
    int code =
        sends ? nccl.send(at, bytes, type, 1 - rank, own.comm, own.stream)
              : nccl.receive(at, bytes, type, 1 - rank, own.comm, own.stream);
    int ended = nccl.groupEnd();
    return code ? code : ended;
  }
  /// Asks both streams in turn; true once both are done.
  bool finish() {
    for (int asked = 0; asked < 100; ++asked) {
      bool first = cu.streamQuery(ranks[0].stream) == cuda::kSuccess;
      bool second = cu.streamQuery(ranks[1].stream) == cuda::kSuccess;
      if (first && second)
        return true;
    }
    return false;
  }
  char &byte(int rank) { return *reinterpret_cast<char *>(ranks[rank].memory); }

  cuda::Driver cu{};
  cuda::NcclEntries nccl{};
  Rank ranks[2];
};

class StandinNccl : public Cuda {
protected:
  Environment two = {{"CKOPT_STANDIN_DEVICES", "2"}};
  Environment twoEarly = {{"CKOPT_STANDIN_DEVICES", "2"},
                          {"CKOPT_STANDIN_ORDER", "early"}};
};

/// How a graph orders messages of a branch and kernels.
struct Order {
  bool waitsForOperand = true; ///< messages begin behind what makes them
  bool waitsForResult = true;  ///< a copy of what came is behind the messages
  bool joins = true;           ///< the branch ends before the graph
};

/// Each rank makes 64 bytes of 42 + its number, exchanges them with the other
/// one in a branch of a graph, and copies what came.
struct Exchange : TwoRanks {
  static constexpr size_t kBytes = 64;

  explicit Exchange(const Order &order) {
    for (int number : {0, 1}) { // outside of a graph once
      EXPECT_EQ(cu.ctxPushCurrent(ranks[number].context), 0);
      EXPECT_EQ(cu.streamCreate(&beside[number], 0), 0);
      EXPECT_EQ(cu.eventCreate(&ready[number], cuda::kEventDisableTiming), 0);
      EXPECT_EQ(cu.eventCreate(&done[number], cuda::kEventDisableTiming), 0);
      exchange(number);
    }
    for (int asked = 0; asked < 100; ++asked)
      for (cuda::Stream stream : beside)
        (void)cu.streamQuery(stream);
    for (int number : {0, 1}) {
      EXPECT_EQ(cu.ctxPushCurrent(ranks[number].context), 0);
      EXPECT_EQ(
          cu.memsetD8Async(ranks[number].memory, 0, 256, ranks[number].stream),
          0);
      EXPECT_EQ(cu.streamSynchronize(ranks[number].stream), 0);
      captured = capture(number, order);
      if (captured)
        return;
    }
    for (int number : {0, 1}) {
      EXPECT_EQ(cu.ctxPushCurrent(ranks[number].context), 0);
      EXPECT_EQ(cu.graphLaunch(graphs[number], ranks[number].stream), 0);
    }
    EXPECT_TRUE(finish());
  }
  /// Returns the byte that a rank has copied.
  int copied(int rank) { return (&byte(rank))[2 * kBytes]; }

  int captured = 0;

private:
  void exchange(int number) {
    Rank &own = ranks[number];
    EXPECT_EQ(nccl.groupStart(), 0);
    EXPECT_EQ(nccl.send(at(number, 0), kBytes, cuda::kNcclByte, 1 - number,
                        own.comm, beside[number]),
              0);
    EXPECT_EQ(nccl.receive(at(number, kBytes), kBytes, cuda::kNcclByte,
                           1 - number, own.comm, beside[number]),
              0);
    EXPECT_EQ(nccl.groupEnd(), 0);
  }
  int capture(int number, const Order &order) {
    Rank &own = ranks[number];
    EXPECT_EQ(cu.ctxPushCurrent(own.context), 0);
    EXPECT_EQ(cu.streamBeginCapture(own.stream, cuda::kCaptureModeRelaxed), 0);
    auto make = [&] {
      EXPECT_EQ(cu.memsetD8Async(own.memory,
                                 static_cast<unsigned char>(42 + number),
                                 kBytes, own.stream),
                0);
    };
    auto copy = [&] {
      EXPECT_EQ(cu.memcpyDtoDAsync(own.memory + 2 * kBytes, own.memory + kBytes,
                                   kBytes, own.stream),
                0);
    };
    if (order.waitsForOperand)
      make();
    EXPECT_EQ(cu.eventRecord(ready[number], own.stream), 0);
    if (!order.waitsForOperand)
      make();
    EXPECT_EQ(cu.streamWaitEvent(beside[number], ready[number], 0), 0);
    exchange(number);
    EXPECT_EQ(cu.eventRecord(done[number], beside[number]), 0);
    if (!order.waitsForResult)
      copy();
    if (order.joins)
      EXPECT_EQ(cu.streamWaitEvent(own.stream, done[number], 0), 0);
    if (order.waitsForResult)
      copy();
    cuda::Graph graph = nullptr;
    int ended = cu.streamEndCapture(own.stream, &graph);
    return ended ? ended
                 : cu.graphInstantiate(&graphs[number], graph, nullptr, nullptr,
                                       0);
  }
  void *at(int number, size_t offset) {
    return reinterpret_cast<void *>(ranks[number].memory + offset);
  }

  cuda::Stream beside[2] = {};
  cuda::Event ready[2] = {}, done[2] = {};
  cuda::GraphExec graphs[2] = {};
};

PrimitiveDesc sumOf(PrimitiveKind kind, int64_t ranks,
                    std::vector<int64_t> elements,
                    std::vector<int64_t> shares = {}) {
  PrimitiveDesc desc;
  desc.kind = kind;
  desc.allReduce.ranks = ranks;
  desc.allReduce.elements = std::move(elements);
  desc.allReduce.shares = std::move(shares);
  return desc;
}

} // namespace

TEST_F(StandinNccl, MovesBytesOnceBothRanksTakePart) {
  inChild(two, [&] {
    TwoRanks p;
    p.byte(0) = 42;
    EXPECT_EQ(p.move(0, true, 64), 0);
    EXPECT_FALSE(p.finish()) << "a send ends when it is received";
    EXPECT_EQ(p.move(1, false, 64), 0);
    EXPECT_TRUE(p.finish());
    EXPECT_EQ(p.byte(1), 42);
  });
  EXPECT_EQ(count("VIOLATION"), 0) << log();
}

TEST_F(StandinNccl, WaitsForARankThatHasGoneUntilItIsAborted) {
  inChild(two, [&] {
    TwoRanks p;
    EXPECT_EQ(p.move(0, false, 64), 0);
    EXPECT_EQ(p.nccl.commAbort(p.ranks[1].comm), 0);
    EXPECT_FALSE(p.finish());
    int code = 0;
    EXPECT_EQ(p.nccl.commGetAsyncError(p.ranks[0].comm, &code), 0);
    EXPECT_EQ(code, int(cuda::kNcclRemoteError));
    EXPECT_EQ(p.nccl.commAbort(p.ranks[0].comm), 0);
    EXPECT_TRUE(p.finish());
  });
  EXPECT_EQ(count("VIOLATION"), 0) << log();
}

TEST_F(StandinNccl, LogsEachKindOfMistake) {
  struct Case {
    const char *text;
    std::function<void(TwoRanks &)> make;
  };
  const Case cases[] = {
      {"rank 0 sends 64 elements of type 0 to a receive of 32 of type 0",
       [](TwoRanks &p) {
         EXPECT_EQ(p.move(0, true, 64), 0);
         EXPECT_EQ(p.move(1, false, 32), 0);
         EXPECT_FALSE(p.finish());
       }},
      {"rank 0 sends 8 elements of type 7 to a receive of 8 of type 4",
       [](TwoRanks &p) {
         EXPECT_EQ(p.move(0, true, 8, 7), 0);
         EXPECT_EQ(p.move(1, false, 8, 4), 0);
         EXPECT_FALSE(p.finish());
       }},
      {"ncclSend: bytes outside of live memory",
       [](TwoRanks &p) { EXPECT_NE(p.move(0, true, 257), 0); }},
      {"ncclSend: unknown type of elements",
       [](TwoRanks &p) { EXPECT_NE(p.move(0, true, 1, 99), 0); }},
      {"ncclSend: a stream that is none of the communicator's device",
       [](TwoRanks &p) {
         p.ranks[0].stream = p.ranks[1].stream;
         EXPECT_NE(p.move(0, true, 1), 0);
       }},
      {"ncclRecv: outside of a group",
       [](TwoRanks &p) {
         Rank &own = p.ranks[1];
         EXPECT_NE(p.nccl.receive(reinterpret_cast<void *>(own.memory), 1, 0, 0,
                                  own.comm, own.stream),
                   0);
       }},
      {"ncclGroupEnd without ncclGroupStart",
       [](TwoRanks &p) { EXPECT_NE(p.nccl.groupEnd(), 0); }},
      {"ncclSend of a communicator that is none",
       [](TwoRanks &p) {
         EXPECT_EQ(p.nccl.commDestroy(p.ranks[0].comm), 0);
         EXPECT_NE(p.move(0, true, 1), 0);
       }},
      {"a communicator goes while it has work",
       [](TwoRanks &p) {
         EXPECT_EQ(p.move(0, true, 1), 0);
         EXPECT_EQ(p.nccl.commDestroy(p.ranks[0].comm), 0);
       }},
      {"captures the first call of ncclGroup",
       [](TwoRanks &p) {
         EXPECT_EQ(p.cu.ctxPushCurrent(p.ranks[0].context), 0);
         EXPECT_EQ(p.cu.streamBeginCapture(p.ranks[0].stream,
                                           cuda::kCaptureModeRelaxed),
                   0);
         EXPECT_NE(p.move(0, true, 1), 0);
       }},
  };
  for (const Case &one : cases) {
    inChild(two, [&] {
      TwoRanks p;
      one.make(p);
    });
    EXPECT_EQ(count(std::string("VIOLATION ") + one.text), 1)
        << one.text << "\n"
        << log();
  }
}

// What reads too early, or sends too early, reads old bytes in one of the two
// orders: tests of steps run both.
TEST_F(StandinNccl, BranchesOfGraphsShowMissingEvents) {
  for (const Environment &environment : {two, twoEarly}) {
    bool early = environment.size() > 1;
    inChild(environment, [&] {
      Exchange p({});
      EXPECT_EQ(p.copied(0), 43);
      EXPECT_EQ(p.copied(1), 42);
    });
    EXPECT_EQ(count("VIOLATION"), 0) << log();
    inChild(environment, [&] {
      Exchange p({.waitsForResult = false});
      EXPECT_EQ(p.copied(0), 0); // rank 1 has not sent anything yet
    });
    inChild(environment, [&] {
      Exchange p({.waitsForOperand = false});
      EXPECT_EQ(p.copied(0), early ? 0 : 43);
    });
  }
  inChild(two, [&] {
    Exchange p({.joins = false});
    EXPECT_NE(p.captured, 0);
  });
  EXPECT_EQ(count("VIOLATION a capture ends while S"), 1) << log();
}

TEST_F(StandinNccl, TwoRanksCannotHaveOneDevice) {
  inChild(two, [&] {
    TwoRanks p(/*secondDevice=*/0);
    EXPECT_NE(p.ranks[0].result, 0);
    EXPECT_NE(p.ranks[1].result, 0);
  });
}

// Pieces cover all elements once, fit the slots, and need one kernel but for
// the last.
TEST(DeviceCollectives, PiecesCoverTheTensors) {
  const int64_t most = kDevicePieceBytes / 4;
  const PrimitiveDesc sums[] = {
      sumOf(PrimitiveKind::AllReduce, 2, {1}),
      sumOf(PrimitiveKind::AllReduce, 3, {7, 0, most, 5}),
      sumOf(PrimitiveKind::AllReduce, 1000, {5 * most + 1, 3}),
      sumOf(PrimitiveKind::ReduceScatter, 3, {7, 2 * most}, {3, most}),
      sumOf(PrimitiveKind::ReduceScatter, 1000, {1000}, {1}),
  };
  for (const PrimitiveDesc &desc : sums) {
    EXPECT_EQ(check(desc), "");
    int64_t total = 0, at = 0;
    bool rows = desc.kind == PrimitiveKind::ReduceScatter;
    for (int64_t n : rows ? desc.allReduce.shares : desc.allReduce.elements)
      total += n;
    std::vector<SumPiece> pieces = sumPieces(desc);
    for (const SumPiece &piece : pieces) {
      EXPECT_EQ(piece.from, at);
      EXPECT_GT(piece.count, 0);
      EXPECT_LE(piece.width, slotElements(desc));
      EXPECT_GE(piece.width * (rows ? 1 : desc.allReduce.ranks), piece.count);
      if (&piece != &pieces.back())
        EXPECT_EQ(piece.width, pieces.front().width);
      at += piece.count;
    }
    EXPECT_EQ(at, total);
    EXPECT_EQ(slotElements(desc) * 4 % 64, 0);
    EXPECT_EQ(deviceWorkspace(desc),
              desc.allReduce.ranks * slotElements(desc) * 4);
  }
  EXPECT_EQ(deviceWorkspace(sumOf(PrimitiveKind::AllReduce, 1, {5})), 0);
}

// A step that waits for what nothing has begun, or begins what nothing waits
// for, is not loaded.
TEST(DeviceCollectives, StartsAndWaitsArePairs) {
  Manifest m = deviceManifest();
  m.primitives = {sumOf(PrimitiveKind::AllGather, 2, {4}, {2}), {}};
  m.primitives[0].allReduce.started = true;
  m.primitives[1].kind = PrimitiveKind::CollectiveWait;
  m.primitives[1].allReduce.ranks = 2;
  CallInfo start, wait;
  start.source = wait.source = "/node/gather";
  start.primitive = 0, wait.primitive = 1;
  LaunchInfo launch;
  launch.primitive = 0;
  launch.pointers = {{128, 8}, {384, 16}, {640, 0}};
  launch.scalars = {0, 0, 0};
  launch.scratchOffset = 640;
  start.launches = {launch};
  wait.results = {{DType::F32, 384, 16}};
  auto refusal = [&](std::vector<CallInfo> calls) {
    Manifest with = m;
    with.calls.insert(with.calls.end(), calls.begin(), calls.end());
    std::vector<uint8_t> blob = serialize(with);
    ckrt_program *program = nullptr;
    ckrt_status status =
        ckrt_program_load_device(blob.data(), blob.size(), kPtx, sizeof(kPtx),
                                 kConstants, sizeof(kConstants), &program);
    ckrt_program_destroy(program);
    return status == CKRT_OK ? std::string() : std::string(ckrt_last_error());
  };
  using testing::HasSubstr;
  EXPECT_EQ(refusal({start, wait}), "");
  EXPECT_EQ(refusal({start, wait, start, wait}), "");
  EXPECT_THAT(refusal({wait, start}),
              HasSubstr("waits for what nothing has begun"));
  EXPECT_THAT(refusal({start}), HasSubstr("begins what nothing waits for"));
  EXPECT_THAT(refusal({start, start, wait}),
              HasSubstr("where another one is under way"));
  CallInfo astray = start;
  astray.launches[0].scratchOffset = 0;
  EXPECT_THAT(refusal({astray, wait}),
              HasSubstr("works outside of its last result"));
  CallInfo other = wait;
  other.results[0].offset = 0;
  EXPECT_THAT(refusal({start, other}),
              HasSubstr("waits for what nothing has begun"));
}
