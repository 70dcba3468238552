//===- ImageListing.cpp - the files of a folder of images -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists files in sorted order, so that labels and samples do not depend on the
// file system. The head of each file is read: one that cannot be used shows now
// and not hours later. O(files).
//
//===----------------------------------------------------------------------===//
#include "ImageFile.h"
#include "ckopt/Base/PrintableText.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/FlagTable.h"
#include "ckopt/Train/Data/ImageFolder.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace ckopt {

//===----------------------------------------------------------------------===//
// Options as text
//===----------------------------------------------------------------------===//

Expected<ImageAugmentation> parseAugmentation(StringRef text,
                                              const MessageText &flag) {
  ImageAugmentation result;
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts) {
    auto [name, value] = part.split(':');
    bool given = part.contains(':'), good = true;
    if (name == "flip") {
      result.flip = true;
      good = !given;
    } else if (name == "crop") {
      result.crop = true;
      good = !given ||
             (!value.getAsInteger(10, result.padding) && result.padding >= 0);
    } else if (name == "resized-crop") {
      result.resizedCrop = true;
      good = !given || (flag::parseReal(value, result.leastArea) &&
                        result.leastArea > 0 && result.leastArea <= 1);
    } else {
      good = false;
    }
    if (!good)
      return usageError(flag + ": '" + part +
                        "' is not one of flip, crop, crop:PADDING, "
                        "resized-crop, resized-crop:LEAST_AREA");
  }
  if (result.crop && result.resizedCrop)
    return usageError(flag + ": give one of crop and resized-crop");
  return result;
}

static bool parseReals(StringRef text, std::vector<double> &to) {
  to.clear();
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  return all_of(parts, [&](StringRef part) {
    return flag::parseReal(part, to.emplace_back());
  });
}

