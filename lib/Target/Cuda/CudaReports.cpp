//===- CudaReports.cpp - reports on a step for a GPU ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// This file reports which compiled kernels do not load and store 16 bytes at
// once and why, and, if ptxas is installed, its figures. Nothing of the reports
// reaches the artifact, whose bytes depend only on the input.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "ckopt/Target/Cuda/CudaCode.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

using namespace ckopt;

/// Returns ptxas's figures for each kernel, or nothing if it is not installed.
static llvm::Expected<std::optional<std::vector<AssembledKernel>>>
assembled(const PtxModule &code) {
  auto ptxas = findPtxas();
  if (!ptxas)
    return std::nullopt;
  auto kernels = assemble(code.text, code.sm, *ptxas);
  if (!kernels)
    return kernels.takeError();
  return std::optional(std::move(*kernels));
}

static std::string precisionOf(const runtime::Manifest &manifest) {
  return std::string(runtime::productPrecisionName(manifest.device.precision));
}

static void writeKernel(llvm::json::OStream &json, const PtxKernel &kernel,
                        const AssembledKernel *known) {
  json.object([&] {
    json.attribute("symbol", kernel.symbol);
    json.attribute("grid", kernel.grid);
    json.attribute("block", kernel.block);
    json.attribute("shared_bytes", kernel.sharedBytes);
    json.attribute("wide_accesses", kernel.wideAccesses);
    json.attribute("narrow_accesses", kernel.narrowAccesses);
    json.attribute("split_vectors", kernel.splitVectors);
    if (!known)
      return;
    json.attribute("registers", known->registers);
    json.attribute("spill_store_bytes", known->spillStoreBytes);
    json.attribute("spill_load_bytes", known->spillLoadBytes);
    json.attribute("stack_bytes", known->stackBytes);
  });
}

/// Writes a member "device_code": kernels, the reasons why some are not
/// vectorized, and registers and spills if ptxas is installed.
llvm::Error CudaCode::writeJson(llvm::json::OStream &json) const {
  auto known = assembled(step.code);
  if (!known)
    return known.takeError();
  llvm::StringMap<const AssembledKernel *> bySymbol;
  if (*known)
    for (const AssembledKernel &kernel : **known)
      bySymbol[kernel.symbol] = &kernel;
  json.attributeObject("device_code", [&] {
    json.attribute("sm", int64_t(step.code.sm));
    json.attribute("ptx", std::to_string(step.code.isaMajor) + "." +
                              std::to_string(step.code.isaMinor));
    json.attribute("oldest_driver", step.code.oldestDriver);
    json.attribute("matmul_precision", precisionOf(manifest));
    json.attribute("ptx_bytes", int64_t(step.code.text.size()));
    json.attribute("assembled", known->has_value());
    json.attribute("not_vectorized", int64_t(step.scalarLaunches.size()));
    json.attributeArray("not_vectorized_kernels", [&] {
      for (const ScalarLaunch &launch : step.scalarLaunches)
        json.object([&] {
          json.attribute("symbol", launch.kernel);
          json.attribute("reason", launch.reason);
        });
    });
    json.attributeArray("not_by_libraries", [&] {
      for (const RefusedPrimitive &refused : step.refusedPrimitives)
        json.object([&] {
          json.attribute("kernel", refused.kernel);
          json.attribute("primitive", refused.primitive);
          json.attribute("reason", refused.reason);
        });
    });
    json.attributeObject("rates", [&] {
      for (const NamedRate &named : kNamedRates)
        json.attribute(named.name, jsonNumber(step.rates.*named.rate));
      json.attribute("cache_bandwidth", jsonNumber(step.rates.cacheBandwidth));
      json.attribute("cache_bytes", jsonNumber(step.rates.cacheBytes));
    });
    json.attributeArray("calls", [&] {
      for (const CallWork &work : step.work)
        json.object([&] {
          json.attribute("kernel", work.kernel);
          json.attribute("what", work.what);
          json.attribute("flops", jsonNumber(work.flops));
          json.attribute("bytes", jsonNumber(work.bytes));
          json.attribute("predicted_seconds", jsonNumber(work.seconds));
          json.attributeObject("work", [&] {
            for (const NamedRate &named : kNamedRates)
              if (named.work && work.work.*named.work > 0)
                json.attribute(named.name, jsonNumber(work.work.*named.work));
          });
        });
    });
    json.attributeArray("kernels", [&] {
      for (const PtxKernel &kernel : step.code.kernels)
        writeKernel(json, kernel, bySymbol.lookup(kernel.symbol));
    });
  });
  return llvm::Error::success();
}

void CudaCode::print(llvm::raw_ostream &os) const {
  os << "\ndevice code: PTX " << step.code.isaMajor << "." << step.code.isaMinor
     << " for sm_" << step.code.sm << ", driver " << step.code.oldestDriver
     << " or later; " << step.code.kernels.size() << " kernels, "
     << step.scalarLaunches.size()
     << " not vectorized; products of f32 operands by " << precisionOf(manifest)
     << "\n";
  llvm::MapVector<llvm::StringRef, int64_t> reasons;
  for (const ScalarLaunch &launch : step.scalarLaunches)
    ++reasons[launch.reason];
  for (const auto &[reason, count] : reasons)
    os << "  " << count << ": " << reason << "\n";
  reasons.clear();
  for (const RefusedPrimitive &refused : step.refusedPrimitives)
    ++reasons[refused.reason];
  for (const auto &[reason, count] : reasons)
    os << "  " << count
       << " of our own where libraries were asked for: " << reason << "\n";
}

/// Prints a line on registers and spills of all kernels.
static llvm::Error printAssembled(const PtxModule &code,
                                  llvm::raw_ostream &os) {
  auto known = assembled(code);
  if (!known)
    return known.takeError();
  if (!*known) {
    os << "  registers and spills: unknown, ptxas is not installed\n";
    return llvm::Error::success();
  }
  int64_t registers = 0, spills = 0, stack = 0;
  for (const AssembledKernel &kernel : **known) {
    registers = std::max(registers, kernel.registers);
    spills += kernel.spillStoreBytes + kernel.spillLoadBytes;
    stack = std::max(stack, kernel.stackBytes);
  }
  os << "  ptxas: at most " << registers << " registers a thread, " << spills
     << " bytes of spills, at most " << stack << " bytes of stack\n";
  return llvm::Error::success();
}

llvm::Error CudaCode::inspect(llvm::raw_ostream &os) const {
  print(os);
  return printAssembled(step.code, os);
}
