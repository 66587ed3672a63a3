// One rank's end of a full mesh of Gloo connections: messages through Gloo's unbound buffers, whose
// slot is the tag.
//
// How the loss of a connection is seen: a buffer posted on every connection fails when one of them
// does, and the thread that waits for it finds out whose, and ends the messages of that peer.
//
// What giving up a message costs: a short one goes on in memory of the transport's own, and takes
// the next message of its name with it; for a long one the connection to its peer is closed, as
// Gloo has no other way to take memory back.
//
// Thread rule: that of transport_plugin.h. Gloo's thread and that of this class have all signals
// blocked; calls of the host's threads hold SIGPIPE off (sigpipe.h).
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/gloo/mesh.h"
#include "comm/gloo/message.h"

namespace shardrec::comm::gloo_plugin {

struct Request {
  int peer = 0;
  Way way = Way::kSend;
  bool done = false;
  void* data = nullptr;
  std::vector<std::byte> copy{};  // of a short message
  std::unique_ptr<Message> message{};
  std::list<Request>::iterator place{};
};

class Transport {
 public:
  explicit Transport(const shardrec_transport_job& job);  // collective
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

  Request* send(int peer, uint64_t slot, const void* data, uint64_t bytes);
  Request* receive(int peer, uint64_t slot, void* data, uint64_t bytes);
  int32_t wait(Request& request, double seconds);
  void forget(Request& request) noexcept;
  void cancel() noexcept;

 private:
  struct Peer {
    bool lost = false;
    std::string why{};  // the first reason given
  };

  Request* start(Way way, int peer, uint64_t slot, void* data, uint64_t bytes);
  void meet(const shardrec_transport_job& job, plugin::Clock::time_point deadline);
  void greet(const shardrec_transport_job& job, plugin::Clock::time_point deadline);
  void watch();
  // Messages of this peer that are not through end; no more are begun.
  void lose(int peer, const std::string& why) noexcept;
  bool is_lost(int peer) const;
  void close_connections() noexcept;
  [[noreturn]] void fail(int peer) const;

  const int rank_;
  const int size_;
  Mesh mesh_;
  mutable std::mutex mutex_;  // of what follows
  std::vector<Peer> peers_;
  std::list<Request> live_;
  std::list<Request> given_up_;
  Message* canary_ = nullptr;
  bool cancelled_ = false;
  bool closing_ = false;
  std::thread watcher_;
};

}  // namespace shardrec::comm::gloo_plugin
