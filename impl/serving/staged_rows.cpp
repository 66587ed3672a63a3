#include "serving/staged_rows.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "checkpoint/read/files.h"
#include "checkpoint/read/row_lists.h"
#include "serving/row_encoder.h"

namespace shardrec::serving {
namespace {

using checkpoint::ManifestTensor;

}  // namespace

StagedRows::StagedRows(std::vector<compute::RowWord> bits, size_t row_bytes)
    : bits_(std::move(bits)), before_(bits_.size()), row_bytes_(row_bytes) {
  for (size_t word = 0; word < bits_.size(); ++word) {
    before_[word] = count_;
    count_ += std::popcount(bits_[word]);
  }
  memory_ = compute::cpu_memory()->allocate(static_cast<size_t>(count_) * row_bytes_);
}

void StagedRows::write_to(const ServedTable& table) const noexcept {
  for_each([&](int64_t row) {
    std::memcpy(table.memory->data + static_cast<size_t>(row) * row_bytes_, at(row), row_bytes_);
  });
}

struct DeltaReader::Delta {
  Delta(const checkpoint::Opened& its_delta, int32_t collection, core::Control* control,
        core::Environment& environment)
      : files(its_delta, environment), lists(its_delta, files, control) {
    for (const ManifestTensor& tensor : its_delta.manifest.tensors) {
      if (is_served(tensor, collection)) tensors[tensor.table].push_back(&tensor);
    }
  }
  std::span<const ManifestTensor* const> of(int32_t saved) const {
    const auto found = tensors.find(saved);
    return found == tensors.end() ? std::span<const ManifestTensor* const>() : found->second;
  }
  // Neither the lists of many deltas nor their files are held at once.
  void let_go() noexcept {
    lists.forget();
    files.close();
  }

  std::map<int32_t, std::vector<const ManifestTensor*>> tensors;  // weights, by table
  checkpoint::Files files;
  checkpoint::RowLists lists;
};

DeltaReader::DeltaReader(std::span<const checkpoint::Opened* const> deltas, int32_t collection,
                         core::Control* control, core::Environment& environment) {
  for (const checkpoint::Opened* const delta : deltas) {
    deltas_.push_back(std::make_unique<Delta>(*delta, collection, control, environment));
  }
}

DeltaReader::~DeltaReader() = default;

bool DeltaReader::changes(int32_t saved) const {
  return std::ranges::any_of(deltas_, [&](const std::unique_ptr<Delta>& delta) {
    return std::ranges::any_of(
        delta->of(saved), [](const ManifestTensor* tensor) { return tensor->listed->count != 0; });
  });
}

DeltaReader::Changed DeltaReader::changed(int32_t saved, const plan::Table& table, bool coded) {
  Changed changed{.bits = std::vector<compute::RowWord>(compute::row_words(table.rows))};
  std::vector<compute::RowWord> here(coded ? changed.bits.size() : 0);
  for (const std::unique_ptr<Delta>& delta : deltas_) {
    int64_t elements = 0;
    std::ranges::fill(here, compute::RowWord{0});
    for (const ManifestTensor* const tensor : delta->of(saved)) {
      const std::span<const int64_t> list = delta->lists.read(tensor->listed->list);
      compute::set_row_bits(changed.bits.data(), list.data(), std::ssize(list));
      if (coded) compute::set_row_bits(here.data(), list.data(), std::ssize(list));
      elements += std::ssize(list) * tensor->cells.cols;
    }
    delta->let_go();
    // Boxes do not overlap: rows are whole where they have as many elements as whole rows do.
    if (coded && elements != compute::count_row_bits(here) * table.dim) changed.whole = false;
  }
  return changed;
}

void DeltaReader::read_rows(int32_t saved, const StagedRows& to, size_t element_bytes) {
  for (const std::unique_ptr<Delta>& delta : deltas_) {
    for (const ManifestTensor* const tensor : delta->of(saved)) {
      const auto bytes = static_cast<size_t>(tensor->cells.cols) * element_bytes;
      const size_t before = static_cast<size_t>(tensor->cells.col) * element_bytes;
      delta->lists.for_each_chunk(
          *tensor, [&](std::span<const int64_t> rows, std::span<const std::byte> values) {
            const std::byte* from = values.data();
            for (const int64_t row : rows) {
              std::memcpy(to.at(row) + before, from, bytes);
              from += bytes;
            }
          });
    }
    delta->let_go();
  }
}

std::shared_ptr<const StagedRows> DeltaReader::stage(int32_t saved, const plan::Table& table,
                                                     const ServedTable& now, Changed changed) {
  const size_t element_bytes = compute::element_bytes(now.element);
  const size_t row_bytes = static_cast<size_t>(table.dim) * element_bytes;
  auto elements = std::make_shared<StagedRows>(std::move(changed.bits), row_bytes);
  if (!now.coded) {
    // Columns that no delta has stay as they are.
    elements->for_each([&](int64_t row) {
      std::memcpy(elements->at(row), now.memory->data + static_cast<size_t>(row) * row_bytes,
                  row_bytes);
    });
    read_rows(saved, *elements, element_bytes);
    return elements;
  }
  read_rows(saved, *elements, element_bytes);
  RowEncoder encoder(table);
  auto codes = std::make_shared<StagedRows>(elements->bits(), encoder.row_bytes());
  elements->for_each([&](int64_t row) { encoder.encode(elements->at(row), row, codes->at(row)); });
  return codes;
}

int64_t bytes_of_changes(std::span<const checkpoint::Opened* const> deltas, int32_t collection) {
  int64_t bytes = 0;
  for (const checkpoint::Opened* const delta : deltas) {
    std::set<int32_t> lists;
    for (const ManifestTensor& tensor : delta->manifest.tensors) {
      if (!is_served(tensor, collection)) continue;
      bytes += bytes_of(tensor);
      lists.insert(tensor.listed->list);
    }
    for (const int32_t list : lists) {
      bytes += 2 * bytes_of(delta->manifest.lists[static_cast<size_t>(list)]);
    }
  }
  return bytes;
}

}  // namespace shardrec::serving
