// Gradients that a device keeps over lookups are those that the CPU keeps, in the same entries.
#include "compute/cuda/host/gradients/kept_gradients.h"

#include <algorithm>
#include <deque>
#include <set>

#include "compute/backend.h"
#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/jobs.h"
#include "device/device_arrays.h"

namespace shardrec::test {
namespace {

using compute::Numbers;
using compute::Random;
using compute::RowUpdate;
using compute::uniform;

class KeptGradientsOnDevice : public DeviceTest {
 protected:
  // What both keep, on the CPU and on the device.
  struct Kept {
    int64_t width;
    std::unique_ptr<compute::KeptGradients> here;
    compute::cuda::host::IndexedGradients there;
  };
  Kept keep(int64_t width) {
    return {width, cpu_->gradients().make_kept_gradients(width), {width, stream_}};
  }

  // About count different rows.
  std::vector<int64_t> some_rows(int64_t count, int64_t most) {
    std::set<int64_t> rows;
    for (int64_t i = 0; i < count; ++i) rows.insert(uniform(random_, 0, most));
    return {rows.begin(), rows.end()};
  }

  // shift: floats before the first gradient, which may then not lie at 16 bytes.
  void add(Kept& kept, const std::vector<int64_t>& rows, size_t shift = 0) {
    const std::vector<float> gradients =
        numbers_of(random_, rows.size() * static_cast<size_t>(kept.width) + shift,
                   uniform(random_, 0, 1) == 0 ? Numbers::kOrdinary : Numbers::kSpecial);
    Array rows_there(*this, rows.data(), rows.size() * sizeof(int64_t));
    Array gradients_there(*this, gradients.data(), gradients.size() * sizeof(float));
    kept.here->add(rows, gradients.data() + shift);
    kept.there.add({static_cast<const int64_t*>(rows_there.data()), rows.size()},
                   static_cast<const float*>(gradients_there.data()) + shift);
  }

  void compare(Kept& kept) {
    kept.here->finish();
    kept.there.finish();
    RowUpdate here;
    RowUpdate there;
    kept.here->describe(here);
    kept.there.describe(there);
    const size_t count = kept.here->rows().size();
    ASSERT_EQ(kept.there.rows().size(), count);
    EXPECT_EQ(kept.there.rows().data(), there.rows);
    const auto expect_list = [&](const auto* list, const auto* expected, size_t numbers) {
      EXPECT_EQ(read(list, numbers), std::vector(expected, expected + numbers));
    };
    expect_list(there.rows, here.rows, count);
    expect_list(there.run, here.run, count + 1);
    expect_list(there.bags, here.bags, count);
    expect_list(there.blocks, here.blocks, count);
    EXPECT_EQ(there.weights, nullptr);
    EXPECT_TRUE(compute::same_bits(there.block_start, here.block_start));
    const auto width = static_cast<size_t>(kept.width);
    const std::vector<const float*> gradients = read(there.gradients, count);
    for (size_t entry = 0; entry < count; ++entry) {
      const std::vector<float> gradient = read(gradients[entry], width);
      const std::vector<float> expected(here.gradients[entry], here.gradients[entry] + width);
      ASSERT_TRUE(compute::same_bits(gradient, expected)) << "entry " << entry;
    }
  }

  Random random_{19};
  core::Threads threads_{1};
  std::unique_ptr<compute::Backend> cpu_ =
      compute::make_cpu_backend(compute::cpu_kernels(), threads_);
};

TEST_F(KeptGradientsOnDevice, AreTheSumsOfTheCpuInItsSlots) {
  for (const int64_t width : {1, 3, 4, 12, 31, 128, 130, 260}) {
    Kept kept = keep(width);
    for (const int64_t rows : {20, 1, 40, 0, 60, 60}) {
      add(kept, some_rows(rows, 80), static_cast<size_t>(uniform(random_, 0, 1)));
      ASSERT_NO_FATAL_FAILURE(compare(kept)) << "width " << width << ", " << rows << " rows more";
    }
  }
}

TEST_F(KeptGradientsOnDevice, ComeAnewAfterAStep) {
  Kept kept = keep(8);
  compare(kept);
  for (const int64_t rows : {700, 90, 900}) {
    add(kept, some_rows(rows, int64_t{1} << 40));
    add(kept, some_rows(300, 500));
    add(kept, some_rows(300, 500));
    ASSERT_NO_FATAL_FAILURE(compare(kept));
    kept.here->clear();
    kept.there.clear();
    ASSERT_NO_FATAL_FAILURE(compare(kept));
  }
}

}  // namespace
}  // namespace shardrec::test
