// The Communicator of engines between processes: membership and splits. channel.cpp has the exchanges,
// link_state.cpp the failures.
#include <atomic>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/collective/collectives.h"
#include "comm/failure.h"
#include "comm/remote/channel.h"
#include "comm/remote/group.h"
#include "comm/remote/link.h"
#include "comm/remote/link_state.h"
#include "comm/split.h"
#include "core/error.h"
#include "core/random.h"
#include "core/threads.h"

namespace shardrec::comm::remote {
namespace {

// What a rank brings to a split. Ranks with the same process share its processors.
struct Answer {
  Wanted wanted;
  uint64_t process = 0;
};

uint64_t this_process() {
  static const uint64_t number = [] {
    uint64_t drawn = 0;
    core::fill_random(std::as_writable_bytes(std::span(&drawn, 1)));
    return drawn;
  }();
  return number;
}

class RemoteCommunicator final : public Communicator {
 public:
  RemoteCommunicator(std::shared_ptr<LinkState> link_state, std::shared_ptr<Group> group,
                     int default_threads)
      : link_state_(std::move(link_state)),
        group_(std::move(group)),
        default_threads_(default_threads) {}
  ~RemoteCommunicator() override { disconnect(); }
  RemoteCommunicator(const RemoteCommunicator&) = delete;
  RemoteCommunicator& operator=(const RemoteCommunicator&) = delete;

  int rank() const noexcept override { return group_->rank(); }
  int size() const noexcept override { return group_->size(); }
  int ranks_per_node() const noexcept override { return group_->shape().ranks_per_node; }
  int ranks_in_process() const noexcept override { return group_->shape().ranks_in_process; }
  int default_threads() const noexcept override { return default_threads_.load(); }
  void set_default_threads(int threads) noexcept override { default_threads_.store(threads); }
  DeviceBodies device_bodies() const noexcept override { return device_bodies_.load(); }
  void set_device_bodies(DeviceBodies bodies) noexcept override { device_bodies_.store(bodies); }
  bool reads_in_place() const noexcept override { return false; }

  std::shared_ptr<Channel> open_channel(Purpose purpose) override {
    // A rank whose memory runs out has opened none.
    const auto channel = std::make_shared<RemoteChannel>(link_state_, group_, purpose);
    channel->attach(group_->open_channel());
    return channel;
  }

  std::shared_ptr<Communicator> split(int color, int key) override;

  Deadlines deadlines() const override { return group_->deadlines(); }
  void set_deadlines(const Deadlines& deadlines) override {
    check_deadlines(deadlines);
    group_->set_deadlines(deadlines);
  }

  void abort(const std::string& reason) noexcept override {
    kill_with({.cause = Cause::kAborted, .failed_rank = rank()}, &Failure::reason, reason);
  }
  void fail(std::string_view operation) noexcept override {
    kill_with({.cause = Cause::kGaveUp, .failed_rank = rank()}, &Failure::operation, operation);
  }
  void kill(Failure failure) noexcept override {
    failure.observer = rank();
    link_state_->kill(*group_, failure);
  }
  int departed_rank() const noexcept override { return group_->departed_rank(); }
  void check() const override { group_->check({.rank = rank()}); }
  void leave() noexcept override { link_state_->depart(*group_, Presence::kLeft); }
  void disconnect() noexcept override { link_state_->depart(*group_, Presence::kDestroyed); }

 private:
  std::vector<Answer> ask_all(const Answer& mine);
  std::shared_ptr<Communicator> join_part(const std::vector<Answer>& answers, uint64_t sequence);
  void kill_with(Failure failure, std::string Failure::* text, std::string_view value) noexcept {
    try {
      failure.*text = value;
    } catch (...) {  // no memory for the words: the failure goes without them
    }
    kill(std::move(failure));
  }

