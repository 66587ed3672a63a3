// Samples held column by column, and the slice of a batch as lookups take it.
#include "data/samples.h"

#include <algorithm>

namespace shardrec::cli {

void Samples::clear() {
  rows_.clear();
  labels_.clear();
  dense_.clear();
  lengths_.clear();
  ids_.clear();
  id_start_.assign(1, 0);
}

void Samples::reserve(int64_t count) {
  const auto samples = static_cast<size_t>(count);
  rows_.reserve(samples);
  labels_.reserve(samples);
  dense_.reserve(samples * dense_columns_);
  lengths_.reserve(samples * features_);
  ids_.reserve(samples * (ids_.size() / std::max<size_t>(labels_.size(), 1)));
  id_start_.reserve(samples + 1);
}

void Samples::add(const Sample& sample) {
  dense_columns_ = sample.dense.size();
  features_ = sample.lengths.size();
  rows_.push_back(sample.row);
  labels_.push_back(sample.label);
  dense_.insert(dense_.end(), sample.dense.begin(), sample.dense.end());
  lengths_.insert(lengths_.end(), sample.lengths.begin(), sample.lengths.end());
  ids_.insert(ids_.end(), sample.ids.begin(), sample.ids.end());
  id_start_.push_back(ids_.size());
}

void Samples::add(const Samples& from, int64_t index) {
  dense_columns_ = from.dense_columns_;
  features_ = from.features_;
  rows_.push_back(from.row(index));
  labels_.push_back(from.label(index));
  const auto dense_values = from.dense(index);
  dense_.insert(dense_.end(), dense_values.begin(), dense_values.end());
  const auto bag_lengths = from.lengths(index);
  lengths_.insert(lengths_.end(), bag_lengths.begin(), bag_lengths.end());
  const auto bag_ids = from.ids(index);
  ids_.insert(ids_.end(), bag_ids.begin(), bag_ids.end());
  id_start_.push_back(ids_.size());
}

std::span<const float> Samples::dense(int64_t index) const {
  return std::span(dense_).subspan(static_cast<size_t>(index) * dense_columns_, dense_columns_);
}

std::span<const int32_t> Samples::lengths(int64_t index) const {
  return std::span(lengths_).subspan(static_cast<size_t>(index) * features_, features_);
}

std::span<const int64_t> Samples::ids(int64_t index) const {
  const auto at = static_cast<size_t>(index);
  return std::span(ids_).subspan(id_start_[at], id_start_[at + 1] - id_start_[at]);
}

void Rows::clear() {
  text.clear();
  lines.clear();
  samples.clear();
}

void Rows::add(std::string_view line, int64_t row, size_t file) {
  lines.push_back({.begin = text.size(),
                   .length = static_cast<uint32_t>(line.size()),
                   .file = static_cast<uint32_t>(file),
                   .row = row});
  text.append(line);
}

std::string_view Rows::line(int64_t index) const {
  const Line& line = lines[static_cast<size_t>(index)];
  return std::string_view(text).substr(line.begin, line.length);
}

void Rows::expect(int64_t index) const {
  if (!lines.empty()) __builtin_prefetch(&lines[static_cast<size_t>(index)]);
}

void Rows::expect_soon(int64_t index) const {
  if (lines.empty()) return;
  constexpr size_t kCacheLine = 64;
  const std::string_view text_of = line(index);
  for (size_t at = 0; at < text_of.size(); at += kCacheLine) __builtin_prefetch(&text_of[at]);
}

void pack(const Schema& schema, const Samples& samples, int64_t first, int64_t last,
          PackedBatch& batch) {
  const size_t features = schema.features.size();
  batch.size = last - first;
  const auto size = static_cast<size_t>(batch.size);
  batch.labels.clear();
  batch.labels.reserve(size);
  batch.dense.clear();
  batch.dense.reserve(size * static_cast<size_t>(schema.dense_columns));
  batch.lengths.resize(features * size);

  std::vector<size_t> cursor(features,
                             0);  // first the ids of each feature, then where to write next
  for (int64_t i = first; i < last; ++i) {
    batch.labels.push_back(samples.label(i));
    const auto dense = samples.dense(i);
    batch.dense.insert(batch.dense.end(), dense.begin(), dense.end());
    const auto lengths = samples.lengths(i);
    for (size_t f = 0; f < features; ++f) {
      batch.lengths[f * size + static_cast<size_t>(i - first)] = lengths[f];
      cursor[f] += static_cast<size_t>(lengths[f]);
    }
  }
  size_t total = 0;
  for (size_t& start : cursor) {
    const size_t count = start;
    start = total;
    total += count;
  }
  batch.ids.resize(total);
  for (int64_t i = first; i < last; ++i) {
    const auto lengths = samples.lengths(i);
    const auto ids = samples.ids(i);
    size_t at = 0;
    for (size_t f = 0; f < features; ++f) {
      for (int32_t k = 0; k < lengths[f]; ++k) batch.ids[cursor[f]++] = ids[at++];
    }
  }
}

}  // namespace shardrec::cli
