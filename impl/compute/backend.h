// A back end: what touches ids, rows and gradients, as families of operations on whole batches. A family
// is an interface, and the plain structs that its operations take, in a header of its name
// (routing_operations.h and its like); addresses in the structs are in the memory of the back end, lists
// of structs are the host's. Back ends are made by their names (backends/registry.h).
// Above it, a step decides on sizes, states and the order of things, and knows neither threads nor
// instruction sets, nor what a row holds.
//
// The operations of a back end, of all its families, take place in the order of the calls, and may be over
// later than the call: wait() returns when all are. A call copies the list of structs that it is given; what
// of the host's memory they point to stays as it is until wait(). Where a call says so, its results are there
// when it returns. Those of the CPU are over when the call returns. Groups of rows may be built beside the other
// operations (row_groups.h), and wait() waits for those that were joined.
//
// Thread rule: one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "compute/assembly_operations.h"
#include "compute/buffer.h"
#include "compute/gradient_operations.h"
#include "compute/kept_gradients.h"
#include "compute/lookup_operations.h"
#include "compute/mark.h"
#include "compute/non_finite_search.h"
#include "compute/operation_clock.h"
#include "compute/routing_operations.h"
#include "compute/row_operations.h"
#include "compute/slot_operations.h"
#include "compute/transfer_operations.h"
#include "core/tensor.h"

namespace shardrec::compute {

class HostStaging;

class Backend {
 public:
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  // Memory that the operations reach, and nobody else.
  virtual const std::shared_ptr<Memory>& memory() = 0;
  // Memory that the host reaches too: for messages.
  virtual const std::shared_ptr<Memory>& host_memory() = 0;
  // May the host read and write memory() as well, between operations? Tables need no copy then, where
  // they are saved and loaded.
  bool host_reaches_memory() { return memory() == host_memory(); }

  // The devices whose tensors a caller may give.
  virtual core::DeviceSet caller_devices() const = 0;
  // Do operations reach all of the host's memory? Else what a caller has there is copied first, by
  // make_host_staging() and copy_from_host().
  virtual bool reaches_host() const = 0;
  // For a caller's batches (host_staging.h). Null: operations reach all of the host's memory.
  virtual std::shared_ptr<HostStaging> make_host_staging() { return nullptr; }

  // Returns when all operations are over. Throws what an operation threw that ended after its call;
  // those behind it did not take place.
  virtual void wait() = 0;

  // Did updates of rows that were enqueued not take place, for want of memory or as the device failed, while others of the
  // same step may have? Some call has thrown why. forget_lost(): all rows are written otherwise. The CPU loses none.
  virtual bool has_lost() const { return false; }
  virtual void forget_lost() {}

  // Operations so far take place, also if nothing else is called: they may wait in a list until then.
  virtual void submit() {}
  // A caller's stream (shardrec_lookup_set_stream): operations from now on take place behind what is in
  // it, or what the caller puts into it from now on behind the operations so far. The CPU's need neither.
  // Throws INVALID_ARGUMENT: no stream of the device.
  virtual void follow_caller(int64_t /*stream*/) {}
  virtual void hold_up_caller(int64_t /*stream*/) {}

  // Adds the time of operations, by kind, to these, which outlive the back end; null: they are over when
  // their calls return. At most once; the clock is the back end's.
  virtual OperationClock* time_operations(std::span<std::atomic<int64_t>> /*nanoseconds*/) {
    return nullptr;
  }

  // Null: operations are over when their calls return, or others cannot wait for them without the host.
  virtual Marks* marks() { return nullptr; }
  // Do the back ends of all ranks of the collection read each other's memory()? They have marks then.
  virtual bool peers_reach_memory() const { return false; }

  // Of numbers that callers give in the memory of a device. Null: they give none there.
  virtual std::unique_ptr<NonFiniteSearch> make_non_finite_search() { return nullptr; }

  // What operates on ids, rows and gradients.
  TransferOperations& transfer() { return families_.transfer; }
  RoutingOperations& routing() { return families_.routing; }
  LookupOperations& lookup() { return families_.lookup; }
  AssemblyOperations& assembly() { return families_.assembly; }
  GradientOperations& gradients() { return families_.gradients; }
  RowOperations& rows() { return families_.rows; }
  SlotOperations& slots() { return families_.slots; }

 protected:
  // Members of the class that is derived; none is used before that is made.
  struct Families {
    TransferOperations& transfer;
    RoutingOperations& routing;
    LookupOperations& lookup;
    AssemblyOperations& assembly;
    GradientOperations& gradients;
    RowOperations& rows;
    SlotOperations& slots;
  };
  explicit Backend(const Families& families) : families_(families) {}

 private:
  Families families_;
};

}  // namespace shardrec::compute
