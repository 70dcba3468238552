//===- Manifest.cpp - the manifest as a blob ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: the manifest travels from the compiler into an artifact that may
// come back truncated, damaged or from another version. Method: one field list
// per struct, used by the writer and by the reader, so that the two cannot
// drift apart; then one validator over the structs. Guarantee: parse() reads
// inside the blob only, allocates no more than a constant times its size, and
// accepts nothing that would send the runtime outside the arena.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Runtime/Manifest.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

using namespace ckopt::runtime;

namespace {

constexpr char kMagic[8] = {'C', 'K', 'R', 'T', 'M', 'A', 'N', '1'};
// Magic, version, reserved, payload size, checksum.
constexpr size_t kHeaderBytes = 8 + 4 + 4 + 8 + 8;

uint64_t fnv1a(const uint8_t *data, size_t size) {
  uint64_t hash = 14695981039346656037ull;
  for (size_t i = 0; i < size; ++i)
    hash = (hash ^ data[i]) * 1099511628211ull;
  return hash;
}

/// Appends fields in little-endian order.
class Writer {
public:
  std::vector<uint8_t> bytes;
  bool failed = false;

  template <typename T> void field(const T &value) {
    if constexpr (std::is_enum_v<T>) {
      field(static_cast<std::underlying_type_t<T>>(value));
    } else if constexpr (std::is_same_v<T, bool>) {
      bytes.push_back(value ? 1 : 0);
    } else {
      static_assert(std::is_integral_v<T>);
      auto raw = static_cast<std::make_unsigned_t<T>>(value);
      for (size_t i = 0; i < sizeof(T); ++i)
        bytes.push_back(static_cast<uint8_t>(raw >> (8 * i)));
    }
  }
  void field(const std::string &value) {
    field(static_cast<uint32_t>(value.size()));
    bytes.insert(bytes.end(), value.begin(), value.end());
  }
  template <typename T, typename Fn>
  void list(const std::vector<T> &values, size_t, Fn each) {
    field(static_cast<uint32_t>(values.size()));
    for (const T &value : values)
      each(value);
  }
};

/// Reads the same fields and stops at the first that does not fit.
class Reader {
public:
  const uint8_t *next, *end;
  bool failed = false;

  size_t left() const { return static_cast<size_t>(end - next); }

  template <typename T> void field(T &value) {
    if constexpr (std::is_enum_v<T>) {
      std::underlying_type_t<T> raw{};
      field(raw);
      value = static_cast<T>(raw); // the validator checks enumerators
    } else if constexpr (std::is_same_v<T, bool>) {
      uint8_t raw = 0;
      field(raw);
      value = raw == 1;
      failed |= raw > 1;
    } else {
      if (failed || left() < sizeof(T)) {
        failed = true;
        return;
      }
      std::make_unsigned_t<T> raw = 0;
      for (size_t i = 0; i < sizeof(T); ++i)
        raw = static_cast<std::make_unsigned_t<T>>(
            raw |
            static_cast<std::make_unsigned_t<T>>(
                static_cast<std::make_unsigned_t<T>>(next[i]) << (8 * i)));
      next += sizeof(T);
      value = static_cast<T>(raw);
    }
  }
  void field(std::string &value) {
    uint32_t size = 0;
    field(size);
    if (failed || left() < size) {
      failed = true;
      return;
    }
    value.assign(reinterpret_cast<const char *>(next), size);
    next += size;
  }
  /// `minBytes` is the least size of an element, so that a corrupt count fails
  /// before memory is allocated.
  template <typename T, typename Fn>
  void list(std::vector<T> &values, size_t minBytes, Fn each) {
    uint32_t count = 0;
    field(count);
    if (failed || left() / minBytes < count) {
      failed = true;
      return;
    }
    values.resize(count);
    for (T &value : values) {
      if (failed)
        return;
      each(value);
    }
  }
};

/// Collects the addresses of numbers of 64 bits.
class WideFields {
public:
  std::vector<int64_t *> found;

