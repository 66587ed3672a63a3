#include "embedding/index_plan.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace shardrec::embedding {
namespace {

constexpr int kMostDigitBits = 11;
constexpr int64_t kLeastPerChunk = 1 << 14;

// How many pieces a pass over n occurrences is cut into. The result does not depend on it.
int64_t chunk_count(int64_t n, const core::Threads& threads) {
  return std::clamp<int64_t>(n / kLeastPerChunk, 1, threads.count());
}

template <class T>
T* carve(std::byte*& from, size_t count) {
  std::byte* at = from;
  from += align_up(count * sizeof(T), 64);
  return static_cast<T*>(static_cast<void*>(at));
}

}  // namespace

IndexPlan::IndexPlan(const Layout& layout, int32_t part, size_t first_block)
    : layout_(layout),
      part_(layout.parts()[static_cast<size_t>(part)]),
      first_block_(first_block),
      features_(layout.table(part_.table).features.size()) {}

void IndexPlan::build(const Inbox& inbox, std::span<const float* const> gradients,
                      core::Threads& threads, core::Scratch& work) {
  occurrences_ = 0;
  bags_ = 0;
  for (int source = 0; source < layout_.ranks(); ++source) {
    for (const ReceivedBlock& block : inbox.blocks(source).subspan(first_block_, features_)) {
      occurrences_ += block.ids;
      bags_ += block.rows;
    }
  }
  if (part_.rows <= (int64_t{1} << 32)) {
    build_with<uint32_t>(inbox, gradients, threads, work);
  } else {
    build_with<uint64_t>(inbox, gradients, threads, work);
  }
}

void IndexPlan::clear() {
  occurrences_ = 0;
  rows_ = {};
  run_ = {};
}

void IndexPlan::describe(compute::RowUpdate& job) const {
  job.rows = rows_.data();
  job.run = run_.data();
  job.bags = bag_of_.data();
  job.weights = weight_of_.empty() ? nullptr : weight_of_.data();
  job.gradients = gradient_of_.data();
  job.blocks = block_of_.data();
}

template <class Key>
void IndexPlan::build_with(const Inbox& inbox, std::span<const float* const> gradients,
                           core::Threads& threads, core::Scratch& work) {
  const auto n = static_cast<size_t>(occurrences_);
  const bool weighted = inbox.weighted();
  std::byte* sorted = sorted_memory_.resize(2 * align_up(n * sizeof(uint32_t), 64));
  bag_of_ = {carve<uint32_t>(sorted, n), n};
  weight_of_ = weighted ? std::span(carve<float>(sorted, n), n) : std::span<float>();
  std::byte* bags = bag_memory_.resize(static_cast<size_t>(bags_) * 12 + 128);
  gradient_of_ = {carve<const float*>(bags, static_cast<size_t>(bags_)),
                  static_cast<size_t>(bags_)};
  block_of_ = {carve<uint32_t>(bags, static_cast<size_t>(bags_)), static_cast<size_t>(bags_)};

  const int64_t chunks = chunk_count(occurrences_, threads);
  const int key_bits = std::bit_width(static_cast<uint64_t>(part_.rows - 1));
  const int passes = (key_bits + kMostDigitBits - 1) / kMostDigitBits;
  const int digit_bits = passes == 0 ? 0 : (key_bits + passes - 1) / passes;
  const size_t digits = size_t{1} << digit_bits;

  std::byte* scratch =
      work.resize(2 * align_up(n * sizeof(Key), 64) + 2 * align_up(n * sizeof(uint32_t), 64) +
                  align_up(static_cast<size_t>(chunks) * digits * sizeof(uint32_t), 64) +
                  align_up(static_cast<size_t>(chunks + 1) * sizeof(int64_t), 64));
  Columns<Key> sides[2];
  sides[0] = {carve<Key>(scratch, n), bag_of_.data(), weight_of_.data()};
  sides[1] = {carve<Key>(scratch, n), carve<uint32_t>(scratch, n),
              weighted ? carve<float>(scratch, n) : nullptr};
  auto* counts = carve<uint32_t>(scratch, static_cast<size_t>(chunks) * digits);
  const std::span firsts(carve<int64_t>(scratch, static_cast<size_t>(chunks + 1)),
                         static_cast<size_t>(chunks + 1));

  // Each pass moves from one side to the other; the last one ends on side 0.
  collect(inbox, gradients, threads, sides[passes % 2]);
  for (int pass = 0; pass < passes; ++pass) {
    const Columns<Key>& from = sides[(passes - pass) % 2];
    const Columns<Key>& to = sides[(passes - pass + 1) % 2];
    const int shift = pass * digit_bits;
    const auto digit = [&](int64_t i) {
      return static_cast<size_t>(from.keys[i] >> shift) & (digits - 1);
    };
    threads.parallel_for(chunks, 1, [&](int64_t first, int64_t last) {
      for (int64_t c = first; c < last; ++c) {
        uint32_t* count = counts + static_cast<size_t>(c) * digits;
        std::fill(count, count + digits, 0U);
        const int64_t end = occurrences_ * (c + 1) / chunks;
        for (int64_t i = occurrences_ * c / chunks; i < end; ++i) ++count[digit(i)];
      }
    });
    uint32_t total = 0;
    for (size_t d = 0; d < digits; ++d) {
      for (int64_t c = 0; c < chunks; ++c) {
        uint32_t& count = counts[static_cast<size_t>(c) * digits + d];
        total += std::exchange(count, total);
      }
    }
    threads.parallel_for(chunks, 1, [&](int64_t first, int64_t last) {
      for (int64_t c = first; c < last; ++c) {
        uint32_t* place = counts + static_cast<size_t>(c) * digits;
        const int64_t end = occurrences_ * (c + 1) / chunks;
        for (int64_t i = occurrences_ * c / chunks; i < end; ++i) {
          const uint32_t at = place[digit(i)]++;
          to.keys[at] = from.keys[i];
          to.bags[at] = from.bags[i];
          if (weighted) to.weights[at] = from.weights[i];
        }
      }
    });
  }
  find_runs(sides[0].keys, threads, firsts);
}

