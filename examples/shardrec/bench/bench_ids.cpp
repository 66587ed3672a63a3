// Ids and bag lengths of a benchmark's batches, from a counter.
#include "bench/bench_ids.h"

#include <algorithm>
#include <cmath>

#include "command/numbers.h"
#include "command/user_error.h"
#include "data/counter_random.h"
#include "data/hash_number.h"

namespace shardrec::cli {

BagLengths parse_bag_lengths(const std::string& text) {
  const size_t dots = text.find("..");
  const auto least = parse_integer(std::string_view(text).substr(0, dots));
  const auto most =
      dots == std::string::npos ? least : parse_integer(std::string_view(text).substr(dots + 2));
  if (!least || !most || *least < 0 || *most < *least || *most > 1000000) {
    throw UserError("--pooling is '" + text +
                    "'; accepted: a length such as 20, or lengths such as 1..40.");
  }
  return {*least, *most};
}

double parse_id_distribution(const std::string& text) {
  if (text == "uniform") return 0;
  const auto exponent =
      text.rfind("zipf:", 0) == 0 ? parse_real(std::string_view(text).substr(5)) : std::nullopt;
  if (!exponent || *exponent <= 0 || *exponent > 10) {
    throw UserError("--ids is '" + text +
                    "'; accepted: uniform, or zipf: and an exponent such as zipf:1.05.");
  }
  return *exponent;
}

std::vector<BenchTable> parse_bench_tables(const std::string& text) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const std::string_view view(text);
  const size_t first = view.find('x');
  const size_t second = first == view.npos ? first : view.find('x', first + 1);
  if (second != view.npos) {
    const auto count = parse_integer(view.substr(0, first));
    const auto rows = parse_integer(view.substr(first + 1, second - first - 1));
    const auto dim = parse_integer(view.substr(second + 1));
    if (count && rows && dim && *count >= 1 && *count <= 100000 && *rows >= 1 && *rows <= kMost &&
        *dim >= 1 && *dim <= 65536) {
      return std::vector<BenchTable>(static_cast<size_t>(*count), BenchTable{*rows, *dim});
    }
  }
  throw UserError("--table is '" + text +
                  "'; accepted: tables x rows x columns, such as 2x4096x64.");
}

BoundedZipf::BoundedZipf(double exponent, int64_t bound)
    : exponent_(exponent),
      bound_(static_cast<double>(bound)),
      low_(0),
      high_(integral(bound_ + 0.5)),
      shift_(2 - inverse_integral(integral(2.5) - weight(2))) {
  low_ = integral(1.5) - 1;
}

double BoundedZipf::weight(double x) const { return std::exp(-exponent_ * std::log(x)); }

double BoundedZipf::integral(double x) const {
  const double log_x = std::log(x);
  const double t = (1 - exponent_) * log_x;
  return std::abs(t) < 1e-8 ? log_x * (1 + t / 2) : std::expm1(t) / (1 - exponent_);
}

double BoundedZipf::inverse_integral(double x) const {
  const double t = std::max(x * (1 - exponent_), -1.0);
  return std::exp(std::abs(t) < 1e-8 ? x * (1 - t / 2) : std::log1p(t) / (1 - exponent_));
}

double BoundedZipf::nearest(double x) const { return std::clamp(std::floor(x + 0.5), 1.0, bound_); }

uint64_t seed_of_batch(uint64_t seed, int rank, int batches, int batch) {
  const auto number =
      static_cast<uint64_t>(rank) * static_cast<uint64_t>(batches) + static_cast<uint64_t>(batch);
  return hash_number(seed, number);
}

BenchBatch make_bench_batch(const BenchShape& shape, uint64_t seed) {
  CounterRandom bits(seed);
  const auto random = [&] { return unit_real(bits.next()); };
  const auto spread = static_cast<uint64_t>(shape.lengths.most - shape.lengths.least + 1);
  BenchBatch batch;
  std::vector<int64_t> seen;
  for (const BenchTable& table : shape.tables) {
    const BoundedZipf zipf(shape.zipf > 0 ? shape.zipf : 1.0, table.rows);
    const auto rows = static_cast<uint64_t>(table.rows);
    seen.clear();
    for (int64_t b = 0; b < shape.batch; ++b) {
      const int64_t length = shape.lengths.least + static_cast<int64_t>(bits.below(spread));
      batch.lengths.push_back(length);
      for (int64_t i = 0; i < length; ++i) {
        // Frequent ids are scattered over the table, as hashed ids are.
        const uint64_t row = shape.zipf > 0
                                 ? static_cast<uint64_t>(zipf.draw(random)) * 2654435761u + 12345
                                 : bits.next();
        seen.push_back(static_cast<int64_t>(row % rows));
      }
    }
    batch.ids.insert(batch.ids.end(), seen.begin(), seen.end());
    batch.table_ids.push_back(static_cast<int64_t>(seen.size()));
    std::sort(seen.begin(), seen.end());
    batch.table_rows.push_back(std::unique(seen.begin(), seen.end()) - seen.begin());
  }
  return batch;
}

}  // namespace shardrec::cli
