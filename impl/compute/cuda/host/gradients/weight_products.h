// Gradients of the weights of ids, on a device (compute::WeightProducts, compute::WeightGradients).
//
// Thread rule: that of the stream.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/buffer.h"
#include "compute/cuda/host/arguments.h"
#include "compute/cuda/host/bag_index.h"
#include "compute/cuda/host/launch_list.h"
#include "compute/cuda/host/present_words.h"
#include "compute/gradient_operations.h"

namespace shardrec::compute::cuda::host {

class WeightProductTasks {
 public:
  explicit WeightProductTasks(std::shared_ptr<Stream> stream);

  // Enqueued when the calls return; the lists are copied.
  void run(std::span<const WeightProducts> blocks);
  void run(std::span<const WeightGradients> features);

 private:
  // Of one type of tables, read in vectors or not.
  struct Kind {
    LaunchList<shardrec_cuda_weight_products> launch;
    std::vector<size_t> first_range;  // by job
  };
  // Where the lists of a feature begin.
  struct Lists {
    size_t part = 0;
    size_t term = 0;
    size_t first_term = 0;
    size_t got = 0;
  };

  void add(const WeightProducts& block, const uint32_t* first_id);
  void run_products();
  void place_parts(std::span<const WeightGradients> features);
  void add(const WeightGradients& feature);
  void send_gradients();

  std::shared_ptr<Stream> stream_;
  BagIndex index_;
  Arguments arguments_;
  std::vector<const Bags*> bags_;
  std::array<std::array<Kind, 2>, 3> kinds_;  // by element, then vectors
  std::vector<shardrec_cuda_column_range> ranges_;

  PresentWords words_;
  Buffer bits_;
  uint64_t* next_bits_ = nullptr;
  std::vector<shardrec_cuda_product_rows> parts_;
  std::vector<shardrec_cuda_product_term> terms_;
  std::vector<int32_t> first_terms_;
  std::vector<uint8_t> got_;
  std::vector<shardrec_cuda_weight_gradients> features_;
  std::vector<Lists> lists_;  // by feature
  LaunchList<shardrec_cuda_weight_gradients> marks_;
  LaunchList<shardrec_cuda_weight_gradients> sums_;
};

}  // namespace shardrec::compute::cuda::host
