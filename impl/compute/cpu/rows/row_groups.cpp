#include "compute/cpu/rows/row_groups.h"

#include <algorithm>
#include <bit>

#include "compute/cpu/tasks/shares.h"
#include "core/align.h"

namespace shardrec::compute::cpu {
namespace {

// Occurrences of a bucket, about: two such arrays fit in a first-level cache.
constexpr int64_t kBucketOccurrences = 1024;
// A bucket of more has rows that many name; one row may be most of it.
constexpr size_t kLongBucket = 4 * kBucketOccurrences;
constexpr int kMostBucketBits = 10;  // so many streams are written at once
// A task reads about this many ids.
constexpr int64_t kTaskIds = int64_t{1} << 14;
// Memory that is written in many streams, or out of order, is fetched so many bytes ahead: a store
// that misses the cache holds up all behind it.
constexpr size_t kAheadBytes = 64;

size_t bytes_for(size_t count, size_t size) { return core::align_up(count * size, 64); }

template <class T>
T* carve(std::byte*& from, size_t count) {
  std::byte* at = from;
  from += bytes_for(count, sizeof(T));
  return static_cast<T*>(static_cast<void*>(at));
}

// Calls body<Row, kWeighted>().
template <class Body>
void with_kind(bool wide, bool weighted, Body body) {
  if (wide) {
    weighted ? body.template operator()<uint64_t, true>()
             : body.template operator()<uint64_t, false>();
  } else {
    weighted ? body.template operator()<uint32_t, true>()
             : body.template operator()<uint32_t, false>();
  }
}

size_t occurrence_bytes(bool wide, bool weighted) {
  size_t bytes = 0;
  with_kind(wide, weighted,
            [&]<class Row, bool kWeighted>() { bytes = sizeof(Occurrence<Row, kWeighted>); });
  return bytes;
}

template <class Entry>
Entry* entries_at(std::byte* memory) {
  return static_cast<Entry*>(static_cast<void*>(memory));
}

// Calls visit(row) for ids [begin, end) of a block.
template <class Visit>
void for_each_row(const GroupedBlock& block, int64_t begin, int64_t end, Visit visit) {
  const auto all = [&](const auto* ids) {
    for (int64_t i = begin; i < end; ++i) visit(ids[i]);
  };
  block.ids.is_64 ? all(static_cast<const int64_t*>(block.ids.data))
                  : all(static_cast<const int32_t*>(block.ids.data));
}

template <class T>
T middle(T a, T b, T c) {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

}  // namespace

void BucketedRows::describe(size_t part, RowUpdate& job) const {
  const OfPart& own = parts_[part];
  job.rows = own.rows.data();
  job.run = own.run.data();
  job.bags = own.bag_of.data();
  job.weights = own.weight_of.empty() ? nullptr : own.weight_of.data();
  job.blocks = own.block_of.data();
}

void BucketedRows::build(std::span<const GroupedPart> parts, bool weighted, int64_t most_samples) {
  blocks_per_feature_ = most_samples / kBlockSamples + 1;
  measure(parts);
  cut_tasks();
  make_room(weighted);
  const auto for_tasks = [&](auto body) {
    for_each_task(tasks_.size(), context_, [&](size_t t) { body(tasks_[t]); });
  };
  const auto for_buckets = [&](auto body) {
    for_each_task(buckets_.size(), context_, [&](size_t b) { body(buckets_[b]); });
  };
  const auto kind = [&](const OfPart& part, auto body) { with_kind(part.wide, weighted, body); };
  for_tasks([&](const Task& task) { count(parts_[task.part], task); });
  place_buckets();
  for_tasks([&](const Task& task) {
    kind(parts_[task.part], [&]<class Row, bool kWeighted>() { write<Row, kWeighted>(task); });
  });
  for_buckets([&](Bucket& bucket) {
    kind(parts_[bucket.part], [&]<class Row, bool kWeighted>() { sort<Row, kWeighted>(bucket); });
  });
  place_rows();
  for_buckets([&](const Bucket& bucket) {
    kind(parts_[bucket.part], [&]<class Row, bool kWeighted>() { list<Row, kWeighted>(bucket); });
  });
}

// Sizes of the parts, and how many buckets each is cut into.
void BucketedRows::measure(std::span<const GroupedPart> parts) {
  size_t buckets = 0;
  parts_.resize(parts.size());
  for (size_t p = 0; p < parts.size(); ++p) {
    OfPart& part = parts_[p];
    part.given = parts[p];
    part.wide = parts[p].rows > (int64_t{1} << 32);
    part.occurrences = 0;
    part.bags = 0;
    for (const GroupedBlock& block : parts[p].blocks) {
      part.occurrences += block.bags->ids;
      part.bags += block.rows();
    }
    const int row_bits = std::bit_width(static_cast<uint64_t>(part.given.rows - 1));
    const auto wanted_buckets = static_cast<uint64_t>(part.occurrences / kBucketOccurrences);
    const int bits =
        std::min({row_bits, kMostBucketBits, static_cast<int>(std::bit_width(wanted_buckets))});
    part.shift = row_bits - bits;
    part.first_bucket = buckets;
    part.buckets =
        part.occurrences == 0 ? 0 : static_cast<size_t>((part.given.rows - 1) >> part.shift) + 1;
    buckets += part.buckets;
  }
  buckets_.clear();
  core::reserve_with_slack(buckets_, buckets);
  buckets_.resize(buckets);
}

void BucketedRows::cut_tasks() {
  size_t most = 0;
  for (const OfPart& part : parts_) {
    most += part.given.blocks.size() + static_cast<size_t>(part.occurrences / kTaskIds);
  }
  tasks_.clear();
  core::reserve_with_slack(tasks_, most);
  for (size_t p = 0; p < parts_.size(); ++p) {
    int64_t bags = 0;
    for (const GroupedBlock& block : parts_[p].given.blocks) {
      const BagCursor end = end_of_bags(*block.bags);
      for (BagCursor from; from.bag < end.bag;) {
        const BagCursor to = skip_ids(*block.bags, from, kTaskIds);
        tasks_.push_back({p, &block, from, to, bags, nullptr});
        from = to;
      }
      bags += block.rows();
    }
  }
}

void BucketedRows::make_room(bool weighted) {
  size_t sorted = 0;
  size_t of_bags = 0;
  size_t scratch = kAheadBytes;
  for (const OfPart& part : parts_) {
    const auto n = static_cast<size_t>(part.occurrences);
    const auto bags = static_cast<size_t>(part.bags);
    sorted += bytes_for(n, sizeof(uint32_t)) * (weighted ? 2 : 1);
    of_bags += bytes_for(bags, sizeof(uint32_t));
    scratch += 2 * bytes_for(n, occurrence_bytes(part.wide, weighted));
  }
  for (const Task& task : tasks_) {
    scratch += bytes_for(parts_[task.part].buckets, sizeof(uint32_t));
  }
  std::byte* sorted_at = sorted_memory_.resize(sorted);
  std::byte* bags_at = bag_memory_.resize(of_bags);
  std::byte* work_at = context_.work.resize(scratch);
  for (OfPart& part : parts_) {
    const auto n = static_cast<size_t>(part.occurrences);
    const auto bags = static_cast<size_t>(part.bags);
    part.bag_of = {carve<uint32_t>(sorted_at, n), n};
    part.weight_of = weighted ? std::span(carve<float>(sorted_at, n), n) : std::span<float>();
    part.block_of = {carve<uint32_t>(bags_at, bags), bags};
    for (std::byte*& side : part.entries) {
      side = carve<std::byte>(work_at, n * occurrence_bytes(part.wide, weighted));
    }
  }
  for (Task& task : tasks_) {
    task.place = carve<uint32_t>(work_at, parts_[task.part].buckets);
  }
}

// How many occurrences a task has for each bucket.
void BucketedRows::count(const OfPart& part, const Task& task) {
  std::fill_n(task.place, part.buckets, 0U);
  if (part.buckets == 1) {
    task.place[0] = static_cast<uint32_t>(task.to.id - task.from.id);
    return;
  }
  for_each_row(*task.block, task.from.id, task.to.id,
               [&](auto row) { ++task.place[static_cast<size_t>(row >> part.shift)]; });
}

// Where the occurrences of each task go: in a bucket, in the order of the tasks, which is the
// canonical one.
void BucketedRows::place_buckets() {
  for (size_t first = 0; first < tasks_.size();) {
    const size_t p = tasks_[first].part;
    size_t last = first;
    while (last < tasks_.size() && tasks_[last].part == p) ++last;
    uint32_t total = 0;
    for (size_t b = 0; b < parts_[p].buckets; ++b) {
      Bucket& bucket = buckets_[parts_[p].first_bucket + b];
      bucket = {.part = p, .begin = total};
      for (size_t t = first; t < last; ++t) {
        const uint32_t ids = tasks_[t].place[b];
        tasks_[t].place[b] = total;
        total += ids;
      }
      bucket.end = total;
    }
    first = last;
  }
}

template <class Row, bool kWeighted>
void BucketedRows::write(const Task& task) const {
  using Entry = Occurrence<Row, kWeighted>;
  const OfPart& part = parts_[task.part];
  const GroupedBlock& block = *task.block;
  const auto feature_block =
      static_cast<uint32_t>(block.feature) * static_cast<uint32_t>(blocks_per_feature_);
  // Numbers a bag, and notes its block.
  const auto ordinal_of = [&](int64_t row, int64_t sample) {
    const auto ordinal = static_cast<uint32_t>(task.first_bag + row);
    part.block_of[ordinal] =
        feature_block + static_cast<uint32_t>((block.first_sample + sample) / kBlockSamples);
    return ordinal;
  };
  const auto write_ids = [&](const auto* ids) {
    auto* const entries = entries_at<Entry>(part.entries[0]);
    uint32_t* const place = task.place;
    const int shift = part.shift;
    const float* const weights = block.weights;
    constexpr size_t kAhead = kAheadBytes / sizeof(Entry);
    const auto put = [=](int64_t i, uint32_t ordinal) {
      const auto row = ids[i];
      Entry entry{.row = static_cast<Row>(row), .bag = ordinal};
      if constexpr (kWeighted) entry.weight = weights != nullptr ? weights[i] : 1.0F;
      Entry* const to = entries + place[static_cast<size_t>(row >> shift)]++;
      __builtin_prefetch(to + kAhead, 1);
      *to = entry;
    };
    int64_t id = task.from.id;
    for_each_bag(*block.bags, task.from, task.to,
                 [&](int64_t bag, int64_t sample, uint32_t length) {
                   const int64_t end = id + length;
                   if (block.sequence) {  // each id is a bag of its own
                     for (; id < end; ++id) put(id, ordinal_of(id, sample));
                     return;
                   }
                   const uint32_t ordinal = ordinal_of(bag, sample);
                   for (; id < end; ++id) put(id, ordinal);
                 });
  };
  block.ids.is_64 ? write_ids(static_cast<const int64_t*>(block.ids.data))
                  : write_ids(static_cast<const int32_t*>(block.ids.data));
}

template <class Row, bool kWeighted>
void BucketedRows::sort(Bucket& bucket) const {
  using Entry = Occurrence<Row, kWeighted>;
  const OfPart& part = parts_[bucket.part];
  const auto size = static_cast<size_t>(bucket.end - bucket.begin);
  const std::span all(entries_at<Entry>(part.entries[0]) + bucket.begin, size);
  take_common<Row, kWeighted>(bucket, all);
  const std::span first = all.first(size - static_cast<size_t>(bucket.common));
  const std::span second(entries_at<Entry>(part.entries[1]) + bucket.begin, first.size());
  const std::span sorted = sort_occurrences(first, second, part.shift);
  bucket.side = sorted.data() == first.data() ? 0 : 1;
  bucket.unique = (bucket.common == 0 ? 0 : 1) + (sorted.empty() ? 0 : 1);
  for (size_t i = 1; i < sorted.size(); ++i) bucket.unique += sorted[i].row != sorted[i - 1].row;
}

// Takes the occurrences of a row that most of a long bucket's name out of the entries, and writes
// their bags where they belong: their digits would be counted in one place, each after the one
// before, and that by one thread.
template <class Row, bool kWeighted>
void BucketedRows::take_common(Bucket& bucket,
                               std::span<Occurrence<Row, kWeighted>> entries) const {
  bucket.common = 0;
  bucket.before_common = std::ssize(entries);
  if (entries.size() < kLongBucket) return;
  const Row row = middle(entries[entries.size() / 4].row, entries[entries.size() / 2].row,
                         entries[entries.size() / 4 * 3].row);
  const OfPart& part = parts_[bucket.part];
  const auto begin = static_cast<size_t>(bucket.begin);
  size_t before = 0;
  size_t found = 0;
  size_t kept = 0;
  for (const Occurrence<Row, kWeighted>& entry : entries) {
    if (entry.row == row) {
      part.bag_of[begin + found] = entry.bag;
      if constexpr (kWeighted) part.weight_of[begin + found] = entry.weight;
      ++found;
    } else {
      before += entry.row < row ? 1 : 0;
      entries[kept++] = entry;
    }
  }
  const auto move_behind_others = [&](auto* values) {
    std::copy_backward(values + begin, values + begin + found, values + begin + before + found);
  };
  move_behind_others(part.bag_of.data());
  if constexpr (kWeighted) move_behind_others(part.weight_of.data());
  bucket.common = static_cast<int64_t>(found);
  bucket.common_row = static_cast<int64_t>(row);
  bucket.before_common = static_cast<int64_t>(before);
}

void BucketedRows::place_rows() {
  size_t bytes = 0;
  for (OfPart& part : parts_) {
    int64_t unique = 0;
    for (Bucket& bucket : std::span(buckets_).subspan(part.first_bucket, part.buckets)) {
      bucket.first_unique = unique;
      unique += bucket.unique;
    }
    bytes += 2 * bytes_for(static_cast<size_t>(unique) + 1, sizeof(int64_t));
  }
  std::byte* memory = unique_memory_.resize(bytes);
  for (OfPart& part : parts_) {
    const size_t unique =
        part.buckets == 0
            ? 0
            : static_cast<size_t>(buckets_[part.first_bucket + part.buckets - 1].first_unique +
                                  buckets_[part.first_bucket + part.buckets - 1].unique);
    part.rows = {carve<int64_t>(memory, unique), unique};
    part.run = {carve<int64_t>(memory, unique + 1), unique + 1};
    part.run[unique] = part.occurrences;
  }
}

template <class Row, bool kWeighted>
void BucketedRows::list(const Bucket& bucket) const {
  using Entry = Occurrence<Row, kWeighted>;
  const OfPart& part = parts_[bucket.part];
  int64_t* row = part.rows.data() + bucket.first_unique - 1;
  int64_t* run = part.run.data() + bucket.first_unique - 1;
  auto at = static_cast<size_t>(bucket.begin);
  const auto list_sorted = [&](std::span<const Entry> entries) {
    if (entries.empty()) return;
    auto start = static_cast<int64_t>(at);
    Row last = entries.front().row;
    ++row;
    ++run;
    for (const Entry& entry : entries) {
      // Without branches: whether a row is new cannot be foreseen.
      const int64_t is_new = entry.row != last ? 1 : 0;
      last = entry.row;
      start += (static_cast<int64_t>(at) - start) & -is_new;
      row += is_new;
      run += is_new;
      *row = static_cast<int64_t>(last);
      *run = start;
      part.bag_of[at] = entry.bag;
      if constexpr (kWeighted) part.weight_of[at] = entry.weight;
      ++at;
    }
  };
  const std::span rest(entries_at<Entry>(part.entries[bucket.side]) + bucket.begin,
                       static_cast<size_t>(bucket.end - bucket.begin - bucket.common));
  const auto before = static_cast<size_t>(std::min(bucket.before_common, std::ssize(rest)));
  list_sorted(rest.first(before));
  if (bucket.common > 0) {
    *++row = bucket.common_row;
    *++run = static_cast<int64_t>(at);
    at += static_cast<size_t>(bucket.common);
  }
  list_sorted(rest.subspan(before));
}

}  // namespace shardrec::compute::cpu
