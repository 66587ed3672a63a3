#include "messages/runs.h"

#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "comm/local/local_group.h"
#include "compute/backends/registry.h"
#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/kernels.h"
#include "objects/comm_object.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

struct FreshBlock final : compute::Allocation {
  FreshBlock(size_t bytes, unsigned char byte) : memory_(compute::cpu_memory()->allocate(bytes)) {
    std::memset(memory_->data, byte, memory_->size);
    data = memory_->data;
    size = 0;  // too small for its next use: that gets a new one
  }

 private:
  std::unique_ptr<compute::Allocation> memory_;
};

class FreshMemory final : public compute::Memory {
 public:
  explicit FreshMemory(unsigned char byte) : byte_(byte) {}
  shardrec_device_type device() const noexcept override { return SHARDREC_DEVICE_CPU; }
  std::unique_ptr<compute::Allocation> allocate(size_t bytes) override {
    return std::make_unique<FreshBlock>(bytes, byte_);
  }
  std::unique_ptr<compute::Allocation> allocate_zeros(size_t bytes) override {
    return compute::cpu_memory()->allocate_zeros(bytes);
  }

 private:
  const unsigned char byte_;
};

template <unsigned char kByte>
std::unique_ptr<compute::Backend> cpu_full_of(const compute::BackendOptions& options) {
  return compute::make_cpu_backend(compute::cpu_kernels(), options.threads,
                                   std::make_shared<FreshMemory>(kByte));
}

std::unique_ptr<compute::Backend> device_by_messages(const compute::BackendOptions& options) {
  return compute::backend_named("cuda").make({.threads = options.threads, .device = 0});
}

// Before main.
const bool added = [] {
  compute::add_backend({.name = kCpuWithGarbage, .on_host = true, .make = cpu_full_of<0x5A>});
  compute::add_backend({.name = kCpuWithOtherGarbage, .on_host = true, .make = cpu_full_of<0xA5>});
  // As if on the host: the ranks then agree on the same options as on the CPU.
  compute::add_backend({.name = kDeviceByMessages, .on_host = true, .make = device_by_messages});
  return true;
}();

}  // namespace

std::deque<Record> record_ranks(int ranks, int ranks_per_node, std::string_view backend,
                                const std::function<void(int rank, shardrec_comm* comm)>& body) {
  std::deque<Record> records(static_cast<size_t>(ranks));
  compute::set_default_backend(backend);
  const auto group = comm::local::make_group(ranks, ranks_per_node);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Record& record = records[static_cast<size_t>(rank)];
      shardrec_comm* comm = nullptr;
      capi::create(&comm,
                   std::make_shared<capi::Comm>(recording(comm::local::join(group, rank), record)));
      SR_EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 120));
      body(rank, comm);
      if (!testing::Test::HasFatalFailure()) {
        SR_EXPECT_OK(shardrec_comm_close(comm));
      }
      shardrec_comm_destroy(&comm);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return records;
}

std::deque<Record> record_training(const Scenario& scenario, const Deal& deal,
                                   std::string_view backend) {
  return record_ranks(deal.world(), deal.ranks_per_node, backend,
                      [&](int rank, shardrec_comm* comm) {
                        // Of this rank alone: the ranks' tables are compared as floats, of which some are NaN.
                        Outcome outcome = empty_outcome(scenario, deal);
                        std::mutex mutex;
                        train_rank(scenario, deal, rank, comm, mutex, outcome);
                      });
}

}  // namespace shardrec::test
