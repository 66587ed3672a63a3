#include "comm/recorder.h"

#include <algorithm>
#include <new>
#include <type_traits>

#include "comm/failure.h"
#include "core/error.h"
#include "core/json.h"
#include "core/log.h"

namespace shardrec::comm {
namespace {

using core::sentence;

// The number of operations in the log's message.
constexpr size_t kMostLogged = 16;

constexpr std::array<const char*, 5> kPurposes = {"control", "input", "output", "dense",
                                                  "statistics"};
constexpr std::array<const char*, 4> kStates = {"posted", "waiting", "done", "failed"};

const char* name_of(Purpose purpose) noexcept { return kPurposes[static_cast<size_t>(purpose)]; }
const char* name_of(Recorder::State state) noexcept { return kStates[static_cast<size_t>(state)]; }

double seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

}  // namespace

int64_t Recorder::now() const noexcept {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - made_).count();
}

uint64_t Recorder::begin(Purpose purpose, uint64_t sequence, const char* name,
                         uint64_t bytes) noexcept {
  const uint64_t number = next_.fetch_add(1);
  Slot& site = slot(number);
  site.number.store(0);
  site.name.store(name);
  site.sequence.store(sequence);
  site.bytes.store(bytes);
  site.start.store(now());
  site.end.store(-1);
  site.peer.store(-1);
  site.purpose.store(purpose);
  site.state.store(State::kPosted);
  site.number.store(number + 1);
  return number;
}

void Recorder::set_state(uint64_t number, State state) noexcept {
  if (kept(number)) slot(number).state.store(state);
}

void Recorder::finish(uint64_t number) noexcept {
  if (!kept(number)) return;
  slot(number).end.store(now());
  slot(number).state.store(State::kDone);
}

void Recorder::fail(uint64_t number, const core::Error& error) noexcept {
  if (kept(number)) {
    slot(number).end.store(now());
    slot(number).peer.store(static_cast<int32_t>(error.parts().rank.value_or(-1)));
    slot(number).state.store(State::kFailed);
  }
  const shardrec_status status = error.status();
  if (status != SHARDREC_PEER_FAILED && status != SHARDREC_TIMEOUT && status != SHARDREC_MISMATCH) {
    return;
  }
  if (logged_.exchange(true)) return;
  try {
    core::log(SHARDREC_LOG_ERROR, rank_,
              sentence("rank ", rank_, ": ", error.sentence(),
                       "; its last operations:", text(kMostLogged)));
  } catch (const std::bad_alloc&) {  // then the log stays silent
  }
}

bool Recorder::read(uint64_t number, Entry& entry) const noexcept {
  const Slot& site = ring_[number % kOperations];
  if (site.number.load() != number + 1) return false;
  entry = {.number = number,
           .name = site.name.load(),
           .sequence = site.sequence.load(),
           .bytes = site.bytes.load(),
           .start = site.start.load(),
           .end = site.end.load(),
           .peer = site.peer.load(),
           .purpose = site.purpose.load(),
           .state = site.state.load()};
  return site.number.load() == number + 1;
}

std::string Recorder::text(size_t most) const {
  const uint64_t next = next_.load();
  std::string lines;
  for (uint64_t number = next - std::min<uint64_t>(next, most); number < next; ++number) {
    Entry entry;
    if (!read(number, entry)) continue;
    lines += sentence("\n  ", number, ": ", name_of(entry.purpose), " exchange ", entry.sequence,
                      " of \"", entry.name, "\", ", entry.bytes, " bytes, ", name_of(entry.state));
    if (entry.end >= 0) lines += sentence(" after ", (entry.end - entry.start) / 1000, " us");
    if (entry.peer >= 0) lines += sentence(" at rank ", entry.peer);
  }
  return lines;
}

std::string Recorder::json() const {
  const uint64_t next = next_.load();
  core::JsonWriter json;
  json.begin_object().key("version").integer(1);
  json.key("rank").integer(rank_).key("size").integer(size_);
  json.key("now_seconds").number(seconds(now()));
  json.key("operations").begin_array(core::JsonWriter::Style::kLines);
  for (uint64_t number = next - std::min<uint64_t>(next, kOperations); number < next; ++number) {
    Entry entry;
    if (!read(number, entry)) continue;
    json.begin_object().key("number").integer(static_cast<int64_t>(number));
    json.key("purpose").text(name_of(entry.purpose));
    json.key("sequence").integer(static_cast<int64_t>(entry.sequence));
    json.key("operation").text(entry.name);
    json.key("bytes").integer(static_cast<int64_t>(entry.bytes));
    json.key("start_seconds").number(seconds(entry.start));
    json.key("end_seconds");
    entry.end < 0 ? json.null() : json.number(seconds(entry.end));
    json.key("state").text(name_of(entry.state));
    json.key("peer");
    entry.peer < 0 ? json.null() : json.integer(entry.peer);
    json.end_object();
  }
  json.end_array().end_object();
  return json.take();
}

namespace {

class RecordedChannel final : public Channel {
 public:
  RecordedChannel(std::shared_ptr<Recorder> recorder, Purpose purpose, int rank)
      : recorder_(std::move(recorder)), purpose_(purpose), rank_(static_cast<size_t>(rank)) {}
  void attach(std::shared_ptr<Channel> channel) noexcept { channel_ = std::move(channel); }

