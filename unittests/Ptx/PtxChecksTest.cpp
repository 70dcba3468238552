//===- PtxChecksTest.cpp - the interpreter sees what is wrong -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tests the checks of the PTX interpreter: each kind of mistake is made once
// and must be reported with its place, beside the same code without the
// mistake.
//
//===----------------------------------------------------------------------===//
#include "PtxFixture.h"

using namespace standin::ptx::test;

namespace {

/// The error has all parts; each kernel that runs names itself and a line.
void expectError(const Kernel1 &kernel, const std::vector<std::string> &parts) {
  std::string error = run(kernel).error;
  for (const std::string &part : parts)
    EXPECT_NE(error.find(part), std::string::npos)
        << "no '" << part << "' in: " << error << "\n"
        << kernel.text();
}
void expectFine(const Kernel1 &kernel) {
  EXPECT_EQ(run(kernel).error, "") << kernel.text();
}

Kernel1 body(const std::string &text, uint32_t block = 32, uint32_t grid = 1) {
  Kernel1 kernel;
  kernel.body = text;
  kernel.block = block;
  kernel.grid = grid;
  return kernel;
}
/// With a shared array `sh` of 1024 bytes; %rd3 is the thread's word in it.
Kernel1 shared(const std::string &text, uint32_t block = 32,
               uint32_t grid = 1) {
  Kernel1 kernel =
      body("mov.b64 %rd4, sh;\nmad.wide.u32 %rd3, %r1, 4, %rd4;\n" + text,
           block, grid);
  kernel.declarations = ".shared .align 16 .b8 sh[1024];\n";
  return kernel;
}

// A vector of 16 bytes lies at a multiple of 16, whatever its elements' size.
TEST(PtxChecks, Alignment) {
  expectFine(body("ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%rd2];\n"));
  expectError(body("ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%rd2+8];\n"),
              {"kernel 'k', line 14", "thread 0", "not aligned to 16 bytes"});
  expectError(body("ld.global.v2.b32 {%r2, %r3}, [%rd2+4];\n"),
              {"not aligned to 8 bytes"});
  expectError(body("st.global.b64 [%rd2+4], %rd1;\n"),
              {"not aligned to 8 bytes"});
  expectError(shared("st.shared.b32 [%rd3+2], %r1;\n"),
              {"not aligned to 4 bytes"});
}

TEST(PtxChecks, Bounds) {
  expectError(body("ld.global.b32 %r2, [%rd2+16];\n"),
              {"thread 31", "in no live memory"});
  expectError(body("st.global.b32 [%rd1+-4], %r1;\n"), {"in no live memory"});
  expectError(shared("st.shared.b32 [%rd3+1000], %r1;\n"),
              {"thread 6", "outside of the 1024 bytes"});
  expectError(shared("st.global.b32 [%rd3], %r1;\n"), {"in no live memory"});
  expectError(body("ld.param.b64 %rd3, [k_param_0+8];\n"),
              {"behind the parameters"});
}

TEST(PtxChecks, NeverWritten) {
  expectError(body("add.s32 %r2, %r3, 1;\n"), {"%r3", "never written"});
  expectError(body("setp.lt.u32 %p1, %r1, 4;\n@%p1 mov.b32 %r3, 1;\n"
                   "add.s32 %r2, %r3, 1;\n"),
              {"thread 4", "%r3"});
  expectError(body("@%p1 mov.b32 %r3, 1;\n"), {"%p1", "never written"});
  expectFine(body("mov.pred %p1, 0;\nselp.b32 %r2, %r3, 1, %p1;\n"));
  expectError(shared("ld.shared.b32 %r2, [%rd3];\n"), {"nobody wrote"});
  // Shared memory of one block is undefined for the next.
  expectError(shared("mov.u32 %r2, %ctaid.x;\nsetp.eq.s32 %p1, %r2, 0;\n"
                     "@%p1 st.shared.b32 [%rd3], %r1;\nbar.sync 0;\n"
                     "ld.shared.b32 %r3, [%rd3];\n",
                     32, 2),
              {"block 1", "nobody wrote"});
}

// An undefined half of a register may be moved, and not used otherwise.
TEST(PtxChecks, HalvesThatNobodyWrote) {
  std::string pack = "mov.b16 %rs1, 0x1234;\nmov.b32 %r2, {%rs2, %rs1};\n";
  std::string store = "st.global.b32 [%rd2], %r3;\n";
  Kernel1 kernel = body(pack + "shr.u32 %r3, %r2, 16;\n" + store);
  Outcome outcome = run(kernel);
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.out[4 * 3], 0x1234u);
  for (const char *moves :
       {"and.b32 %r3, %r2, 0xFFFF0000;\n", "bfe.u32 %r3, %r2, 16, 16;\n",
        "prmt.b32 %r3, %r2, 0, 0x4432;\n", "or.b32 %r3, %r2, 0xFFFF;\n",
        "mov.b32 {_, %rs3}, %r2;\ncvt.u32.u16 %r3, %rs3;\n",
        "shf.l.wrap.b32 %r3, %r2, 0, 16;\nnot.b32 %r3, %r3;\n",
        "mov.b64 %rd5, {%r2, %r1};\nshr.u64 %rd5, %rd5, 16;\n"
        "cvt.u16.u64 %rs3, %rd5;\ncvt.u32.u16 %r3, %rs3;\n"})
    expectFine(body(pack + moves + store));
  for (const char *uses :
       {"shr.u32 %r3, %r2, 15;\n", "and.b32 %r3, %r2, 0xFFFF8000;\n",
        "mov.b32 {%rs3, _}, %r2;\ncvt.u32.u16 %r3, %rs3;\n",
        "shl.b32 %r3, %r2, 16;\n", "mov.b32 %r3, %r2;\n"})
    expectError(body(pack + uses + store), {"%r3, whose bits 0x", "never"});
  // Each kind of use, of a register where half is there.
  std::string bits = "%r2, whose bits 0xffff were never written";
  expectError(body(pack + "add.s32 %r3, %r2, 1;\n"), {bits});
  expectError(body(pack + "setp.eq.s32 %p1, %r2, 1;\n"), {bits});
  expectError(body(pack + "shl.b32 %r3, 1, %r2;\n"), {bits});
  expectError(
      body(pack + "cvt.u64.u32 %rd5, %r2;\nadd.s64 %rd5, %rd1, %rd5;\n"),
      {"%rd5, whose bits 0xffff were"});
  expectError(body(pack + "shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;\n"), {bits});
  expectError(body("mov.b32 %r2, {%rs2, %rs3};\n"), {"%rs2, which was never"});
  // Some lanes write the half.
  std::string some = "setp.lt.u32 %p1, %r1, 4;\n@%p1 mov.b16 %rs2, 7;\n";
  expectError(body(some + pack + "mov.b32 %r3, %r2;\n" + store), {"thread 4"});
  // The register is written completely later, so nothing is undefined.
  expectFine(body(pack + "mov.b32 %r3, %r2;\nmov.b32 %r3, 1;\n" + store));
}

