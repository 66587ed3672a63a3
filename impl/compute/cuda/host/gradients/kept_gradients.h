// KeptGradients on a device: an entry per row, so that a merge moves no gradients. The host learns how many
// rows of an addition are new before there is room for them.
//
// Thread rule: that of the stream.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/results.h"
#include "compute/kept_gradients.h"

namespace shardrec::compute::cuda::host {

class IndexedGradients final : public KeptGradients {
 public:
  IndexedGradients(int64_t width, std::shared_ptr<Stream> stream);

  std::span<const int64_t> rows() const override {
    return {kept().rows, static_cast<size_t>(kept().count)};
  }
  void add(std::span<const int64_t> rows, const float* gradients) override;
  void clear() noexcept override;
  void finish() override;
  void describe(RowUpdate& job) const override;

 private:
  // A list of rows, with the memory that it is in.
  struct List {
    explicit List(std::shared_ptr<Memory> of_device) : memory(std::move(of_device)) {}
    Buffer memory;
    shardrec_cuda_kept_rows rows = {};
  };

  const shardrec_cuda_kept_rows& kept() const { return lists_[current_].rows; }
  int64_t count_new_rows(shardrec_cuda_kept_addition& job);

  int64_t width_;
  std::shared_ptr<Stream> stream_;
  std::shared_ptr<Memory> memory_;
  Results results_;
  // An addition makes one from the other.
  std::array<List, 2> lists_;
  size_t current_ = 0;
  std::vector<Buffer> pool_;  // gradients of the rows that were new in the k-th addition
  size_t additions_ = 0;
  // Of an addition.
  Buffer places_;
  Buffer new_before_;
  Buffer room_;
  // Of a job.
  Buffer run_;
  Buffer blocks_;
};

}  // namespace shardrec::compute::cuda::host
