#include "compute/cuda/host/copies.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "compute/cuda/host/caller_order.h"
#include "compute/cuda/host/memory.h"
#include "core/error.h"

namespace shardrec::compute::cuda::host {
namespace {

using core::RowTensor;

bool on_cpu(const RowTensor& tensor) { return tensor.device.type == SHARDREC_DEVICE_CPU; }

// As shardrec_cuda_row_copy counts them.
int64_t stride_bytes(const RowTensor& tensor) {
  return static_cast<int64_t>(tensor.bytes(tensor.stride));
}

void copy_on_cpu(const RowTensor& to, const RowTensor& from) {
  if (to.compact()) return from.copy_out(0, from.size(), to.data);
  if (from.compact()) return to.copy_in(0, to.size(), from.data);
  for (int64_t r = 0; r < to.rows; ++r) {
    std::memcpy(to.data + r * stride_bytes(to), from.data + r * stride_bytes(from),
                to.bytes(to.columns));
  }
}

// The copies of one stream of callers. Rows that lie apart travel by way of pinned memory, some at a time.
//
// Thread rule: one thread at a time.
class Copier {
 public:
  explicit Copier(int32_t device) : stream_(device), caller_order_(stream_) {}

  // Throws before anything is enqueued where it is no stream of the device.
  void follow_caller(int64_t stream) { caller_order_.follow(stream, stream_); }

  void copy(const RowTensor& to, const RowTensor& from) {
    if (to.compact() && from.compact()) {
      stream_.copy(to.data, from.data, to.bytes(to.size()));
    } else if (on_cpu(from)) {
      for_pieces(to, [&](RowTensor piece, int64_t first) {
        from.copy_out(first * from.columns, piece.size(), pinned_.data());
        copy_rows(piece, beside(piece));
        stream_.wait();
      });
    } else if (on_cpu(to)) {
      for_pieces(from, [&](RowTensor piece, int64_t first) {
        copy_rows(beside(piece), piece);
        stream_.wait();
        to.copy_in(first * to.columns, piece.size(), pinned_.data());
      });
    } else {
      copy_rows(to, from);
    }
  }

  void hold_up_caller(int64_t stream) { caller_order_.hold_up(stream, stream_); }
  void wait() { caller_order_.wait(); }

 private:
  // Calls use(rows of the tensor, the first one's number) with as many rows as there is pinned memory for.
  template <class Use>
  void for_pieces(const RowTensor& there, const Use& use) {
    constexpr size_t kPieceBytes = size_t{8} << 20;
    const size_t row_bytes = there.bytes(there.columns);
    const auto at_once = std::min<int64_t>(
        there.rows, std::max<int64_t>(1, static_cast<int64_t>(kPieceBytes / row_bytes)));
    const size_t needed = static_cast<size_t>(at_once) * row_bytes;
    pinned_.resize(needed);
    for (int64_t first = 0; first < there.rows; first += at_once) {
      RowTensor piece = there;
      piece.data += first * stride_bytes(there);
      piece.rows = std::min(at_once, there.rows - first);
      use(piece, first);
    }
  }

  // The same rows one behind the other in pinned memory.
  RowTensor beside(const RowTensor& piece) const {
    RowTensor compact = piece;
    compact.data = pinned_.data();
    compact.stride = piece.columns;
    return compact;
  }

  // Kernels move two bytes at least.
  void copy_rows(const RowTensor& to, const RowTensor& from) {
    const size_t row_bytes = to.bytes(to.columns);
    if (to.element_bytes % 2 != 0) {
      for (int64_t r = 0; r < to.rows; ++r) {
        stream_.copy(to.data + r * stride_bytes(to), from.data + r * stride_bytes(from), row_bytes);
      }
      return;
    }
    const shardrec_cuda_row_copy rows{.from = from.data,
                                      .to = to.data,
                                      .from_stride = stride_bytes(from),
                                      .to_stride = stride_bytes(to),
                                      .from_numbers = nullptr,
                                      .to_numbers = nullptr,
                                      .rows = to.rows,
                                      .row_bytes = static_cast<int64_t>(row_bytes)};
    require(table().copy_rows(stream_.handle(), &rows), "copy ", to.rows, " rows on device ",
            stream_.device());
  }

  Stream stream_;
  CallerOrder caller_order_;
  PinnedRoom pinned_;
};

// Copiers by device and stream: copies of one stream never wait for another stream.
// Never destroyed: other threads may copy while the process ends.
struct Copiers {
  static constexpr size_t kMost = 64;  // those of more streams are not kept

  std::mutex mutex;
  struct Entry {
    explicit Entry(int32_t device) : copier(device) {}
    std::mutex mutex;
    Copier copier;
  };
  std::map<std::pair<int32_t, int64_t>, std::shared_ptr<Entry>> entries;
};

Copiers& copiers() {
  static Copiers& of_process = *new Copiers;
  return of_process;
}

std::shared_ptr<Copiers::Entry> find_copier(int32_t device, int64_t stream) {
  {
    const std::lock_guard lock(copiers().mutex);
    const auto found = copiers().entries.find({device, stream});
    if (found != copiers().entries.end()) return found->second;
  }
  return std::make_shared<Copiers::Entry>(device);  // the device may begin to be used
}

void keep_copier(int32_t device, int64_t stream, const std::shared_ptr<Copiers::Entry>& entry) {
  const std::lock_guard lock(copiers().mutex);
  if (copiers().entries.size() < Copiers::kMost) {
    copiers().entries.try_emplace({device, stream}, entry);
  }
}

}  // namespace

void copy_tensor(const RowTensor& to, const RowTensor& from, int64_t stream) {
  if (on_cpu(to) && on_cpu(from)) return copy_on_cpu(to, from);
  if (!on_cpu(to) && !on_cpu(from) && to.device.id != from.device.id) {
    core::fail(SHARDREC_UNSUPPORTED,
               core::sentence("from is on CUDA device ", from.device.id, ", to on device ",
                              to.device.id, "; a copy between devices goes by way of the CPU"),
               {.value = from.device.id, .limit = to.device.id});
  }
  const int32_t device = on_cpu(to) ? from.device.id : to.device.id;
  const std::shared_ptr<Copiers::Entry> entry = find_copier(device, stream);
  const std::lock_guard lock(entry->mutex);
  entry->copier.follow_caller(stream);
  keep_copier(device, stream, entry);
  if (to.size() != 0) entry->copier.copy(to, from);
  entry->copier.hold_up_caller(stream);
  if (on_cpu(to) || on_cpu(from)) entry->copier.wait();
}

}  // namespace shardrec::compute::cuda::host
