// The way of a stack's calls into a set of sharded parameters that one thread has.
#pragma once

#include <memory>

#include "dense/fsdp/stack_units.h"

namespace shardrec::dense {

class DirectEntry final : public FsdpEntry {
 public:
  explicit DirectEntry(const std::shared_ptr<Fsdp>& set) : set_(set) {}
  bool expired() const noexcept override { return set_.expired(); }
  bool is_into(const Fsdp& set) const noexcept override { return set_.lock().get() == &set; }
  Fsdp& enter() override {
    entered_ = set_.lock();
    return *entered_;
  }
  void leave() noexcept override { entered_.reset(); }

 private:
  std::weak_ptr<Fsdp> set_;
  std::shared_ptr<Fsdp> entered_;
};

}  // namespace shardrec::dense
