// Operations on touched rows on a device have the bits of the CPU's.
#include "compute/cuda/host/rows/row_updates.h"

#include <deque>
#include <optional>
#include <string>

#include "compute/backend.h"
#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/update_jobs.h"
#include "device/device_arrays.h"

namespace shardrec::test {
namespace {

using compute::ColumnRange;
using compute::Element;
using compute::element_bytes;
using compute::kElements;
using compute::Numbers;
using compute::OptimizerKind;
using compute::OptimizerStep;
using compute::Random;
using compute::RowStep;
using compute::RowSums;
using compute::RowUpdate;
using compute::Tensors;
using compute::TouchedRows;
using compute::uniform;
using compute::UpdateJob;
using compute::UpdateShape;
using compute::WeightDecay;

// A shard, and how the gradients of its bags lie on the device.
struct Shape : UpdateShape {
  size_t gradient_shift = 0;    // floats before the first
  size_t gradient_padding = 0;  // floats behind each
  float block_start = 0;
  bool located = false;  // their addresses are written when the rows are opened
};

Shape random_shape(Random& random, int64_t width, const OptimizerStep& step) {
  const auto numbers = uniform(random, 0, 2) == 0 ? Numbers::kSpecial : Numbers::kOrdinary;
  Shape shape;
  static_cast<UpdateShape&>(shape) = compute::random_shape(random, width, step, numbers);
  if (uniform(random, 0, 3) == 0) shape.step.eps = 0;
  if (uniform(random, 0, 2) == 0) shape.step.max_norm = 1.5F;
  if (uniform(random, 0, 3) == 0) shape.block_start = RowUpdate::kUnchanged;
  // Half of them may be read in vectors.
  if (uniform(random, 0, 1) == 0) {
    shape.padding = 8 * (shape.padding / 3) + static_cast<size_t>((8 - width % 8) % 8);
    if (width % 16 != 0) shape.ranges = 1;
    shape.gradient_padding = static_cast<size_t>((4 - width % 4) % 4);
  }
  if (uniform(random, 0, 3) == 0) {
    shape.gradient_shift = static_cast<size_t>(uniform(random, 0, 3));
    shape.gradient_padding = static_cast<size_t>(uniform(random, 0, 4));
  }
  shape.located = uniform(random, 0, 1) == 1;
  return shape;
}

std::string describe(const Shape& shape) {
  return name_of(shape.step) + ", " + name_of(shape.element) +
         (shape.stochastic ? " stochastic" : "") + ", width " + std::to_string(shape.width) +
         ", padding " + std::to_string(shape.padding) + ", " + std::to_string(shape.ranges) +
         " ranges, " + std::to_string(shape.maps) + " maps" + (shape.weighted ? ", weighted" : "") +
         (shape.given ? ", given sums" : "") + ", gradients at " +
         std::to_string(shape.gradient_shift) + " + " + std::to_string(shape.gradient_padding);
}

// The columns, cut at any place, some of them left out.
std::vector<ColumnRange> random_ranges(Random& random, int64_t width) {
  std::vector<ColumnRange> ranges;
  for (int64_t begin = 0; begin < width;) {
    const int64_t end = std::min(width, begin + uniform(random, 1, width));
    if (ranges.empty() || uniform(random, 0, 3) != 0) ranges.push_back({begin, end});
    begin = end;
  }
  return ranges;
}

class RowUpdatesOnDevice : public DeviceTest {
 protected:
  // A shard in the memory of the host, and all of it once more on the device.
  class Shard {
   public:
    Shard(RowUpdatesOnDevice& test, const Shape& shape)
        : shape_(shape), job_(test.random_, shape), test_(test) {
      here_.job = job_.view();
      here_.rows = shape.unique;
      here_.bags = shape.bags;
      given_ = here_.job.sums;
      statistic_columns_ = here_.job.statistic_columns;
      here_.job.sums = nullptr;
      here_.job.statistic_columns = 0;
      here_.job.columns = job_.columns().data();
      here_.job.statistics = static_cast<int>(job_.columns().size());
      here_.job.block_start = shape.block_start;
      ranges_ = random_ranges(test.random_, shape.width);
      copy();
    }

