// An all-gather as an object: every rank gets the message of every rank. In three steps, as
// all_to_all.h says:
//   start()        posts this rank's message to all
//   has_arrived()  tells whether finish() would wait
//   finish()       waits for the messages of all ranks and shows them
//
// Thread rule: the channel's.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "comm/collective/all_to_all.h"
#include "comm/collective/owned_range.h"
#include "core/function_ref.h"

namespace shardrec::comm {

class AllGather {
 public:
  // The channel outlives this object.
  AllGather(PipelinedChannel& channel, int ranks);

  // Posts `mine` for all ranks; releases what this object still shows. The memory behind `mine`
  // stays unchanged until reclaim(); keep_alive is held until then.
  void start(const Operation& operation, ConstBytes mine, std::shared_ptr<const void> keep_alive);
  // As Channel::has_arrived(). Needs start().
  bool has_arrived() const noexcept { return exchange_.has_arrived(); }
  // The messages of all ranks, in rank order; valid until release() or the next start().
  std::span<const ConstBytes> finish();
  // This rank no longer reads the messages. Does nothing if there are none.
  void release() noexcept { exchange_.release(); }
  // Waits until the peers have released what this rank has sent last. Does nothing before start().
  void reclaim() { exchange_.reclaim(); }

  // After finish(), where the message of rank r is its range of a vector, whose elements have
  // element_size bytes: calls take(range, its first byte) for each rank in order. Throws
  // CORRUPT_DATA for a message of another size.
  void for_each_range(const OwnedRanges& ranges, size_t element_size,
                      core::FunctionRef<void(const OwnedRange&, const std::byte*)> take) const;

  // After finish(). Throws CORRUPT_DATA unless the message of every rank has so many bytes.
  void require_size_of_all(size_t bytes) const;

 private:
  AllToAll exchange_;
  std::vector<ConstBytes> send_;
  std::span<const ConstBytes> received_{};
};

}  // namespace shardrec::comm
