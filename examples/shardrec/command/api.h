// The C API as C++ values: handles that destroy themselves, statuses as exceptions, tensors over
// spans. Header only, thin, no state of its own; the thread rules are those of the C headers.
#pragma once

#include <shardrec/shardrec.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace shardrec::cli {

// A status that is not OK, with the library's sentence.
class ApiError : public std::runtime_error {
 public:
  ApiError(shardrec_status status, const std::string& sentence)
      : std::runtime_error(sentence), status_(status) {}
  [[nodiscard]] shardrec_status status() const { return status_; }

 private:
  shardrec_status status_;
};

// What the user gave (arguments, files) cannot be used; the sentence says what would be accepted.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void check(shardrec_status status) {
  if (status != SHARDREC_OK) throw ApiError(status, shardrec_last_error());
}

template <typename T, void (*Destroy)(T**)>
class Handle {
 public:
  Handle() = default;
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { Destroy(&handle_); }

  [[nodiscard]] T* get() const { return handle_; }
  [[nodiscard]] T** out() {
    Destroy(&handle_);
    return &handle_;
  }
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  T* handle_ = nullptr;
};

using Local = Handle<shardrec_local, shardrec_local_destroy>;
using Rendezvous = Handle<shardrec_rendezvous, shardrec_rendezvous_destroy>;
using Comm = Handle<shardrec_comm, shardrec_comm_destroy>;
using Topology = Handle<shardrec_topology, shardrec_topology_destroy>;
using Model = Handle<shardrec_model, shardrec_model_destroy>;
using Plan = Handle<shardrec_plan, shardrec_plan_destroy>;
using Collection = Handle<shardrec_collection, shardrec_collection_destroy>;
using Mesh = Handle<shardrec_mesh, shardrec_mesh_destroy>;
using Lookup = Handle<shardrec_lookup, shardrec_lookup_destroy>;
using Mlp = Handle<shardrec_mlp, shardrec_mlp_destroy>;
using Interaction = Handle<shardrec_interaction, shardrec_interaction_destroy>;
using Ddp = Handle<shardrec_ddp, shardrec_ddp_destroy>;
using Control = Handle<shardrec_control, shardrec_control_destroy>;
using Checkpoint = Handle<shardrec_checkpoint, shardrec_checkpoint_destroy>;
using Metrics = Handle<shardrec_metrics, shardrec_metrics_destroy>;

class Options {
 public:
  explicit Options(shardrec_options_kind kind) {
    check(shardrec_options_create(kind, handle_.out()));
  }
  Options& set(shardrec_option key, int64_t value) {
    check(shardrec_options_set_i64(handle_.get(), key, value));
    return *this;
  }
  Options& set(shardrec_option key, double value) {
    check(shardrec_options_set_f64(handle_.get(), key, value));
    return *this;
  }
  Options& set(shardrec_option key, const std::string& value) {
    check(shardrec_options_set_text(handle_.get(), key, value.c_str()));
    return *this;
  }
  [[nodiscard]] const shardrec_options* get() const { return handle_.get(); }

 private:
  Handle<shardrec_options, shardrec_options_destroy> handle_;
};

inline std::string take_text(char* text) {
  std::string result = text == nullptr ? "" : text;
  shardrec_text_free(text);
  return result;
}

// Views for calls that only read take const data; the C API has one tensor type for both
// directions.
inline shardrec_tensor vector_view(std::span<const float> data) {
  shardrec_tensor tensor;
  check(shardrec_tensor_vector(const_cast<float*>(data.data()), SHARDREC_FLOAT32,
                               static_cast<int64_t>(data.size()), &tensor));
  return tensor;
}
inline shardrec_tensor vector_view(std::span<const int64_t> data) {
  shardrec_tensor tensor;
  check(shardrec_tensor_vector(const_cast<int64_t*>(data.data()), SHARDREC_INT64,
                               static_cast<int64_t>(data.size()), &tensor));
  return tensor;
}
inline shardrec_tensor vector_view(std::span<const int32_t> data) {
  shardrec_tensor tensor;
  check(shardrec_tensor_vector(const_cast<int32_t*>(data.data()), SHARDREC_INT32,
                               static_cast<int64_t>(data.size()), &tensor));
  return tensor;
}
inline shardrec_tensor matrix_view(const float* data, int64_t rows, int64_t cols) {
  shardrec_tensor tensor;
  check(shardrec_tensor_matrix(const_cast<float*>(data), SHARDREC_FLOAT32, rows, cols, &tensor));
  return tensor;
}

// XXH3-64 of a number, as 8 bytes, lowest first.
inline uint64_t hash_number(uint64_t seed, uint64_t number) {
  unsigned char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(number >> (8 * i));
  return shardrec_hash64(seed, bytes, 8);
}

// What --forward-compression and --backward-compression take.
inline constexpr const char* kCompressions = "none, float16, bfloat16 or int8";
// What --optimizer takes.
inline constexpr const char* kTableOptimizers =
    "Of the tables: sgd, adagrad, rowwise_adagrad, adam, partial_rowwise_adam, lamb, "
    "partial_rowwise_lamb or lars_sgd";

}  // namespace shardrec::cli
