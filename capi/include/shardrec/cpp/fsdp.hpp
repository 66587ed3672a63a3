// Part of shardrec.hpp: sharded parameters.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDREC_CPP_FSDP_HPP
#define SHARDREC_CPP_FSDP_HPP

#include <cstdint>
#include <string>
#include <string_view>

#include "shardrec/cpp/comm.hpp"
#include "shardrec/cpp/dense.hpp"
#include "shardrec/cpp/options.hpp"
#include "shardrec/cpp/tables.hpp"
#include "shardrec/cpp/tensor.hpp"
#include "shardrec/fsdp.h"

namespace shardrec {

// Sharded parameters: fsdp.h.
class Fsdp : public detail::Handle<shardrec_fsdp, shardrec_fsdp_destroy> {
 public:
  explicit Fsdp(Comm &comm, const Options &options = {}) {
    check(shardrec_fsdp_create(comm.get(), nullptr, options.get(), out()));
  }
  // HYBRID_SHARD.
  Fsdp(Comm &comm, Mesh &mesh, const Options &options) {
    check(shardrec_fsdp_create(comm.get(), mesh.get(), options.get(), out()));
  }
  using Handle::Handle;

  int32_t add_unit(std::string_view name) {
    int32_t unit = 0;
    check(shardrec_fsdp_add_unit(get(), detail::c_text(name).c_str(), &unit));
    return unit;
  }
  // columns 0: a vector of `rows` elements. Returns the index.
  int32_t add_parameter(int32_t unit, std::string_view name, int64_t rows, int64_t columns = 0) {
    int32_t index = 0;
    check(shardrec_fsdp_add_parameter(get(), unit, detail::c_text(name).c_str(), rows, columns,
                                      &index));
    return index;
  }
  void set_optimizer(const Options &options = {}) {
    check(shardrec_fsdp_set_optimizer(get(), options.get()));
  }
  // Layers of a stack, as units of at least so many elements. Returns the index of its first parameter.
  int32_t add(std::string_view name, Mlp &mlp, int64_t unit_elements = 1) {
    int32_t first = 0;
    check(shardrec_fsdp_add_mlp(get(), detail::c_text(name).c_str(), mlp.get(), unit_elements,
                                &first));
    return first;
  }
  void commit() { check(shardrec_fsdp_commit(get())); }

  void begin(bool sync = true) { check(shardrec_fsdp_begin(get(), sync ? 1 : 0)); }
  void unshard(int32_t unit) { check(shardrec_fsdp_unshard(get(), unit)); }
  void wait_unshard(int32_t unit) { check(shardrec_fsdp_wait_unshard(get(), unit)); }
  Tensor parameter(int32_t index) {
    shardrec_tensor view{};
    check(shardrec_fsdp_parameter(get(), index, &view));
    return view;
  }
  void reshard(int32_t unit) { check(shardrec_fsdp_reshard(get(), unit)); }
  Tensor gradient(int32_t index) {
    shardrec_tensor view{};
    check(shardrec_fsdp_gradient(get(), index, &view));
    return view;
  }
  void mark_ready(int32_t unit) { check(shardrec_fsdp_mark_ready(get(), unit)); }
  void end() { check(shardrec_fsdp_end(get())); }
  void wait() { check(shardrec_fsdp_wait(get())); }

  void zero_gradients() { check(shardrec_fsdp_zero_gradients(get())); }
  // Returns the norm of before.
  double clip_gradients(shardrec_clip clip, double bound) {
    double norm = 0;
    check(shardrec_fsdp_clip_gradients(get(), clip, bound, &norm));
    return norm;
  }
  void step() { check(shardrec_fsdp_step(get())); }
  void set_learning_rate(double learning_rate) {
    check(shardrec_fsdp_set_learning_rate(get(), learning_rate));
  }

  // This rank's part of a parameter, from its element `offset` on. array: a shardrec_fsdp_array, or
  // the number of a state.
  Tensor shard(int32_t index, int32_t array, int64_t &offset) {
    shardrec_tensor view{};
    check(shardrec_fsdp_shard(get(), index, array, &offset, &view));
    return view;
  }
  void full(int32_t index, int32_t array, const Tensor &out) {
    check(shardrec_fsdp_full(get(), index, array, out.get()));
  }
  void set_full(int32_t index, int32_t array, const Tensor &tensor, int32_t root = -1) {
    check(shardrec_fsdp_set_full(get(), index, array, tensor.get(), root));
  }
  void check_equal() { check(shardrec_fsdp_check_equal(get())); }
  // JSON.
  std::string statistics_json() {
    detail::Text text;
    check(shardrec_fsdp_statistics_json(get(), text.out()));
    return text.str();
  }
};

}  // namespace shardrec

#endif