// Thread t reads the value of its neighbour.
const char *const kNeighbour = "xor.b32 %r2, %r1, 1;\n"
                               "mad.wide.u32 %rd5, %r2, 4, %rd4;\n"
                               "ld.shared.b32 %r3, [%rd5];\n";

TEST(PtxChecks, RacesInSharedMemory) {
  std::string store = "st.shared.b32 [%rd3], %r1;\n", load = kNeighbour;
  expectFine(shared(store + "bar.sync 0;\n" + load, 64));
  expectFine(shared(store + "bar.warp.sync -1;\n" + load, 64));
  expectError(shared(store + load, 64),
              {"reads what thread 1 wrote in line", "thread 0", "race"});
  // A write over a value that another thread still reads.
  expectFine(shared(store + "bar.sync 0;\n" + load + "bar.sync 0;\n" + store));
  expectError(shared(store + "bar.sync 0;\n" + load + store),
              {"writes what thread 1 read", "race in shared"});
  expectError(shared("st.shared.b32 [%rd4], %r1;\n"),
              {"thread 1", "writes what thread 0 wrote"});
  // Bytes of one word that different threads own do not meet.
  expectFine(shared("cvt.u64.u32 %rd6, %r1;\nadd.s64 %rd6, %rd6, %rd4;\n"
                    "st.shared.b8 [%rd6], %r1;\n"));
  // A barrier of the warp does not order warps.
  expectError(shared(store + "bar.warp.sync -1;\nxor.b32 %r2, %r1, 32;\n"
                             "mad.wide.u32 %rd5, %r2, 4, %rd4;\n"
                             "ld.shared.b32 %r3, [%rd5];\n",
                     64),
              {"nobody wrote"});
}

