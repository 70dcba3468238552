//===- Control.cpp - PTX ISA, "Control Flow" and barriers -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Decode.h"
#include "Execution.h"

using namespace standin::ptx;

static bool branch(Decoder &d) {
  d.in.control = Control::Branch;
  d.in.uniform = d.take("uni");
  if (d.operands() != 1 || d.statement.operands[0].kind != Operand::Symbol)
    return d.fail("a label is needed");
  return true;
}

static bool branchIndexed(Decoder &d) {
  d.in.control = Control::BranchIndexed;
  if (!d.take("idx") || d.operands() != 2)
    return d.fail("brx.idx index, targets is needed");
  return d.use(size_t(0), Type::U32);
}

/// bar.sync and barrier.sync.aligned wait for all threads of the block.
static bool blockBarrier(Decoder &d) {
  bool aligned = d.op == "bar";
  (void)d.take("cta");
  if (!d.take("sync"))
    return d.fail("only .sync is known");
  aligned |= d.take("aligned");
  if (!aligned)
    return d.fail("only barriers for whole warps (.aligned) are known");
  d.in.control = Control::Barrier;
  if (d.operands() < 1 || d.operands() > 2)
    return d.fail("1 or 2 operands are needed");
  for (size_t i = 0; i < d.operands(); ++i)
    if (!d.use(i, Type::U32))
      return false;
  return true;
}

static void trap(const Instruction &, Lanes &lanes) { lanes.fault = "a trap"; }

static void waitForOthers(const Instruction &, Lanes &lanes) {
  lanes.warp->sees |= lanes.active;
}

/// griddepcontrol: launches run one after the other here, so there is nothing
/// to wait for, but memory may be accessed from now on.
static bool gridControl(Decoder &d) {
  if (d.take("wait"))
    d.in.run = &waitForOthers;
  else if (!d.take("launch_dependents"))
    return d.fail(".wait or .launch_dependents is needed");
  return d.operands() == 0 || d.fail("no operands are needed");
}

static bool decodeControlOp(Decoder &d) {
  if (d.op == "griddepcontrol")
    return gridControl(d);
  if (d.op == "bra")
    return branch(d);
  if (d.op == "brx")
    return branchIndexed(d);
  if (d.op == "bar" || d.op == "barrier")
    return blockBarrier(d);
  if (d.op == "ret" || d.op == "exit") {
    d.in.control = Control::Exit;
    (void)d.take("uni");
  } else if (d.op == "trap") {
    d.in.run = &trap;
  } else { // fences order memory accesses, but no thread waits
    d.takeOf({"cta", "gpu", "sys", "gl"});
    d.takeOf({"sc", "acq_rel"});
  }
  return d.operands() == 0 || d.fail("no operands are needed");
}

bool standin::ptx::decodeControl(Decoder &d) {
  for (std::string_view op : {"bra", "brx", "barrier", "ret", "exit", "trap",
                              "membar", "fence", "griddepcontrol"})
    if (d.op == op) {
      (void)decodeControlOp(d);
      return true;
    }
  // bar.warp.sync belongs to another family.
  if (d.op != "bar" || d.statement.opcode.size() < 2 ||
      d.statement.opcode[1] == "warp")
    return false;
  (void)decodeControlOp(d);
  return true;
}
