// What products and their epilogues are, against sums in 64 bits: each bit, as the numbers are such that nothing is
// rounded but what is written.
#include <array>

#include "products.h"

namespace shardrec::test {
namespace {

struct Types {
  DType inputs;
  DType output;
};
constexpr std::array kTypes{
    Types{DType::kFloat32, DType::kFloat32},  Types{DType::kFloat16, DType::kFloat16},
    Types{DType::kFloat16, DType::kFloat32},  Types{DType::kBfloat16, DType::kBfloat16},
    Types{DType::kBfloat16, DType::kFloat32},
};

struct Sizes {
  int64_t m, n, k;
};

int64_t products() { return is_emulated() ? OF_FAKE(fake_cublaslt_products)() : 0; }

class ProductsWith : public CublasTest, public ::testing::WithParamInterface<Epilogue> {};

TEST_P(ProductsWith, AllTypesMultipliersStridesAndBetas) {
  const auto stream = std::make_shared<Stream>(0);
  Gemm gemm(stream, 1 << 16);
  const bool of_a = GetParam() == Epilogue::kBiasGradientA;
  const bool of_b = GetParam() == Epilogue::kBiasGradientB;
  uint32_t seed = 0;
  for (const Types types : kTypes) {
    for (const Sizes size : {Sizes{7, 5, 3}, Sizes{2, 131, 13}, Sizes{16, 8, 32}}) {
      for (const int64_t between : {0, 3}) {
        for (const bool a : {false, true}) {
          for (const bool b : {false, true}) {
            if ((of_a && !a) || (of_b && b)) continue;
            for (const float beta : {0.0F, 1.0F, -0.5F}) {
              Product product =
                  transposed(sized(size.m, size.n, size.k, GetParam(), between), a, b);
              product.inputs = types.inputs;
              product.output = types.output;
              product.beta = beta;
              product.multiplier = ++seed % 2 == 0 ? Multiplier::kExact : Multiplier::kTf32;
              Case(product, seed).run(gemm, stream);
              if (HasFailure()) return;
            }
          }
        }
      }
    }
  }
}

// Column vectors, row vectors and single elements; not of those that cuBLASLt does not have.
TEST_P(ProductsWith, OneRowOrColumn) {
  const auto stream = std::make_shared<Stream>(0);
  Gemm gemm(stream, 0);
  const bool of_a = GetParam() == Epilogue::kBiasGradientA;
  const bool of_b = GetParam() == Epilogue::kBiasGradientB;
  for (const Sizes size : {Sizes{1, 9, 4}, Sizes{9, 1, 4}, Sizes{1, 1, 2}}) {
    if ((of_a && size.m == 1) || (of_b && size.n == 1)) continue;
    Case(transposed(sized(size.m, size.n, size.k, GetParam()), of_a, false)).run(gemm, stream);
  }
}

TEST_P(ProductsWith, NoDepth) {
  const auto stream = std::make_shared<Stream>(0);
  Gemm gemm(stream);
  const bool of_a = GetParam() == Epilogue::kBiasGradientA;
  for (const Types types : kTypes) {
    for (const float beta : {0.0F, 2.0F}) {
      for (const int64_t m : {3, 40}) {  // the zeros grow
        Product product = transposed(sized(m, 11, 0, GetParam(), 1), of_a, false);
        product.inputs = types.inputs;
        product.output = types.output;
        product.beta = beta;
        Case(product).run(gemm, stream);
      }
    }
  }
}

TEST_P(ProductsWith, NoRowsOrColumns) {
  const auto stream = std::make_shared<Stream>(0);
  Gemm gemm(stream);
  const int64_t before = products();
  const bool of_operand =
      GetParam() == Epilogue::kBiasGradientA || GetParam() == Epilogue::kBiasGradientB;
  for (const int64_t k : {int64_t{0}, int64_t{4}}) {
    if (of_operand && k != 0) continue;
    Case(sized(0, 5, k, GetParam())).run(gemm, stream);
    Case(sized(5, 0, k, GetParam())).run(gemm, stream);
    Case(sized(0, 0, k, GetParam())).run(gemm, stream);
  }
  EXPECT_EQ(products(), before);
}

INSTANTIATE_TEST_SUITE_P(Epilogues, ProductsWith,
                         ::testing::Values(Epilogue::kNone, Epilogue::kBias, Epilogue::kReluBias,
                                           Epilogue::kReluBiasMask, Epilogue::kDrelu,
                                           Epilogue::kDreluBiasGradient, Epilogue::kBiasGradientA,
                                           Epilogue::kBiasGradientB));

class Products : public CublasTest {};

// The mask of a forward product is the one that the backward product reads.
TEST_F(Products, AMaskGoesFromForwardToBackward) {
  const auto stream = std::make_shared<Stream>(0);
  Gemm gemm(stream);
  const Case forward(sized(6, 37, 5, Epilogue::kReluBiasMask));
  const Case::OnDevice activations = forward.on_device(stream);
  gemm.multiply(activations.product);
  Case backward(sized(6, 37, 4, Epilogue::kDreluBiasGradient), 3);
  backward.mask = activations.mask.read();
  backward.run(gemm, stream);
}

// With numbers that are rounded at each step.
TEST_F(Products, SumsAreOf32Bits) {
  const auto stream = std::make_shared<Stream>(0);
  Gemm gemm(stream);
  Case product(sized(4, 6, 300));
  std::mt19937 bits(5);
  std::normal_distribution<double> normal;
  for (int64_t k = 0; k < 300; ++k) {
    for (int64_t i = 0; i < 4; ++i) product.a.set(i, k, normal(bits));
    for (int64_t j = 0; j < 6; ++j) product.b.set(k, j, normal(bits));
  }
  const Case::OnDevice there = product.on_device(stream);
  gemm.multiply(there.product);
  const std::string found = there.c.read();
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 6; ++j) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < 300; ++k) {
        sum += product.a.get(i, k) * product.b.get(k, j);
        size += std::abs(product.a.get(i, k) * product.b.get(k, j));
      }
      EXPECT_NEAR(get(DType::kFloat32, found, static_cast<size_t>(i * 6 + j)), sum,
                  300 * 0x1p-24 * size);
    }
  }
}

TEST_F(Products, OnlyTf32RoundsInputsOf32Bits) {
  const auto stream = std::make_shared<Stream>(0);
  Gemm gemm(stream);
  const auto product_of = [&](DType inputs, Multiplier multiplier, double value) {
    Product numbers = sized(1, 1, 1);
    numbers.inputs = inputs;
    numbers.multiplier = multiplier;
    Case one(numbers);
    one.a.set(0, 0, value);
    one.b.set(0, 0, 1);
    const Case::OnDevice there = one.on_device(stream);
    gemm.multiply(there.product);
    return get(DType::kFloat32, there.c.read(), 0);
  };
  const double fine = 1 + 0x1p-12;  // TF32 has 10 bits behind the point
  EXPECT_EQ(product_of(DType::kFloat32, Multiplier::kExact, fine), fine);
  const double rough = product_of(DType::kFloat32, Multiplier::kTf32, fine);
  EXPECT_TRUE(rough == 1 || (rough == fine && !is_emulated())) << rough;  // NVIDIA's may round
  EXPECT_EQ(product_of(DType::kFloat16, Multiplier::kTf32, 1 + 0x1p-10), 1 + 0x1p-10);
}

}  // namespace
}  // namespace shardrec::test
