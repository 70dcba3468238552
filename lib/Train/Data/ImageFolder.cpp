//===- ImageFolder.cpp - samples from a folder of images ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Geometry is torchvision's: Resize, CenterCrop, RandomCrop, RandomResizedCrop
// and RandomHorizontalFlip, on pixels scaled as Pillow does (ImageResize.h).
// Random numbers are ckopt's own. O(pixels) a sample. The samples of a batch
// are decoded on several threads: a device takes thousands of images a second,
// and one thread decodes some hundred.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Data/ImageFolder.h"
#include "ImageResize.h"
#include "ckopt/Base/Philox.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/OnThreads.h"
#include "ckopt/Support/Report.h"
#include "ckopt/Train/Data/Permutation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include <cmath>
#include <numeric>

using namespace llvm;

namespace ckopt {

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

/// Finds the field of the images, and that of the labels.
Error ImageFolderSource::findFields(ArrayRef<FieldSpec> specs) {
  size_t images = 0, labels = 0;
  imageField = labelField = specs.size();
  for (size_t i = 0; i < specs.size(); ++i) {
    const FieldSpec &spec = specs[i];
    const std::vector<int64_t> shape =
        spec.shape.value_or(std::vector<int64_t>());
    if (spec.batched && shape.size() == 3) {
      imageField = i;
      ++images;
    } else if (spec.batched && shape.empty() && isInteger(spec.dtype)) {
      labelField = i;
      ++labels;
    } else {
      return inputError(name() + ": a folder of images has nothing for '" +
                        spec.name + "'");
    }
  }
  if (images != 1 || labels > 1)
    return inputError(name() + ": a folder of images is for steps that take "
                               "one image, and one label or none");
  const std::vector<int64_t> &shape = *specs[imageField].shape;
  auto isChannels = [](int64_t size) { return size == 1 || size == 3; };
  channelsLast = !isChannels(shape[0]);
  if (channelsLast && !isChannels(shape[2]))
    return inputError(name() + ": '" + specs[imageField].name + "' takes " +
                      shapeString(shape) +
                      ", and images have 1 or 3 channels, first or last");
  channels = shape[channelsLast ? 2 : 0];
  height = shape[channelsLast ? 0 : 1];
  width = shape[channelsLast ? 1 : 2];
  for (const FieldSpec &spec : specs)
    list.push_back({spec.name, spec.dtype, *spec.shape, true});
  // Pixels are computed in f32, and those of integers are bytes as they are.
  SourceField &image = list[imageField];
  image.dtype = isInteger(image.dtype) ? DType::U8 : DType::F32;
  if (labelField < list.size())
    list[labelField].dtype = DType::I64;
  return Error::success();
}

static Error checkClasses(const ImageListing &listing, const FieldSpec &spec) {
  int64_t classes = spec.limits.all.classes;
  if (!classes || int64_t(listing.classes.size()) <= classes)
    return Error::success();
  return inputError(listing.folder + ": " + Twine(listing.classes.size()) +
                    " folders of classes, but the model has " + Twine(classes) +
                    " classes");
}

/// One value stands for all channels.
static Error checkNormalization(ImageOptions &options, int64_t channels,
                                bool bytes) {
  if (bytes && !options.mean.empty())
    return usageError(Setting("normalize") +
                      " makes fractions, and the model takes integers");
  for (std::vector<double> *values : {&options.mean, &options.deviation}) {
    if (values->size() == 1)
      values->assign(size_t(channels), values->front());
    if (!values->empty() && int64_t(values->size()) != channels)
      return usageError(Setting("normalize") + " gives " +
                        Twine(values->size()) +
                        " numbers, and the model takes images of " +
                        Twine(channels) + " channels");
  }
  return Error::success();
}

Expected<std::unique_ptr<ImageFolderSource>>
ImageFolderSource::create(ImageListing listing, const ImageOptions &options,
                          ArrayRef<FieldSpec> fields, bool train) {
  std::unique_ptr<ImageFolderSource> result(new ImageFolderSource);
  result->listing = std::make_shared<const ImageListing>(std::move(listing));
  result->options = options;
  result->train = train;
  if (Error error = result->findFields(fields))
    return std::move(error);
  if (result->labelField < fields.size())
    if (Error error =
            checkClasses(*result->listing, fields[result->labelField]))
      return std::move(error);
  bool bytes = result->list[result->imageField].dtype == DType::U8;
  if (Error error =
          checkNormalization(result->options, result->channels, bytes))
    return std::move(error);
  if (options.resize &&
      options.resize < std::max(result->height, result->width))
    return usageError(Setting("resize", Twine(options.resize)) +
                      ": the model takes " + Twine(result->width) + "x" +
                      Twine(result->height) + " pixels, which are more");
  result->samples.resize(result->listing->images.size());
  std::iota(result->samples.begin(), result->samples.end(), 0u);
  return std::move(result);
}

//===----------------------------------------------------------------------===//
// Geometry
//===----------------------------------------------------------------------===//

namespace {
/// The random numbers of one sample in one epoch.
class Draws {
public:
  Draws(uint64_t seed, int64_t epoch, int64_t sample)
      : key{uint32_t(seed), uint32_t(seed >> 32)}, epoch(uint32_t(epoch)),
        sample(uint32_t(sample)) {}
  /// Uniform in [0, 1).
  double uniform() {
    if (used == 4) {
      words = philox4x32(
          {block++, sample, epoch, uint32_t(RandomUse::Augmentation)}, key);
      used = 0;
    }
    return double(words[used++]) * 0x1p-32;
  }
  double between(double low, double high) {
    return low + (high - low) * uniform();
  }
  /// Uniform in 0 ... last.
  int64_t upTo(int64_t last) {
    return std::min(int64_t(uniform() * double(last + 1)), last);
  }

private:
  PhiloxKey key;
  uint32_t epoch, sample, block = 0;
  PhiloxCounter words{};
  unsigned used = 4;
};

/// How pixels of a file become those of a sample.
struct Geometry {
  ImageBox from;         ///< in the file
  int64_t width, height; ///< that it is scaled to
  ImageBox part;         ///< of the scaled image
  bool flip = false;
};
} // namespace

static ImageBox wholeOf(const Image &image) {
  return {0, 0, image.width, image.height};
}

/// A part of random size and form, or the largest one in the middle where ten
/// tries find none.
static ImageBox drawBox(Draws &draws, const Image &image, double leastArea) {
  const double area = double(image.width) * double(image.height);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double wanted = area * draws.between(leastArea, 1);
    const double form =
        std::exp(draws.between(std::log(3.0 / 4), std::log(4.0 / 3)));
    const auto width = int64_t(std::lround(std::sqrt(wanted * form)));
    const auto height = int64_t(std::lround(std::sqrt(wanted / form)));
    if (width < 1 || height < 1 || width > image.width || height > image.height)
      continue;
    return {draws.upTo(image.width - width), draws.upTo(image.height - height),
            width, height};
  }
  ImageBox box = wholeOf(image);
  const double form = double(image.width) / double(image.height);
  if (form < 3.0 / 4)
    box.height = std::lround(double(box.width) * 4 / 3);
  else if (form > 4.0 / 3)
    box.width = std::lround(double(box.height) * 4 / 3);
  box.left = (image.width - box.width) / 2;
  box.top = (image.height - box.height) / 2;
  return box;
}