TEST(PtxChecks, RacesInGlobalMemory) {
  expectFine(body("st.global.b32 [%rd2], %r1;\nld.global.b32 %r2, [%rd2];\n"));
  expectError(body("st.global.b32 [%rd2], %r1;\n", 32, 2),
              {"block 1", "thread 0", "thread 0 of another block wrote",
               "race in global"});
  expectError(body("st.global.b32 [%rd1], %r1;\n"),
              {"thread 1", "writes what thread 0 wrote"});
  expectFine(body("ld.global.b32 %r2, [%rd1];\n", 64, 3));
  // Readers of other blocks, or of other warps, and then a writer.
  expectError(body("ld.global.b32 %r2, [%rd1];\nmov.u32 %r3, %ctaid.x;\n"
                   "setp.eq.s32 %p1, %r3, 1;\nsetp.eq.s32 %p2, %r1, 0;\n"
                   "and.pred %p1, %p1, %p2;\n@%p1 st.global.b32 [%rd1], %r1;\n",
                   32, 2),
              {"block 1", "writes what thread"});
  expectError(body("ld.global.b32 %r2, [%rd1];\nbar.warp.sync -1;\n"
                   "setp.eq.s32 %p1, %r1, 63;\n"
                   "@%p1 st.global.b32 [%rd1], %r1;\n",
                   64),
              {"thread 63", "and others read in line 14"});
  expectFine(body("ld.global.b32 %r2, [%rd1];\nbar.sync 0;\n"
                  "setp.eq.s32 %p1, %r1, 63;\n"
                  "@%p1 st.global.b32 [%rd1], %r1;\n",
                  64));
  expectError(
      body("st.global.b32 [%rd2], %r1;\nld.global.nc.b32 %r2, [%rd2];\n"),
      {"of what this launch writes"});
}

TEST(PtxChecks, Barriers) {
  // Half of a warp; a whole warp that is through; two warps at two barriers.
  expectError(body("setp.lt.u32 %p1, %r1, 16;\n@%p1 bar.sync 0;\n"),
              {"not together at a barrier", "thread 16 is elsewhere"});
  expectError(body("setp.lt.u32 %p1, %r1, 32;\n@%p1 bra $end;\nbar.sync 0;\n"
                   "$end:\n",
                   64),
              {"thread 32", "waits for thread 0, which is through"});
  expectError(body("setp.lt.u32 %p1, %r1, 8;\n@%p1 ret;\nbar.sync 0;\n"),
              {"thread 0 is through"});
  expectError(body("setp.lt.u32 %p1, %r1, 32;\n@%p1 bra $one;\nbar.sync 0;\n"
                   "ret;\n$one:\nbar.sync 0;\n",
                   64),
              {"must come to the same one"});
  expectError(body("bar.sync 0, 32;\n", 64), {"a part of the block"});
  expectFine(body("bar.sync 0, 64;\nbarrier.cta.sync.aligned 1;\n", 64));
  expectError(body("setp.lt.u32 %p1, %r1, 16;\n@!%p1 bra $end;\n"
                   "shfl.sync.down.b32 %r2, %r1, 1, 31, -1;\n$end:\n"),
              {"lanes of the member mask are not together"});
  expectError(body("setp.lt.u32 %p1, %r1, 16;\n@%p1 bra.uni $end;\n$end:\n"),
              {"bra.uni"});
}

