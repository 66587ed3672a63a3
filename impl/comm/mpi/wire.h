// Every call of MPI there is: frames, and long messages on lanes. Of the engine's thread alone.
// Throws plugin::Failure where MPI returns an error.
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

// Hears from the wire what has happened.
class WireListener {
 public:
  virtual ~WireListener() = default;
  virtual void delivered(int from, const FrameHead& head, std::span<const std::byte> message) = 0;
  // The last part of a long message is through, or was taken back.
  virtual void moved(Request& request) = 0;
  virtual void drained(int peer, uint32_t lane) = 0;
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

  // Frames are received from now on; or no longer: then nothing of this wire is left in MPI but
  // what flies.
  void open_mailbox();
  void close_mailbox();

  void send(std::unique_ptr<Frame> frame);
  void move(Request& request);
  // Asks MPI to take back what it has of a message. moved() tells.
  void take_back(Request& request);
  // Receives what a peer sends in vain.
  void drain(int peer, uint32_t lane, uint64_t bytes);
  // How much of a message that was taken back the sender, if it sends, still sends.
  static uint64_t bytes_left(const Request& request) noexcept;

  // Whether anything happened.
  bool poll(WireListener& listener);
  size_t frames_in_flight() const noexcept { return frames_in_flight_; }
  size_t parts_moving() const noexcept { return flights_.size() - frames_in_flight_; }

  // Collective, as MPI_Finalize is. Only of MPI that start() started.
  void finish();

 private:
  // Beside each request of MPI: whose it is.
  struct Flight {
    std::unique_ptr<Frame> frame{};
    Request* message = nullptr;
    std::vector<std::byte> drain{};
    int peer = 0;  // of a drain
    uint32_t lane = 0;
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
