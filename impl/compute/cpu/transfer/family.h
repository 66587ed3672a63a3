// The CPU's operations on rows and bytes on their way.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "compute/cpu/tasks/context.h"
#include "compute/cpu/transfer/initial_rows.h"
#include "compute/cpu/transfer/rank_means.h"
#include "compute/cpu/transfer/row_codes.h"
#include "compute/cpu/transfer/row_gains.h"
#include "compute/cpu/transfer/row_transfers.h"
#include "compute/transfer_operations.h"

namespace shardrec::compute::cpu {

class TransferFamily final : public TransferOperations {
 public:
  explicit TransferFamily(Context& context) : context_(context) {}

  void copy(std::byte* to, const std::byte* from, size_t bytes) override {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
  void fill(const InitialRows& rows) override { cpu::fill(rows, context_); }
  void copy_to_host(std::span<const RowTransfer> transfers) override {
    cpu::copy_rows(transfers, context_);
  }
  void copy_from_host(std::span<const RowTransfer> transfers) override {
    cpu::copy_rows(transfers, context_);
  }
  void convert_on_host(std::span<const RowTransfer> transfers) override {
    cpu::copy_rows(transfers, context_);
  }
  void move_rows(std::span<const RowTransfer> transfers) override {
    cpu::move_rows(transfers, context_);
  }
  void average(const RankMeans& means) override { cpu::average(means, context_); }
  void add_gains(std::span<const RowGains> gains) override { cpu::add_gains(gains, context_); }
  void encode_rows(std::span<const RowEncoding> blocks) override { codes_.run(blocks, context_); }
  void decode_rows(std::span<const RowDecoding> blocks) override { codes_.run(blocks, context_); }

 private:
  Context& context_;
  RowCodes codes_;
};

}  // namespace shardrec::compute::cpu
