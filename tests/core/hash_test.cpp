#include "core/hash.h"

#include <gtest/gtest.h>

#include <string>

namespace shardrec::core {
namespace {

// Vectors of the reference implementation's self-test and of its command line tool.
TEST(Hash64, IsXxh3) {
  EXPECT_EQ(hash64(0, ""), 0x2D06800538D394C2U);
  EXPECT_EQ(hash64(0, "a"), 0xE6C632B61E964E1FU);
  EXPECT_EQ(hash64(0, "abc"), 0x78AF5F94892F3950U);
}

TEST(Hash64, OfPiecesIsThatOfTheWhole) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 7);
  for (const size_t cut : {size_t{0}, size_t{1}, size_t{240}, size_t{1024}, text.size()}) {
    StreamingHash hash;
    hash.update(std::as_bytes(std::span(text).first(cut)));
    hash.update(std::as_bytes(std::span(text).subspan(cut)));
    EXPECT_EQ(hash.digest(), hash64(0, text));
  }
  EXPECT_NE(hash64(1, text), hash64(0, text));
}

}  // namespace
}  // namespace shardrec::core
