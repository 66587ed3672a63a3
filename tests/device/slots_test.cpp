// Slots of touched rows, and sums over ranks, have on a device the bytes of the CPU's.
#include "compute/cuda/host/slots/slots.h"

#include <algorithm>
#include <deque>

#include "compute/backend.h"
#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/cuda/host/slots/slot_sums.h"
#include "compute/jobs.h"
#include "device/device_arrays.h"
#include "support/same_element.h"

namespace shardrec::test {
namespace {

using compute::Numbers;
using compute::Random;
using compute::RowAddend;
using compute::RowTotals;
using compute::slot_index_bytes;
using compute::SlotPacking;
using compute::SlotRoom;
using compute::SlotRows;
using compute::SlotShape;
using compute::SlotSum;
using compute::SlotUnpacking;
using compute::uniform;

constexpr std::byte kUntouched{0x5A};

// The same numbers, a NaN being a NaN.
bool same_floats(std::span<const std::byte> a, std::span<const std::byte> b) {
  for (size_t i = 0; i < a.size(); i += sizeof(float)) {
    if (!same_element(compute::Element::kFloat32, &a[i], &b[i])) return false;
  }
  return a.size() == b.size();
}

class SlotsOnDevice : public DeviceTest, public ::testing::WithParamInterface<bool> {
 protected:
  // A slot with its room, on the CPU and on the device.
  class Slot {
   public:
    Slot(SlotsOnDevice& test, const SlotShape& shape)
        : test_(test),
          shape_(shape),
          // Behind each a byte that nobody writes.
          index_(slot_index_bytes(shape) + 1, kUntouched),
          gradients_(static_cast<size_t>(shape.count * shape.width) * sizeof(float) + 1,
                     kUntouched),
          index_there_(test, index_.data(), index_.size()),
          gradients_there_(test, gradients_.data(), gradients_.size()) {}

    const SlotShape& shape() const { return shape_; }
    SlotRoom room_here() { return {shape_, index_.data(), floats(gradients_.data())}; }
    SlotRoom room_there() {
      return {shape_, static_cast<std::byte*>(index_there_.data()),
              floats(gradients_there_.data())};
    }
    SlotRows here() { return rows_of(room_here()); }
    SlotRows there() { return rows_of(room_there()); }

    // A copy of the CPU's index is all that the device has then.
    void write_index(size_t byte, std::byte value) {
      index_[byte] = value;
      index_there_ = Array(test_, index_.data(), index_.size());
    }
    std::byte index(size_t byte) const { return index_[byte]; }

    void compare() {
      EXPECT_TRUE(index_there_.bytes() == index_);
      const std::vector<std::byte> there = gradients_there_.bytes();
      ASSERT_EQ(there.back(), kUntouched);
      const size_t bytes = gradients_.size() - 1;
      EXPECT_TRUE(same_floats(std::span(there).first(bytes), std::span(gradients_).first(bytes)));
    }

   private:
    static float* floats(void* bytes) { return static_cast<float*>(bytes); }
    static SlotRows rows_of(const SlotRoom& room) { return {room, room.index, room.gradients}; }

    SlotsOnDevice& test_;
    SlotShape shape_;
    std::vector<std::byte> index_;
    std::vector<std::byte> gradients_;
    Array index_there_;
    Array gradients_there_;
  };

  static SlotShape shape_of(int64_t rows, int64_t width) {
    return {.begin = 128, .rows = rows, .width = width, .bits = GetParam()};
  }

  // Packs one in so many rows of a slot, and compares it.
  Slot& packed(SlotShape shape, int64_t one_in) {
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < shape.rows; ++row) {
      if (uniform(random_, 1, one_in) == 1) rows.push_back(shape.begin + row);
    }
    shape.count = std::ssize(rows);
    const std::vector<float> gradients =
        numbers_of(random_, rows.size() * static_cast<size_t>(shape.width), Numbers::kSpecial);
    Array rows_there(*this, rows.data(), rows.size() * sizeof(int64_t));
    Array gradients_there(*this, gradients.data(), gradients.size() * sizeof(float));
    Slot& slot = slots_.emplace_back(*this, shape);
    const SlotPacking here{rows.data(), gradients.data(), slot.room_here()};
    const SlotPacking there{static_cast<const int64_t*>(rows_there.data()),
                            static_cast<const float*>(gradients_there.data()), slot.room_there()};
    cpu_->slots().pack_slots({&here, 1});
    slots().pack({&there, 1});
    slot.compare();
    return slot;
  }

  // Of all slots.
  std::vector<uint8_t> good_here() {
    std::vector<SlotRows> rows;
    for (Slot& slot : slots_) rows.push_back(slot.here());
    std::vector<uint8_t> good(rows.size(), 7);
    cpu_->slots().check_slots(rows, good);
    return good;
  }
  std::vector<uint8_t> good_there() {
    std::vector<SlotRows> rows;
    for (Slot& slot : slots_) rows.push_back(slot.there());
    std::vector<uint8_t> good(rows.size(), 7);
    slots().check(rows, good);
    return good;
  }

