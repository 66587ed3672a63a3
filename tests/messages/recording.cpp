#include "messages/recording.h"

#include <utility>

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

class RecordingChannel final : public comm::Channel {
 public:
  RecordingChannel(std::shared_ptr<comm::Channel> inner, ChannelRecord& record)
      : inner_(std::move(inner)), record_(record) {}

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
    return inner_->post(operation, send, std::move(owner));
  }
  void receive(comm::Ticket ticket, std::span<comm::ConstBytes> received) override {
    inner_->receive(ticket, received);
  }
  void release(comm::Ticket ticket) noexcept override { inner_->release(ticket); }
  void reclaim(comm::Ticket ticket) override { inner_->reclaim(ticket); }

 private:
  std::shared_ptr<comm::Channel> inner_;
  ChannelRecord& record_;
};

class RecordingRank final : public comm::Communicator {
 public:
  RecordingRank(std::shared_ptr<Communicator> inner, Record& record, std::string group)
      : inner_(std::move(inner)), record_(record), group_(std::move(group)) {}

  int rank() const noexcept override { return inner_->rank(); }
  int size() const noexcept override { return inner_->size(); }
  int ranks_per_node() const noexcept override { return inner_->ranks_per_node(); }
  int ranks_in_process() const noexcept override { return inner_->ranks_in_process(); }
  int default_threads() const noexcept override { return inner_->default_threads(); }
  void set_default_threads(int threads) noexcept override { inner_->set_default_threads(threads); }
  bool reads_in_place() const noexcept override { return inner_->reads_in_place(); }
  std::shared_ptr<comm::Channel> open_channel(comm::Purpose purpose) override {
    ChannelRecord& record = record_.open(std::string(name_of(purpose)) + " of " + group_, rank());
    return std::make_shared<RecordingChannel>(inner_->open_channel(purpose), record);
  }
  std::shared_ptr<Communicator> split(int color, int key) override {
    std::shared_ptr<Communicator> part = inner_->split(color, key);
    if (part == nullptr) return part;
    return std::make_shared<RecordingRank>(std::move(part), record_, "a part of " + group_);
  }
  comm::Deadlines deadlines() const override { return inner_->deadlines(); }
  void set_deadlines(const comm::Deadlines& deadlines) override {
    inner_->set_deadlines(deadlines);
  }
  void abort(const std::string& reason) noexcept override { inner_->abort(reason); }
  void fail(std::string_view operation) noexcept override { inner_->fail(operation); }
  void check() const override { inner_->check(); }
  void leave() noexcept override { inner_->leave(); }
  void disconnect() noexcept override { inner_->disconnect(); }

 private:
  std::shared_ptr<Communicator> inner_;
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
