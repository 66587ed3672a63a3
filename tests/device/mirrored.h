// Lists of a test, on the host for the CPU's back end and on the device for its operations; and what
// both wrote, compared.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "compute/backend.h"
#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/jobs.h"
#include "device/device_arrays.h"
#include "support/same_element.h"

namespace shardrec::test {

// Of numbers of one type.
inline ::testing::AssertionResult same_numbers(compute::Element element,
                                               std::span<const std::byte> a,
                                               std::span<const std::byte> b) {
  const size_t size = compute::element_bytes(element);
  for (size_t i = 0; i < a.size() / size; ++i) {
    if (same_element(element, &a[i * size], &b[i * size])) continue;
    const auto shown = [&](std::span<const std::byte> bytes) {
      return ::testing::PrintToString(std::vector(&bytes[i * size], &bytes[i * size] + size));
    };
    return ::testing::AssertionFailure()
           << "number " << i << " has the bytes " << shown(a) << ", " << shown(b);
  }
  return ::testing::AssertionSuccess();
}

class MirroredTest : public DeviceTest {
 protected:
  // What an operation writes, here and there: bytes that nobody wrote are the same at the beginning.
  struct Written {
    std::vector<std::byte> here;
    std::unique_ptr<Array> there;

    template <class T>
    T* on_host() {
      return static_cast<T*>(static_cast<void*>(here.data()));
    }
    template <class T>
    T* on_device() {
      return static_cast<T*>(there->data());
    }
  };

  Written& written(size_t bytes) {
    Written& out = written_.emplace_back();
    out.here.assign(bytes, std::byte{0x5A});
    out.there = std::make_unique<Array>(*this, out.here.data(), bytes);
    return out;
  }

  // A copy of a list on the device, which the fixture keeps.
  template <class T>
  const T* there(const std::vector<T>& list) {
    return static_cast<const T*>(there(list.data(), list.size() * sizeof(T)));
  }
  const void* there(const void* list, size_t bytes) {
    return read_.emplace_back(std::make_unique<Array>(*this, list, bytes))->data();
  }

  // Are all bytes that were written the same?
  ::testing::AssertionResult same_bytes() {
    for (size_t i = 0; i < written_.size(); ++i) {
      if (written_[i].there->bytes() != written_[i].here) {
        return ::testing::AssertionFailure() << "list " << i << " differs";
      }
    }
    return ::testing::AssertionSuccess();
  }

  // Forgets all lists.
  void clear() {
    written_.clear();
    read_.clear();
  }

  compute::Random random_{5};
  core::Threads threads_{1};
  std::unique_ptr<compute::Backend> cpu_ =
      compute::make_cpu_backend(compute::cpu_kernels(), threads_);
  std::deque<Written> written_;
  std::vector<std::unique_ptr<Array>> read_;
};

// The bags of a block with the lists that they point to.
struct BagLists {
  // A bag of at most `longest` ids for each sample; none in most of them.
  BagLists(compute::Random& random, int64_t samples, int64_t longest, bool sparse) {
    bags.samples = samples;
    // Lists of no bags have addresses too.
    lengths.reserve(static_cast<size_t>(samples) + 1);
    sparse_lengths.reserve(static_cast<size_t>(samples) + 1);
    for (int64_t s = 0; s < samples; ++s) {
      if (s % compute::kChunk == 0) begin_chunk();
      const bool held = compute::uniform(random, 0, 2) != 0;
      add(held ? static_cast<uint32_t>(compute::uniform(random, 0, longest)) : 0);
    }
    begin_chunk();
    bags.dense_lengths = sparse ? nullptr : lengths.data();
    bags.sparse_lengths = sparse ? sparse_lengths.data() : nullptr;
    bags.chunk_rows = chunk_rows.data();
    bags.chunk_ids = chunk_ids.data();
  }
  BagLists(const BagLists&) = delete;
  BagLists& operator=(const BagLists&) = delete;

  std::vector<uint32_t> lengths;
  std::vector<compute::SparseLength> sparse_lengths;
  std::vector<uint32_t> chunk_rows, chunk_ids;
  compute::SentBags bags;  // on the host

 private:
  void begin_chunk() {
    chunk_rows.push_back(static_cast<uint32_t>(bags.bags));
    chunk_ids.push_back(static_cast<uint32_t>(bags.ids));
  }
  void add(uint32_t length) {
    if (length != 0) {
      sparse_lengths.push_back({static_cast<uint32_t>(lengths.size()), length});
    }
    lengths.push_back(length);
    bags.bags += length != 0;
    bags.ids += length;
  }
};

}  // namespace shardrec::test
