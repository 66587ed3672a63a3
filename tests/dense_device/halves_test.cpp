// What kernels of layers do on a device with numbers of 16 bits is what the CPU does with the same numbers as floats,
// rounded where it is written.
#include <algorithm>

#include "compute/math/scalar.h"
#include "dense/layers/forward.h"
#include "dense/layers/weight_gradients.h"
#include "dense_device/both_places.h"

namespace shardrec::dense::device::test {
namespace {

using compute::Element;

class HalvesOnDevice : public OnDevice, public testing::WithParamInterface<Element> {
 protected:
  // Numbers of the type: floats on the host, 16 bits each on the device.
  class Halves {
   public:
    Halves(HalvesOnDevice& test, const Shape& shape, uint32_t seed)
        : test_(&test), shape_(shape), floats_(test.both(shape, seed)) {
      const core::Matrix all = whole();
      round(all.data, all.data, all.cols);
      std::vector<uint16_t> halves;
      for (int64_t i = 0; i < all.cols; ++i) halves.push_back(half_of(all.data[i]));
      array_ = std::make_unique<Array>(test, halves.data(), halves.size() * sizeof(uint16_t));
    }

    core::Matrix host() { return floats_.host(); }
    // What the CPU has written is rounded.
    void round_host() { round_rows(host(), GetParam()); }
    Matrix there() {
      Matrix matrix(host());
      matrix.data = static_cast<uint16_t*>(array_->data()) + shape_.layout.offset;
      matrix.element = GetParam();
      return matrix;
    }
    void expect_same(const std::string& where) {
      const core::Matrix all = whole();
      const std::vector<uint16_t> found =
          test_->read(static_cast<const uint16_t*>(array_->data()), static_cast<size_t>(all.cols));
      for (int64_t i = 0; i < all.cols; ++i) {
        const float there = number_of(found[static_cast<size_t>(i)]);
        if (shardrec::test::same_number(there, all.data[i])) continue;
        ADD_FAILURE() << where << ", " << shape_.text() << ": number " << i << " is " << there
                      << " on the device, " << all.data[i] << " on the CPU";
        return;
      }
    }

   private:
    static uint16_t half_of(float number) {
      using namespace compute::math;
      return static_cast<uint16_t>(GetParam() == Element::kFloat16
                                       ? nearest_half<Float16>(number)
                                       : nearest_half<Bfloat16>(number));
    }
    static float number_of(uint16_t half) {
      using namespace compute::math;
      return GetParam() == Element::kFloat16 ? widened<Float16>(half) : widened<Bfloat16>(half);
    }
    // The numbers with their gaps.
    core::Matrix whole() {
      const core::Matrix rows = floats_.host();
      const int64_t count = shape_.rows * rows.stride + shape_.layout.offset;
      return {rows.data - shape_.layout.offset, 1, count, count};
    }

    HalvesOnDevice* test_;
    Shape shape_;
    Both floats_;
    std::unique_ptr<Array> array_;
  };

