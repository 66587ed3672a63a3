// All calls of MPI: those for frames and those for long messages. Used by the engine's thread
// only. Throws plugin::Failure if MPI returns an error.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/mpi/message.h"
#include "comm/plugin/plugin_side.h"

namespace shardrec::comm::mpi_plugin {

// Is notified by Wire::poll() of what has happened.
class WireListener {
 public:
  virtual ~WireListener() = default;
  virtual void delivered(int from, const FrameHead& head, std::span<const std::byte> message) = 0;
  // The last part of a long message is complete, or was cancelled.
  virtual void moved(Request& request) = 0;
  virtual void drained(int peer, uint32_t mpi_tag) = 0;
};

class Wire {
 public:
  Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // Starts MPI unless the host has, and makes a communicator of its own; the latter is collective.
  void start();
  bool started() const noexcept { return communicator_ != MPI_COMM_NULL; }
  bool owns_mpi() const noexcept { return owns_mpi_; }
  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

  // Begin and end to receive frames. After close_mailbox() MPI has only the sends that are under way.
  void open_mailbox();
  void close_mailbox();

  void send(std::unique_ptr<Frame> frame);
  void move(Request& request);
  // Asks MPI to cancel what it has of a message. moved() is called when that is done.
  void take_back(Request& request);
  // Receives and discards what a peer sends.
  void drain(int peer, uint32_t mpi_tag, uint64_t bytes);
  // How many bytes of a cancelled message its sender still sends, if it sends it.
  static uint64_t bytes_left(const Request& request) noexcept;

  // Returns true if anything has happened.
  bool poll(WireListener& listener);
  size_t frames_in_flight() const noexcept { return frames_in_flight_; }
  size_t parts_moving() const noexcept { return flights_.size() - frames_in_flight_; }

  // Collective, as MPI_Finalize is. Only of MPI that start() started.
  void finish();

 private:
  // What each request of MPI belongs to.
  struct Flight {
    std::unique_ptr<Frame> frame{};
    Request* message = nullptr;
    std::vector<std::byte> drain{};
    int peer = 0;  // of a drain
    uint32_t mpi_tag = 0;
  };

  void check(int result, const char* call) const;
  void post_mailbox();
  bool poll_mailbox(WireListener& listener);
  bool poll_flights(WireListener& listener);

  bool owns_mpi_ = false;
  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  MPI_Request mailbox_ = MPI_REQUEST_NULL;
  std::vector<std::byte> mail_ = std::vector<std::byte>(kLongestFrame);
  std::vector<MPI_Request> handles_;
  std::vector<Flight> flights_;
  size_t frames_in_flight_ = 0;
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace shardrec::comm::mpi_plugin
