// The JSON documents of the C API have the fields that the headers list beside the functions, and no others.
#include "support/json_fields.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "capi/checkpoint_job.h"
#include "compute/profile/memory_profile.h"
#include "shardrec/shardrec.hpp"

namespace shardrec_test {
namespace {

using shardrec::test::comment_of;
using shardrec::test::expect_fields;
using shardrec::test::text_of_file;

void expect_listed(const std::string& text, const std::string& header,
                   const std::string& function) {
  SCOPED_TRACE(function);
  const auto json = nlohmann::json::parse(text);
  const std::string path = std::string(SHARDREC_HEADERS) + "/" + header;
  expect_fields(json, comment_of(text_of_file(path), "shardrec_" + function));
}

// A model with a value for each optional field.
shardrec::Model rich_model() {
  shardrec::Model model = make_model();
  const int32_t table = model.add_table("limited", 8, 8,
                                        shardrec::TableOptions()
                                            .init_range(-0.5, 0.25)
                                            .allowed_sharding("row_wise, column_wise")
                                            .allowed_ranks("0")
                                            .min_columns(2));
  model.add_feature(table, "limited", SHARDREC_POOLING_NONE);
  return model;
}

TEST(JsonFields, OfModelsPlansAndTopologies) {
  const shardrec::Model model = rich_model();
  expect_listed(model.to_json(), "model.h", "model_to_json");
  const shardrec::Topology topology(2, 2);
  expect_listed(topology.to_json(), "plan.h", "topology_to_json");
  expect_listed(
      shardrec::Plan(model, topology, shardrec::PlanOptions().sharding("mixed")).to_json(),
      "plan.h", "plan_to_json");
  shardrec::Model small;
  small.add_table("t", 4, 4);
  expect_listed(
      shardrec::Plan(small, topology, shardrec::PlanOptions().sharding("data_parallel")).to_json(),
      "plan.h", "plan_to_json");
}

TEST(JsonFields, OfALaterVersionOfThemAreRefusedAsSuch) {
  const shardrec::Model model = rich_model();
  const shardrec::Topology topology(2, 2);
  const auto later = [](std::string json) { return json.replace(json.find("-1\""), 3, "-2\""); };
  const auto expect_refused = [](const auto& read) {
    std::string sentence;
    EXPECT_EQ(status_of(read, &sentence), SHARDREC_INVALID_ARGUMENT);
    EXPECT_NE(sentence.find("of a later release"), std::string::npos) << sentence;
  };
  expect_refused([&] { shardrec::Model::from_json(later(model.to_json())); });
  expect_refused([&] { shardrec::Topology::from_json(later(topology.to_json())); });
  expect_refused(
      [&] { shardrec::Plan::from_json(model, later(shardrec::Plan(model, topology).to_json())); });
}

TEST(JsonFields, OfCapabilitiesAndProfiles) {
  expect_listed(shardrec::capabilities_json(), "library.h", "capabilities_json");
  using shardrec::compute::MemoryAccess;
  shardrec::compute::MemoryProfile profile{.table_bytes = 1, .seconds = 2};
  profile.copies = {{1, 30}};
  for (const MemoryAccess access : {MemoryAccess::kGather, MemoryAccess::kUpdate}) {
    profile.rows.push_back({.access = access,
                            .row_bytes = 64,
                            .threads = 1,
                            .gb_per_second = 3,
                            .by_hint = {1, 2, 3, 4},
                            .streaming = 2,
                            .small_pages = 1});
  }
  expect_listed(shardrec::compute::profile_to_json(profile), "probe.h", "probe_json");
}

TEST(JsonFields, OfAPartialLoad) {
  Directory directory;
  run(1, [&](shardrec::Comm& comm, int) {
    shardrec::Model model = make_model();
    Job saved(comm, nullptr, model, make_plan(model, 1, SHARDREC_SHARDING_ROW_WISE));
    shardrec::Checkpoint first(comm, directory.path());
    add_all(first, saved);
    first.commit(1);
    // A table more, one left out; an item less, one left out.
    model.add_feature(model.add_table("added", 3, 2), "added");
    shardrec::Collection tables(comm, model, make_plan(model, 1, SHARDREC_SHARDING_ROW_WISE));
    shardrec::Checkpoint second(comm, directory.path());
    second.add("tables", tables);
    second.add("layers", saved.layers);
    second.add("parameters", saved.own_ddp());
    second.open();
    const std::string report = second.load_partial(R"({"version": 1, "missing": "keep",
        "extra": "ignore", "collections": [{"name": "tables", "tables": [
        {"name": "item", "load": "none"}]}]})");
    expect_listed(report, "checkpoint.h", "checkpoint_load_partial");
    second.load_partial(R"({"version": 1, "load": "listed", "parameters": [
        {"name": "parameters", "from": "host"}], "extra": "ignore"})");
  });
}

TEST(JsonFields, OfWhatRanksHaveDone) {
  Directory directory;
  shardrec::Trace::start(1000);
  run(2, [&](shardrec::Comm& comm, int rank) {
    Job job(comm, nullptr, make_model(), make_plan(make_model(), 2, SHARDREC_SHARDING_ROW_WISE));
    job.step(0);
    shardrec::Checkpoint checkpoint(comm, directory.path());
    add_all(checkpoint, job);
    checkpoint.set_tensor("x", std::vector<float>{1, 2});
    checkpoint.commit_delta(0);
    checkpoint.commit_delta(1);
    checkpoint.open();
    if (rank != 0) return comm.barrier();
    expect_listed(checkpoint.contents_json(), "checkpoint.h", "checkpoint_contents_json");
    expect_listed(shardrec::Checkpoint::list_json(directory.path()), "checkpoint.h",
                  "checkpoint_list_json");
    expect_listed(job.ddp.statistics_json(), "ddp.h", "ddp_statistics_json");
    expect_listed(comm.operations_json(), "comm.h", "comm_operations_json");
    comm.barrier();
  });
  shardrec::Trace::stop();
  expect_listed(shardrec::Trace::json(), "observe.h", "trace_json");
}

}  // namespace
}  // namespace shardrec_test
