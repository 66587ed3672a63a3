#include "compute/cuda/host/assembly/assembly.h"

#include <algorithm>
#include <utility>

#include "compute/cuda/host/vectors.h"

namespace shardrec::compute::cuda::host {
namespace {

bool all_in_vectors(const SequenceOutput& output) {
  // Of 16 bits, four numbers are stored at once.
  if (!in_vectors(output.out, output.out_stride, output.cols, output.out_element,
                  4 * element_bytes(output.out_element))) {
    return false;
  }
  return std::all_of(output.addends.begin(), output.addends.end(), [&](const SentRows& rows) {
    return in_vectors(rows.rows, static_cast<size_t>(rows.stride), output.cols, Element::kFloat32);
  });
}

}  // namespace

Assembly::Assembly(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)),
      held_(stream_),
      sums_(stream_),
      counted_(stream_),
      arguments_(stream_),
      next_rows_(make_memory(stream_)),
      source_(make_memory(stream_)) {}

void Assembly::count(std::span<const NodeSumCount> counts, std::span<int64_t> rows) {
  if (counts.empty()) return;
  held_.clear();
  for (const NodeSumCount& count : counts) held_.add_count(count);
  held_.run();
  held_.add_up(counted_.begin<int64_t>(counts.size(), 0));
  const std::span<const int64_t> counted = counted_.fetch<int64_t>();
  std::copy(counted.begin(), counted.end(), rows.begin());
}

void Assembly::run(std::span<const PooledOutput> outputs) {
  if (outputs.empty()) return;
  held_.clear();
  for (const PooledOutput& output : outputs) {
    for (const NodeRows& node : output.nodes) {
      if (node.chunk_sums != nullptr) {
        held_.add(node.addends, output.bags, node.chunk_sums);
        continue;
      }
      for (const SentRows& addend : node.addends) {
        held_.add({&addend, 1}, output.bags, addend.bags->chunk_rows);
      }
    }
  }
  held_.run();
  sums_.clear();
  size_t list = 0;
  for (const PooledOutput& output : outputs) add_sums(output, list);
  sums_.run("assemble outputs");
}

// list: the next one of held_.
void Assembly::add_sums(const PooledOutput& output, size_t& list) {
  for (const NodeRows& node : output.nodes) {
    if (node.chunk_sums != nullptr) {
      sums_.add({.presence = held_.presence(list++),
                 .rows = node.sums,
                 .stride = output.cols,
                 .begins_node = 1});
      continue;
    }
    for (const SentRows& addend : node.addends) {
      sums_.add({.presence = held_.presence(list++),
                 .rows = addend.rows,
                 .stride = addend.stride,
                 .begins_node = &addend == node.addends.data()});
    }
  }
  sums_.end_sum({.items = output.bags,
                 .lengths = output.lengths,
                 .sample_starts = output.samples.starts,
                 .samples = output.samples.samples,
                 .cols = output.cols,
                 .out = output.out,
                 .out_stride = static_cast<int64_t>(output.out_stride),
                 .out_element = static_cast<int32_t>(output.out_element),
                 .mean = output.mean});
}

void Assembly::run(std::span<const SequenceOutput> outputs) {
  sequences_.clear();
  addends_.clear();
  addend_of_.clear();
  for (const SequenceOutput& output : outputs) {
    if (output.ids != 0) add(output);
  }
  if (sequences_.empty()) return;
  send_sequences();
  require(table().find_sequence_rows(stream_->handle(), chunks_.jobs_there(),
                                     chunks_.first_unit_there(), chunks_.count(), chunks_.units()),
          "find the rows of sequences on device ", stream_->device());
  for (int32_t vectors = 0; vectors < 2; ++vectors) {
    const LaunchList<shardrec_cuda_sequence>& copies = copies_[vectors];
    require(table().copy_sequence_rows(stream_->handle(), vectors, copies.jobs_there(),
                                       copies.first_unit_there(), copies.count(), copies.units()),
            "assemble sequences on device ", stream_->device());
  }
}

void Assembly::add(const SequenceOutput& output) {
  const bool vectors = all_in_vectors(output);
  sequences_.push_back({.job = {.addend_count = std::ssize(output.addends),
                                .ids = output.ids,
                                .intervals = output.intervals,
                                .cols = output.cols,
                                .out = output.out,
                                .out_stride = static_cast<int64_t>(output.out_stride),
                                .out_element = static_cast<int32_t>(output.out_element),
                                .lanes = lanes_for(output.cols, vectors ? 4 : 1)},
                        .first_addend = addends_.size(),
                        .first_interval = addend_of_.size(),
                        .vectors = vectors});
  for (const SentRows& rows : output.addends) {
    const SentBags& bags = *rows.bags;
    const bool coded = bags.unique != 0;
    addends_.push_back(
        {.chunk_rows = bags.chunk_rows,
         .codes = coded ? static_cast<const unsigned char*>(static_cast<const void*>(bags.codes))
                        : nullptr,
         .code_bytes =
             coded ? static_cast<int64_t>(code_bytes(static_cast<uint64_t>(bags.unique))) : 0,
         .rows = rows.rows,
         .stride = rows.stride});
  }
  addend_of_.insert(addend_of_.end(), output.addend_of.begin(), output.addend_of.end());
}

// Brings the sequences to the device, with room for their work.
void Assembly::send_sequences() {
  size_t next_rows = 0;
  size_t ids = 0;
  for (const Sequence& sequence : sequences_) {
    next_rows += static_cast<size_t>(chunks_of(sequence.job.ids) * sequence.job.addend_count);
    ids += static_cast<size_t>(sequence.job.ids);
  }
  uint32_t* next_row = next_rows_.resize_as<uint32_t>(next_rows).data();
  const float** source = source_.resize_as<const float*>(ids).data();
  arguments_.begin(Arguments::bytes_of<shardrec_cuda_sequence_rows>(addends_.size()) +
                   Arguments::bytes_of<int32_t>(addend_of_.size()) +
                   3 * (Arguments::bytes_of<shardrec_cuda_sequence>(sequences_.size()) +
                        Arguments::bytes_of<int64_t>(sequences_.size() + 1)));
  const auto* const addends =
      arguments_.add(std::span<const shardrec_cuda_sequence_rows>(addends_));
  const auto* const addend_of = arguments_.add(std::span<const int32_t>(addend_of_));
  chunks_.clear();
  for (auto& copies : copies_) copies.clear();
  for (const Sequence& sequence : sequences_) {
    shardrec_cuda_sequence job = sequence.job;
    job.addends = addends + sequence.first_addend;
    job.addend_of = addend_of + sequence.first_interval;
    job.next_rows = next_row;
    job.source = source;
    next_row += chunks_of(job.ids) * job.addend_count;
    source += job.ids;
    chunks_.add(job, chunks_of(job.ids));
    const int64_t at_once = kThreads / job.lanes * SHARDREC_CUDA_COPIES_AT_ONCE;
    copies_[sequence.vectors ? 1 : 0].add(job, (job.ids + at_once - 1) / at_once);
  }
  chunks_.send(arguments_);
  for (auto& copies : copies_) copies.send(arguments_);
  arguments_.send();
}

}  // namespace shardrec::compute::cuda::host
