// store_profile DIRECTORY ACCESS:ROW_BYTES:BAG_LENGTH:THREADS:GB_PER_SECOND[:DISTANCE_ROWS]...: keeps a memory
// profile of this machine with these made-up rates, as a probe would have. DISTANCE_ROWS: kernels prefetch by T0,
// so far ahead.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "compute/probe/machine.h"
#include "compute/probe/profile_cache.h"
#include "core/error.h"

namespace {

using shardrec::compute::MemoryAccess;
using shardrec::compute::RowRate;

template <class Number>
Number take(std::string& text) {
  const size_t end = std::min(text.find(':'), text.size());
  Number value{};
  std::from_chars(text.data(), text.data() + end, value);
  text.erase(0, end + 1);
  return value;
}

RowRate rate_of(std::string text) {
  RowRate rate;
  rate.access = text.starts_with("gather:") ? MemoryAccess::kGather : MemoryAccess::kUpdate;
  text.erase(0, text.find(':') + 1);
  rate.row_bytes = take<int64_t>(text);
  rate.bag_length = take<int64_t>(text);
  rate.threads = take<int64_t>(text);
  rate.gb_per_second = take<double>(text);
  if (!text.empty()) {
    rate.kernel = {.hint = shardrec::compute::PrefetchHint::kT0,
                   .distance_rows = take<int64_t>(text)};
  }
  return rate;
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> words(argv, static_cast<size_t>(argc));
  if (words.size() < 3) return EXIT_FAILURE;
  shardrec::compute::MemoryProfile profile{
      .machine = shardrec::compute::this_machine(), .table_bytes = 1 << 20, .seconds = 1};
  for (const char* word : words.subspan(2)) profile.rows.push_back(rate_of(word));
  try {
    shardrec::compute::store_profile(shardrec::core::default_environment(), words[1], profile);
  } catch (const shardrec::core::Error& error) {
    std::cerr << error.sentence() << "\n";
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