  const std::shared_ptr<LinkState> link_state_;
  const std::shared_ptr<Group> group_;
  std::atomic<int> default_threads_;
  std::atomic<DeviceBodies> device_bodies_{default_device_bodies()};
  std::unique_ptr<Collectives> splitter_;  // made by the first split
  uint64_t splits_ = 0;
};

constexpr Operation kSplit{.name = "split", .deadline_kind = DeadlineKind::kSetup};

std::vector<Answer> RemoteCommunicator::ask_all(const Answer& mine) {
  if (splitter_ == nullptr) {
    const auto channel = std::make_shared<RemoteChannel>(link_state_, group_, Purpose::kControl);
    channel->attach(group_->open_splitting());
    splitter_ = std::make_unique<Collectives>(channel, rank(), size());
  }
  const auto messages = splitter_->all_gather(kSplit, std::as_bytes(std::span(&mine, 1)));
  std::vector<Answer> answers(messages.size());
  for (size_t peer = 0; peer < messages.size(); ++peer) {
    if (messages[peer].size() != sizeof(Answer)) {
      link_state_->kill_and_throw(*group_,
                                  {.cause = Cause::kGarbled,
                                   .failed_rank = static_cast<int>(peer),
                                   .observer = rank(),
                                   .sequence = splits_,
                                   .operation = kSplit.name,
                                   .reason = "it has another length"},
                                  {.rank = rank(), .operation = kSplit.name, .sequence = splits_});
    }
    std::memcpy(&answers[peer], messages[peer].data(), sizeof(Answer));
  }
  return answers;
}

std::shared_ptr<Communicator> RemoteCommunicator::split(int color, int key) {
  const auto answers = ask_all({.wanted = {.color = color, .key = key}, .process = this_process()});
  try {
    return join_part(answers, splits_++);
  } catch (const std::bad_alloc&) {
    // Else the other ranks would wait in the new communicator for a rank that never joins.
    fail(kSplit.name);
    throw;
  }
}

std::shared_ptr<Communicator> RemoteCommunicator::join_part(const std::vector<Answer>& answers,
                                                            uint64_t sequence) {
  const std::optional<Numbers> numbers = group_->shape().numbers.split(sequence);
  if (!numbers) {
    core::fail(SHARDREC_UNSUPPORTED,
               core::sentence("split ", sequence, " of a communicator that can be split ",
                              group_->shape().numbers.splits(),
                              " times in its life; split another one, or keep what was split"),
               {.limit = static_cast<int64_t>(group_->shape().numbers.splits())});
  }
  std::vector<Wanted> wanted;
  for (const Answer& answer : answers) wanted.push_back(answer.wanted);
  Subgroup part = subgroup_of(*this, wanted);
  int in_process = 0;
  for (int& member : part.members) {
    if (answers[static_cast<size_t>(member)].process == this_process()) ++in_process;
    member = group_->on_link(member);
  }
  const auto group = std::make_shared<Group>(Group::Shape{.parent = group_,
                                                          .members = std::move(part.members),
                                                          .rank = part.rank,
                                                          .ranks_per_node = part.ranks_per_node,
                                                          .ranks_in_process = in_process,
                                                          .numbers = *numbers});
  group->set_deadlines(deadlines());
  link_state_->add(group, {.rank = rank(), .operation = kSplit.name, .sequence = sequence});
  auto made = std::make_shared<RemoteCommunicator>(link_state_, group, default_threads());
  made->set_device_bodies(device_bodies());
  return made;
}

}  // namespace

std::shared_ptr<Communicator> make_communicator(const RankLayout& layout,
                                                std::shared_ptr<Carrier> carrier,
                                                std::shared_ptr<StateBroadcast> state_broadcast) {
  const auto link_state =
      std::make_shared<LinkState>(layout, std::move(carrier), std::move(state_broadcast));
  const int threads = core::default_thread_count(layout.ranks_in_process);
  return std::make_shared<RemoteCommunicator>(link_state, link_state->root(), threads);
}

}  // namespace shardrec::comm::remote
