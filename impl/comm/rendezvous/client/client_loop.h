// What the thread of a client and its callers share.
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

class ClientLoop {
 public:
  using Listener = remote::Board::Listener;

  ClientLoop(Connection connection, const Join& join);

  // The thread: until close(), and goodbye is said and heard. After the connection has ended it
  // still tells a listener what became of the others. Where memory runs out the connection ends;
  // that this thread ends after close(), and that it tells the loss of a rank, needs none.
  void run() noexcept;

  // Any thread, as in client.h.
  Formed wait_until_formed(Clock::time_point deadline);
  milliseconds silence() const noexcept { return silence_; }  // set before the group has formed
  void announce(ConstBytes bulletin) noexcept;
  void listen(Listener listener);
  void set(std::string_view key, ConstBytes value, Clock::time_point deadline);
  Bytes get(std::string_view key, Clock::time_point deadline);
  void close() noexcept;

 private:
  struct Question {
    bool answered = false;
    shardrec_status status = SHARDREC_OK;
    Bytes value{};
  };
  // What the listener will be told.
  struct News {
    int rank = 0;
    bool lost = false;
    Bytes bulletin{};
    std::string how{};
  };

  void turn();
  void take_orders();
  void talk();
  void hear(const Frame& frame);
  void answer(const Reply& reply);
  void beat();
  // Of the connection. `how` is left out where there is no memory for it.
  void end(std::string_view how) noexcept;
  void tell_lost(int rank, std::string_view how) noexcept;
  void tell_lost_server(std::string_view how) noexcept;
  void note_gone(int rank, std::string_view how) noexcept;
  void tell(News news);
  bool is_over() noexcept;
  void deliver();

  void order(ConstBytes frame);  // under mutex_
  template <class Message>       // Set or Get
  Bytes ask(Message question, Clock::time_point deadline);
  std::string missing() const;  // under mutex_

  const int rank_;
  const int size_;

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
  // By rank: has said goodbye; was told lost.
  std::vector<bool> left_;
  std::vector<bool> lost_;
  // Made beforehand: a rank that has no memory left still says that it lives, and goodbye.
  const Bytes beat_frame_;
  const Bytes goodbye_frame_;

  Alarm alarm_;
  std::atomic<std::thread::id> thread_{};

  std::mutex mutex_;
  std::condition_variable changed_;
  // Under mutex_.
  Bytes orders_;         // frames that the connection has not taken yet
  bool choked_ = false;  // there were too many: the connection ends
  bool closed_ = false;  // by close()
  bool ended_ = false;   // the connection has, and how
  std::string how_;
  std::optional<Formed> formed_;
  std::optional<Refused> refused_;
  Waiting waiting_;
  std::optional<int> gone_;  // the first rank that was lost or left, and how
  std::string gone_how_;
  std::map<uint64_t, Question> questions_;
  uint64_t next_question_ = 1;
  std::deque<News> news_;
  size_t news_bytes_ = 0;
  // Losses that there was no memory for among the news, by rank; told after them.
  std::vector<bool> lost_without_words_;
  const std::string no_words_ = "there is no memory left on this rank to say why";
  std::shared_ptr<const Listener> listener_;

  // Held while a function of the listener runs. Taken before mutex_.
  std::mutex telling_;
};

}  // namespace shardrec::comm::rendezvous
