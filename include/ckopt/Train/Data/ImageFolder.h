//===- ImageFolder.h - samples from a folder of images ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The folder has a folder of PNG and JPEG files for each class. A class's label
// is its position in the sorted names. Images are decoded, scaled and cropped
// to the model's size when a batch needs them, so that they take no memory
// before; the headers of all files are read when opening. Random changes of a
// sample depend only on (seed, epoch, sample): a resumed run sees the pixels of
// an uninterrupted one.
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

/// Random changes to images that keep their class.
struct ImageAugmentation {
  /// A random part of the scaled image is taken; it may include `padding` black
  /// pixels around it.
  bool crop = false;
  int64_t padding = 0;
  /// Left and right are exchanged in half of the images.
  bool flip = false;
  /// A part of random size (`leastArea` to all of the area) and aspect ratio
  /// (3:4 to 4:3) is scaled; instead of `resize` and `crop`.
  bool resizedCrop = false;
  double leastArea = 0.08;

  bool any() const { return crop || flip || resizedCrop; }
};

struct ImageOptions {
  /// The shorter side after scaling, before the middle is cut out; 0: the
  /// smallest side for the model's size.
  int64_t resize = 0;
  ImageAugmentation augment;
  /// (value / 255 - mean) / deviation, for each channel or one for all; empty:
  /// value / 255.
  std::vector<double> mean, deviation;
  /// The threads that decode a batch; 0: one for each core.
  int64_t threads = 0;
};

/// Parses "crop", "crop:4", "flip", "resized-crop", "resized-crop:0.25", with
/// commas between.
llvm::Expected<ImageAugmentation> parseAugmentation(llvm::StringRef text,
                                                    const MessageText &flag);
/// Parses "imagenet" or "MEAN,.../DEVIATION,..." into `options`.
llvm::Error parseNormalization(llvm::StringRef text, const MessageText &flag,
                               ImageOptions &options);

/// The contents of a folder.
struct ImageListing {
  struct Entry {
    std::string path; ///< path below the folder
    int64_t label = 0;
    uint64_t bytes = 0;
  };
  std::string folder;
  std::vector<std::string> classes;
  std::vector<Entry> images;       ///< by class, then by name
  int64_t withAlpha = 0, deep = 0; ///< images of which a part is left out
  std::vector<std::string> others; ///< files that are no images

  /// Lists a folder and reads the headers of all images; one error names up to
  /// ten that cannot be read. With `classes` the folder's classes must be among
  /// these, which give the labels.
  static llvm::Expected<ImageListing>
  read(llvm::StringRef folder, llvm::ArrayRef<std::string> classes = {});
  /// Describes what is left out, a line for each kind.
  std::vector<std::string> remarks() const;
};

class ImageFolderSource : public BatchSource {
public:
  /// Matches a listing with a step's fields: one input of shape [channels,
  /// height, width] or [height, width, channels], with 1 or 3 channels, and
  /// optional labels. With `train`, samples come in a new order each epoch, and
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
