// Bodies that are copied to the host's memory to be sent, and from there when they have come.
#include <utility>
#include <vector>

#include "comm/bodies/carriers.h"
#include "comm/bodies/room.h"
#include "compute/buffer.h"

namespace shardrec::comm {
namespace {

class CopiedBuffer final : public MessageBuffer {
 public:
  explicit CopiedBuffer(compute::Backend& backend)
      : backend_(backend),
        memory_(std::make_shared<compute::Buffer>(backend.host_memory())),
        own_(backend.memory()) {}

  std::byte* resize(size_t bytes) override {
    host_ = memory_->resize(bytes);
    return bodies_ = own_.resize(bytes);
  }
  void publish(const std::byte* begin, const std::byte* end) const override {
    backend_.transfer().copy(host(begin), begin, static_cast<size_t>(end - begin));
  }
  std::shared_ptr<const void> keep_alive() const override { return memory_; }

 private:
  compute::Backend& backend_;
  std::shared_ptr<compute::Buffer> memory_;
  compute::Buffer own_;  // of the back end
};

class CopiedBodies final : public ReceivedBodies {
 public:
  // read: set behind the copies; null: the back end has no marks.
  CopiedBodies(compute::Backend& backend, std::shared_ptr<compute::Mark> read)
      : backend_(backend), read_(std::move(read)), own_(backend.memory()) {}

  std::span<const ConstBytes> open(std::span<const ConstBytes> messages,
                                   std::span<const size_t> heads) override {
    bodies_.resize(messages.size());
    size_t bytes = 0;
    for (size_t m = 0; m < messages.size(); ++m) {
      bodies_[m] = messages[m].subspan(heads.empty() ? 0 : heads[m]);
      bytes += room_of(bodies_[m]);
    }
    if (bytes == 0) return bodies_;
    std::byte* to = own_.resize(bytes);
    for (ConstBytes& body : bodies_) {
      backend_.transfer().copy(to, body.data(), body.size());
      std::byte* const next = to + room_of(body);
      body = {to, body.size()};
      to = next;
    }
    if (read_ != nullptr) backend_.marks()->set(*read_);
    return bodies_;
  }

 private:
  compute::Backend& backend_;
  std::shared_ptr<compute::Mark> read_;
  compute::Buffer own_;
  std::vector<ConstBytes> bodies_;
};

class CopiedCarrier final : public BodyCarrier {
 public:
  explicit CopiedCarrier(compute::Backend& backend)
      : BodyCarrier(backend),
        read_(backend.marks() == nullptr ? nullptr : backend.marks()->make()) {}

  std::unique_ptr<MessageBuffer> make_buffer() override {
    return std::make_unique<CopiedBuffer>(backend());
  }
  std::unique_ptr<ReceivedBodies> make_received() override {
    return std::make_unique<CopiedBodies>(backend(), read_);
  }
  void finish_writing() override { backend().wait(); }
  // For the copies of what was received, and not for what is computed with them.
  void finish_reading() override {
    if (read_ == nullptr) {
      backend().wait();
    } else {
      read_->wait();
    }
  }

 private:
  std::shared_ptr<compute::Mark> read_;
};

}  // namespace

std::unique_ptr<BodyCarrier> make_copied_carrier(compute::Backend& backend) {
  return std::make_unique<CopiedCarrier>(backend);
}

}  // namespace shardrec::comm