  template <typename T> void field(T &value) {
    if constexpr (std::is_same_v<T, int64_t>)
      found.push_back(&value);
  }
  template <typename T, typename Fn>
  void list(std::vector<T> &values, size_t, Fn each) {
    for (T &value : values)
      each(value);
  }
};

template <typename IO, typename T> void numbers(IO &io, T &values) {
  using Element = typename std::remove_const_t<T>::value_type;
  io.list(values, sizeof(Element), [&](auto &value) { io.field(value); });
}

template <typename IO, typename Desc> void matmulFields(IO &io, Desc &d) {
  for (int i = 0; i < 2; ++i) {
    io.field(d.batch[i]);
    io.field(d.aBatch[i]);
    io.field(d.bBatch[i]);
    io.field(d.cBatch[i]);
  }
  io.field(d.m), io.field(d.n), io.field(d.k);
  io.field(d.aRow), io.field(d.aCol);
  io.field(d.bRow), io.field(d.bCol);
  io.field(d.cRow), io.field(d.cCol);
}

template <typename IO, typename Desc> void convFields(IO &io, Desc &d) {
  io.field(d.rank), io.field(d.batch), io.field(d.inChannels);
  io.field(d.outChannels), io.field(d.groups);
  for (int i = 0; i < 3; ++i) {
    io.field(d.in[i]), io.field(d.out[i]), io.field(d.kernel[i]);
    io.field(d.strides[i]), io.field(d.dilations[i]);
    io.field(d.padsLo[i]), io.field(d.padsHi[i]);
  }
  io.field(d.channelsLast), io.field(d.weightsLast);
}

template <typename IO, typename Desc> void attentionFields(IO &io, Desc &d) {
  io.field(d.batch), io.field(d.heads), io.field(d.keyHeads);
  io.field(d.queries), io.field(d.keys), io.field(d.depth), io.field(d.width);
  for (int i = 0; i < 3; ++i) {
    io.field(d.q[i]), io.field(d.k[i]), io.field(d.v[i]), io.field(d.o[i]);
    io.field(d.grad[i]), io.field(d.qGrad[i]);
    io.field(d.kGrad[i]), io.field(d.vGrad[i]);
  }
  io.field(d.hasBias), io.field(d.hasMask);
  for (int i = 0; i < 4; ++i)
    io.field(d.bias[i]), io.field(d.mask[i]);
  io.field(d.causal), io.field(d.offset), io.field(d.zeroEmptyRows),
      io.field(d.planes);
  io.field(d.hasWindow), io.field(d.window);
  io.field(d.hasSegments), io.field(d.segments);
  io.field(d.hasDropout);
  io.field(d.scale), io.field(d.cap), io.field(d.fill), io.field(d.ratio);
}

template <typename IO, typename T> void tensorFields(IO &io, T &t) {
  io.field(t.name), io.field(t.role), io.field(t.dtype);
  numbers(io, t.shape);
  numbers(io, t.strides);
  io.field(t.offset), io.field(t.bytes), io.field(t.init);
  io.field(t.fanIn), io.field(t.fanOut), io.field(t.dataOffset);
  io.field(t.shards);
  numbers(io, t.wholeShape);
  auto limitFields = [&](auto &l) {
    io.field(l.classes), io.field(l.hasIgnored);
    io.field(l.ignored), io.field(l.rows);
  };
  limitFields(t.limits.all);
  io.list(t.limits.parts, 45, [&](auto &part) {
    io.field(part.axis), io.field(part.low), io.field(part.high);
    limitFields(part.limits);
  });
  io.field(t.values);
}

template <typename IO, typename T> void callFields(IO &io, T &c) {
  io.field(c.function), io.field(c.kernel), io.field(c.source);
  io.field(c.primitive), io.field(c.originalCall);
  io.field(c.workspaceOffset), io.field(c.workspaceBytes);
  io.list(c.results, 20, [&](auto &r) {
    io.field(r.dtype), io.field(r.offset), io.field(r.bytes);
  });
  auto launchFields = [&](auto &l) {
    io.field(l.kernel), io.field(l.primitive);
    io.list(l.pointers, 16,
            [&](auto &p) { io.field(p.offset), io.field(p.bytes); });
    numbers(io, l.scalars);
    io.field(l.scratchOffset);
  };
  io.list(c.launches, 24, launchFields);
  io.list(c.ownLaunches, 24, launchFields);
  io.field(c.ownScratchBytes);
}

template <typename IO, typename T> void kernelFields(IO &io, T &k) {
  io.field(k.symbol), io.field(k.grid), io.field(k.block);
  io.field(k.sharedBytes), io.field(k.pointers), io.field(k.scalars);
  io.list(k.sources, 4, [&](auto &s) { io.field(s); });
}

template <typename IO, typename M> void manifestFields(IO &io, M &m) {
  io.field(m.abiVersion), io.field(m.target);
  io.field(m.device.sm), io.field(m.device.ptxIsa);
  io.field(m.device.minDriver), io.field(m.device.precision);
  io.field(m.device.multiprocessors), io.field(m.device.programmatic);
  io.field(m.device.fedBegin), io.field(m.device.fedEnd);
  io.field(m.device.fedShift);
  io.field(m.device.codeBytes), io.field(m.device.dataBytes);
  io.field(m.device.codeHash), io.field(m.device.dataHash);
  io.list(m.cpuFeatures, 4, [&](auto &s) { io.field(s); });
  io.field(m.threads), io.field(m.keepDenormals);
  io.field(m.arenaBytes), io.field(m.alignment), io.field(m.producer);
  io.field(m.libraryTable);
  io.list(m.tensors, 64, [&](auto &t) { tensorFields(io, t); });
  io.list(m.functions, 16, [&](auto &f) {
    io.field(f.name), io.field(f.symbol);
    numbers(io, f.inputs);
    numbers(io, f.outputs);
  });
  io.list(m.primitives, 64, [&](auto &p) {
    io.field(p.kind), io.field(p.dtype), io.field(p.wideResult);
    io.field(p.accumulate), io.field(p.hasBias);
    io.field(p.precision), io.field(p.form);
    matmulFields(io, p.matmul);
    convFields(io, p.conv);
    if (isAttention(p.kind))
      attentionFields(io, p.attention);
    if (isOfRanks(p.kind)) {
      io.field(p.allReduce.ranks), io.field(p.allReduce.groups);
      io.field(p.allReduce.stride), io.field(p.allReduce.root);
      numbers(io, p.allReduce.elements);
      numbers(io, p.allReduce.shares);
      io.field(p.allReduce.started);
    }
  });
  io.list(m.calls, 44, [&](auto &c) { callFields(io, c); });
  io.list(m.kernels, 40, [&](auto &k) { kernelFields(io, k); });
}

template <typename IO, typename T> void openFields(IO &io, T &open) {
  io.field(open.name), io.field(open.low), io.field(open.high);
  io.field(open.size);
  io.field(open.blocks.count), io.field(open.blocks.constant);
  io.field(open.blocks.linear);
  io.list(open.fields, 48, [&](auto &f) {
    io.field(f.number), io.field(f.value.constant);
    io.field(f.value.linear), io.field(f.value.square);
    io.field(f.value.rowsLinear), io.field(f.value.rowsSquare);
  });
}

/// Checks the range of an open size, and that it changes fields that exist.
bool validateOpen(Manifest &manifest, std::string &error) {
  const OpenSize &open = manifest.open;
  const auto fields = static_cast<int64_t>(sizeFields(manifest).size());
  bool wrong = open.name.empty()
                   ? !open.fields.empty()
                   : open.low < 1 || open.low > open.size ||
                         open.size > open.high || open.blocks.count < 0;
  for (const OpenSize::Field &field : open.fields)
    wrong |= field.number < 0 || field.number >= fields;
  if (wrong)
    error = "the range of the open size, or what it changes, is wrong";
  return !wrong;
}

} // namespace