// Lists the occurrences in canonical order.
template <class Key>
void IndexPlan::collect(const Inbox& inbox, std::span<const float* const> gradients,
                        core::Threads& threads, const Columns<Key>& out) {
  const auto ranks = static_cast<size_t>(layout_.ranks());
  const size_t own_blocks = layout_.blocks_of(layout_.rank()).size();
  const auto blocks_per_feature = static_cast<uint32_t>(inbox.most_samples() / kBlockSamples + 1);
  const auto own_layout = layout_.blocks_of(layout_.rank());
  threads.parallel_for(
      static_cast<int64_t>(features_ * ranks), 1, [&](int64_t first, int64_t last) {
        // Where the pieces before stand: few of them, so each counts again.
        int64_t at = 0;
        int64_t bag_base = 0;
        for (int64_t item = 0; item < last; ++item) {
          const auto k = static_cast<size_t>(item) / ranks;
          const auto source = static_cast<int>(static_cast<size_t>(item) % ranks);
          const size_t b = first_block_ + k;
          const ReceivedBlock& block = inbox.blocks(source)[b];
          if (item < first) {
            at += block.ids;
            bag_base += block.rows;
            continue;
          }
          const float* gradient = gradients[static_cast<size_t>(source) * own_blocks + b];
          const uint32_t feature_block = static_cast<uint32_t>(k) * blocks_per_feature;
          const bool sequence = own_layout[b].sequence;
          int64_t id = 0;
          const auto* ids32 = static_cast<const int32_t*>(block.id_data.data);
          const auto* ids64 = static_cast<const int64_t*>(block.id_data.data);
          for_each_bag(block, [&](int64_t bag, int64_t sample, uint32_t length) {
            const uint32_t number =
                feature_block +
                static_cast<uint32_t>((block.first_sample + sample) / kBlockSamples);
            const auto place = [&](int64_t row) {
              const auto ordinal = static_cast<uint32_t>(bag_base + row);
              gradient_of_[ordinal] = gradient + row * part_.width;
              block_of_[ordinal] = number;
              return ordinal;
            };
            // Each id of a sequence is a bag of its own.
            uint32_t ordinal = sequence ? 0 : place(bag);
            for (const int64_t end = id + length; id < end; ++id, ++at) {
              if (sequence) ordinal = place(id);
              out.keys[at] =
                  block.id_data.is_64 ? static_cast<Key>(ids64[id]) : static_cast<Key>(ids32[id]);
              out.bags[at] = ordinal;
              if (out.weights != nullptr) {
                out.weights[at] = block.weights != nullptr ? block.weights[id] : 1.0F;
              }
            }
          });
          bag_base += block.rows;
        }
      });
}

template <class Key>
void IndexPlan::find_runs(const Key* keys, core::Threads& threads, std::span<int64_t> firsts) {
  const auto chunks = static_cast<int64_t>(firsts.size()) - 1;
  const auto starts_run = [&](int64_t i) { return i == 0 || keys[i] != keys[i - 1]; };
  threads.parallel_for(chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      int64_t count = 0;
      const int64_t end = occurrences_ * (c + 1) / chunks;
      for (int64_t i = occurrences_ * c / chunks; i < end; ++i) count += starts_run(i);
      firsts[static_cast<size_t>(c) + 1] = count;
    }
  });
  firsts[0] = 0;
  for (size_t c = 1; c < firsts.size(); ++c) firsts[c] += firsts[c - 1];
  const auto unique = static_cast<size_t>(firsts.back());
  std::byte* memory = unique_memory_.resize(2 * align_up((unique + 1) * sizeof(int64_t), 64));
  rows_ = {carve<int64_t>(memory, unique), unique};
  run_ = {carve<int64_t>(memory, unique + 1), unique + 1};
  threads.parallel_for(chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      auto u = static_cast<size_t>(firsts[static_cast<size_t>(c)]);
      const int64_t end = occurrences_ * (c + 1) / chunks;
      for (int64_t i = occurrences_ * c / chunks; i < end; ++i) {
        if (!starts_run(i)) continue;
        rows_[u] = static_cast<int64_t>(keys[i]);
        run_[u++] = i;
      }
    }
  });
  run_[unique] = occurrences_;
}

}  // namespace shardrec::embedding
