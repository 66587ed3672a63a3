#include "plan_collective.h"

#include <memory>
#include <optional>
#include <utility>

#include "guard.h"
#include "options.h"

namespace shardrec::capi {

void plan_together(const planner::Planners& planners, const shardrec_model* model,
                   const shardrec_options* options, shardrec_plan** out) {
  std::optional<Reserved<shardrec_plan>> reserved;
  auto planned = planner::plan_together(
      planners,
      [&]() -> planner::PlanRequest {
        require_out(out, "out");
        plan::Model own = *enter(model, Access::kExclusive);
        return {.model = std::move(own), .options = plan_options(options)};
      },
      [&] { reserved.emplace(); });
  reserved->publish(out, std::make_shared<PlanObject>(std::move(planned)));
}

}  // namespace shardrec::capi
