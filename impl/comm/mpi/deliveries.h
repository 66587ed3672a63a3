// The messages of one transport, as the engine sees them: posted receives, messages that arrived before
// their receive, and messages under way. Used by the engine's thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "comm/mpi/message.h"
#include "comm/mpi/wire.h"

namespace shardrec::comm::mpi_plugin {

// The MPI tags of long messages, which the receiver chooses, per sender. If a receive was
// cancelled, its tag is not used again until the sender has answered whether it had already sent. What
// it had sent is received and discarded, so that MPI gives the sender's memory back.
class MpiTags {
 public:
  uint32_t take(int peer);  // a free MPI tag; 0 if there is none
  void give_back(int peer, uint32_t mpi_tag) { books_[peer].busy.erase(mpi_tag); }

  void taken_back(int peer, uint32_t mpi_tag, uint64_t bytes_left);
  void answered(int peer, uint32_t mpi_tag, bool sent, Wire& wire);
  size_t unanswered() const noexcept { return unanswered_.size(); }

 private:
  static constexpr uint32_t kMost = 32767;  // every MPI has so many tags
  struct Book {
    uint32_t next = 0;
    std::set<uint32_t> busy{};
  };
  std::map<int, Book> books_;
  std::map<std::pair<int, uint32_t>, uint64_t> unanswered_;  // to the bytes left
};

class Deliveries {
 public:
  Deliveries(Transport& transport, uint32_t number, Wire& wire, MpiTags& mpi_tags) noexcept
      : transport_(transport), number_(number), wire_(wire), mpi_tags_(mpi_tags) {}

  void say_hello();
  void begin(Request& request);
  void give_up(Request& request);
  void delivered(int from, const FrameHead& head, std::span<const std::byte> message);
  void moved(Request& request);
  // Cancels every message.
  void give_up_all();
  // All requests fail; MPI is not called.
  void fail_all(const std::string& why) noexcept;

  bool holds(Request& request) const noexcept;
  // The number of messages that are not complete.
  size_t under_way() const noexcept { return receives_.size() + sends_.size() + moving_.size(); }

 private:
  // A long message whose receiver is ready before it is sent. The maps are by peer and tag.
  struct Ready {
    uint32_t mpi_tag;
    uint64_t bytes;
  };

  void begin_receive(Request& request);
  void begin_send(Request& request);
  void receive_short(Request& request, std::span<const std::byte> message);
  void unready(int from, const FrameHead& head);
  void start_moving(Request& request, const Ready& ready);
  void end(Request& request, int32_t status, std::string text = {});

  Transport& transport_;
  const uint32_t number_;
  Wire& wire_;
  MpiTags& mpi_tags_;
  std::unordered_map<uint64_t, Request*> receives_;  // short ones
  std::unordered_map<uint64_t, Request*> sends_;     // long ones whose receiver is not ready
  std::set<Request*> moving_;
  std::unordered_map<uint64_t, std::vector<std::byte>> early_messages_;
  std::unordered_map<uint64_t, Ready> early_ready_;
};

}  // namespace shardrec::comm::mpi_plugin
