// Click samples in memory, one after another: a label, dense numbers, and a bag of ids per feature.
//
// Samples are added whole and never changed. Not thread-safe while being filled.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardrec::cli {

struct Feature {
  std::string name;  // of the feature and of its table
  int64_t rows = 0;  // of its table; ids are in [0, rows)
};

struct Schema {
  int64_t dense_columns = 0;
  std::vector<Feature> features;
};

// One sample while it is being read.
struct Sample {
  float label = 0;
  std::vector<float> dense;
  std::vector<int32_t> lengths;            // per feature
  std::vector<int64_t> ids;                // bag after bag
  int64_t row = 0;                         // of the data, from 0; unreadable rows count
  std::vector<std::string_view> fields{};  // of the text that it is read from
};

class Samples {
 public:
  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(labels_.size()); }
  void clear();
  // Room for so many samples that are like those that are here.
  void reserve(int64_t count);
  void add(const Sample& sample);
  void add(const Samples& from, int64_t index);

  [[nodiscard]] int64_t row(int64_t index) const { return rows_[static_cast<size_t>(index)]; }
  [[nodiscard]] float label(int64_t index) const { return labels_[static_cast<size_t>(index)]; }
  [[nodiscard]] std::span<const float> dense(int64_t index) const;
  [[nodiscard]] std::span<const int32_t> lengths(int64_t index) const;
  [[nodiscard]] std::span<const int64_t> ids(int64_t index) const;

 private:
  size_t dense_columns_ = 0;
  size_t features_ = 0;
  std::vector<int64_t> rows_;
  std::vector<float> labels_;
  std::vector<float> dense_;
  std::vector<int32_t> lengths_;
  std::vector<int64_t> ids_;
  std::vector<size_t> id_start_{0};
};

// Rows of a log as they were read, each to be made a sample when it is wanted: text that is known to
// be readable, or samples already.
struct Rows {
  struct Line {
    size_t begin = 0;  // in the text
    uint32_t length = 0;
    uint32_t file = 0;  // of the log, from 0
    int64_t row = 0;    // of the data, from 0; unreadable rows count
  };
  std::string text;
  std::vector<Line> lines;
  Samples samples;

  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(lines.size()) + samples.size(); }
  void clear();
  // line: of less than 4 GiB.
  void add(std::string_view line, int64_t row, size_t file);
  [[nodiscard]] std::string_view line(int64_t index) const;
  // Lines are made samples in a random order: hints of what comes, far ahead and nearer.
  void expect(int64_t index) const;
  void expect_soon(int64_t index) const;
};

// A rank's share of a batch as the C API takes it: lengths and ids feature-major.
struct PackedBatch {
  int64_t size = 0;
  std::vector<float> labels;
  std::vector<float> dense;      // [size, dense columns]
  std::vector<int64_t> lengths;  // [features * size]
  std::vector<int64_t> ids;
};

// Samples [first, last) of `samples` into `batch`; its memory is reused.
void pack(const Schema& schema, const Samples& samples, int64_t first, int64_t last,
          PackedBatch& batch);

}  // namespace shardrec::cli
