//===- WeightParts.cpp - a session's weights, piece by piece --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: rank 0 writes a file of weights that no rank has whole, in an order
// that the file decides, with memory that does not grow with them. Method:
// rank 0 tells the others which piece it wants next, those of the first group
// that have some of it send that, and all wait for the next request. Memory: a
// piece on each rank, and one more for what MPI keeps. An error of a rank that
// serves travels with its answer; one of rank 0 ends the service.
//
//===----------------------------------------------------------------------===//
#include "WeightParts.h"
#include "ckopt/Ranks/Ranks.h"
#include "ckopt/Runtime/KeepAlive.h"
#include "ckopt/Support/Error.h"

#include <cstring>

using namespace ckopt;
using runtime::TensorInfo;
using runtime::TensorRole;

namespace {
/// A piece that rank 0 wants.
struct Request {
  int64_t number = -1; ///< of a tensor; -1: no more
  int64_t begin = 0, count = 0;
};

/// Elements of a piece that a rank has.
struct Overlap {
  int64_t begin = 0, count = 0; ///< of the whole tensor
};

class SessionParts : public TensorParts {
public:
  static llvm::Expected<std::unique_ptr<SessionParts>>
  create(const Session &session, bool averaged, bool trainedOnly);

  llvm::ArrayRef<TensorSpec> specs() const override { return list; }
  llvm::Expected<HostTensor> read(size_t number, int64_t begin,
                                  int64_t count) override;
  /// Answers requests until rank 0 has no more.
  llvm::Error serve();
  llvm::Error endService();

private:
  explicit SessionParts(const Session &session)
      : session(session), isShared(session.isSharded()) {}
  const TensorInfo &info(size_t number) const {
    return session.infoOf(indices[number]);
  }
  Overlap overlap(const Request &wanted, int64_t rank) const;
  llvm::Expected<HostTensor> readOwn(size_t number, Overlap part,
                                     int64_t rank) const;
  /// Gives rank 0's request to all.
  llvm::Error share(Request &request) const {
    return session.ranks().broadcast(request);
  }
  llvm::Error answer(const Request &request);

  const Session &session;
  bool isShared;
  std::vector<TensorSpec> list;
  std::vector<int64_t> indices; ///< of the session
};
} // namespace

llvm::Expected<std::unique_ptr<SessionParts>>
SessionParts::create(const Session &session, bool averaged, bool trainedOnly) {
  std::unique_ptr<SessionParts> parts(new SessionParts(session));
  for (TensorRole role :
       {TensorRole::Parameter, TensorRole::Frozen, TensorRole::State}) {
    if (trainedOnly && role != TensorRole::Parameter)
      continue;
    for (int64_t index : session.tensors(role)) {
      const TensorInfo &tensor = session.infoOf(index);
      parts->list.push_back({tensor.name, tensor.dtype, tensor.fullShape()});
      parts->indices.push_back(index);
      if (!averaged || role != TensorRole::Parameter)
        continue;
      auto average = session.find(tensor.name + "/ema");
      if (!average)
        return average.takeError();
      parts->list.back().dtype = session.infoOf(*average).dtype;
      parts->indices.back() = *average;
    }
  }
  return std::move(parts);
}

/// Returns what a rank of the first group has of a piece.
Overlap SessionParts::overlap(const Request &wanted, int64_t rank) const {
  Shards shards = info(size_t(wanted.number)).sharing();
  if (rank >= shards.shards)
    return {};
  int64_t first = std::max(wanted.begin, shards.begin(rank));
  int64_t last = std::min(wanted.begin + wanted.count,
                          shards.begin(rank) + shards.count(rank));
  return {first, std::max(last - first, int64_t(0))};
}

llvm::Expected<HostTensor> SessionParts::readOwn(size_t number, Overlap part,
                                                 int64_t rank) const {
  Shards shards = info(number).sharing();
  int64_t begin = shards.begin(shards.shardOf(rank));
  return session.readPart(indices[number], part.begin - begin, part.count);
}

llvm::Error SessionParts::endService() {
  Request none;
  return isShared ? share(none) : llvm::Error::success();
}

llvm::Expected<HostTensor> SessionParts::read(size_t number, int64_t begin,
                                              int64_t count) {
  const TensorInfo &tensor = info(number);
  if (tensor.shards == 1)
    return session.readPart(indices[number], begin, count);
  Request request = {int64_t(number), begin, count};
  if (llvm::Error error = share(request))
    return std::move(error);
  HostTensor piece(tensor.dtype, {count});
  auto *bytes = static_cast<char *>(piece.mutableRawData());
  int64_t size = runtime::dtypeSize(tensor.dtype);
  std::vector<int64_t> failed(size_t(tensor.shards));
  std::vector<runtime::Transfer> list;
  for (int64_t rank = 1; rank < tensor.shards; ++rank) {
    Overlap part = overlap(request, rank);
    if (!part.count)
      continue;
    list.push_back(
        {false, &failed[size_t(rank)], sizeof(int64_t), int32_t(rank)});
    list.push_back({false, bytes + (part.begin - begin) * size,
                    part.count * size, int32_t(rank)});
  }
  std::string error;
  if (!list.empty() && !session.ranks().world().transfer(list, error))
    return rankError(error);
  for (size_t rank = 0; rank < failed.size(); ++rank)
    if (failed[rank])
      return failedRank(rank);
  Overlap own = overlap(request, 0);
  if (!own.count)
    return piece;
  auto mine = readOwn(number, own, 0);
  if (!mine)
    return mine;
  std::memcpy(bytes + (own.begin - begin) * size, mine->rawData(),
              size_t(mine->sizeInBytes()));
  return piece;
}

llvm::Error SessionParts::answer(const Request &request) {
  const Ranks &ranks = session.ranks();
  Overlap own = overlap(request, ranks.number());
  if (!own.count)
    return llvm::Error::success();
  auto number = size_t(request.number);
  auto piece = readOwn(number, own, ranks.number());
  int64_t failed = !piece;
  HostTensor sent =
      piece ? std::move(*piece) : HostTensor(info(number).dtype, {own.count});
  llvm::Error result = failed ? piece.takeError() : llvm::Error::success();
  std::string error;
  if (!ranks.world().transfer(
          {{true, &failed, sizeof(failed), 0},
           {true, sent.mutableRawData(), sent.sizeInBytes(), 0}},
          error))
    return llvm::joinErrors(std::move(result), rankError(error));
  return result;
}

llvm::Error SessionParts::serve() {
  llvm::Error result = llvm::Error::success();
  while (true) {
    Request request;
    if (llvm::Error error = share(request))
      return llvm::joinErrors(std::move(result), std::move(error));
    if (request.number < 0)
      return result;
    if (llvm::Error error = answer(request))
      result = llvm::joinErrors(std::move(result), std::move(error));
  }
}

llvm::Error ckopt::useWeightsOnMain(
    const Session &session, bool averaged, bool trainedOnly,
    llvm::function_ref<llvm::Error(TensorParts &weights)> use) {
  bool isShared = session.isSharded();
  const Ranks &ranks = session.ranks();
  if (!ranks.isMain() && !isShared)
    return llvm::Error::success();
  if (isShared && !ranks.areSeveral())
    return usageError("the weights are shared by ranks, and this process runs "
                      "alone");
  auto parts = SessionParts::create(session, averaged, trainedOnly);
  if (!parts)
    return parts.takeError();
  if (!ranks.isMain())
    return (*parts)->serve();
  runtime::KeepAlive alive; // the others wait while a file is written
  llvm::Error error = use(**parts);
  return llvm::joinErrors(std::move(error), (*parts)->endService());
}