  Ticket post(const Operation& operation, std::span<const ConstBytes> send,
              std::shared_ptr<const void> keep_alive) override {
    uint64_t bytes = 0;
    for (size_t to = 0; to < send.size(); ++to) bytes += to == rank_ ? 0 : send[to].size();
    const uint64_t number = recorder_->begin(purpose_, posted_, operation.name, bytes);
    return watched(number, [&] {
      const Ticket ticket = channel_->post(operation, send, std::move(keep_alive));
      numbers_[ticket.sequence % numbers_.size()] = number;
      posted_ = ticket.sequence + 1;
      return ticket;
    });
  }
  void receive(Ticket ticket, std::span<ConstBytes> received) override {
    const uint64_t number = number_of(ticket);
    recorder_->wait(number);
    watched(number, [&] { channel_->receive(ticket, received); });
    recorder_->finish(number);
  }
  bool has_arrived(Ticket ticket) noexcept override { return channel_->has_arrived(ticket); }
  void release(Ticket ticket) noexcept override { channel_->release(ticket); }
  void reclaim(Ticket ticket) override {
    watched(number_of(ticket), [&] { channel_->reclaim(ticket); });
  }

 private:
  uint64_t number_of(Ticket ticket) const { return numbers_[ticket.sequence % numbers_.size()]; }

  template <class Call>
  std::invoke_result_t<Call> watched(uint64_t number, const Call& call) {
    try {
      return call();
    } catch (const core::Error& error) {
      recorder_->fail(number, error);
      throw;
    }
  }

  const std::shared_ptr<Recorder> recorder_;
  const Purpose purpose_;
  const size_t rank_;
  std::shared_ptr<Channel> channel_;
  uint64_t posted_ = 0;
  std::array<uint64_t, size_t{2} * kMostInFlight> numbers_{};  // of the recorder, by sequence
};

class RecordedCommunicator final : public Communicator {
 public:
  explicit RecordedCommunicator(std::shared_ptr<Recorder> recorder)
      : recorder_(std::move(recorder)) {}
  void attach(std::shared_ptr<Communicator> communicator) noexcept {
    communicator_ = std::move(communicator);
  }

  int rank() const noexcept override { return communicator_->rank(); }
  int size() const noexcept override { return communicator_->size(); }
  int ranks_per_node() const noexcept override { return communicator_->ranks_per_node(); }
  int ranks_in_process() const noexcept override { return communicator_->ranks_in_process(); }
  int default_threads() const noexcept override { return communicator_->default_threads(); }
  void set_default_threads(int threads) noexcept override {
    communicator_->set_default_threads(threads);
  }
  DeviceBodies device_bodies() const noexcept override { return communicator_->device_bodies(); }
  void set_device_bodies(DeviceBodies bodies) noexcept override {
    communicator_->set_device_bodies(bodies);
  }
  bool reads_in_place() const noexcept override { return communicator_->reads_in_place(); }
  const std::shared_ptr<Recorder>& recorder() const noexcept { return recorder_; }

  std::shared_ptr<Channel> open_channel(Purpose purpose) override {
    // A rank whose memory runs out has opened none.
    const auto channel = std::make_shared<RecordedChannel>(recorder_, purpose, rank());
    channel->attach(communicator_->open_channel(purpose));
    return channel;
  }

  std::shared_ptr<Communicator> split(int color, int key) override {
    const auto part = prepare_part();
    part->attach(communicator_->split(color, key));
    part->recorder_->belong_to(part->rank(), part->size());
    return part;
  }

  Deadlines deadlines() const override { return communicator_->deadlines(); }
  void set_deadlines(const Deadlines& deadlines) override {
    communicator_->set_deadlines(deadlines);
  }
  void abort(const std::string& reason) noexcept override { communicator_->abort(reason); }
  void fail(std::string_view operation) noexcept override { communicator_->fail(operation); }
  void kill(Failure failure) noexcept override { communicator_->kill(std::move(failure)); }
  int departed_rank() const noexcept override { return communicator_->departed_rank(); }
  void check() const override { communicator_->check(); }
  void leave() noexcept override { communicator_->leave(); }
  void disconnect() noexcept override { communicator_->disconnect(); }

 private:
  // If memory runs out before the split, the communicator fails, as it does inside a split.
  std::shared_ptr<RecordedCommunicator> prepare_part() {
    try {
      return std::make_shared<RecordedCommunicator>(std::make_shared<Recorder>(0, 1));
    } catch (const std::bad_alloc&) {
      communicator_->fail("split");
      throw;
    }
  }

  const std::shared_ptr<Recorder> recorder_;
  std::shared_ptr<Communicator> communicator_;
};

}  // namespace

std::shared_ptr<Communicator> recorded(std::shared_ptr<Communicator> communicator,
                                       std::shared_ptr<Recorder> recorder) {
  const auto wrapper = std::make_shared<RecordedCommunicator>(std::move(recorder));
  wrapper->attach(std::move(communicator));
  return wrapper;
}

std::shared_ptr<Recorder> recorder_of(const Communicator& communicator) {
  return dynamic_cast<const RecordedCommunicator&>(communicator).recorder();
}

}  // namespace shardrec::comm