std::vector<uint8_t> ckopt::runtime::serialize(const Manifest &manifest) {
  Writer payload;
  manifestFields(payload, manifest);
  openFields(payload, manifest.open);
  Writer out;
  out.bytes.reserve(kHeaderBytes + payload.bytes.size());
  out.bytes.insert(out.bytes.end(), kMagic, kMagic + sizeof(kMagic));
  out.field(kAbiVersion);
  out.field(uint32_t(0));
  out.field(static_cast<uint64_t>(payload.bytes.size()));
  out.field(fnv1a(payload.bytes.data(), payload.bytes.size()));
  out.bytes.insert(out.bytes.end(), payload.bytes.begin(), payload.bytes.end());
  return std::move(out.bytes);
}

bool ckopt::runtime::parse(const void *data, size_t size, Manifest &manifest,
                           std::string &error) {
  auto *bytes = static_cast<const uint8_t *>(data);
  if (!bytes || size < kHeaderBytes ||
      std::memcmp(bytes, kMagic, sizeof(kMagic)) != 0) {
    error = "not a ckopt manifest (no header)";
    return false;
  }
  Reader header{bytes + sizeof(kMagic), bytes + kHeaderBytes};
  uint32_t version = 0, reserved = 0;
  uint64_t payload = 0, checksum = 0;
  header.field(version), header.field(reserved);
  header.field(payload), header.field(checksum);
  if (version != kAbiVersion) {
    error = "manifest version " + std::to_string(version) +
            ", this runtime reads version " + std::to_string(kAbiVersion) +
            ": compile the model again with this release";
    return false;
  }
  if (payload != size - kHeaderBytes) {
    error = "manifest holds " + std::to_string(size - kHeaderBytes) +
            " bytes where its header says " + std::to_string(payload);
    return false;
  }
  if (fnv1a(bytes + kHeaderBytes, payload) != checksum) {
    error = "manifest is damaged (checksum differs)";
    return false;
  }
  Reader reader{bytes + kHeaderBytes, bytes + size};
  Manifest parsed;
  manifestFields(reader, parsed);
  openFields(reader, parsed.open);
  if (reader.failed || reader.left() != 0) {
    error = reader.failed ? "manifest ends inside a field"
                          : "manifest has bytes after its last field";
    return false;
  }
  if (!validate(parsed, error) || !validateOpen(parsed, error))
    return false;
  manifest = std::move(parsed);
  return true;
}