    const Shape& shape() const { return shape_; }
    const TouchedRows& here() const { return here_; }
    const TouchedRows& there() const { return there_; }
    RowStep step_here() const { return step(given_); }
    RowStep step_there() const { return step(given_ == nullptr ? nullptr : floats(*given_there_)); }
    const std::vector<ColumnRange>& ranges() const { return ranges_; }
    size_t sums() const {
      return static_cast<size_t>(shape_.unique * state_needs(shape_.step.kind).sums) *
             ranges_.size();
    }
    size_t norms() const { return static_cast<size_t>(shape_.unique) * ranges_.size(); }
    size_t gradients() const { return static_cast<size_t>(shape_.unique * shape_.width); }

    const Tensors& result_here() const { return job_.now; }
    Tensors result_there() {
      Tensors out = job_.now;
      const auto read = [](Array& from, void* to) {
        const std::vector<std::byte> bytes = from.bytes();
        if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
      };
      read(*table_, out.table.data());
      for (size_t m = 0; m < out.matrices.size(); ++m) read(matrices_[m], out.matrices[m].data());
      for (size_t s = 0; s < out.states.size(); ++s) read(states_[s], out.states[s].data());
      return out;
    }

   private:
    template <class T>
    Array& add(const T* data, size_t count) {
      return lists_.emplace_back(test_, data, count * sizeof(T));
    }
    static float* floats(Array& array) { return static_cast<float*>(array.data()); }

    RowStep step(const float* sums) const {
      return {.sums = sums,
              .statistic_columns = sums == nullptr ? 0 : statistic_columns_,
              .rescales = shape_.step.max_norm > 0};
    }

    void copy() {
      const RowUpdate& from = here_.job;
      const auto unique = static_cast<size_t>(shape_.unique);
      const auto bags = static_cast<size_t>(shape_.bags);
      const auto occurrences = static_cast<size_t>(from.run[unique]);
      there_ = here_;
      RowUpdate& to = there_.job;
      table_.emplace(test_, job_.now.table.data(),
                     job_.now.table.size() * element_bytes(shape_.element));
      to.table = table_->data();
      to.rows = static_cast<const int64_t*>(add(from.rows, unique).data());
      to.run = static_cast<const int64_t*>(add(from.run, unique + 1).data());
      to.bags = static_cast<const uint32_t*>(add(from.bags, occurrences).data());
      to.blocks = static_cast<const uint32_t*>(add(from.blocks, bags).data());
      if (from.weights != nullptr) to.weights = floats(add(from.weights, occurrences));
      copy_gradients(from, bags);
      for (const auto& matrix : job_.now.matrices) {
        matrices_.emplace_back(test_, matrix.data(), matrix.size() * sizeof(float));
        matrix_pointers_.push_back(floats(matrices_.back()));
      }
      for (const auto& state : job_.now.states) {
        states_.emplace_back(test_, state.data(), state.size() * sizeof(float));
        state_pointers_.push_back(floats(states_.back()));
      }
      to.matrices = matrix_pointers_.data();
      to.state = state_pointers_.data();
      const auto needs = static_cast<size_t>(state_needs(shape_.step.kind).sums);
      if (given_ != nullptr) given_there_ = &add(given_, unique * needs);
    }

