// One rank's end of a full mesh of Gloo connections: messages through Gloo's unbound buffers, whose
// slot is the tag.
//
// What a lost connection ends: a buffer posted on every connection fails when one of them does, and
// the thread that waits for it tells whose. What Gloo's own exceptions miss (messages that were
// half through) the alarm ends.
//
// What giving up a message costs: a short one goes on in memory of the transport's own, and takes
// the next message of its name with it; for a long one the connection to its peer is closed, as
// Gloo has no other way to take memory back.
//
// Thread rule: that of transport_plugin.h. Gloo's thread and the two of this class have all signals
// blocked; calls of the host's threads hold SIGPIPE off (sigpipe.h).
#pragma once

#include <gloo/transport/unbound_buffer.h>

#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/gloo/alarm.h"
#include "comm/gloo/mesh.h"

namespace shardrec::comm::gloo_plugin {

class Transport;

struct Request {
  Transport* transport = nullptr;
  int peer = 0;
  Way way = Way::kSend;
  int32_t status = SHARDREC_TRANSPORT_TIMEOUT;  // of the last wait; OK and FAILED are for good
  void* data = nullptr;
  uint64_t bytes = 0;
  std::vector<std::byte> copy{};  // of a short message
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer{};
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
  void cancel() noexcept { alarm_.cancel(); }

 private:
  Request* start(Way way, int peer, uint64_t slot, void* data, uint64_t bytes);
  void greet(const shardrec_transport_job& job, plugin::Clock::time_point deadline);
  void watch();
  void close_connections() noexcept;
  [[noreturn]] void fail(int peer) const;

  const int rank_;
  const int size_;
  Alarm alarm_;
  Mesh mesh_;
  std::mutex mutex_;  // of the lists
  std::list<Request> live_;
  std::list<Request> given_up_;
  std::mutex canary_mutex_;
  gloo::transport::UnboundBuffer* canary_ = nullptr;
  bool closing_ = false;
  std::thread watcher_;
};

}  // namespace shardrec::comm::gloo_plugin
