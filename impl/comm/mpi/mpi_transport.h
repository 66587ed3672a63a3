// One transport of this process: the functions that the host's threads call. Several transports may be
// open at once. They share the engine, and each frame carries the number of its transport.
//
// Thread rule: that of transport_plugin.h.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "comm/mpi/message.h"
#include "comm/plugin/plugin_side.h"
#include "comm/plugin/transport_plugin.h"

namespace shardrec::comm::mpi_plugin {

std::unique_ptr<Frame> make_frame(int peer, const FrameHead& head,
                                  std::span<const std::byte> message);

class Transport {
 public:
  // Collective: returns when every rank has said hello.
  static std::unique_ptr<Transport> open(const shardrec_transport_job& job);
  // Instead of a destructor, because the memory must not be freed if the engine is stuck inside MPI.
  static void close(std::unique_ptr<Transport> transport) noexcept;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

  Request* send(int peer, uint32_t tag, const void* data, uint64_t bytes);
  Request* receive(int peer, uint32_t tag, void* data, uint64_t bytes);
  int32_t wait(Request& request, double seconds);
  void forget(Request& request) noexcept;
  void announce(const void* data, uint64_t bytes);
  void cancel() noexcept;

  // From the engine's thread.
  const shardrec_transport_job& job() const noexcept { return job_; }
  uint32_t number() const noexcept { return number_; }
  void set_number(uint32_t number) noexcept { number_ = number; }
  void started(int rank, int size);
  void failed(int32_t status, const std::string& text) noexcept;
  void hear_hello(int from);
  void hear_group_state(int from, std::span<const std::byte> group_state);
  void ended(Request& request, int32_t status, std::string text) noexcept;
  void given_back(Request& request) noexcept;

 private:
  explicit Transport(const shardrec_transport_job& job) : job_(job) {}

  void meet(plugin::Clock::time_point deadline);
  Request& add(Direction direction, int peer, uint32_t tag, void* data, uint64_t bytes);
  void check_peer(int peer) const;

  const shardrec_transport_job job_;
  uint32_t number_ = 0;
  int rank_ = 0;
  int size_ = 1;

  std::mutex mutex_;  // of what follows
  std::condition_variable met_;
  std::vector<char> greeted_;
  int greetings_ = 0;
  bool is_started_ = false;
  int32_t open_status_ = SHARDREC_TRANSPORT_OK;
  std::string open_text_;
  bool cancelled_ = false;
  std::list<Request> live_;
};

}  // namespace shardrec::comm::mpi_plugin
