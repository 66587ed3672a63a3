// Initial values made on a device are those of the CPU.
#include "compute/cuda/host/transfer/initial_rows.h"

#include "compute/backend.h"
#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/jobs.h"
#include "device/device_arrays.h"

namespace shardrec::test {
namespace {

using compute::ColumnMap;
using compute::Element;
using compute::InitialRows;

class InitialRowsOnDevice : public DeviceTest {
 protected:
  void compare(InitialRows rows) {
    const size_t bytes =
        static_cast<size_t>(rows.rows * rows.width) * compute::element_bytes(rows.element);
    std::vector<std::byte> expected(bytes, std::byte{0x5A});
    Array array(*this, expected.data(), bytes);
    rows.data = expected.data();
    cpu_->transfer().fill(rows);
    rows.data = array.data();
    compute::cuda::host::fill(rows, *stream_);
    EXPECT_TRUE(array.bytes() == expected)
        << rows.rows << " rows of " << rows.width << " " << name_of(rows.element);
  }

  core::Threads threads_{1};
  std::unique_ptr<compute::Backend> cpu_ =
      compute::make_cpu_backend(compute::cpu_kernels(), threads_);
};

TEST_F(InitialRowsOnDevice, AreThoseOfTheCpuForEveryCutOfATable) {
  for (const Element element : compute::kElements) {
    for (const std::vector<ColumnMap>& columns :
         {std::vector<ColumnMap>{{0, 0, 1}}, std::vector<ColumnMap>{{0, 3, 2}},
          std::vector<ColumnMap>{{0, 1, 16}},
          std::vector<ColumnMap>{{0, 8, 5}, {5, 2, 4}, {9, 40, 7}},
          std::vector<ColumnMap>{{0, 0, 128}}}) {
      int64_t width = 0;
      for (const ColumnMap& map : columns) width += map.count;
      for (const int64_t first_row : {int64_t{0}, int64_t{5} << 32}) {
        compare({.element = element,
                 .rows = 37,
                 .width = width,
                 .first_row = first_row,
                 .columns = columns,
                 .seed = 11,
                 .table = "user",
                 .low = -0.25F,
                 .high = 0.5F});
      }
    }
  }
}

TEST_F(InitialRowsOnDevice, HoldForRangesOfOneValueAndForNoRows) {
  const ColumnMap map{0, 0, 6};
  compare({.rows = 3, .width = 6, .columns = {&map, 1}, .table = "t", .low = 2, .high = 2});
  compare({.rows = 0, .width = 6, .columns = {&map, 1}, .table = "t", .low = 0, .high = 1});
  compare({.rows = 5,
           .width = 6,
           .columns = {&map, 1},
           .table = "t",
           .low = 1,
           .high = std::nextafter(1.0F, 2.0F)});
}

}  // namespace
}  // namespace shardrec::test
