#include "comm/mpi/wire.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace shardrec::comm::mpi_plugin {
namespace {

using plugin::Failure;
using plugin::sentence;

constexpr int kFrameTag = 0;
constexpr uint64_t kPart = uint64_t{1} << 30;  // counts have 31 bits

bool launched() {
  // Set by Open MPI's mpirun, and by what speaks PMIx or PMI with it, such as srun.
  return getenv("OMPI_COMM_WORLD_SIZE") != nullptr || getenv("PMIX_RANK") != nullptr ||
         getenv("PMI_RANK") != nullptr;
}

[[noreturn]] void unusable(std::string text) {
  throw Failure(SHARDREC_TRANSPORT_UNUSABLE, -1, std::move(text));
}

// Makes room before MPI is asked: what it has begun must not be lost for lack of memory.
template <class Vector>
void make_room(Vector& vector) {
  if (vector.size() == vector.capacity()) vector.reserve(std::max<size_t>(64, 2 * vector.size()));
}

}  // namespace

void Wire::check(int result, const char* call) const {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw Failure(SHARDREC_TRANSPORT_FAILED, -1,
                sentence(call, " failed on rank ", rank_, ": ",
                         std::string_view(text, static_cast<size_t>(std::max(0, length)))));
}

void Wire::start() {
  int yes = 0;
  check(MPI_Finalized(&yes), "MPI_Finalized");
  if (yes != 0)
    unusable("MPI has been finalized in this process, and cannot be started a second time");
  if (started()) return;
  check(MPI_Initialized(&yes), "MPI_Initialized");
  int level = MPI_THREAD_SINGLE;
  if (yes == 0) {
    if (!launched())
      unusable(
          "this process was not started by an MPI launcher: start it with mpirun -n RANKS, or take "
          "the engine gloo");
    // Every call is made on this thread.
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread");
    owns_mpi_ = true;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  } else {
    check(MPI_Query_thread(&level), "MPI_Query_thread");
    if (level < MPI_THREAD_SERIALIZED)
      unusable(
          "this program has started MPI for calls from one thread only; the engine mpi calls it "
          "from a thread of its own: use MPI_Init_thread with MPI_THREAD_MULTIPLE, or leave MPI to "
          "the engine");
  }
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
  MPI_Comm made = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &made), "MPI_Comm_dup");
  check(MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  communicator_ = made;
}

void Wire::post_mailbox() {
  check(MPI_Irecv(mail_.data(), static_cast<int>(mail_.size()), MPI_BYTE, MPI_ANY_SOURCE, kFrameTag,
                  communicator_, &mailbox_),
        "MPI_Irecv");
}

void Wire::open_mailbox() {
  if (mailbox_ == MPI_REQUEST_NULL) post_mailbox();
}

void Wire::close_mailbox() {
  if (mailbox_ == MPI_REQUEST_NULL) return;
  check(MPI_Cancel(&mailbox_), "MPI_Cancel");
  check(MPI_Wait(&mailbox_, MPI_STATUS_IGNORE), "MPI_Wait");
}

void Wire::send(std::unique_ptr<Frame> frame) {
  make_room(handles_);
  make_room(flights_);
  MPI_Request handle = MPI_REQUEST_NULL;
  check(MPI_Isend(frame->bytes.data(), static_cast<int>(frame->bytes.size()), MPI_BYTE, frame->peer,
                  kFrameTag, communicator_, &handle),
        "MPI_Isend");
  handles_.push_back(handle);
  flights_.push_back({.frame = std::move(frame)});
  ++frames_in_flight_;
}

void Wire::move(Request& request) {
  const auto mpi_tag = static_cast<int>(request.mpi_tag);
  for (uint64_t at = 0; at < request.bytes; at += kPart) {
    const auto count = static_cast<int>(std::min(kPart, request.bytes - at));
    make_room(handles_);
    make_room(flights_);
    MPI_Request handle = MPI_REQUEST_NULL;
    if (request.direction == Direction::kSend) {
      check(MPI_Isend(request.data + at, count, MPI_BYTE, request.peer, mpi_tag, communicator_,
                      &handle),
            "MPI_Isend");
    } else {
      check(MPI_Irecv(request.data + at, count, MPI_BYTE, request.peer, mpi_tag, communicator_,
                      &handle),
            "MPI_Irecv");
    }
    handles_.push_back(handle);
    flights_.push_back({.message = &request});
    ++request.parts;
  }
}

