// A plan with the bytes of its boxes, tables and ranks: what the report of `plan` and pictures are made of.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <shardrec/shardrec.hpp>
#include <string>
#include <vector>

#include "plan/picture.h"

namespace shardrec::cli {

struct PlannedBytes {
  int64_t weights = 0;
  int64_t states = 0;

  [[nodiscard]] int64_t total() const { return weights + states; }
  void add(const PlannedBytes& more) {
    weights += more.weights;
    states += more.states;
  }
};

// A box of a plan; of a replicated table, the copy of each rank.
struct PlannedBox {
  Plan::Box place{};
  PlannedBytes bytes;
};

struct PlannedTable {
  std::string name;
  bool replicated = false;
  std::vector<PlannedBox> boxes;
  PlannedBytes bytes;  // of all ranks together
};

struct Planned {
  nlohmann::json plan;  // as shardrec_plan_to_json has it
  int32_t ranks = 0;
  std::vector<PlannedTable> tables;
  std::vector<PlannedBytes> by_rank;
};

// text: the plan's JSON.
Planned read_plan(const Plan& plan, const std::string& text);

// "plan", "tables" and "ranks" of `plan --json`.
nlohmann::json planned_json(const Planned& planned);
// What planned_json() has given, as a picture.
Picture picture_of(const nlohmann::json& planned);

}  // namespace shardrec::cli
