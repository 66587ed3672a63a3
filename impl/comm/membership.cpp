#include "comm/membership.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace shardrec::comm {
namespace {

uint64_t next_number() noexcept {
  static constinit std::atomic<uint64_t> made{0};
  return made.fetch_add(1);
}

template <class Type>
void forget_expired(std::vector<std::weak_ptr<Type>>& known) {
  std::erase_if(known, [](const auto& one) { return one.expired(); });
}

}  // namespace

Membership::Membership(std::shared_ptr<Communicator> communicator)
    : recorder_(std::make_shared<Recorder>(communicator->rank(), communicator->size())),
      communicator_(recorded(std::move(communicator), recorder_)),
      number_(next_number()) {}

Membership::Membership(Split, std::shared_ptr<Communicator> communicator)
    : recorder_(recorder_of(*communicator)),
      communicator_(std::move(communicator)),
      number_(next_number()) {}

void Membership::require_open() const {
  if (closed()) core::fail(SHARDREC_CLOSED, "the communicator was closed by shardrec_comm_close");
}

bool Membership::is_up() const noexcept {
  if (closed()) return false;
  try {
    communicator_->check();
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

void Membership::set_deadline(double Deadlines::* field, double seconds) {
  const std::lock_guard lock(mutex_);
  Deadlines deadlines = communicator_->deadlines();
  deadlines.*field = seconds;
  communicator_->set_deadlines(deadlines);
  for (const auto& part : parts_) {
    if (const auto living = part.lock()) living->set_deadlines(deadlines);
  }
}

void Membership::add_part(const std::shared_ptr<Communicator>& part) {
  const std::lock_guard lock(mutex_);
  part->set_deadlines(communicator_->deadlines());
  forget_expired(parts_);
  parts_.push_back(part);
}

std::shared_ptr<Membership> Membership::split(Communicator& group, int color, int key) {
  auto part = group.split(std::max(color, -1), key);
  if (color < 0) {
    part->leave();
    return nullptr;
  }
  auto child = std::make_shared<Membership>(Split(), std::move(part));
  const std::lock_guard lock(mutex_);
  forget_expired(children_);
  children_.push_back(child);
  if (disconnected_) child->disconnect();  // by another thread, during the split
  return child;
}

void Membership::close() noexcept {
  closed_.store(true, std::memory_order_release);
  const std::lock_guard lock(mutex_);
  for (const auto& child : children_) {
    if (const auto living = child.lock()) living->close();
  }
  for (const auto& part : parts_) {
    if (const auto living = part.lock()) living->leave();
  }
  communicator_->leave();
}

void Membership::disconnect() noexcept {
  const std::lock_guard lock(mutex_);
  disconnected_ = true;
  for (const auto& child : children_) {
    if (const auto living = child.lock()) living->disconnect();
  }
  for (const auto& part : parts_) {
    if (const auto living = part.lock()) living->disconnect();
  }
  communicator_->disconnect();
}

}  // namespace shardrec::comm
