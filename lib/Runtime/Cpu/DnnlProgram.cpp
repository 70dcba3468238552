//===- DnnlProgram.cpp - oneDNN primitives over planned memory ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keeps oneDNN from allocating memory in a step. By default it allocates
// scratchpads, reorder buffers and memory objects. Here scratchpad_mode is
// `user`, reorder buffers lie in the workspace, and memory objects are made
// with the program. The only allocations left in a run are the library's own
// argument maps, some hundred bytes.
//
//===----------------------------------------------------------------------===//
#include "DnnlProgram.h"

#include "OpenMP.h"

#include <algorithm>
#include <cstring>

using namespace ckopt::runtime;

dnnl_engine_t ckopt::runtime::dnnlEngine() {
  static dnnl_engine_t engine = [] {
    dnnlInstructionSet(); // is chosen before the first use
    // oneDNN 3.2 takes the next kernel of a list from its cache of primitives,
    // and finds the same one there again, for ever.
    dnnl_set_primitive_cache_capacity(0);
    dnnl_engine_t made = nullptr;
    dnnl_engine_create(&made, dnnl_cpu, 0);
    return made;
  }();
  return engine;
}

static dnnl_stream_t dnnlStream() {
  static dnnl_stream_t stream = [] {
    dnnl_stream_t made = nullptr;
    dnnl_stream_create(&made, dnnlEngine(), dnnl_stream_in_order);
    return made;
  }();
  return stream;
}

dnnl_data_type_t ckopt::runtime::dnnlType(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return dnnl_f32;
  case DType::BF16:
    return dnnl_bf16;
  case DType::F16:
    return dnnl_f16;
  case DType::F64:
  case DType::I64:
  case DType::I32:
  case DType::I16:
  case DType::I8:
  case DType::U8:
  case DType::Bool:
  case DType::U64:
  case DType::U32:
  case DType::U16:
    break;
  }
  return dnnl_data_type_undef;
}

std::string ckopt::runtime::dnnlStatusText(dnnl_status_t status) {
  std::string text = "oneDNN " + dnnlVersion();
  switch (status) {
  case dnnl_success:
    return text + ": success";
  case dnnl_out_of_memory:
    return text + ": out of memory";
  case dnnl_unimplemented:
    return text + " has no implementation of this for this CPU";
  case dnnl_invalid_arguments:
    return text + " refuses these arguments";
  default:
    break;
  }
  return text + ": status " + std::to_string(static_cast<int>(status));
}

DnnlAttributes::DnnlAttributes() {
  if (dnnl_primitive_attr_create(&attr) == dnnl_success)
    dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
}

DnnlAttributes::~DnnlAttributes() { dnnl_primitive_attr_destroy(attr); }

dnnl_status_t DnnlAttributes::addSum() {
  dnnl_post_ops_t ops = nullptr;
  dnnl_status_t status = dnnl_post_ops_create(&ops);
  if (status == dnnl_success)
    status = appendSum(ops);
  if (status == dnnl_success)
    status = dnnl_primitive_attr_set_post_ops(attr, ops);
  dnnl_post_ops_destroy(ops);
  return status;
}

dnnl_primitive_desc_t
ckopt::runtime::chooseKernel(DnnlKernels &kernels, const PrimitiveDesc &desc,
                             const KernelEvidence &evidence,
                             KernelEvidence::Finding &finding,
                             std::string &error) {
  if (!kernels.get()) {
    error = dnnlStatusText(kernels.status());
    return nullptr;
  }
  for (; kernels.get(); kernels.next())
    if (auto found = evidence.find(desc, kernels.name())) {
      finding = *found;
      return kernels.take();
    }
  error = "oneDNN " + dnnlVersion() +
          " has no kernel for this that a sweep has found right on " +
          dnnlInstructionSet();
  return nullptr;
}

void WorkspaceGuard::write(void *at) { std::memset(at, kValue, kBytes); }

bool WorkspaceGuard::intact(const void *at) {
  auto *bytes = static_cast<const unsigned char *>(at);
  return std::all_of(bytes, bytes + kBytes,
                     [](unsigned char byte) { return byte == kValue; });
}

DnnlProgram::~DnnlProgram() {
  for (Stage &stage : stages)
    dnnl_primitive_destroy(stage.primitive);
  for (Binding &binding : bindings)
    dnnl_memory_destroy(binding.memory);
}

int64_t DnnlProgram::workspaceBytes() const {
  int64_t bytes = workspace + pads;
  return bytes ? bytes + WorkspaceGuard::kBytes : 0;
}

dnnl_memory_t DnnlProgram::bind(DnnlLayoutRef desc, int arg, int64_t offset) {
  dnnl_memory_t memory = nullptr;
  if (dnnl_memory_create(&memory, desc, dnnlEngine(), DNNL_MEMORY_NONE) !=
      dnnl_success)
    return nullptr;
  bindings.push_back({memory, arg, offset});
  return memory;
}

dnnl_memory_t DnnlProgram::argument(DnnlLayoutRef desc, int arg) {
  return bind(desc, arg, 0);
}

