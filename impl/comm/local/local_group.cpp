#include "comm/local/local_group.h"

#include <atomic>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/collective/collectives.h"
#include "comm/failure.h"
#include "comm/local/channel.h"
#include "comm/local/group.h"
#include "comm/split.h"
#include "core/error.h"
#include "core/threads.h"

namespace shardrec::comm::local {
namespace {

class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(std::shared_ptr<Group> group, int rank, int default_threads)
      : group_(std::move(group)), rank_(rank), default_threads_(default_threads) {
    group_->join(rank);
  }
  ~LocalCommunicator() override { disconnect(); }
  LocalCommunicator(const LocalCommunicator&) = delete;
  LocalCommunicator& operator=(const LocalCommunicator&) = delete;

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return group_->ranks(); }
  int ranks_per_node() const noexcept override { return group_->ranks_per_node(); }
  int ranks_in_process() const noexcept override { return group_->ranks(); }
  int default_threads() const noexcept override { return default_threads_.load(); }
  void set_default_threads(int threads) noexcept override { default_threads_.store(threads); }
  DeviceBodies device_bodies() const noexcept override { return device_bodies_.load(); }
  void set_device_bodies(DeviceBodies bodies) noexcept override { device_bodies_.store(bodies); }
  bool reads_in_place() const noexcept override { return true; }

  std::shared_ptr<Channel> open_channel(Purpose purpose) override {
    const auto channel = std::make_shared<LocalChannel>(group_, rank_);
    channel->attach(group_->open_next(rank_, purpose));
    return channel;
  }

  std::shared_ptr<Communicator> split(int color, int key) override;

  Deadlines deadlines() const override { return group_->deadlines(rank_); }
  void set_deadlines(const Deadlines& deadlines) override {
    check_deadlines(deadlines);
    group_->set_deadlines(rank_, deadlines);
  }

  void abort(const std::string& reason) noexcept override {
    kill_with({.cause = Cause::kAborted, .failed_rank = rank_}, &Failure::reason, reason);
  }
  void fail(std::string_view operation) noexcept override {
    kill_with({.cause = Cause::kGaveUp, .failed_rank = rank_}, &Failure::operation, operation);
  }
  void kill(Failure failure) noexcept override {
    failure.observer = rank_;
    group_->kill(std::move(failure));
  }
  int departed_rank() const noexcept override {
    for (int rank = 0; rank < size(); ++rank) {
      if (rank != rank_ && group_->departed(rank)) return rank;
    }
    return -1;
  }
  void check() const override { group_->check({.rank = rank_}); }
  void leave() noexcept override { group_->depart(rank_, Presence::kLeft); }
  void disconnect() noexcept override { group_->depart(rank_, Presence::kDestroyed); }

 private:
  std::shared_ptr<Communicator> join_child(const CallSite& site, int color, const Subgroup& part);
  void kill_with(Failure failure, std::string Failure::* text, std::string_view value) noexcept {
    try {
      failure.*text = value;
    } catch (...) {  // no memory for the words: the failure goes without them
    }
    kill(std::move(failure));
  }

  const std::shared_ptr<Group> group_;
  const int rank_;
  std::atomic<int> default_threads_;
  std::atomic<DeviceBodies> device_bodies_{default_device_bodies()};
  std::unique_ptr<Collectives> splitter_;  // made by the first split
  uint64_t splits_ = 0;
};

std::shared_ptr<Communicator> LocalCommunicator::split(int color, int key) {
  constexpr Operation kSplit{.name = "split", .deadline_kind = DeadlineKind::kSetup};
  if (splitter_ == nullptr) {
    const auto channel = std::make_shared<LocalChannel>(group_, rank_);
    channel->attach(group_->open(Group::kSplitChannel, rank_, Purpose::kControl));
    splitter_ = std::make_unique<Collectives>(channel, rank_, size());
  }
  const Wanted mine{.color = color, .key = key};
  const auto answers = splitter_->all_gather(kSplit, std::as_bytes(std::span(&mine, 1)));
  const CallSite site{.rank = rank_, .operation = kSplit.name, .sequence = splits_++};
  try {
    std::vector<Wanted> wanted(answers.size());
    for (size_t rank = 0; rank < answers.size(); ++rank) {
      std::memcpy(&wanted[rank], answers[rank].data(), sizeof(Wanted));
    }
    return join_child(site, color, subgroup_of(*this, wanted));
  } catch (const std::bad_alloc&) {
    // The others would wait in the new communicator for a rank that never joins.
    fail(kSplit.name);
    throw;
  }
}

std::shared_ptr<Communicator> LocalCommunicator::join_child(const CallSite& site, int color,
                                                            const Subgroup& part) {
  const std::shared_ptr<Group> child =
      group_->child(site, color, static_cast<int>(part.members.size()), part.ranks_per_node);
  child->set_deadlines(part.rank, deadlines());
  auto made = std::make_shared<LocalCommunicator>(child, part.rank, default_threads());
  made->set_device_bodies(device_bodies());
  return made;
}

}  // namespace

std::shared_ptr<Group> make_group(int ranks, int ranks_per_node) {
  if (ranks < 1) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("a group of ", ranks, " ranks; at least 1 is needed"),
               {.value = ranks});
  }
  if (ranks_per_node < 1 || ranks_per_node > ranks) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence(ranks_per_node, " ranks per node in a group of ", ranks,
                              "; accepted is 1 to ", ranks),
               {.value = ranks_per_node, .limit = int64_t{ranks} + 1});
  }
  return std::make_shared<Group>(ranks, ranks_per_node);
}

int group_size(const Group& group) noexcept { return group.ranks(); }

std::shared_ptr<Communicator> join(std::shared_ptr<Group> group, int rank) {
  const int threads = core::default_thread_count(group->ranks());
  return std::make_shared<LocalCommunicator>(std::move(group), rank, threads);
}

}  // namespace shardrec::comm::local
