#include "comm/ipc/carrier.h"

#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/bodies/carriers.h"
#include "comm/ipc/body_channel.h"
#include "comm/ipc/links.h"
#include "comm/ipc/unread.h"
#include "core/error.h"

namespace shardrec::comm::ipc {
namespace {

bool is_wanted() {
  const char* const text = std::getenv("SHARDREC_DEVICE_IPC");
  const std::string_view value = text == nullptr ? "" : text;
  if (value.empty() || value == "1") return true;
  if (value == "0") return false;
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence("the environment variable SHARDREC_DEVICE_IPC is \"", value,
                            "\"; 0 and 1 are accepted"));
}

// By memory that peers open, where connect() has found that they can; or through the hosts.
struct CarrierChoice {
  std::shared_ptr<Links> links;
  std::unique_ptr<BodyCarrier> copied;
  std::unique_ptr<BodyCarrier> shared;  // null until there are links

  BodyCarrier& chosen() const { return shared != nullptr ? *shared : *copied; }
};

// They are made before the carrier is chosen, and used afterwards.
class EitherBuffer final : public MessageBuffer {
 public:
  explicit EitherBuffer(std::shared_ptr<const CarrierChoice> choice) : choice_(std::move(choice)) {}

  std::byte* resize(size_t bytes) override {
    if (buffer_ == nullptr) buffer_ = choice_->chosen().make_buffer();
    bodies_ = buffer_->resize(bytes);
    host_ = buffer_->host(bodies_);
    return bodies_;
  }
  void publish(const std::byte* begin, const std::byte* end) const override {
    buffer_->publish(begin, end);
  }
  std::shared_ptr<const void> keep_alive() const override {
    return buffer_ == nullptr ? nullptr : buffer_->keep_alive();
  }

 private:
  const std::shared_ptr<const CarrierChoice> choice_;
  std::unique_ptr<MessageBuffer> buffer_;
};

class EitherBodies final : public ReceivedBodies {
 public:
  explicit EitherBodies(std::shared_ptr<const CarrierChoice> choice) : choice_(std::move(choice)) {}

  std::span<const ConstBytes> open(std::span<const ConstBytes> messages,
                                   std::span<const size_t> heads) override {
    if (received_ == nullptr) received_ = choice_->chosen().make_received();
    return received_->open(messages, heads);
  }

 private:
  const std::shared_ptr<const CarrierChoice> choice_;
  std::unique_ptr<ReceivedBodies> received_;
};

class IpcCarrier final : public BodyCarrier {
 public:
  IpcCarrier(compute::Backend& backend, std::shared_ptr<Communicator> communicator,
             compute::BookedBytes booked)
      : BodyCarrier(backend), choice_(std::make_shared<CarrierChoice>()) {
    choice_->links = std::make_shared<Links>(std::move(communicator), backend.caller_devices().cuda,
                                             std::move(booked), is_wanted());
    choice_->copied = make_copied_carrier(backend);
    unread_ = std::make_shared<Unread>(choice_->links);
  }

  std::shared_ptr<Channel> over(std::shared_ptr<Channel> channel, Purpose purpose) override {
    auto made =
        std::make_shared<BodyChannel>(std::move(channel), choice_->links, unread_, backend());
    if (!connected_) {
      unconnected_.emplace_back(made, purpose);
    } else if (choice_->links->are_there()) {
      made->acknowledge_by(choice_->links->open_channel(purpose));
    }
    return made;
  }

  void connect(Collectives& collectives) override {
    choice_->links->connect(collectives);
    connected_ = true;
    const auto channels = std::exchange(unconnected_, {});
    if (!choice_->links->are_there()) return;
    choice_->shared = make_shared_carrier(backend(), choice_->links->exports());
    for (const auto& [channel, purpose] : channels) {
      channel->acknowledge_by(choice_->links->open_channel(purpose));
    }
  }

  std::unique_ptr<MessageBuffer> make_buffer() override {
    return std::make_unique<EitherBuffer>(choice_);
  }
  std::unique_ptr<ReceivedBodies> make_received() override {
    return std::make_unique<EitherBodies>(choice_);
  }
  void finish_writing() override { choice_->chosen().finish_writing(); }
  void finish_reading() override { choice_->chosen().finish_reading(); }

 private:
  const std::shared_ptr<CarrierChoice> choice_;
  std::shared_ptr<Unread> unread_;
  bool connected_ = false;
  std::vector<std::pair<std::shared_ptr<BodyChannel>, Purpose>> unconnected_;
};

}  // namespace

std::unique_ptr<BodyCarrier> make_carrier(compute::Backend& backend,
                                          std::shared_ptr<Communicator> communicator,
                                          compute::BookedBytes booked) {
  const bool is_device = backend.caller_devices().cuda != core::DeviceSet::kNoDevice &&
                         !backend.host_reaches_memory() && backend.marks() != nullptr;
  if (!is_device || backend.peers_reach_memory() || communicator->size() == 1 ||
      communicator->reads_in_place()) {
    return comm::make_carrier(backend);
  }
  return std::make_unique<IpcCarrier>(backend, std::move(communicator), std::move(booked));
}

}  // namespace shardrec::comm::ipc