  compute::cuda::host::Slots& slots() {
    if (packer_ == nullptr) packer_ = std::make_unique<compute::cuda::host::Slots>(stream_);
    return *packer_;
  }

  Random random_{23};
  core::Threads threads_{1};
  std::unique_ptr<compute::Backend> cpu_ =
      compute::make_cpu_backend(compute::cpu_kernels(), threads_);
  std::unique_ptr<compute::cuda::host::Slots> packer_;
  std::deque<Slot> slots_;
};

TEST_P(SlotsOnDevice, AreThoseOfTheCpuAndGood) {
  for (const int64_t rows : {0, 1, 63, 64, 65, 3000}) {
    for (const int64_t one_in : {1, 2, 40, 100000}) packed(shape_of(rows, 3), one_in);
  }
  packed(shape_of(200000, 1), 30);
  EXPECT_EQ(good_there(), std::vector<uint8_t>(slots_.size(), 1));
  slots().pack({});
}

TEST_P(SlotsOnDevice, ThatAreNotWhatTheySayAreFoundAsOnTheCpu) {
  for (int repeat = 0; repeat < 300; ++repeat) {
    Slot& slot = packed(shape_of(uniform(random_, 1, 300), 1), 3);
    const size_t bytes = slot_index_bytes(slot.shape());
    if (bytes == 0) continue;
    const auto byte = static_cast<size_t>(uniform(random_, 0, static_cast<int64_t>(bytes) - 1));
    const std::byte bit{static_cast<uint8_t>(1U << uniform(random_, 0, 7))};
    slot.write_index(byte, slot.index(byte) ^ bit);
  }
  const std::vector<uint8_t> expected = good_here();
  EXPECT_EQ(good_there(), expected);
  EXPECT_NE(std::count(expected.begin(), expected.end(), 0), 0);
  EXPECT_EQ(std::count(expected.begin(), expected.end(), 7), 0);
}

TEST_P(SlotsOnDevice, WithARowBehindTheirLastOneAreFoundAsOnTheCpu) {
  constexpr int64_t kRows = 150;
  Slot& slot = packed(shape_of(kRows, 1), 1);
  if (GetParam()) {
    // As many bits as before: that of row 0 goes, that of row 150 comes.
    slot.write_index(0, slot.index(0) ^ std::byte{1});
    slot.write_index(kRows / 8, slot.index(kRows / 8) ^ std::byte{1U << kRows % 8});
  } else {
    slot.write_index((kRows - 1) * sizeof(uint32_t), std::byte{kRows});
  }
  EXPECT_EQ(good_here(), std::vector<uint8_t>{0});
  EXPECT_EQ(good_there(), std::vector<uint8_t>{0});
}

TEST_P(SlotsOnDevice, AreReadInTheOrderOfRows) {
  std::vector<SlotRows> here;
  std::vector<SlotRows> there;
  int64_t begin = 0;
  int64_t count = 0;
  for (const int64_t rows : {640, 64, 0, 5056, 17}) {
    SlotShape shape = shape_of(rows, 2);
    shape.begin = begin;
    begin += rows;
    Slot& slot = packed(shape, rows == 64 ? 100000 : 3);
    here.push_back(slot.here());
    there.push_back(slot.there());
    count += slot.shape().count;
  }
  // Two tables, the second one of the last two slots.
  const auto n = static_cast<size_t>(count);
  std::vector<int64_t> rows(2 * n);
  std::vector<const float*> gradients(2 * n);
  Array rows_array(*this, rows.data(), rows.size() * sizeof(int64_t));
  Array gradients_array(*this, gradients.data(), gradients.size() * sizeof(const float*));
  auto* const rows_there = static_cast<int64_t*>(rows_array.data());
  auto* const gradients_there = static_cast<const float**>(gradients_array.data());
  const SlotUnpacking tables_here[] = {
      {here, rows.data(), gradients.data()},
      {std::span(here).last(2), rows.data() + n, gradients.data() + n}};
  const SlotUnpacking tables_there[] = {
      {there, rows_there, gradients_there},
      {std::span(there).last(2), rows_there + n, gradients_there + n}};
  cpu_->slots().unpack_slots(tables_here);
  slots().unpack(tables_there);
  EXPECT_EQ(read(rows_there, 2 * n), rows);
  // The same floats of each slot.
  const std::vector<const float*> found = read(gradients_there, 2 * n);
  size_t at = 0;
  for (const size_t first : {size_t{0}, here.size() - 2}) {
    for (size_t s = first; s < here.size(); ++s) {
      for (int64_t i = 0; i < here[s].count; ++i, ++at) {
        ASSERT_EQ(found[at] - there[s].gradients, gradients[at] - here[s].gradients) << at;
      }
    }
    at = n;
  }
  slots().unpack({});
}

TEST_P(SlotsOnDevice, AreAddedUpOverTheRanksAsOnTheCpu) {
  compute::cuda::host::SlotSums adder(stream_);
  std::deque<std::vector<SlotRows>> addends;
  std::vector<SlotSum> here;
  std::vector<SlotSum> there;
  for (const int64_t ranks : {1, 2, 3, 5, 8, 15, 16, 33, 70}) {
    const int64_t rows = ranks == 8 ? 3000 : uniform(random_, 0, 300);
    const SlotShape shape = shape_of(rows, ranks == 3 ? 70 : uniform(random_, 1, 40));
    std::vector<SlotRows>& of_here = addends.emplace_back();
    std::vector<SlotRows>& of_there = addends.emplace_back();
    for (int64_t r = 0; r < ranks; ++r) {
      Slot& slot = packed(shape, r % 4 == 3 ? 100000 : 2 + r);
      of_here.push_back(slot.here());
      of_there.push_back(slot.there());
    }
    SlotSum sum{.addends = of_here, .to = {}};
    sum.to.width = shape.width;
    here.push_back(sum);
    sum.addends = of_there;
    there.push_back(sum);
  }
  std::vector<int64_t> expected(here.size(), -1);
  std::vector<int64_t> rows(here.size(), -2);
  cpu_->slots().count_slot_sums(here, expected);
  adder.count(there, rows);
  ASSERT_EQ(rows, expected);
  std::deque<Slot> sums;
  for (size_t s = 0; s < here.size(); ++s) {
    SlotShape shape = here[s].addends[0];
    shape.count = rows[s];
    Slot& slot = sums.emplace_back(*this, shape);
    here[s].to = slot.room_here();
    there[s].to = slot.room_there();
  }
  cpu_->slots().add_slots(here);
  adder.add(there);
  for (Slot& slot : sums) ASSERT_NO_FATAL_FAILURE(slot.compare());
  adder.add({});
  adder.count({}, {});
}

INSTANTIATE_TEST_SUITE_P(Forms, SlotsOnDevice, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "bits" : "list"; });

