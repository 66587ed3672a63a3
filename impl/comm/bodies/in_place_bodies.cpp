// Bodies in the host's memory: channels carry messages whole, and operations write and read them there.
#include <utility>
#include <vector>

#include "comm/bodies/carriers.h"
#include "compute/buffer.h"

namespace shardrec::comm {
namespace {

class InPlaceBuffer final : public MessageBuffer {
 public:
  explicit InPlaceBuffer(std::shared_ptr<compute::Memory> memory)
      : memory_(std::make_shared<compute::Buffer>(std::move(memory))) {}

  std::byte* resize(size_t bytes) override { return host_ = bodies_ = memory_->resize(bytes); }
  void publish(const std::byte* /*begin*/, const std::byte* /*end*/) const override {}
  std::shared_ptr<const void> keep_alive() const override { return memory_; }

 private:
  std::shared_ptr<compute::Buffer> memory_;
};

class BodiesInPlace final : public ReceivedBodies {
 public:
  std::span<const ConstBytes> open(std::span<const ConstBytes> messages,
                                   std::span<const size_t> heads) override {
    bodies_.resize(messages.size());
    for (size_t m = 0; m < messages.size(); ++m) {
      bodies_[m] = messages[m].subspan(heads.empty() ? 0 : heads[m]);
    }
    return bodies_;
  }

 private:
  std::vector<ConstBytes> bodies_;
};

class InPlaceCarrier final : public BodyCarrier {
 public:
  explicit InPlaceCarrier(compute::Backend& backend) : BodyCarrier(backend) {}

  std::unique_ptr<MessageBuffer> make_buffer() override {
    return std::make_unique<InPlaceBuffer>(backend().host_memory());
  }
  std::unique_ptr<ReceivedBodies> make_received() override {
    return std::make_unique<BodiesInPlace>();
  }
  void finish_writing() override { backend().wait(); }
  void finish_reading() override { backend().wait(); }
};

}  // namespace

std::unique_ptr<BodyCarrier> make_in_place_carrier(compute::Backend& backend) {
  return std::make_unique<InPlaceCarrier>(backend);
}

}  // namespace shardrec::comm
