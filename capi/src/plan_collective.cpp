#include "plan_collective.h"

#include <memory>
#include <optional>
#include <utility>

#include "guard.h"
#include "objects/mesh_object.h"
#include "options.h"

namespace shardrec::capi {

void plan_together(const Use<shardrec_comm>& comm, shardrec_mesh* mesh, const shardrec_model* model,
                   const shardrec_options* options, shardrec_plan** out) {
  const comm::Communicator& world = comm->membership->communicator();
  std::optional<Reserved<shardrec_plan>> reserved;
  auto planned = planner::plan_together(
      {.collectives = comm->collectives,
       .first_operation = static_cast<uint32_t>(CommCall::kPlan),
       .rank = world.rank()},
      [&]() -> planner::PlanRequest {
        require_out(out, "out");
        const auto groups = groups_of(comm, mesh);
        plan::Model own = *enter(model, Access::kExclusive);
        planner::PlanOptions settings = plan_options(options);
        settings.mesh_ranks = groups ? world.size() : 0;
        const comm::Communicator& ranks = groups ? *groups->sharding : world;
        return {.model = std::move(own),
                .options = settings,
                .topology = {.ranks = ranks.size(), .ranks_per_node = ranks.ranks_per_node()}};
      },
      [&] { reserved.emplace(); });
  reserved->publish(out, std::make_shared<PlanObject>(std::move(planned)));
}

}  // namespace shardrec::capi
