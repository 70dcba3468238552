//===- ImageFile.h - pixels of PNG and JPEG files ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRAIN_DATA_IMAGEFILE_H
#define CKOPT_LIB_TRAIN_DATA_IMAGEFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <vector>

namespace ckopt {

/// What the head of a file says.
struct ImageHead {
  int64_t width = 0, height = 0;
  bool alpha = false; ///< transparency, which is left out
  bool deep = false;  ///< 16 bits a channel, of which the upper 8 are taken
};

/// Rows of pixels, with 1 (gray) or 3 (RGB) bytes each.
struct Image {
  int64_t width = 0, height = 0, channels = 3;
  std::vector<uint8_t> pixels;
};

/// Tells whether a file's name is one of an image: .png, .jpg, .jpeg.
bool isImageName(llvm::StringRef path);

/// Reads the head of a file, whose format its first bytes say. Errors name the
/// file and what is not supported (CMYK, an absurd size).
llvm::Expected<ImageHead> readImageHead(llvm::StringRef path);

/// Decodes a file to `channels` (1 or 3) bytes a pixel: gray is repeated,
/// colors become gray as in ITU-R 601 (and Pillow's "L"), transparency is left
/// out. Damaged and truncated files are errors.
llvm::Expected<Image> readImage(llvm::StringRef path, int64_t channels);

} // namespace ckopt

#endif // CKOPT_LIB_TRAIN_DATA_IMAGEFILE_H
