// The arrays of recorded cases: what a file must hold to be read, and what it is refused for.
#include "data/safetensors.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "command.h"
#include "command/user_error.h"

namespace shardrec::cli::test {
namespace {

class SafetensorsFile : public testing::Test {
 protected:
  // Writes a file of this header and so many bytes of data, 0, 1, 2, ...
  std::string file(const std::string& header, size_t data) {
    const uint64_t length = header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    bytes += header;
    for (size_t i = 0; i < data; ++i) bytes += static_cast<char>(i);
    scratch_.write("arrays.safetensors", bytes);
    return scratch_.path("arrays.safetensors");
  }
  // The sentence of the refusal; empty: it was read.
  std::string refusal(const std::string& header, size_t data) {
    try {
      const Safetensors arrays(file(header, data));
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }
  Scratch scratch_;
};

TEST_F(SafetensorsFile, ArraysAreCopiedByNameAndDtype) {
  const Safetensors arrays(file(R"({"__metadata__": {"a": "b"},
      "ids": {"dtype": "I64", "shape": [2], "data_offsets": [4, 20]},
      "one": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
      "none": {"dtype": "F32", "shape": [0, 3], "data_offsets": [20, 20]}})",
                                20));
  EXPECT_TRUE(arrays.has("ids"));
  EXPECT_FALSE(arrays.has("__metadata__"));
  EXPECT_EQ(arrays.integers("ids", 2),
            (std::vector<int64_t>{0x0b0a090807060504, 0x131211100f0e0d0c}));
  float expected = 0;
  std::memcpy(&expected, "\0\1\2\3", 4);
  EXPECT_EQ(arrays.floats("one", 1), std::vector<float>{expected});
  EXPECT_TRUE(arrays.floats("none", 0).empty());
  EXPECT_THROW((void)arrays.floats("ids", 2), UserError);
  EXPECT_THROW((void)arrays.integers("ids", 3), UserError);
  EXPECT_THROW((void)arrays.integers("other", 2), UserError);
}

TEST_F(SafetensorsFile, SizesThatDoNotFitAreRefused) {
  const auto array = [](const std::string& dtype, const std::string& shape,
                        const std::string& offsets) {
    return R"({"x": {"dtype": ")" + dtype + R"(", "shape": )" + shape + R"(, "data_offsets": )" +
           offsets + "}}";
  };
  EXPECT_EQ(refusal(array("F32", "[2]", "[0, 8]"), 8), "");
  EXPECT_NE(refusal(array("F32", "[3]", "[0, 8]"), 8), "");
  EXPECT_NE(refusal(array("F32", "[2]", "[0, 8]"), 4), "");
  EXPECT_NE(refusal(array("F32", "[2]", "[0, 8]"), 9).find("behind the last"), std::string::npos);
  EXPECT_NE(refusal(array("F32", "[2]", "[4, 12]"), 12).find("hole"), std::string::npos);
  EXPECT_NE(refusal(array("F32", "[2]", "[8, 0]"), 8), "");
  EXPECT_NE(refusal(array("F32", "[-2]", "[0, 8]"), 8), "");
  EXPECT_NE(refusal(array("F32", "[4294967296, 4294967296]", "[0, 0]"), 0).find("does not fit"),
            std::string::npos);
  EXPECT_NE(refusal(array("F32", "[9223372036854775807]", "[0, 8]"), 8), "");
  EXPECT_NE(refusal(array("F31", "[2]", "[0, 8]"), 8).find("F31"), std::string::npos);
  EXPECT_NE(refusal(array("F32", "[2]", "[0]"), 8), "");
  EXPECT_NE(refusal(array("F32", "2", "[0, 8]"), 8).find("bad header"), std::string::npos);
  EXPECT_NE(refusal("{", 0).find("bad header"), std::string::npos);
  EXPECT_NE(refusal(R"({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
                        "y": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})",
                    4)
                .find("overlap"),
            std::string::npos);
}

TEST_F(SafetensorsFile, AHeaderLongerThanTheFileIsRefusedBeforeMemoryIsTaken) {
  for (const std::string& bytes :
       {std::string(), std::string(7, '\0'), std::string(8, '\xff') + "{}",
        std::string("\x03\0\0\0\0\0\0\0{}", 10),
        std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8)}) {
    scratch_.write("arrays.safetensors", bytes);
    EXPECT_THROW(Safetensors(scratch_.path("arrays.safetensors")), UserError) << bytes.size();
  }
  EXPECT_THROW(Safetensors(scratch_.path("absent")), UserError);
}

}  // namespace
}  // namespace shardrec::cli::test
