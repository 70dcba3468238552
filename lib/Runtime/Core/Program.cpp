//===- Program.cpp - what all compiled steps have in common ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program is a manifest, code, and data for some tensors. The loader tells a
// shared library (CPU) from a folder (device) by looking at the path.
//
//===----------------------------------------------------------------------===//
#include "Session.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>

using namespace ckopt::runtime;

static ckrt_status checkData(const Manifest &manifest, uint64_t dataSize) {
  for (const TensorInfo &t : manifest.tensors)
    if (t.dataOffset >= 0 &&
        (static_cast<uint64_t>(t.dataBytes()) > dataSize ||
         static_cast<uint64_t>(t.dataOffset) > dataSize - t.dataBytes()))
      return fail(CKRT_BAD_ARTIFACT,
                  "artifact lacks the data of tensor '" + t.name + "'");
  return CKRT_OK;
}

ckrt_status ckopt::runtime::checkTarget(const Manifest &manifest,
                                        Target target) {
  if (manifest.target != target)
    return fail(CKRT_BAD_ARTIFACT,
                "the manifest is made for target " +
                    std::string(targetName(manifest.target)) +
                    ", the code beside it for " +
                    std::string(targetName(target)));
  return CKRT_OK;
}

ckrt_status
ckopt::runtime::makeProgram(const void *manifest, size_t manifestSize,
                            Target target, uint64_t dataSize,
                            std::unique_ptr<ckrt_program> &program) {
  auto made = std::make_unique<ckrt_program>();
  std::string error;
  if (!parse(manifest, manifestSize, made->manifest, error))
    return fail(CKRT_BAD_ARTIFACT, error);
  if (ckrt_status status = checkTarget(made->manifest, target))
    return status;
  if (ckrt_status status = checkData(made->manifest, dataSize))
    return status;
  program = std::move(made);
  return CKRT_OK;
}

ckrt_status ckrt_program_load_file(const char *path, ckrt_program **program) {
  if (!path || !program)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_program_load_file: null argument");
  struct stat info;
  if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
    return loadDeviceFolder(path, program);
  return loadSharedLibrary(path, program);
}

ckrt_status ckrt_program_at(const ckrt_program *program, int64_t size,
                            ckrt_program **other) {
  if (!program || !other)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_program_at: null argument");
  auto made = std::make_unique<ckrt_program>();
  made->manifest = program->manifest;
  std::string error;
  if (!resize(made->manifest, size, error))
    return fail(CKRT_INVALID_ARGUMENT, error);
  made->functions = program->functions;
  made->data = program->data;
  *other = made.release();
  return CKRT_OK;
}

void ckrt_program_destroy(ckrt_program *program) {
  if (!program)
    return;
  if (program->library)
    dlclose(program->library);
  if (program->mapping)
    munmap(program->mapping, program->mapped);
  delete program;
}

const void *ckrt_program_manifest(const ckrt_program *program) {
  return &program->manifest;
}
