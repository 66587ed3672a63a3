#include "messages/recording.h"

#include <utility>

#include "support/forwarding.h"

namespace shardrec::test {
namespace {

const char* name_of(comm::Purpose purpose) {
  switch (purpose) {
    case comm::Purpose::kControl:
      return "control";
    case comm::Purpose::kInput:
      return "input";
    case comm::Purpose::kOutput:
      return "output";
    case comm::Purpose::kDense:
      return "dense";
    case comm::Purpose::kStatistics:
      return "statistics";
  }
  return "unknown";
}

class RecordingChannel final : public ForwardingChannel {
 public:
  RecordingChannel(std::shared_ptr<comm::Channel> inner, ChannelRecord& record)
      : ForwardingChannel(std::move(inner)), record_(record) {}

  comm::Ticket post(const comm::Operation& operation, std::span<const comm::ConstBytes> send,
                    std::shared_ptr<const void> owner) override {
    PostedExchange& exchange = record_.posted.emplace_back();
    exchange = {.name = operation.name,
                .kind = operation.kind,
                .detail = operation.detail,
                .size = operation.size};
    for (const comm::ConstBytes message : send) {
      exchange.messages.emplace_back(message.begin(), message.end());
    }
    return ForwardingChannel::post(operation, send, std::move(owner));
  }

 private:
  ChannelRecord& record_;
};

class RecordingRank final : public ForwardingRank {
 public:
  RecordingRank(std::shared_ptr<Communicator> inner, Record& record, std::string group)
      : ForwardingRank(std::move(inner)), record_(record), group_(std::move(group)) {}

  std::shared_ptr<comm::Channel> open_channel(comm::Purpose purpose) override {
    ChannelRecord& record = record_.open(std::string(name_of(purpose)) + " of " + group_, rank());
    return std::make_shared<RecordingChannel>(ForwardingRank::open_channel(purpose), record);
  }
  std::shared_ptr<Communicator> split(int color, int key) override {
    std::shared_ptr<Communicator> part = ForwardingRank::split(color, key);
    if (part == nullptr) return part;
    return std::make_shared<RecordingRank>(std::move(part), record_, "a part of " + group_);
  }

 private:
  Record& record_;
  const std::string group_;
};

}  // namespace

ChannelRecord& Record::open(std::string name, int rank) {
  const std::lock_guard lock(mutex_);
  return channels_.emplace_back(ChannelRecord{.name = std::move(name), .rank = rank, .posted = {}});
}

std::shared_ptr<comm::Communicator> recording(std::shared_ptr<comm::Communicator> inner,
                                              Record& record) {
  return std::make_shared<RecordingRank>(std::move(inner), record, "the world");
}

}  // namespace shardrec::test
