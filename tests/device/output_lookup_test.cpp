// Outputs looked up on a device have the bits of the CPU's.
#include "compute/cuda/host/lookup/output_lookup.h"

#include <algorithm>
#include <deque>

#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "device/mirrored.h"

namespace shardrec::test {
namespace {

using compute::BagOutputs;
using compute::Element;
using compute::element_bytes;
using compute::Elements;
using compute::kChunk;
using compute::kElements;
using compute::Numbers;
using compute::Random;
using compute::uniform;

struct OutputShape {
  int64_t rows = 40;
  int64_t width = 16;
  int64_t items = 70;
  int64_t longest = 5;  // ids of a bag
  size_t padding = 0;   // of the rows of tables and outputs, elements
  size_t shift = 0;     // of the first output, elements
  Element element = Element::kFloat32;
  Element out_element = Element::kFloat32;
  bool sequence = false;
  bool weighted = false;
  bool mean = false;
  bool is_64 = false;
  Numbers numbers = Numbers::kOrdinary;
};

OutputShape random_shape(Random& random, int64_t width) {
  const bool sequence = uniform(random, 0, 3) == 0;
  return {.rows = uniform(random, 1, 60),
          .width = width,
          .items = uniform(random, 1, 90),
          .longest = uniform(random, 0, 12),
          .padding = static_cast<size_t>(uniform(random, 0, 1) * uniform(random, 0, 8)),
          .shift = static_cast<size_t>(uniform(random, 0, 1) * uniform(random, 0, 3)),
          .element = kElements[uniform(random, 0, 2)],
          .out_element = kElements[uniform(random, 0, 2)],
          .sequence = sequence,
          .weighted = uniform(random, 0, 1) == 1,
          .mean = !sequence && uniform(random, 0, 2) == 0,
          .is_64 = uniform(random, 0, 1) == 1,
          .numbers = uniform(random, 0, 2) == 0 ? Numbers::kSpecial : Numbers::kOrdinary};
}

// A feature's lookup with what it reads, on the host.
class OutputFeature {
 public:
  OutputFeature(Random& random, const OutputShape& shape) : shape_(shape) {
    const size_t stride = static_cast<size_t>(shape.width) + shape.padding;
    table_ = Elements(shape.element,
                      numbers_of(random, static_cast<size_t>(shape.rows) * stride, shape.numbers));
    uint32_t ids = 0;
    for (int64_t item = 0; item < shape.items; ++item) {
      if (item % kChunk == 0) chunk_ids_.push_back(ids);
      lengths_.push_back(shape.sequence ? 1
                                        : static_cast<uint32_t>(uniform(random, 0, shape.longest)));
      ids += lengths_.back();
    }
    chunk_ids_.push_back(ids);
    for (uint32_t i = 0; i < ids; ++i) {
      ids_64_.push_back(uniform(random, 0, shape.rows - 1));
      ids_32_.push_back(static_cast<int32_t>(ids_64_.back()));
    }
    if (shape.weighted) weights_ = numbers_of(random, ids, shape.numbers);
    out_.assign((static_cast<size_t>(shape.items) * stride + shape.shift) *
                    element_bytes(shape.out_element),
                std::byte{0x5A});
  }

  const OutputShape& shape() const { return shape_; }
  const Elements& table() const { return table_; }
  std::span<const std::byte> ids() const {
    return shape_.is_64 ? std::as_bytes(std::span(ids_64_)) : std::as_bytes(std::span(ids_32_));
  }
  const std::vector<float>& weights() const { return weights_; }
  const std::vector<uint32_t>& lengths() const { return lengths_; }
  const std::vector<uint32_t>& chunk_ids() const { return chunk_ids_; }
  std::vector<std::byte>& out() { return out_; }

  // With these addresses.
  BagOutputs view(const void* table, const void* ids, const void* weights, const void* lengths,
                  const void* chunk_ids, void* out) const {
    const size_t stride = static_cast<size_t>(shape_.width) + shape_.padding;
    return {.table = {.data = table,
                      .element = shape_.element,
                      .stride = stride,
                      .width = shape_.width},
            .ids = {.data = ids, .is_64 = shape_.is_64},
            .weights = shape_.weighted ? static_cast<const float*>(weights) : nullptr,
            .items = shape_.items,
            .lengths = shape_.sequence ? nullptr : static_cast<const uint32_t*>(lengths),
            .chunk_ids = static_cast<const uint32_t*>(chunk_ids),
            .out = static_cast<std::byte*>(out) + shape_.shift * element_bytes(shape_.out_element),
            .out_element = shape_.out_element,
            .out_stride = stride,
            .mean = shape_.mean};
  }
  BagOutputs on_host() {
    return view(table_.data(), ids().data(), weights_.data(), lengths_.data(), chunk_ids_.data(),
                out_.data());
  }

