#include "core/environment.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"

namespace shardrec::core {
namespace {

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "shardrec-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string path(const std::string& name) const { return join_path(root_, name); }
  static std::span<const std::byte> bytes(const std::string& text) {
    return std::as_bytes(std::span(text));
  }
  template <class Work>
  static Error error_of(const Work& work) {
    try {
      work();
    } catch (const Error& error) {
      return error;
    }
    return {SHARDREC_OK, ""};
  }

  Environment& environment_ = default_environment();
  std::string root_;
};

TEST_F(Files, ReadBackWhatWasWrittenInPieces) {
  const auto file = environment_.create(path("a"));
  file->append(bytes("hello "));
  file->append({});
  file->append(bytes("world"));
  file->sync();
  file->close();
  EXPECT_EQ(read_text_file(environment_, path("a"), 11), "hello world");
  std::string part(3, ' ');
  environment_.open(path("a"))->read_at(4, std::as_writable_bytes(std::span(part)));
  EXPECT_EQ(part, "o w");
}

TEST_F(Files, ThatAreMissingShortOrTooLargeAreTold) {
  const Error missing = error_of([&] { environment_.open(path("none")); });
  EXPECT_EQ(missing.status(), SHARDREC_NOT_FOUND);
  EXPECT_EQ(missing.parts().path, path("none"));
  write_file_atomically(environment_, root_, "a", bytes("12345"));
  const Error ended = error_of([&] {
    std::string out(4, ' ');
    environment_.open(path("a"))->read_at(3, std::as_writable_bytes(std::span(out)));
  });
  EXPECT_EQ(ended.status(), SHARDREC_CORRUPT_DATA);
  EXPECT_EQ(error_of([&] { read_text_file(environment_, path("a"), 4); }).status(),
            SHARDREC_CORRUPT_DATA);
  EXPECT_EQ(error_of([&] { environment_.open(root_); }).status(), SHARDREC_IO_ERROR);
  EXPECT_EQ(error_of([&] { environment_.create(path("none/b")); }).status(), SHARDREC_IO_ERROR);
  EXPECT_EQ(error_of([&] { environment_.list(path("none")); }).status(), SHARDREC_NOT_FOUND);
  EXPECT_EQ(error_of([&] { environment_.make_directories(path("a")); }).status(),
            SHARDREC_IO_ERROR);
  EXPECT_FALSE(environment_.exists(path("a/below")));
}

TEST_F(Files, WrittenAtomicallyReplaceTheOldOneOrLeaveIt) {
  write_file_atomically(environment_, root_, "a", bytes("old"));
  write_file_atomically(environment_, root_, "a", bytes("new"));
  EXPECT_EQ(read_text_file(environment_, path("a"), 100), "new");
  EXPECT_EQ(environment_.list(root_), (std::vector<std::string>{"a"}));
  // A directory in its place cannot be replaced.
  environment_.make_directories(path("b/c"));
  EXPECT_EQ(error_of([&] { write_file_atomically(environment_, root_, "b", bytes("x")); }).status(),
            SHARDREC_IO_ERROR);
  EXPECT_EQ(environment_.list(root_), (std::vector<std::string>{"a", "b"}));
}

TEST_F(Files, CanBeRemovedTwice) {
  write_file_atomically(environment_, root_, "a", bytes("x"));
  environment_.remove(path("a"));
  environment_.remove(path("a"));
  EXPECT_FALSE(environment_.exists(path("a")));
}

}  // namespace
}  // namespace shardrec::core
