#include "compute/cpu/assembly/assembly.h"

#include <algorithm>
#include <cstring>

#include "compute/cpu/tasks/shares.h"
#include "core/align.h"

namespace shardrec::compute::cpu {
namespace {

// What one thread needs while it works on a chunk of bags.
struct Workspace {
  int64_t* next_row = nullptr;  // by addend of all nodes
  int64_t* next_sum = nullptr;  // by node
  float* row = nullptr;         // [cols], where the output is not written in place
  float* node_sum = nullptr;    // [cols]
};

// Has any addend ids of a bag, the next one in order? Steps over its rows.
bool take_bag(std::span<const SentRows> addends, int64_t bag, int64_t* next_row) {
  bool any = false;
  for (const SentRows& addend : addends) {
    const bool holds = addend.bags->holds(*next_row, bag);
    *next_row++ += holds;
    any = any || holds;
  }
  return any;
}

void copy(const float* x, float* row, int64_t cols) {
  std::memcpy(row, x, static_cast<size_t>(cols) * sizeof(float));
}

// Adds what the nodes have of one bag.
void add_nodes(const PooledOutput& output, const Kernels& kernels, int64_t bag,
               const Workspace& work, float* row) {
  bool row_started = false;
  int64_t* next_row = work.next_row;
  for (size_t n = 0; n < output.nodes.size(); ++n) {
    const NodeRows& node = output.nodes[n];
    int64_t* next = next_row;
    next_row += node.addends.size();
    if (node.chunk_sums != nullptr) {
      if (!take_bag(node.addends, bag, next)) continue;
      const float* x = node.sums + work.next_sum[n]++ * output.cols;
      if (row_started) {
        kernels.add(x, row, output.cols);
      } else {
        copy(x, row, output.cols);
        row_started = true;
      }
      continue;
    }
    // The first node's sum grows in place; another's is taken apart, then added.
    float* sum = row_started ? work.node_sum : row;
    bool started = false;
    for (const SentRows& addend : node.addends) {
      int64_t& next_of_addend = *next++;
      if (!addend.bags->holds(next_of_addend, bag)) continue;
      const float* x = addend.rows + next_of_addend++ * addend.stride;
      if (started) {
        kernels.add(x, sum, output.cols);
      } else {
        copy(x, sum, output.cols);
        started = true;
      }
    }
    if (started && row_started) kernels.add(work.node_sum, row, output.cols);
    row_started = row_started || started;
  }
}

void start_chunk(const PooledOutput& output, int64_t chunk, const Workspace& work) {
  int64_t* next_row = work.next_row;
  for (size_t n = 0; n < output.nodes.size(); ++n) {
    const NodeRows& node = output.nodes[n];
    for (const SentRows& addend : node.addends) *next_row++ = addend.bags->chunk_rows[chunk];
    if (node.chunk_sums != nullptr) work.next_sum[n] = node.chunk_sums[chunk];
  }
}

template <class Output>
void* row_of(const Output& output, int64_t row) {
  return static_cast<std::byte*>(output.out) +
         static_cast<size_t>(row) * output.out_stride * element_bytes(output.out_element);
}

void assemble_bags(const PooledOutput& output, int64_t chunk, const Kernels& kernels,
                   const Workspace& work) {
  const int64_t first = chunk * kChunk;
  const int64_t last = std::min(first + kChunk, output.bags);
  const bool expands = output.samples.starts != nullptr;
  const bool in_place = output.out_element == Element::kFloat32 && !expands;
  start_chunk(output, chunk, work);
  for (int64_t bag = first; bag < last; ++bag) {
    float* row = in_place ? static_cast<float*>(row_of(output, bag)) : work.row;
    const uint32_t length = output.lengths[bag];
    if (length == 0) {
      std::memset(row, 0, static_cast<size_t>(output.cols) * sizeof(float));
    } else {
      add_nodes(output, kernels, bag, work, row);
      if (output.mean) kernels.divide(row, static_cast<float>(length), output.cols);
    }
    if (in_place) continue;
    if (!expands) {
      kernels.narrow(row, output.out_element, row_of(output, bag), output.cols);
      continue;
    }
    for (const uint32_t sample : output.samples.of(bag)) {
      kernels.narrow(row, output.out_element, row_of(output, sample), output.cols);
    }
  }
}

// The row of the output message for the n-th id of a sequence's block.
int64_t answer_of(const SentBags& bags, int64_t n) {
  if (bags.unique == 0) return n;
  const size_t bytes = code_bytes(static_cast<uint64_t>(bags.unique));
  if (bytes == 1) return static_cast<int64_t>(bags.codes[n]);
  if (bytes == 2) {
    uint16_t code = 0;
    std::memcpy(&code, bags.codes + 2 * n, sizeof code);
    return code;
  }
  uint32_t code = 0;
  std::memcpy(&code, bags.codes + 4 * n, sizeof code);
  return code;
}

void assemble_sequence(const SequenceOutput& output, int64_t chunk, const Kernels& kernels,
                       int64_t* next_row) {
  const int64_t first = chunk * kChunk;
  const int64_t last = std::min(first + kChunk, output.ids);
  for (size_t a = 0; a < output.addends.size(); ++a) {
    next_row[a] = output.addends[a].bags->chunk_rows[chunk];
  }
  for (int64_t id = first; id < last; ++id) {
    void* row = row_of(output, id);
    const int32_t interval = output.intervals == nullptr ? 0 : output.intervals[id];
    if (interval == kDroppedId) {
      std::memset(row, 0, static_cast<size_t>(output.cols) * element_bytes(output.out_element));
      continue;
    }
    const auto a = static_cast<size_t>(output.addend_of[static_cast<size_t>(interval)]);
    const SentRows& addend = output.addends[a];
    const int64_t answer = answer_of(*addend.bags, next_row[a]++);
    kernels.narrow(addend.rows + answer * addend.stride, output.out_element, row, output.cols);
  }
}

}  // namespace

void Assembly::count(std::span<const NodeSumCount> counts, std::span<int64_t> rows,
                     const Context& context) {
  size_t addends = 0;
  for (const NodeSumCount& count : counts) addends = std::max(addends, count.addends.size());
  int64_t* next_rows = context.work.resize_as<int64_t>(counts.size() * addends).data();
  for_each_task(counts.size(), context, [&](size_t c) {
    const NodeSumCount& count = counts[c];
    int64_t* next_row = next_rows + c * addends;
    std::fill_n(next_row, count.addends.size(), int64_t{0});
    uint32_t* chunk_sums = count.chunk_sums;
    uint32_t before = 0;
    for (int64_t bag = 0; bag < count.bags; ++bag) {
      if (bag % kChunk == 0) *chunk_sums++ = before;
      before += take_bag(count.addends, bag, next_row);
    }
    *chunk_sums = before;
    rows[c] = before;
  });
}

void Assembly::run(std::span<const PooledOutput> outputs, const Context& context) {
  size_t most_addends = 0;
  size_t most_nodes = 0;
  int64_t widest = 0;
  chunks_.clear();
  chunks_.reserve(outputs.size());
  for (const PooledOutput& output : outputs) {
    size_t addends = 0;
    for (const NodeRows& node : output.nodes) addends += node.addends.size();
    most_addends = std::max(most_addends, addends);
    most_nodes = std::max(most_nodes, output.nodes.size());
    widest = std::max(widest, output.cols);
    chunks_.add(chunks_of(output.bags));
  }
  const size_t row_bytes = core::align_up(static_cast<size_t>(widest) * sizeof(float), 64);
  const size_t scratch_bytes = 2 * row_bytes + (most_addends + most_nodes) * sizeof(int64_t);
  for_each_with_scratch(
      chunks_.count(), scratch_bytes, context, [&](int64_t c, std::byte* scratch) {
        auto* next = static_cast<int64_t*>(static_cast<void*>(scratch + 2 * row_bytes));
        const Workspace workspace{
            .next_row = next,
            .next_sum = next + most_addends,
            .row = static_cast<float*>(static_cast<void*>(scratch)),
            .node_sum = static_cast<float*>(static_cast<void*>(scratch + row_bytes))};
        const auto place = chunks_.find(c);
        assemble_bags(outputs[place.group], place.task, context.kernels, workspace);
      });
}

void Assembly::run(std::span<const SequenceOutput> outputs, const Context& context) {
  size_t most_addends = 0;
  chunks_.clear();
  chunks_.reserve(outputs.size());
  for (const SequenceOutput& output : outputs) {
    most_addends = std::max(most_addends, output.addends.size());
    chunks_.add(chunks_of(output.ids));
  }
  const size_t scratch_bytes = most_addends * sizeof(int64_t);
  for_each_with_scratch(chunks_.count(), scratch_bytes, context,
                        [&](int64_t c, std::byte* scratch) {
                          const auto place = chunks_.find(c);
                          assemble_sequence(outputs[place.group], place.task, context.kernels,
                                            static_cast<int64_t*>(static_cast<void*>(scratch)));
                        });
}

}  // namespace shardrec::compute::cpu
