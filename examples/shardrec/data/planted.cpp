// How planted clicks are drawn: weights by hash, an intercept fitted to the click rate.
#include "data/planted.h"

#include <charconv>
#include <cmath>
#include <numbers>
#include <shardrec/shardrec.hpp>
#include <string_view>

#include "data/counter_random.h"
#include "data/hash_number.h"

namespace shardrec::cli {
namespace {

enum Stream : uint64_t { kValue, kDense, kDenseMissing, kLabel, kValueWeight, kDenseWeight };

// Rows for fitting the intercept lie far beyond those of any file.
constexpr uint64_t kCalibrationRow = uint64_t{1} << 62;
constexpr int kCalibrationRows = 16384;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

void put_number(uint64_t number, char* bytes) {
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(number >> (8 * i));
}

void append_number(int64_t number, std::string& out) {
  std::array<char, 24> buffer;
  out.append(buffer.data(),
             std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr);
}

}  // namespace

int planted_values(int column) {
  return static_cast<int>(std::lround(4 * std::pow(250.0, column / 25.0)));
}

PlantedClicks::PlantedClicks(uint64_t seed) : seed_(seed) {
  for (size_t k = 0; k < kCriteoIds; ++k) make_column(k);
  for (size_t j = 0; j < kCriteoDense; ++j) make_dense(j);
  intercept_ = fit_intercept();
}

uint64_t PlantedClicks::draw(uint64_t stream, uint64_t a, uint64_t b) const {
  char bytes[24];
  put_number(stream, bytes);
  put_number(a, bytes + 8);
  put_number(b, bytes + 16);
  return hash64(std::string_view(bytes, sizeof bytes), seed_);
}

void PlantedClicks::make_column(size_t k) {
  Column& column = columns_[k];
  const int values = planted_values(static_cast<int>(k));
  double total = 0;
  for (int v = 0; v < values; ++v) {
    total += std::pow(v + 1.0, -parameters_.zipf);
    column.cumulative.push_back(total);
    column.weights.push_back(parameters_.value_deviation *
                             normal_real(draw(kValueWeight, k, static_cast<uint64_t>(v))));
    const auto token = static_cast<uint32_t>(hash_number(k, static_cast<uint64_t>(v)));
    std::array<char, 8> hex;
    for (size_t d = 0; d < hex.size(); ++d)
      hex[d] = "0123456789abcdef"[(token >> (28 - 4 * d)) & 15];
    column.tokens.push_back(hex);
  }
  for (double& sum : column.cumulative) sum /= total;
  int32_t start = 0;
  for (int g = 0; g < values; ++g) {
    while (column.cumulative[static_cast<size_t>(start)] <= static_cast<double>(g) / values)
      ++start;
    column.guide.push_back(start);
  }
}

int32_t PlantedClicks::draw_value(size_t k, uint64_t bits) const {
  const double u = (unit_real(bits) - parameters_.missing) / (1 - parameters_.missing);
  if (u < 0) return -1;
  const Column& column = columns_[k];
  const auto last = static_cast<int32_t>(column.weights.size()) - 1;
  int32_t v = column.guide[static_cast<size_t>(u * static_cast<double>(column.guide.size()))];
  while (v < last && column.cumulative[static_cast<size_t>(v)] <= u) ++v;
  return v;
}

// Mean and deviation of log1p(floor(exp(mu + z))) by a sum over a fine grid of z.
void PlantedClicks::make_dense(size_t j) {
  Dense& dense = dense_[j];
  dense.mu = 1 + 0.25 * static_cast<double>(j);
  dense.weight = parameters_.dense_deviation * normal_real(draw(kDenseWeight, j, 0));
  constexpr int kSteps = 8192;
  double mass = 0;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double z = -7 + 14 * (i + 0.5) / kSteps;
    const double p = std::exp(-z * z / 2);
    const double x = std::log1p(std::floor(std::exp(dense.mu + z)));
    mass += p;
    sum += p * x;
    squares += p * x * x;
  }
  dense.mean = sum / mass;
  dense.deviation = std::sqrt(squares / mass - dense.mean * dense.mean);
}

double PlantedClicks::logit(PlantedRow& row, uint64_t index) const {
  double sum = 0;
  for (size_t k = 0; k < kCriteoIds; ++k) {
    const int32_t v = draw_value(k, draw(kValue, index, k));
    row.values[k] = v;
    if (v >= 0) sum += columns_[k].weights[static_cast<size_t>(v)];
  }
  for (size_t j = 0; j < kCriteoDense; ++j) {
    row.counts[j] = -1;
    if (unit_real(draw(kDenseMissing, index, j)) < parameters_.missing) continue;
    const Dense& dense = dense_[j];
    const double count = std::floor(std::exp(dense.mu + normal_real(draw(kDense, index, j))));
    row.counts[j] = static_cast<int64_t>(count);
    sum += dense.weight * (std::log1p(count) - dense.mean) / dense.deviation;
  }
  const auto standard = [&](int column) {
    const auto k = static_cast<size_t>(column);
    const int32_t v = row.values[k];
    return v < 0 ? 0.0 : columns_[k].weights[static_cast<size_t>(v)] / parameters_.value_deviation;
  };
  for (const auto& pair : parameters_.pairs) {
    sum += pair.coefficient * standard(pair.first) * standard(pair.second);
  }
  return sum;
}

double PlantedClicks::fit_intercept() const {
  std::vector<double> logits;
  PlantedRow scratch;
  for (int i = 0; i < kCalibrationRows; ++i) {
    logits.push_back(logit(scratch, kCalibrationRow + static_cast<uint64_t>(i)));
  }
  double low = -20;
  double high = 20;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    double rate = 0;
    for (const double x : logits) rate += sigmoid(x + middle) / kCalibrationRows;
    (rate < parameters_.click_rate ? low : high) = middle;
  }
  return (low + high) / 2;
}

PlantedRow PlantedClicks::row(int64_t index) const {
  PlantedRow row;
  const auto at = static_cast<uint64_t>(index);
  row.probability = sigmoid(intercept_ + logit(row, at));
  row.click = unit_real(draw(kLabel, at, 0)) < row.probability;
  return row;
}

void PlantedClicks::append_line(const PlantedRow& row, std::string& out) const {
  out.push_back(row.click ? '1' : '0');
  for (const int64_t count : row.counts) {
    out.push_back('\t');
    if (count >= 0) append_number(count, out);
  }
  for (size_t k = 0; k < kCriteoIds; ++k) {
    out.push_back('\t');
    if (row.values[k] < 0) continue;
    const auto& token = columns_[k].tokens[static_cast<size_t>(row.values[k])];
    out.append(token.data(), token.size());
  }
  out.push_back('\n');
}

}  // namespace shardrec::cli
