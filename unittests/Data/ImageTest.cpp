//===- ImageTest.cpp - folders of images ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pixels are compared with Pillow 12's by checksums. Files are written here
// with the libraries that read them, so that all their forms can be had.
//
//===----------------------------------------------------------------------===//
#include "../../lib/Train/Data/ImageResize.h"
#include "TestFiles.h"
#include "ckopt/Train/Data/ImageFolder.h"
#include "ckopt/Train/Data/ReadAhead.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/CRC.h"
#include <cmath>
#include <cstdio>
#include <jpeglib.h>
#include <map>
#include <png.h>
#include <set>
#include <sys/stat.h>

using namespace ckopt;

namespace {

/// The picture that the checksums are of.
Image picture(int64_t width, int64_t height) {
  Image image{width, height, 3, {}};
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t value : {x * 37 + y * 11, x * x + y * 5, x * 7 + y * y * 3})
        image.pixels.push_back(uint8_t(value));
  return image;
}

uint32_t checksum(const Image &image) {
  return llvm::crc32(0, llvm::ArrayRef(image.pixels));
}

uint32_t resized(const Image &image, ImageBox from, int64_t width,
                 int64_t height) {
  return checksum(
      resizeImage(image, from, width, height, {0, 0, width, height}));
}

TEST(ImageResize, GivesPillowsPixels) {
  const Image small = picture(13, 9), big = picture(301, 200);
  const ImageBox all{0, 0, 13, 9};
  EXPECT_EQ(resized(small, all, 5, 4), 0xdde68418u);
  EXPECT_EQ(resized(small, all, 20, 15), 0x2a9c3b11u);
  EXPECT_EQ(resized(small, all, 13, 4), 0x8d837e12u);
  EXPECT_EQ(resized(small, all, 6, 9), 0x4d4b2fe6u);
  EXPECT_EQ(resized(small, all, 13, 9), checksum(small));
  EXPECT_EQ(resized(big, {0, 0, 301, 200}, 96, 64), 0x1d66646u);
  EXPECT_EQ(resized(big, {10, 20, 141, 160}, 32, 32), 0x8ab8afdeu);
  EXPECT_EQ(
      checksum(resizeImage(big, {0, 0, 301, 200}, 96, 64, {16, 0, 64, 64})),
      0x4a17bcfeu)
      << "a part of the scaled image";
}

