// The objects behind shardrec_model, shardrec_topology and shardrec_plan.
#pragma once

#include "handle.h"
#include "plan/builder.h"
#include "plan/model/model.h"
#include "plan/plan.h"
#include "shardrec/plan.h"

namespace shardrec::capi {

// A plan holds the model that it was made for: boxes mean nothing without its tables.
using PlanObject = plan::PlanBuilder;

template <>
struct Handle<shardrec_model> {
  using Object = plan::Model;
  static constexpr Kind kKind = Kind::kModel;
};
template <>
struct Handle<shardrec_topology> {
  using Object = plan::Topology;
  static constexpr Kind kKind = Kind::kTopology;
};
template <>
struct Handle<shardrec_plan> {
  using Object = PlanObject;
  static constexpr Kind kKind = Kind::kPlan;
};

}  // namespace shardrec::capi
