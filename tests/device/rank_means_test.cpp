// Means over ranks on a device, rows moved inside its memory, and what copies of rows have gained, have the CPU's bits.
#include "compute/cuda/host/transfer/rank_means.h"

#include "compute/cuda/host/transfer/row_gains.h"
#include "compute/cuda/host/transfer/row_transfers.h"
#include "device/mirrored.h"

namespace shardrec::test {
namespace {

using compute::Element;
using compute::element_bytes;
using compute::kElements;
using compute::Numbers;
using compute::uniform;

class RankMeansOnDevice : public MirroredTest {
 protected:
  void compare(Element element, size_t ranks, int64_t count) {
    const size_t bytes = static_cast<size_t>(count) * element_bytes(element);
    std::vector<const std::byte*> here, there_too;
    std::deque<std::vector<std::byte>> lists;
    for (size_t rank = 0; rank < ranks; ++rank) {
      const auto floats = numbers_of(random_, static_cast<size_t>(count),
                                     rank % 3 == 2 ? Numbers::kSpecial : Numbers::kOrdinary);
      std::vector<std::byte>& list = lists.emplace_back(bytes);
      if (element == Element::kFloat32) {
        std::ranges::copy(std::as_bytes(std::span(floats)), list.begin());
      } else {
        compute::cpu_kernels().narrow(floats.data(), element, list.data(), count);
      }
      here.push_back(list.data());
      there_too.push_back(static_cast<const std::byte*>(there(list.data(), bytes)));
    }
    Written& means = written(bytes);
    cpu_->transfer().average(
        {.ranks = here, .means = means.on_host<std::byte>(), .element = element, .count = count});
    compute::cuda::host::RankAverages averages(stream_);
    averages.run({.ranks = there_too,
                  .means = means.on_device<std::byte>(),
                  .element = element,
                  .count = count});
    EXPECT_TRUE(same_numbers(element, means.there->bytes(), means.here))
        << ranks << " ranks, " << count << " elements";
    clear();
  }
};

TEST_F(RankMeansOnDevice, AreThoseOfTheCpuForEveryNumberOfRanks) {
  for (const Element element : kElements) {
    for (size_t ranks = 1; ranks <= 19; ++ranks) compare(element, ranks, 333);
    compare(element, 2, 0);
    compare(element, 3, 1);
    compare(element, 67, 40);
  }
}

TEST_F(RankMeansOnDevice, RowsMoveBetweenStridesAndNothingBesideThem) {
  for (const Element element : kElements) {
    for (const int64_t width : {1, 5, 8}) {
      const int64_t rows = 37;
      const size_t stride = static_cast<size_t>(width) + 3;
      const size_t size = element_bytes(element);
      std::vector<std::byte> from(static_cast<size_t>(rows) * stride * size);
      for (std::byte& byte : from) byte = static_cast<std::byte>(uniform(random_, 0, 255));
      Written& to = written(static_cast<size_t>(rows * width) * size + 64);
      Written& back = written(from.size());
      const auto* const there_too = static_cast<const std::byte*>(there(from.data(), from.size()));
      const auto move = [&](compute::TransferOperations* cpu, const std::byte* source,
                            std::byte* middle, std::byte* target) {
        const auto columns = static_cast<size_t>(width);
        const compute::RowTransfer transfers[] = {{.from = {source, element, stride},
                                                   .to = {middle + 32, element, columns},
                                                   .rows = rows,
                                                   .width = width},
                                                  {.from = {middle + 32, element, columns},
                                                   .to = {target + size, element, stride},
                                                   .rows = rows,
                                                   .width = width}};
        if (cpu != nullptr) return cpu->move_rows(transfers);
        compute::cuda::host::RowTransfers(stream_, cpu_->transfer()).move(transfers);
      };
      move(&cpu_->transfer(), from.data(), to.on_host<std::byte>(), back.on_host<std::byte>());
      move(nullptr, there_too, to.on_device<std::byte>(), back.on_device<std::byte>());
      EXPECT_TRUE(same_bytes()) << "width " << width;
      clear();
    }
  }
}

// Some rows of a matrix side by side, and back to some of another one.
TEST_F(RankMeansOnDevice, RowsMoveByTheirNumbersAndNothingBesideThem) {
  const std::vector<int64_t> numbers = {0, 3, 4, 17, 31, 36};
  const auto count = std::ssize(numbers);
  for (const Element element : kElements) {
    for (const int64_t width : {1, 5, 8}) {
      const size_t stride = static_cast<size_t>(width) + 3;
      const size_t size = element_bytes(element);
      std::vector<std::byte> from(37 * stride * size);
      for (std::byte& byte : from) byte = static_cast<std::byte>(uniform(random_, 0, 255));
      Written& to = written(static_cast<size_t>(count * width) * size + 64);
      Written& back = written(from.size());
      const auto* const there_too = static_cast<const std::byte*>(there(from.data(), from.size()));
      const auto move = [&](compute::TransferOperations* cpu, const std::byte* source,
                            std::byte* middle, std::byte* target) {
        const auto columns = static_cast<size_t>(width);
        const compute::RowTransfer transfers[] = {
            {.from = {source, element, stride, numbers.data()},
             .to = {middle + 32, element, columns},
             .rows = count,
             .width = width},
            {.from = {middle + 32, element, columns},
             .to = {target + size, element, stride, numbers.data()},
             .rows = count,
             .width = width}};
        if (cpu != nullptr) return cpu->move_rows(transfers);
        compute::cuda::host::RowTransfers(stream_, cpu_->transfer()).move(transfers);
      };
      move(&cpu_->transfer(), from.data(), to.on_host<std::byte>(), back.on_host<std::byte>());
      for (size_t i = 0; i < numbers.size(); ++i) {
        const size_t row = static_cast<size_t>(numbers[i]) * stride * size;
        EXPECT_TRUE(std::equal(
            from.begin() + static_cast<std::ptrdiff_t>(row),
            from.begin() + static_cast<std::ptrdiff_t>(row + static_cast<size_t>(width) * size),
            back.on_host<std::byte>() + size + row));
      }
      move(nullptr, there_too, to.on_device<std::byte>(), back.on_device<std::byte>());
      EXPECT_TRUE(same_bytes()) << "width " << width;
      clear();
    }
  }
}

// Every third number is as it was when it was copied.
TEST_F(RankMeansOnDevice, GainsAreAddedToRowsAndNothingBesideThem) {
  const std::vector<int64_t> numbers = {0, 3, 4, 17, 31, 36};
  for (const Element element : kElements) {
    for (const int64_t width : {1, 5, 8}) {
      for (const bool listed : {false, true}) {
        const int64_t count = listed ? std::ssize(numbers) : 37;
        const size_t stride = static_cast<size_t>(width) + 3;
        const size_t size = element_bytes(element);
        const auto list = [&](size_t length) {
          const auto floats = numbers_of(random_, length, Numbers::kSpecial);
          std::vector<std::byte> out(length * size);
          if (element == Element::kFloat32) {
            std::ranges::copy(std::as_bytes(std::span(floats)), out.begin());
          } else {
            compute::cpu_kernels().narrow(floats.data(), element, out.data(), std::ssize(floats));
          }
          return out;
        };
        const auto rows = list(37 * stride);
        auto before = list(static_cast<size_t>(count * width));
        const auto after = list(static_cast<size_t>(count * width));
        for (int64_t i = 0; i < count * width; i += 3) {
          const int64_t row = listed ? numbers[static_cast<size_t>(i / width)] : i / width;
          const size_t from = (static_cast<size_t>(row) * stride + static_cast<size_t>(i % width));
          std::memcpy(before.data() + static_cast<size_t>(i) * size, rows.data() + from * size,
                      size);
        }
        const auto* const rows_there =
            static_cast<const std::byte*>(there(rows.data(), rows.size()));
        const auto* const before_there =
            static_cast<const std::byte*>(there(before.data(), before.size()));
        const auto* const after_there =
            static_cast<const std::byte*>(there(after.data(), after.size()));
        Written& table = written(rows.size());
        for (const bool at_least_zero : {false, true}) {
          const auto gains = [&](std::byte* to, const std::byte* was, const std::byte* is) {
            return compute::RowGains{
                .rows = {to, element, stride, listed ? numbers.data() : nullptr},
                .before = was,
                .after = is,
                .count = count,
                .width = width,
                .at_least_zero = at_least_zero};
          };
          cpu_->transfer().copy(table.on_host<std::byte>(), rows.data(), rows.size());
          const auto here = gains(table.on_host<std::byte>(), before.data(), after.data());
          cpu_->transfer().add_gains({&here, 1});
          stream_->copy(table.on_device<std::byte>(), rows_there, rows.size());
          const auto there_too = gains(table.on_device<std::byte>(), before_there, after_there);
          compute::cuda::host::RowGainSums(stream_).run({&there_too, 1});
          EXPECT_TRUE(same_numbers(element, table.there->bytes(), table.here))
              << "width " << width << (listed ? ", listed" : "");
        }
        clear();
      }
    }
  }
}

}  // namespace
}  // namespace shardrec::test
