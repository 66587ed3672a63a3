#include "embedding/forward/output.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace shardrec::embedding {
namespace {

// A task reads about this many bytes of rows: long enough to hide its start, short enough to
// balance.
constexpr int64_t kTaskBytes = 128 << 10;

int64_t ids_per_task(int64_t width) {
  return std::max<int64_t>(64, kTaskBytes / (width * static_cast<int64_t>(sizeof(float))));
}

// Which bags have rows; where the rows begin.
std::byte* write_presence(const ReceivedBlock& block, std::byte* out) {
  const PartialHeader header{static_cast<uint32_t>(block.samples),
                             static_cast<uint32_t>(block.rows)};
  std::memset(out, 0, presence_bytes(block.samples));
  std::memcpy(out, &header, sizeof header);
  auto* words = static_cast<uint64_t*>(static_cast<void*>(out + sizeof header));
  for_each_bag(block, [&](int64_t, int64_t sample, uint32_t) {
    words[sample / 64] |= uint64_t{1} << (sample % 64);
  });
  return out + presence_bytes(block.samples);
}

}  // namespace

PartialSums::PartialSums(const Layout& layout)
    : layout_(layout), messages_(static_cast<size_t>(layout.ranks())) {
  const int32_t node = layout.node_of(layout.rank());
  for (int to = 0; to < layout.ranks(); ++to) {
    const bool adds = layout.sums_on_nodes() && layout.node_of(to) == node;
    for (int source = 0; adds && source < layout.ranks(); ++source) {
      if (layout.node_of(source) == node || layout.adder(source, node) != to) continue;
      sections_.push_back({.to = to, .source = source, .by_node = true});
    }
    sections_.push_back({.to = to, .source = to, .by_node = false});
  }
  int32_t shard = -1;
  int32_t part = -1;
  for (const Block& block : layout.blocks_of(layout.rank())) {
    // A table without features has no block; its shard is passed over.
    while (part != block.part) part = layout.parts_of(layout.rank())[static_cast<size_t>(++shard)];
    shard_of_block_.push_back(shard);
  }
}

// Is an own block in a section?
bool PartialSums::sends(std::span<const uint8_t> direct, size_t block,
                        const Section& section) const {
  const Block& own = layout_.blocks_of(layout_.rank())[block];
  if (layout_.goes_by_node(own, section.source) != section.by_node) return false;
  return layout_.answers(layout_.parts()[static_cast<size_t>(own.part)], section.source) &&
         (section.source != layout_.rank() || direct[block] == 0);
}

void PartialSums::compute(const Inbox& inbox, std::span<const uint8_t> direct,
                          std::span<const Shard> shards, const StepContext& context,
                          core::Scratch& buffer) {
  const auto blocks = layout_.blocks_of(layout_.rank());
  size_t bytes = 0;
  size_t offsets = 0;
  size_t longest = 0;  // sequence
  size_t most_tasks = 0;
  size_t most_own_tasks = 0;
  for (const Section& section : sections_) {
    const auto received = inbox.blocks(section.source);
    size_t& most = section.to == layout_.rank() ? most_own_tasks : most_tasks;
    for (size_t b = 0; b < blocks.size(); ++b) {
      if (!sends(direct, b, section)) continue;
      const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
      if (section.by_node) bytes += presence_bytes(received[b].samples);
      bytes += rows_bytes(received[b].answers(blocks[b].sequence), part.width);
      if (blocks[b].sequence) {
        longest = std::max(longest, static_cast<size_t>(received[b].answers(true)) + 1);
      } else {
        offsets += static_cast<size_t>(received[b].rows) + 1;
      }
      most += static_cast<size_t>(received[b].ids / ids_per_task(part.width)) + 1;
    }
  }
  std::byte* out = buffer.resize(bytes);
  int64_t* offset = context.work.resize_as<int64_t>(offsets + longest).data();
  // Bags of one id each, for all sequences.
  const std::span<int64_t> count(offset + offsets, longest);
  std::iota(count.begin(), count.end(), int64_t{0});

  tasks_.clear();
  own_tasks_.clear();
  core::reserve_with_slack(tasks_, most_tasks);
  core::reserve_with_slack(own_tasks_, most_own_tasks);
  std::byte* message = out;
  for (const Section& section : sections_) {
    const auto received = inbox.blocks(section.source);
    std::vector<Task>& tasks = section.to == layout_.rank() ? own_tasks_ : tasks_;
    for (size_t b = 0; b < blocks.size(); ++b) {
      if (!sends(direct, b, section)) continue;
      const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
      const ReceivedBlock& block = received[b];
      if (section.by_node) out = write_presence(block, out);
      const Shard& shard = shards[static_cast<size_t>(shard_of_block_[b])];
      Task task;
      task.job = {.table = shard.weights(),
                  .element = shard.element(),
                  .stride = static_cast<size_t>(shard.width()),
                  .width = shard.width(),
                  .ids = block.id_data,
                  .weights = block.weights,
                  .offsets = nullptr,
                  .out = out,
                  .out_stride = static_cast<size_t>(shard.width())};
      if (blocks[b].sequence) {
        if (block.unique != 0) task.job.ids = block.unique_ids;
        add_sequence(task, block, count.data(), tasks);
      } else {
        add_bags(task, block, offset, tasks);
        offset += block.rows + 1;
      }
      out += rows_bytes(block.answers(blocks[b].sequence), part.width);
    }
    if (section.by_node) continue;  // the rank's own section is its last
    messages_[static_cast<size_t>(section.to)] = {message, out};
    message = out;
  }
  run(tasks_, context);
}

void PartialSums::compute_own(const StepContext& context) { run(own_tasks_, context); }

void PartialSums::run(const std::vector<Task>& tasks, const StepContext& context) {
  context.threads.parallel_for(std::ssize(tasks), 1, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      const Task& task = tasks[static_cast<size_t>(t)];
      context.kernels.pooled_lookup(task.job, task.first, task.last);
    }
  });
}

// Cuts the bags of a block into tasks of about as many ids.
void PartialSums::add_bags(Task task, const ReceivedBlock& block, int64_t* offset,
                           std::vector<Task>& tasks) {
  task.job.offsets = offset;
  const int64_t enough = ids_per_task(task.job.width);
  int64_t end = 0;
  int64_t task_ids = 0;
  offset[0] = 0;
  for_each_bag(block, [&](int64_t bag, int64_t, uint32_t length) {
    end += length;
    offset[bag + 1] = end;
    if (end - task_ids >= enough) {
      task.last = bag + 1;
      tasks.push_back(task);
      task.first = bag + 1;
      task_ids = end;
    }
  });
  if (task.first < block.rows) {
    task.last = block.rows;
    tasks.push_back(task);
  }
}

void PartialSums::add_sequence(Task task, const ReceivedBlock& block, const int64_t* count,
                               std::vector<Task>& tasks) {
  task.job.offsets = count;
  const int64_t enough = ids_per_task(task.job.width);
  for (; task.first < block.answers(true); task.first = task.last) {
    task.last = std::min(task.first + enough, block.answers(true));
    tasks.push_back(task);
  }
}

}  // namespace shardrec::embedding
