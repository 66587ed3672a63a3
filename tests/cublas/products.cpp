#include "products.h"

#include <algorithm>
#include <cstdio>
#include <limits>

namespace shardrec::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr char kUnwritten = '\x5C';

class Numbers {
 public:
  explicit Numbers(uint32_t seed) : bits_(seed) {}
  double next() { return (static_cast<double>(bits_() % 33) - 16) / 8; }
  char byte() { return static_cast<char>(bits_()); }

 private:
  std::mt19937 bits_;
};

Matrix filled(Numbers& numbers, DType dtype, int64_t rows, int64_t columns, int64_t ld,
              bool is_read) {
  Matrix matrix(dtype, rows, columns, ld);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < (row + 1 < rows ? ld : columns); ++column) {
      matrix.set(row, column, is_read && column < columns ? numbers.next() : kNan);
    }
  }
  return matrix;
}

Numbers& seeded(Numbers& numbers, uint32_t seed) {
  numbers = Numbers(seed);
  return numbers;
}

DeviceBytes uploaded(const std::shared_ptr<Stream>& stream, const std::string& bytes) {
  DeviceBytes there(stream, bytes.size());
  if (!bytes.empty()) there.write(bytes.data());
  return there;
}

const char* name_of(DType dtype) {
  return dtype == DType::kFloat32 ? "fp32" : dtype == DType::kFloat16 ? "fp16" : "bf16";
}

}  // namespace

Product sized(int64_t m, int64_t n, int64_t k, Epilogue epilogue, int64_t between) {
  Product product;
  product.m = m;
  product.n = n;
  product.k = k;
  product.lda = k + between;
  product.ldb = n + between;
  product.ldc = n + between;
  product.epilogue = epilogue;
  product.mask_ld = dense::device::mask_ld(n) + (between > 0 ? 128 : 0);
  return product;
}

Product transposed(Product product, bool a, bool b) {
  if (a != product.transpose_a) product.lda += a ? product.m - product.k : product.k - product.m;
  if (b != product.transpose_b) product.ldb += b ? product.k - product.n : product.n - product.k;
  product.transpose_a = a;
  product.transpose_b = b;
  return product;
}

Case::Case(const Product& numbers, uint32_t seed)
    : product(numbers),
      a(DType::kFloat32, 0, 0, 0),
      b(DType::kFloat32, 0, 0, 0),
      c(DType::kFloat32, 0, 0, 0) {
  Numbers random(seed);
  const auto fill = [&](DType dtype, int64_t rows, int64_t columns, int64_t ld, bool is_read) {
    return filled(seeded(random, ++seed), dtype, rows, columns, ld, is_read);
  };
  const Product& p = product;
  a = fill(p.inputs, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.lda, true);
  b = fill(p.inputs, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.ldb, true);
  c = fill(p.output, p.m, p.n, p.ldc, p.beta != 0);
  bias.assign(static_cast<size_t>(sums()) * bytes_of(p.output), kUnwritten);
  if (reads_bias(p.epilogue)) {
    for (int64_t i = 0; i < sums(); ++i) {
      put(p.output, bias, static_cast<size_t>(i), random.next());
    }
  }
  mask.assign(static_cast<size_t>(p.m * p.mask_ld / 8), kUnwritten);
  if (reads_mask(p.epilogue)) {
    for (char& byte : mask) byte = random.byte();
  }
  name = "[" + std::to_string(p.m) + ", " + std::to_string(p.k) + "] x [" + std::to_string(p.k) +
         ", " + std::to_string(p.n) + "] " + name_of(p.inputs) + " to " + name_of(p.output) +
         (p.transpose_a ? ", A transposed" : "") + (p.transpose_b ? ", B transposed" : "") +
         ", epilogue " + std::to_string(static_cast<int>(p.epilogue)) + ", beta " +
         std::to_string(p.beta) + ", lda " + std::to_string(p.lda);
}

int64_t Case::sums() const {
  return product.epilogue == Epilogue::kBiasGradientA ? product.m : product.n;
}

bool Case::bit(const std::string& of, int64_t row, int64_t column) const {
  const int64_t place = row * product.mask_ld + column;
  return ((static_cast<unsigned char>(of[static_cast<size_t>(place / 8)]) >> (place % 8)) & 1) != 0;
}

