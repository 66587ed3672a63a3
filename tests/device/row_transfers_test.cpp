// Rows between a device and the host: as the CPU's back end moves them inside the host's memory.
#include "compute/cuda/host/transfer/row_transfers.h"

#include <cstring>

#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/jobs.h"
#include "device/device_arrays.h"

namespace shardrec::test {
namespace {

using compute::Element;
using compute::element_bytes;
using compute::kElements;
using compute::Random;
using compute::RowTransfer;
using compute::uniform;

class RowTransfersOnDevice : public DeviceTest {
 protected:
  // Room for so many rows of at most 40 elements with a gap, any bits but those of NaNs.
  std::vector<std::byte> random_rows(Element element, int64_t most) {
    std::vector<std::byte> rows(static_cast<size_t>(most) * 48 * element_bytes(element));
    const size_t elements = rows.size() / element_bytes(element);
    const std::vector<float> numbers =
        compute::numbers_of(random_, elements, compute::Numbers::kOrdinary);
    cpu_->transfer().convert_on_host(
        {{RowTransfer{.from = {.data = numbers.data(), .stride = 1},
                      .to = {.data = rows.data(), .element = element, .stride = 1},
                      .rows = static_cast<int64_t>(elements),
                      .width = 1}}});
    return rows;
  }

  std::vector<int64_t> random_numbers(int64_t rows, int64_t most) {
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < rows; ++i) numbers.push_back(uniform(random_, 0, most - 1));
    return numbers;
  }

  void compare(bool to_host, Element on_device, Element on_host, int64_t width, bool from_numbers,
               bool to_numbers, bool spread, int64_t rows, int64_t most) {
    const size_t stride = static_cast<size_t>(width) + static_cast<size_t>(uniform(random_, 0, 5));
    const size_t shift = static_cast<size_t>(uniform(random_, 0, 2));  // elements
    const std::vector<int64_t> from_list = random_numbers(rows, most);
    const std::vector<int64_t> to_list = random_numbers(rows, most);
    const Element from_element = to_host ? on_device : on_host;
    const Element to_element = to_host ? on_host : on_device;
    std::vector<std::byte> from = random_rows(from_element, most);
    std::vector<std::byte> to = random_rows(to_element, most);
    Array from_there(*this, from.data(), from.size());
    Array to_there(*this, to.data(), to.size());
    const auto transfer = [&](const void* source, void* target) {
      return RowTransfer{
          .from = {.data =
                       static_cast<const std::byte*>(source) + shift * element_bytes(from_element),
                   .element = from_element,
                   .stride = stride,
                   .numbers = from_numbers ? from_list.data() : nullptr},
          .to = {.data = static_cast<std::byte*>(target) + shift * element_bytes(to_element),
                 .element = to_element,
                 .stride = stride,
                 .numbers = to_numbers ? to_list.data() : nullptr},
          .rows = rows,
          .width = width,
          .spread = spread};
    };
    std::vector<std::byte> expected = to;
    const RowTransfer here = transfer(from.data(), expected.data());
    cpu_->transfer().convert_on_host({&here, 1});
    if (to_host) {
      const RowTransfer there = transfer(from_there.data(), to.data());
      transfers_->to_host({&there, 1});
    } else {
      const RowTransfer there = transfer(from.data(), to_there.data());
      transfers_->from_host({&there, 1});
      to = to_there.bytes();
    }
    ASSERT_TRUE(to == expected) << (to_host ? "to the host" : "from the host") << ", "
                                << name_of(from_element) << " to " << name_of(to_element)
                                << ", width " << width << ", stride " << stride << ", shift "
                                << shift << (from_numbers ? ", from numbers" : "")
                                << (to_numbers ? ", to numbers" : "") << (spread ? ", spread" : "");
  }

  void SetUp() override {
    DeviceTest::SetUp();
    if (stream_ == nullptr) return;
    transfers_ = std::make_unique<compute::cuda::host::RowTransfers>(stream_, cpu_->transfer());
  }

  Random random_{9};
  core::Threads threads_{1};
  std::unique_ptr<compute::Backend> cpu_ =
      compute::make_cpu_backend(compute::cpu_kernels(), threads_);
  std::unique_ptr<compute::cuda::host::RowTransfers> transfers_;
};

TEST_F(RowTransfersOnDevice, AreThoseOfTheCpu) {
  for (const bool to_host : {true, false}) {
    for (const Element on_device : kElements) {
      for (const Element on_host : {on_device, Element::kFloat32}) {
        for (const int64_t width : {1, 3, 8, 40}) {
          for (int options = 0; options < 8; ++options) {
            ASSERT_NO_FATAL_FAILURE(compare(to_host, on_device, on_host, width, (options & 1) != 0,
                                            (options & 2) != 0, (options & 4) != 0,
                                            uniform(random_, 0, 40), 40));
          }
        }
      }
    }
  }
}

// While the host converts one piece the next one travels: neither is in the other's way.
TEST_F(RowTransfersOnDevice, TravelInPieces) {
  constexpr int64_t kRows = 30000;  // of 160 bytes, more than four pieces
  for (const bool to_host : {true, false}) {
    for (const Element on_device : {Element::kFloat32, Element::kFloat16}) {
      for (const int options : {0, 1, 2, 3}) {
        ASSERT_NO_FATAL_FAILURE(compare(to_host, on_device, Element::kFloat32, 40,
                                        (options & 1) != 0, (options & 2) != 0, false, kRows,
                                        kRows));
      }
    }
  }
}

// A row that is larger than a piece is one.
TEST_F(RowTransfersOnDevice, TakeRowsLargerThanPieces) {
  constexpr int64_t kWidth = 600'000;
  for (const bool to_host : {true, false}) {
    const std::vector<float> from =
        compute::numbers_of(random_, 3 * kWidth, compute::Numbers::kOrdinary);
    std::vector<float> to(from.size());
    Array from_there(*this, from.data(), from.size() * sizeof(float));
    Array to_there(*this, to.data(), to.size() * sizeof(float));
    const RowTransfer transfer{
        .from = {.data = to_host ? from_there.data() : from.data(), .stride = kWidth},
        .to = {.data = to_host ? static_cast<void*>(to.data()) : to_there.data(), .stride = kWidth},
        .rows = 3,
        .width = kWidth};
    if (to_host) {
      transfers_->to_host({&transfer, 1});
    } else {
      transfers_->from_host({&transfer, 1});
      std::memcpy(to.data(), to_there.bytes().data(), to.size() * sizeof(float));
    }
    EXPECT_TRUE(to == from) << (to_host ? "to the host" : "from the host");
  }
}

}  // namespace
}  // namespace shardrec::test
