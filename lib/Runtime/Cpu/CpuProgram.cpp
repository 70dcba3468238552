//===- CpuProgram.cpp - loading a compiled step for the CPU ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads a program from a shared library or from memory. Both ways share one
// check of the manifest, the machine and the table of functions before anything
// runs.
//
//===----------------------------------------------------------------------===//
#include "Core/Session.h"
#include "CpuFeatures.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace ckopt::runtime;

static ckrt_status checkMachine(const Manifest &manifest) {
  std::vector<std::string> missing = missingCpuFeatures(manifest.cpuFeatures);
  if (missing.empty())
    return CKRT_OK;
  if (access("/proc/cpuinfo", R_OK) != 0)
    return fail(CKRT_WRONG_MACHINE,
                "cannot read /proc/cpuinfo, which says what this CPU can do: "
                "mount /proc");
  std::string text = "this CPU lacks what the artifact was compiled for:";
  for (const std::string &feature : missing)
    text += " " + feature;
  return fail(CKRT_WRONG_MACHINE,
              text + "; compile it on (or for) this machine");
}

ckrt_status ckrt_program_load_memory(const void *manifest, size_t manifest_size,
                                     const ckrt_fn *functions,
                                     size_t num_functions, const void *data,
                                     size_t data_size, ckrt_program **program) {
  if (!program || (!functions && num_functions))
    return fail(CKRT_INVALID_ARGUMENT,
                "ckrt_program_load_memory: null argument");
  std::unique_ptr<ckrt_program> made;
  if (ckrt_status status = makeProgram(manifest, manifest_size, Target::Cpu,
                                       data ? data_size : 0, made))
    return status;
  if (num_functions != made->manifest.functions.size())
    return fail(
        CKRT_BAD_ARTIFACT,
        "manifest names " + std::to_string(made->manifest.functions.size()) +
            " functions, " + std::to_string(num_functions) + " were given");
  for (size_t i = 0; i < num_functions; ++i)
    if (!functions[i])
      return fail(CKRT_BAD_ARTIFACT,
                  "no code for " + made->manifest.functions[i].name);
  if (ckrt_status status = checkMachine(made->manifest))
    return status;
  made->functions.assign(functions, functions + num_functions);
  made->data = static_cast<const char *>(data);
  *program = made.release();
  return CKRT_OK;
}

/// Reads the symbols of an opened artifact.
static ckrt_status loadSymbols(void *library, const char *path,
                               ckrt_program **program) {
  const void *blob = dlsym(library, "ckopt_manifest");
  auto *size =
      static_cast<const uint64_t *>(dlsym(library, "ckopt_manifest_size"));
  if (!blob || !size)
    return fail(CKRT_BAD_ARTIFACT, std::string(path) +
                                       " is a shared library but not a ckopt "
                                       "artifact (no symbol ckopt_manifest)");
  Manifest manifest;
  std::string error;
  if (!parse(blob, *size, manifest, error))
    return fail(CKRT_BAD_ARTIFACT, std::string(path) + ": " + error);
  std::vector<ckrt_fn> functions;
  for (const FunctionInfo &f : manifest.functions) {
    void *code = dlsym(library, f.symbol.c_str());
    if (!code)
      return fail(CKRT_BAD_ARTIFACT, std::string(path) + ": no symbol " +
                                         f.symbol + " for " + f.name);
    functions.push_back(reinterpret_cast<ckrt_fn>(code));
  }
  auto *dataSize =
      static_cast<const uint64_t *>(dlsym(library, "ckopt_data_size"));
  return ckrt_program_load_memory(
      blob, *size, functions.data(), functions.size(),
      dataSize ? dlsym(library, "ckopt_data") : nullptr,
      dataSize ? *dataSize : 0, program);
}

/// Returns why the file cannot be mapped whole, or "": dlopen accepts a
/// truncated library and faults at its first missing page.
static std::string checkElf(const std::string &path) {
  // Opening a pipe would wait for a writer that may never come.
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return "no regular file";
  FILE *file = std::fopen(path.c_str(), "rb");
  if (!file)
    return std::strerror(errno);
  Elf64_Ehdr header;
  std::string problem;
  bool read = std::fread(&header, sizeof(header), 1, file) == 1;
  std::fseek(file, 0, SEEK_END);
  uint64_t size = uint64_t(std::ftell(file));
  if (!read || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    problem = "not a shared library";
  for (unsigned i = 0; problem.empty() && i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (std::fseek(file, long(header.e_phoff + i * sizeof(segment)),
                   SEEK_SET) != 0 ||
        std::fread(&segment, sizeof(segment), 1, file) != 1 ||
        segment.p_offset > size || segment.p_filesz > size - segment.p_offset)
      problem = "the file is truncated";
  }
  std::fclose(file);
  return problem;
}

ckrt_status ckopt::runtime::loadSharedLibrary(const std::string &path,
                                              ckrt_program **program) {
  // For a name without a slash, dlopen would search the system's folders.
  std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  if (std::string problem = checkElf(file); !problem.empty())
    return fail(CKRT_BAD_ARTIFACT, "cannot load " + path + ": " + problem);
  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    return fail(CKRT_BAD_ARTIFACT, "cannot load " + path + ": " +
                                       (reason ? reason : "unknown reason"));
  }
  ckrt_status status = loadSymbols(library, path.c_str(), program);
  if (status != CKRT_OK)
    dlclose(library);
  else
    (*program)->library = library;
  return status;
}
