// `shardrec probe`: what it prints, and what it keeps.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.h"

namespace shardrec::cli::test {
namespace {

TEST(ProbeCommand, KeepsWhatItMeasured) {
  if (SHARDREC_SANITIZED != 0) GTEST_SKIP() << "half a GiB of table is too much for the sanitizers";
  const Scratch scratch;
  setenv("SHARDREC_CACHE_DIR", scratch.path("cache").c_str(), 1);
  const Finished none = run({"probe", "--cached"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.err.find("NOT_FOUND"), std::string::npos) << none.err;
  const Finished measured = run({"probe", "--threads", "1", "--json"});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  EXPECT_EQ(measured.err, "");
  EXPECT_EQ(measured.json().at("rows").size(), 15U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path("cache")), {}), 1);
  const Finished kept = run({"probe", "--cached", "--json"});
  ASSERT_EQ(kept.exit_code, 0) << kept.err;
  EXPECT_EQ(kept.json(), measured.json());
  const Finished table = run({"probe", "--cached"});
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_NE(table.out.find("row bytes"), std::string::npos) << table.out;
  EXPECT_EQ(std::count(table.out.begin(), table.out.end(), '\n'), 2 + 1 + 2 + 15 + 2);
  unsetenv("SHARDREC_CACHE_DIR");
}

}  // namespace
}  // namespace shardrec::cli::test
