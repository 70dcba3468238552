//===- ImageFile.cpp - pixels of PNG and JPEG files -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libpng and libjpeg report errors by longjmp, over the frames that called
// them. So the functions that set the jump hold nothing that a destructor would
// have to free: all such objects belong to a reader, which their callers own.
// O(pixels); memory: one image.
//
//===----------------------------------------------------------------------===//
#include "ImageFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/InputBuffer.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <csetjmp>
#include <cstdio> // before jpeglib.h, which wants FILE
#include <cstring>
#include <string>
#if CKOPT_HAVE_PNG
#include <png.h>
#endif
#if CKOPT_HAVE_JPEG
#include <jerror.h>
#include <jpeglib.h>
#endif

using namespace llvm;

namespace ckopt {

/// More pixels than any photograph: a head that says so is damaged.
static constexpr int64_t kMostPixels = int64_t(1) << 28;

bool isImageName(StringRef path) {
  StringRef ending = sys::path::extension(path);
  return ending.equals_insensitive(".png") ||
         ending.equals_insensitive(".jpg") ||
         ending.equals_insensitive(".jpeg");
}

namespace {
/// What reading a file gives, whichever format it has.
struct Reading {
  StringRef bytes;
  size_t at = 0; ///< of `bytes`
  ImageHead head;
  Image image; ///< gray or RGB, as the file has it
  std::string problem;
};
} // namespace

//===----------------------------------------------------------------------===//
// PNG
//===----------------------------------------------------------------------===//

#if CKOPT_HAVE_PNG
namespace {
struct PngReader : Reading {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::vector<png_bytep> rows;

  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
};
} // namespace

static void readPngBytes(png_structp png, png_bytep to, size_t count) {
  auto &reader = *static_cast<PngReader *>(png_get_io_ptr(png));
  if (count > reader.bytes.size() - reader.at)
    png_error(png, "the file ends too early");
  std::memcpy(to, reader.bytes.data() + reader.at, count);
  reader.at += count;
}

[[noreturn]] static void notePngError(png_structp png, png_const_charp text) {
  static_cast<PngReader *>(png_get_error_ptr(png))->problem = text;
  png_longjmp(png, 1);
}

/// Damage that does not stop libpng (a wrong checksum of a chunk that is not
/// needed) changes no pixel.
static void ignorePngWarning(png_structp, png_const_charp) {}

static bool readPngHead(PngReader &reader) {
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader,
                                      notePngError, ignorePngWarning);
  reader.info = reader.png ? png_create_info_struct(reader.png) : nullptr;
  if (!reader.info)
    return false;
  if (setjmp(png_jmpbuf(reader.png)))
    return false;
  png_set_read_fn(reader.png, &reader, readPngBytes);
  png_read_info(reader.png, reader.info);
  reader.head.width = png_get_image_width(reader.png, reader.info);
  reader.head.height = png_get_image_height(reader.png, reader.info);
  reader.head.deep = png_get_bit_depth(reader.png, reader.info) == 16;
  reader.head.alpha =
      (png_get_color_type(reader.png, reader.info) & PNG_COLOR_MASK_ALPHA) ||
      png_get_valid(reader.png, reader.info, PNG_INFO_tRNS);
  return true;
}

static bool readPngPixels(PngReader &reader) {
  if (setjmp(png_jmpbuf(reader.png)))
    return false;
  const int color = png_get_color_type(reader.png, reader.info);
  png_set_strip_16(reader.png); // the upper 8 bits, as Pillow
  png_set_strip_alpha(reader.png);
  if (color == PNG_COLOR_TYPE_PALETTE)
    png_set_palette_to_rgb(reader.png);
  else if (!(color & PNG_COLOR_MASK_COLOR))
    png_set_expand_gray_1_2_4_to_8(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  Image &image = reader.image;
  image.width = reader.head.width;
  image.height = reader.head.height;
  image.channels = color & PNG_COLOR_MASK_COLOR ? 3 : 1;
  if (png_get_rowbytes(reader.png, reader.info) !=
      size_t(image.width * image.channels))
    png_error(reader.png, "its rows have another form than its head says");
  image.pixels.resize(size_t(image.width * image.height * image.channels));
  reader.rows.resize(size_t(image.height));
  for (int64_t y = 0; y < image.height; ++y)
    reader.rows[size_t(y)] =
        image.pixels.data() + y * image.width * image.channels;
  png_read_image(reader.png, reader.rows.data());
  png_read_end(reader.png, nullptr);
  return true;
}
#endif

//===----------------------------------------------------------------------===//
// JPEG
//===----------------------------------------------------------------------===//

#if CKOPT_HAVE_JPEG
namespace {
struct JpegReader : Reading {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  std::jmp_buf jump;

  ~JpegReader() { jpeg_destroy_decompress(&info); }
};
} // namespace

[[noreturn]] static void noteJpegError(j_common_ptr info) {
  auto &reader = *static_cast<JpegReader *>(info->client_data);
  char text[JMSG_LENGTH_MAX];
  info->err->format_message(info, text);
  reader.problem = text;
  std::longjmp(reader.jump, 1);
}

/// libjpeg goes on with gray pixels where data are damaged. Bytes that mean
/// nothing between segments, and versions of headers, change no pixel.
static void judgeJpegMessage(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM &&
      code != JWRN_JFIF_MAJOR)
    noteJpegError(info);
}