Error parseNormalization(StringRef text, const MessageText &flag,
                         ImageOptions &options) {
  if (text == "imagenet")
    text = "0.485,0.456,0.406/0.229,0.224,0.225";
  auto [mean, deviation] = text.split('/');
  if (!parseReals(mean, options.mean) ||
      !parseReals(deviation, options.deviation) ||
      any_of(options.deviation, [](double value) { return !(value > 0); }))
    return usageError(flag + ": '" + text +
                      "' is neither 'imagenet' nor MEAN,.../DEVIATION,... of "
                      "values from 0 to 1, with deviations above 0");
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

static Expected<std::vector<std::string>> listFolders(StringRef folder,
                                                      ImageListing &listing) {
  std::vector<std::string> names;
  std::error_code code;
  for (sys::fs::directory_iterator it(folder, code), end; it != end && !code;
       it.increment(code)) {
    StringRef name = sys::path::filename(it->path());
    if (name.starts_with("."))
      continue;
    if (!sys::fs::is_directory(it->path()))
      listing.others.push_back(name.str());
    else if (std::string fault = faultOfName(name); !fault.empty())
      return inputError(folder + ": " + fault);
    else
      names.push_back(name.str());
  }
  if (code)
    return inputError("cannot read the folder '" + folder +
                      "': " + code.message());
  llvm::sort(names);
  return names;
}

/// Whether a folder that was reached by a link holds the link: listing it would
/// find everything again and again, under labels of other classes even.
static bool holdsItself(StringRef path) {
  bool isLink = false;
  SmallString<128> real, parent;
  if (sys::fs::is_symlink_file(path, isLink) || !isLink ||
      sys::fs::real_path(path, real) ||
      sys::fs::real_path(sys::path::parent_path(path), parent))
    return false;
  parent += '/';
  real += '/';
  return StringRef(parent).starts_with(real);
}

/// All files below a class's folder, in the order of their names; hidden ones,
/// and those of hidden folders, are left out.
static Error listImages(StringRef folder, StringRef name, int64_t label,
                        ImageListing &listing) {
  std::vector<std::string> paths;
  std::error_code code;
  const std::string top = (folder + "/" + name).str();
  if (holdsItself(top))
    return inputError(top + ": a link to a folder that it is in");
  for (sys::fs::recursive_directory_iterator it(top, code), end;
       it != end && !code; it.increment(code)) {
    StringRef path = it->path();
    if (sys::path::filename(path).starts_with(".")) {
      it.no_push();
      continue;
    }
    if (holdsItself(path))
      return inputError(path + ": a link to a folder that it is in");
    sys::fs::file_status status;
    const bool exists = !sys::fs::status(path, status);
    if (exists && sys::fs::is_directory(status))
      continue;
    StringRef shown = path;
    shown.consume_front(folder);
    shown = shown.drop_while([](char c) { return c == '/'; });
    // A pipe has no end, and a device no image.
    (exists && !sys::fs::is_regular_file(status) ? listing.others : paths)
        .push_back(shown.str());
  }
  if (code)
    return inputError("cannot read the folder '" + top +
                      "': " + code.message());
  llvm::sort(paths);
  const size_t before = listing.images.size();
  for (std::string &path : paths)
    if (isImageName(path))
      listing.images.push_back({std::move(path), label, 0});
    else
      listing.others.push_back(std::move(path));
  if (listing.images.size() == before)
    return inputError(top + ": no .png or .jpg files for this class");
  return Error::success();
}

/// Reads all heads; names the first ten files that cannot be used.
static Error readHeads(ImageListing &listing) {
  constexpr int64_t kMost = 10;
  Error errors = Error::success();
  int64_t bad = 0;
  for (ImageListing::Entry &entry : listing.images) {
    const std::string path = listing.folder + "/" + entry.path;
    Expected<ImageHead> head = readImageHead(path);
    if (!head) {
      if (++bad <= kMost)
        errors = joinErrors(std::move(errors), head.takeError());
      else
        consumeError(head.takeError());
      continue;
    }
    listing.withAlpha += head->alpha;
    listing.deep += head->deep;
    sys::fs::file_size(path, entry.bytes);
  }
  if (bad > kMost)
    errors = joinErrors(std::move(errors),
                        inputError(listing.folder + ": and " +
                                   Twine(bad - kMost) + " more images"));
  return errors;
}

Expected<ImageListing> ImageListing::read(StringRef folder,
                                          ArrayRef<std::string> known) {
  ImageListing result;
  folder = folder.size() > 1 ? folder.rtrim('/') : folder;
  result.folder = folder.str();
  Expected<std::vector<std::string>> names = listFolders(folder, result);
  if (!names)
    return names.takeError();
  if (names->empty())
    return inputError(folder + ": no folders in it; a folder of images has "
                               "one for each class");
  result.classes = known.empty() ? *names : known.vec();
  for (const std::string &name : *names) {
    auto place = find(result.classes, name);
    if (place == result.classes.end())
      return inputError(
          folder + ": there is no class '" + name +
          "' among those that are trained: " + join(result.classes, ", "));
    if (Error error =
            listImages(folder, name, place - result.classes.begin(), result))
      return std::move(error);
  }
  if (result.images.size() > UINT32_MAX)
    return inputError(folder + ": more than 2^32 images");
  llvm::sort(result.others);
  if (Error error = readHeads(result))
    return std::move(error);
  return std::move(result);
}

std::vector<std::string> ImageListing::remarks() const {
  std::vector<std::string> lines;
  auto count = [&](int64_t images, const char *what) {
    if (images)
      lines.push_back(folder + ": " + std::to_string(images) +
                      (images == 1 ? " image has " : " images have ") + what);
  };
  count(withAlpha, "transparency, which is left out");
  count(deep, "16 bits a channel, of which the upper 8 are taken");
  if (!others.empty())
    lines.push_back(folder + ": " + std::to_string(others.size()) +
                    " files are left out, which are no .png or .jpg or in no "
                    "class's folder; the first is '" +
                    others.front() + "'");
  return lines;
}

} // namespace ckopt