 private:
  OutputShape shape_;
  Elements table_;
  std::vector<int64_t> ids_64_;
  std::vector<int32_t> ids_32_;
  std::vector<float> weights_;
  std::vector<uint32_t> lengths_;
  std::vector<uint32_t> chunk_ids_;
  std::vector<std::byte> out_;
};

class OutputLookupOnDevice : public DeviceTest {
 protected:
  class OnDevice {
   public:
    OnDevice(OutputLookupOnDevice& test, OutputFeature& feature)
        : table_(test, feature.table().data(),
                 feature.table().size() * element_bytes(feature.shape().element)),
          ids_(test, feature.ids().data(), feature.ids().size()),
          weights_(test, feature.weights().data(), feature.weights().size() * sizeof(float)),
          lengths_(test, feature.lengths().data(), feature.lengths().size() * sizeof(uint32_t)),
          chunk_ids_(test, feature.chunk_ids().data(),
                     feature.chunk_ids().size() * sizeof(uint32_t)),
          out_(test, feature.out().data(), feature.out().size()) {}

    BagOutputs view(const OutputFeature& feature) {
      return feature.view(table_.data(), ids_.data(), weights_.data(), lengths_.data(),
                          chunk_ids_.data(), out_.data());
    }
    std::vector<std::byte> out() { return out_.bytes(); }

   private:
    Array table_, ids_, weights_, lengths_, chunk_ids_, out_;
  };

  // All in one call, on the device and on the CPU.
  void compare(std::deque<OutputFeature>& features) {
    std::deque<OnDevice> on_device;
    std::vector<BagOutputs> here;
    std::vector<BagOutputs> there;
    for (OutputFeature& feature : features) {
      there.push_back(on_device.emplace_back(*this, feature).view(feature));
      here.push_back(feature.on_host());
    }
    lookup().run(there);
    cpu_->lookup().look_up_outputs(here, 0);
    for (size_t f = 0; f < features.size(); ++f) {
      const OutputShape& shape = features[f].shape();
      ASSERT_TRUE(same_numbers(shape.out_element, on_device[f].out(), features[f].out()))
          << "feature " << f << ", width " << shape.width << ", " << name_of(shape.element)
          << " to " << name_of(shape.out_element) << (shape.sequence ? ", sequence" : "")
          << (shape.mean ? ", mean" : "") << (shape.weighted ? ", weighted" : "") << ", padding "
          << shape.padding << ", shift " << shape.shift;
    }
  }

  compute::cuda::host::OutputLookup& lookup() {
    if (lookup_ == nullptr) lookup_ = std::make_unique<compute::cuda::host::OutputLookup>(stream_);
    return *lookup_;
  }

  Random random_{5};
  core::Threads threads_{1};
  std::unique_ptr<compute::Backend> cpu_ =
      compute::make_cpu_backend(compute::cpu_kernels(), threads_);
  std::unique_ptr<compute::cuda::host::OutputLookup> lookup_;
};

TEST_F(OutputLookupOnDevice, HasTheBitsOfTheCpuForEveryKindOfRowAndOutput) {
  for (const int64_t width :
       {1, 2, 3, 4, 5, 8, 12, 16, 20, 31, 32, 33, 64, 80, 128, 130, 256, 300}) {
    std::deque<OutputFeature> features;
    for (int f = 0; f < 6; ++f) features.emplace_back(random_, random_shape(random_, width));
    ASSERT_NO_FATAL_FAILURE(compare(features));
  }
}

TEST_F(OutputLookupOnDevice, TakesManyFeaturesOfManyKindsAtOnce) {
  std::deque<OutputFeature> features;
  for (int f = 0; f < 70; ++f) {
    OutputShape shape = random_shape(random_, uniform(random_, 1, 5) * 8);
    shape.items = uniform(random_, 0, 1) * uniform(random_, 1, 20);
    features.emplace_back(random_, shape);
  }
  compare(features);
}

TEST_F(OutputLookupOnDevice, FindsTheIdsOfEveryChunk) {
  for (const bool sequence : {false, true}) {
    for (const int64_t items : {kChunk - 1, kChunk, kChunk + 1, 2 * kChunk + 77}) {
      for (const int64_t width : {4, 64}) {
        std::deque<OutputFeature> features;
        features.emplace_back(random_, OutputShape{.width = width,
                                                   .items = items,
                                                   .longest = 3,
                                                   .sequence = sequence,
                                                   .weighted = true});
        ASSERT_NO_FATAL_FAILURE(compare(features)) << items << " items";
      }
    }
  }
}

TEST_F(OutputLookupOnDevice, TakesEmptyBagsLongBagsAndNone) {
  std::deque<OutputFeature> features;
  features.emplace_back(random_, OutputShape{.longest = 0});
  features.emplace_back(random_, OutputShape{.items = 3, .longest = 2000, .mean = true});
  features.emplace_back(random_, OutputShape{.items = 0});
  features.emplace_back(random_,
                        OutputShape{.longest = 0, .out_element = Element::kFloat16, .mean = true});
  compare(features);
  lookup().run({});
}

TEST_F(OutputLookupOnDevice, RefusesTablesInEightBits) {
  const BagOutputs coded{.table = {.coded = true}, .items = 1};
  try {
    lookup().run({&coded, 1});
    FAIL();
  } catch (const core::Error& error) {
    EXPECT_EQ(error.status(), SHARDREC_UNSUPPORTED);
  }
}

}  // namespace
}  // namespace shardrec::test
