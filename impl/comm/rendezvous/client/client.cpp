#include "comm/rendezvous/client/client.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <new>

#include "core/error.h"
#include "core/start_thread.h"

namespace shardrec::comm::rendezvous {
namespace {

using core::fail;
using core::sentence;

constexpr size_t kScratchBytes = 65536;
constexpr size_t kRanks = size_t{kMostRanks} + 1;  // that a message can name
constexpr size_t kNewsBytes = 64;  // what an entry takes beside its group state, about
constexpr milliseconds kDefaultSilence{static_cast<int64_t>(kSilenceSeconds * 1000)};

}  // namespace

Client::Client(Connection connection, const Join& join)
    : rank_(join.rank),
      size_(join.size),
      local_address_(connection.socket().local()),
      connection_(std::move(connection)),
      scratch_(kScratchBytes),
      silence_(kDefaultSilence),
      awake_(Clock::now(), 2 * beat_interval(kDefaultSilence)),
      next_beat_(Clock::now()),
      left_(kRanks),
      lost_(kRanks),
      heartbeat_frame_(framed(Beat{})),
      goodbye_frame_(framed(Goodbye{})),
      lost_without_reason_(kRanks) {
  connection_.queue(framed(join));
}

void Client::run() noexcept {
  thread_.store(std::this_thread::get_id());
  while (!is_over()) {
    try {
      turn();
    } catch (const std::exception& error) {
      end(error.what());
    }
  }
}

bool Client::is_over() noexcept {
  const std::lock_guard lock(mutex_);
  return closed_ && ended_;
}

void Client::turn() {
  take_outgoing();
  if (connected_) transfer_frames();
  if (connected_) send_heartbeat();
  deliver();
}

void Client::take_outgoing() {
  std::unique_lock lock(mutex_);
  if (!connected_) {
    // Nothing to do before close() or listen().
    lock.unlock();
    pollfd alarm{.fd = alarm_.descriptor(), .events = POLLIN, .revents = 0};
    ::poll(&alarm, 1, -1);
    return alarm_.hush();
  }
  if (overflowed_) {
    lock.unlock();
    return end("it did not take what this rank announced");
  }
  connection_.queue(outgoing_);
  outgoing_.clear();
  if (closed_ && !goodbye_said_) {
    goodbye_said_ = Clock::now();
    connection_.queue(goodbye_frame_);
  }
}

// Sends, sleeps until there is something to do, and reads.
void Client::transfer_frames() {
  if (!connection_.flush()) return end(connection_.how());
  auto until = next_beat_;
  if (goodbye_said_) until = std::min(until, *goodbye_said_ + kGoodbyeTime);
  const auto pause = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
  const short wanted = connection_.queued() > 0 ? POLLIN | POLLOUT : POLLIN;
  std::array<pollfd, 2> waited = {
      pollfd{.fd = connection_.socket().descriptor(), .events = wanted, .revents = 0},
      pollfd{.fd = alarm_.descriptor(), .events = POLLIN, .revents = 0}};
  ::poll(waited.data(), waited.size(), static_cast<int>(std::clamp<int64_t>(pause, 0, 1000)));
  if (waited[1].revents != 0) alarm_.hush();
  if ((waited[0].revents & (POLLIN | POLLERR | POLLHUP)) == 0) return;
  const bool open = connection_.receive(scratch_, [&](const Frame& frame) { handle(frame); });
  if (!ending_.empty()) return end(ending_);
  if (!open) end(connection_.how());
}

void Client::handle(const Frame& frame) {
  heard_ = awake_.now();
  if (!ending_.empty()) return;
  switch (frame.kind) {
    case FrameKind::kBeat:
      read<Beat>(frame.payload);
      return;
    case FrameKind::kAccepted:
      silence_ = std::max(read<Accepted>(frame.payload).silence, milliseconds(1));
      awake_ = AwakeClock(Clock::now(), 2 * beat_interval(silence_));
      heard_ = {};
      connection_.socket().watch(silence_);
      return;
    case FrameKind::kWaiting: {
      const std::lock_guard lock(mutex_);
      waiting_ = read<Waiting>(frame.payload);
      return;
    }
    case FrameKind::kFormed: {
      const std::lock_guard lock(mutex_);
      formed_ = read<Formed>(frame.payload);
      changed_.notify_all();
      return;
    }
    case FrameKind::kRefused: {
      const std::lock_guard lock(mutex_);
      refused_ = read<Refused>(frame.payload);
      changed_.notify_all();
      return;
    }
    case FrameKind::kReply:
      return answer(read<Reply>(frame.payload));
    case FrameKind::kGroupState: {
      const auto heard = read<GroupState>(frame.payload);
      return notify({.rank = heard.from,
                     .group_state = Bytes(heard.group_state.begin(), heard.group_state.end())});
    }
    case FrameKind::kLost: {
      const auto lost = read<Lost>(frame.payload);
      if (lost.rank != rank_) return notify_lost(lost.rank, lost.how);
      ending_ = sentence("it has given up this rank ", rank_, ": ", lost.how);
      return;
    }
    case FrameKind::kLeft: {
      const int rank = read<Left>(frame.payload).rank;
      left_[static_cast<size_t>(rank)] = true;
      return note_gone(rank, "it said goodbye");
    }
    case FrameKind::kEnd:
      read<End>(frame.payload);
      ending_ = "it was destroyed";
      return;
    default:
      fail(SHARDREC_CORRUPT_DATA,
           sentence("the rendezvous sent a message of kind ", static_cast<int>(frame.kind)));
  }
}

void Client::answer(const Reply& reply) {
  const std::lock_guard lock(mutex_);
  const auto question = questions_.find(reply.id);
  if (question == questions_.end()) return;  // its caller waits no longer
  question->second = {.answered = true,
                      .status = reply.status,
                      .value = Bytes(reply.value.begin(), reply.value.end())};
  changed_.notify_all();
}

void Client::send_heartbeat() {
  const auto now = Clock::now();
  awake_.tick(now);
  if (awake_.now() - heard_ > silence_) {
    return end(sentence("nothing was heard of it for ", silence_.count(), " ms"));
  }
  if (goodbye_said_ && now - *goodbye_said_ >= kGoodbyeTime) return end("it did not say goodbye");
  if (now < next_beat_) return;
  next_beat_ = now + beat_interval(silence_);
  connection_.queue(heartbeat_frame_);
}

void Client::end(std::string_view how) noexcept {
  connected_ = false;
  bool is_loss = false;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
    try {
      how_ = how;
    } catch (const std::bad_alloc&) {  // it stays empty
    }
    is_loss = formed_.has_value() && !closed_ && !left_.front();
    changed_.notify_all();
  }
  alarm_.ring();  // the thread goes on, and tells what is left to tell
  if (is_loss) notify_server_lost(how);
  connection_ = Connection(Socket());  // last: `how` may be its own
}