class RowTotalsOnDevice : public DeviceTest {};

TEST_F(RowTotalsOnDevice, AreThoseOfTheCpuForRowsThatSomeAddendsHave) {
  Random random(29);
  core::Threads threads(1);
  const auto cpu = compute::make_cpu_backend(compute::cpu_kernels(), threads);
  compute::cuda::host::RowSumTotals totals(stream_);
  std::deque<std::vector<float>> lists;
  std::deque<Array> arrays;
  std::deque<std::vector<RowAddend>> addends;
  std::vector<RowTotals> here;
  std::vector<RowTotals> there;
  for (const int64_t rows : {0, 1, 700, 5000}) {
    for (const int64_t values : {1, 2, 3}) {
      std::vector<RowAddend>& of_here = addends.emplace_back();
      std::vector<RowAddend>& of_there = addends.emplace_back();
      const int64_t count = uniform(random, 0, 5);
      for (int64_t a = 0; a < count; ++a) {
        const auto stride = static_cast<size_t>(values + uniform(random, 0, 1) * 2);
        const int64_t first = uniform(random, 0, rows);
        const int64_t last = uniform(random, first, rows);
        const auto& sums = lists.emplace_back(
            numbers_of(random, static_cast<size_t>(last - first) * stride, Numbers::kSpecial));
        of_here.push_back({sums.data(), stride, first, last});
        of_there.push_back(of_here.back());
        of_there.back().sums = static_cast<const float*>(
            arrays.emplace_back(*this, sums.data(), sums.size() * sizeof(float)).data());
      }
      auto& out = lists.emplace_back(static_cast<size_t>(rows * values), 99.0F);
      here.push_back({rows, values, of_here, out.data()});
      there.push_back(
          {rows, values, of_there,
           static_cast<float*>(
               arrays.emplace_back(*this, out.data(), out.size() * sizeof(float)).data())});
    }
  }
  cpu->slots().add_row_totals(here);
  totals.add(there);
  for (size_t t = 0; t < here.size(); ++t) {
    const auto count = static_cast<size_t>(here[t].rows * here[t].values);
    EXPECT_TRUE(compute::same_bits(read(there[t].out, count),
                                   std::vector<float>(here[t].out, here[t].out + count)))
        << "totals " << t;
  }
  totals.add({});
}

class SlotSumsOnDevice : public DeviceTest {};

TEST_F(SlotSumsOnDevice, OfMoreRanksThanATreeHasRoomForAreRefused) {
  compute::cuda::host::SlotSums adder(stream_);
  const std::vector<SlotRows> addends(SHARDREC_CUDA_SUM_RANKS + 1);
  int64_t rows = -1;
  SlotSum sum{.addends = std::span(addends).first(SHARDREC_CUDA_SUM_RANKS), .to = {}};
  adder.count({&sum, 1}, {&rows, 1});
  EXPECT_EQ(rows, 0);
  sum.addends = addends;
  try {
    adder.count({&sum, 1}, {&rows, 1});
    FAIL();
  } catch (const core::Error& error) {
    EXPECT_EQ(error.status(), SHARDREC_UNSUPPORTED);
  }
}

}  // namespace
}  // namespace shardrec::test