TEST(ImageResize, IsBlackAround) {
  Image white{2, 2, 1, {255, 255, 255, 255}};
  Image padded = resizeImage(white, {0, 0, 2, 2}, 2, 2, {-1, 1, 3, 2});
  EXPECT_EQ(padded.pixels, (std::vector<uint8_t>{0, 255, 255, 0, 0, 0}));
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

class Images : public FilesTest {
protected:
  /// Writes rows of `channels` bytes (or 16 bits) a pixel.
  void putPng(llvm::StringRef name, const std::vector<uint8_t> &rows,
              int64_t width, int64_t height, int color, int depth = 8,
              bool interlaced = false) {
    std::FILE *out = std::fopen(file(name).c_str(), "wb");
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr,
                                              nullptr, nullptr);
    png_infop info = png_create_info_struct(png);
    png_init_io(png, out);
    png_set_IHDR(png, info, png_uint_32(width), png_uint_32(height), depth,
                 color, interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_color palette[2] = {{10, 20, 30}, {40, 50, 60}};
    if (color == PNG_COLOR_TYPE_PALETTE)
      png_set_PLTE(png, info, palette, 2);
    png_write_info(png, info);
    std::vector<png_bytep> lines;
    for (int64_t y = 0; y < height; ++y)
      lines.push_back(const_cast<png_bytep>(rows.data()) +
                      y * int64_t(rows.size()) / height);
    png_write_image(png, lines.data());
    png_write_end(png, nullptr);
    png_destroy_write_struct(&png, &info);
    std::fclose(out);
  }
  void putPng(llvm::StringRef name, const Image &image) {
    putPng(name, image.pixels, image.width, image.height,
           image.channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY);
  }
  void putJpeg(llvm::StringRef name, int64_t width, int64_t height,
               int64_t channels, J_COLOR_SPACE colors,
               bool progressive = false) {
    jpeg_compress_struct info;
    jpeg_error_mgr errors;
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    std::FILE *out = std::fopen(file(name).c_str(), "wb");
    jpeg_stdio_dest(&info, out);
    info.image_width = unsigned(width);
    info.image_height = unsigned(height);
    info.input_components = int(channels);
    info.in_color_space = colors;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, 95, TRUE);
    if (progressive)
      jpeg_simple_progression(&info);
    jpeg_start_compress(&info, TRUE);
    for (int64_t y = 0; y < height; ++y) {
      std::vector<uint8_t> row;
      for (int64_t i = 0; i < width * channels; ++i)
        row.push_back(uint8_t(40 * (i % channels) + y * 3));
      JSAMPROW line = row.data();
      jpeg_write_scanlines(&info, &line, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    std::fclose(out);
  }
  void folderOf(llvm::StringRef name) {
    ASSERT_FALSE(llvm::sys::fs::create_directories(file(name)));
  }
  std::vector<uint8_t> pixels(llvm::StringRef name, int64_t channels) {
    return valueOf(readImage(file(name), channels)).pixels;
  }
  /// Three classes with two images each, 6x4 and 4x6 pixels.
  void putClasses() {
    int shade = 0;
    for (llvm::StringRef name : {"cat", "ant", "bee"}) {
      folderOf(("d/" + name).str());
      for (llvm::StringRef image : {"/2.png", "/10.png"}) {
        bool wide = image == "/2.png";
        putPng(("d/" + name + image).str(),
               picture(wide ? 6 + shade : 4, wide ? 4 : 6 + shade));
        ++shade;
      }
    }
  }
};
using Bytes = std::vector<uint8_t>;

TEST_F(Images, OfAllFormsAreRead) {
  putPng("rgb.png", {1, 2, 3, 4, 5, 6}, 2, 1, PNG_COLOR_TYPE_RGB);
  EXPECT_EQ(pixels("rgb.png", 3), (Bytes{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(pixels("rgb.png", 1), (Bytes{2, 5}));
  putPng("gray.png", {7, 9}, 2, 1, PNG_COLOR_TYPE_GRAY);
  EXPECT_EQ(pixels("gray.png", 3), (Bytes{7, 7, 7, 9, 9, 9}));
  putPng("bits.png", {0x40}, 2, 1, PNG_COLOR_TYPE_GRAY, 1);
  EXPECT_EQ(pixels("bits.png", 1), (Bytes{0, 255}));
  putPng("alpha.png", {1, 2, 3, 0, 4, 5, 6, 128}, 2, 1,
         PNG_COLOR_TYPE_RGB_ALPHA);
  EXPECT_EQ(pixels("alpha.png", 3), (Bytes{1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(valueOf(readImageHead(file("alpha.png"))).alpha);
  putPng("ga.png", {1, 0, 2, 255}, 2, 1, PNG_COLOR_TYPE_GRAY_ALPHA);
  EXPECT_EQ(pixels("ga.png", 1), (Bytes{1, 2}));
  putPng("deep.png", {0x12, 0xff, 0xff, 0x00}, 2, 1, PNG_COLOR_TYPE_GRAY, 16);
  EXPECT_EQ(pixels("deep.png", 1), (Bytes{0x12, 0xff}));
  EXPECT_TRUE(valueOf(readImageHead(file("deep.png"))).deep);
  putPng("palette.png", {0x40}, 2, 1, PNG_COLOR_TYPE_PALETTE, 1);
  EXPECT_EQ(pixels("palette.png", 3), (Bytes{10, 20, 30, 40, 50, 60}));
  const Image whole = picture(13, 9);
  putPng("adam.png", whole.pixels, 13, 9, PNG_COLOR_TYPE_RGB, 8, true);
  EXPECT_EQ(pixels("adam.png", 3), whole.pixels);

  for (bool progressive : {false, true}) {
    putJpeg("rgb.jpg", 16, 16, 3, JCS_RGB, progressive);
    Bytes rgb = pixels("rgb.jpg", 3);
    ASSERT_EQ(rgb.size(), 16u * 16 * 3);
    for (size_t i = 0; i < rgb.size(); ++i)
      EXPECT_NEAR(rgb[i], 40 * int(i % 3) + int(i / 48) * 3, 6);
  }
  putJpeg("gray.jpg", 16, 16, 1, JCS_GRAYSCALE);
  EXPECT_NEAR(pixels("gray.jpg", 3)[16 * 3 * 15], 45, 3);
}

TEST_F(Images, ThatCannotBeReadAreNamed) {
  putJpeg("cmyk.jpg", 8, 8, 4, JCS_CMYK);
  expectContains(textOf(readImageHead(file("cmyk.jpg"))),
                 "cmyk.jpg: cannot read the image: CMYK colors");
  putJpeg("whole.jpg", 64, 64, 3, JCS_RGB);
  const std::string jpeg = get("whole.jpg");
  put("cut.jpg", llvm::StringRef(jpeg).take_front(jpeg.size() / 2));
  EXPECT_EQ(textOf(readImageHead(file("cut.jpg"))), "");
  expectContains(textOf(readImage(file("cut.jpg"), 3)),
                 "cut.jpg: cannot read the image: ");
  std::string tail = jpeg;
  tail.insert(tail.size() - 2, "xx"); // means nothing, changes no pixel
  put("tail.jpg", tail);
  EXPECT_EQ(pixels("tail.jpg", 3), pixels("whole.jpg", 3));

  putPng("whole.png", picture(40, 30));
  const std::string png = get("whole.png");
  put("cut.png", llvm::StringRef(png).take_front(png.size() / 2));
  expectContains(textOf(readImage(file("cut.png"), 3)), "ends too early");
  put("head.png", llvm::StringRef(png).take_front(20));
  expectContains(textOf(readImageHead(file("head.png"))), "head.png: cannot");
  std::string damaged = png;
  damaged[png.size() / 2] ^= 1;
  put("damaged.png", damaged);
  expectContains(textOf(readImage(file("damaged.png"), 3)), "damaged.png");
  put("empty.png", "");
  expectContains(textOf(readImageHead(file("empty.png"))), "an empty file");
  put("text.png", "hello");
  expectContains(textOf(readImageHead(file("text.png"))),
                 "neither a PNG nor a JPEG file");
  std::string huge = png; // 2^20 pixels square; its checksum is right
  huge.replace(16, 8, std::string("\0\x10\0\0\0\x10\0\0", 8));
  uint32_t crc = llvm::crc32(
      0,
      llvm::ArrayRef(reinterpret_cast<const uint8_t *>(huge.data()) + 12, 17));
  for (int i = 0; i < 4; ++i)
    huge[size_t(29 + i)] = char(crc >> (24 - 8 * i));
  put("huge.png", huge);
  expectContains(textOf(readImageHead(file("huge.png"))), "huge.png: ");
}

TEST_F(Images, WithDamagedBytesNeverReadElsewhere) {
  putPng("a.png", picture(13, 9));
  putJpeg("b.jpg", 16, 16, 3, JCS_RGB);
  putJpeg("c.jpg", 16, 16, 3, JCS_RGB, /*progressive=*/true);
  for (const char *name : {"a.png", "b.jpg", "c.jpg"}) {
    const std::string whole = get(name);
    int64_t errors = 0;
    for (size_t at = 0; at < whole.size(); ++at)
      for (char flip : {'\x01', '\x80', '\xff'}) {
        std::string bytes = whole;
        bytes[at] ^= flip;
        put("x", bytes);
        auto image = readImage(file("x"), 3);
        if (image)
          EXPECT_EQ(int64_t(image->pixels.size()),
                    image->width * image->height * 3);
        else
          ++errors;
        llvm::consumeError(image.takeError());
      }
    EXPECT_GT(errors, 0) << name;
  }
}

//===----------------------------------------------------------------------===//
// Folders
//===----------------------------------------------------------------------===//

std::vector<FieldSpec> fieldsOf(std::vector<int64_t> shape,
                                DType dtype = DType::F32) {
  std::vector<FieldSpec> fields(2);
  fields[0].name = "pixels";
  fields[0].dtype = dtype;
  fields[0].shape = std::move(shape);
  fields[1].name = "target";
  fields[1].dtype = DType::I64;
  fields[1].shape = std::vector<int64_t>();
  fields[1].limits.all.classes = 3;
  return fields;
}

/// The samples of one epoch, by label, in their order.
struct Epoch {
  std::vector<std::vector<float>> pixels;
  std::vector<int64_t> labels;
  bool operator==(const Epoch &) const = default;
};

Epoch readEpoch(BatchSource &source, uint64_t seed, DataPosition place,
                int64_t batch) {
  Epoch result;
  EXPECT_EQ(textOf(source.seek(seed, place)), "");
  int64_t elements = 1;
  for (int64_t extent : source.fields()[0].shape)
    elements *= extent;
  while (true) {
    std::vector<float> pixels(size_t(batch * elements));
    std::vector<int64_t> labels(size_t(batch), -1);
    int64_t count = valueOf(source.next(batch, {pixels.data(), labels.data()}));
    for (int64_t i = 0; i < count; ++i) {
      auto first = pixels.begin() + i * elements;
      result.pixels.emplace_back(first, first + elements);
      result.labels.push_back(labels[size_t(i)]);
    }
    if (count < batch)
      return result;
  }
}

std::unique_ptr<ImageFolderSource> open(const std::string &folder,
                                        const ImageOptions &options,
                                        bool train = false) {
  return valueOf(ImageFolderSource::create(valueOf(ImageListing::read(folder)),
                                           options, fieldsOf({3, 4, 4}),
                                           train));
}

TEST_F(Images, HaveLabelsInTheOrderOfNames) {
  putClasses();
  auto source = open(file("d"), {});
  EXPECT_EQ(source->classNames(),
            (std::vector<std::string>{"ant", "bee", "cat"}));
  EXPECT_EQ(source->numSamples(), 6);
  Epoch epoch = readEpoch(*source, 0, {}, 4);
  EXPECT_EQ(epoch.labels, (std::vector<int64_t>{0, 0, 1, 1, 2, 2}));
  // ant/10.png is 4x9: the middle 4 rows, from (9 - 4) / 2 to even: 2.
  const Image ant = picture(4, 9);
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t i = 0; i < 16; ++i)
      EXPECT_EQ(epoch.pixels[0][size_t(c * 16 + i)],
                float(ant.pixels[size_t((2 * 4 + i) * 3 + c)]) / 255.0f);
}

// A process that asks for its rows of a batch opens no other image: those may
// be gone. Its samples are those that whole batches have there.
TEST_F(Images, OfOtherRowsAreNotRead) {
  putClasses();
  ImageOptions options;
  options.augment.flip = true;
  auto listing = valueOf(ImageListing::read(file("d")));
  auto source = open(file("d"), options, true);
  Epoch whole = readEpoch(*source, 5, {1, 0}, 6);
  ASSERT_EQ(whole.pixels.size(), 6u);
  const RowRange rows = {2, 2};
  auto readRows = [&](BatchSource &from) {
    Epoch part;
    std::vector<float> pixels(2 * 48);
    part.labels.resize(2);
    EXPECT_EQ(textOf(from.seek(5, {1, 0})), "");
    int64_t count =
        valueOf(from.nextRows(6, rows, {pixels.data(), part.labels.data()}));
    EXPECT_EQ(count, 6); // of all rows
    for (int64_t i = 0; i < 2; ++i)
      part.pixels.emplace_back(pixels.begin() + i * 48,
                               pixels.begin() + (i + 1) * 48);
    return part;
  };
  Epoch want = {{whole.pixels[2], whole.pixels[3]},
                {whole.labels[2], whole.labels[3]}};
  EXPECT_EQ(readRows(*source), want);
  ReadAheadSource ahead(open(file("d"), options, true));
  // Images that can go without a change of these rows are those of others.
  int64_t unread = 0;
  for (const ImageListing::Entry &entry : listing.images) {
    std::string path = file("d") + "/" + entry.path, aside = path + ".aside";
    ASSERT_FALSE(llvm::sys::fs::rename(path, aside));
    std::vector<float> pixels(2 * 48);
    std::vector<int64_t> labels(2);
    EXPECT_EQ(textOf(source->seek(5, {1, 0})), "");
    auto count = source->nextRows(6, rows, {pixels.data(), labels.data()});
    unread += bool(count);
    llvm::consumeError(count.takeError());
    ASSERT_FALSE(llvm::sys::fs::rename(aside, path));
  }
  EXPECT_EQ(unread, 4);
  EXPECT_EQ(readRows(ahead), want);
}

// Threads change neither samples nor which of several failures is told.
TEST_F(Images, AreTheSameOnAnyNumberOfThreads) {
  putClasses();
  ImageOptions options;
  options.augment.flip = true;
  std::vector<Epoch> epochs;
  for (int64_t threads : {1, 2, 3, 64}) {
    options.threads = threads;
    epochs.push_back(readEpoch(*open(file("d"), options, true), 5, {1, 0}, 4));
    EXPECT_EQ(epochs.back(), epochs.front()) << threads << " threads";
  }
  options.threads = 3;
  auto source = open(file("d"), options);
  auto listing = valueOf(ImageListing::read(file("d")));
  for (size_t i : {2, 3, 5})
    ASSERT_FALSE(
        llvm::sys::fs::remove(file("d") + "/" + listing.images[i].path));
  for (int attempt = 0; attempt < 20; ++attempt) {
    std::vector<float> pixels(6 * 48);
    std::vector<int64_t> labels(6);
    EXPECT_EQ(textOf(source->seek(5, {0, 0})), "");
    expectContains(textOf(source->next(6, {pixels.data(), labels.data()})),
                   listing.images[2].path);
  }
}

TEST_F(Images, AreCutAndNormalized) {
  putClasses();
  ImageOptions options;
  options.mean = {0.5};
  options.deviation = {0.25};
  Epoch plain = readEpoch(*open(file("d"), {}), 0, {}, 6);
  Epoch normal = readEpoch(*open(file("d"), options), 0, {}, 6);
  for (size_t i = 0; i < 48; ++i)
    EXPECT_NEAR(normal.pixels[1][i], (plain.pixels[1][i] - 0.5) / 0.25, 1e-6);
  options.resize = 3;
  expectContains(
      textOf(ImageFolderSource::create(valueOf(ImageListing::read(file("d"))),
                                       options, fieldsOf({3, 4, 4}), true)),
      "--resize=3: the model takes 4x4 pixels");
  options.resize = 0;
  options.mean = options.deviation = {1, 1};
  expectContains(
      textOf(ImageFolderSource::create(valueOf(ImageListing::read(file("d"))),
                                       options, fieldsOf({3, 4, 4}), true)),
      "--normalize gives 2 numbers");
  auto last = valueOf(ImageFolderSource::create(
      valueOf(ImageListing::read(file("d"))), {}, fieldsOf({4, 4, 3}), false));
  Epoch rows = readEpoch(*last, 0, {}, 6);
  for (size_t c = 0; c < 3; ++c)
    for (size_t i = 0; i < 16; ++i)
      EXPECT_EQ(rows.pixels[3][i * 3 + c], plain.pixels[3][c * 16 + i]);
}

TEST_F(Images, AreAugmentedBySeedEpochAndSampleAlone) {
  putClasses();
  for (const char *text :
       {"flip", "crop:2", "resized-crop:0.3", "flip,crop:1"}) {
    ImageOptions options;
    options.augment = valueOf(parseAugmentation(text, "--augment"));
    auto source = open(file("d"), options, /*train=*/true);
    Epoch first = readEpoch(*source, 5, {0, 0}, 4);
    Epoch second = readEpoch(*source, 5, {1, 0}, 4);
    EXPECT_NE(first, second) << text;
    // Whatever was read before, and in whichever batches.
    Epoch again = readEpoch(*source, 5, {0, 0}, 3);
    EXPECT_EQ(first, again) << text;
    Epoch rest = readEpoch(*open(file("d"), options, true), 5, {1, 4}, 2);
    ASSERT_EQ(rest.pixels.size(), 2u);
    EXPECT_EQ(rest.pixels[0], second.pixels[4]) << text;
    EXPECT_EQ(rest.pixels[1], second.pixels[5]) << text;
    EXPECT_NE(readEpoch(*source, 6, {0, 0}, 4), first) << text;
    // Samples that do not train are as they are.
    auto held = valueOf(source->holdOut(0.5, 1));
    Epoch kept = readEpoch(*held, 5, {0, 0}, 4);
    EXPECT_EQ(kept, readEpoch(*held, 7, {3, 0}, 4)) << text;
    EXPECT_EQ(kept.labels.size(), 3u);
    EXPECT_EQ(source->numSamples(), 3);
  }
}

TEST_F(Images, FlipExchangesLeftAndRight) {
  putClasses();
  ImageOptions options;
  options.augment.flip = true;
  Epoch plain = readEpoch(*open(file("d"), {}), 0, {}, 6);
  auto source = open(file("d"), options, true);
  std::set<bool> seen;
  std::map<std::vector<float>, int> known;
  for (const std::vector<float> &pixels : plain.pixels) {
    std::vector<float> mirrored = pixels;
    for (size_t row = 0; row < 12; ++row)
      std::reverse(mirrored.begin() + int64_t(row * 4),
                   mirrored.begin() + int64_t(row * 4 + 4));
    known[pixels] = 0;
    known[mirrored] = 1;
  }
  for (int64_t epoch = 0; epoch < 4; ++epoch)
    for (const auto &pixels : readEpoch(*source, 3, {epoch, 0}, 6).pixels) {
      ASSERT_TRUE(known.count(pixels));
      seen.insert(known[pixels]);
    }
  EXPECT_EQ(seen.size(), 2u);
}

TEST_F(Images, InFoldersThatAreNotUsable) {
  folderOf("d");
  expectContains(textOf(ImageListing::read(file("d"))), "no folders in it");
  folderOf("d/ant");
  expectContains(textOf(ImageListing::read(file("d"))),
                 "ant: no .png or .jpg files for this class");
  putClasses();
  put("d/ant/notes.txt", "x");
  put("d/.hidden", "x");
  ASSERT_EQ(mkfifo(file("d/ant/pipe.png").c_str(), 0600), 0);
  auto listing = valueOf(ImageListing::read(file("d")));
  ASSERT_EQ(listing.remarks().size(), 1u);
  expectContains(listing.remarks()[0],
                 "2 files are left out, which are no .png or .jpg or in "
                 "no class's folder; the first is 'ant/notes.txt'");
  folderOf("d/ant/.thumbnails");
  putPng("d/ant/.thumbnails/a.png", picture(5, 5));
  EXPECT_EQ(valueOf(ImageListing::read(file("d"))).images.size(),
            listing.images.size());
  ASSERT_FALSE(llvm::sys::fs::create_link("..", file("d/ant/up")));
  expectContains(textOf(ImageListing::read(file("d"))),
                 "ant/up: a link to a folder that it is in");
  llvm::sys::fs::remove(file("d/ant/up"));
  const std::string identity =
      valueOf(ImageFolderSource::create(listing, {}, fieldsOf({3, 4, 4}), true))
          ->identity();
  put("d/bee/bad.jpg", "no image");
  put("d/cat/worse.png", "");
  std::string text = textOf(ImageListing::read(file("d")));
  expectContains(text, "bee/bad.jpg: neither a PNG nor a JPEG file");
  expectContains(text, "cat/worse.png: an empty file");
  putPng("d/bee/bad.jpg", picture(5, 5)); // what a file is its bytes say
  putPng("d/cat/worse.png", picture(5, 5));
  EXPECT_NE(open(file("d"), {}, true)->identity(), identity);
  expectContains(textOf(ImageListing::read(file("d"), {"ant", "bee"})),
                 "there is no class 'cat' among those that are trained");
  auto fields = fieldsOf({3, 4, 4});
  fields[1].limits.all.classes = 2;
  expectContains(textOf(ImageFolderSource::create(
                     valueOf(ImageListing::read(file("d"))), {}, fields, true)),
                 "3 folders of classes, but the model has 2 classes");
  expectContains(
      textOf(ImageFolderSource::create(valueOf(ImageListing::read(file("d"))),
                                       {}, fieldsOf({4, 4, 4}), true)),
      "images have 1 or 3 channels");
}

TEST(ImageOptions, AsText) {
  for (const char *wrong : {"", "turn", "flip:2", "crop:-1", "resized-crop:0",
                            "resized-crop:2", "crop,resized-crop"})
    EXPECT_NE(textOf(parseAugmentation(wrong, "--augment")), "") << wrong;
  ImageOptions options;
  for (const char *wrong : {"", "0.5", "0.5/0", "a/b", "0.5/-1"})
    EXPECT_NE(textOf(parseNormalization(wrong, "--normalize", options)), "")
        << wrong;
  EXPECT_EQ(textOf(parseNormalization("imagenet", "--normalize", options)), "");
  EXPECT_EQ(options.deviation, (std::vector<double>{0.229, 0.224, 0.225}));
}

} // namespace
