// Rows between the memory of a device and the host's (compute::RowTransfer), through pinned memory, in
// pieces: while the host converts one, the next one is on its way.
//
// Thread rule: that of the stream.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/arguments.h"
#include "compute/transfer_operations.h"

namespace shardrec::compute::cuda::host {

class RowTransfers {
 public:
  // host: converts rows; it outlives this.
  RowTransfers(std::shared_ptr<Stream> stream, TransferOperations& host);

  // Over when the calls return.
  void to_host(std::span<const RowTransfer> transfers);
  void from_host(std::span<const RowTransfer> transfers);
  // Inside the memory of the device (TransferOperations::move_rows). Enqueued when the call returns.
  void move(std::span<const RowTransfer> transfers);

 private:
  void list_last_of_each(const int64_t* numbers, int64_t rows);
  void copy(const shardrec_cuda_row_copy& rows);
  void to_host(const RowTransfer& transfer);
  void from_host(const RowTransfer& transfer);

  // The two pieces that are under way at once.
  struct Half {
    PinnedRoom room;
    Event copied;
  };

  std::shared_ptr<Stream> stream_;
  TransferOperations& host_;
  Arguments arguments_;
  Buffer rows_;  // side by side, on the device
  std::array<Half, 2> halves_;
  std::vector<int64_t> numbers_;
  std::vector<int64_t> order_;
};

}  // namespace shardrec::compute::cuda::host
