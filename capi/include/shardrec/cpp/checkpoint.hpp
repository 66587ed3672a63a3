// Part of shardrec.hpp: checkpoints.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDREC_CPP_CHECKPOINT_HPP
#define SHARDREC_CPP_CHECKPOINT_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shardrec/checkpoint.h"
#include "shardrec/cpp/dense.hpp"
#include "shardrec/cpp/fsdp.hpp"
#include "shardrec/cpp/tables.hpp"

namespace shardrec {

// What was added must outlive the last commit and load.
class Checkpoint : public detail::Handle<shardrec_checkpoint, shardrec_checkpoint_destroy> {
 public:
  Checkpoint(Comm &comm, std::string_view directory, const Options &options = {}) {
    check(shardrec_checkpoint_create(comm.get(), detail::c_text(directory).c_str(), options.get(),
                                     out()));
  }
  using Handle::Handle;

  // A tensor of the host in the open checkpoint.
  struct SavedTensor {
    Tensor tensor;  // dtype and shape; data is null
    int64_t bytes;
  };

  void add(std::string_view name, Collection &collection) {
    check(
        shardrec_checkpoint_add_collection(get(), detail::c_text(name).c_str(), collection.get()));
  }
  void add(std::string_view name, Mlp &mlp) {
    check(shardrec_checkpoint_add_mlp(get(), detail::c_text(name).c_str(), mlp.get()));
  }
  void add(std::string_view name, Fsdp &fsdp) {
    check(shardrec_checkpoint_add_fsdp(get(), detail::c_text(name).c_str(), fsdp.get()));
  }
  void add(std::string_view name, Ddp &ddp) {
    check(shardrec_checkpoint_add_ddp(get(), detail::c_text(name).c_str(), ddp.get()));
  }
  // Copied; nullptr takes the name out again.
  void set_tensor(std::string_view name, const Tensor &tensor) {
    check(shardrec_checkpoint_set_tensor(get(), detail::c_text(name).c_str(), tensor.get()));
  }

  void commit(int64_t step, const Control *control = nullptr) {
    check(shardrec_checkpoint_commit(get(), step, detail::control(control)));
  }
  // Of tables the rows that have changed since this object's last commit, where it knows them. False: it wrote all.
  bool commit_delta(int64_t step, const Control *control = nullptr) {
    int32_t delta = 0;
    check(shardrec_checkpoint_commit_delta(get(), step, detail::control(control), &delta));
    return delta != 0;
  }
  // Written while the caller goes on; commit_wait() ends it.
  void commit_begin(int64_t step, const Control *control = nullptr) {
    check(shardrec_checkpoint_commit_begin(get(), step, detail::control(control)));
  }
  // A delta that is written so. False: all is written.
  bool commit_delta_begin(int64_t step, const Control *control = nullptr) {
    int32_t delta = 0;
    check(shardrec_checkpoint_commit_delta_begin(get(), step, detail::control(control), &delta));
    return delta != 0;
  }
  // False when files of some rank are not written after so many milliseconds; negative: waits for them.
  bool commit_wait(int32_t timeout_ms = -1) {
    int32_t done = 0;
    check(shardrec_checkpoint_commit_wait(get(), timeout_ms, &done));
    return done != 0;
  }
  // The newest, or that of a step. Throws NOT_FOUND.
  void open(int64_t step = -1) { check(shardrec_checkpoint_open(get(), step)); }
  // False when there is no checkpoint yet.
  bool try_open(int64_t step = -1) { return found(shardrec_checkpoint_open(get(), step)); }
  shardrec_opened info() const {
    shardrec_opened opened{};
    opened.struct_size = sizeof opened;
    check(shardrec_checkpoint_info(get(), &opened));
    return opened;
  }
  void load(const Control *control = nullptr) {
    check(shardrec_checkpoint_load(get(), detail::control(control)));
  }
  // json says what may differ. Returns the report, JSON.
  std::string load_partial(std::string_view json, const Control *control = nullptr) {
    detail::Text text;
    check(shardrec_checkpoint_load_partial(get(), detail::c_text(json).c_str(),
                                           detail::control(control), text.out()));
    return text.str();
  }
  void verify(const Control *control = nullptr) const {
    check(shardrec_checkpoint_verify(get(), detail::control(control)));
  }

  Model model(std::string_view name) const {
    shardrec_model *handle = nullptr;
    check(shardrec_checkpoint_model(get(), detail::c_text(name).c_str(), &handle));
    return Model(handle);
  }
  // Empty when there is none, as in checkpoints of format 1.
  std::optional<Model> find_model(std::string_view name) const {
    shardrec_model *handle = nullptr;
    if (!found(shardrec_checkpoint_model(get(), detail::c_text(name).c_str(), &handle))) {
      return std::nullopt;
    }
    return Model(handle);
  }
  Plan plan(std::string_view name) const {
    shardrec_plan *handle = nullptr;
    check(shardrec_checkpoint_plan(get(), detail::c_text(name).c_str(), &handle));
    return Plan(handle);
  }
  Mlp mlp(std::string_view name, const Options &options = {}) const {
    shardrec_mlp *handle = nullptr;
    check(shardrec_checkpoint_mlp(get(), detail::c_text(name).c_str(), options.get(), &handle));
    return Mlp(handle);
  }
  SavedTensor tensor_info(std::string_view name, int32_t rank = 0) const {
    shardrec_saved_tensor info{};
    info.struct_size = sizeof info;
    check(shardrec_checkpoint_tensor_info(get(), detail::c_text(name).c_str(), rank, &info));
    return {info.tensor, info.bytes};
  }
  // Empty when the rank set none of this name.
  std::optional<SavedTensor> find_tensor_info(std::string_view name, int32_t rank = 0) const {
    shardrec_saved_tensor info{};
    info.struct_size = sizeof info;
    if (!found(shardrec_checkpoint_tensor_info(get(), detail::c_text(name).c_str(), rank, &info))) {
      return std::nullopt;
    }
    return SavedTensor{info.tensor, info.bytes};
  }
  void get_tensor(std::string_view name, int32_t rank, const Tensor &into) const {
    check(shardrec_checkpoint_get_tensor(get(), detail::c_text(name).c_str(), rank, into.get()));
  }
  std::string contents_json() const {
    detail::Text text;
    check(shardrec_checkpoint_contents_json(get(), text.out()));
    return text.str();
  }
  static std::string list_json(std::string_view directory) {
    detail::Text text;
    check(shardrec_checkpoint_list_json(detail::c_text(directory).c_str(), text.out()));
    return text.str();
  }
};

}  // namespace shardrec

#endif
