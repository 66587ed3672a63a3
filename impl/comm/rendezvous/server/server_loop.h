// The thread of the server: sockets in, the job in the middle, sockets out. Everything but stop()
// and the counts is that one thread's.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "comm/rendezvous/net/awake_clock.h"
#include "comm/rendezvous/net/connection.h"
#include "comm/rendezvous/net/poller.h"
#include "comm/rendezvous/server/job.h"
#include "comm/rendezvous/server/listener.h"

namespace shardrec::comm::rendezvous {

class ServerLoop final : private RankConnections {
 public:
  ServerLoop(Listener listener, milliseconds silence);

  // Serves until stop(). Then it waits a little for the ranks to say goodbye, notifies those that have
  // not, and returns within 2 * kGoodbyeTime. If memory runs out it returns at once, and every
  // connection ends.
  void run() noexcept;
  // Any thread.
  void stop() noexcept;

  // Counts, for any thread: ranks that have joined; connections that have not yet proved to know the
  // secret; connections that were refused because they do not know it.
  int joined() const noexcept { return joined_.load(); }
  size_t unauthenticated() const noexcept { return unauthenticated_.load(); }
  uint32_t turned_away() const noexcept { return turned_away_.load(); }

 private:
  // A connection that knows the secret; a member once its rank has joined.
  struct Peer {
    Connection connection;
    int rank = 0;
    bool member = false;
    bool closing = false;  // closed when all its frames are sent
    bool finished = false;
    bool dirty = false;
    std::string broken{};
    Clock::time_point since{};
    Interest interest{};
  };

  void send(int rank, ConstBytes frame) override;
  void close(int rank) override;

  void turn();
  bool is_over(Clock::time_point now);
  milliseconds pause(Clock::time_point now) const;
  void accept_connections(Clock::time_point now);
  void welcome(uint64_t name, Listener::Authenticated arrival, Clock::time_point now);
  void hear(uint64_t name, Peer& peer);
  void handle(uint64_t name, Peer& peer, const Frame& frame);
  void queue(uint64_t name, Peer& peer, ConstBytes bytes);
  void close(uint64_t name, Peer& peer);
  void mark(uint64_t name, Peer& peer);
  void settle();
  void drop(uint64_t name);
  void drop_late_joins(Clock::time_point now);
  Peer* peer_of(int rank, uint64_t& name);

  static constexpr uint64_t kAlarm = 0;
  static constexpr uint64_t kListener = 1;

  Poller poller_;
  Alarm alarm_;
  Listener listener_;
  Job job_;
  milliseconds silence_;
  milliseconds beat_interval_;
  AwakeClock awake_;
  Clock::time_point next_beat_;
  std::optional<Clock::time_point> accepts_again_;  // set while no connections are accepted
  uint64_t next_name_ = 2;
  std::unordered_map<uint64_t, Peer> peers_;
  std::unordered_map<int, uint64_t> members_;  // rank to name
  std::vector<uint64_t> dirty_;                // have something to send, or to end
  Bytes scratch_;

  std::atomic<bool> stopping_{false};
  std::optional<Clock::time_point> stop_began_;
  std::optional<Clock::time_point> end_began_;
  std::atomic<int> joined_{0};
  std::atomic<size_t> unauthenticated_{0};
  std::atomic<uint32_t> turned_away_{0};
};

}  // namespace shardrec::comm::rendezvous
