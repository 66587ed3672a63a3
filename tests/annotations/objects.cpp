#include "annotations/objects.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "support/layers.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

constexpr int64_t kRows = 8;
constexpr int64_t kDim = 4;

shardrec_tensor vector_of(void* data, shardrec_dtype dtype, int64_t length) {
  shardrec_tensor tensor{};
  EXPECT_OK(shardrec_tensor_vector(data, dtype, length, &tensor));
  return tensor;
}

}  // namespace

Objects::~Objects() {
  if (!directory_.empty()) std::filesystem::remove_all(directory_);
}

std::vector<bool> Objects::changed_tensors() const {
  std::vector<bool> changed;
  for (const Memory& memory : memories_) changed.push_back(memory.now != memory.before);
  return changed;
}

const std::string& Objects::directory() {
  if (directory_.empty()) {
    directory_ = (std::filesystem::temp_directory_path() / "shardrec-XXXXXX").string();
    if (::mkdtemp(directory_.data()) == nullptr) ADD_FAILURE() << "no temporary directory";
  }
  return directory_;
}

// Settings of a call: none. They are the handle of those that read and set them.
void Objects::good(const char*, shardrec_options*& out) {
  if (options_ == nullptr && in("shardrec_options_")) {
    EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, options_.out()));
  }
  out = options_;
}

void Objects::good(const char*, shardrec_control*& out) {
  if (control_ == nullptr) {
    EXPECT_OK(shardrec_control_create(nullptr, control_.out()));
  }
  out = control_;
}

void Objects::good(const char*, shardrec_local*& out) {
  if (group_ == nullptr) {
    EXPECT_OK(shardrec_local_create(1, 1, nullptr, group_.out()));
  }
  out = group_;
}

void Objects::good(const char* name, shardrec_comm*& out) {
  if (comm_ == nullptr) {
    shardrec_local* group = nullptr;
    good(name, group);
    EXPECT_OK(shardrec_comm_create_local(group, 0, nullptr, comm_.out()));
  }
  out = comm_;
}

void Objects::good(const char*, shardrec_model*& out) {
  if (model_ == nullptr) {
    EXPECT_OK(shardrec_model_create(nullptr, model_.out()));
    EXPECT_OK(shardrec_model_add_table(model_, "user", kRows, kDim, nullptr, nullptr));
    EXPECT_OK(shardrec_model_add_feature(model_, 0, "user_id", SHARDREC_POOLING_SUM));
  }
  out = model_;
}

void Objects::good(const char*, shardrec_topology*& out) {
  if (topology_ == nullptr) {
    EXPECT_OK(shardrec_topology_create(1, 1, nullptr, topology_.out()));
  }
  out = topology_;
}

void Objects::good(const char* name, shardrec_plan*& out) {
  if (plan_ == nullptr) {
    shardrec_model* model = nullptr;
    shardrec_topology* topology = nullptr;
    good(name, model);
    good(name, topology);
    EXPECT_OK(shardrec_plan_create_empty(model, topology, nullptr, plan_.out()));
    EXPECT_OK(add_box(plan_, 0, 0, 0, kRows, 0, kDim));
  }
  out = plan_;
}

void Objects::good(const char* name, shardrec_collection*& out) {
  if (collection_ == nullptr) {
    shardrec_comm* comm = nullptr;
    shardrec_model* model = nullptr;
    shardrec_plan* plan = nullptr;
    good(name, comm);
    good(name, model);
    good(name, plan);
    EXPECT_OK(shardrec_collection_create(comm, nullptr, model, plan, nullptr, collection_.out()));
    if (in("shardrec_collection_changed_rows") || in("shardrec_collection_release_mark")) {
      int64_t mark = 0;
      EXPECT_OK(shardrec_collection_mark(collection_, &mark));
      shardrec_tensor row{};
      EXPECT_OK(shardrec_tensor_matrix(memory_.data(), SHARDREC_FLOAT32, 1, kDim, &row));
      EXPECT_OK(
          shardrec_collection_write_range(collection_, 0, SHARDREC_TABLE_WEIGHTS, 0, 1, &row));
    }
  }
  out = collection_;
  if (std::string_view(name) == "from") {  // another one than the first
    if (earlier_ == nullptr) {
      EXPECT_OK(shardrec_collection_create(comm_, nullptr, model_, plan_, nullptr, earlier_.out()));
    }
    out = earlier_;
  }
}

