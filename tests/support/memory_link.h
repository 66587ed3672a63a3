// A link in memory, for tests of what is built on one: any number of ranks of one process, messages
// that take their time or never come, peers that are cut off. Follows the contract of
// comm/remote/link.h to the letter, and ends the program where the other side does not.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/remote/link.h"

namespace shardrec::support {

using comm::ConstBytes;
using comm::remote::Carrier;
using comm::remote::Outcome;
using comm::remote::Request;
using comm::remote::Result;
using comm::remote::StateBroadcast;
using LinkClock = std::chrono::steady_clock;

struct MemoryLinkOptions {
  // A send is done when its receiver has it (true), or when it was posted (false).
  bool rendezvous = false;
  // Messages and group states take up to so many seconds, each its own time.
  double delay = 0;
  double broadcast_delay = 0;
  uint64_t seed = 1;
  int ranks_per_node = 0;  // 0: one node
};

class MemoryLink : public std::enable_shared_from_this<MemoryLink> {
 public:
  using Options = MemoryLinkOptions;
  static std::shared_ptr<MemoryLink> make(int ranks, const Options& options = {}) {
    return std::shared_ptr<MemoryLink>(new MemoryLink(ranks, options));
  }

  std::shared_ptr<Carrier> carrier(int rank) {
    return std::make_shared<MemoryCarrier>(shared_from_this(), rank);
  }
  std::shared_ptr<StateBroadcast> state_broadcast(int rank) {
    return std::make_shared<MemoryStateBroadcast>(shared_from_this(), rank);
  }
  std::shared_ptr<comm::Communicator> join(int rank) {
    return make_communicator(layout(rank), carrier(rank), state_broadcast(rank));
  }
  comm::remote::RankLayout layout(int rank) const {
    return {.rank = rank,
            .size = ranks_,
            .ranks_per_node = options_.ranks_per_node == 0 ? ranks_ : options_.ranks_per_node,
            .ranks_in_process = ranks_};
  }

  // The rank's process ends: what is under way with it fails, and the state broadcasts tell.
  void cut(int rank, const std::string& how = "its process ended") {
    break_connections(rank, "connection reset by peer");
    cancel(rank);
    tell_loss(rank, how);
  }
  // Only one of the two.
  void break_connections(int rank, const std::string& text) {
    const std::lock_guard lock(mutex_);
    broken_[static_cast<size_t>(rank)] = text;
    for (auto& end : ends_) end.changed.notify_all();
  }
  void tell_loss(int rank, const std::string& how) {
    for (int other = 0; other < ranks_; ++other) {
      if (other != rank) mail(other, {.from = rank, .how = how, .is_loss = true});
    }
  }
  // Messages for which it is true never arrive. Tags are those of envelope.h.
  void lose(std::function<bool(int from, int to, uint32_t tag)> lost) {
    const std::lock_guard lock(mutex_);
    lost_ = std::move(lost);
  }
  // Group states of the rank get no further.
  void mute(int rank) {
    const std::lock_guard lock(mutex_);
    muted_[static_cast<size_t>(rank)] = true;
  }
  // Of all ranks together: requests that live.
  int requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  // Of group states and losses that are for the rank: how many its listener is not through with.
  int unheard(int rank) {
    const std::lock_guard lock(mutex_);
    return boxes_[static_cast<size_t>(rank)].unheard;
  }
  uint64_t bytes_sent() {
    const std::lock_guard lock(mutex_);
    return bytes_sent_;
  }

 private:
  using Name = std::tuple<int, int, uint32_t>;  // from, to, tag

