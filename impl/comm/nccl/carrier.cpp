#include "comm/nccl/carrier.h"

#include <utility>

#include "comm/bodies/carriers.h"
#include "comm/nccl/body_channel.h"

namespace shardrec::comm::nccl {
namespace {

// What operations see of it is what ranks of one process see of each other.
class NcclCarrier final : public BodyCarrier {
 public:
  NcclCarrier(compute::Backend& backend, std::shared_ptr<Lanes> lanes)
      : BodyCarrier(backend),
        lanes_(std::move(lanes)),
        shared_(make_shared_carrier(backend, backend.memory())) {}

  std::shared_ptr<Channel> over(std::shared_ptr<Channel> channel, Purpose purpose) override {
    return std::make_shared<BodyChannel>(std::move(channel), lanes_, purpose, backend());
  }
  void connect(Collectives& collectives) override { lanes_->connect(collectives); }
  std::unique_ptr<MessageBuffer> make_buffer() override { return shared_->make_buffer(); }
  std::unique_ptr<ReceivedBodies> make_received() override { return shared_->make_received(); }
  void finish_writing() override { shared_->finish_writing(); }
  void finish_reading() override { shared_->finish_reading(); }

 private:
  std::shared_ptr<Lanes> lanes_;
  std::unique_ptr<BodyCarrier> shared_;
};

}  // namespace

std::unique_ptr<BodyCarrier> make_carrier(compute::Backend& backend,
                                          std::shared_ptr<Communicator> communicator,
                                          std::shared_ptr<StopWord> stop, LaneSet lanes) {
  return make_carrier(
      backend, std::make_shared<Lanes>(std::move(communicator), backend.caller_devices().cuda,
                                       std::move(stop), lanes));
}

std::unique_ptr<BodyCarrier> make_carrier(compute::Backend& backend, std::shared_ptr<Lanes> lanes) {
  return std::make_unique<NcclCarrier>(backend, std::move(lanes));
}

}  // namespace shardrec::comm::nccl
