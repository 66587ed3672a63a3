// Sharded tables in plain memory, filled with values that tell where they belong, and saved and
// loaded by ranks that are threads.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/contents/collection_contents.h"
#include "checkpoint/read/load.h"
#include "checkpoint/write/save.h"
#include "comm/world.h"
#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "core/error.h"
#include "plan/plan.h"
#include "planner/planner.h"

namespace shardrec::checkpoint {

// A directory of its own, gone afterwards.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "shardrec-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "no temporary directory";
    root_ = pattern;
  }
  ~Scratch() { std::filesystem::remove_all(root_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string path(const std::string& name = "checkpoint") const { return root_ + "/" + name; }

 private:
  std::string root_;
};

inline std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_all(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

inline std::vector<std::string> names_in(const std::string& directory) {
  return core::default_environment().list(directory);
}

// Nothing, too, where the directory is gone.
inline std::vector<std::string> left_in(const std::string& directory) {
  return std::filesystem::exists(directory) ? names_in(directory) : std::vector<std::string>{};
}

// What stands in a cell of the weights: a number of its own for every table, row and column.
inline float weight_at(size_t table, int64_t row, int64_t col) {
  return static_cast<float>(table * 1000003 + static_cast<uint64_t>(row * 131 + col * 7) % 999983);
}

// The bits of a cell of any part; of a state by row, col and cols are those it is taken over.
inline uint32_t bits_at(const BoxTensor& box, int64_t row, int64_t col) {
  const auto table = static_cast<size_t>(box.table);
  const float value = box.layout.by_row
                          ? weight_at(table, row, box.cells.col * 1000 + box.cells.cols)
                          : weight_at(table, row, col);
  const uint32_t bits = std::bit_cast<uint32_t>(value) ^ static_cast<uint32_t>(box.part) << 24;
  return box.layout.element_bytes() == 4 ? bits : bits * 2654435761U >> 16;
}

enum class Use : uint8_t { kSave, kLoad };

// A back end whose memory is taken for one that the host does not reach.
struct OtherMemory {
  core::Threads threads{2};
  std::unique_ptr<compute::Backend> backend =
      compute::make_cpu_backend(compute::cpu_kernels(), threads);
};

// The tables of one rank under a plan: memory with gaps between rows, and the boxes that are
// saved (each cell by one rank) or loaded (by every rank that holds it). Every second box is read
// and written by a back end.
class RankTables {
 public:
  // fill: the bits of every element at first, 16 of them where elements are that small.
  RankTables(const plan::Model& model, const plan::Plan& plan, int rank, Use use, uint32_t fill) {
    for (size_t t = 0; t < model.tables.size(); ++t) {
      const plan::Table& table = model.tables[t];
      const plan::Optimizer& optimizer = model.optimizer_of(static_cast<int32_t>(t));
      const bool by_shard = optimizer.row_statistics == SHARDREC_ROW_STATISTICS_SHARD;
      const auto add = [&](const plan::Box& box, bool owns_row_values) {
        for (int p = 0; p < part_count(optimizer.kind); ++p) {
          const auto part = static_cast<TablePart>(p);
          BoxTensor tensor{.table = static_cast<int32_t>(t),
                           .part = part,
                           .layout = layout_of(table.dtype, optimizer.kind, part),
                           .cells = box.cells};
          if (tensor.layout.by_row && !owns_row_values) continue;
          if (tensor.layout.by_row && !by_shard) {
            tensor.cells.col = 0;
            tensor.cells.cols = table.dim;
          }
          add_tensor(tensor, fill);
        }
      };
      if (plan.tables[t].replicated && (use == Use::kLoad || rank == 0)) {
        add({rank, table.cells()}, true);
      }
      for (const plan::Box& box : plan.tables[t].boxes) {
        if (box.rank == rank) add(box, use == Use::kLoad || by_shard || box.cells.col == 0);
      }
    }
    for (size_t i = 0; i < boxes_.size(); ++i) {
      boxes_[i].data = memory_[i].data();
      if (i % 2 == 1) boxes_[i].backend = other_->backend.get();
    }
  }

  const std::vector<BoxTensor>& boxes() const { return boxes_; }

  void set_values() {
    each([](std::byte* element, size_t bytes, uint32_t expected) {
      std::memcpy(element, &expected, bytes);
    });
  }
  // Cells that do not hold what belongs there.
  int64_t wrong() {
    int64_t count = 0;
    each([&](const std::byte* element, size_t bytes, uint32_t expected) {
      count += std::memcmp(element, &expected, bytes) == 0 ? 0 : 1;
    });
    return count;
  }
  // Elements of all memory, gaps included, that are not `fill`.
  int64_t other_than(uint32_t fill) const {
    int64_t count = 0;
    for (size_t i = 0; i < boxes_.size(); ++i) {
      const auto bytes = static_cast<size_t>(boxes_[i].layout.element_bytes());
      for (size_t at = 0; at < memory_[i].size(); at += bytes) {
        count += std::memcmp(memory_[i].data() + at, &fill, bytes) == 0 ? 0 : 1;
      }
    }
    return count;
  }

 private:
  void add_tensor(BoxTensor box, uint32_t fill) {
    box.stride = box.layout.row_width(box.cells.cols) + static_cast<int64_t>(boxes_.size() % 3);
    const auto bytes = static_cast<size_t>(box.layout.element_bytes());
    memory_.emplace_back(static_cast<size_t>(box.cells.rows * box.stride) * bytes);
    for (size_t at = 0; at < memory_.back().size(); at += bytes) {
      std::memcpy(memory_.back().data() + at, &fill, bytes);
    }
    boxes_.push_back(box);
  }

  template <class Visit>
  void each(const Visit& visit) {
    for (const BoxTensor& box : boxes_) {
      const int64_t bytes = box.layout.element_bytes();
      for (int64_t row = 0; row < box.cells.rows; ++row) {
        for (int64_t i = 0; i < box.layout.row_width(box.cells.cols); ++i) {
          visit(box.data + (row * box.stride + i) * bytes, static_cast<size_t>(bytes),
                bits_at(box, box.cells.row + row, box.cells.col + i));
        }
      }
    }
  }

  std::unique_ptr<OtherMemory> other_ = std::make_unique<OtherMemory>();
  std::vector<BoxTensor> boxes_;
  std::vector<std::vector<std::byte>> memory_;
};

using Errors = std::vector<std::optional<core::Error>>;

struct Seams {
  core::Control* control = nullptr;
  core::Environment* environment = &core::default_environment();
  int faulty_rank = -1;  // -1: control and environment are for all ranks, else for this one

  core::Control* control_of(int rank) const {
    return faulty_rank < 0 || rank == faulty_rank ? control : nullptr;
  }
  core::Environment& environment_of(int rank) const {
    return faulty_rank < 0 || rank == faulty_rank ? *environment : core::default_environment();
  }
};

using planner::make_plan;
using Ranks = GroupChannels;

inline Contents contents_of(const plan::Model& model, const plan::Plan& plan, int64_t step,
                            const RankTables& tables) {
  Contents contents;
  contents.collections.push_back({.name = "",
                                  .model = &model,
                                  .plan = plan::plan_to_json(plan, model),
                                  .step = step,
                                  .tables = manifest_tables(model),
                                  .boxes = tables.boxes()});
  return contents;
}

inline Errors save_all(const plan::Model& model, const plan::Plan& plan,
                       const std::string& directory, int64_t step, const Seams& seams = {}) {
  return comm::run_ranks(plan.topology.ranks, [&](comm::Communicator& communicator) {
    const int rank = communicator.rank();
    Ranks ranks(communicator);
    RankTables tables(model, plan, rank, Use::kSave, 0);
    tables.set_values();
    save(ranks.group(), {.directory = directory, .step = step},
         contents_of(model, plan, step, tables), seams.control_of(rank),
         seams.environment_of(rank));
  });
}

struct Loaded {
  Errors errors;
  int64_t wrong = 0;    // cells without their value, over all ranks
  int64_t changed = 0;  // elements that were written, over all ranks
  bool begun = false;   // did every rank hear that boxes change from here on?
  int unaware = 0;      // ranks that did not hear it
  std::vector<int64_t> steps;
};

inline Loaded load_all(const plan::Model& model, const plan::Plan& plan,
                       const std::string& directory, const Seams& seams = {}) {
  const auto ranks = static_cast<size_t>(plan.topology.ranks);
  constexpr uint32_t kUntouched = 0x3F003F01;  // no cell's value
  Loaded out;
  out.steps.assign(ranks, -1);
  std::vector<RankTables> tables;
  for (size_t rank = 0; rank < ranks; ++rank) {
    tables.emplace_back(model, plan, static_cast<int>(rank), Use::kLoad, kUntouched);
  }
  std::vector<char> begun(ranks, 0);
  out.errors = comm::run_ranks(plan.topology.ranks, [&](comm::Communicator& communicator) {
    const int rank = communicator.rank();
    const auto r = static_cast<size_t>(rank);
    Ranks own(communicator);
    core::Environment& environment = seams.environment_of(rank);
    Contents wanted = contents_of(model, plan, -1, tables[r]);
    load(
        own.group(), open(own.group(), directory, environment), wanted, seams.control_of(rank),
        [&] { begun[r] = 1; }, environment);
    out.steps[r] = wanted.collections.front().step;
  });
  for (RankTables& own : tables) {
    out.wrong += own.wrong();
    out.changed += own.other_than(kUntouched);
  }
  out.unaware = static_cast<int>(std::count(begun.begin(), begun.end(), 0));
  out.begun = out.unaware == 0;
  return out;
}

inline void expect_ok(const Errors& errors) {
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    EXPECT_FALSE(errors[rank].has_value()) << "rank " << rank << ": " << errors[rank]->sentence();
  }
}

inline void expect_all(const Errors& errors, shardrec_status status, const std::string& part = "") {
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    ASSERT_TRUE(errors[rank].has_value()) << "rank " << rank;
    EXPECT_EQ(errors[rank]->status(), status) << errors[rank]->sentence();
    EXPECT_NE(errors[rank]->sentence().find(part), std::string::npos) << errors[rank]->sentence();
  }
}

inline plan::Model model_of(const std::vector<std::pair<int64_t, int64_t>>& sizes,
                            shardrec_optimizer optimizer = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD,
                            shardrec_row_statistics statistics = SHARDREC_ROW_STATISTICS_ROW) {
  plan::Model model;
  for (const auto& [rows, dim] : sizes) {
    add_table(model, {.name = "t" + std::to_string(model.tables.size()), .rows = rows, .dim = dim});
  }
  set_optimizer(model, {.kind = optimizer, .row_statistics = statistics});
  return model;
}

}  // namespace shardrec::checkpoint