    void copy_gradients(const RowUpdate& from, size_t bags) {
      const auto width = static_cast<size_t>(shape_.width);
      const size_t stride = width + shape_.gradient_padding;
      std::vector<float> rows(shape_.gradient_shift + bags * stride, -1.0F);
      for (size_t b = 0; b < bags; ++b) {
        std::copy_n(from.gradients[b], width, &rows[shape_.gradient_shift + b * stride]);
      }
      const float* const first = floats(add(rows.data(), rows.size())) + shape_.gradient_shift;
      std::vector<const float*> pointers;
      for (size_t b = 0; b < bags; ++b) pointers.push_back(first + b * stride);
      const std::vector<const float*> none(pointers.size());
      Array& there = add((shape_.located ? none : pointers).data(), pointers.size());
      there_.job.gradients = static_cast<const float* const*>(there.data());
      if (!shape_.located) return;
      located_ = {.rows = std::ssize(pointers),
                  .data = first,
                  .stride = static_cast<int64_t>(stride),
                  .out = static_cast<const float**>(there.data())};
      there_.located = std::span(&located_, 1);
    }

    Shape shape_;
    UpdateJob job_;
    RowUpdatesOnDevice& test_;
    TouchedRows here_;
    TouchedRows there_;
    compute::GradientBlock located_;
    const float* given_ = nullptr;
    int64_t statistic_columns_ = 0;
    std::vector<ColumnRange> ranges_;
    std::optional<Array> table_;
    std::deque<Array> lists_;
    std::deque<Array> matrices_;
    std::deque<Array> states_;
    std::vector<float*> matrix_pointers_;
    std::vector<float*> state_pointers_;
    Array* given_there_ = nullptr;
  };

  // Room for floats of each shard, on the host and on the device.
  class Floats {
   public:
    template <class Count>
    Floats(RowUpdatesOnDevice& test, const std::deque<Shard>& shards, const Count& count) {
      for (const Shard& shard : shards) {
        std::vector<float>& own = here_.emplace_back(count(shard), -7.0F);
        there_.emplace_back(test, own.data(), own.size() * sizeof(float));
      }
    }
    float* here(size_t shard) { return here_[shard].data(); }
    float* there(size_t shard) { return static_cast<float*>(there_[shard].data()); }
    ::testing::AssertionResult same(size_t shard) {
      const std::vector<std::byte> bytes = there_[shard].bytes();
      std::vector<float> floats(here_[shard].size());
      if (!bytes.empty()) std::memcpy(floats.data(), bytes.data(), bytes.size());
      return compute::same_bits(floats, here_[shard]);
    }

   private:
    std::deque<std::vector<float>> here_;
    std::deque<Array> there_;
  };

  void open(std::deque<Shard>& shards) {
    std::vector<TouchedRows> here;
    std::vector<TouchedRows> there;
    for (const Shard& shard : shards) {
      here.push_back(shard.here());
      there.push_back(shard.there());
    }
    cpu_->rows().open_rows(here);
    updates().open(there);
  }

  void compare_gradients(std::deque<Shard>& shards) {
    Floats out(*this, shards, [](const Shard& shard) { return shard.gradients(); });
    std::vector<float*> here;
    std::vector<float*> there;
    for (size_t s = 0; s < shards.size(); ++s) {
      const bool wanted = uniform(random_, 0, 5) != 0;
      here.push_back(wanted ? out.here(s) : nullptr);
      there.push_back(wanted ? out.there(s) : nullptr);
    }
    cpu_->rows().sum_gradients(here);
    updates().gradients(there);
    for (size_t s = 0; s < shards.size(); ++s) {
      ASSERT_TRUE(out.same(s)) << "gradients of " << describe(shards[s].shape());
    }
  }

  // What the optimizers sum, or norms.
  void compare_sums(std::deque<Shard>& shards, bool norms) {
    Floats out(*this, shards,
               [&](const Shard& shard) { return norms ? shard.norms() : shard.sums(); });
    std::vector<RowSums> here;
    std::vector<RowSums> there;
    for (size_t s = 0; s < shards.size(); ++s) {
      const bool wanted = uniform(random_, 0, 5) != 0;
      here.push_back({shards[s].ranges(), wanted ? out.here(s) : nullptr});
      there.push_back({shards[s].ranges(), wanted ? out.there(s) : nullptr});
    }
    if (norms) {
      cpu_->rows().sum_norms(here);
      updates().norms(there);
    } else {
      cpu_->rows().sum_rows(here);
      updates().sums(there);
    }
    for (size_t s = 0; s < shards.size(); ++s) {
      ASSERT_TRUE(out.same(s)) << (norms ? "norms of " : "sums of ") << describe(shards[s].shape());
    }
  }