int64_t ckopt::runtime::plannedBytes(const Manifest &manifest) {
  int64_t end = 0;
  if (manifest.device.fedShift)
    end = manifest.device.fedEnd + manifest.device.fedShift;
  for (const TensorInfo &tensor : manifest.tensors)
    end = std::max(end, tensor.offset + tensor.bytes);
  for (const CallInfo &call : manifest.calls) {
    end = std::max(end, call.workspaceOffset + call.workspaceBytes);
    for (const CallResult &result : call.results)
      end = std::max(end, result.offset + result.bytes);
  }
  return end;
}

std::vector<int64_t *> ckopt::runtime::sizeFields(Manifest &manifest) {
  WideFields fields;
  manifestFields(fields, manifest);
  return std::move(fields.found);
}

bool ckopt::runtime::resize(Manifest &manifest, int64_t size,
                            std::string &error) {
  OpenSize &open = manifest.open;
  if (open.name.empty()) {
    error = "the step was compiled for one size alone";
    return false;
  }
  if (size < open.low || size > open.high) {
    error = "the step was compiled for sizes of '" + open.name + "' from " +
            std::to_string(open.low) + " to " + std::to_string(open.high) +
            ", not for " + std::to_string(size);
    return false;
  }
  std::vector<int64_t *> fields = sizeFields(manifest);
  const SizePoint point = open.blocks.at(size);
  for (const OpenSize::Field &field : open.fields)
    *fields[static_cast<size_t>(field.number)] = field.value.at(point);
  open.size = size;
  return validate(manifest, error);
}
