// What the tests of the C API share: handles that clean up, ranks as threads, and tables of
// malformed calls, each of which must give its status, name the wrong_value, and change nothing.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "shardrec/shardrec.h"

namespace shardrec::test {

#define EXPECT_OK(call) EXPECT_EQ(call, SHARDREC_OK) << shardrec_last_error()
#define ASSERT_OK(call) ASSERT_EQ(call, SHARDREC_OK) << shardrec_last_error()

// A handle that is destroyed at the end of the scope.
template <class Type, void (*destroy)(Type**)>
class Owned {
 public:
  Owned() = default;
  ~Owned() { destroy(&handle_); }
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Type** out() { return &handle_; }
  Type* get() const { return handle_; }
  operator Type*() const { return handle_; }  // NOLINT(google-explicit-constructor)

 private:
  Type* handle_ = nullptr;
};
using Options = Owned<shardrec_options, shardrec_options_destroy>;
using Control = Owned<shardrec_control, shardrec_control_destroy>;
using Local = Owned<shardrec_local, shardrec_local_destroy>;
using Comm = Owned<shardrec_comm, shardrec_comm_destroy>;
using Model = Owned<shardrec_model, shardrec_model_destroy>;
using Topology = Owned<shardrec_topology, shardrec_topology_destroy>;
using Plan = Owned<shardrec_plan, shardrec_plan_destroy>;
using Mesh = Owned<shardrec_mesh, shardrec_mesh_destroy>;
using Mlp = Owned<shardrec_mlp, shardrec_mlp_destroy>;
using Ddp = Owned<shardrec_ddp, shardrec_ddp_destroy>;
using Fsdp = Owned<shardrec_fsdp, shardrec_fsdp_destroy>;
using Checkpoint = Owned<shardrec_checkpoint, shardrec_checkpoint_destroy>;

// Takes a text that the library gave.
inline std::string take(char* text) {
  std::string copy = text == nullptr ? "" : text;
  shardrec_text_free(text);
  return copy;
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Runs body(comm, rank) on `ranks` threads, each with a communicator of a new group.
inline void run_ranks(int ranks, const std::function<void(shardrec_comm*, int)>& body,
                      int ranks_per_node = 0) {
  Local group;
  ASSERT_OK(shardrec_local_create(ranks, ranks_per_node == 0 ? ranks : ranks_per_node, nullptr,
                                  group.out()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Comm comm;
      EXPECT_OK(shardrec_comm_create_local(group, rank, nullptr, comm.out()));
      body(comm, rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

struct MalformedCall {
  const char* what;
  std::function<shardrec_status()> call;
  shardrec_status status;
  const char* wrong_value;  // a part of the sentence
};

inline void expect_refused(const std::vector<MalformedCall>& calls) {
  for (const MalformedCall& malformed : calls) {
    SCOPED_TRACE(malformed.what);
    EXPECT_EQ(malformed.call(), malformed.status) << shardrec_last_error();
    EXPECT_EQ(shardrec_last_error_status(), malformed.status);
    EXPECT_TRUE(contains(shardrec_last_error(), malformed.wrong_value))
        << "the sentence is \"" << shardrec_last_error() << "\", which lacks \""
        << malformed.wrong_value << '"';
  }
}

}  // namespace shardrec::test
