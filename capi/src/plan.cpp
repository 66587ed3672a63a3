#include "shardrec/plan.h"

#include <memory>
#include <string>

#include "guard.h"
#include "objects/comm_object.h"
#include "objects/model_object.h"
#include "options.h"
#include "plan/find.h"
#include "plan_collective.h"
#include "structs.h"

using namespace shardrec::capi;
namespace core = shardrec::core;
namespace plan = shardrec::plan;
namespace planner = shardrec::planner;

shardrec_status shardrec_topology_create(int32_t ranks, int32_t ranks_per_node,
                                         const shardrec_options* options, shardrec_topology** out) {
  return guard([&] {
    require_out(out, "out");
    refuse_options(options, "topologies");
    if (ranks < 1 || ranks > 1048576) refuse_value("ranks", int64_t{ranks}, "1 to 1048576");
    if (ranks_per_node < 1 || ranks_per_node > ranks) {
      refuse_value("ranks_per_node", int64_t{ranks_per_node}, core::sentence("1 to ", ranks));
    }
    create(out, std::make_shared<plan::Topology>(plan::Topology{ranks, ranks_per_node}));
  });
}

void shardrec_topology_destroy(shardrec_topology** topology) { destroy(topology); }

shardrec_status shardrec_topology_to_json(const shardrec_topology* topology, char** out_text) {
  return guard([&] {
    const auto use = enter(topology, Access::kExclusive);
    require_out(out_text, "out_text");
    *out_text = copy_text(plan::topology_to_json(*use));
  });
}

shardrec_status shardrec_topology_from_json(const char* json, shardrec_topology** out) {
  return guard([&] {
    require_out(out, "out");
    const std::string text(require_text(json, "json"));
    create(out, std::make_shared<plan::Topology>(plan::topology_from_json(text)));
  });
}

shardrec_status shardrec_plan_create(const shardrec_model* model, const shardrec_topology* topology,
                                     const shardrec_options* options, shardrec_plan** out) {
  return guard([&] {
    require_out(out, "out");
    const auto tables = enter(model, Access::kExclusive);
    const auto machines = enter(topology, Access::kExclusive);
    const planner::PlanOptions settings = plan_options(options);
    plan::PlannedModel planned{.model = *tables, .plan = {}};
    planned.plan = planner::make_plan(planned.model, *machines, settings);
    create(out, std::make_shared<PlanObject>(std::move(planned)));
  });
}

shardrec_status shardrec_plan_collective(shardrec_comm* comm, shardrec_mesh* mesh,
                                         const shardrec_model* model,
                                         const shardrec_options* options, shardrec_plan** out) {
  return guard([&] {
    const auto use = enter(comm, Access::kExclusive);
    collective_call(use, "plan_collective", [&] { plan_together(use, mesh, model, options, out); });
  });
}

shardrec_status shardrec_plan_create_empty(const shardrec_model* model,
                                           const shardrec_topology* topology,
                                           const shardrec_options* options, shardrec_plan** out) {
  return guard([&] {
    require_out(out, "out");
    refuse_options(options, "plans without boxes");
    const auto tables = enter(model, Access::kExclusive);
    const auto machines = enter(topology, Access::kExclusive);
    plan::PlannedModel empty{.model = *tables, .plan = {}};
    empty.plan.topology = *machines;
    empty.plan.tables.resize(empty.model.tables.size());
    create(out, std::make_shared<PlanObject>(std::move(empty)));
  });
}

shardrec_status shardrec_plan_add_box(shardrec_plan* plan, int32_t table, const shardrec_box* box) {
  return guard([&] {
    const auto use = enter(plan, Access::kExclusive);
    const shardrec_box given = read_struct(box, "box");
    if (given.reserved != 0) refuse_value("box.reserved", int64_t{given.reserved}, "0");
    use->add_box(
        table,
        {.rank = given.rank,
         .cells = {.row = given.row, .rows = given.rows, .col = given.col, .cols = given.cols}});
  });
}

shardrec_status shardrec_plan_replicate(shardrec_plan* plan, int32_t table,
                                        shardrec_replication replication) {
  return guard([&] {
    const auto use = enter(plan, Access::kExclusive);
    use->replicate(table, replication);
  });
}

void shardrec_plan_destroy(shardrec_plan** plan) { destroy(plan); }

shardrec_status shardrec_plan_check(const shardrec_plan* plan) {
  return guard([&] {
    const auto use = enter(plan, Access::kExclusive);
    plan::check_tiling(use->plan(), use->model());
  });
}

shardrec_status shardrec_plan_box_count(const shardrec_plan* plan, int32_t table, int32_t* out) {
  return guard([&] {
    const auto use = enter(plan, Access::kExclusive);
    require_out(out, "out");
    *out = static_cast<int32_t>(plan::find_table(use->plan(), table).boxes.size());
  });
}

shardrec_status shardrec_plan_box(const shardrec_plan* plan, int32_t table, int32_t box,
                                  shardrec_box* out) {
  return guard([&] {
    const auto use = enter(plan, Access::kExclusive);
    const plan::Box found = plan::find_box_or_copy(use->plan(), use->model(), table, box);
    const plan::Bytes bytes = plan::find_box_bytes(use->plan(), use->model(), table, box);
    write_struct(out, "out",
                 shardrec_box{.struct_size = sizeof(shardrec_box),
                              .rank = found.rank,
                              .reserved = 0,
                              .row = found.cells.row,
                              .rows = found.cells.rows,
                              .col = found.cells.col,
                              .cols = found.cells.cols,
                              .weight_bytes = bytes.weights,
                              .state_bytes = bytes.states});
  });
}

shardrec_status shardrec_plan_to_json(const shardrec_plan* plan, char** out_text) {
  return guard([&] {
    const auto use = enter(plan, Access::kExclusive);
    require_out(out_text, "out_text");
    *out_text = copy_text(plan::plan_to_json(use->plan(), use->model()));
  });
}

shardrec_status shardrec_plan_to_text(const shardrec_plan* plan, char** out_text) {
  return guard([&] {
    const auto use = enter(plan, Access::kExclusive);
    require_out(out_text, "out_text");
    *out_text = copy_text(plan::plan_to_text(use->plan(), use->model()));
  });
}

shardrec_status shardrec_plan_from_json(const shardrec_model* model, const char* json,
                                        shardrec_plan** out) {
  return guard([&] {
    require_out(out, "out");
    const auto tables = enter(model, Access::kExclusive);
    const std::string text(require_text(json, "json"));
    plan::PlannedModel read{.model = *tables, .plan = {}};
    read.plan = plan::plan_from_json(read.model, text);
    create(out, std::make_shared<PlanObject>(std::move(read)));
  });
}