// As far on its way as the call expects it.
void Objects::good(const char* name, shardrec_lookup*& out) {
  if (lookup_ == nullptr) {
    shardrec_collection* collection = nullptr;
    good(name, collection);
    Options options;
    EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_LOOKUP, options.out()));
    EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_WEIGHT_GRADIENT, 1));
    EXPECT_OK(shardrec_lookup_create(collection, options, lookup_.out()));
    const shardrec_tensor ids = vector_of(ids_.data(), SHARDREC_INT64, 1);
    const shardrec_tensor lengths = vector_of(lengths_.data(), SHARDREC_INT64, 1);
    shardrec_tensor row{};
    EXPECT_OK(shardrec_tensor_matrix(memory_.data(), SHARDREC_FLOAT32, 1, kDim, &row));
    const bool begun = !in("shardrec_lookup_begin");
    const bool forwarded =
        begun && !in("shardrec_lookup_output_shape") && !in("shardrec_lookup_forward");
    if (begun) {
      EXPECT_OK(begin_batch(lookup_, {.batch_size = 1, .values = &ids, .lengths = &lengths}));
    }
    if (forwarded) {
      EXPECT_OK(shardrec_lookup_forward(lookup_, 0, &row));
    }
    if (in("shardrec_lookup_weight_gradient")) {
      EXPECT_OK(shardrec_lookup_set_gradient(lookup_, 0, &row));
      EXPECT_OK(shardrec_lookup_backward(lookup_, SHARDREC_UPDATE_APPLY));
    }
  }
  out = lookup_;
}

void Objects::good(const char* name, shardrec_mesh*& out) {
  if (in("shardrec_fsdp_create")) {  // HYBRID_SHARD alone takes one
    out = nullptr;
    return;
  }
  if (mesh_ == nullptr) {
    shardrec_comm* comm = nullptr;
    good(name, comm);
    EXPECT_OK(shardrec_mesh_create(comm, 1, nullptr, mesh_.out()));
  }
  out = mesh_;
}

void Objects::good(const char*, shardrec_rendezvous*& out) {
  if (rendezvous_ == nullptr) {
    EXPECT_OK(shardrec_rendezvous_create(nullptr, rendezvous_.out()));
  }
  out = rendezvous_;
}

void Objects::good(const char* name, shardrec_ddp*& out) {
  if (ddp_ == nullptr) {
    shardrec_comm* comm = nullptr;
    good(name, comm);
    EXPECT_OK(shardrec_ddp_create(comm, nullptr, ddp_.out()));
    if (!in("shardrec_ddp_add") && !in("shardrec_ddp_set")) {
      const shardrec_tensor parameter = vector_of(memory_.data(), SHARDREC_FLOAT32, kDim);
      EXPECT_OK(shardrec_ddp_add_parameter(ddp_, "w", &parameter, nullptr, nullptr));
      EXPECT_OK(shardrec_ddp_commit(ddp_));
    }
  }
  out = ddp_;
}

// As far on its way as the call expects it: between steps, or with its unit unsharded in one.
void Objects::good(const char* name, shardrec_fsdp*& out) {
  if (fsdp_ == nullptr) {
    shardrec_comm* comm = nullptr;
    good(name, comm);
    EXPECT_OK(shardrec_fsdp_create(comm, nullptr, nullptr, fsdp_.out()));
    EXPECT_OK(shardrec_fsdp_add_unit(fsdp_, "all", nullptr));
    if (!in("shardrec_fsdp_add")) {
      EXPECT_OK(shardrec_fsdp_add_parameter(fsdp_, 0, "w", kDim, 0, nullptr));
    }
    if (!in("shardrec_fsdp_add") && !in("shardrec_fsdp_set_optimizer")) {
      EXPECT_OK(shardrec_fsdp_commit(fsdp_));
    }
    if (in("shardrec_fsdp_parameter") || in("shardrec_fsdp_gradient")) {
      EXPECT_OK(shardrec_fsdp_begin(fsdp_, 1));
      EXPECT_OK(shardrec_fsdp_unshard(fsdp_, 0));
      EXPECT_OK(shardrec_fsdp_wait_unshard(fsdp_, 0));
    }
  }
  out = fsdp_;
}

