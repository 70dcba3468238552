//===- StandinNcclTest.cpp - the stand-in's NCCL sees what is wrong -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two ranks of one process, on two devices, by the stand-in's NCCL: what tests
// of ranks on devices rely on. Each kind of mistake is made once, and must be
// logged. Beside it the pieces that sums over ranks are cut into.
//
//===----------------------------------------------------------------------===//
#include "../../lib/Runtime/cuda/Nccl.h"
#include "CudaFixture.h"

#include "ckopt/Runtime/DeviceCollectives.h"

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
#include "../../lib/Runtime/cuda/DriverEntries.def"
#undef CKOPT_ENTRY
#define CKOPT_ENTRY(member, symbol, result, parameters)                        \
  nccl.member =                                                                \
      reinterpret_cast<decltype(nccl.member)>(dlsym(library, #symbol));
#include "../../lib/Runtime/cuda/NcclEntries.def"
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
