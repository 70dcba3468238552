//===- Npz.h - numpy's .npy and .npz files ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reader takes formats 1.0, 2.0 and 3.0, C and Fortran order (made
// row-major), little and big endian (swapped), stored and deflated members,
// zip64; every checksum is checked. bfloat16 is the two-byte void that
// ml_dtypes writes ("<V2"). The writer writes format 1.0 (2.0 where the header
// is long), atomically. Any file gives either tensors or an error that names
// the file and the member.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_NPZ_H
#define CKOPT_SUPPORT_NPZ_H

#include "ckopt/Support/ArrayFile.h"
#include "ckopt/Support/HostTensor.h"
#include "llvm/ADT/StringRef.h"
#include <memory>

namespace llvm {
class MemoryBuffer;
}

namespace ckopt {

/// An open .npz file. Opening checks the directory; arrays are read on demand,
/// so that a member of an unknown type is an error only for callers that read
/// it.
class NpzReader {
public:
  /// Compressed arrays are unpacked to files in `cache`, where later runs find
  /// them; "": into memory.
  static llvm::Expected<NpzReader> open(llvm::StringRef path,
                                        llvm::StringRef cache = "");
  /// As `open` on bytes in memory; `what` names them in errors.
  static llvm::Expected<NpzReader>
  fromBuffer(std::unique_ptr<llvm::MemoryBuffer> buffer, llvm::StringRef what);

  /// Names without ".npy", in the file's order.
  std::vector<std::string> names() const;
  bool contains(llvm::StringRef name) const;
  /// Reads an array. Where there is none of this name, the error lists the
  /// arrays of the file.
  llvm::Expected<HostTensor> read(llvm::StringRef name) const;
  /// The same without a copy, if the file holds the bytes in the needed form.
  llvm::Expected<HostArray> map(llvm::StringRef name) const;

private:
  struct Member {
    std::string name;
    unsigned method = 0; ///< 0 stored, 8 deflate
    bool encrypted = false;
    uint32_t crc = 0;
    uint64_t compressedSize = 0, size = 0, headerOffset = 0;
  };
  llvm::Error readDirectory();
  llvm::Error readDirectoryEntry(uint64_t &at, uint64_t end);
  llvm::Expected<llvm::StringRef> compressedBytes(const Member &member) const;
  llvm::Expected<HostArray> mapMember(const Member &member) const;

  llvm::Expected<std::shared_ptr<llvm::MemoryBuffer>>
  unpackToCache(const Member &member, llvm::StringRef packed) const;

  std::string path, cache;
  std::shared_ptr<llvm::MemoryBuffer> buffer;
  std::vector<Member> members;
};

/// Reads every array of the file.
llvm::Expected<TensorMap> readNpz(llvm::StringRef path);

/// Reads one .npy file.
llvm::Expected<HostTensor> readNpy(llvm::StringRef path);
/// Maps one .npy file.
llvm::Expected<HostArray> mapNpy(llvm::StringRef path);
/// Returns the array in the bytes of a .npy file. It holds `keeper` if it is a
/// view of them. Errors start with `what`.
llvm::Expected<HostArray> viewNpy(llvm::StringRef bytes, llvm::StringRef what,
                                  std::shared_ptr<const void> keeper);
/// Parses the bytes of a .npy file; errors start with `what`.
llvm::Expected<HostTensor> parseNpy(llvm::StringRef bytes,
                                    llvm::StringRef what);

/// Writes atomically: on an error a file that was there stays as it was.
llvm::Error writeNpy(llvm::StringRef path, const HostTensor &tensor);
llvm::Error writeNpz(llvm::StringRef path, const TensorMap &tensors,
                     bool deflate = false);

} // namespace ckopt

#endif // CKOPT_SUPPORT_NPZ_H
