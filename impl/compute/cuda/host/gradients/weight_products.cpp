#include "compute/cuda/host/gradients/weight_products.h"

#include <algorithm>
#include <utility>

#include "compute/cuda/host/vectors.h"

namespace shardrec::compute::cuda::host {
namespace {

constexpr int64_t kWordBits = 64;

int64_t words_of(const WeightGradients& feature) {
  return (feature.ids + kWordBits - 1) / kWordBits;
}

// Those that are read: none where nothing is added up.
std::span<const ProductRows> parts_of(const WeightGradients& feature) {
  return feature.terms.empty() ? std::span<const ProductRows>() : feature.parts;
}

bool all_in_vectors(const WeightProducts& block) {
  const TableRows& table = block.table;
  const auto numbers = static_cast<int64_t>(kVectorBytes / element_bytes(table.element));
  return in_vectors(table.data, table.stride, 0, table.element) &&
         in_vectors(block.gradients, 0, table.width, Element::kFloat32) &&
         std::all_of(block.ranges.begin(), block.ranges.end(), [&](const ColumnRange& range) {
           return range.begin % numbers == 0 && range.end % numbers == 0;
         });
}

}  // namespace

WeightProductTasks::WeightProductTasks(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)),
      index_(stream_),
      arguments_(stream_),
      words_(stream_),
      bits_(make_memory(stream_)) {}

void WeightProductTasks::run(std::span<const WeightProducts> blocks) {
  bags_.clear();
  for (const WeightProducts& block : blocks) bags_.push_back(block.bags);
  const std::span<const IndexedBags> indexed = index_.run(bags_);
  ranges_.clear();
  for (auto& of_element : kinds_) {
    for (Kind& kind : of_element) {
      kind.launch.clear();
      kind.first_range.clear();
    }
  }
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (blocks[b].bags->ids != 0) add(blocks[b], indexed[b].first_id);
  }
  run_products();
}

void WeightProductTasks::add(const WeightProducts& block, const uint32_t* first_id) {
  const TableRows& table = block.table;
  const bool vectors = all_in_vectors(block);
  Kind& kind = kinds_[static_cast<size_t>(table.element)][vectors ? 1 : 0];
  kind.first_range.push_back(ranges_.size());
  for (const ColumnRange& range : block.ranges) {
    ranges_.push_back({.begin = range.begin, .end = range.end});
  }
  kind.launch.add({.table = table.data,
                   .stride = static_cast<int64_t>(table.stride),
                   .width = table.width,
                   .ids = block.ids.data,
                   .ids_are_64 = block.ids.is_64,
                   .id_count = block.bags->ids,
                   .first_id = first_id,
                   .bags = block.bags->bags,
                   .range_count = std::ssize(block.ranges),
                   .gradients = block.gradients,
                   .out = block.out},
                  (block.bags->ids + SHARDREC_CUDA_PRODUCT_IDS - 1) / SHARDREC_CUDA_PRODUCT_IDS);
}

void WeightProductTasks::run_products() {
  size_t bytes = Arguments::bytes_of<shardrec_cuda_column_range>(ranges_.size());
  for (const auto& of_element : kinds_) {
    for (const Kind& kind : of_element) bytes += kind.launch.bytes();
  }
  arguments_.begin(bytes);
  const auto* const ranges = arguments_.add(std::span<const shardrec_cuda_column_range>(ranges_));
  for (auto& of_element : kinds_) {
    for (Kind& kind : of_element) {
      const std::span<shardrec_cuda_weight_products> jobs = kind.launch.jobs();
      for (size_t j = 0; j < jobs.size(); ++j) jobs[j].ranges = ranges + kind.first_range[j];
      kind.launch.send(arguments_);
    }
  }
  arguments_.send();
  for (size_t element = 0; element < kinds_.size(); ++element) {
    for (size_t vectors = 0; vectors < 2; ++vectors) {
      const auto& launch = kinds_[element][vectors].launch;
      require(table().take_products(stream_->handle(), static_cast<int32_t>(element),
                                    static_cast<int32_t>(vectors), launch.jobs_there(),
                                    launch.first_unit_there(), launch.count(), launch.units()),
              "multiply rows by gradients on device ", stream_->device());
    }
  }
}