double Case::element_a(int64_t row, int64_t k) const {
  return product.transpose_a ? a.get(k, row) : a.get(row, k);
}
double Case::element_b(int64_t k, int64_t column) const {
  return product.transpose_b ? b.get(column, k) : b.get(k, column);
}

double Case::sum(int64_t row, int64_t column) const {
  double sum = 0;
  for (int64_t k = 0; k < product.k; ++k) sum += element_a(row, k) * element_b(k, column);
  if (product.beta != 0) sum += double{product.beta} * c.get(row, column);
  return sum;
}

Case::OnDevice Case::on_device(const std::shared_ptr<Stream>& stream) const {
  OnDevice there{.a = uploaded(stream, a.bytes()),
                 .b = uploaded(stream, b.bytes()),
                 .c = uploaded(stream, c.bytes()),
                 .bias = uploaded(stream, bias),
                 .mask = uploaded(stream, mask),
                 .product = product};
  there.product.a = there.a.data();
  there.product.b = there.b.data();
  there.product.c = there.c.data();
  there.product.bias = there.bias.data();
  there.product.mask = there.mask.data();
  return there;
}

void Case::run(Gemm& gemm, const std::shared_ptr<Stream>& stream) const {
  const OnDevice there = on_device(stream);
  if (gemm.try_multiply(there.product)) {
    expect(there);
    return;
  }
  EXPECT_FALSE(is_emulated()) << name;
  std::printf("no algorithm: %s\n", name.c_str());
}

void Case::expect(const OnDevice& computed) const {
  const Product& p = product;
  Matrix wanted = c;
  std::string wanted_bias = bias;
  std::vector<double> sums_of(static_cast<size_t>(sums()));
  const std::string found_mask = computed.mask.read();
  std::string wanted_mask = mask;
  for (int64_t row = 0; row < p.m; ++row) {
    for (int64_t column = 0; column < p.n; ++column) {
      double value = sum(row, column);
      if (reads_bias(p.epilogue)) value += get(p.output, bias, static_cast<size_t>(column));
      if (p.epilogue == Epilogue::kReluBiasMask && value != 0) {
        EXPECT_EQ(bit(found_mask, row, column), value > 0)
            << name << ": mask at " << row << ", " << column;
      }
      if (p.epilogue == Epilogue::kReluBias || p.epilogue == Epilogue::kReluBiasMask) {
        value = std::max(value, 0.0);
      }
      if (reads_mask(p.epilogue) && !bit(mask, row, column)) value = 0;
      wanted.set(row, column, value);
      if (p.epilogue == Epilogue::kDreluBiasGradient) sums_of[static_cast<size_t>(column)] += value;
    }
  }
  for (int64_t k = 0; k < p.k; ++k) {
    for (int64_t i = 0; i < sums(); ++i) {
      if (p.epilogue == Epilogue::kBiasGradientA)
        sums_of[static_cast<size_t>(i)] += element_a(i, k);
      if (p.epilogue == Epilogue::kBiasGradientB)
        sums_of[static_cast<size_t>(i)] += element_b(k, i);
    }
  }
  if (writes_bias(p.epilogue)) {
    for (size_t i = 0; i < sums_of.size(); ++i) put(p.output, wanted_bias, i, sums_of[i]);
  }
  EXPECT_EQ(computed.bias.read(), wanted_bias) << name << ": bias";
  if (p.epilogue == Epilogue::kReluBiasMask) {  // bytes behind the columns are left as they are
    for (int64_t row = 0; row < p.m; ++row) {
      for (int64_t byte = 0; byte < (p.n + 7) / 8; ++byte) {
        const auto place = static_cast<size_t>(row * p.mask_ld / 8 + byte);
        wanted_mask[place] = found_mask[place];
      }
    }
  }
  if (is_emulated()) {
    EXPECT_EQ(found_mask, wanted_mask) << name << ": bytes of the mask that are not written";
  }
  const std::string found = computed.c.read();
  EXPECT_EQ(found, wanted.bytes()) << name;
}

}  // namespace shardrec::test
