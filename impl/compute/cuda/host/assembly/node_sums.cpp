#include "compute/cuda/host/assembly/node_sums.h"

#include <algorithm>
#include <utility>

namespace shardrec::compute::cuda::host {
namespace {

constexpr int64_t kWordBits = 64;

int64_t words_of(const NodeSum& sum) { return (sum.samples + kWordBits - 1) / kWordBits; }

void add_union(const NodeSum& sum, PresentWords& words) {
  for (const PresentRows& addend : sum.addends) words.add(addend.present);
  words.end_union(words_of(sum));
}

}  // namespace

NodeSummation::NodeSummation(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)), words_(stream_), sums_(stream_), counted_(stream_) {}

void NodeSummation::count(std::span<const NodeSum> sums, std::span<int64_t> rows) {
  if (sums.empty()) return;
  words_.clear();
  for (const NodeSum& sum : sums) add_union(sum, words_);
  words_.count(counted_.begin<int64_t>(sums.size(), 0));
  const std::span<const int64_t> counted = counted_.fetch<int64_t>();
  std::copy(counted.begin(), counted.end(), rows.begin());
}

void NodeSummation::run(std::span<const NodeSum> sums) {
  if (sums.empty()) return;
  words_.clear();
  for (const NodeSum& sum : sums) {
    for (const PresentRows& addend : sum.addends) {
      words_.add(addend.present);
      words_.end_union(words_of(sum));
    }
    add_union(sum, words_);
  }
  words_.place();
  words_.index();
  sums_.clear();
  size_t next = 0;
  for (const NodeSum& sum : sums) {
    for (const PresentRows& addend : sum.addends) {
      sums_.add({.presence = words_.presence(next++),
                 .rows = addend.rows,
                 .stride = addend.stride,
                 .begins_node = &addend == sum.addends.data()});
    }
    sums_.end_sum({.items = words_of(sum) * kWordBits,
                   .out_rows = words_.presence(next++),
                   .cols = sum.cols,
                   .out = sum.out,
                   .out_stride = sum.cols,
                   .out_element = SHARDREC_CUDA_FLOAT32});
  }
  sums_.run("add up the rows of nodes");
}

}  // namespace shardrec::compute::cuda::host