void WeightProductTasks::run(std::span<const WeightGradients> features) {
  place_parts(features);
  parts_.clear();
  terms_.clear();
  first_terms_.clear();
  got_.clear();
  features_.clear();
  lists_.clear();
  for (const WeightGradients& feature : features) add(feature);
  send_gradients();
  require(table().mark_product_parts(stream_->handle(), marks_.jobs_there(),
                                     marks_.first_unit_there(), marks_.count(), marks_.units()),
          "find the parts of ids on device ", stream_->device());
  words_.index();
  require(table().sum_products(stream_->handle(), sums_.jobs_there(), sums_.first_unit_there(),
                               sums_.count(), sums_.units()),
          "add up the gradients of weights on device ", stream_->device());
}

// Makes room for which ids each part got, and for the places of these.
void WeightProductTasks::place_parts(std::span<const WeightGradients> features) {
  size_t words = 0;
  for (const WeightGradients& feature : features) {
    words += parts_of(feature).size() * static_cast<size_t>(words_of(feature));
  }
  next_bits_ = bits_.resize_as<uint64_t>(words).data();
  words_.clear();
  const uint64_t* bits = next_bits_;
  for (const WeightGradients& feature : features) {
    for (size_t part = 0; part < parts_of(feature).size(); ++part) {
      words_.add(bits);
      words_.end_union(words_of(feature));
      bits += words_of(feature);
    }
  }
  words_.place();
}

void WeightProductTasks::add(const WeightGradients& feature) {
  const std::span<const ProductRows> parts = parts_of(feature);
  lists_.push_back({.part = parts_.size(),
                    .term = terms_.size(),
                    .first_term = first_terms_.size(),
                    .got = got_.size()});
  features_.push_back({.ids = feature.ids,
                       .intervals = feature.intervals,
                       .part_count = std::ssize(parts),
                       .bits = next_bits_,
                       .out = feature.out});
  next_bits_ += std::ssize(parts) * words_of(feature);
  for (const ProductRows& part : parts) {
    parts_.push_back(
        {.rows = part.rows, .ranges = part.ranges, .presence = words_.presence(parts_.size())});
  }
  for (const ProductTerm& term : feature.terms) {
    terms_.push_back({.part = term.part, .range = term.range});
  }
  if (feature.terms.empty()) return;
  first_terms_.insert(first_terms_.end(), feature.first_term.begin(), feature.first_term.end());
  for (size_t i = 0; i + 1 < feature.first_term.size(); ++i) {
    got_.resize(got_.size() + parts.size(), uint8_t{0});
    const auto first = static_cast<size_t>(feature.first_term[i]);
    const auto end = static_cast<size_t>(feature.first_term[i + 1]);
    for (const ProductTerm& term : feature.terms.subspan(first, end - first)) {
      // Each part once, however many ranges it has.
      if (term.range == 0) got_[got_.size() - parts.size() + static_cast<size_t>(term.part)] = 1;
    }
  }
}

void WeightProductTasks::send_gradients() {
  arguments_.begin(Arguments::bytes_of<shardrec_cuda_product_rows>(parts_.size()) +
                   Arguments::bytes_of<shardrec_cuda_product_term>(terms_.size()) +
                   Arguments::bytes_of<int32_t>(first_terms_.size()) +
                   Arguments::bytes_of<uint8_t>(got_.size()) +
                   2 * (Arguments::bytes_of<shardrec_cuda_weight_gradients>(features_.size()) +
                        Arguments::bytes_of<int64_t>(features_.size() + 1)));
  const auto* const parts = arguments_.add(std::span<const shardrec_cuda_product_rows>(parts_));
  const auto* const terms = arguments_.add(std::span<const shardrec_cuda_product_term>(terms_));
  const auto* const first_terms = arguments_.add(std::span<const int32_t>(first_terms_));
  const auto* const got = arguments_.add(std::span<const uint8_t>(got_));
  marks_.clear();
  sums_.clear();
  for (size_t f = 0; f < features_.size(); ++f) {
    shardrec_cuda_weight_gradients& feature = features_[f];
    const Lists& lists = lists_[f];
    const bool any = (f + 1 < lists_.size() ? lists_[f + 1].term : terms_.size()) != lists.term;
    feature.parts = parts + lists.part;
    feature.terms = any ? terms + lists.term : nullptr;
    feature.first_term = first_terms + lists.first_term;
    feature.got = got + lists.got;
    if (any) marks_.add(feature, (feature.ids + kWordBits - 1) / kWordBits);
    sums_.add(feature, (feature.ids + kThreads - 1) / kThreads);
  }
  marks_.send(arguments_);
  sums_.send(arguments_);
  arguments_.send();
}

}  // namespace shardrec::compute::cuda::host