  struct Post {  // one side of a message
    const std::byte* source = nullptr;
    std::byte* target = nullptr;
    size_t size = 0;
    bool done = false;
    std::string error{};
  };
  struct Message {
    std::shared_ptr<Post> send{};
    std::shared_ptr<Post> receive{};
    std::vector<std::byte> held{};  // of an eager send that is done
    bool has_held = false;
    bool sent = false;
    LinkClock::time_point ready{};
  };
  struct Mail {
    int from = 0;
    std::vector<std::byte> bytes{};
    std::string how{};
    bool is_loss = false;
    LinkClock::time_point ready{};
  };
  struct End {  // where a rank and its state broadcast sleep
    std::condition_variable changed;
    std::condition_variable mail;
  };
  struct Box {
    std::deque<Mail> mails;
    int unheard = 0;  // mails, and the one that is with the listener
    bool closed = false;
  };

  class MemoryRequest final : public Request {
   public:
    MemoryRequest(std::shared_ptr<MemoryLink> link, int rank, int peer, const Name& name,
                  std::shared_ptr<Post> post)
        : link_(std::move(link)), rank_(rank), peer_(peer), name_(name), post_(std::move(post)) {}
    ~MemoryRequest() override { link_->forget(name_, post_); }
    Result wait(double seconds) override {
      if (over_) breach("a request was waited for after its end");
      const Result result = link_->wait(rank_, peer_, name_, *post_, seconds);
      over_ = result.outcome != Outcome::kTimeout;
      return result;
    }

   private:
    std::shared_ptr<MemoryLink> link_;
    int rank_;
    int peer_;
    Name name_;
    std::shared_ptr<Post> post_;
    bool over_ = false;
  };

  class MemoryCarrier final : public Carrier {
   public:
    MemoryCarrier(std::shared_ptr<MemoryLink> link, int rank)
        : link_(std::move(link)), rank_(rank) {}
    std::unique_ptr<Request> send(int peer, uint32_t tag, ConstBytes data) override {
      auto post = std::make_shared<Post>(Post{.source = data.data(), .size = data.size()});
      const Name name{rank_, peer, tag};
      link_->add(rank_, peer, name, post, true);
      return std::make_unique<MemoryRequest>(link_, rank_, peer, name, std::move(post));
    }
    std::unique_ptr<Request> receive(int peer, uint32_t tag, std::span<std::byte> data) override {
      auto post = std::make_shared<Post>(Post{.target = data.data(), .size = data.size()});
      const Name name{peer, rank_, tag};
      link_->add(rank_, peer, name, post, false);
      return std::make_unique<MemoryRequest>(link_, rank_, peer, name, std::move(post));
    }
    void cancel() noexcept override { link_->cancel(rank_); }

   private:
    std::shared_ptr<MemoryLink> link_;
    int rank_;
  };

  class MemoryStateBroadcast final : public StateBroadcast {
   public:
    MemoryStateBroadcast(std::shared_ptr<MemoryLink> link, int rank)
        : link_(std::move(link)), rank_(rank), thread_([this] { run(); }) {}
    ~MemoryStateBroadcast() override {
      link_->close(rank_);
      thread_.join();
    }
    void announce(ConstBytes group_state) noexcept override {
      if (std::this_thread::get_id() == thread_.get_id()) breach("announced by a listener");
      if (group_state.size() > 1024) breach("a group state is too long");
      link_->announce(rank_, group_state);
    }
    void listen(Listener listener) override {
      const std::lock_guard lock(listener_mutex_);  // waits for a call in progress
      listener_ = std::move(listener);
      heard_once_ = true;
      listening_.notify_all();
    }

   private:
    void run() {
      {
        std::unique_lock lock(listener_mutex_);
        // A state broadcast that nobody ever listens to ends too.
        while (!heard_once_ && !link_->closed(rank_)) {
          listening_.wait_for(lock, std::chrono::milliseconds(5));
        }
      }
      Mail mail;
      while (link_->next(rank_, mail)) {
        const std::lock_guard lock(listener_mutex_);
        if (mail.is_loss) {
          if (listener_.lost) listener_.lost(mail.from, mail.how);
        } else if (listener_.heard) {
          listener_.heard(mail.from, mail.bytes);
        }
        link_->count_heard(rank_);
      }
    }