void Client::notify_server_lost(std::string_view how) noexcept {
  try {
    notify_lost(
        0, sentence("the connection to the rendezvous, which ends with rank 0's process, ended: ",
                    how));
  } catch (const std::bad_alloc&) {
    notify_lost(0, no_reason_);
  }
}

void Client::notify_lost(int rank, std::string_view how) noexcept {
  const auto at = static_cast<size_t>(rank);
  if (lost_[at]) return;
  lost_[at] = true;
  note_gone(rank, how);
  try {
    notify({.rank = rank, .lost = true, .how = std::string(how)});
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock(mutex_);
    lost_without_reason_[at] = true;
  }
}

void Client::note_gone(int rank, std::string_view how) noexcept {
  const std::lock_guard lock(mutex_);
  if (gone_) return;
  gone_ = rank;
  try {
    gone_how_ = how;
  } catch (const std::bad_alloc&) {  // it stays empty
  }
  changed_.notify_all();
}

void Client::notify(Notification news) {
  const std::lock_guard lock(mutex_);
  const size_t bytes = notification_bytes_ + news.group_state.size() + kNewsBytes;
  if (bytes > kMostUnread && !news.lost) {
    fail(SHARDREC_OUT_OF_MEMORY, "this rank has not listened to what the others announced");
  }
  notifications_.push_back(std::move(news));
  notification_bytes_ = bytes;
}

void Client::deliver() {
  for (;;) {
    const std::lock_guard telling(telling_);
    Notification news;
    std::optional<int> wordless;
    std::shared_ptr<const Listener> listener;
    {
      const std::lock_guard lock(mutex_);
      if (listener_ == nullptr) return;
      if (!notifications_.empty()) {
        news = std::move(notifications_.front());
        notifications_.pop_front();
        notification_bytes_ -= news.group_state.size() + kNewsBytes;
      } else {
        const auto first =
            std::find(lost_without_reason_.begin(), lost_without_reason_.end(), true);
        if (first == lost_without_reason_.end()) return;
        *first = false;
        wordless = static_cast<int>(first - lost_without_reason_.begin());
      }
      listener = listener_;
    }
    if (wordless) {
      listener->lost(*wordless, no_reason_);
    } else if (news.lost) {
      listener->lost(news.rank, news.how);
    } else {
      listener->heard(news.rank, news.group_state);
    }
  }
}

namespace {

// A client and its thread, which keeps the client, too: it may be the one that lets go of it last.
struct Running {
  Running(Connection connection, const Join& join)
      : client(std::make_shared<Client>(std::move(connection), join)),
        thread(core::start_thread([client = client] { client->run(); })) {}
  ~Running() {
    client->listen({});
    client->close();
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  const std::shared_ptr<Client> client;
  std::thread thread;
};

}  // namespace

std::shared_ptr<Client> start_client(Connection connection, const Join& join) {
  const auto running = std::make_shared<Running>(std::move(connection), join);
  return {running, running->client.get()};
}

}  // namespace shardrec::comm::rendezvous
