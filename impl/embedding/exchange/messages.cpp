#include "embedding/exchange/messages.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "embedding/exchange/wire.h"

namespace shardrec::embedding {
namespace {

// Bytes that a body takes among others: it begins at a multiple of 64, as the rows in it do.
size_t room_of(comm::ConstBytes body) { return align_up(body.size(), 64); }

// Null where the host reaches the memory of the back end.
std::unique_ptr<compute::Buffer> own_buffer(compute::Backend& backend) {
  if (backend.host_reaches_memory()) return nullptr;
  return std::make_unique<compute::Buffer>(backend.memory());
}

}  // namespace

MessageBuffer::MessageBuffer(compute::Backend& backend)
    : backend_(&backend),
      memory_(std::make_shared<Memory>(backend)),
      written_(backend.make_mark()),
      own_(written_ == nullptr ? own_buffer(backend) : nullptr) {}

// Of shared bodies the host has the room only: pages that nobody touches.
MessageBuffer::Memory::Memory(compute::Backend& backend)
    : host(backend.shares_bodies() ? compute::cpu_memory() : backend.host_memory()) {}

MessageBuffer::Memory::~Memory() {
  if (shared != nullptr) shared->withdraw();
}

std::byte* MessageBuffer::resize(size_t bytes) {
  std::shared_ptr<SharedBodies>& shared = memory_->shared;
  if (shared != nullptr) {
    shared->follow_readers(*backend_);
    if (shared->size() < bytes) {
      shared->withdraw();
      shared.reset();
    }
  }
  bodies_ = memory_->host.resize(bytes);
  if (own_ != nullptr) bodies_ = own_->resize(bytes);
  if (written_ != nullptr) {
    if (shared == nullptr) {
      auto block = backend_->memory()->allocate(bytes);
      const size_t size = std::min(block->size, memory_->host.capacity());
      shared = std::make_shared<SharedBodies>(bodies_, std::move(block), size, written_);
    }
    bodies_ = shared->data();
  }
  return bodies_;
}

void MessageBuffer::publish(compute::Backend& backend, const std::byte* begin,
                            const std::byte* end) const {
  if (written_ != nullptr) {
    backend.set(*written_);
  } else if (own_ != nullptr) {
    backend.transfer().copy(host(begin), begin, static_cast<size_t>(end - begin));
  }
}

size_t MessageBuffer::capacity() const {
  return memory_->host.capacity() + (own_ != nullptr ? own_->capacity() : 0) +
         (memory_->shared != nullptr ? memory_->shared->size() : 0);
}

ReceivedBodies::ReceivedBodies(compute::Backend& backend)
    : backend_(backend), own_(own_buffer(backend)) {}

std::span<const comm::ConstBytes> ReceivedBodies::open(std::span<const comm::ConstBytes> messages,
                                                       std::span<const size_t> heads) {
  bodies_.resize(messages.size());
  for (size_t m = 0; m < messages.size(); ++m) {
    bodies_[m] = messages[m].subspan(heads.empty() ? 0 : heads[m]);
  }
  if (own_ == nullptr) return bodies_;
  copied_from_.assign(messages.size(), kHost);
  shared_.clear();
  if (backend_.shares_bodies()) open_shared(messages);
  copy_others();
  return bodies_;
}

void ReceivedBodies::open_shared(std::span<const comm::ConstBytes> messages) {
  const std::shared_ptr<compute::Mark> read = backend_.read_mark();
  for (size_t m = 0; m < messages.size(); ++m) {
    if (bodies_[m].empty()) continue;
    auto shared = SharedBodies::find(messages[m].data());
    if (shared == nullptr) {
      core::fail(SHARDREC_INTERNAL,
                 core::sentence("the body of the message of rank ", m, " is not on a device"),
                 {.rank = static_cast<int64_t>(m)});
    }
    backend_.follow(shared->written());
    shared->add_reader(read);
    bodies_[m] = {shared->at(bodies_[m].data()), bodies_[m].size()};
    const int32_t device = shared->written().device();
    copied_from_[m] = device == read->device() ? kNowhere : device;
    shared_.push_back(std::move(shared));
  }
}

void ReceivedBodies::copy_others() {
  size_t bytes = 0;
  for (size_t m = 0; m < bodies_.size(); ++m) {
    if (copied_from_[m] != kNowhere) bytes += room_of(bodies_[m]);
  }
  if (bytes == 0) return;
  std::byte* to = own_->resize(bytes);
  for (size_t m = 0; m < bodies_.size(); ++m) {
    comm::ConstBytes& body = bodies_[m];
    if (copied_from_[m] == kNowhere) continue;
    const size_t size = body.size();
    std::byte* const next = to + room_of(body);
    if (copied_from_[m] == kHost) {
      backend_.transfer().copy(to, body.data(), size);
    } else {
      backend_.transfer().copy_from_device(copied_from_[m], to, body.data(), size);
    }
    body = {to, size};
    to = next;
  }
  if (backend_.shares_bodies()) return;
  if (const auto read = backend_.read_mark(); read != nullptr) backend_.set(*read);
}

}  // namespace shardrec::embedding