  void compare_tables(std::deque<Shard>& shards, const char* when) {
    for (Shard& shard : shards) {
      ASSERT_TRUE(same_bits(shard.result_there(), shard.result_here()))
          << when << ", " << describe(shard.shape());
    }
  }

  void compare_updates(std::deque<Shard>& shards) {
    std::vector<RowStep> here;
    std::vector<RowStep> there;
    for (const Shard& shard : shards) {
      here.push_back(shard.step_here());
      there.push_back(shard.step_there());
    }
    cpu_->rows().update_rows(here);
    updates().update(there);
    compare_tables(shards, "after a step");
  }

  // With norms of rows that were added up elsewhere.
  void compare_rescaled(std::deque<Shard>& shards) {
    Floats norms(*this, shards,
                 [](const Shard& shard) { return static_cast<size_t>(shard.shape().unique); });
    std::vector<RowSums> sums;
    std::vector<ColumnRange> whole;
    for (const Shard& shard : shards) whole.push_back({0, shard.shape().width});
    std::vector<const float*> here;
    std::vector<RowSums> sums_there;
    std::vector<const float*> there;
    for (size_t s = 0; s < shards.size(); ++s) {
      sums.push_back({{&whole[s], 1}, norms.here(s)});
      sums_there.push_back({{&whole[s], 1}, norms.there(s)});
      const bool wanted = shards[s].shape().step.max_norm > 0 && uniform(random_, 0, 3) != 0;
      here.push_back(wanted ? norms.here(s) : nullptr);
      there.push_back(wanted ? norms.there(s) : nullptr);
    }
    cpu_->rows().sum_norms(sums);
    updates().norms(sums_there);
    cpu_->rows().rescale_rows(here);
    updates().rescale(there);
    compare_tables(shards, "after rescaling");
  }

  void compare(std::deque<Shard>& shards) {
    ASSERT_NO_FATAL_FAILURE(open(shards));
    ASSERT_NO_FATAL_FAILURE(compare_gradients(shards));
    ASSERT_NO_FATAL_FAILURE(compare_sums(shards, false));
    ASSERT_NO_FATAL_FAILURE(compare_updates(shards));
    ASSERT_NO_FATAL_FAILURE(compare_sums(shards, true));
    ASSERT_NO_FATAL_FAILURE(compare_rescaled(shards));
  }

  compute::cuda::host::RowUpdates& updates() {
    if (updates_ == nullptr) updates_ = std::make_unique<compute::cuda::host::RowUpdates>(stream_);
    return *updates_;
  }

