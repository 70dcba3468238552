//===- Npy.cpp - the .npy format ------------------------------------------===//
//
// A magic, a version, the length of a header, the header (a Python dictionary
// literal with exactly the keys descr, fortran_order and shape), the data. The
// header is parsed by a small strict parser of that grammar, never evaluated.
// O(bytes).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Npz.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>
#include <cstring>

using namespace llvm;

namespace ckopt {

namespace {

struct NpyHeader {
  DType dtype = DType::F32;
  bool swapped = false;
  bool fortranOrder = false;
  std::vector<int64_t> shape;
};

/// The dictionary literal of the header.
class HeaderParser {
public:
  HeaderParser(StringRef text, StringRef what) : rest(text), what(what) {}

  Expected<NpyHeader> parse();

private:
  Error bad(const Twine &why) {
    return inputError(what + ": bad .npy header: " + why);
  }
  void skipBlanks() { rest = rest.ltrim(" \t\n"); }
  bool consume(char c) {
    skipBlanks();
    return rest.consume_front(StringRef(&c, 1));
  }
  bool parseString(StringRef &text);
  Error parseDescr(NpyHeader &header);
  Error parseOrder(NpyHeader &header);
  Error parseShape(NpyHeader &header);

  StringRef rest, what;
};

} // namespace

bool HeaderParser::parseString(StringRef &text) {
  skipBlanks();
  if (rest.empty() || (rest[0] != '\'' && rest[0] != '"'))
    return false;
  const size_t end = rest.find(rest[0], 1);
  if (end == StringRef::npos)
    return false;
  text = rest.substr(1, end - 1);
  rest = rest.substr(end + 1);
  return true;
}

Error HeaderParser::parseDescr(NpyHeader &header) {
  skipBlanks();
  if (rest.starts_with("["))
    return inputError(what + ": a structured array; ckopt reads arrays of one "
                             "number type only");
  StringRef descr;
  if (!parseString(descr) || descr.size() < 2)
    return bad("'descr' is not a type string");
  const char order = descr[0];
  const StringRef kind = descr.drop_front(StringRef("<>|=").contains(order));
  header.swapped = order == '>';
  struct Known {
    StringRef kind;
    DType type;
  };
  static const Known known[] = {
      {"f8", DType::F64},  {"f4", DType::F32}, {"f2", DType::F16},
      {"V2", DType::BF16}, {"i8", DType::I64}, {"i4", DType::I32},
      {"i2", DType::I16},  {"i1", DType::I8},  {"u8", DType::U64},
      {"u4", DType::U32},  {"u2", DType::U16}, {"u1", DType::U8},
      {"b1", DType::Bool}, {"?", DType::Bool},
  };
  for (const Known &entry : known)
    if (kind == entry.kind) {
      header.dtype = entry.type;
      return Error::success();
    }
  const char *hint = "";
  if (kind.starts_with("O"))
    hint = " (Python objects: convert to a number array before saving)";
  else if (kind.starts_with("U") || kind.starts_with("S"))
    hint = " (text: convert to integer labels before saving)";
  else if (kind.starts_with("c"))
    hint = " (complex numbers: save real and imaginary parts apart)";
  return inputError(what + ": element type '" + descr + "' is not supported" +
                    hint +
                    "; supported: f8 f4 f2 i8 i4 i2 i1 u8 u4 u2 u1 b1 "
                    "and V2 (bfloat16)");
}

Error HeaderParser::parseOrder(NpyHeader &header) {
  skipBlanks();
  if (rest.consume_front("True"))
    header.fortranOrder = true;
  else if (!rest.consume_front("False"))
    return bad("'fortran_order' is neither True nor False");
  return Error::success();
}

Error HeaderParser::parseShape(NpyHeader &header) {
  if (!consume('('))
    return bad("'shape' is not a tuple");
  while (!consume(')')) {
    if (!header.shape.empty() && !consume(','))
      return bad("'shape' is not a tuple of integers");
    if (!header.shape.empty() && consume(')'))
      break;
    skipBlanks();
    const StringRef digits = rest.take_while(isDigit);
    int64_t extent = 0;
    if (digits.empty() || digits.getAsInteger(10, extent))
      return bad("'shape' is not a tuple of sizes");
    rest = rest.drop_front(digits.size());
    (void)rest.consume_front("L"); // Python 2 wrote long integers so
    header.shape.push_back(extent);
    if (header.shape.size() > 64)
      return bad("more than 64 dimensions");
  }
  return Error::success();
}

Expected<NpyHeader> HeaderParser::parse() {
  NpyHeader header;
  bool seen[3] = {};
  if (!consume('{'))
    return bad("it is not a dictionary");
  while (!consume('}')) {
    StringRef key;
    if (!parseString(key) || !consume(':'))
      return bad("a key is not a string");
    const int which = StringSwitch<int>(key)
                          .Case("descr", 0)
                          .Case("fortran_order", 1)
                          .Case("shape", 2)
                          .Default(-1);
    if (which < 0 || seen[which])
      return bad(which < 0 ? "unknown key '" + key + "'"
                           : "key '" + key + "' twice");
    seen[which] = true;
    if (Error error = which == 0   ? parseDescr(header)
                      : which == 1 ? parseOrder(header)
                                   : parseShape(header))
      return std::move(error);
    if (!consume(',')) {
      if (!consume('}'))
        return bad("it does not end in '}'");
      break;
    }
  }
  if (!seen[0] || !seen[1] || !seen[2])
    return bad("it lacks descr, fortran_order or shape");
  skipBlanks();
  if (!rest.empty())
    return bad("text follows the dictionary");
  return header;
}

/// Reverses the bytes of each element.
static void swapElements(HostTensor &tensor) {
  const size_t size = size_t(dtypeSize(tensor.dtype()));
  char *at = static_cast<char *>(tensor.mutableRawData());
  for (int64_t i = 0; i < tensor.numElements(); ++i, at += size)
    std::reverse(at, at + size);
}

/// Elements stored first dimension fastest, made last dimension fastest.
static HostTensor fromFortranOrder(const HostTensor &stored) {
  HostTensor result(stored.dtype(), stored.shape());
  const size_t size = size_t(dtypeSize(stored.dtype()));
  const int64_t rank = stored.rank();
  std::vector<int64_t> index(size_t(rank), 0), stride(size_t(rank), 1);
  for (int64_t d = 1; d < rank; ++d)
    stride[size_t(d)] = stride[size_t(d - 1)] * stored.dim(d - 1);
  const char *source = static_cast<const char *>(stored.rawData());
  char *target = static_cast<char *>(result.mutableRawData());
  int64_t from = 0;
  for (int64_t i = 0; i < stored.numElements(); ++i, target += size) {
    std::memcpy(target, source + size_t(from) * size, size);
    for (int64_t d = rank - 1; d >= 0; --d) {
      from += stride[size_t(d)];
      if (++index[size_t(d)] < stored.dim(d))
        break;
      from -= stride[size_t(d)] * stored.dim(d);
      index[size_t(d)] = 0;
    }
  }
  return result;
}

Expected<HostTensor> parseNpy(StringRef bytes, StringRef what) {
  if (!bytes.starts_with("\x93NUMPY"))
    return inputError(what + ": not a .npy array (its first bytes are others)");
  if (bytes.size() < 10)
    return inputError(what + ": truncated .npy array: the header is missing");
  const unsigned major = uint8_t(bytes[6]), minor = uint8_t(bytes[7]);
  if (major < 1 || major > 3 || minor != 0)
    return inputError(what + ": .npy format " + Twine(major) + "." +
                      Twine(minor) +
                      " is not supported (1.0, 2.0 and 3.0 are)");
  const size_t start = major == 1 ? 10 : 12;
  if (bytes.size() < start)
    return inputError(what + ": truncated .npy array: the header is missing");
  const size_t length = major == 1
                            ? support::endian::read16le(bytes.data() + 8)
                            : support::endian::read32le(bytes.data() + 8);
  if (length > bytes.size() - start)
    return inputError(what + ": truncated .npy array: a header of " +
                      Twine(length) + " bytes is cut off");
  Expected<NpyHeader> header =
      HeaderParser(bytes.substr(start, length), what).parse();
  if (!header)
    return header.takeError();
  Expected<int64_t> count =
      checkedNumElements(header->shape, dtypeSize(header->dtype));
  if (!count)
    return withContext(count.takeError(), what);
  const uint64_t wanted = uint64_t(*count) * uint64_t(dtypeSize(header->dtype));
  const StringRef data = bytes.substr(start + length);
  if (data.size() != wanted)
    return inputError(what + ": " +
                      (data.size() < wanted ? "truncated .npy array: "
                                            : "bytes after the .npy array: ") +
                      dtypeName(header->dtype) + " " +
                      shapeString(header->shape) + " takes " + Twine(wanted) +
                      " bytes, the file has " + Twine(data.size()));
  HostTensor tensor(header->dtype, header->shape);
  if (wanted)
    std::memcpy(tensor.mutableRawData(), data.data(), data.size());
  if (header->dtype == DType::Bool) {
    // Any other byte would be no valid bool in C++.
    uint8_t *flags = static_cast<uint8_t *>(tensor.mutableRawData());
    for (int64_t i = 0; i < *count; ++i)
      flags[i] = flags[i] != 0;
  }
  if (header->swapped)
    swapElements(tensor);
  return header->fortranOrder ? fromFortranOrder(tensor) : tensor;
}

Expected<HostTensor> readNpy(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(
      path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return inputError("cannot read '" + path +
                      "': " + buffer.getError().message());
  return parseNpy((*buffer)->getBuffer(), path);
}

std::string npyHeader(DType dtype, ArrayRef<int64_t> shape) {
  static const char *const names[] = {"<f8", "<f4", "<f2", "<V2", "<i8",
                                      "<i4", "<i2", "|i1", "<u8", "<u4",
                                      "<u2", "|u1", "|b1"};
  std::string text = std::string("{'descr': '") + names[unsigned(dtype)] +
                     "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  text += shape.size() == 1 ? ",), }" : "), }";
  // The data starts at a multiple of 64 bytes.
  const bool large = text.size() + 10 + 64 > 65535;
  const size_t prefix = large ? 12 : 10;
  text.append(63 - (prefix + text.size()) % 64, ' ');
  text += '\n';
  std::string result("\x93NUMPY", 6);
  result += char(large ? 2 : 1);
  result += '\0';
  for (size_t i = 0; i < prefix - 8; ++i)
    result += char((text.size() >> (8 * i)) & 0xff);
  return result + text;
}

Error writeNpy(StringRef path, const HostTensor &tensor) {
  return writeFileAtomically(path, [&](AtomicFile &file) -> Error {
    if (Error error = file.write(npyHeader(tensor.dtype(), tensor.shape())))
      return error;
    return file.write(tensor.rawData(), size_t(tensor.sizeInBytes()));
  });
}

} // namespace ckopt
