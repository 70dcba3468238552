//===- Flight.cpp - collectives that overlap kernels ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: exchange tensors with other ranks while kernels run. Method: the
// primitive that starts a collective passes the blocking one to the world's
// thread, with the addresses of its tensors and workspace, which all lie in the
// plan. A second primitive waits, and finds the collective by the address of
// its first result. Guarantee: the bits are those of the blocking collective,
// which does the work.
//
//===----------------------------------------------------------------------===//
#include "Collective.h"

#include "ckopt/Runtime/ckrt.h"

using namespace ckopt::runtime;

namespace {

/// A collective on the world's thread; the caller waits for its end.
class Blocking final : public Primitive {
public:
  explicit Blocking(std::unique_ptr<Primitive> inner)
      : inner(std::move(inner)) {}

  int64_t workspaceBytes() const override { return inner->workspaceBytes(); }
  int32_t failure() const override { return inner->failure(); }
  std::string implementation() const override {
    return inner->implementation();
  }
  bool execute(void *const *args, void *workspace,
               std::string &error) override {
    auto work = [&](std::string &why) {
      return inner->execute(args, workspace, why);
    };
    World *world = World::current();
    return world ? world->perform(work, error) : work(error);
  }

private:
  std::unique_ptr<Primitive> inner;
};

class Start final : public Primitive {
public:
  Start(std::unique_ptr<Primitive> inner, size_t tensors)
      : inner(std::move(inner)), tensors(tensors) {}

  int64_t workspaceBytes() const override { return 0; }
  int32_t failure() const override { return CKRT_RANK; }
  std::string implementation() const override {
    return "begins " + inner->implementation();
  }
  bool execute(void *const *args, void *, std::string &error) override {
    World *world = World::current();
    std::vector<void *> own(args, args + 2 * tensors + 1);
    auto work = [this, own](std::string &why) {
      return inner->execute(own.data(), own.back(), why);
    };
    if (!world)
      return work(error); // reports that there is no world
    world->begin(own[tensors], work);
    return true;
  }

private:
  std::unique_ptr<Primitive> inner;
  size_t tensors;
};

class Wait final : public Primitive {
public:
  int64_t workspaceBytes() const override { return 0; }
  int32_t failure() const override { return CKRT_RANK; }
  std::string implementation() const override { return "waits for ranks"; }
  bool execute(void *const *args, void *, std::string &error) override {
    World *world = World::current();
    return !world || world->finish(args[0], error);
  }
};

} // namespace

std::unique_ptr<Primitive>
ckopt::runtime::createOfRanks(const PrimitiveDesc &desc) {
  if (desc.kind == PrimitiveKind::CollectiveWait)
    return std::make_unique<Wait>();
  auto inner = createMeeting(desc);
  if (desc.kind == PrimitiveKind::Rank || desc.kind == PrimitiveKind::OwnRows)
    return inner;
  if (desc.allReduce.started)
    return std::make_unique<Start>(std::move(inner),
                                   desc.allReduce.elements.size());
  return std::make_unique<Blocking>(std::move(inner));
}
