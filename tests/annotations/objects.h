// Arguments that a call accepts, on a group of one rank. annotations_test.cpp makes every call with
// them, and changes one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capi/capi_test.h"
#include "shardrec/native.h"

namespace shardrec::test {

// One object of each kind, made when a call first needs it, in the state in which the call accepts
// it.
// Collective calls return at once, since there is no other rank.
class Objects {
 public:
  // function: the name of the C function, with its prefix.
  explicit Objects(std::string function) : function_(std::move(function)) {}
  ~Objects();
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  // What function takes as the parameter of that name. The result is valid as long as this object.
  void good(const char* name, shardrec_options*& out);
  void good(const char* name, shardrec_control*& out);
  void good(const char* name, shardrec_local*& out);
  void good(const char* name, shardrec_comm*& out);
  void good(const char* name, shardrec_model*& out);
  void good(const char* name, shardrec_topology*& out);
  void good(const char* name, shardrec_plan*& out);
  void good(const char* name, shardrec_collection*& out);
  void good(const char* name, shardrec_lookup*& out);
  void good(const char* name, shardrec_mesh*& out);
  void good(const char* name, shardrec_rendezvous*& out);
  void good(const char* name, shardrec_ddp*& out);
  void good(const char* name, shardrec_fsdp*& out);
  void good(const char* name, shardrec_mlp*& out);
  void good(const char* name, shardrec_interaction*& out);
  void good(const char* name, shardrec_metrics*& out);
  void good(const char* name, shardrec_checkpoint*& out);
  void good(const char* name, shardrec_scorer*& out);
  void good(const char* name, shardrec_memory*& out);
  void good(const char* name, const shardrec_tensor*& out);
  void good(const char* name, shardrec_batch*& out);
  void good(const char* name, shardrec_box*& out);
  void good(const char*, shardrec_place*& out) { out = &place_; }
  void good(const char*, shardrec_served*& out) { out = &served_; }
  void good(const char*, shardrec_model_size*& out) { out = &model_size_; }
  void good(const char*, shardrec_table*& out) { out = &table_; }
  void good(const char*, shardrec_feature*& out) { out = &feature_; }
  void good(const char*, shardrec_layers*& out) { out = &layers_; }
  void good(const char*, shardrec_layer*& out) { out = &layer_; }
  void good(const char*, shardrec_opened*& out) { out = &opened_; }
  void good(const char*, shardrec_saved_tensor*& out) { out = &saved_tensor_; }
  void good(const char* name, const char*& out);
  void good(const char*, shardrec_dtype& out) { out = SHARDREC_FLOAT32; }
  void good(const char*, shardrec_table_part& out) { out = SHARDREC_TABLE_WEIGHTS; }
  void good(const char* name, int32_t& out) { out = static_cast<int32_t>(number(name)); }
  void good(const char* name, int64_t& out) { out = number(name); }

  // Whether the memory of each tensor that was handed out has changed, in the order of handing out.
  std::vector<bool> changed_tensors() const;

  // A place for a result, of any type.
  void* place() { return &places_.emplace_back(); }

 private:
  bool in(std::string_view prefix) const { return function_.starts_with(prefix); }
  const std::string& directory();
  int64_t number(const char* name) const;

  std::string function_;
  std::string directory_;
  std::deque<std::string> texts_;
  std::deque<shardrec_tensor> places_;                  // the largest result
  std::vector<float> memory_ = std::vector<float>(64);  // of what is called beforehand
  std::vector<int64_t> ids_ = std::vector<int64_t>(1);
  std::vector<int64_t> lengths_ = std::vector<int64_t>(1, 1);
  shardrec_tensor batch_ids_{}, batch_lengths_{};
  shardrec_batch batch_{.struct_size = sizeof(shardrec_batch)};
  shardrec_box box_{.struct_size = sizeof(shardrec_box)};
  shardrec_place place_{.struct_size = sizeof(shardrec_place)};
  shardrec_served served_{.struct_size = sizeof(shardrec_served)};
  shardrec_model_size model_size_{.struct_size = sizeof(shardrec_model_size)};
  shardrec_table table_{.struct_size = sizeof(shardrec_table)};
  shardrec_feature feature_{.struct_size = sizeof(shardrec_feature)};
  shardrec_layers layers_{.struct_size = sizeof(shardrec_layers)};
  shardrec_layer layer_{.struct_size = sizeof(shardrec_layer), .outputs = 1};
  shardrec_opened opened_{.struct_size = sizeof(shardrec_opened)};
  shardrec_saved_tensor saved_tensor_{.struct_size = sizeof(shardrec_saved_tensor)};
  struct Memory {
    alignas(int64_t) std::array<std::byte, 64> now{};
    std::array<std::byte, 64> before{};
  };
  std::deque<Memory> memories_;  // of tensors_
  std::deque<shardrec_tensor> tensors_;

  // Destroyed in the opposite order.
  Options options_;
  Control control_;
  Local group_;
  Comm comm_;
  Model model_;
  Topology topology_;
  Plan plan_;
  Owned<shardrec_mesh, shardrec_mesh_destroy> mesh_;
  Owned<shardrec_rendezvous, shardrec_rendezvous_destroy> rendezvous_;
  Owned<shardrec_collection, shardrec_collection_destroy> collection_;
  Owned<shardrec_collection, shardrec_collection_destroy> earlier_;
  Owned<shardrec_lookup, shardrec_lookup_destroy> lookup_;
  Owned<shardrec_mlp, shardrec_mlp_destroy> mlp_, top_;
  Owned<shardrec_ddp, shardrec_ddp_destroy> ddp_;
  Owned<shardrec_fsdp, shardrec_fsdp_destroy> fsdp_;
  Owned<shardrec_interaction, shardrec_interaction_destroy> interaction_;
  Owned<shardrec_metrics, shardrec_metrics_destroy> metrics_;
  Owned<shardrec_checkpoint, shardrec_checkpoint_destroy> checkpoint_;
  Owned<shardrec_scorer, shardrec_scorer_destroy> scorer_;
  Owned<shardrec_memory, shardrec_memory_destroy> memory_handle_;
};

}  // namespace shardrec::test
