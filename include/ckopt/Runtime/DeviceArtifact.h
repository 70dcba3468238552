//===- DeviceArtifact.h - a compiled step for a device, on disk -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The artifact is a folder with five files:
//   manifest.bin  the manifest as a blob (Manifest.h)
//   kernels.ptx   the code, text
//   data.bin      first values of tensors with a dataOffset; may be empty
//   step.json     a summary for people and scripts
//   README.txt    what it is and how to run it
// The runtime reads the first three and checks their sizes and hashes. It
// ignores the others. The same input gives the same bytes in every file.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_RUNTIME_DEVICEARTIFACT_H
#define CKOPT_RUNTIME_DEVICEARTIFACT_H

#include "ckopt/Runtime/Manifest.h"

namespace ckopt::runtime {

namespace artifact {
inline constexpr const char *kManifest = "manifest.bin";
inline constexpr const char *kCode = "kernels.ptx";
inline constexpr const char *kData = "data.bin";
inline constexpr const char *kSummary = "step.json";
inline constexpr const char *kReadme = "README.txt";
} // namespace artifact

/// A source of data that is read in blocks, so that large weights need not all
/// be in memory. read() fills `to` with bytes [offset, offset + size) of the
/// data.
struct DataSource {
  virtual ~DataSource() = default;
  virtual int64_t bytes() const = 0;
  virtual bool read(int64_t offset, void *to, size_t size,
                    std::string &error) = 0;
};

/// Writes the artifact as folder \p folder, which then contains nothing else;
/// it appears whole or not at all. An older artifact of that name is replaced;
/// any other folder that is not empty is an error, and stays. \p data may be
/// null. Returns false with the reason in \p error.
CKRT_EXPORT bool writeDeviceArtifact(const std::string &folder,
                                     const Manifest &manifest,
                                     std::string_view code, DataSource *data,
                                     std::string &error);
/// Writes the artifact with data in memory.
CKRT_EXPORT bool writeDeviceArtifact(const std::string &folder,
                                     const Manifest &manifest,
                                     std::string_view code, const void *data,
                                     size_t dataBytes, std::string &error);

/// Returns the text of step.json.
CKRT_EXPORT std::string deviceSummary(const Manifest &manifest);

} // namespace ckopt::runtime

#endif // CKOPT_RUNTIME_DEVICEARTIFACT_H
