// The object behind shardrec_fsdp.
#pragma once

#include <memory>
#include <utility>

#include "dense/fsdp/fsdp.h"
#include "dense/fsdp/stack_units.h"
#include "handle.h"
#include "objects/comm_object.h"
#include "shardrec/fsdp.h"

namespace shardrec::capi {

struct FsdpObject {
  FsdpObject(std::shared_ptr<Membership> its_membership, dense::FsdpGroups groups, bool mesh,
             const dense::FsdpOptions& options)
      : membership(std::move(its_membership)), fsdp(std::move(groups), mesh, options) {}

  // Also taken by the calls of stacks whose layers are its units.
  BusyFlag& busy_flag() { return busy; }

  std::shared_ptr<Membership> membership;
  BusyFlag busy;
  dense::Fsdp fsdp;
};

// The way of a stack's calls into a set.
class StackEntry final : public dense::FsdpEntry {
 public:
  explicit StackEntry(const std::shared_ptr<FsdpObject>& object) : object_(object) {}

  bool expired() const noexcept override { return object_.expired(); }
  bool is_into(const dense::Fsdp& set) const noexcept override {
    const std::shared_ptr<FsdpObject> object = object_.lock();
    return object != nullptr && &object->fsdp == &set;
  }
  dense::Fsdp& enter() override;
  void leave() noexcept override;

 private:
  std::weak_ptr<FsdpObject> object_;
  std::shared_ptr<FsdpObject> entered_;
};

template <>
struct Handle<shardrec_fsdp> {
  using Object = FsdpObject;
  static constexpr Kind kKind = Kind::kFsdp;
};

}  // namespace shardrec::capi
