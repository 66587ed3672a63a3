#include "comm/ipc/links.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <thread>
#include <type_traits>
#include <utility>

#include "comm/clock.h"
#include "comm/failure.h"
#include "compute/cuda/host/memory.h"
#include "core/error.h"
#include "core/log.h"

namespace shardrec::comm::ipc {
namespace {

namespace host = compute::cuda::host;

constexpr Operation kConnect{.name = "connecting devices of processes",
                             .kind = 8,
                             .detail = 0,
                             .deadline_kind = DeadlineKind::kSetup};

constexpr int kLooksBeforeSleep = 20;
constexpr std::chrono::microseconds kShortest{20};
constexpr std::chrono::microseconds kLongest{1000};
// After which a wait asks whether the peer has left in order.
constexpr auto kDeparted = std::chrono::seconds(1);
// In which the communicator is told of a process that has ended, once nothing of it can be opened any more.
constexpr auto kTold = std::chrono::seconds(1);

template <class T>
std::vector<T> gather(Collectives &collectives, const T &mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all;
  for (const ConstBytes message :
       collectives.all_gather(kConnect, std::as_bytes(std::span(&mine, 1)))) {
    if (message.size() != sizeof(T)) {
      core::fail(SHARDREC_CORRUPT_DATA, "a rank connects its device in another way");
    }
    std::memcpy(&all.emplace_back(), message.data(), sizeof(T));
  }
  return all;
}

// Who among ranks of one machine could not share with which other one.
bool may_all_share(const std::vector<Whereabouts> &ranks) {
  for (size_t one = 0; one < ranks.size(); ++one) {
    for (size_t other = one + 1; other < ranks.size(); ++other) {
      if (!may_share(ranks[one], ranks[other])) return false;
    }
  }
  return true;
}

}  // namespace

// What a rank offers to all others.
struct Links::Hello {
  uint32_t is_offered = 0;
  WordsHandle words;
  EventPlace event;  // behind which the token is there
  Place token_at;
  uint64_t token = 0;  // that lies there
};

Links::Links(std::shared_ptr<Communicator> communicator, int32_t device,
             compute::BookedBytes booked, bool wanted)
    : communicator_(std::move(communicator)),
      device_(device),
      booked_(std::move(booked)),
      wanted_(wanted),
      copies_(device),
      marks_(copies_, false),
      announcements_(device),
      follows_(announcements_, false) {}

Links::~Links() { close_all(); }

void Links::connect(Collectives &collectives) {
  const auto ranks = gather(collectives, wanted_ ? whereabouts() : Whereabouts{});
  if (!may_all_share(ranks)) {
    core::log(SHARDREC_LOG_INFO, rank(),
              "what goes from device to device goes through the hosts: not all ranks may open each "
              "other's memory");
    return;
  }
  std::string why;  // this rank cannot
  const auto attempt = [&](const auto &work) {
    try {
      work();
    } catch (const std::exception &error) {
      why = error.what();
    }
  };
  Hello hello;
  attempt([&] { offer(ranks, hello); });
  const auto hellos = gather(collectives, hello);
  const bool offered = std::all_of(hellos.begin(), hellos.end(),
                                   [](const Hello &each) { return each.is_offered != 0; });
  if (offered) attempt([&] { open_all(hellos); });
  // Behind this nobody opens anything of the others for the first time, nor
  // reads a token.
  const auto opened = gather(collectives, uint32_t{offered && why.empty() ? 1U : 0U});
  connected_ = std::find(opened.begin(), opened.end(), 0U) == opened.end();
  core::log(SHARDREC_LOG_INFO, rank(),
            connected_ ? std::string("what goes from device to device goes by CUDA IPC")
                       : core::sentence("what goes from device to device goes through the hosts",
                                        why.empty() ? "" : ": ", why));
  if (connected_) return;
  close_all();
  collectives.barrier(kConnect);
  if (exports_ != nullptr) exports_->forget_peers();
  exports_.reset();
}

void Links::offer(const std::vector<Whereabouts> &ranks, Hello &hello) {
  exports_ = std::make_shared<Exports>(communicator_, device_, booked_);
  const auto block = exports_->allocate(sizeof hello.token);
  const host::PinnedMemory token(sizeof hello.token);
  hello.token = static_cast<uint64_t>(Clock::now().time_since_epoch().count());
  std::memcpy(token.data(), &hello.token, sizeof hello.token);
  copies_.copy(block->data, token.data(), sizeof hello.token);
  const auto event = exports_->take_event();
  record_copied(*event);
  copies_.wait();
  exports_->await_peers(ranks);
  hello.words = exports_->words().handle();
  hello.event = event->place();
  hello.token_at = exports_->place_of(block->data);
  hello.is_offered = 1;
}

void Links::open_all(const std::vector<Hello> &hellos) {
  peers_.resize(hellos.size());
  for (size_t rank = 0; rank < hellos.size(); ++rank) {
    if (rank == static_cast<size_t>(communicator_->rank())) continue;
    const Hello &hello = hellos[rank];
    peers_[rank] = std::make_unique<Peer>(
        Peer{.words = ClosedWords(hello.words, hellos.size()), .events = {}, .blocks = {}});
    wait_for(rank, hello.event, {.operation = kConnect.name});
    read_token(rank, hello);
  }
}

// Copies as messages are copied, and looks what has come.
void Links::read_token(size_t peer, const Hello &hello) {
  const auto own =
      host::make_memory(std::shared_ptr<host::Stream>(std::shared_ptr<host::Stream>(), &copies_));
  const auto block = own->allocate(sizeof hello.token);
  const host::PinnedMemory read(sizeof hello.token);
  copies_.copy(block->data, open(peer, hello.token_at, sizeof hello.token, kConnect.name),
               sizeof hello.token);
  copies_.copy(read.data(), block->data, sizeof hello.token);
  copies_.wait();
  if (std::memcmp(read.data(), &hello.token, sizeof hello.token) != 0) {
    core::fail(SHARDREC_DEVICE_ERROR,
               core::sentence("the memory of rank ", peer, " has other contents here"));
  }
}

void Links::check_peers(const core::Error &error, const char *operation) const {
  // While ranks connect, the exchange that follows tells of a peer that has ended.
  if (!connected_ || error.status() == SHARDREC_OUT_OF_MEMORY) return;
  const auto end = Clock::now() + kTold;
  do {
    communicator_->check_before(operation);
    std::this_thread::sleep_for(kLongest);
  } while (Clock::now() < end);
}

const std::byte *Links::open(size_t peer, const Place &place, uint64_t bytes,
                             const char *operation) {
  auto &blocks = peers_[peer]->blocks;
  auto found = blocks.end();
  try {
    found = blocks.try_emplace(place.block, device_, place).first;
  } catch (const core::Error &error) {
    check_peers(error, operation);
    throw;
  }
  const auto &[block, size] = found->second;
  if (place.offset > size || bytes > size - place.offset) {
    core::fail(SHARDREC_CORRUPT_DATA,
               core::sentence("the message of rank ", peer,
                              " says that its body is outside of its "
                              "memory"),
               {.rank = static_cast<int64_t>(peer)});
  }
  return block.data() + place.offset;
}

void Links::record_written(Exports::Event &event, const compute::Mark &mark) {
  follows_.follow(mark);
  event.event.record(announcements_);
}

const host::OpenedEvent &Links::event_of(size_t peer, const EventPlace &place,
                                         const char *operation) {
  if (place.number == 0) {
    core::fail(SHARDREC_CORRUPT_DATA,
               core::sentence("the message of rank ", peer, " names no event"),
               {.rank = static_cast<int64_t>(peer)});
  }
  try {
    return peers_[peer]->events.try_emplace(place.number, device_, place.handle).first->second;
  } catch (const core::Error &error) {
    check_peers(error, operation);
    throw;
  }
}

void Links::wait_for(size_t peer, const EventPlace &place, const Site &site) {
  const host::OpenedEvent &event = event_of(peer, place, site.operation);
  const auto begin = Clock::now();
  const double seconds = communicator_->deadlines().step;
  const auto fail = [&](Cause cause, int rank) {
    communicator_->kill({.cause = cause,
                         .failed_rank = rank,
                         .sequence = site.sequence,
                         .operation = site.operation,
                         .seconds = seconds});
    communicator_->check_before(site.operation);
  };
  int looks = 0;
  std::chrono::microseconds pause = kShortest;
  while (!event.is_over()) {
    communicator_->check_before(site.operation);
    const auto now = Clock::now();
    const int departed = now > begin + kDeparted ? communicator_->departed_rank() : -1;
    if (departed == static_cast<int>(peer)) fail(Cause::kAbandoned, departed);
    if (now > after(begin, seconds)) fail(Cause::kDeviceLate, static_cast<int>(peer));
    if (++looks < kLooksBeforeSleep) {
      std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongest);
  }
}

// Peers destroy their events and blocks when the word is set.
void Links::close_all() noexcept {
  try {
    copies_.wait();
  } catch (const core::Error &) {  // the device has failed: it does no work any more
  }
  for (const auto &peer : peers_) {
    if (peer == nullptr) continue;
    peer->blocks.clear();
    peer->events.clear();
    peer->words.set(static_cast<size_t>(communicator_->rank()));
  }
  peers_.clear();
}

}  // namespace shardrec::comm::ipc
