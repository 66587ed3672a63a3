// The object behind shardrec_fsdp.
#pragma once

#include <memory>
#include <utility>

#include "dense/fsdp/fsdp.h"
#include "handle.h"
#include "objects/comm_object.h"
#include "shardrec/fsdp.h"

namespace shardrec::capi {

struct FsdpObject {
  FsdpObject(std::shared_ptr<Membership> its_membership, dense::FsdpGroups groups, bool mesh,
             const dense::FsdpOptions& options)
      : membership(std::move(its_membership)), fsdp(std::move(groups), mesh, options) {}

  std::shared_ptr<Membership> membership;
  dense::Fsdp fsdp;
};

template <>
struct Handle<shardrec_fsdp> {
  using Object = FsdpObject;
  static constexpr Kind kKind = Kind::kFsdp;
};

}  // namespace shardrec::capi