  Halves halves(const Shape& shape, uint32_t seed) { return {*this, shape, seed}; }
  static void round(const float* x, float* y, int64_t count) {
    rounding_to(GetParam(), kernels())(x, y, count);
  }
};

INSTANTIATE_TEST_SUITE_P(Types, HalvesOnDevice,
                         testing::Values(Element::kFloat16, Element::kBfloat16),
                         [](const auto& type) {
                           return type.param == Element::kFloat16 ? "Float16" : "Bfloat16";
                         });

TEST_P(HalvesOnDevice, CopiesRoundToNearestAndBack) {
  for_each_shape([&](const Shape& shape) {
    Both floats = both(shape, 1), back = both(shape, 2);
    Halves rounded = halves(shape, 3), copied = halves(shape, 4);
    copy_rows(*stream_, floats.there(), rounded.there());
    copy_rows(*stream_, rounded.there(), back.there());
    copy_rows(*stream_, rounded.there(), copied.there());
    for (int64_t r = 0; r < shape.rows; ++r) {
      round(floats.host().row(r), rounded.host().row(r), shape.cols);
      std::copy_n(rounded.host().row(r), shape.cols, back.host().row(r));
      std::copy_n(rounded.host().row(r), shape.cols, copied.host().row(r));
    }
    rounded.expect_same("rounded");
    back.expect_same("widened");
    copied.expect_same("copied");
  });
}

TEST_P(HalvesOnDevice, BiasesAndMasks) {
  for_each_shape([&](const Shape& shape) {
    for (const bool relu : {false, true}) {
      Halves y = halves(shape, 1);
      Both bias = vector(shape, 2);
      const core::Matrix host = y.host();
      kernels().bias_activation(host.data, host.stride, host.rows, host.cols, bias.host().data,
                                relu);
      y.round_host();
      bias_activation(*stream_, y.there(), bias.there().data, relu);
      y.expect_same("y");
    }
    Both floats = both(shape, 3);
    Halves y = halves(shape, 4), dy = halves(shape, 5), dz = halves(shape, 6);
    for (const bool of_floats : {false, true}) {
      const core::Matrix a = of_floats ? floats.host() : y.host(), b = dy.host(), c = dz.host();
      kernels().relu_backward(a.data, a.stride, b.data, b.stride, c.data, c.stride, a.rows, a.cols);
      relu_backward(*stream_, of_floats ? Matrix(floats.there()) : y.there(), dy.there(),
                    dz.there());
      dz.expect_same(of_floats ? "dz by floats" : "dz");
    }
  });
}

TEST_P(HalvesOnDevice, SumsOfBothTypes) {
  for_each_shape([&](const Shape& shape) {
    Both floats = both(shape, 1), float_sum = both(shape, 2);
    Halves x = halves(shape, 3), sum = halves(shape, 4);
    const auto add_on_host = [&](const core::Matrix& from, const core::Matrix& to) {
      for (int64_t r = 0; r < shape.rows; ++r) kernels().add(from.row(r), to.row(r), shape.cols);
    };
    add_on_host(x.host(), float_sum.host());
    add_rows(*stream_, x.there(), float_sum.there());
    float_sum.expect_same("floats + halves");
    for (const bool of_floats : {false, true}) {
      add_on_host(of_floats ? floats.host() : x.host(), sum.host());
      sum.round_host();
      add_rows(*stream_, of_floats ? Matrix(floats.there()) : x.there(), sum.there());
      sum.expect_same(of_floats ? "halves + floats" : "halves + halves");
    }
  });
}

TEST_P(HalvesOnDevice, CrossLayers) {
  for_each_shape([&](const Shape& shape) {
    Both bias = vector(shape, 1);
    Halves origin = halves(shape, 2), x = halves(shape, 3), product = halves(shape, 4);
    Both floats = both(shape, 5);
    Halves y = halves(shape, 6);
    for (const bool to_floats : {false, true}) {
      kernels().cross_forward(bias.host().data, origin.host(), x.host(), product.host(),
                              to_floats ? floats.host() : y.host());
      product.round_host();
      if (!to_floats) y.round_host();
      cross_forward(*stream_, bias.there().data, origin.there(), x.there(), product.there(),
                    to_floats ? Matrix(floats.there()) : y.there());
      product.expect_same("product");
      y.expect_same("y");
      floats.expect_same("y of floats");
    }
    Both sum = both(shape, 7);
    for (const bool starts : {true, false}) {
      Halves dy = halves(shape, 8), dz = halves(shape, 9);
      kernels().cross_backward(
          {.origin = origin.host(), .product = product.host(), .dy = dy.host(), .dz = dz.host()},
          sum.host(), starts);
      dz.round_host();
      cross_backward(*stream_,
                     {.origin = origin.there(),
                      .product = product.there(),
                      .dy = dy.there(),
                      .dz = dz.there()},
                     sum.there(), starts);
      dz.expect_same("dz");
      sum.expect_same("sum");
    }
  });
}

TEST_P(HalvesOnDevice, DropOut) {
  Word forward(*this, 17);
  for_each_shape([&](const Shape& shape) {
    const DropoutMask mask{
        .seed = 77, .layer = 3, .forward = 17, .threshold = 0x60000000, .factor = 1.6F};
    Halves x = halves(shape, 1), y = halves(shape, 2);
    Both floats = both(shape, 3);
    kernels().dropout(mask, 0, x.host(), floats.host());
    dropout(*stream_, mask, forward.get(), x.there(), floats.there());
    floats.expect_same("y of floats");
    kernels().dropout(mask, 0, x.host(), y.host());
    y.round_host();
    dropout(*stream_, mask, forward.get(), x.there(), y.there());
    y.expect_same("y");
  });
}

// A tile of all rows.
TEST_P(HalvesOnDevice, SumsOverRowsAndColumns) {
  for_each_shape([&](const Shape& shape) {
    if (shape.rows == 0) return;
    Both weight = vector(shape, 1), bias = vector(shape, 2);
    Halves x = halves(shape, 3), y = halves(shape, 4), dy = halves(shape, 5), dx = halves(shape, 6);
    Both floats = both(shape, 7), statistics = both({.rows = shape.rows, .cols = 2}, 8);
    Both sums = both({.rows = 1, .cols = 2 * shape.cols}, 9);
    Both parts = both({.rows = 1, .cols = 2 * shape.cols}, 10);
    const TileSums there{
        .tile_rows = shape.rows, .parts = parts.there().data, .target = sums.there().data};
    kernels().column_sums(x.host().data, x.host().stride, shape.rows, shape.cols, sums.host().data);
    column_sums(*stream_, x.there(), there);
    sums.expect_same("column sums");
    for (const bool to_floats : {false, true}) {
      kernels().layer_norm_forward(
          {.weight = weight.host().data, .bias = bias.host().data, .epsilon = 1e-5F}, x.host(),
          to_floats ? floats.host() : y.host(), statistics.host().data);
      if (!to_floats) y.round_host();
      layer_norm_forward(
          *stream_, {.weight = weight.there().data, .bias = bias.there().data, .epsilon = 1e-5F},
          x.there(), to_floats ? Matrix(floats.there()) : y.there(), statistics.there().data);
      y.expect_same("y");
      floats.expect_same("y of floats");
      statistics.expect_same("statistics");
      kernels().layer_norm_backward({.weight = weight.host().data,
                                     .statistics = statistics.host().data,
                                     .weight_sums = sums.host().data,
                                     .bias_sums = sums.host().data + shape.cols},
                                    x.host(), dy.host(), to_floats ? floats.host() : dx.host());
      if (!to_floats) dx.round_host();
      layer_norm_backward(*stream_, weight.there().data, statistics.there().data, x.there(),
                          dy.there(), to_floats ? Matrix(floats.there()) : dx.there(), there);
      sums.expect_same("sums");
      dx.expect_same("dx");
      floats.expect_same("dx of floats");
    }
  });
}

}  // namespace
}  // namespace shardrec::dense::device::test