    std::shared_ptr<MemoryLink> link_;
    int rank_;
    std::mutex listener_mutex_;
    std::condition_variable listening_;
    Listener listener_;
    bool heard_once_ = false;
    std::thread thread_;
  };

  MemoryLink(int ranks, const Options& options)
      : ranks_(ranks),
        options_(options),
        ends_(static_cast<size_t>(ranks)),
        random_(options.seed),
        broken_(static_cast<size_t>(ranks)),
        cancelled_(static_cast<size_t>(ranks)),
        muted_(static_cast<size_t>(ranks)),
        boxes_(static_cast<size_t>(ranks)) {}

  [[noreturn]] static void breach(const char* what) {
    std::fprintf(stderr, "the contract of a link is broken: %s\n", what);
    std::abort();
  }

  LinkClock::time_point later(double seconds) {  // under mutex_
    const double random = std::uniform_real_distribution<double>(0, seconds)(random_);
    return LinkClock::now() + std::chrono::duration_cast<LinkClock::duration>(
                                  std::chrono::duration<double>(seconds == 0 ? 0 : random));
  }

  void add(int rank, int peer, const Name& name, const std::shared_ptr<Post>& post, bool sends) {
    if (peer == rank || peer < 0 || peer >= ranks_) breach("no such peer");
    if (std::get<2>(name) >= (1U << 31)) breach("a tag of more than 31 bits");
    const std::lock_guard lock(mutex_);
    ++requests_;
    if (sends && lost_ && lost_(rank, peer, std::get<2>(name))) {
      bytes_sent_ += post->size;
      post->done = true;
      return;
    }
    Message& message = messages_[name];
    if (sends) {
      if (message.sent) breach("two messages of one name are under way");
      bytes_sent_ += post->size;
      message.sent = true;
      message.send = post;
      message.ready = later(options_.delay);
      if (!options_.rendezvous) {
        message.held.assign(post->source, post->source + post->size);
        message.has_held = true;
        message.send = nullptr;
        post->done = true;
      }
    } else {
      if (message.receive != nullptr) breach("two receives of one name are under way");
      message.receive = post;
    }
    match(name, message);
    wake(name);
  }
  void wake(const Name& name) {
    ends_[static_cast<size_t>(std::get<0>(name))].changed.notify_all();
    ends_[static_cast<size_t>(std::get<1>(name))].changed.notify_all();
  }

  void match(const Name& name, Message& message) {  // under mutex_
    if (!message.sent || message.receive == nullptr || message.ready > LinkClock::now()) return;
    const std::byte* source = message.has_held ? message.held.data() : message.send->source;
    const size_t size = message.has_held ? message.held.size() : message.send->size;
    if (size != message.receive->size) {
      message.receive->error = "the message has another length";
      if (message.send != nullptr) message.send->error = message.receive->error;
    } else if (size != 0) {
      std::memcpy(message.receive->target, source, size);
    }
    message.receive->done = true;
    if (message.send != nullptr) message.send->done = true;
    wake(name);
    messages_.erase(Name(name));
  }

  Result wait(int rank, int peer, const Name& name, Post& post, double seconds) {
    std::unique_lock lock(mutex_);
    const auto until =
        LinkClock::now() + std::chrono::duration_cast<LinkClock::duration>(
                               std::chrono::duration<double>(std::min(seconds, 1e6)));
    for (;;) {
      if (cancelled_[static_cast<size_t>(rank)]) return {.outcome = Outcome::kCancelled};
      auto wake = until;
      if (!post.done) {
        const auto found = messages_.find(name);
        if (found != messages_.end()) {
          if (found->second.sent && found->second.ready > LinkClock::now()) {
            wake = std::min(wake, found->second.ready);
          }
          match(name, found->second);
        }
      }
      if (!post.error.empty()) {
        return {.outcome = Outcome::kFailed, .peer = peer, .text = post.error};
      }
      if (post.done) return {.outcome = Outcome::kDone};
      for (const int end : {peer, rank}) {
        const std::string& text = broken_[static_cast<size_t>(end)];
        if (!text.empty()) return {.outcome = Outcome::kFailed, .peer = peer, .text = text};
      }
      if (LinkClock::now() >= until) return {.outcome = Outcome::kTimeout};
      ends_[static_cast<size_t>(rank)].changed.wait_until(lock, wake);
    }
  }

