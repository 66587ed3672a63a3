#include "planner/together.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "comm/collective/agree.h"
#include "core/error.h"
#include "plan/model/difference.h"
#include "plan/model/names.h"

namespace shardrec::planner {
namespace {

using core::sentence;

enum class Step : uint32_t { kArguments, kCompare, kModels, kMake, kSend, kTake };
static_assert(static_cast<uint32_t>(Step::kTake) + 1 == Planners::kOperations);

// What is compared before anything longer is sent.
struct Summary {
  uint64_t model = 0;
  PlanOptions options;
  int32_t ranks_per_node = 1;
};

comm::Operation operation_of(const Planners& planners, Step step) {
  return {.name = "plan_collective",
          .kind = planners.first_operation + static_cast<uint32_t>(step),
          .detail = 0,
          .deadline_kind = comm::DeadlineKind::kSetup};
}

std::string text_of(comm::ConstBytes bytes) {
  std::string text(bytes.size(), '\0');
  if (!text.empty()) std::memcpy(text.data(), bytes.data(), bytes.size());
  return text;
}

std::string number_text(double value) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

std::vector<Summary> gather_summaries(const Planners& planners, const Summary& mine) {
  const auto messages = planners.collectives.all_gather(operation_of(planners, Step::kCompare),
                                                        std::as_bytes(std::span(&mine, 1)));
  std::vector<Summary> summaries(messages.size());
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    if (messages[rank].size() != sizeof(Summary)) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 sentence("rank ", rank, " sent a message of ", messages[rank].size(),
                          " bytes, not ", sizeof(Summary)),
                 {.rank = static_cast<int64_t>(rank)});
    }
    std::memcpy(&summaries[rank], messages[rank].data(), sizeof(Summary));
  }
  return summaries;
}

// Rank 0 and the lowest rank that differs show their models; every rank finds the same difference.
void check_models(const Planners& planners, const Model& mine,
                  const std::vector<Summary>& summaries) {
  const auto differs = std::find_if(summaries.begin(), summaries.end(), [&](const Summary& s) {
    return s.model != summaries[0].model;
  });
  if (differs == summaries.end()) return;
  const auto other = static_cast<int>(differs - summaries.begin());
  const int rank = planners.rank;
  const std::string text = rank == 0 || rank == other ? plan::model_to_json(mine) : std::string();
  const auto messages = planners.collectives.all_gather(operation_of(planners, Step::kModels),
                                                        std::as_bytes(std::span(text)));
  const Model first = plan::model_from_json(text_of(messages[0]));
  const Model second = plan::model_from_json(text_of(messages[static_cast<size_t>(other)]));
  throw plan::first_difference(first, second, other);
}

// What stands in an option of kind PLAN, for comparison and for people.
struct ComparedOption {
  const char* name;
  std::string (*text)(const PlanOptions& options);
};
constexpr std::array kCompared = {
    ComparedOption{"SHARDREC_OPTION_SHARDING",
                   [](const PlanOptions& o) { return std::string(plan::name_of(o.sharding)); }},
    ComparedOption{"SHARDREC_OPTION_REPLICATION",
                   [](const PlanOptions& o) { return std::string(plan::name_of(o.replication)); }},
    ComparedOption{"SHARDREC_OPTION_BATCH_SIZE",
                   [](const PlanOptions& o) { return sentence(o.batch_size); }},
    ComparedOption{"SHARDREC_OPTION_BAG_LENGTH",
                   [](const PlanOptions& o) { return number_text(o.bag_length); }},
    ComparedOption{
        "the mesh",
        [](const PlanOptions& o) { return std::string(o.mesh_ranks != 0 ? "given" : "NULL"); }},
    ComparedOption{"SHARDREC_OPTION_BALANCE",
                   [](const PlanOptions& o) { return std::string(plan::name_of(o.balance)); }},
};

void check_options(const std::vector<Summary>& summaries) {
  for (size_t rank = 0; rank < summaries.size(); ++rank) {
    for (const ComparedOption& option : kCompared) {
      const std::string theirs = option.text(summaries[rank].options);
      const std::string first = option.text(summaries[0].options);
      if (theirs == first) continue;
      core::fail(SHARDREC_DISAGREEMENT,
                 sentence(option.name, " is ", theirs, " on rank ", rank, " and ", first,
                          " on rank 0; the same options are needed on every rank"),
                 {.rank = static_cast<int64_t>(rank)});
    }
  }
}

// Sharding groups of a mesh may lie on nodes in different ways: then each rank is its own node.
Topology topology_of(int32_t ranks, const std::vector<Summary>& summaries) {
  const int32_t per_node = summaries[0].ranks_per_node;
  const bool same = std::all_of(summaries.begin(), summaries.end(),
                                [&](const Summary& s) { return s.ranks_per_node == per_node; });
  return {.ranks = ranks, .ranks_per_node = same ? per_node : 1};
}

}  // namespace

plan::PlannedModel plan_together(const Planners& planners, core::FunctionRef<PlanRequest()> request,
                                 core::FunctionRef<void()> ready) {
  comm::Collectives& collectives = planners.collectives;
  plan::PlannedModel planned;
  Summary mine;
  int32_t ranks = 0;
  comm::agree(collectives, operation_of(planners, Step::kArguments), [&] {
    PlanRequest own = request();
    planned.model = std::move(own.model);
    mine.model = plan::model_fingerprint(planned.model);
    mine.options = own.options;
    mine.ranks_per_node = own.topology.ranks_per_node;
    ranks = own.topology.ranks;
  });
  const std::vector<Summary> summaries = gather_summaries(planners, mine);
  check_models(planners, planned.model, summaries);
  check_options(summaries);

  std::string text;
  comm::agree(collectives, operation_of(planners, Step::kMake), [&] {
    if (planners.rank != 0) return;
    planned.plan = make_plan(planned.model, topology_of(ranks, summaries), mine.options);
    text = plan::plan_to_json(planned.plan, planned.model);
  });
  const auto messages =
      collectives.all_gather(operation_of(planners, Step::kSend), std::as_bytes(std::span(text)));
  if (planners.rank != 0) text = text_of(messages[0]);
  comm::agree(collectives, operation_of(planners, Step::kTake), [&] {
    ready();
    if (planners.rank != 0) planned.plan = plan::plan_from_json(planned.model, text);
  });
  return planned;
}

}  // namespace shardrec::planner
