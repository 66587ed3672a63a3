// Batches for benchmarks: ids uniform or Zipf, bags of one length or of lengths between two, tables
// of one size or of several.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardrec::cli {

struct BagLengths {
  int64_t least = 0;
  int64_t most = 0;
  [[nodiscard]] double mean() const { return static_cast<double>(least + most) / 2; }
};
BagLengths parse_bag_lengths(const std::string& text);  // "20" or "1..40"; UserError

// 0: uniform, else Zipf's exponent. "uniform" or "zipf:1.05"; UserError.
double parse_id_distribution(const std::string& text);

struct BenchTable {
  int64_t rows = 0;
  int64_t dim = 0;
};
// Tables of one size: "2x4096x64" is two of 4096 rows and 64 columns; UserError.
std::vector<BenchTable> parse_bench_tables(const std::string& text);

// Numbers 1 .. bound with probability proportional to 1 / k^exponent, without a table:
// rejection-inversion (Hoermann and Derflinger 1996).
class BoundedZipf {
 public:
  BoundedZipf(double exponent, int64_t bound);
  template <typename Random>
  int64_t draw(Random&& random) const {
    for (;;) {
      const double u = high_ + random() * (low_ - high_);
      const double x = inverse_integral(u);
      const double k = nearest(x);
      if (k - x <= shift_ || u >= integral(k + 0.5) - weight(k)) return static_cast<int64_t>(k);
    }
  }

 private:
  [[nodiscard]] double weight(double x) const;
  [[nodiscard]] double integral(double x) const;
  [[nodiscard]] double inverse_integral(double x) const;
  [[nodiscard]] double nearest(double x) const;
  double exponent_;
  double bound_;
  double low_;
  double high_;
  double shift_;
};

struct BenchBatch {
  std::vector<int64_t> lengths;  // [tables * batch]
  std::vector<int64_t> ids;
  std::vector<int64_t> table_ids;   // [tables]
  std::vector<int64_t> table_rows;  // [tables]: different ids
};

struct BenchShape {
  std::vector<BenchTable> tables;
  int64_t batch = 2048;
  BagLengths lengths;
  double zipf = 0;
};
BenchBatch make_bench_batch(const BenchShape& shape, uint64_t seed);
// The seed of one of a rank's batches, of which each rank has as many.
uint64_t seed_of_batch(uint64_t seed, int rank, int batches, int batch);

}  // namespace shardrec::cli
