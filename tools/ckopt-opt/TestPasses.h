//===- TestPasses.h - passes that only tests use ----------------*- C++ -*-===//
#ifndef CKOPT_TOOLS_CKOPT_OPT_TESTPASSES_H
#define CKOPT_TOOLS_CKOPT_OPT_TESTPASSES_H

namespace ckopt {
void registerTestPasses();
} // namespace ckopt

#endif // CKOPT_TOOLS_CKOPT_OPT_TESTPASSES_H
