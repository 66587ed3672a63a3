// One rank of the call fuzzer: its handles, its memory, and the calls it can make.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "fuzz/input.h"
#include "shardrec/native.h"
#include "shardrec/shardrec.h"

namespace shardrec::fuzz {

// Ends the process with the sentence, and with a file of the input. Both ranks may come here at once: libFuzzer
// writes the file in the first thread that aborts, and a second abort would end the process before it is there.
[[noreturn]] void broken_promise(const std::string& sentence);

// The handles of one kind. Other ranks may look.
template <class T, void (*destroy)(T**)>
class Slots {
 public:
  static constexpr int kSlots = 2;
  ~Slots() {
    for (int i = 0; i < kSlots; ++i) drop(i);
  }
  // Where the next object goes; what was there is destroyed.
  int renew(Input& in) {
    const int slot = in.one_in(4) ? 1 : 0;
    drop(slot);
    return slot;
  }
  void put(int slot, T* handle) { live_[static_cast<size_t>(slot)] = handle; }
  T* live(int slot) const { return live_[static_cast<size_t>(slot)]; }
  T* closed() const { return closed_; }
  void drop(int slot) {
    T* handle = live_[static_cast<size_t>(slot)].exchange(nullptr);
    if (handle == nullptr) return;
    closed_ = handle;
    destroy(&handle);
  }

 private:
  std::array<std::atomic<T*>, kSlots> live_{};
  std::atomic<T*> closed_{nullptr};
};

// In C++ an enumeration has the values of its enumerators' bits only.
template <class Enum>
Enum as_enum(int64_t value) {
  return static_cast<Enum>(value & 0x7fffffff);
}

// Of any kind: no process can hold objects there.
template <class T>
T* garbage(Input& in) {
  return std::bit_cast<T*>(
      in.of<uint64_t>({0, 1, 0x5b00000000000000, 0xdeadbeef, 0x5b03000001000000, 0x5bff000001000000,
                       UINT64_MAX, static_cast<uint64_t>(in.word())}));
}

class Rank {
 public:
  Rank(int rank, shardrec_local* group);
  void meet(Rank& peer) {
    peer_ = &peer;
    peers_memory_ = peer.memory_;
  }
  void run(Input in);

 private:
  // What a collection was made from, so that batches can fit it.
  struct Shape {
    int features = 1;
    int64_t width = 4;
    int64_t rows = 5;
  };

  void call(Input& in);
  void options_call(Input& in);
  void model_call(Input& in);
  void plan_call(Input& in);
  void comm_call(Input& in);
  void tensors_call(Input& in, shardrec_comm* comm);
  void collection_call(Input& in);
  void lookup_call(Input& in);
  void dense_call(Input& in);
  void add_layers(Input& in, shardrec_mlp* mlp);
  void ddp_call(Input& in);
  void ddp_step(Input& in, shardrec_ddp* ddp);
  void ddp_views(Input& in, shardrec_ddp* ddp);
  void fsdp_call(Input& in);
  void fsdp_step(Input& in, shardrec_fsdp* fsdp);
  void library_call(Input& in);
  void memory_call(Input& in);
  void set_up(Input& in);
  void step(Input& in);
  void drop_something(Input& in);

  // A handle of the kind, mostly a live one of this rank.
  template <class T, void (*destroy)(T**)>
  T* handle(Input& in, const Slots<T, destroy> Rank::* slots);
  template <class T, void (*destroy)(T**)>
  const T* handle_or_null(Input& in, const Slots<T, destroy> Rank::* slots);
  // Makes an object: make(T** out) -> status.
  template <class T, void (*destroy)(T**), class Make>
  shardrec_status make(Input& in, Slots<T, destroy>& slots, Make make);
  shardrec_status note(shardrec_status status);
  // wanted: was the text asked for?
  void take(shardrec_status status, char* text, bool wanted = true);

  void begin(Input& in, bool clean);
  // Memory that stays until both ranks have ended.
  void* memory(size_t bytes);
  shardrec_tensor vector(Input& in, bool clean, shardrec_dtype dtype, int64_t length, void* data);
  shardrec_tensor matrix(Input& in, bool clean, int64_t rows, int64_t cols);
  const shardrec_tensor* or_null(Input& in, const shardrec_tensor& tensor);
  void spoil(Input& in, shardrec_tensor& tensor);
  std::string name(Input& in);

  int rank_;
  Rank* peer_ = nullptr;
  // A set of parameters of this rank may hold memory that the peer gave it.
  using Memory = std::list<std::vector<double>>;
  std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
  std::shared_ptr<Memory> peers_memory_;
  std::list<shardrec_tensor> tensors_;
  Shape shape_;
  int64_t batch_ = 0;

  // Destroyed from the last to the first: children before their parents, but destroy calls of the
  // input come in any order.
  Slots<shardrec_control, shardrec_control_destroy> controls_;
  Slots<shardrec_memory, shardrec_memory_destroy> memories_;
  Slots<shardrec_options, shardrec_options_destroy> options_;
  Slots<shardrec_local, shardrec_local_destroy> groups_;
  Slots<shardrec_comm, shardrec_comm_destroy> comms_;
  Slots<shardrec_model, shardrec_model_destroy> models_;
  Slots<shardrec_topology, shardrec_topology_destroy> topologies_;
  Slots<shardrec_plan, shardrec_plan_destroy> plans_;
  Slots<shardrec_collection, shardrec_collection_destroy> collections_;
  Slots<shardrec_lookup, shardrec_lookup_destroy> lookups_;
  Slots<shardrec_ddp, shardrec_ddp_destroy> ddps_;
  Slots<shardrec_fsdp, shardrec_fsdp_destroy> fsdps_;
  Slots<shardrec_mlp, shardrec_mlp_destroy> mlps_;
  Slots<shardrec_interaction, shardrec_interaction_destroy> interactions_;
  Slots<shardrec_metrics, shardrec_metrics_destroy> metrics_;
};

template <class T, void (*destroy)(T**)>
T* Rank::handle(Input& in, const Slots<T, destroy> Rank::* slots) {
  const uint8_t how = in.byte();
  if (how < 215) return (this->*slots).live(how < 190 ? 0 : 1);
  if (how < 225) return (this->*slots).closed();
  if (how < 235) return (peer_->*slots).live(0);
  if (how < 245) return std::bit_cast<T*>(models_.live(0));
  if (how < 250) return std::bit_cast<T*>(comms_.live(0));
  return garbage<T>(in);
}

template <class T, void (*destroy)(T**)>
const T* Rank::handle_or_null(Input& in, const Slots<T, destroy> Rank::* slots) {
  return in.byte() < 128 ? nullptr : handle(in, slots);
}

template <class T, void (*destroy)(T**), class Make>
shardrec_status Rank::make(Input& in, Slots<T, destroy>& slots, Make make) {
  const int slot = slots.renew(in);
  T* out = nullptr;
  const shardrec_status status = note(make(&out));
  if ((status == SHARDREC_OK) != (out != nullptr)) {
    broken_promise("a handle comes with OK and only then");
  }
  slots.put(slot, out);
  return status;
}

}  // namespace shardrec::fuzz