/// Scales so that the shorter side is `resize`, or so that the image just
/// covers width x height.
static void scaleToCover(Geometry &geometry, const Image &image, int64_t resize,
                         int64_t width, int64_t height) {
  const double w = double(image.width), h = double(image.height);
  if (resize) {
    const bool wide = image.width > image.height;
    geometry.height = wide ? resize : int64_t(double(resize) * h / w);
    geometry.width = wide ? int64_t(double(resize) * w / h) : resize;
    return;
  }
  const double factor = std::max(double(width) / w, double(height) / h);
  geometry.width = std::max<int64_t>(width, std::lround(w * factor));
  geometry.height = std::max<int64_t>(height, std::lround(h * factor));
}

static Geometry chooseGeometry(const Image &image, const ImageOptions &options,
                               int64_t width, int64_t height, Draws *draws) {
  Geometry result{wholeOf(image), width, height, {0, 0, width, height}};
  const ImageAugmentation &augment = options.augment;
  if (draws && augment.resizedCrop) {
    result.from = drawBox(*draws, image, augment.leastArea);
  } else {
    scaleToCover(result, image, options.resize, width, height);
    const int64_t restX = result.width - width;
    const int64_t restY = result.height - height;
    if (draws && augment.crop) {
      const int64_t pad = augment.padding;
      result.part.left = draws->upTo(restX + 2 * pad) - pad;
      result.part.top = draws->upTo(restY + 2 * pad) - pad;
    } else { // as Python rounds halves: to the even neighbor
      result.part.left = int64_t(std::nearbyint(double(restX) / 2));
      result.part.top = int64_t(std::nearbyint(double(restY) / 2));
    }
  }
  result.flip = draws && augment.flip && draws->uniform() < 0.5;
  return result;
}

//===----------------------------------------------------------------------===//
// Samples
//===----------------------------------------------------------------------===//