void Wire::take_back(Request& request) {
  for (size_t i = 0; i < flights_.size(); ++i) {
    // Open MPI takes back receives that nothing has arrived for, and no sends.
    if (flights_[i].message == &request && request.direction == Direction::kReceive)
      check(MPI_Cancel(&handles_[i]), "MPI_Cancel");
  }
}

uint64_t Wire::bytes_left(const Request& request) noexcept {
  // Parts arrive in order: those that came back are the last.
  const uint64_t parts = (request.bytes + kPart - 1) / kPart;
  return request.bytes - (parts - static_cast<uint64_t>(request.parts_back)) * kPart;
}

void Wire::drain(int peer, uint32_t mpi_tag, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += kPart) {
    Flight flight{.drain = std::vector<std::byte>(std::min(kPart, bytes - at)),
                  .peer = peer,
                  .mpi_tag = at + kPart < bytes ? 0 : mpi_tag};
    make_room(handles_);
    make_room(flights_);
    MPI_Request handle = MPI_REQUEST_NULL;
    check(MPI_Irecv(flight.drain.data(), static_cast<int>(flight.drain.size()), MPI_BYTE, peer,
                    static_cast<int>(mpi_tag), communicator_, &handle),
          "MPI_Irecv");
    handles_.push_back(handle);
    flights_.push_back(std::move(flight));
  }
}

bool Wire::poll(WireListener& listener) {
  const bool mail = mailbox_ != MPI_REQUEST_NULL && poll_mailbox(listener);
  return poll_flights(listener) || mail;
}

bool Wire::poll_mailbox(WireListener& listener) {
  bool any = false;
  for (;;) {
    int arrived = 0;
    MPI_Status status;
    check(MPI_Test(&mailbox_, &arrived, &status), "MPI_Test");
    if (arrived == 0) return any;
    any = true;
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    FrameHead head;
    const auto bytes = static_cast<size_t>(std::max(0, count));
    if (bytes >= sizeof head) {
      std::memcpy(&head, mail_.data(), sizeof head);
      listener.delivered(status.MPI_SOURCE, head,
                         std::span(mail_).first(bytes).subspan(sizeof head));
    }
    post_mailbox();
  }
}

bool Wire::poll_flights(WireListener& listener) {
  const size_t flying = flights_.size();
  if (flying == 0) return false;
  indices_.resize(flying);
  statuses_.resize(flying);
  int count = 0;
  check(MPI_Testsome(static_cast<int>(flying), handles_.data(), &count, indices_.data(),
                     statuses_.data()),
        "MPI_Testsome");
  if (count == MPI_UNDEFINED || count == 0) return false;
  for (int i = 0; i < count; ++i) {
    Flight& flight = flights_[static_cast<size_t>(indices_[static_cast<size_t>(i)])];
    if (flight.frame != nullptr) {
      --frames_in_flight_;
      flight.frame.reset();
      continue;
    }
    if (flight.message == nullptr) {
      flight.drain = {};
      if (flight.mpi_tag != 0) listener.drained(flight.peer, flight.mpi_tag);
      continue;
    }
    int cancelled = 0;
    MPI_Test_cancelled(&statuses_[static_cast<size_t>(i)], &cancelled);
    Request* message = std::exchange(flight.message, nullptr);
    message->parts_back += cancelled;
    if (--message->parts == 0) listener.moved(*message);
  }
  // What the listener started was appended.
  size_t kept = 0;
  for (size_t i = 0; i < flights_.size(); ++i) {
    if (handles_[i] == MPI_REQUEST_NULL) continue;
    if (kept != i) {
      handles_[kept] = handles_[i];
      flights_[kept] = std::move(flights_[i]);
    }
    ++kept;
  }
  handles_.resize(kept);
  flights_.resize(kept);
  return true;
}

void Wire::finish() {
  close_mailbox();
  communicator_ = MPI_COMM_NULL;
  check(MPI_Finalize(), "MPI_Finalize");
}

}  // namespace shardrec::comm::mpi_plugin
