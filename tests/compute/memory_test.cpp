// No kernel touches memory beyond its rows.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/update_jobs.h"

namespace shardrec::compute {
namespace {

enum class Guard : uint8_t { kBefore, kAfter };

// Numbers that end where memory ends: the page behind them, or in front of them, cannot be touched.
template <class T>
class Guarded {
 public:
  Guarded(size_t count, Guard guard, T number) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t inside = (count * sizeof(T) + page - 1) / page * page;
    mapped_ = inside + 2 * page;
    mapping_ = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto* bytes = static_cast<std::byte*>(mapping_) + page;
    mprotect(bytes, inside, PROT_READ | PROT_WRITE);
    if (guard == Guard::kAfter) bytes += inside - count * sizeof(T);
    numbers_ = {static_cast<T*>(static_cast<void*>(bytes)), count};
    std::fill(numbers_.begin(), numbers_.end(), number);
  }
  ~Guarded() { munmap(mapping_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  T* data() const { return numbers_.data(); }

 private:
  void* mapping_ = nullptr;
  size_t mapped_ = 0;
  std::span<T> numbers_;
};

using GuardedFloats = Guarded<float>;

// Ones of an element type.
class GuardedElements {
 public:
  GuardedElements(Element element, size_t count, Guard guard)
      : element_(element),
        one_(element == Element::kFloat16 ? 0x3C00 : 0x3F80),
        floats_(element == Element::kFloat32 ? count : 0, guard, 1.0F),
        halves_(element == Element::kFloat32 ? 0 : count, guard, one_) {}

  void* data() const {
    return element_ == Element::kFloat32 ? static_cast<void*>(floats_.data()) : halves_.data();
  }
  bool is_one(size_t i) const {
    return element_ == Element::kFloat32 ? floats_.data()[i] == 1.0F : halves_.data()[i] == one_;
  }

 private:
  Element element_;
  uint16_t one_;
  GuardedFloats floats_;
  Guarded<uint16_t> halves_;
};

std::vector<int64_t> some_widths() {
  std::vector<int64_t> widths;
  for (int64_t width = 1; width <= 300; width += width < 70 ? 1 : 13) widths.push_back(width);
  return widths;
}

class MemoryTouched : public testing::TestWithParam<Guard> {};
INSTANTIATE_TEST_SUITE_P(Guards, MemoryTouched, testing::Values(Guard::kBefore, Guard::kAfter));

TEST_P(MemoryTouched, ByThePooledLookupIsTheRowsOnly) {
  const std::vector<int64_t> offsets = {0, 2, 2, 5};
  const std::vector<int64_t> ids = {0, 2, 1, 2, 0};
  for (const Element element : kElements) {
    for (const int64_t width : some_widths()) {
      const auto columns = static_cast<size_t>(width);
      const GuardedElements table(element, 3 * columns, GetParam());
      const GuardedFloats out(3 * columns, GetParam(), 1.0F);
      for (int set = 0; set < cpu_kernel_count(); ++set) {
        cpu_kernels_at(set).pooled_lookup({.table = table.data(),
                                           .element = element,
                                           .stride = columns,
                                           .width = width,
                                           .ids = {.data = ids.data(), .is_64 = true},
                                           .offsets = offsets.data(),
                                           .out = out.data(),
                                           .out_stride = columns},
                                          0, 3);
        EXPECT_EQ(out.data()[0], 2.0F);
        EXPECT_EQ(out.data()[columns], 0.0F);
        EXPECT_EQ(out.data()[3 * columns - 1], 3.0F);
      }
    }
  }
}

// Updates, sums and max_norm of rows 0 and 2 of 3.
void touch_rows(const OptimizerStep& step, Element element, int64_t width, Guard guard) {
  const auto columns = static_cast<size_t>(width);
  const std::vector<uint32_t> bags = {0, 0, 1, 1};
  const std::vector<uint32_t> blocks = {0, 1};
  const std::vector<int64_t> run = {0, 1, 4};
  const std::vector<int64_t> rows = {0, 2};
  const GuardedFloats gradient(columns, guard, 1.0F);
  const std::vector<const float*> gradients = {gradient.data(), gradient.data()};
  const GuardedFloats scratch(row_update_scratch_bytes(width) / sizeof(float), guard, 1.0F);
  auto* bytes = static_cast<std::byte*>(static_cast<void*>(scratch.data()));
  const GuardedFloats state(3, guard, 1.0F);
  const GuardedFloats first(3 * columns, guard, 1.0F);
  const GuardedFloats second(3 * columns, guard, 1.0F);
  float* const matrices[2] = {first.data(), second.data()};
  float* const states[2] = {state.data(), state.data()};
  const std::vector<ColumnRange> ranges =
      width == 1 ? std::vector<ColumnRange>{{0, 1}}
                 : std::vector<ColumnRange>{{0, width / 2}, {width / 2, width}};
  const auto count = static_cast<int>(ranges.size());
  const ColumnMap map{0, 3, width};
  const GuardedFloats out(2 * ranges.size() * kMostSums, guard, 1.0F);
  const GuardedFloats sums(2 * columns, guard, 1.0F);
  for (int set = 0; set < cpu_kernel_count(); ++set) {
    const Kernels& kernels = cpu_kernels_at(set);
    const GuardedElements table(element, 3 * columns, guard);
    const RowUpdate job{.table = table.data(),
                        .element = element,
                        .stride = columns,
                        .width = width,
                        .rows = rows.data(),
                        .run = run.data(),
                        .bags = bags.data(),
                        .gradients = gradients.data(),
                        .blocks = blocks.data(),
                        .step = step,
                        .rounding = {.stochastic = width % 2 == 0, .seed = 1},
                        .column_map = &map,
                        .column_maps = 1,
                        .matrices = matrices,
                        .state = states,
                        .columns = ranges.data(),
                        .statistics = count};
    kernels.row_sums(job, ranges.data(), count, out.data(), 0, 2, bytes);
    kernels.row_gradients(job, sums.data(), 0, 2, bytes);
    kernels.row_update(job, 0, 2, bytes);
    for (size_t c = 0; c < columns; ++c) {
      ASSERT_FALSE(table.is_one(c)) << kernels.name << " " << name_of(step);
      ASSERT_TRUE(table.is_one(columns + c));
      ASSERT_FALSE(table.is_one(2 * columns + c));
    }
    kernels.row_norms(job, ranges.data(), count, out.data(), 0, 2, bytes);
    kernels.row_rescale(job, ranges.data(), count, out.data(), 0, 2, bytes);
    for (size_t c = 0; c < columns; ++c) ASSERT_TRUE(table.is_one(columns + c));
  }
}

TEST_P(MemoryTouched, ByKernelsOnRowsIsTheRowsOnly) {
  Random random(71);
  for (const int64_t width : some_widths()) {
    for (const OptimizerStep& of_kind : all_steps()) {
      OptimizerStep step = of_kind;
      step.max_norm = 0.1F;
      step.learning_rate = 0.5F;
      touch_rows(step, kElements[uniform(random, 0, 2)], width, GetParam());
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(MemoryTouched, ByElementwiseKernelsIsTheColumnsOnly) {
  for (int64_t width = 0; width <= 130; ++width) {
    const auto columns = static_cast<size_t>(width);
    const GuardedFloats x(columns, GetParam(), 1.0F);
    const GuardedFloats y(columns, GetParam(), 1.0F);
    for (int set = 0; set < cpu_kernel_count(); ++set) {
      const Kernels& kernels = cpu_kernels_at(set);
      kernels.add(x.data(), y.data(), width);
      kernels.divide(x.data(), 3, width);
      for (const Element element : kElements) {
        const GuardedElements elements(element, columns, GetParam());
        kernels.scale_gradient({.divisor = 3, .max_gradient = 1, .length = 3, .element = element},
                               elements.data(), y.data(), width);
        kernels.widen(elements.data(), element, y.data(), width);
        kernels.narrow(x.data(), element, elements.data(), width);
      }
    }
  }
}

}  // namespace
}  // namespace shardrec::compute
