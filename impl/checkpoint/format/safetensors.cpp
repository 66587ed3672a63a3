#include "checkpoint/format/safetensors.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "core/error.h"
#include "core/json.h"

namespace shardrec::checkpoint {

namespace {

using core::fail;
using core::JsonDocument;
using core::JsonValue;
using core::JsonWriter;
using core::sentence;

constexpr int64_t kSizeBytes = 8;
constexpr int64_t kAlignment = 64;

struct Dtype {
  const char* name;
  int64_t bits;
};

constexpr auto kDtypes = std::to_array<Dtype>({
    {"BOOL", 8},        {"U8", 8},      {"I8", 8},      {"F4", 4},      {"F6_E2M3", 6},
    {"F6_E3M2", 6},     {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},    {"F32", 32},    {"I64", 64},    {"U64", 64},
    {"F64", 64},        {"C64", 64},
});

TensorInfo read_tensor(const JsonValue& json) {
  json.expect_keys({"dtype", "shape", "data_offsets"});
  TensorInfo tensor;
  tensor.name = json.key();
  tensor.dtype = json.at("dtype").text();
  const JsonValue shape = json.at("shape");
  tensor.shape.reserve(static_cast<size_t>(shape.array_size()));
  for (auto size = shape.first(); size; size = size->next()) {
    tensor.shape.push_back(size->integer(0, INT64_MAX));
  }
  const JsonValue offsets = json.at("data_offsets");
  if (offsets.array_size() != 2) offsets.fail("two offsets are expected");
  tensor.begin = offsets.first()->integer(0, INT64_MAX);
  tensor.end = offsets.first()->next()->integer(tensor.begin, INT64_MAX);
  return tensor;
}

void check_metadata(const JsonValue& json) {
  (void)json.object_size();
  for (auto member = json.first(); member; member = member->next()) (void)member->text();
}

// No hole, no overlap, no tail; every range as long as its elements.
void check_ranges(const std::vector<TensorInfo>& tensors, int64_t data_bytes,
                  const std::string& path) {
  int64_t end = 0;
  for (const TensorInfo& tensor : tensors) {
    const std::string where = sentence("tensor \"", tensor.name, "\" of ", path);
    if (tensor.begin != end) {
      fail(SHARDREC_CORRUPT_DATA,
           sentence(where, " begins at byte ", tensor.begin, " of the data, where ", end,
                    " is expected: holes and overlaps are not allowed"),
           {.position = tensor.begin, .path = path});
    }
    const int64_t bytes = tensor_bytes(tensor.dtype, tensor.shape, where);
    if (tensor.end - tensor.begin != bytes) {
      fail(SHARDREC_CORRUPT_DATA,
           sentence(where, " spans ", tensor.end - tensor.begin, " bytes; its shape takes ", bytes),
           {.position = tensor.begin, .path = path});
    }
    end = tensor.end;
  }
  if (end != data_bytes) {
    fail(SHARDREC_CORRUPT_DATA,
         sentence("the file ", path, " holds ", data_bytes, " bytes of data; its tensors take ",
                  end),
         {.path = path});
  }
}

}  // namespace

int64_t tensor_bytes(const std::string& dtype, const std::vector<int64_t>& shape,
                     const std::string& where) {
  const auto known = std::find_if(kDtypes.begin(), kDtypes.end(),
                                  [&](const Dtype& entry) { return entry.name == dtype; });
  if (known == kDtypes.end()) {
    fail(SHARDREC_CORRUPT_DATA, sentence(where, " has an unknown dtype \"", dtype, "\""));
  }
  int64_t bits = known->bits;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bits, size, &bits)) {
      fail(SHARDREC_CORRUPT_DATA, sentence(where, " has a shape beyond 2^63 bits"));
    }
  }
  if (bits % 8 != 0) {
    fail(SHARDREC_CORRUPT_DATA, sentence(where, " does not fill whole bytes"));
  }
  return bits / 8;
}

