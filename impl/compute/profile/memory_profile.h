// What the memory of a machine does, as measured by probe.h: copies, gathers of random rows,
// updates of rows, and which prefetches and stores were fastest. Read by the kernels
// (prefetch.h); it changes how fast they are, never a bit of what they compute.
//
// Rates count 1e9 bytes per second: a copy reads and writes; a gather reads 8 bytes of id per row
// and the rows and writes the sums; an update reads 8 bytes of id per row, and reads and writes the
// row and one float of state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardrec::compute {

enum class MemoryAccess : uint8_t {
  kGather,  // sums of random rows, a bag at a time
  kUpdate,  // read-modify-write of distinct rows in ascending order
};

// Into which caches a row is fetched ahead of its use: T0 all, T1 from the second level on, NTA as
// data that is used once.
enum class PrefetchHint : uint8_t { kNone, kT0, kT1, kNta };
inline constexpr size_t kPrefetchHints = 4;

// How many rows ahead kernels can be told to prefetch.
inline constexpr int64_t kLeastPrefetchDistance = 8;
inline constexpr int64_t kMostPrefetchDistance = 64;

// How a kernel prefetches the rows of a table: by T0 or T1, so many rows ahead.
struct Prefetch {
  PrefetchHint hint = PrefetchHint::kT1;
  int64_t distance_rows = kLeastPrefetchDistance;

  bool operator==(const Prefetch&) const = default;
};

// What a profile holds for: it is of no use on a machine that differs in any of these.
struct Machine {
  std::string cpu;  // the maker's name of the model, and its numbers where there are some
  int64_t processors = 0;
  int64_t l1_bytes = 0;  // caches, 0: unknown
  int64_t l2_bytes = 0;
  int64_t l3_bytes = 0;
  std::string instruction_set;  // of the kernels

  bool operator==(const Machine&) const = default;
};

struct CopyRate {
  int64_t threads = 1;
  double gb_per_second = 0;

  bool operator==(const CopyRate&) const = default;
};

// One kind of access with one size of rows: the fastest way, and what the other ways reach.
struct RowRate {
  MemoryAccess access = MemoryAccess::kGather;
  int64_t row_bytes = 0;
  int64_t bag_length = 0;  // 0: an update
  int64_t threads = 1;

  PrefetchHint hint = PrefetchHint::kNone;
  int64_t distance_rows = kLeastPrefetchDistance;
  // For this library's kernels: the usual way (prefetch.h), or another that is clearly faster with
  // them. Measured with one thread: where several are at the memory's limit, no way is faster.
  Prefetch kernel;
  bool huge_pages = true;
  bool streaming_stores = false;
  double gb_per_second = 0;

  // 0: not measured.
  std::array<double, kPrefetchHints> by_hint = {};  // huge pages, plain stores, best distance
  double streaming = 0;                             // the best with streaming stores
  double small_pages = 0;                           // the fastest way, in pages of the usual size

  bool operator==(const RowRate&) const = default;
};

struct MemoryProfile {
  Machine machine;
  int64_t table_bytes = 0;  // that the rows were spread over
  double seconds = 0;       // that the measurement took
  bool quiet = true;        // false: other work disturbed it too much to rely on it
  std::vector<CopyRate> copies;
  std::vector<RowRate> rows;  // empty: nothing was measured

  bool operator==(const MemoryProfile&) const = default;
};

// The rate of the nearest row size and bag length with the most threads; nullptr: there is none.
// row_bytes >= 1. bag_length: not looked at for updates.
const RowRate* nearest_rate(const MemoryProfile& profile, MemoryAccess access, int64_t row_bytes,
                            int64_t bag_length) noexcept;

inline constexpr int64_t kMemoryProfileVersion = 4;

// The JSON is documented at shardrec_probe_json (capi/include/shardrec/probe.h).
std::string profile_to_json(const MemoryProfile& profile);
// Throws CORRUPT_DATA naming the place, for anything that profile_to_json does not write. path: of
// the text, for the sentence.
MemoryProfile profile_from_json(std::string_view text, const std::string& path);

const char* hint_name(PrefetchHint hint) noexcept;

}  // namespace shardrec::compute