static bool readJpegHead(JpegReader &reader) {
  reader.info.err = jpeg_std_error(&reader.errors);
  reader.errors.error_exit = noteJpegError;
  reader.errors.emit_message = judgeJpegMessage;
  reader.info.client_data = &reader;
  if (setjmp(reader.jump))
    return false;
  jpeg_create_decompress(&reader.info);
  // jpeg_create_decompress() keeps only these two.
  reader.info.client_data = &reader;
  jpeg_mem_src(&reader.info,
               reinterpret_cast<const unsigned char *>(reader.bytes.data()),
               static_cast<unsigned long>(reader.bytes.size()));
  jpeg_read_header(&reader.info, /*require_image=*/TRUE);
  reader.head.width = reader.info.image_width;
  reader.head.height = reader.info.image_height;
  const J_COLOR_SPACE space = reader.info.jpeg_color_space;
  if (space == JCS_CMYK || space == JCS_YCCK)
    reader.problem =
        "CMYK colors, which have no one meaning in RGB; convert it";
  else if (space != JCS_GRAYSCALE && space != JCS_YCbCr && space != JCS_RGB)
    reader.problem = "colors of an unknown kind";
  return reader.problem.empty();
}

static bool readJpegPixels(JpegReader &reader) {
  if (setjmp(reader.jump))
    return false;
  const bool gray = reader.info.jpeg_color_space == JCS_GRAYSCALE;
  reader.info.out_color_space = gray ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&reader.info);
  Image &image = reader.image;
  image.width = reader.info.output_width;
  image.height = reader.info.output_height;
  image.channels = gray ? 1 : 3;
  image.pixels.resize(size_t(image.width * image.height * image.channels));
  while (reader.info.output_scanline < reader.info.output_height) {
    JSAMPROW row = image.pixels.data() + int64_t(reader.info.output_scanline) *
                                             image.width * image.channels;
    jpeg_read_scanlines(&reader.info, &row, 1);
  }
  jpeg_finish_decompress(&reader.info);
  return true;
}
#endif

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// Fails for want of a library, at the place where a file needs it.
[[maybe_unused]] static Error notBuilt(StringRef path, const char *library) {
  return makeError(ExitUnsupported, path + ": this ckopt was built without " +
                                        library + " (see scripts/setup)");
}

static Error fail(StringRef path, const Reading &reading) {
  return inputError(
      path + ": cannot read the image: " +
      (reading.problem.empty() ? "out of memory" : reading.problem));
}

template <typename Reader>
static Error readWith(StringRef path, StringRef bytes, bool (*head)(Reader &),
                      bool (*pixels)(Reader &), ImageHead &headTo,
                      Image *imageTo) {
  Reader reader;
  reader.bytes = bytes;
  if (!head(reader))
    return fail(path, reader);
  headTo = reader.head;
  if (headTo.width < 1 || headTo.height < 1 ||
      headTo.width > kMostPixels / headTo.height)
    return inputError(path + ": an image of " + Twine(headTo.width) + "x" +
                      Twine(headTo.height) + " pixels");
  if (!imageTo)
    return Error::success();
  if (!pixels(reader))
    return fail(path, reader);
  *imageTo = std::move(reader.image);
  return Error::success();
}

static Error readFile(StringRef path, ImageHead &head, Image *image) {
  auto file = readInput(path);
  if (!file)
    return file.takeError();
  const StringRef bytes = (*file)->getBuffer();
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) {
#if CKOPT_HAVE_PNG
    return readWith<PngReader>(path, bytes, readPngHead, readPngPixels, head,
                               image);
#else
    return notBuilt(path, "libpng");
#endif
  }
  if (bytes.starts_with("\xff\xd8\xff")) {
#if CKOPT_HAVE_JPEG
    return readWith<JpegReader>(path, bytes, readJpegHead, readJpegPixels, head,
                                image);
#else
    return notBuilt(path, "libjpeg");
#endif
  }
  return inputError(path + (bytes.empty() ? ": an empty file"
                                          : ": neither a PNG nor a JPEG file"));
}

Expected<ImageHead> readImageHead(StringRef path) {
  ImageHead head;
  if (Error error = readFile(path, head, nullptr))
    return std::move(error);
  return head;
}

/// Gray to RGB, or RGB to gray with Pillow's integer weights.
static Image withChannels(Image image, int64_t channels) {
  if (image.channels == channels)
    return image;
  const size_t count = size_t(image.width * image.height);
  std::vector<uint8_t> pixels(count * size_t(channels));
  const uint8_t *from = image.pixels.data();
  for (size_t i = 0; i < count; ++i) {
    if (channels == 3) {
      pixels[3 * i] = pixels[3 * i + 1] = pixels[3 * i + 2] = from[i];
      continue;
    }
    const uint8_t *rgb = from + 3 * i;
    pixels[i] = uint8_t(
        (rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
  }
  image.channels = channels;
  image.pixels = std::move(pixels);
  return image;
}

Expected<Image> readImage(StringRef path, int64_t channels) {
  ImageHead head;
  Image image;
  if (Error error = readFile(path, head, &image))
    return std::move(error);
  return withChannels(std::move(image), channels);
}

} // namespace ckopt