const char* safetensors_dtype(shardrec_dtype dtype) noexcept {
  switch (dtype) {
    case SHARDREC_FLOAT16:
      return "F16";
    case SHARDREC_BFLOAT16:
      return "BF16";
    case SHARDREC_FLOAT64:
      return "F64";
    case SHARDREC_INT32:
      return "I32";
    case SHARDREC_INT64:
      return "I64";
    case SHARDREC_UINT8:
      return "U8";
    default:
      return "F32";
  }
}

SafetensorsHeader read_safetensors_header(const core::ReadFile& file, const std::string& path,
                                          int64_t most) {
  most = std::min(most, kMostHeaderBytes);
  if (file.size() < kSizeBytes) {
    fail(
        SHARDREC_CORRUPT_DATA,
        sentence("the file ", path, " has ", file.size(), " bytes, too few for a safetensors file"),
        {.path = path});
  }
  std::array<std::byte, kSizeBytes> size_bytes = {};
  file.read_at(0, size_bytes);
  uint64_t header_bytes = 0;
  for (size_t i = kSizeBytes; i-- > 0;) {
    header_bytes = header_bytes << 8 | std::to_integer<uint64_t>(size_bytes[i]);
  }
  if (header_bytes > static_cast<uint64_t>(std::min(most, file.size() - kSizeBytes))) {
    fail(
        SHARDREC_CORRUPT_DATA,
        sentence("the file ", path, " of ", file.size(), " bytes claims a header of ", header_bytes,
                 " bytes; a header ends with the file at the latest and has at most ", most,
                 " bytes here"),
        {.path = path});
  }
  std::string text(static_cast<size_t>(header_bytes), '\0');
  file.read_at(kSizeBytes, std::as_writable_bytes(std::span(text)));
  if (!text.starts_with('{')) {
    fail(SHARDREC_CORRUPT_DATA, sentence("the header of ", path, " does not begin with '{'"),
         {.path = path});
  }
  const JsonDocument document(text, path, SHARDREC_CORRUPT_DATA, path);

  SafetensorsHeader header;
  header.data_start = kSizeBytes + static_cast<int64_t>(header_bytes);
  const JsonValue root = document.root();
  (void)root.object_size();
  for (auto member = root.first(); member; member = member->next()) {
    if (member->key() == "__metadata__") {
      check_metadata(*member);
      header.has_metadata = true;
    } else {
      header.tensors.push_back(read_tensor(*member));
    }
  }
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const TensorInfo& a, const TensorInfo& b) {
              return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
            });
  check_ranges(header.tensors, file.size() - header.data_start, path);
  return header;
}

std::string make_safetensors_header(std::vector<TensorInfo>& tensors, size_t* checksum_digits) {
  JsonWriter json;
  json.begin_object();
  if (checksum_digits != nullptr) {
    json.key("__metadata__").begin_object();
    json.key(kChecksumKey).text(std::string(kChecksumDigits, '0'));
    json.end_object();
    *checksum_digits = static_cast<size_t>(kSizeBytes) + json.str().size() - 2 - kChecksumDigits;
  }
  int64_t end = 0;
  for (TensorInfo& tensor : tensors) {
    tensor.begin = end;
    end += tensor_bytes(tensor.dtype, tensor.shape, sentence("tensor \"", tensor.name, "\""));
    tensor.end = end;
    json.key(tensor.name).begin_object();
    json.key("dtype").text(tensor.dtype);
    json.key("shape").begin_array();
    for (const int64_t size : tensor.shape) json.integer(size);
    json.end_array();
    json.key("data_offsets").begin_array().integer(tensor.begin).integer(tensor.end).end_array();
    json.end_object();
  }
  json.end_object();
  std::string text = json.take();
  while ((kSizeBytes + std::ssize(text)) % kAlignment != 0) text += ' ';
  if (std::ssize(text) > kMostHeaderBytes) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("the header of a file of ", tensors.size(), " tensors takes ", text.size(),
                  " bytes; the format allows ", kMostHeaderBytes));
  }
  std::string out;
  for (int i = 0; i < kSizeBytes; ++i) {
    out += static_cast<char>(text.size() >> (8 * i) & 0xFF);
  }
  return out + text;
}

}  // namespace shardrec::checkpoint
