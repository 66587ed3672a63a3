// One call of a communicator, or all calls for it of a group: five steps in a stream, of which two touch memory of the
// device, and the others may wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "communicator.h"

namespace fake_nccl {

inline constexpr size_t kEagerBytes = 4096;  // sends of up to so many bytes wait for nobody

struct Send {
  const void* data;
  size_t bytes;
  int peer;
  uint64_t number = 0;
  uint64_t offset = 0;
};

struct Receive {
  void* data;
  size_t bytes;
  int peer;
  uint64_t number = 0;
};

struct Collective {
  Kind kind;
  const void* in;
  void* out;
  size_t count;
  int32_t dtype;
  int32_t reduction;
  uint64_t number = 0;
  uint64_t offset = 0;

  size_t bytes_in(int ranks) const;  // that each rank gives
};

class Operation {
 public:
  Operation(Communicator& communicator, int64_t stream);
  ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // What the rank gives to others.
  size_t bytes() const;

  // Enqueues the steps, the last of which deletes the operation. False: the stream takes none.
  static bool enqueue(Operation* operation);

  Communicator& communicator;
  const int64_t stream;
  std::vector<Send> sends;
  std::vector<Receive> receives;
  std::vector<Collective> collectives;
  uint64_t number = 0;    // among the communicator's, from 1
  uint64_t sequence = 0;  // of the issuer

 private:
  void wait_for_turn();
  void stage();  // device
  void wait_for_peers();
  void deliver();  // device
  void finish();
  bool is_over() const;  // all have read what was staged
  bool peers_are_there() const;
  void copy_message(const Receive& receive);
  void copy_collective(const Collective& collective);
  void fill_with_garbage();

  bool has_room_ = false;
  bool is_staged_ = false;
  bool is_complete_ = false;
};

}  // namespace fake_nccl
