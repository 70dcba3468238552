//===- ImageFolder.h - samples from a folder of images ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A folder with a folder of PNG and JPEG files for each class. Labels are the
// places of the classes' names in sorted order. Images are decoded, scaled and
// cropped to the size that the model takes when a batch asks for them, so that
// any number of them takes no memory; heads of all files are read when opening.
// What is random about a sample is a function of (seed, epoch, sample) alone: a
// resumed run sees the pixels of an unbroken one.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_DATA_IMAGEFOLDER_H
#define CKOPT_TRAIN_DATA_IMAGEFOLDER_H

#include "ckopt/Base/MessageText.h"
#include "ckopt/Train/Data/BatchSource.h"
#include "ckopt/Train/Data/Fields.h"
#include "llvm/ADT/StringRef.h"
#include <array>
#include <memory>
#include <string>
#include <vector>

namespace ckopt {

/// Changes that make other images of the same class.
struct ImageAugmentation {
  /// The part of the scaled image is a random one; `padding` black pixels
  /// around it may be among it.
  bool crop = false;
  int64_t padding = 0;
  /// Left and right are exchanged in half of the images.
  bool flip = false;
  /// The image is a part of random size (`leastArea` to all of the area) and
  /// form (3:4 to 4:3), scaled; instead of `resize` and `crop`.
  bool resizedCrop = false;
  double leastArea = 0.08;

  bool any() const { return crop || flip || resizedCrop; }
};

struct ImageOptions {
  /// The shorter side after scaling, before the part that the model takes is
  /// cut from the middle; 0: the smallest that holds that part.
  int64_t resize = 0;
  ImageAugmentation augment;
  /// (value / 255 - mean) / deviation, for each channel or one for all; empty:
  /// value / 255.
  std::vector<double> mean, deviation;
};

/// Parses "crop", "crop:4", "flip", "resized-crop", "resized-crop:0.25", with
/// commas between.
llvm::Expected<ImageAugmentation> parseAugmentation(llvm::StringRef text,
                                                    const MessageText &flag);
/// Parses "imagenet" or "MEAN,.../DEVIATION,..." into `options`.
llvm::Error parseNormalization(llvm::StringRef text, const MessageText &flag,
                               ImageOptions &options);

/// What a folder holds.
struct ImageListing {
  struct Entry {
    std::string path; ///< below the folder
    int64_t label = 0;
    uint64_t bytes = 0;
  };
  std::string folder;
  std::vector<std::string> classes;
  std::vector<Entry> images;       ///< by class, then by name
  int64_t withAlpha = 0, deep = 0; ///< images of which something is left out
  std::vector<std::string> others; ///< files that are no images

  /// Lists a folder and reads the heads of all images; one error names up to
  /// ten that cannot be read. With `classes` the folder's must be among these,
  /// which give the labels.
  static llvm::Expected<ImageListing>
  read(llvm::StringRef folder, llvm::ArrayRef<std::string> classes = {});
  /// Describes what is left out, a line each.
  std::vector<std::string> remarks() const;
};

class ImageFolderSource : public BatchSource {
public:
  /// Matches a listing with what a step takes: one input of shape [channels,
  /// height, width] or [height, width, channels], with 1 or 3 channels, and
  /// labels or not. With `train` samples come in a new order each epoch, and
  /// are augmented.
  static llvm::Expected<std::unique_ptr<ImageFolderSource>>
  create(ImageListing listing, const ImageOptions &options,
         llvm::ArrayRef<FieldSpec> fields, bool train);

  std::string name() const override { return listing->folder; }
  llvm::ArrayRef<SourceField> fields() const override { return list; }
  std::optional<int64_t> numSamples() const override {
    return int64_t(samples.size());
  }
  bool canSeek() const override { return true; }
  llvm::Error seek(uint64_t seed, DataPosition place) override;
  llvm::Expected<int64_t> next(int64_t count,
                               llvm::ArrayRef<void *> to) override {
    return nextRows(count, {0, count}, to);
  }
  bool readsRows() const override { return true; }
  llvm::Expected<int64_t> nextRows(int64_t count, RowRange rows,
                                   llvm::ArrayRef<void *> to) override;
  std::string identity() const override;
  bool isChecked() const override { return true; }
  llvm::Expected<std::unique_ptr<BatchSource>> holdOut(double share,
                                                       uint64_t seed) override;
  std::vector<std::string> classNames() const override {
    return listing->classes;
  }

private:
  ImageFolderSource() = default;
  llvm::Error findFields(llvm::ArrayRef<FieldSpec> specs);
  llvm::Error load(int64_t sample, void *to) const;

  std::shared_ptr<const ImageListing> listing;
  ImageOptions options;
  bool train = false;
  std::vector<SourceField> list;
  size_t imageField = 0, labelField = 0; ///< labelField: list.size() if none
  int64_t channels = 3, height = 0, width = 0;
  bool channelsLast = false;
  std::vector<uint32_t> samples, sequence;
  size_t at = 0;
  uint64_t seed = 0;
  int64_t epoch = 0;
};

} // namespace ckopt

#endif // CKOPT_TRAIN_DATA_IMAGEFOLDER_H
