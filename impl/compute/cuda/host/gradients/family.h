// A device's operations on gradients on their way to the owners of rows.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "compute/cuda/host/gradients/gradient_packing.h"
#include "compute/cuda/host/gradients/gradient_rows.h"
#include "compute/cuda/host/gradients/kept_gradients.h"
#include "compute/cuda/host/gradients/weight_products.h"
#include "compute/cuda/host/stream.h"
#include "compute/gradient_operations.h"

namespace shardrec::compute::cuda::host {

class GradientFamily final : public GradientOperations {
 public:
  explicit GradientFamily(std::shared_ptr<Stream> stream)
      : stream_(std::move(stream)), packing_(stream_), weight_products_(stream_) {}

  void pack_bag_gradients(std::span<const BagGradients> blocks) override { packing_.run(blocks); }
  void pack_sequence_gradients(std::span<const SequenceGradients> blocks) override {
    packing_.run(blocks);
  }
  void take_weight_products(std::span<const WeightProducts> blocks) override {
    weight_products_.run(blocks);
  }
  void sum_weight_products(std::span<const WeightGradients> features) override {
    weight_products_.run(features);
  }
  void number_occurrences(const SingleOccurrences& rows) override {
    host::number_occurrences(rows, *stream_);
  }
  std::unique_ptr<KeptGradients> make_kept_gradients(int64_t width) override {
    return std::make_unique<IndexedGradients>(width, stream_);
  }

 private:
  std::shared_ptr<Stream> stream_;
  GradientPacking packing_;
  WeightProductTasks weight_products_;
};

}  // namespace shardrec::compute::cuda::host