  Random random_{11};
  core::Threads threads_{1};
  std::unique_ptr<compute::Backend> cpu_ =
      compute::make_cpu_backend(compute::cpu_kernels(), threads_);
  std::unique_ptr<compute::cuda::host::RowUpdates> updates_;
};

TEST_F(RowUpdatesOnDevice, HaveTheBitsOfTheCpuForEveryOptimizer) {
  for (const OptimizerStep& step : compute::all_steps()) {
    std::deque<Shard> shards;
    for (const int64_t width : {1,  2,  3,  4,  7,  8,  12, 15,  16,  17,  20,  24,  31, 32,
                                33, 40, 63, 64, 72, 80, 96, 100, 128, 130, 192, 200, 256}) {
      shards.emplace_back(*this, random_shape(random_, width, step));
    }
    ASSERT_NO_FATAL_FAILURE(compare(shards));
  }
}

TEST_F(RowUpdatesOnDevice, HaveThemForVectorsOfEveryElementAndRounding) {
  for (const OptimizerStep& step : compute::all_steps()) {
    std::deque<Shard> shards;
    for (const Element element : kElements) {
      for (const bool stochastic : {false, true}) {
        for (const int64_t width : {16, 32, 64, 128, 256}) {
          Shape shape = random_shape(random_, width, step);
          shape.element = element;
          shape.stochastic = stochastic;
          shape.padding = 0;
          shape.gradient_shift = 0;
          shape.gradient_padding = 0;
          shape.maps = 0;
          shape.ranges = width >= 32 ? static_cast<int>(uniform(random_, 1, 2)) : 1;
          shards.emplace_back(*this, shape);
        }
      }
    }
    ASSERT_NO_FATAL_FAILURE(compare(shards));
  }
}

TEST_F(RowUpdatesOnDevice, WalkRowsThatAreWiderThanAWarp) {
  for (const OptimizerStep& step : compute::all_steps()) {
    std::deque<Shard> shards;
    // Two and four parts of a lane, then tiles of these, of vectors and of single columns.
    for (const int64_t width : {132, 257, 260, 264, 384, 512, 516, 520, 1000, 1028}) {
      Shape shape = random_shape(random_, width, step);
      shape.unique = uniform(random_, 1, width <= 512 ? 40 : 3);
      shape.bags = 10;
      shards.emplace_back(*this, shape);
    }
    ASSERT_NO_FATAL_FAILURE(compare(shards));
  }
}

TEST_F(RowUpdatesOnDevice, SumRowsOfVeryManyOccurrencesInOrder) {
  constexpr int64_t kHot = SHARDREC_CUDA_HOT_OCCURRENCES;
  const std::vector<OptimizerStep> steps = compute::all_steps();
  for (const int64_t width : {1, 8, 33, 64, 100}) {
    std::deque<Shard> shards;
    // With 8, rows have more sums than there is room for; with 1 and 3 too many for their occurrences.
    for (const int64_t bags_per_block : {1, 3, 8, 64, 512, 100000}) {
      for (const int64_t longest : {kHot, kHot + 1, 4 * kHot + 37}) {
        const auto step = static_cast<size_t>(uniform(random_, 0, std::ssize(steps) - 1));
        Shape shape = random_shape(random_, width, steps[step]);
        shape.unique = uniform(random_, 1, 3);
        shape.longest = longest;
        shape.bags = 2000;
        shape.bags_per_block = bags_per_block;
        shape.block_step = uniform(random_, 1, 3);
        shards.emplace_back(*this, shape);
      }
    }
    ASSERT_NO_FATAL_FAILURE(compare(shards));
  }
}

TEST_F(RowUpdatesOnDevice, TakeManyRowsOfFewShards) {
  const std::vector<OptimizerStep> steps = compute::all_steps();
  for (const int64_t unique : {31, 32, 33, 255, 256, 257, 1100}) {
    std::deque<Shard> shards;
    for (const int64_t width : {3, 16, 64}) {
      const auto step = static_cast<size_t>(uniform(random_, 0, std::ssize(steps) - 1));
      Shape shape = random_shape(random_, width, steps[step]);
      shape.unique = unique;
      shape.longest = 40;
      shape.bags = 300;
      shards.emplace_back(*this, shape);
    }
    ASSERT_NO_FATAL_FAILURE(compare(shards));
  }
}

TEST_F(RowUpdatesOnDevice, TakeShardsWithoutTouchedRowsAndNoShards) {
  const OptimizerStep step = compute::step_of(OptimizerKind::kRowwiseAdagrad, WeightDecay::kNone);
  std::deque<Shard> shards;
  Shape none = random_shape(random_, 8, step);
  none.unique = 0;
  shards.emplace_back(*this, none);
  ASSERT_NO_FATAL_FAILURE(compare(shards));
  shards.emplace_back(*this, random_shape(random_, 8, step));
  shards.emplace_back(*this, none);
  ASSERT_NO_FATAL_FAILURE(compare(shards));
  shards.clear();
  ASSERT_NO_FATAL_FAILURE(compare(shards));
}

}  // namespace
}  // namespace shardrec::test
