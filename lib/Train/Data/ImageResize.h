//===- ImageResize.h - parts of images in another size ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRAIN_DATA_IMAGERESIZE_H
#define CKOPT_LIB_TRAIN_DATA_IMAGERESIZE_H

#include "ImageFile.h"

namespace ckopt {

/// A rectangle of pixels.
struct ImageBox {
  int64_t left = 0, top = 0, width = 0, height = 0;
};

/// Scales `from` of an image to `width` x `height`, and returns `part` of that.
/// The pixels are those of Pillow's resize(BILINEAR) and crop: a triangle
/// filter as wide as the scale asks for, rounded to bytes after each of the two
/// passes; pixels of `part` outside are 0.
Image resizeImage(const Image &image, const ImageBox &from, int64_t width,
                  int64_t height, const ImageBox &part);

} // namespace ckopt

#endif // CKOPT_LIB_TRAIN_DATA_IMAGERESIZE_H
