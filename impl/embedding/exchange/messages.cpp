#include "embedding/exchange/messages.h"

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
    : host_(std::make_shared<compute::Buffer>(backend.host_memory())), own_(own_buffer(backend)) {}

std::byte* MessageBuffer::resize(size_t bytes) {
  bodies_ = host_->resize(bytes);
  if (own_ != nullptr) bodies_ = own_->resize(bytes);
  return bodies_;
}

void MessageBuffer::publish(compute::Backend& backend, const std::byte* begin,
                            const std::byte* end) const {
  if (own_ != nullptr) backend.copy(host(begin), begin, static_cast<size_t>(end - begin));
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
  size_t bytes = 0;
  for (const comm::ConstBytes body : bodies_) bytes += room_of(body);
  std::byte* to = own_->resize(bytes);
  for (comm::ConstBytes& body : bodies_) {
    const size_t size = body.size();
    std::byte* const next = to + room_of(body);
    backend_.copy(to, body.data(), size);
    body = {to, size};
    to = next;
  }
  return bodies_;
}

}  // namespace shardrec::embedding
