#include "checkpoint/format/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "checkpoint/world.h"

namespace shardrec::checkpoint {
namespace {

// A file that the safetensors package 0.8.0 for Python wrote: {"b": float32 [[1.5, -2], [0.25, 3]],
// "i": int64 [7, -1], "empty": float32 of shape (0, 3), "s": float64 4}, with metadata.
std::string recorded() {
  std::string out("\x08\x01\0\0\0\0\0\0", 8);
  out +=
      R"({"__metadata__":{"made":"by hand"},"i":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
      R"("s":{"dtype":"F64","shape":[],"data_offsets":[16,24]},)"
      R"("b":{"dtype":"F32","shape":[2,2],"data_offsets":[24,40]},)"
      R"("empty":{"dtype":"F32","shape":[0,3],"data_offsets":[40,40]}}   )";
  out += std::string("\x07\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 16);
  out += std::string("\0\0\0\0\0\0\x10@", 8);
  out += std::string("\0\0\xc0?\0\0\0\xc0\0\0\x80>\0\0@@", 16);
  return out;
}

class TextFile final : public core::ReadFile {
 public:
  explicit TextFile(std::string text) : text_(std::move(text)) {}
  int64_t size() const override { return std::ssize(text_); }
  void read_at(int64_t offset, std::span<std::byte> out) const override {
    ASSERT_LE(offset + std::ssize(out), std::ssize(text_));
    std::memcpy(out.data(), text_.data() + offset, out.size());
  }

 private:
  std::string text_;
};

SafetensorsHeader parse(const std::string& text) {
  return read_safetensors_header(TextFile(text), "file");
}

std::string file_of(const std::string& header, size_t data_bytes) {
  std::string out;
  for (size_t i = 0; i < 8; ++i) out += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return out + header + std::string(data_bytes, 'x');
}

void expect_corrupt(const std::string& text, const std::string& part = "") {
  const auto error = comm::error_of([&] { parse(text); });
  ASSERT_TRUE(error.has_value()) << text.substr(0, 200);
  EXPECT_EQ(error->status(), SHARDREC_CORRUPT_DATA) << error->sentence();
  EXPECT_NE(error->sentence().find(part), std::string::npos) << error->sentence();
}

TEST(SafetensorsHeader, ReadsWhatTheReferenceLibraryWrites) {
  const SafetensorsHeader header = parse(recorded());
  EXPECT_EQ(header.data_start, 272);
  EXPECT_EQ(header.tensors, (std::vector<TensorInfo>{{"i", "I64", {2}, 0, 16},
                                                     {"s", "F64", {}, 16, 24},
                                                     {"b", "F32", {2, 2}, 24, 40},
                                                     {"empty", "F32", {0, 3}, 40, 40}}));
}

TEST(SafetensorsHeader, ReadsBackWhatIsWrittenAtAnAlignedStart) {
  std::vector<TensorInfo> tensors = {{.name = "t/weights/0_0", .dtype = "F32", .shape = {3, 5}},
                                     {.name = "\"\\\xe8\xa1\xa8", .dtype = "F32", .shape = {0}},
                                     {.name = "z", .dtype = "U8", .shape = {7}}};
  const std::string front = make_safetensors_header(tensors);
  EXPECT_EQ(front.size() % 64, 0U);
  EXPECT_EQ(tensors[2].begin, 60);
  EXPECT_EQ(tensors[2].end, 67);
  const SafetensorsHeader header = parse(front + std::string(67, 'x'));
  EXPECT_EQ(header.tensors, tensors);
  EXPECT_EQ(header.data_start, std::ssize(front));
}

TEST(SafetensorsHeader, ReadsAFileWithoutTensors) {
  EXPECT_TRUE(parse(file_of("{}", 0)).tensors.empty());
  EXPECT_TRUE(parse(file_of("{\"__metadata__\": {}}  ", 0)).tensors.empty());
}

TEST(SafetensorsHeader, TakesTheByteWidthOfEveryDtypeOfTheFormat) {
  const std::vector<std::pair<std::string, int64_t>> widths = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},     {"U32", 4},
      {"F32", 4},  {"I64", 8}, {"U64", 8}, {"F64", 8},     {"C64", 8}};
  for (const auto& [dtype, width] : widths) {
    EXPECT_EQ(tensor_bytes(dtype, {3, 5}, "x"), 15 * width) << dtype;
  }
  EXPECT_EQ(tensor_bytes("F4", {2, 3}, "x"), 3);
  EXPECT_EQ(tensor_bytes("F6_E2M3", {4}, "x"), 3);
}

TEST(SafetensorsHeader, RefusesHolesOverlapsAndTails) {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}";
  };
  EXPECT_EQ(parse(file_of(two("[4,8]", "[0,4]"), 8)).tensors.size(), 2U);
  expect_corrupt(file_of(two("[0,4]", "[5,9]"), 9), "holes");
  expect_corrupt(file_of(two("[0,4]", "[3,7]"), 7), "holes and overlaps");
  expect_corrupt(file_of(two("[0,4]", "[0,4]"), 4), "holes and overlaps");
  expect_corrupt(file_of(two("[1,5]", "[5,9]"), 9), "begins at byte 1");
  expect_corrupt(file_of(two("[0,4]", "[4,8]"), 9), "holds 9 bytes");
  expect_corrupt(file_of(two("[0,4]", "[4,8]"), 7), "holds 7 bytes");
  expect_corrupt(file_of(two("[0,4]", "[4,9]"), 9), "its shape takes 4");
  expect_corrupt(file_of(two("[4,0]", "[4,8]"), 8));
}

