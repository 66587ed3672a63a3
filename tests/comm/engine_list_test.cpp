// One list says which engines there are.
#include "comm/engine_list.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <set>

#include "comm/engines/engine.h"
#include "core/error.h"

namespace shardrec::comm {
namespace {

TEST(EngineList, FindsEveryEngineBetweenProcessesByNameAndByValue) {
  std::set<std::string_view> names;
  for (const EngineRow& row : kEngines) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(find_process_engine(row.name), row.value ? &row : nullptr) << row.name;
    if (!row.value) continue;
    EXPECT_EQ(find_engine(*row.value), &row) << row.name;
    EXPECT_TRUE(row.is_plugin()) << row.name;
    EXPECT_FALSE(row.constant.empty()) << row.name;
  }
  EXPECT_EQ(find_process_engine("pigeon"), nullptr);
  EXPECT_EQ(find_engine(static_cast<shardrec_engine>(77)), nullptr);
  EXPECT_EQ(process_engine_names(" or "), "gloo or mpi or nccl");
  EXPECT_EQ(process_engine_names(", ", &EngineRow::constant),
            "SHARDREC_ENGINE_GLOO, SHARDREC_ENGINE_MPI, SHARDREC_ENGINE_NCCL");
}

TEST(EngineList, TheEnginesOfTheLibraryAreInstalledWithoutAPlugin) {
  const auto installed = installed_engines();
  for (const EngineRow& row : kEngines) {
    if (row.is_plugin()) continue;
    EXPECT_NE(std::find(installed.begin(), installed.end(), row.name), installed.end()) << row.name;
  }
}

TEST(EngineOfTheEnvironment, IsAnEngineBetweenProcessesOrAnError) {
  unsetenv("SHARDREC_ENGINE");
  EXPECT_EQ(engine_of_environment(), "gloo");
  setenv("SHARDREC_ENGINE", "mpi", 1);
  EXPECT_EQ(engine_of_environment(), "mpi");
  for (const char* other : {"local", "pigeon"}) {
    setenv("SHARDREC_ENGINE", other, 1);
    try {
      engine_of_environment();
      ADD_FAILURE() << other << " is accepted";
    } catch (const core::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_INVALID_ARGUMENT);
      EXPECT_NE(error.sentence().find("gloo or mpi or nccl is accepted"), std::string::npos);
    }
  }
  unsetenv("SHARDREC_ENGINE");
}

TEST(NetworkOfTheEnvironment, IsTakenWhereTheOptionsDoNotSay) {
  setenv("SHARDREC_INTERFACE", "lo", 1);
  setenv("SHARDREC_ALLOW_PLAIN_TCP", "1", 1);
  EngineOptions options;
  add_network_of_environment(options);
  EXPECT_EQ(options.interface, "lo");
  EXPECT_TRUE(options.allow_plain_tcp);
  options = {.interface = "127.0.0.2"};
  add_network_of_environment(options);
  EXPECT_EQ(options.interface, "127.0.0.2");
  setenv("SHARDREC_ALLOW_PLAIN_TCP", "yes", 1);
  EXPECT_THROW(add_network_of_environment(options), core::Error);
  unsetenv("SHARDREC_INTERFACE");
  unsetenv("SHARDREC_ALLOW_PLAIN_TCP");
}

}  // namespace
}  // namespace shardrec::comm