void Objects::good(const char*, shardrec_mlp*& out) {
  if (mlp_ == nullptr) {
    EXPECT_OK(shardrec_mlp_create(kDim, nullptr, mlp_.out()));
    EXPECT_OK(add_linear(mlp_, kDim, SHARDREC_ACTIVATION_NONE));
    if (in("shardrec_mlp_backward")) {
      shardrec_tensor batch{};
      EXPECT_OK(shardrec_tensor_matrix(memory_.data(), SHARDREC_FLOAT32, 1, kDim, &batch));
      EXPECT_OK(shardrec_mlp_forward(mlp_, &batch, &batch));
    }
  }
  out = mlp_;
}

void Objects::good(const char*, shardrec_interaction*& out) {
  if (interaction_ == nullptr) {
    EXPECT_OK(shardrec_interaction_create(1, kDim, nullptr, interaction_.out()));
    if (in("shardrec_interaction_backward")) {
      shardrec_tensor inputs{};
      shardrec_tensor output{};
      EXPECT_OK(shardrec_tensor_matrix(memory_.data(), SHARDREC_FLOAT32, 1, kDim, &inputs));
      EXPECT_OK(shardrec_tensor_matrix(memory_.data(), SHARDREC_FLOAT32, 1, kDim + 1, &output));
      EXPECT_OK(shardrec_interaction_forward(interaction_, &inputs, &inputs, &output));
    }
  }
  out = interaction_;
}

void Objects::good(const char*, shardrec_metrics*& out) {
  if (metrics_ == nullptr) {
    EXPECT_OK(shardrec_metrics_create(nullptr, nullptr, metrics_.out()));
  }
  out = metrics_;
}

// It has a DLRM and a tensor of the host, and a checkpoint is open.
void Objects::good(const char* name, shardrec_checkpoint*& out) {
  if (checkpoint_ == nullptr) {
    shardrec_comm* comm = nullptr;
    shardrec_collection* collection = nullptr;
    shardrec_mlp* bottom = nullptr;
    good(name, comm);
    good(name, collection);
    good(name, bottom);
    int64_t columns = 0;
    EXPECT_OK(shardrec_interaction_create(1, kDim, nullptr, interaction_.out()));
    EXPECT_OK(shardrec_interaction_outputs(interaction_, &columns));
    EXPECT_OK(shardrec_mlp_create(columns, nullptr, top_.out()));
    EXPECT_OK(add_linear(top_, 1, SHARDREC_ACTIVATION_NONE));
    const shardrec_tensor state = vector_of(memory_.data(), SHARDREC_FLOAT32, 1);
    EXPECT_OK(shardrec_checkpoint_create(comm, directory().c_str(), nullptr, checkpoint_.out()));
    EXPECT_OK(shardrec_checkpoint_add_collection(checkpoint_, "tables", collection));
    EXPECT_OK(shardrec_checkpoint_add_mlp(checkpoint_, "bottom", bottom));
    EXPECT_OK(shardrec_checkpoint_add_mlp(checkpoint_, "top", top_));
    EXPECT_OK(shardrec_checkpoint_set_tensor(checkpoint_, "state", &state));
    EXPECT_OK(shardrec_checkpoint_commit(checkpoint_, 0, nullptr));
    EXPECT_OK(shardrec_checkpoint_open(checkpoint_, -1));
    if (in("shardrec_checkpoint_commit_wait")) {
      EXPECT_OK(shardrec_checkpoint_commit_begin(checkpoint_, 1, nullptr));
    }
  }
  out = checkpoint_;
}

void Objects::good(const char* name, shardrec_scorer*& out) {
  if (scorer_ == nullptr) {
    shardrec_checkpoint* checkpoint = nullptr;
    good(name, checkpoint);
    EXPECT_OK(shardrec_scorer_open(directory().c_str(), -1, nullptr, nullptr, scorer_.out()));
  }
  out = scorer_;
}

void Objects::good(const char*, shardrec_memory*& out) {
  if (memory_handle_ == nullptr) {
    EXPECT_OK(shardrec_memory_create(SHARDREC_DEVICE_CPU, 0, 64, nullptr, memory_handle_.out()));
  }
  out = memory_handle_;
}

