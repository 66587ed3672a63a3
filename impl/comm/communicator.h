// The interface under all collective work: a rank's membership of a group, and ordered channels on it.
//
// A channel carries a sequence of all-to-all-v exchanges among all ranks; everything else
// (collectives.h) is built on that. Channels never mix: the n-th open_channel() of every rank names
// the same one, so that the input exchange of a collection can never match its gradient exchange.
//
// An exchange is asynchronous from its first half: post() publishes what this rank sends and waits
// for nobody; receive() blocks until the peers' messages are there, which has_arrived() tells
// without blocking. Received messages are views:
// the `local` engine shows the sender's memory in place, engines between processes fill storage of
// their own. Hence the two ends of a message's life:
//   release(ticket)   the reader is done with the views
//   reclaim(ticket)   waits until every reader is done; after it the sender may overwrite
// Sent memory is kept alive through `keep_alive` until then, so that a rank may destroy its objects
// while peers still read.
//
// Failures: any call throws core::Error with PEER_FAILED, TIMEOUT, MISMATCH or ABORTED, naming rank
// and operation; the communicator is then dead on every rank, waiting calls end at once, later
// calls throw the same.
//
// Thread rule: one thread at a time per channel of one rank; channels are independent. abort(),
// fail() and the property setters may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"

namespace shardrec::comm {

using ConstBytes = std::span<const std::byte>;

// What a channel is for; names it in errors.
enum class Purpose : uint8_t { kControl, kInput, kOutput, kDense, kStatistics };

// Which deadline a wait is under.
enum class DeadlineKind : uint8_t { kStep, kSetup };

// Seconds. Changeable at any time for later calls.
struct Deadlines {
  double step = 600;
  double setup = 1800;
  double warn = 30;
};

// What an exchange is, carried with every message and compared on arrival. `name` is a string
// literal, such as "forward"; kind, detail and size must be equal on all ranks (detail: dtype, plan
// hash, reduction: whatever must agree), else MISMATCH naming both ranks and both names.
struct Operation {
  const char* name = "";
  uint32_t kind = 0;  // a number of the caller's per sort of operation
  uint64_t detail = 0;
  DeadlineKind deadline_kind = DeadlineKind::kStep;
  uint64_t size = 0;  // elements, where all ranks must bring as many: named in the error
  // True for the barrier before leave(). It also ends for a rank when it hears that another one has
  // left, because that one has heard of all. So a rank that ends between two messages of the
  // barrier holds up nobody.
  bool last = false;
};

// What carries the bodies of messages between devices (bodies/carrier.h), where they are not in memory that ranks
// share.
enum class DeviceBodies : uint8_t { kHost, kNccl };

// Of communicators that are made from now on: kHost, until tests say otherwise.
DeviceBodies default_device_bodies() noexcept;
void set_default_device_bodies(DeviceBodies bodies) noexcept;

struct Failure;  // failure.h

// Names one exchange of one channel: its sequence number, from 0.
struct Ticket {
  uint64_t sequence = 0;
};

class Channel {
 public:
  virtual ~Channel() = default;

  // Publishes this rank's part of the next exchange. send has one entry per rank (own rank
  // included; entries may be empty). The memory behind send stays unchanged until reclaim(); keep_alive
  // is held until then. Up to kMostInFlight exchanges may be posted and not yet reclaimed. Does not
  // block.
  virtual Ticket post(const Operation& operation, std::span<const ConstBytes> send,
                      std::shared_ptr<const void> keep_alive) = 0;

  // Blocks until every rank's message of this exchange is there, then sets received[p] to the
  // message of rank p, valid until release(). An exchange is received at most once, in posting
  // order.
  virtual void receive(Ticket ticket, std::span<ConstBytes> received) = 0;

  // True if receive() would return at once, or throw at once: because the communicator is dead, a
  // peer that is awaited has gone, or the ticket is none that may be received. Does not block. It
  // knows no deadline: who asks again and again, for as long as a peer is late, is never told of
  // a timeout.
  [[nodiscard]] virtual bool has_arrived(Ticket ticket) noexcept = 0;

  // This rank no longer reads the views of the exchange. Does not block, does not throw.
  virtual void release(Ticket ticket) noexcept = 0;

  // Blocks until every rank has released the exchange; its memory may then be overwritten.
  virtual void reclaim(Ticket ticket) = 0;

  static constexpr int kMostInFlight = 16;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  virtual int ranks_per_node() const noexcept = 0;
  int node_of(int rank) const noexcept { return rank / ranks_per_node(); }
  // Ranks of this communicator that live in this process.
  virtual int ranks_in_process() const noexcept = 0;
  // How many threads this rank takes of the processors that it shares with the ranks of its
  // machine, at least 1. A communicator that was split from another one has the same number,
  // because the ranks outside of it work too.
  virtual int default_threads() const noexcept = 0;
  virtual void set_default_threads(int threads) noexcept = 0;  // see share_processors()
  // The same on all ranks; a communicator that is split from this one has it too.
  virtual DeviceBodies device_bodies() const noexcept = 0;
  virtual void set_device_bodies(DeviceBodies bodies) noexcept = 0;
  // Do all ranks read each other's memory, and does reclaim() wait until they have read?
  virtual bool reads_in_place() const noexcept = 0;

  // The n-th call of every rank opens the same channel. Does not block. The channel keeps what it
  // needs of the communicator.
  virtual std::shared_ptr<Channel> open_channel(Purpose purpose) = 0;

  // Ranks that give the same color form a new communicator, ordered by (key, rank). Collective.
  virtual std::shared_ptr<Communicator> split(int color, int key) = 0;

  virtual Deadlines deadlines() const = 0;
  virtual void set_deadlines(const Deadlines& deadlines) = 0;

  // Kills the communicator on every rank with ABORTED, naming this rank and the reason.
  virtual void abort(const std::string& reason) noexcept = 0;
  // Kills it with PEER_FAILED, naming this rank and the operation it will not take part in.
  virtual void fail(std::string_view operation) noexcept = 0;
  // Kills it with a failure that this rank has noticed: `observer` is not read.
  virtual void kill(Failure failure) noexcept = 0;
  // A rank that has ended its membership, in order or not; -1: none is known.
  virtual int departed_rank() const noexcept = 0;
  // Throws what killed the communicator; returns when it lives.
  virtual void check() const = 0;
  // Throws what killed the communicator, for an operation that is about to begin.
  void check_before(const char* operation) const;

  // The orderly end of this rank's membership, after a barrier: destroying it is no failure.
  virtual void leave() noexcept = 0;
  // The disorderly end, as destruction without leave() brings it: peers that wait for this rank,
  // now or later, get PEER_FAILED. For owners that cannot destroy the object yet. This rank's own
  // calls then throw CLOSED, after leave() too.
  virtual void disconnect() noexcept = 0;
};

}  // namespace shardrec::comm