/// Writes pixels in the order and type of the field.
template <typename T>
static void writePixels(const Image &image, bool flip, bool channelsLast,
                        const ImageOptions &options, T *to) {
  const int64_t area = image.width * image.height;
  for (int64_t c = 0; c < image.channels; ++c) {
    float values[256];
    for (int v = 0; v < 256; ++v)
      values[v] = std::is_same_v<T, uint8_t> ? float(v)
                  : options.mean.empty()
                      ? float(v) / 255.0f
                      : float((v / 255.0 - options.mean[size_t(c)]) /
                              options.deviation[size_t(c)]);
    for (int64_t y = 0; y < image.height; ++y)
      for (int64_t x = 0; x < image.width; ++x) {
        const int64_t in = y * image.width + (flip ? image.width - 1 - x : x);
        const int64_t out = y * image.width + x;
        to[channelsLast ? out * image.channels + c : c * area + out] =
            T(values[image.pixels[size_t(in * image.channels + c)]]);
      }
  }
}

Error ImageFolderSource::load(int64_t sample, void *to) const {
  const ImageListing::Entry &entry = listing->images[size_t(sample)];
  Expected<Image> image =
      readImage(listing->folder + "/" + entry.path, channels);
  if (!image)
    return image.takeError();
  Draws draws(seed, epoch, sample);
  bool augmented = train && options.augment.any();
  const Geometry geometry = chooseGeometry(*image, options, width, height,
                                           augmented ? &draws : nullptr);
  const Image part = resizeImage(*image, geometry.from, geometry.width,
                                 geometry.height, geometry.part);
  if (list[imageField].dtype == DType::U8)
    writePixels(part, geometry.flip, channelsLast, options,
                static_cast<uint8_t *>(to));
  else
    writePixels(part, geometry.flip, channelsLast, options,
                static_cast<float *>(to));
  return Error::success();
}

Error ImageFolderSource::seek(uint64_t newSeed, DataPosition place) {
  const auto count = int64_t(samples.size());
  if (place.epoch < 0 || place.position < 0 || place.position > count)
    return inputError(name() + ": epoch " + Twine(place.epoch) +
                      " has no sample " + Twine(place.position));
  seed = newSeed;
  epoch = place.epoch;
  at = size_t(place.position);
  sequence = samples;
  if (train) {
    sequence = epochPermutation<uint32_t>(count, seed, epoch);
    for (uint32_t &index : sequence)
      index = samples[index];
  }
  return Error::success();
}

Expected<int64_t> ImageFolderSource::nextRows(int64_t count, RowRange rows,
                                              ArrayRef<void *> to) {
  count = std::min(count, int64_t(sequence.size() - at));
  ArrayRef<uint32_t> batch = ArrayRef(sequence).drop_front(at);
  if (rows.first < count)
    batch = batch.drop_front(size_t(rows.first));
  batch = batch.take_front(size_t(rows.within(count)));
  at += size_t(count);
  const SourceField &field = list[imageField];
  const int64_t bytes = channels * height * width * dtypeSize(field.dtype);
  if (labelField < list.size())
    for (size_t i = 0; i < batch.size(); ++i)
      static_cast<int64_t *>(to[labelField])[i] =
          listing->images[size_t(batch[i])].label;
  if (Error error =
          onThreads(options.threads, int64_t(batch.size()), [&](int64_t i) {
            return load(batch[size_t(i)],
                        static_cast<char *>(to[imageField]) + i * bytes);
          }))
    return std::move(error);
  return count;
}

std::string ImageFolderSource::identity() const {
  std::string text;
  raw_string_ostream os(text);
  for (const ImageListing::Entry &entry : listing->images)
    os << entry.path << '\0' << entry.bytes << '\0';
  os << options.resize << " " << options.augment.crop << " "
     << options.augment.padding << " " << options.augment.flip << " "
     << options.augment.resizedCrop
     << format(" %.17g", options.augment.leastArea);
  for (const std::vector<double> &values : {options.mean, options.deviation})
    for (double value : values)
      os << format(" %.17g", value);
  return std::to_string(listing->images.size()) + " images " +
         utohexstr(xxh3_64bits(text), /*LowerCase=*/true);
}

Expected<std::unique_ptr<BatchSource>>
ImageFolderSource::holdOut(double share, uint64_t holdSeed) {
  Expected<HeldOut> parts =
      drawHeldOut(int64_t(listing->images.size()), share, holdSeed);
  if (!parts)
    return parts.takeError();
  samples.resize(listing->images.size());
  std::iota(samples.begin(), samples.end(), 0u);
  if (parts->held.empty())
    return nullptr;
  samples = std::move(parts->train);
  std::unique_ptr<ImageFolderSource> rest(new ImageFolderSource(*this));
  rest->samples = std::move(parts->held);
  rest->sequence.clear();
  rest->train = false;
  return std::move(rest);
}

} // namespace ckopt
