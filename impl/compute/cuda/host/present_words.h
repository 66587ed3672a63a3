// Which items any of some lists of bits has, and which row each has: counted through on a device.
//
// Thread rule: that of the stream.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "compute/buffer.h"
#include "compute/cuda/host/arguments.h"

namespace shardrec::compute::cuda::host {

class PresentWords {
 public:
  explicit PresentWords(std::shared_ptr<Stream> stream);

  // Begins other unions.
  void clear();
  // The next list, on the device, of the next union.
  void add(const uint64_t* bits);
  // The union of the lists since the last one, of so many words.
  void end_union(int64_t words);

  // Enqueues, by union, how many items it has. rows: on the device.
  void count(int64_t* rows);
  // Makes room for what presence() is about, and enqueues it: it is there in the order of the stream until
  // clear(). The room is known before the lists have been written.
  void place();
  void index();
  // Behind place(): by union.
  shardrec_cuda_presence presence(size_t number) const { return presence_[number]; }

 private:
  void send();

  std::shared_ptr<Stream> stream_;
  Arguments arguments_;
  Buffer room_;
  std::vector<const uint64_t*> lists_;
  int64_t ended_ = 0;                                // of them: in unions
  std::vector<shardrec_cuda_present_words> unions_;  // lists: only their number
  std::vector<shardrec_cuda_presence> presence_;
  const shardrec_cuda_present_words* unions_there_ = nullptr;
};

}  // namespace shardrec::compute::cuda::host
