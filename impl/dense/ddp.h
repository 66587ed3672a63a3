// Data-parallel dense parameters (capi's ddp.h): the host's own memory, the same values on every
// rank, gradients reduced over the ranks.
//
// Gradients travel in buckets, which are cut by the parameters' sizes alone and hence equal on all
// ranks: consecutive parameters until 1 MiB, then 8 MiB, are reached. A bucket whose gradients
// stand one behind the other in memory is reduced in place; others go through a buffer. Every rank
// gets the same bits. Thread rule: one thread at a time. The channel is opened by the first commit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "core/memory.h"

namespace shardrec::dense {

struct DdpOptions {
  bool average = true;    // else gradients are summed
  bool broadcast = true;  // commit copies rank 0's parameters to all
};

class Ddp {
 public:
  Ddp(std::shared_ptr<comm::Communicator> communicator, const DdpOptions& options);

  // The memory stays the host's and in place. Throws INVALID_STATE after commit, INVALID_ARGUMENT
  // for an empty or known name.
  void add(std::string name, std::vector<int64_t> shape, std::span<float> parameter,
           std::span<float> gradient);

  // Collective. Throws MISMATCH, the same on all ranks, when they differ in their parameters or
  // options; then the communicator lives and nothing has changed.
  void commit();

  // Collective. Throws INVALID_STATE before commit.
  void all_reduce();

  struct Parameter {
    std::string name;
    std::vector<int64_t> shape;
    std::span<float> values;
    std::span<float> gradient;
  };
  // In the order in which they were added.
  std::span<const Parameter> parameters() const noexcept { return parameters_; }

 private:
  struct Bucket {
    size_t begin = 0;  // parameters [begin, end)
    size_t end = 0;
    int64_t size = 0;  // floats
    bool in_place = false;
  };

  std::string describe() const;
  void compare(std::span<const comm::ConstBytes> descriptions) const;
  std::vector<Bucket> cut() const;

  std::shared_ptr<comm::Communicator> communicator_;
  DdpOptions options_;
  std::vector<Parameter> parameters_;
  std::vector<Bucket> buckets_;
  std::shared_ptr<comm::Channel> channel_;
  std::optional<comm::Collectives> collectives_;
  // Of the largest bucket that is not in place; peers may read it longer than this object lives.
  std::shared_ptr<core::Scratch> buffer_;
  bool committed_ = false;
};

}  // namespace shardrec::dense
