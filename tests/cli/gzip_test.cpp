// Compressed click logs: read as the text they hold, whatever they are called; damage is an error
// that names the file and the byte.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.h"
#include "command/user_error.h"
#include "data/click_log.h"
#include "data/line_reader.h"
#include "data/line_sink.h"

namespace shardrec::cli::test {
namespace {

// One member of a gzip file.
std::string compressed(const std::string& text) {
  const Scratch scratch;
  const std::string path = scratch.path("member.gz");
  LineSink sink(path);
  sink.write(text);
  sink.finish();
  return read_file(path);
}

// Every line of a file with "\n" behind it, or what the error says.
std::string text_of(const std::string& path) {
  try {
    LineReader reader(path);
    std::string all;
    for (std::string_view line; reader.next(line);) (all += line) += '\n';
    EXPECT_DOUBLE_EQ(reader.fraction(), all.empty() ? 0.0 : 1.0);
    return all;
  } catch (const UserError& error) {
    return error.what();
  }
}

std::string numbers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += std::to_string(int64_t{7919} * i) + " and some text\n";
  return text;
}

TEST(Gzip, IsReadAsTheTextItHoldsWhateverTheFileIsCalled) {
  const Scratch scratch;
  const std::string text = numbers(400000);  // more than a block of either kind
  const std::string bytes = compressed(text);
  ASSERT_LT(bytes.size(), text.size() / 2);
  scratch.write("log.tsv", bytes);
  EXPECT_EQ(text_of(scratch.path("log.tsv")), text);
  scratch.write("text.gz", text);  // and text in a file that is called .gz
  EXPECT_EQ(text_of(scratch.path("text.gz")), text);
}

TEST(Gzip, MembersThatFollowEachOtherAreOneText) {
  const Scratch scratch;
  scratch.write("log", compressed("one\ntw") + compressed("") + compressed("o\nthree\n"));
  EXPECT_EQ(text_of(scratch.path("log")), "one\ntwo\nthree\n");
  scratch.write("nothing", compressed(""));
  EXPECT_EQ(text_of(scratch.path("nothing")), "");
}

TEST(Gzip, AFileThatIsCutShortIsAnErrorWithItsNameAndTheByte) {
  const Scratch scratch;
  const std::string bytes = compressed(numbers(20));
  for (size_t size = 2; size < bytes.size(); ++size) {
    scratch.write("log", bytes.substr(0, size));
    EXPECT_EQ(text_of(scratch.path("log")),
              scratch.path("log") + ", byte " + std::to_string(size) +
                  ": the file ends in the middle of its gzip data; it was cut short.");
  }
  scratch.write("log", bytes + bytes.substr(0, bytes.size() - 1));  // in its second member
  EXPECT_NE(text_of(scratch.path("log")).find("cut short"), std::string::npos);
}

TEST(Gzip, ADamagedByteIsAnErrorWithItsNameAndTheByte) {
  const Scratch scratch;
  const std::string bytes = compressed(numbers(20));
  constexpr size_t kHeader = 10;  // holds a time and a system that nothing checks
  for (size_t at = kHeader; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    scratch.write("log", damaged);
    const std::string said = text_of(scratch.path("log"));
    EXPECT_TRUE(said.starts_with(scratch.path("log") + ", byte ")) << at << ": " << said;
  }
  scratch.write("log", bytes + "and more");
  EXPECT_EQ(text_of(scratch.path("log")),
            scratch.path("log") + ", byte " + std::to_string(bytes.size()) +
                ": behind the end of its gzip data there are bytes that are not gzip data.");
}

TEST(Gzip, OtherCompressionIsNamed) {
  const Scratch scratch;
  scratch.write("log", "\x28\xb5\x2f\xfd and so on");
  EXPECT_NE(text_of(scratch.path("log")).find("is compressed with zstd"), std::string::npos);
}

TEST(Gzip, GenerateWritesItAndTrainReadsTheSameSamples) {
  const Scratch scratch;
  for (const char* name : {"log.tsv", "log.tsv.gz", "again.gz"}) {
    ASSERT_EQ(run({"generate", "--rows", "2000", "--output", scratch.path(name)}).exit_code, 0);
  }
  EXPECT_EQ(read_file(scratch.path("log.tsv.gz")), read_file(scratch.path("again.gz")));
  EXPECT_EQ(text_of(scratch.path("log.tsv.gz")), read_file(scratch.path("log.tsv")));

  const auto losses = [&](const std::string& name) {
    const Finished result = run({"train", "--format", "criteo", "--data", scratch.path(name),
                                 "--batch", "64", "--threads", "1", "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.json().at("first_losses");
  };
  const auto expected = losses("log.tsv");
  EXPECT_EQ(losses("log.tsv.gz"), expected);
  // Compressed by somebody else: the tables' sizes are still those that were generated.
  std::filesystem::remove(scratch.path("log.tsv.gz.meta.json"));
  EXPECT_EQ(losses("log.tsv.gz"), expected);
}

TEST(Gzip, TrainSaysWhereADamagedLogEnds) {
  const Scratch scratch;
  const std::string path = scratch.path("log.gz");
  ASSERT_EQ(run({"generate", "--rows", "2000", "--output", path}).exit_code, 0);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const Finished result = run({"train", "--format", "criteo", "--data", path, "--ranks", "2"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find(path + ", byte "), std::string::npos) << result.err;
}

TEST(Gzip, MovielensFindsItsSideFilesCompressedOrNot) {
  const Scratch scratch;
  const std::string ratings = "user_id:token\titem_id:token\trating:float\n7\t1\t4\n8\t2\t1\n";
  const std::string users =
      "user_id:token\tage:token\tgender:token\toccupation:token\tzip_code:token\n"
      "7\t24\tM\twriter\t85711\n";
  const std::string items =
      "item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq\n"
      "1\tToy\t1995\tComedy\n";
  scratch.write("ml.inter.gz", compressed(ratings));
  scratch.write("ml.user.gz", compressed(users));
  scratch.write("ml.item", items);
  const auto log =
      open_movielens({.paths = {scratch.path("ml.inter.gz")}, .tolerance = {.strict = true}});
  EXPECT_EQ(log->schema().features.size(), 8u);
  EXPECT_EQ(log->schema().features[0].rows, 3);
}

}  // namespace
}  // namespace shardrec::cli::test
