// Click logs with planted weights: what `generate` writes and what `train` measures itself against.
//
// Everything is a function of the seed; draw(stream, a, b) = shardrec_hash64(seed, stream, a, b as
// 8 bytes each, lowest first). Row i:
//   ids     column k = 0..25 has round(4 * 250^(k/25)) values; value v = 0, 1, ... has probability
//           proportional to (v + 1)^-1.05; one in 50 is missing. In the file value v is the low 32
//           bits of shardrec_hash64(k, v as 8 bytes, lowest first), as 8 hex digits.
//   dense   column j = 0..12 is floor(exp(mu_j + z)), z normal, mu_j = 1 + j/4; one in 50 is
//           missing.
//   logit   intercept + sum of value weights, N(0, 0.3) each
//           + sum of dense weights, N(0, 0.15) each, * (log1p(count) - mean_j) / deviation_j
//           + sum over two pairs of columns of coefficient * (value weight / 0.3) of one * of the
//           other; what is missing adds nothing
//   label   1 with probability sigmoid(logit); the intercept makes that 0.25 on average.
// A row can be made without the others, by any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "data/criteo_parser.h"

namespace shardrec::cli {

struct PlantedParameters {
  double zipf = 1.05;
  double value_deviation = 0.3;
  double dense_deviation = 0.15;
  double missing = 0.02;
  double click_rate = 0.25;
  struct Pair {
    int first = 0;  // columns, from 0
    int second = 0;
    double coefficient = 0;
  };
  std::array<Pair, 2> pairs{{{2, 5, 0.25}, {8, 13, 0.25}}};
};

struct PlantedRow {
  bool click = false;
  double probability = 0;
  std::array<int64_t, kCriteoDense> counts{};  // -1: missing
  std::array<int32_t, kCriteoIds> values{};    // -1: missing
};

class PlantedClicks {
 public:
  explicit PlantedClicks(uint64_t seed);

  [[nodiscard]] PlantedRow row(int64_t index) const;
  // The row as a line of Criteo's TSV, with its newline, added to out.
  void append_line(const PlantedRow& row, std::string& out) const;

  struct Dense {
    double mu = 0;
    double mean = 0;  // of log1p(count)
    double deviation = 0;
    double weight = 0;
  };
  struct Column {
    std::vector<double> weights;  // per value
    std::vector<double> cumulative;
    std::vector<int32_t> guide;  // where to start looking in cumulative
    std::vector<std::array<char, 8>> tokens;
  };
  [[nodiscard]] const PlantedParameters& parameters() const { return parameters_; }
  [[nodiscard]] const std::array<Dense, kCriteoDense>& dense() const { return dense_; }
  [[nodiscard]] const std::array<Column, kCriteoIds>& columns() const { return columns_; }
  [[nodiscard]] double intercept() const { return intercept_; }

 private:
  [[nodiscard]] uint64_t draw(uint64_t stream, uint64_t a, uint64_t b) const;
  [[nodiscard]] int32_t draw_value(size_t column, uint64_t bits) const;
  void make_column(size_t k);
  void make_dense(size_t j);
  [[nodiscard]] double logit(PlantedRow& row,
                             uint64_t index) const;  // without intercept; fills row
  [[nodiscard]] double fit_intercept() const;

  uint64_t seed_;
  PlantedParameters parameters_;
  std::array<Column, kCriteoIds> columns_;
  std::array<Dense, kCriteoDense> dense_;
  double intercept_ = 0;
};

int planted_values(int column);  // round(4 * 250^(column/25))

}  // namespace shardrec::cli