TEST(SafetensorsHeader, RefusesMalformedTensors) {
  const auto one = [](const std::string& tensor) { return file_of("{\"a\":" + tensor + "}", 4); };
  parse(one(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})"));
  for (const std::string& tensor : std::vector<std::string>{
           R"({"dtype":"U9","shape":[4],"data_offsets":[0,4]})",
           R"({"dtype":8,"shape":[4],"data_offsets":[0,4]})",
           R"({"dtype":"U8","shape":4,"data_offsets":[0,4]})",
           R"({"dtype":"U8","shape":[4.0],"data_offsets":[0,4]})",
           R"({"dtype":"U8","shape":[-4],"data_offsets":[0,4]})",
           R"({"dtype":"U8","shape":["4"],"data_offsets":[0,4]})",
           R"({"dtype":"U8","shape":[[4]],"data_offsets":[0,4]})",
           R"({"dtype":"U8","shape":[4],"data_offsets":[0]})",
           R"({"dtype":"U8","shape":[4],"data_offsets":[0,4,4]})",
           R"({"dtype":"U8","shape":[4],"data_offsets":[0,4e0]})",
           R"({"dtype":"U8","shape":[4],"data_offsets":[-0.0,4]})",
           R"({"dtype":"U8","shape":[4],"data_offsets":[0,18446744073709551615]})",
           R"({"dtype":"U8","shape":[4],"data_offsets":[0,18446744073709551620]})",
           R"({"dtype":"U8","shape":[4]})",
           R"({"dtype":"U8","data_offsets":[0,4]})",
           R"({"shape":[4],"data_offsets":[0,4]})",
           R"({"dtype":"U8","shape":[4],"data_offsets":[0,4],"more":1})",
           R"({"dtype":"U8","shape":[4],"shape":[4],"data_offsets":[0,4]})",
           R"({"dtype":"U8","shape":[4294967296,4294967296,4],"data_offsets":[0,4]})",
           R"({"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,4]})",
           R"({"dtype":"F4","shape":[7],"data_offsets":[0,4]})",
           R"([])",
           R"(null)",
           R"(4)"}) {
    expect_corrupt(one(tensor));
  }
}

TEST(SafetensorsHeader, RefusesMalformedHeaders) {
  for (
      const std::string& header : std::vector<std::string>{
          "", "{", "[]", " {}", "{}{}", "null", "{\"a\":}", "\xef\xbb\xbf{}",
          R"({"__metadata__":[]})", R"({"__metadata__":{"a":1}})", R"({"__metadata__":null})",
          R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
          "{\"\xff\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
          "{\"a\":" + std::string(200000, '[') + "}"}) {
    expect_corrupt(file_of(header, 0));
  }
}

TEST(SafetensorsHeader, ChecksTheSizeBeforeItAllocates) {
  for (const uint64_t claimed : {uint64_t{3}, uint64_t{100'000'000}, uint64_t{100'000'001},
                                 uint64_t{1} << 40, uint64_t{1} << 63, UINT64_MAX}) {
    std::string text(8, '\0');
    std::memcpy(text.data(), &claimed, 8);
    expect_corrupt(text + "{}");
  }
  for (size_t size = 0; size < 8; ++size) expect_corrupt(std::string(size, '\0'), "too few");
}

TEST(SafetensorsHeader, DetectsEveryTruncationAndExtension) {
  const std::string good = recorded();
  for (size_t size = 0; size < good.size(); ++size) expect_corrupt(good.substr(0, size));
  expect_corrupt(good + "x");
}

TEST(SafetensorsHeader, SurvivesRandomDamage) {
  std::mt19937 random(3);
  const std::string good = recorded();
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    text[random() % 280] = static_cast<char>(random());
    const auto error = comm::error_of([&] {
      const SafetensorsHeader header = parse(text);
      EXPECT_EQ(header.tensors.back().end, std::ssize(text) - header.data_start);
    });
    if (error) {
      ASSERT_EQ(error->status(), SHARDREC_CORRUPT_DATA) << error->sentence();
    }
  }
}

}  // namespace
}  // namespace shardrec::checkpoint
