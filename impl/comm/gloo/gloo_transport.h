// One rank's end of a mesh of Gloo connections, one to each peer: messages through Gloo's unbound
// buffers, whose slot is the tag.
//
// How the loss of a connection is noticed: the loss check is a buffer that is posted on every
// connection and never receives anything. It fails when one of the connections does. The thread that
// waits for it finds out which one and ends the messages of that peer.
//
// What happens if a message is cancelled: a short one continues in memory of the transport, and
// receives the next message of its name. For a long one the connection to its peer is closed, because
// Gloo has no other way to take memory back.
//
// Long messages of a peer on this machine are read in its memory (peer_memory.h). If the message has
// already been offered, the thread that asks for it reads it; else a thread that waits for the peer's
// offers does. To cancel such a message costs nothing.
//
// Thread rule: that of transport_plugin.h. Gloo's thread and that of this class have all signals
// blocked; calls of the host's threads hold SIGPIPE off (core/held_signal.h).
#pragma once

#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/gloo/mesh.h"
#include "comm/gloo/message.h"
#include "comm/gloo/peer_memory.h"

namespace shardrec::comm::gloo_plugin {

struct Request {
  int peer = 0;
  Direction direction = Direction::kSend;
  bool done = false;
  uint64_t slot = 0;
  void* data = nullptr;
  uint64_t bytes = 0;
  std::vector<std::byte> copy{};       // of a short message
  std::unique_ptr<Message> message{};  // of one read in peer memory: its answer, if there is one
  std::list<Request>::iterator place{};

  // Of a message that is read in the sender's memory (peer_memory.h).
  bool in_peer_memory = false;
  Offer offer{};
  char answer = 0;
  std::unique_ptr<Message> offering{};
  GuardWords::Word* guard = nullptr;
  bool reading = false;  // its memory is being written to
  std::string wrong{};   // why it failed
  std::condition_variable changed{};
};

class Transport {
 public:
  // Collective; throws plugin::Failure.
  Transport(const shardrec_transport_job& job, const Peering& peering,
            plugin::Clock::time_point deadline);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  // Long messages from and to this peer need no connection: each end can read the other's memory.
  bool reads_memory_of(int peer) const noexcept;

  Request* send(int peer, uint64_t slot, const void* data, uint64_t bytes);
  Request* receive(int peer, uint64_t slot, void* data, uint64_t bytes);
  int32_t wait(Request& request, double seconds);
  void forget(Request& request) noexcept;
  void cancel() noexcept;

 private:
  struct Peer {
    bool lost = false;
    std::string why{};  // the first reason given
    // Set while the ranks meet. Bytes of a message that is sent and read directly; processes that
    // cannot read each other's memory: more than any has.
    uint64_t least_sent = UINT64_MAX;
    uint64_t least_read = UINT64_MAX;
    pid_t process = 0;
    std::map<uint64_t, Offer> offered{};    // by slot: nobody has asked for it yet
    std::map<uint64_t, Request*> wanted{};  // by slot; null: given up
    Message* next_offer = nullptr;
    std::thread reader{};
  };

  Request* start(Direction direction, int peer, uint64_t slot, void* data, uint64_t bytes);
  void prepare(Request& request);
  void hand_over(Request& request);
  void read_peer_memory(Request& request);
  void read(Request& request);
  void answer(Request& request);
  void accept(int peer, const Offer& offer);
  void accept_offers(int peer);
  void withdraw(Request& request) noexcept;
  int32_t wait_for_reader(Request& request, plugin::Clock::time_point deadline);
  void break_connection(int peer, std::string_view why) noexcept;
  bool is_peer(int rank) const { return mesh_.context->getPair(rank) != nullptr; }
  void meet(const shardrec_transport_job& job, const Peering& peering,
            plugin::Clock::time_point deadline);
  void greet(const shardrec_transport_job& job, plugin::Clock::time_point deadline);
  template <class Word>
  std::vector<Word> exchange_words(const shardrec_transport_job& job,
                                   plugin::Clock::time_point deadline, uint64_t slot,
                                   const std::vector<Word>& words);
  void start_readers();
  void watch();
  static void end(Request& request) noexcept;
  // Messages of this peer that are not complete fail, and no more are begun.
  void lose(int peer, std::string_view why) noexcept;
  bool is_lost(int peer) const;
  void close_connections() noexcept;
  [[noreturn]] void fail(int peer) const;

  const int rank_;
  const int size_;
  Mesh mesh_;
  GuardWords guard_words_;
  mutable std::mutex mutex_;  // of what follows
  std::vector<Peer> peers_;
  std::list<Request> live_;
  std::list<Request> given_up_;
  Message* loss_check_ = nullptr;
  bool cancelled_ = false;
  bool closing_ = false;
  std::thread watcher_;
};

}  // namespace shardrec::comm::gloo_plugin