dnnl_memory_t DnnlProgram::scratch(DnnlLayoutRef desc) {
  int64_t offset = workspace;
  workspace += alignUp(static_cast<int64_t>(dnnl_memory_desc_get_size(desc)));
  return bind(desc, kWorkspace, offset);
}

dnnl_memory_t DnnlProgram::view(DnnlLayoutRef desc, dnnl_memory_t of) {
  auto it = std::find_if(bindings.begin(), bindings.end(),
                         [&](const Binding &b) { return b.memory == of; });
  return it == bindings.end() ? nullptr : bind(desc, it->arg, it->offset);
}

bool DnnlProgram::append(dnnl_primitive_desc_t desc,
                         std::vector<dnnl_exec_arg_t> args, std::string &error,
                         const KernelEvidence::Finding &finding) {
  DnnlLayoutRef pad =
      dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
  bool sound = true;
  auto bytes = pad ? static_cast<int64_t>(dnnl_memory_desc_get_size(pad)) : 0;
  if (bytes > 0) {
    dnnl_memory_t memory = bind(pad, kPad, 0);
    pads = std::max(pads, alignUp(bytes));
    sound = memory != nullptr;
    args.push_back({DNNL_ARG_SCRATCHPAD, memory});
  }
  for (const dnnl_exec_arg_t &arg : args)
    sound &= arg.memory != nullptr;
  const char *implementation = nullptr;
  dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &implementation);
  name += (name.empty() ? "oneDNN " : " + ") +
          std::string(implementation ? implementation : "?");
  if (!finding.source.empty())
    source = finding.source;
  dnnl_primitive_t primitive = nullptr;
  dnnl_status_t status =
      sound ? dnnl_primitive_create(&primitive, desc) : dnnl_out_of_memory;
  dnnl_primitive_desc_destroy(desc);
  if (status != dnnl_success) {
    error = dnnlStatusText(status);
    return false;
  }
  stages.push_back(
      {primitive, std::move(args), finding.zeroesPad ? bytes : 0, 0, -1});
  return true;
}

bool DnnlProgram::appendReorder(DnnlLayoutRef fromDesc, dnnl_memory_t from,
                                DnnlLayoutRef toDesc, dnnl_memory_t to,
                                std::string &error) {
  DnnlAttributes attributes;
  dnnl_primitive_desc_t desc = nullptr;
  dnnl_status_t status = dnnl_reorder_primitive_desc_create(
      &desc, fromDesc, dnnlEngine(), toDesc, dnnlEngine(), attributes.get());
  if (status != dnnl_success) {
    error = "reorder of weights: " + dnnlStatusText(status);
    return false;
  }
  return append(desc, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, error);
}

bool DnnlProgram::appendCopy(DnnlLayoutRef desc, int from, int to,
                             std::string &error) {
  if (!appendReorder(desc, argument(desc, from), desc, argument(desc, to),
                     error))
    return false;
  stages.back().from = from;
  stages.back().to = to;
  return true;
}

/// Zeroes memory by all threads of the team.
static void zero(char *at, int64_t bytes) {
  struct Range {
    char *at;
    int64_t bytes;
  } range{at, bytes};
  auto part = [](void *data) {
    auto &r = *static_cast<Range *>(data);
    int64_t count = omp_get_num_threads(), own = omp_get_thread_num();
    int64_t begin = r.bytes * own / count, end = r.bytes * (own + 1) / count;
    std::memset(r.at + begin, 0, size_t(end - begin));
  };
  constexpr int64_t kAlone = 1 << 16; ///< quicker than waking the team
  if (bytes <= kAlone)
    std::memset(at, 0, size_t(bytes));
  else
    GOMP_parallel(part, &range, unsigned(omp_get_max_threads()), 0);
}

bool DnnlProgram::execute(void *const *args, void *space, std::string &error) {
  char *base = static_cast<char *>(space);
  auto refuse = [&](dnnl_status_t status) {
    error = name + ": " + dnnlStatusText(status);
    return false;
  };
  for (const Binding &b : bindings) {
    void *at = b.arg == kPad         ? base + workspace
               : b.arg == kWorkspace ? base + b.offset
                                     : args[b.arg];
    dnnl_status_t status = dnnl_memory_set_data_handle(b.memory, at);
    if (status != dnnl_success)
      return refuse(status);
  }
  int64_t used = workspace + pads;
  if (used)
    WorkspaceGuard::write(base + used);
  for (const Stage &stage : stages) {
    if (stage.to >= 0 && args[stage.from] == args[stage.to])
      continue;
    if (stage.zeroed)
      zero(base + workspace, stage.zeroed);
    dnnl_status_t status = dnnl_primitive_execute(
        stage.primitive, dnnlStream(), static_cast<int>(stage.args.size()),
        stage.args.data());
    if (status != dnnl_success)
      return refuse(status);
  }
  dnnl_stream_wait(dnnlStream());
  if (used && !WorkspaceGuard::intact(base + used)) {
    error = name + " wrote beyond the workspace that it asked for";
    return false;
  }
  return true;
}
