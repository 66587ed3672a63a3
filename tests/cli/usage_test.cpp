// Command lines that cannot be used: exit status 2 and one sentence with the nearest name;
// --version.
#include "command/usage.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <shardrec/shardrec.hpp>

#include "command.h"

namespace shardrec::cli::test {
namespace {

void expect_refused(const std::vector<std::string>& arguments, const std::string& sentence) {
  const Finished result = run(arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, sentence + "\n");
}

TEST(Usage, AnUnknownSubcommandIsRefusedWithTheNearestOne) {
  expect_refused({"trian", "--format", "criteo"},
                 "shardrec: there is no subcommand 'trian'; did you mean train? "
                 "`shardrec --help` lists what there is.");
  expect_refused({"lanch", "--help"},
                 "shardrec: there is no subcommand 'lanch'; did you mean launch? "
                 "`shardrec --help` lists what there is.");
  expect_refused({"trace", "merg", "a", "b"},
                 "shardrec trace: there is no subcommand 'merg'; did you mean merge? "
                 "`shardrec trace --help` lists what there is.");
  const Finished far = run({"xylophone"});
  EXPECT_EQ(far.exit_code, 2);
  EXPECT_NE(far.err.find("no subcommand 'xylophone'; there are train, plan,"), std::string::npos)
      << far.err;
}

TEST(Usage, WithoutASubcommandAllAreNamed) {
  const Finished result = run({});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(result.err.starts_with("shardrec: a subcommand is needed: train, ")) << result.err;
  EXPECT_EQ(run({"trace"}).exit_code, 2);
}

TEST(Usage, AnUnknownOptionIsRefusedWithTheNearestOne) {
  expect_refused({"train", "--fromat", "criteo", "--data", "log"},
                 "shardrec train: there is no option --fromat; did you mean --format? "
                 "`shardrec train --help` lists what there is.");
  expect_refused({"train", "--format", "criteo", "--data", "log", "--rank=2"},
                 "shardrec train: there is no option --rank; did you mean --ranks? "
                 "`shardrec train --help` lists what there is.");
  expect_refused({"generate", "--output", "log", "--colour-of-the-sky"},
                 "shardrec generate: there is no option --colour-of-the-sky. "
                 "`shardrec generate --help` lists what there is.");
  expect_refused({"--rows", "2", "generate", "--output", "log"},
                 "shardrec generate: the option --rows goes behind the subcommand. "
                 "`shardrec generate --help` lists what there is.");
  expect_refused({"generate", "--output", "log", "more"},
                 "shardrec generate: the argument 'more' was not expected. "
                 "`shardrec generate --help` lists what there is.");
}

TEST(Usage, WhatIsMissingOrNotAValueIsNamed) {
  const Finished missing = run({"generate"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_EQ(missing.err,
            "shardrec generate: --output is required. "
            "`shardrec generate --help` lists what there is.\n");
  const Finished value = run({"generate", "--output", "log", "--rows", "many"});
  EXPECT_EQ(value.exit_code, 2);
  EXPECT_NE(value.err.find("--rows"), std::string::npos) << value.err;
  EXPECT_NE(value.err.find("many"), std::string::npos) << value.err;
}

TEST(Usage, NamesThatAreFarFromAllAreNotSuggested) {
  EXPECT_EQ(nearest_name("--bach", {"--batch", "--bottom"}), "--batch");
  EXPECT_EQ(nearest_name("--rnaks", {"--rank", "--ranks"}), "--ranks");
  EXPECT_EQ(nearest_name("--colour", {"--seed", "--dim"}), "");
  EXPECT_EQ(nearest_name("xy", {"ab"}), "");
}

TEST(Usage, VersionNamesTheLibraryAndWhatItFinds) {
  const Finished result = run({"--version"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto found = nlohmann::json::parse(capabilities_json());
  EXPECT_TRUE(result.out.starts_with("shardrec " + found.at("library_version").get<std::string>() +
                                     ", API version " + std::to_string(SHARDREC_API_VERSION) +
                                     "\nengines: local"))
      << result.out;
  for (const auto& engine : found.at("engines")) {
    EXPECT_NE(result.out.find(engine.get<std::string>()), std::string::npos) << result.out;
  }
}

TEST(Usage, VersionNamesTheEnginesWhosePluginsAreInstalled) {
  const Scratch folder;
  const auto engines = [&] {
    setenv("SHARDREC_PLUGIN_PATH", folder.path("").c_str(), 1);
    const Finished result = run({"--version"});
    unsetenv("SHARDREC_PLUGIN_PATH");
    const size_t start = result.out.find("engines:");
    return result.out.substr(start, result.out.find('\n', start) - start);
  };
  EXPECT_EQ(engines(), "engines: local");
  const char* configured = getenv("SHARDREC_PLUGIN_PATH");
  const std::filesystem::path installed =
      configured != nullptr
          ? std::filesystem::path(configured)
          : std::filesystem::path(SHARDREC_COMMAND).parent_path() / "../lib/shardrec";
  bool gloo = false;
  for (const auto& file : std::filesystem::directory_iterator(installed)) {
    const std::string name = file.path().filename().string();
    if (!name.starts_with("libshardrec_gloo.so.")) continue;
    std::filesystem::create_symlink(std::filesystem::canonical(file), folder.path(name));
    gloo = true;
  }
  if (!gloo) GTEST_SKIP() << "the plug-in of the engine gloo was not built";
  EXPECT_EQ(engines(), "engines: local, gloo");
}

TEST(Usage, HelpIsNoError) {
  EXPECT_EQ(run({"--help"}).exit_code, 0);
  EXPECT_EQ(run({"train", "--help"}).exit_code, 0);
  EXPECT_EQ(run({"--help-all"}).exit_code, 0);
}

}  // namespace
}  // namespace shardrec::cli::test