// What begins early waits in every thread before it touches global memory, and
// also where it touches none: its end tells that all before have ended.
TEST(PtxChecks, WaitsForTheKernelsBefore) {
  auto early = [](const std::string &text) {
    Kernel1 kernel = body(text);
    kernel.early = true;
    return kernel;
  };
  const std::string wait = "griddepcontrol.wait;\n",
                    load = "ld.global.b32 %r2, [%rd2];\n",
                    store = "st.global.b32 [%rd2], %r1;\n",
                    half = "setp.lt.u32 %p1, %r1, 16;\n@%p1 ";
  expectFine(
      early("griddepcontrol.launch_dependents;\n" + wait + load + store));
  expectFine(body(wait + load));
  expectFine(body(load));
  expectError(early(load + wait), {"line 14", "thread 0", "reads global memory",
                                   "before it waits for the kernels before"});
  expectError(early(store + wait), {"writes global memory before it waits"});
  expectError(early("griddepcontrol.launch_dependents;\n" + load),
              {"before it waits"});
  expectError(early(half + wait + load), {"thread 16", "before it waits"});
  expectError(early(""), {"thread 0", "ends without a wait"});
  expectError(early(half + wait), {"thread 16", "ends without a wait"});
  expectError(early("setp.lt.u32 %p1, %r1, 16;\n@%p1 ret;\n" + wait + load),
              {"thread 0", "ends without a wait"});
  expectError(body("griddepcontrol.begin;\n"), {".wait or .launch_dependents"});
}

// In a block of 16 threads, lane 15's partner does not exist.
TEST(PtxChecks, LanesThatAreNotThere) {
  std::string down = "shfl.sync.down.b32 %r2, %r1, 1, 31, -1;\n";
  expectFine(body(down, 16));
  expectError(body(down + "add.s32 %r3, %r2, 1;\n", 16),
              {"thread 15", "never written"});
}

// A request's sectors are distinct pieces of 32 bytes; lanes that are switched
// off touch none.
TEST(PtxChecks, Sectors) {
  auto loadsOf = [](const std::string &address) {
    return run(body(address + "ld.global.b32 %r2, [%rd3];\n")).loads;
  };
  auto together = loadsOf("mad.wide.u32 %rd3, %r1, 4, %rd1;\n"),
       apart = loadsOf("mov.b64 %rd3, %rd2;\n"),
       same = loadsOf("mov.b64 %rd3, %rd1;\n");
  EXPECT_EQ(together.requests, 1u);
  EXPECT_EQ(together.sectors, 4u);
  EXPECT_EQ(together.bytes, 128u);
  EXPECT_EQ(apart.sectors, 16u);
  EXPECT_EQ(same.sectors, 1u);
  Outcome few = run(body("setp.lt.u32 %p1, %r1, 2;\n"
                         "@%p1 st.global.b32 [%rd2], %r1;\n"));
  EXPECT_EQ(few.stores.bytes, 8u);
  EXPECT_EQ(few.stores.sectors, 1u);
  EXPECT_EQ(few.loads.requests, 0u);
}