  void forget(const Name& name, const std::shared_ptr<Post>& post) {
    const std::lock_guard lock(mutex_);
    --requests_;
    const auto found = messages_.find(name);
    if (found == messages_.end()) return;
    Message& message = found->second;
    if (message.receive == post) message.receive = nullptr;
    if (message.send == post) {
      message.send = nullptr;
      message.sent = false;
    }
    if (!message.sent && message.receive == nullptr) messages_.erase(found);
  }

  void cancel(int rank) noexcept {
    const std::lock_guard lock(mutex_);
    cancelled_[static_cast<size_t>(rank)] = true;
    ends_[static_cast<size_t>(rank)].changed.notify_all();
  }

  void announce(int from, ConstBytes bytes) {
    {
      const std::lock_guard lock(mutex_);
      if (muted_[static_cast<size_t>(from)] || !broken_[static_cast<size_t>(from)].empty()) return;
    }
    for (int to = 0; to < ranks_; ++to) {
      if (to != from) mail(to, {.from = from, .bytes = {bytes.begin(), bytes.end()}});
    }
  }
  void mail(int to, Mail mail) {
    const std::lock_guard lock(mutex_);
    mail.ready = later(options_.broadcast_delay);
    auto& mails = boxes_[static_cast<size_t>(to)].mails;
    // What one rank says, and its loss, stay in order.
    for (const Mail& before : mails) {
      if (before.from == mail.from) mail.ready = std::max(mail.ready, before.ready);
    }
    mails.push_back(std::move(mail));
    ++boxes_[static_cast<size_t>(to)].unheard;
    ends_[static_cast<size_t>(to)].mail.notify_all();
  }
  bool next(int rank, Mail& mail) {
    std::unique_lock lock(mutex_);
    Box& box = boxes_[static_cast<size_t>(rank)];
    for (;;) {
      if (box.closed) return false;
      const auto first =
          std::min_element(box.mails.begin(), box.mails.end(),
                           [](const Mail& a, const Mail& b) { return a.ready < b.ready; });
      if (first == box.mails.end()) {
        ends_[static_cast<size_t>(rank)].mail.wait(lock);
      } else if (first->ready > LinkClock::now()) {
        ends_[static_cast<size_t>(rank)].mail.wait_until(lock, first->ready);
      } else {
        mail = std::move(*first);
        box.mails.erase(first);
        return true;
      }
    }
  }
  void count_heard(int rank) {
    const std::lock_guard lock(mutex_);
    --boxes_[static_cast<size_t>(rank)].unheard;
  }
  void close(int rank) {
    const std::lock_guard lock(mutex_);
    boxes_[static_cast<size_t>(rank)].closed = true;
    ends_[static_cast<size_t>(rank)].mail.notify_all();
  }
  bool closed(int rank) {
    const std::lock_guard lock(mutex_);
    return boxes_[static_cast<size_t>(rank)].closed;
  }

  const int ranks_;
  const Options options_;
  std::mutex mutex_;
  std::vector<End> ends_;
  std::mt19937_64 random_;
  std::map<Name, Message> messages_;
  std::vector<std::string> broken_;
  std::vector<bool> cancelled_;
  std::vector<bool> muted_;
  std::vector<Box> boxes_;
  std::function<bool(int, int, uint32_t)> lost_;
  int requests_ = 0;
  uint64_t bytes_sent_ = 0;
};

}  // namespace shardrec::support
