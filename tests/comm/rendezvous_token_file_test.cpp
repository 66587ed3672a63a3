// Which files of a token are trusted.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "comm/rendezvous/client/token_file.h"
#include "rendezvous.h"

namespace shardrec::comm::rendezvous {
namespace {

// A token file as it is to be, in a folder of its own.
class TrustedFile : public testing::Test {
 protected:
  TrustedFile() {
    std::string pattern = (std::filesystem::temp_directory_path() / "shardrec_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "no temporary directory";
    folder_ = pattern;
    path_ = (folder_ / "meeting").string();
    std::ofstream(path_) << token_.text() << "\n";
    set_mode(0600);
  }
  ~TrustedFile() override { std::filesystem::remove_all(folder_); }

  void set_mode(mode_t mode) const { ASSERT_EQ(::chmod(path_.c_str(), mode), 0); }
  void expect_refused(const std::string& path, const std::string& why) const {
    const auto error = error_of([&] { static_cast<void>(read_token_file(path)); });
    ASSERT_TRUE(error) << why;
    EXPECT_EQ(error->status(), SHARDREC_INVALID_ARGUMENT) << error->sentence();
    EXPECT_SAYS(*error, path);
    EXPECT_SAYS(*error, why);
    EXPECT_EQ(error->sentence().find(token_.secret), std::string::npos) << "it tells the secret";
  }

  const Token token_{.host = "127.0.0.1", .port = 4711, .job = "j", .secret = "0123456789abcdef"};
  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(TrustedFile, IsReadWhereOnlyItsOwnerMayWriteToIt) {
  for (const mode_t mode : {0600U, 0400U, 0644U}) {
    set_mode(mode);
    const auto token = read_token_file(path_);
    ASSERT_TRUE(token);
    EXPECT_EQ(token->text(), token_.text());
  }
}

TEST_F(TrustedFile, IsRefusedWhereOthersMayWriteToIt) {
  for (const mode_t mode : {0620U, 0602U, 0666U}) {
    set_mode(mode);
    expect_refused(path_, "may be written to by other users");
  }
}

TEST_F(TrustedFile, OfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  constexpr uid_t kOther = 12345;
  ASSERT_EQ(::chown(path_.c_str(), kOther, kOther), 0);
  expect_refused(path_, "belongs to the user with the number 12345");
  // To that user root's files are as good as its own.
  ASSERT_EQ(::chown(path_.c_str(), 0, 0), 0);
  set_mode(0644);
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  ASSERT_EQ(::seteuid(kOther), 0);
  const auto token = error_of([&] { EXPECT_TRUE(read_token_file(path_)); });
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_FALSE(token) << token->sentence();
}

TEST_F(TrustedFile, IsNoLinkAndNoPipe) {
  const std::string link = (folder_ / "link").string();
  std::filesystem::create_symlink(path_, link);
  expect_refused(link, "is a symbolic link");
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_refused(pipe, "is no regular file");  // and not waited for
  expect_refused(folder_.string(), "is no regular file");
}

TEST_F(TrustedFile, IsWrittenUnderAnotherNameFirstAndThenPutInPlace) {
  const std::string other = (folder_ / "other").string();
  std::filesystem::create_symlink(path_, other);
  {
    // What is in the way, here a link to a file of somebody else's, is replaced and not written to.
    const TokenFile file(
        other, {.host = "127.0.0.1", .port = 1, .job = "new", .secret = "fedcba9876543210"});
    struct stat about{};
    ASSERT_EQ(::lstat(other.c_str(), &about), 0);
    EXPECT_TRUE(S_ISREG(about.st_mode));
    EXPECT_EQ(about.st_mode & 0777U, 0600U);
    EXPECT_EQ(read_token_file(other)->job, "new");
  }
  EXPECT_EQ(read_token_file(path_)->job, "j");
}

}  // namespace
}  // namespace shardrec::comm::rendezvous
