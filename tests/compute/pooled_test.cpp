// Pooled lookup of every set of kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/jobs.h"
#include "compute/kernels.h"
#include "core/memory.h"

namespace shardrec::compute {
namespace {

constexpr double kUnit = 0x1p-24;  // of one rounding

PooledShape random_shape(Random& random, int64_t width, Numbers numbers) {
  return {.rows = uniform(random, 1, 60),
          .width = width,
          .bags = uniform(random, 1, 12),
          .longest = uniform(random, 0, 9),
          .padding = static_cast<size_t>(uniform(random, 0, 5)),
          .is_64 = uniform(random, 0, 1) == 1,
          .weighted = uniform(random, 0, 1) == 1,
          .element = kElements[uniform(random, 0, 2)],
          .numbers = numbers};
}

std::vector<int64_t> widths() {
  std::vector<int64_t> all;
  for (int64_t width = 1; width <= 130; ++width) all.push_back(width);
  for (const int64_t width : {192, 255, 256, 257, 1000}) all.push_back(width);
  return all;
}

TEST(PooledLookup, IsTheWeightedSumWithinTheRoundingOfItsTerms) {
  Random random(1);
  for (const int64_t width : widths()) {
    const PooledShape shape = random_shape(random, width, Numbers::kOrdinary);
    const PooledJob job(random, shape);
    for (int set = 0; set < cpu_kernel_count(); ++set) {
      std::vector<float> out;
      const PooledLookup view = job.view(out);
      cpu_kernels_at(set).pooled_lookup(view, 0, shape.bags);
      for (int64_t b = 0; b < shape.bags; ++b) {
        for (int64_t c = 0; c < width; ++c) {
          double sum = 0;
          double terms = 0;
          for (int64_t i = view.offsets[b]; i < view.offsets[b + 1]; ++i) {
            const auto row = static_cast<size_t>(job.ids()[static_cast<size_t>(i)]);
            const double term =
                (shape.weighted ? view.weights[i] : 1.0) *
                static_cast<double>(job.at(row * view.stride + static_cast<size_t>(c)));
            sum += term;
            terms += std::fabs(term);
          }
          const auto count = static_cast<double>(view.offsets[b + 1] - view.offsets[b]);
          ASSERT_LE(
              std::fabs(
                  static_cast<double>(
                      out[static_cast<size_t>(b) * view.out_stride + static_cast<size_t>(c)]) -
                  sum),
              1.01 * kUnit * count * terms)
              << cpu_kernels_at(set).name << " width " << width << " bag " << b << " column " << c;
        }
        for (size_t c = static_cast<size_t>(width); c < view.out_stride; ++c) {
          ASSERT_EQ(out[static_cast<size_t>(b) * view.out_stride + c], PooledJob::kUntouched);
        }
      }
    }
  }
}

TEST(PooledLookup, EverySetGivesTheBitsOfTheScalarOne) {
  Random random(2);
  for (const int64_t width : widths()) {
    for (const Numbers numbers : {Numbers::kOrdinary, Numbers::kSpecial}) {
      for (int repeat = 0; repeat < 3; ++repeat) {
        const PooledShape shape = random_shape(random, width, numbers);
        const PooledJob job(random, shape);
        std::vector<float> expected;
        scalar().pooled_lookup(job.view(expected), 0, shape.bags);
        for (int set = 1; set < cpu_kernel_count(); ++set) {
          std::vector<float> out;
          cpu_kernels_at(set).pooled_lookup(job.view(out), 0, shape.bags);
          ASSERT_TRUE(same_bits(out, expected)) << cpu_kernels_at(set).name << " width " << width;
        }
      }
    }
  }
}

TEST(PooledLookup, CutAnywhereAndPrefetchedAnyWayGivesTheSameBits) {
  Random random(3);
  for (int repeat = 0; repeat < 60; ++repeat) {
    PooledShape shape = random_shape(random, uniform(random, 1, 150), Numbers::kOrdinary);
    shape.bags = 40;
    const PooledJob job(random, shape);
    for (int set = 0; set < cpu_kernel_count(); ++set) {
      std::vector<float> whole;
      std::vector<float> pieces;
      cpu_kernels_at(set).pooled_lookup(job.view(whole), 0, shape.bags);
      PooledLookup view = job.view(pieces);
      for (int64_t bag = 0; bag < shape.bags;) {
        const Prefetch way = random_prefetch(random);
        view.prefetch = &way;
        const int64_t end = std::min(shape.bags, bag + uniform(random, 0, 9));
        cpu_kernels_at(set).pooled_lookup(view, bag, end);
        bag = end;
      }
      ASSERT_TRUE(same_bits(pieces, whole)) << cpu_kernels_at(set).name;
    }
  }
}

TEST(PooledLookup, MeansAreDividedAndOutputsRoundedAsTheOtherKernelsDo) {
  Random random(4);
  for (const int64_t width : widths()) {
    for (const Element element : kElements) {
      for (const bool mean : {false, true}) {
        const PooledShape shape = random_shape(random, width, Numbers::kSpecial);
        const PooledJob job(random, shape);
        std::vector<float> sums;
        const PooledLookup plain = job.view(sums);
        scalar().pooled_lookup(plain, 0, shape.bags);
        const size_t bytes = sums.size() * element_bytes(element);
        std::vector<std::byte> expected(bytes, std::byte{0x5A});
        const auto row_of = [&](std::vector<std::byte>& out, int64_t b) {
          return out.data() + static_cast<size_t>(b) * plain.out_stride * element_bytes(element);
        };
        for (int64_t b = 0; b < shape.bags; ++b) {
          float* row = sums.data() + static_cast<size_t>(b) * plain.out_stride;
          const int64_t ids = plain.offsets[b + 1] - plain.offsets[b];
          if (mean && ids != 0) scalar().divide(row, static_cast<float>(ids), width);
          scalar().narrow(row, element, row_of(expected, b), width);
        }
        for (int set = 0; set < cpu_kernel_count(); ++set) {
          std::vector<std::byte> out(bytes, std::byte{0x5A});
          PooledLookup view = plain;
          view.out = out.data();
          view.out_element = element;
          view.mean = mean;
          cpu_kernels_at(set).pooled_lookup(view, 0, shape.bags);
          for (int64_t b = 0; b < shape.bags; ++b) {
            std::vector<float> got(static_cast<size_t>(width));
            std::vector<float> wanted(static_cast<size_t>(width));
            scalar().widen(row_of(out, b), element, got.data(), width);
            scalar().widen(row_of(expected, b), element, wanted.data(), width);
            ASSERT_TRUE(same_bits(got, wanted)) << cpu_kernels_at(set).name << " width " << width
                                                << " " << name_of(element) << " bag " << b;
          }
        }
      }
    }
  }
}

TEST(PooledLookup, StreamedOutputsHaveTheBitsOfOthers) {
  Random random(5);
  for (const Element element : kElements) {
    for (const int64_t width : {16, 32, 48, 64, 128, 144, 256, 1008}) {
      if (static_cast<size_t>(width) * element_bytes(element) % 64 != 0) continue;
      for (const bool mean : {false, true}) {
        PooledShape shape = random_shape(random, width, Numbers::kSpecial);
        shape.padding = static_cast<size_t>(32 * uniform(random, 0, 2));
        const PooledJob job(random, shape);
        std::vector<float> floats;
        PooledLookup view = job.view(floats);
        const size_t bytes = floats.size() * element_bytes(element);
        std::vector<std::byte> expected(bytes, std::byte{0x5A});
        view.mean = mean;
        view.out_element = element;
        view.out = expected.data();
        scalar().pooled_lookup(view, 0, shape.bags);
        core::Scratch lines;  // begins a cache line
        for (int set = 0; set < cpu_kernel_count(); ++set) {
          const std::span<std::byte> out = lines.resize_as<std::byte>(bytes);
          std::fill(out.begin(), out.end(), std::byte{0x5A});
          view.out = out.data();
          view.streaming = true;
          cpu_kernels_at(set).pooled_lookup(view, 0, shape.bags);
          std::vector<float> wanted(floats.size());
          std::vector<float> got(floats.size());
          const auto count = static_cast<int64_t>(floats.size());
          scalar().widen(expected.data(), element, wanted.data(), count);
          scalar().widen(out.data(), element, got.data(), count);
          ASSERT_TRUE(same_bits(got, wanted))
              << cpu_kernels_at(set).name << " " << name_of(element) << " width " << width;
        }
      }
    }
  }
}

TEST(PooledLookup, TermsAreAddedInTheOrderOfTheIdsFusedAndFromZero) {
  // 1e8 + 1 is 1e8 in fp32, so the order shows; (1 + 2^-12)^2 - 1 shows the fused product.
  const std::vector<float> table = {1e8F, 1.0F, -1e8F, 1.0F + 0x1p-12F, -1.0F, -0.0F};
  const std::vector<int32_t> ids = {0, 1, 2, 0, 2, 1, 4, 3, 5};
  const std::vector<float> weights = {1, 1, 1, 1, 1, 1, 1, 1.0F + 0x1p-12F, 1};
  const std::vector<int64_t> offsets = {0, 3, 6, 8, 9, 9};
  for (int set = 0; set < cpu_kernel_count(); ++set) {
    std::vector<float> out(5, 7.0F);
    cpu_kernels_at(set).pooled_lookup({.table = table.data(),
                                       .stride = 1,
                                       .width = 1,
                                       .ids = {.data = ids.data(), .is_64 = false},
                                       .weights = weights.data(),
                                       .offsets = offsets.data(),
                                       .out = out.data(),
                                       .out_stride = 1},
                                      0, 5);
    EXPECT_EQ(out[0], 0.0F);
    EXPECT_EQ(out[1], 1.0F);
    EXPECT_EQ(out[2], 0x1p-11F + 0x1p-24F);
    EXPECT_TRUE(same_bits(out[3], 0.0F)) << "0 + -0 is 0";
    EXPECT_TRUE(same_bits(out[4], 0.0F)) << "an empty bag is 0";
  }
}

TEST(PooledLookup, RowsOf8BitsAreSummedAsTheirNumbersWithinTheRoundingOfTerms) {
  Random random(6);
  for (const int64_t width : widths()) {
    const PooledShape shape = random_shape(random, width, Numbers::kOrdinary);
    const CodedJob job(random, shape);
    for (int set = 0; set < cpu_kernel_count(); ++set) {
      std::vector<float> out;
      const PooledLookup view = job.view(out);
      cpu_kernels_at(set).pooled_lookup(view, 0, shape.bags);
      for (int64_t b = 0; b < shape.bags; ++b) {
        for (int64_t c = 0; c < width; ++c) {
          double sum = 0;
          double terms = 0;
          for (int64_t i = view.offsets[b]; i < view.offsets[b + 1]; ++i) {
            const double weight = shape.weighted ? view.weights[i] : 1.0;
            const double x = job.at(job.ids()[static_cast<size_t>(i)], c);
            sum += weight * x;
            // Codes and offsets are summed on their own: up to the range of a row more than x.
            terms += std::fabs(weight) * (std::fabs(x) + 2 * std::fabs(x) + 4 * 255);
          }
          const auto count = static_cast<double>(view.offsets[b + 1] - view.offsets[b]) + 2;
          ASSERT_LE(
              std::fabs(
                  double{out[static_cast<size_t>(b) * view.out_stride + static_cast<size_t>(c)]} -
                  sum),
              2 * kUnit * count * terms)
              << cpu_kernels_at(set).name << " width " << width << " bag " << b << " column " << c;
        }
        for (size_t c = static_cast<size_t>(width); c < view.out_stride; ++c) {
          ASSERT_EQ(out[static_cast<size_t>(b) * view.out_stride + c], PooledJob::kUntouched);
        }
      }
    }
  }
}

TEST(PooledLookup, EverySetGivesTheBitsOfTheScalarOneForRowsOf8Bits) {
  Random random(7);
  for (const int64_t width : widths()) {
    for (const Numbers numbers : {Numbers::kOrdinary, Numbers::kSpecial}) {
      for (const bool mean : {false, true}) {
        const PooledShape shape = random_shape(random, width, numbers);
        const CodedJob job(random, shape);
        std::vector<float> expected;
        PooledLookup view = job.view(expected);
        view.mean = mean;
        scalar().pooled_lookup(view, 0, shape.bags);
        for (int set = 1; set < cpu_kernel_count(); ++set) {
          std::vector<float> out;
          PooledLookup other = job.view(out);
          other.mean = mean;
          cpu_kernels_at(set).pooled_lookup(other, 0, shape.bags);
          ASSERT_TRUE(same_bits(out, expected)) << cpu_kernels_at(set).name << " width " << width;
        }
      }
    }
  }
}

TEST(PooledLookup, RowsBeyondFourGiBAreFound) {
  // The address of a row needs 64 bits. Only the first and the last page of the table exist.
  constexpr int64_t kRows = (int64_t{1} << 32) / 64 + 100;
  constexpr size_t kStride = 64;
  const core::Pages pages(static_cast<size_t>(kRows) * kStride * sizeof(float));
  auto* table = static_cast<float*>(const_cast<void*>(static_cast<const void*>(pages.data())));
  table[static_cast<size_t>(kRows - 1) * kStride + 63] = 3.5F;
  const auto last = static_cast<int32_t>(kRows - 1);
  const std::vector<int64_t> offsets = {0, 1};
  for (int set = 0; set < cpu_kernel_count(); ++set) {
    std::vector<float> out(64);
    cpu_kernels_at(set).pooled_lookup({.table = table,
                                       .stride = kStride,
                                       .width = 64,
                                       .ids = {.data = &last, .is_64 = false},
                                       .offsets = offsets.data(),
                                       .out = out.data(),
                                       .out_stride = 64},
                                      0, 1);
    EXPECT_EQ(out[63], 3.5F);
  }
}

}  // namespace
}  // namespace shardrec::compute
