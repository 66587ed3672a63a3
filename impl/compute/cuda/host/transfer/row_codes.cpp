#include "compute/cuda/host/transfer/row_codes.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "compute/cuda/host/vectors.h"

namespace shardrec::compute::cuda::host {
namespace {

constexpr int64_t kNumbers = 4;  // of a vector

bool all_in_vectors(const RowCoding& coding, const void* floats, const void* coded) {
  if ((std::bit_cast<uintptr_t>(floats) | std::bit_cast<uintptr_t>(coded)) % kVectorBytes != 0) {
    return false;
  }
  if (coding.boxes.empty()) return coding.rows * coding.width % kNumbers == 0;
  return coding.width % kNumbers == 0 &&
         std::all_of(coding.boxes.begin(), coding.boxes.end(), [](const ColumnRange& box) {
           return box.begin % kNumbers == 0 && box.end % kNumbers == 0;
         });
}

int64_t blocks_of(const RowCoding& coding, int32_t lanes, bool vectors) {
  const int64_t units = coding.boxes.empty() ? coding.rows * coding.width / (vectors ? kNumbers : 1)
                                             : coding.rows * std::ssize(coding.boxes);
  const int64_t of_block =
      coding.boxes.empty() ? kThreads * SHARDREC_CUDA_CONVERSIONS_AT_ONCE : kThreads / lanes;
  return (units + of_block - 1) / of_block;
}

shardrec_cuda_row_encoding job_of(const RowEncoding& block,
                                  const shardrec_cuda_row_coding& coding) {
  return {.coding = coding,
          .floats = block.floats,
          .coded = static_cast<unsigned char*>(static_cast<void*>(block.coded))};
}
shardrec_cuda_row_decoding job_of(const RowDecoding& block,
                                  const shardrec_cuda_row_coding& coding) {
  return {.coding = coding,
          .coded = static_cast<const unsigned char*>(static_cast<const void*>(block.coded)),
          .floats = block.floats};
}

}  // namespace

RowCodes::RowCodes(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)), arguments_(stream_) {}

void RowCodes::run(std::span<const RowEncoding> blocks) {
  run_kinds(encodings_, blocks, table().encode_rows);
}
void RowCodes::run(std::span<const RowDecoding> blocks) {
  run_kinds(decodings_, blocks, table().decode_rows);
}

template <class Job, class Block, class Launch>
void RowCodes::run_kinds(Kinds<Job>& kinds, std::span<const Block> blocks, Launch launch) {
  boxes_.clear();
  for (auto& of_boxed : kinds) {
    for (auto& kind : of_boxed) {
      kind.launch.clear();
      kind.first_box.clear();
    }
  }
  for (const Block& block : blocks) {
    const bool vectors = all_in_vectors(block, block.floats, block.coded);
    int64_t widest = 0;
    const size_t first_box = boxes_.size();
    for (const ColumnRange& box : block.boxes) {
      boxes_.push_back({.begin = box.begin, .end = box.end});
      widest = std::max(widest, box.end - box.begin);
    }
    const shardrec_cuda_row_coding coding{.rows = block.rows,
                                          .width = block.width,
                                          .element = static_cast<int32_t>(block.element),
                                          .lanes = lanes_for(widest, vectors ? kNumbers : 1),
                                          .box_count = std::ssize(block.boxes)};
    const int64_t units = blocks_of(block, coding.lanes, vectors);
    if (units == 0) continue;
    auto& kind = kinds[block.boxes.empty() ? 0 : 1][vectors ? 1 : 0];
    kind.launch.add(job_of(block, coding), units);
    kind.first_box.push_back(first_box);
  }
  size_t bytes = Arguments::bytes_of<shardrec_cuda_column_range>(boxes_.size());
  for (const auto& of_boxed : kinds) {
    for (const auto& kind : of_boxed) bytes += kind.launch.bytes();
  }
  arguments_.begin(bytes);
  const auto* const boxes = arguments_.add(std::span<const shardrec_cuda_column_range>(boxes_));
  for (auto& of_boxed : kinds) {
    for (auto& kind : of_boxed) {
      const std::span<Job> jobs = kind.launch.jobs();
      for (size_t j = 0; j < jobs.size(); ++j) jobs[j].coding.boxes = boxes + kind.first_box[j];
      kind.launch.send(arguments_);
    }
  }
  arguments_.send();
  for (int32_t boxed = 0; boxed < 2; ++boxed) {
    for (int32_t vectors = 0; vectors < 2; ++vectors) {
      const auto& list = kinds[static_cast<size_t>(boxed)][static_cast<size_t>(vectors)].launch;
      const shardrec_cuda_row_coding_kind kind{.boxed = boxed, .vectors = vectors};
      require(launch(stream_->handle(), &kind, list.jobs_there(), list.first_unit_there(),
                     list.count(), list.units()),
              "code rows on device ", stream_->device());
    }
  }
}

}  // namespace shardrec::compute::cuda::host