// Rows of a table are read and written where no rows are asked for: then no tensor is needed.
void Objects::good(const char* name, const shardrec_tensor*& out) {
  const std::string_view is(name);
  Memory& memory = memories_.emplace_back();
  const auto numbers = [&](auto value) {
    for (size_t at = 0; at < memory.now.size(); at += sizeof value) {
      std::memcpy(memory.now.data() + at, &value, sizeof value);
    }
    memory.before = memory.now;
    return memory.now.data();
  };
  // Different in each tensor, so that a copy of one to another is seen; labels are 0 or 1.
  const auto reals = [&] {
    static constexpr std::array kValues = {1.0F, 0.0F, 0.5F, 0.25F, 0.75F};
    return numbers(kValues.at(memories_.size() - 1));
  };
  shardrec_tensor& tensor = tensors_.emplace_back();
  if (in("shardrec_collection_")) {
    if (is == "rows") {
      tensor = vector_of(numbers(int64_t{7}), SHARDREC_INT64, 1);
    } else if (is == "ids") {
      tensor = vector_of(numbers(int64_t{0}), SHARDREC_INT64, 0);
    } else {
      EXPECT_OK(shardrec_tensor_matrix(reals(), SHARDREC_FLOAT32, 0, kDim, &tensor));
    }
  } else if (is == "ids" || is == "values" || is == "inverse") {
    tensor = vector_of(numbers(int64_t{0}), SHARDREC_INT64, 1);
  } else if (is == "lengths" || is == "batch_sizes" || is.ends_with("_counts") ||
             in("shardrec_hash64_ids")) {
    tensor = vector_of(numbers(int64_t{1}), SHARDREC_INT64, 1);
  } else if (is == "weights" || in("shardrec_bce") || in("shardrec_metrics") ||
             in("shardrec_checkpoint") ||
             (is == "out" && (in("shardrec_scorer_predict") || in("shardrec_lookup_weight")))) {
    tensor = vector_of(reals(), SHARDREC_FLOAT32, 1);
  } else {
    const bool of_interaction = is.starts_with("output") && in("shardrec_interaction_");
    EXPECT_OK(shardrec_tensor_matrix(reals(), SHARDREC_FLOAT32, 1, of_interaction ? kDim + 1 : kDim,
                                     &tensor));
  }
  out = &tensor;
}

// One sample of the one feature.
void Objects::good(const char*, shardrec_batch*& out) {
  batch_ids_ = vector_of(ids_.data(), SHARDREC_INT64, 1);
  batch_lengths_ = vector_of(lengths_.data(), SHARDREC_INT64, 1);
  batch_.batch_size = 1;
  batch_.values = &batch_ids_;
  batch_.lengths = &batch_lengths_;
  out = &batch_;
}

void Objects::good(const char*, shardrec_box*& out) {
  box_.rows = 1;
  box_.cols = 1;
  out = &box_;
}

void Objects::good(const char* name, const char*& out) {
  const std::string_view is(name);
  std::string text = "tables";
  if (in("shardrec_scorer_open")) {
    shardrec_checkpoint* written = nullptr;
    good(name, written);
  }
  if (is == "directory" || is == "path") text = directory();
  if (is == "device") text = "cpu";
  if (in("shardrec_checkpoint_add_") || in("shardrec_model_add_")) text = "others";
  if (in("shardrec_checkpoint_mlp")) text = "top";
  if (in("shardrec_checkpoint_load_partial")) text = R"({"version": 1, "extra": "ignore"})";
  if (in("shardrec_checkpoint_set_tensor") || in("shardrec_checkpoint_get_tensor") ||
      in("shardrec_checkpoint_tensor_info")) {
    text = "state";
  }
  out = texts_.emplace_back(text).c_str();
}

int64_t Objects::number(const char* name) const {
  static const std::map<std::string, int64_t, std::less<>> others = {
      {"shardrec_collection_changed_rows.mark", 1},
      {"shardrec_collection_release_mark.mark", 1},
      {"shardrec_fsdp_add_mlp.unit_elements", 1},
      {"shardrec_interaction_create.dim", 1},
      {"shardrec_local_create.ranks", 1},
      {"shardrec_local_create.ranks_per_node", 1},
      {"shardrec_mesh_create.sharding_group_size", 1},
      {"shardrec_mlp_create.inputs", 1},
      {"shardrec_model_add_table.dim", 1},
      {"shardrec_model_add_table.rows", 1},
      {"shardrec_probe_json.threads", -1},  // measures nothing
      {"shardrec_scorer_open.step", -1},
      {"shardrec_topology_create.ranks", 1},
      {"shardrec_topology_create.ranks_per_node", 1},
  };
  const auto found = others.find(function_ + "." + name);
  return found == others.end() ? 0 : found->second;
}

}  // namespace shardrec::test
