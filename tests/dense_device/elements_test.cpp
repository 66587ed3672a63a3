// What layers do to each element, on a device, is what the CPU does.
#include <algorithm>

#include "compute/math/scalar.h"
#include "dense_device/both_places.h"

namespace shardrec::dense::device::test {
namespace {

class ElementsOnDevice : public OnDevice {};

TEST_F(ElementsOnDevice, AddBiasesAndActivate) {
  for_each_shape([&](const Shape& shape) {
    for (const bool relu : {false, true}) {
      Both y = both(shape, 1), bias = vector(shape, 2);
      const core::Matrix host = y.host();
      kernels().bias_activation(host.data, host.stride, host.rows, host.cols, bias.host().data,
                                relu);
      bias_activation(*stream_, y.there(), bias.there().data, relu);
      y.expect_same("y");
    }
  });
}

TEST_F(ElementsOnDevice, MaskGradientsOfRelu) {
  for_each_shape([&](const Shape& shape) {
    for (const bool in_place : {false, true}) {
      Both y = both(shape, 1), dy = both(shape, 2), other = both(shape, 3);
      Both& dz = in_place ? dy : other;
      const core::Matrix a = y.host(), b = dy.host(), c = dz.host();
      kernels().relu_backward(a.data, a.stride, b.data, b.stride, c.data, c.stride, a.rows, a.cols);
      relu_backward(*stream_, y.there(), dy.there(), dz.there());
      dz.expect_same("dz");
      dy.expect_same("dy");
    }
  });
}

TEST_F(ElementsOnDevice, AddAndCopyRows) {
  for_each_shape([&](const Shape& shape) {
    Both x = both(shape, 1), sum = both(shape, 2), copy = both(shape, 3);
    for (int64_t r = 0; r < shape.rows; ++r) {
      kernels().add(x.host().row(r), sum.host().row(r), shape.cols);
      std::copy_n(sum.host().row(r), shape.cols, copy.host().row(r));
    }
    add_rows(*stream_, x.there(), sum.there());
    copy_rows(*stream_, sum.there(), copy.there());
    sum.expect_same("sum");
    copy.expect_same("copy");
  });
}

TEST_F(ElementsOnDevice, FillAndScaleNumbers) {
  for (const int64_t count : {0, 1, 3, 16, 255, 256, 1024, 5003}) {
    for (const int64_t offset : {0, 1}) {
      const Shape shape{.rows = 1, .cols = count, .layout = {.offset = offset}, .special = true};
      Both scaled = both(shape, 1), filled = both(shape, 2);
      kernels().scale(scaled.host().data, -0.3F, count);
      scale(*stream_, scaled.there().data, -0.3F, count);
      scaled.expect_same("scaled");
      std::fill_n(filled.host().data, count, -0.0F);
      fill(*stream_, filled.there().data, -0.0F, count);
      filled.expect_same("filled");
    }
  }
}

TEST_F(ElementsOnDevice, CrossForward) {
  for_each_shape([&](const Shape& shape) {
    for (const bool in_place : {false, true}) {
      Both bias = vector(shape, 1), origin = both(shape, 2), x = both(shape, 3);
      Both product = both(shape, 4), other = both(shape, 5);
      Both& y = in_place ? product : other;
      kernels().cross_forward(bias.host().data, origin.host(), x.host(), product.host(), y.host());
      cross_forward(*stream_, bias.there().data, origin.there(), x.there(), product.there(),
                    y.there());
      product.expect_same("product");
      y.expect_same("y");
    }
  });
}

TEST_F(ElementsOnDevice, CrossBackward) {
  enum class Sum { kNone, kStarts, kGoesOn };
  for_each_shape([&](const Shape& shape) {
    for (const Sum kind : {Sum::kNone, Sum::kStarts, Sum::kGoesOn}) {
      Both origin = both(shape, 1), product = both(shape, 2), dy = both(shape, 3);
      Both dz = both(shape, 4), sum = both(shape, 5);
      const bool wanted = kind != Sum::kNone, starts = kind == Sum::kStarts;
      kernels().cross_backward(
          {.origin = origin.host(), .product = product.host(), .dy = dy.host(), .dz = dz.host()},
          wanted ? sum.host() : core::Matrix{}, starts);
      cross_backward(*stream_,
                     {.origin = origin.there(),
                      .product = product.there(),
                      .dy = dy.there(),
                      .dz = dz.there()},
                     wanted ? sum.there() : core::Matrix{}, starts);
      dz.expect_same("dz");
      sum.expect_same("sum");
    }
  });
}

// Whatever number its bits are.
TEST_F(ElementsOnDevice, StoreAWord) {
  for (const uint32_t word : {0U, 1U, 17U, 0x80000000U, 0x7F800001U, 0xFFC12345U, 0xFFFFFFFFU}) {
    EXPECT_EQ(read(Word(*this, word).get(), 1), std::vector<uint32_t>{word});
  }
}

// None, some and all elements are dropped; the word of the first one is a threshold too.
TEST_F(ElementsOnDevice, DropOut) {
  constexpr uint64_t kSeed = 0x123456789ABCDEF;
  const uint32_t first_word =
      compute::math::philox({0, 0, 3, 17}, compute::math::philox_key(kSeed))[0];
  Word forward(*this, 17);
  for_each_shape([&](const Shape& shape) {
    for (const uint32_t threshold : {0U, first_word, 0xFFFFFFFFU}) {
      Both x = both(shape, 1), y = both(shape, 2);
      const DropoutMask mask{
          .seed = kSeed, .layer = 3, .forward = 17, .threshold = threshold, .factor = 1.25F};
      kernels().dropout(mask, 0, x.host(), y.host());
      dropout(*stream_, mask, forward.get(), x.there(), y.there());
      y.expect_same("y");
      kernels().dropout(mask, 0, x.host(), x.host());
      dropout(*stream_, mask, forward.get(), x.there(), x.there());
      x.expect_same("x in place");
    }
  });
}

}  // namespace
}  // namespace shardrec::dense::device::test
