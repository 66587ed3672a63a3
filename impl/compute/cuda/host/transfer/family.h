// A device's operations on rows and bytes on their way.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "compute/cuda/host/stream.h"
#include "compute/cuda/host/transfer/initial_rows.h"
#include "compute/cuda/host/transfer/rank_means.h"
#include "compute/cuda/host/transfer/row_codes.h"
#include "compute/cuda/host/transfer/row_gains.h"
#include "compute/cuda/host/transfer/row_transfers.h"
#include "compute/transfer_operations.h"

namespace shardrec::compute::cuda::host {

class TransferFamily final : public TransferOperations {
 public:
  // host: the same operations of the CPU, in pinned memory; it outlives this.
  TransferFamily(std::shared_ptr<Stream> stream, TransferOperations& host)
      : stream_(std::move(stream)),
        host_(host),
        transfers_(stream_, host),
        means_(stream_),
        gains_(stream_),
        codes_(stream_) {}

  void copy(std::byte* to, const std::byte* from, size_t bytes) override {
    stream_->copy(to, from, bytes);
  }
  void copy_from_device(int32_t device, std::byte* to, const std::byte* from,
                        size_t bytes) override {
    stream_->copy_from_device(device, to, from, bytes);
  }
  void fill(const InitialRows& rows) override { host::fill(rows, *stream_); }
  void copy_to_host(std::span<const RowTransfer> transfers) override {
    transfers_.to_host(transfers);
  }
  void copy_from_host(std::span<const RowTransfer> transfers) override {
    transfers_.from_host(transfers);
  }
  void convert_on_host(std::span<const RowTransfer> transfers) override {
    host_.convert_on_host(transfers);
  }
  void move_rows(std::span<const RowTransfer> transfers) override { transfers_.move(transfers); }
  void average(const RankMeans& means) override { means_.run(means); }
  void add_gains(std::span<const RowGains> gains) override { gains_.run(gains); }
  void encode_rows(std::span<const RowEncoding> blocks) override { codes_.run(blocks); }
  void decode_rows(std::span<const RowDecoding> blocks) override { codes_.run(blocks); }

 private:
  std::shared_ptr<Stream> stream_;
  TransferOperations& host_;
  RowTransfers transfers_;
  RankAverages means_;
  RowGainSums gains_;
  RowCodes codes_;
};

}  // namespace shardrec::compute::cuda::host