TEST(PtxChecks, UnknownCode) {
  expectError(body("sin.approx.f32 %r2, %r1;\n"), {"line 14", "sin.approx"});
  expectError(body("add.approx.f32 %r2, %r1, %r1;\n"), {"'.approx'"});
  expectError(body("ex2.approx.f32 %r2, %r1;\n"), {"'.approx.ftz.f32'"});
  expectError(body("add.rz.f32 %r2, %r1, %r1;\n"), {"'.rz'"});
  expectError(body("atom.global.add.u32 %r2, [%rd1], 1;\n"), {"atom"});
  expectError(body("add.s32 %r2, %rd1, 1;\n"), {"'%rd1' has 64 bits"});
  expectError(body("add.s32 %r2, %rx, 1;\n"), {"%rx"});
  expectError(body("bra $nowhere;\n"), {"no label '$nowhere'"});
  expectError(body("div.s32 %r2, %r1, 0;\n"), {"divided by zero"});
  expectError(body("trap;\n"), {"a trap"});
  expectError(body("add.s32 %r2, %r1;\n"), {"3 operands are needed"});
  expectError(body("ld.local.b32 %r2, [%rd1];\n"), {"'.local'"});
}

/// Each thread copies 16 bytes of its words to `sh`, then runs `text`.
Kernel1 copied(const std::string &text, uint32_t block = 32) {
  Kernel1 kernel = body("st.global.b32 [%rd2], %r1;\nmov.b64 %rd4, sh;\n"
                        "mad.wide.u32 %rd3, %r1, 16, %rd4;\n"
                        "cp.async.cg.shared.global [%rd3], [%rd2], 16;\n" +
                            text,
                        block);
  kernel.declarations = ".shared .align 16 .b8 sh[1024];\n";
  return kernel;
}

// What a copy under way writes is there behind its thread's wait, for others
// behind a barrier after it; a wait that leaves its group under way is none.
TEST(PtxChecks, CopiesUnderWay) {
  const std::string commit = "cp.async.commit_group;\n",
                    wait = "cp.async.wait_group 0;\n",
                    own = "ld.shared.b32 %r2, [%rd3];\n",
                    other = "ld.shared.b32 %r2, [sh];\n",
                    early = "reads shared memory that line 18 copies to, which "
                            "nobody has waited for";
  expectFine(copied(commit + wait + own));
  expectFine(copied("cp.async.wait_all;\n" + own));
  expectFine(copied(commit + wait + "bar.sync 0;\n" + other, 64));
  expectError(copied(own), {early});
  expectError(copied(commit + own), {early});
  expectError(copied(wait + own), {early});
  expectError(copied(commit + "cp.async.wait_group 1;\n" + own), {early});
  expectError(copied(commit + "bar.sync 0;\n" + other, 64), {early});
  expectError(copied("st.shared.b32 [%rd3], %r1;\n"),
              {"writes shared memory that line 18 copies to"});
  expectError(copied(commit + wait + other, 64), {"a race in shared memory"});
  expectError(copied("cp.async.cg.shared.global [%rd3+8], [%rd2], 16;\n"),
              {"not aligned to 16 bytes"});
}

// Zeros are copied where no byte is read, wherever the address points to.
TEST(PtxChecks, CopiesOfNothing) {
  Kernel1 kernel =
      copied("cp.async.wait_all;\nmov.b32 %r3, 0;\nmov.b64 %rd5, 64;\n"
             "st.shared.b32 [%rd3], %r1;\nst.shared.b32 [%rd3+4], %r1;\n"
             "cp.async.ca.shared.global [%rd3+4], [%rd5], 4, %r3;\n"
             "cp.async.wait_all;\n"
             "ld.shared.v2.b32 {%r4, %r5}, [%rd3];\n"
             "st.global.v2.b32 [%rd2], {%r4, %r5};\n");
  Outcome outcome = run(kernel);
  ASSERT_EQ(outcome.error, "");
  for (uint32_t thread = 0; thread < 32; ++thread) {
    EXPECT_EQ(outcome.out[4 * thread], thread);
    EXPECT_EQ(outcome.out[4 * thread + 1], 0u);
  }
}

} // namespace
