//===- Module.cpp - the extension module of the Python package ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Bindings.h"

#include "ckopt/Base/Version.h"
#include "ckopt/Target/Cuda/DeviceSpeeds.h"
#include "ckopt/Tool/Main.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/raw_ostream.h"

#ifdef CKOPT_STATIC
#include "Inside.h"
#endif

using namespace ckopt;
using namespace ckopt::python;

/// Raises what ckopt.errors makes of the exit code and the text.
static void raise(const std::exception_ptr &pointer, void *) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Failure &failure) {
    nb::object made = nb::module_::import_("ckopt.errors")
                          .attr("from_exit_code")(failure.code, failure.text);
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(made.ptr())),
                    made.ptr());
  }
}

/// Runs the tool that the first argument names.
static int runTool(std::vector<std::string> arguments) {
  const std::string name = arguments.empty() ? "" : arguments.front();
  auto run = name == "ckopt-opt"    ? optMain
             : name == "ckopt-plan" ? planMain
                                    : driverMain;
  std::vector<char *> argv;
  for (std::string &argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  nb::gil_scoped_release release;
  int code = run(int(arguments.size()), argv.data());
  llvm::outs().flush();
  return code;
}

/// What the table of devices has of one, for the partitioner of torch.compile.
static nb::dict deviceSpeeds(const std::string &name, unsigned sm) {
  DeviceSpeeds speeds = findDeviceSpeeds(name, sm);
  nb::dict result;
  result["device"] = speeds.device;
  result["known"] = speeds.isKnown;
  result["multiprocessors"] = speeds.multiprocessors;
  result["f32"] = speeds.f32;
  result["tf32"] = speeds.tf32;
  result["halves"] = speeds.halves;
  result["bandwidth"] = speeds.bandwidth;
  result["vector"] = speeds.vector;
  return result;
}

NB_MODULE(_ckopt, module) {
  module.doc() = "ckopt's compiler, runtime and planner; see the package ckopt";
  nb::register_exception_translator(raise);
  module.def("version_line",
             [] { return versionLine("ckopt", LLVM_VERSION_STRING); });
  module.def("tool", runTool, nb::arg("arguments"),
             "Runs a tool; arguments[0] is its name. Returns the exit code.");
  module.def("device_speeds", deviceSpeeds, nb::arg("name"), nb::arg("sm"));
#ifdef CKOPT_STATIC
  linkInside();
#endif
  bindStep(module);
  bindPlan(module);
  bindRemat(module);
}
