// A rank's connection to the server of the rendezvous, with a thread that keeps it. It sends heartbeats,
// receives what happens to the other ranks, and is the StateBroadcast of engines that have none of
// their own, and the store.
//
// A rank is lost when the server says so. The server usually runs in the process of rank 0, so rank 0
// is lost when the connection to the server breaks or the server is silent; losses of other ranks are
// no longer reported then. Rank 0 too is notified that rank 0 is lost if its server ends before it.
//
// start_client() makes a client and its thread. When its last owner is destroyed, the client sends what
// was announced and says goodbye. This takes little more than kGoodbyeTime.
//
// Any thread. Functions of the listener run on the thread of the client.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/remote/link.h"
#include "comm/rendezvous/net/awake_clock.h"
#include "comm/rendezvous/net/connection.h"
#include "comm/rendezvous/protocol/messages.h"

namespace shardrec::comm::rendezvous {

class Client final : public remote::StateBroadcast {
 public:
  // connection: both of its ends have proved to know the secret (connect.h). The client does nothing
  // before run().
  Client(Connection connection, const Join& join);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // The work of the client's thread. It returns when close() was called and both ends have said
  // goodbye. If the connection ends before, the thread goes on to notify the listener. If memory runs
  // out, the connection ends; to return after close(), and to notify a listener of a lost rank, needs
  // no memory.
  void run() noexcept;

  // Blocks until the group has formed; is called once. Throws the server's refusal, PEER_FAILED if
  // the connection broke, or TIMEOUT with the names of the ranks that are missing. After an error this
  // rank is no member of the group.
  Formed wait_until_formed(Clock::time_point deadline);

  // This end of the connection: an address under which the server's machine reaches this one.
  const Address& local_address() const noexcept { return local_address_; }

  // For how long a rank may be silent before the server regards it as lost. Valid once the group has
  // formed.
  double silence_seconds() const noexcept {
    return std::chrono::duration<double>(silence_).count();
  }

  void announce(ConstBytes group_state) noexcept override;
  void listen(Listener listener) override;

  // The store. Keys of up to 255 bytes without control characters, values of up to 65,536 bytes;
  // set replaces, get waits until somebody has set. Throw INVALID_ARGUMENT, OUT_OF_MEMORY (the
  // store is full), TIMEOUT, PEER_FAILED (the server is gone; for get: any rank, lost or left),
  // CLOSED (after close()).
  void set(std::string_view key, ConstBytes value, Clock::time_point deadline);
  Bytes get(std::string_view key, Clock::time_point deadline);

  // Says goodbye and ends every wait. Does not block.
  void close() noexcept;

 private:
  struct Question {
    bool answered = false;
    shardrec_status status = SHARDREC_OK;
    Bytes value{};
  };
  // What the listener will be notified of.
  struct Notification {
    int rank = 0;
    bool lost = false;
    Bytes group_state{};
    std::string how{};
  };

  void turn();
  void take_outgoing();
  void transfer_frames();
  void handle(const Frame& frame);
  void answer(const Reply& reply);
  void send_heartbeat();
  // Ends the connection. `how`, the reason, is left out if there is no memory for it.
  void end(std::string_view how) noexcept;
  void notify_lost(int rank, std::string_view how) noexcept;
  void notify_server_lost(std::string_view how) noexcept;
  void note_gone(int rank, std::string_view how) noexcept;
  void notify(Notification news);
  bool is_over() noexcept;
  void deliver();

  void enqueue(ConstBytes frame);  // under mutex_
  template <class Message>         // Set or Get
  Bytes ask(Message question, Clock::time_point deadline);
  std::string missing() const;  // under mutex_

  const int rank_;
  const int size_;
  const Address local_address_;

  // The thread's own.
  Connection connection_;
  bool connected_ = true;
  Bytes scratch_;
  milliseconds silence_;
  AwakeClock awake_;
  Clock::duration heard_{0};
  Clock::time_point next_beat_;
  std::optional<Clock::time_point> goodbye_said_;
  std::string ending_;  // why the connection is to end, as the server said
  // By rank: has said goodbye; was reported as lost.
  std::vector<bool> left_;
  std::vector<bool> lost_;
  // Made beforehand, so that a rank without memory still sends heartbeats and says goodbye.
  const Bytes heartbeat_frame_;
  const Bytes goodbye_frame_;

  Alarm alarm_;
  std::atomic<std::thread::id> thread_{};

  std::mutex mutex_;
  std::condition_variable changed_;
  // Under mutex_.
  Bytes outgoing_;           // frames that the connection has not taken yet
  bool overflowed_ = false;  // there were too many: the connection ends
  bool closed_ = false;      // by close()
  bool ended_ = false;       // the connection has, and how
  std::string how_;
  std::optional<Formed> formed_;
  std::optional<Refused> refused_;
  Waiting waiting_;
  std::optional<int> gone_;  // the first rank that was lost or left, and how
  std::string gone_how_;
  std::map<uint64_t, Question> questions_;
  uint64_t next_question_ = 1;
  std::deque<Notification> notifications_;
  size_t notification_bytes_ = 0;
  // Losses for which there was no memory in the queue, by rank. Reported after the queue.
  std::vector<bool> lost_without_reason_;
  const std::string no_reason_ = "there is no memory left on this rank to say why";
  std::shared_ptr<const Listener> listener_;

  // Held while a function of the listener runs. Taken before mutex_.
  std::mutex telling_;
};

// A client that runs on a thread of its own.
std::shared_ptr<Client> start_client(Connection connection, const Join& join);

}  // namespace shardrec::comm::rendezvous
