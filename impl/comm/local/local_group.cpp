#include "comm/local/local_group.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/collectives.h"
#include "comm/local/channel.h"
#include "comm/local/group.h"
#include "core/error.h"

namespace shardrec::comm::local {
namespace {

struct Wanted {
  int32_t color = 0;
  int32_t key = 0;
};

// The largest n for which rank / n tells the nodes of the child's ranks apart as their nodes in the
// parent do; 1, every rank on a node of its own, where there is none.
int child_ranks_per_node(std::span<const int> nodes) {
  const auto first_other =
      std::find_if(nodes.begin(), nodes.end(), [&](int node) { return node != nodes.front(); });
  const int guess = static_cast<int>(first_other - nodes.begin());
  for (size_t i = 1; i < nodes.size(); ++i) {
    const bool same = static_cast<int>(i) / guess == static_cast<int>(i - 1) / guess;
    if (same != (nodes[i] == nodes[i - 1])) return 1;
  }
  return guess;
}

class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(std::shared_ptr<Group> group, int rank)
      : group_(std::move(group)), rank_(rank) {
    group_->join(rank);
  }
  ~LocalCommunicator() override { disconnect(); }
  LocalCommunicator(const LocalCommunicator&) = delete;
  LocalCommunicator& operator=(const LocalCommunicator&) = delete;

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return group_->ranks(); }
  int ranks_per_node() const noexcept override { return group_->ranks_per_node(); }
  int ranks_in_process() const noexcept override { return group_->ranks(); }

  std::shared_ptr<Channel> open_channel(Purpose purpose) override {
    const auto channel = std::make_shared<LocalChannel>(group_, rank_);
    channel->attach(group_->open_next(rank_, purpose));
    return channel;
  }

  std::shared_ptr<Communicator> split(int color, int key) override;

  Deadlines deadlines() const override { return group_->deadlines(rank_); }
  void set_deadlines(const Deadlines& deadlines) override {
    for (const double seconds : {deadlines.step, deadlines.setup, deadlines.warn}) {
      if (seconds > 0) continue;
      core::fail(SHARDREC_INVALID_ARGUMENT,
                 core::sentence("a deadline of ", decimal(seconds), " s; it must be above 0"));
    }
    group_->set_deadlines(rank_, deadlines);
  }

  void abort(const std::string& reason) noexcept override {
    kill({.cause = Cause::kAborted, .culprit = rank_, .witness = rank_}, &Failure::reason, reason);
  }
  void fail(std::string_view operation) noexcept override {
    kill({.cause = Cause::kGaveUp, .culprit = rank_, .witness = rank_}, &Failure::operation,
         operation);
  }
  void check() const override { group_->check({.rank = rank_}); }
  void leave() noexcept override { group_->depart(rank_, Membership::kLeft); }
  void disconnect() noexcept override { group_->depart(rank_, Membership::kDestroyed); }

 private:
  std::shared_ptr<Communicator> join_child(const Place& place, const Wanted& mine,
                                           std::span<const ConstBytes> answers);
  void kill(Failure failure, std::string Failure::* text, std::string_view value) noexcept {
    try {
      failure.*text = value;
    } catch (...) {  // no memory for the words: the failure goes without them
    }
    group_->kill(std::move(failure));
  }

  const std::shared_ptr<Group> group_;
  const int rank_;
  std::unique_ptr<Collectives> splitter_;  // made by the first split
  uint64_t splits_ = 0;
};

std::shared_ptr<Communicator> LocalCommunicator::split(int color, int key) {
  constexpr Operation kSplit{.name = "split", .patience = Patience::kSetup};
  if (splitter_ == nullptr) {
    const auto channel = std::make_shared<LocalChannel>(group_, rank_);
    channel->attach(group_->open(Group::kSplitChannel, rank_, Purpose::kControl));
    splitter_ = std::make_unique<Collectives>(channel, rank_, size());
  }
  const Wanted mine{.color = color, .key = key};
  const auto answers = splitter_->all_gather(kSplit, std::as_bytes(std::span(&mine, 1)));
  const Place place{.rank = rank_, .operation = kSplit.name, .sequence = splits_++};
  try {
    return join_child(place, mine, answers);
  } catch (const std::bad_alloc&) {
    // The others would wait in the new communicator for a rank that never joins.
    fail(kSplit.name);
    throw;
  }
}

std::shared_ptr<Communicator> LocalCommunicator::join_child(const Place& place, const Wanted& mine,
                                                            std::span<const ConstBytes> answers) {
  std::vector<std::pair<int32_t, int>> members;  // (key, rank) of this color
  for (int rank = 0; rank < size(); ++rank) {
    Wanted wanted;
    std::memcpy(&wanted, answers[static_cast<size_t>(rank)].data(), sizeof wanted);
    if (wanted.color == mine.color) members.emplace_back(wanted.key, rank);
  }
  std::sort(members.begin(), members.end());
  std::vector<int> nodes;
  for (const auto& [their_key, rank] : members) nodes.push_back(node_of(rank));
  const auto own =
      std::find(members.begin(), members.end(), std::pair<int32_t, int>(mine.key, rank_));

  const std::shared_ptr<Group> child = group_->child(
      place, mine.color, static_cast<int>(members.size()), child_ranks_per_node(nodes));
  const int child_rank = static_cast<int>(own - members.begin());
  child->set_deadlines(child_rank, deadlines());
  return join(child, child_rank);
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
  return std::make_shared<LocalCommunicator>(std::move(group), rank);
}

}  // namespace shardrec::comm::local
