// Bodies that stay on the device where they were written: ranks of the process read them there, and nothing but
// the heads goes through the host. Both sides wait for each other on the device, by marks: readers follow the
// mark that is set when bodies are written; the writer follows the marks that readers set before they let go of
// messages.
#include <algorithm>
#include <utility>
#include <vector>

#include "comm/bodies/carriers.h"
#include "comm/bodies/room.h"
#include "comm/bodies/shared_memory.h"
#include "core/error.h"

namespace shardrec::comm {
namespace {

class SharedBuffer final : public MessageBuffer {
 public:
  SharedBuffer(compute::Backend& backend, std::shared_ptr<compute::Memory> memory)
      : backend_(backend), of_device_(std::move(memory)), written_(backend.marks()->make()) {}

  std::byte* resize(size_t bytes) override {
    std::shared_ptr<SharedMemory>& shared = memory_->shared;
    if (shared != nullptr) {
      shared->forget_bodies();
      shared->follow_readers(*backend_.marks());
      if (shared->size() < bytes) {
        shared->withdraw();
        shared.reset();
      }
    }
    host_ = memory_->host.resize(bytes);
    if (shared == nullptr) {
      auto block = of_device_->allocate(bytes);
      const size_t size = std::min(block->size, memory_->host.capacity());
      shared = std::make_shared<SharedMemory>(host_, std::move(block), size, written_);
    }
    return bodies_ = shared->data();
  }
  void publish(const std::byte* begin, const std::byte* end) const override {
    memory_->shared->add_body(begin, end);
    backend_.marks()->set(*written_);
  }
  std::shared_ptr<const void> keep_alive() const override { return memory_; }

 private:
  // What peers read. The host has heads, and for bodies the room only: pages that nobody touches.
  struct Memory {
    Memory() = default;
    ~Memory() {
      if (shared != nullptr) shared->withdraw();
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    compute::Buffer host{compute::cpu_memory()};
    std::shared_ptr<SharedMemory> shared;  // null: there is no room yet
  };

  compute::Backend& backend_;
  std::shared_ptr<compute::Memory> of_device_;
  std::shared_ptr<compute::Mark> written_;
  std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
};

class SharedBodies final : public ReceivedBodies {
 public:
  SharedBodies(compute::Backend& backend, std::shared_ptr<compute::Mark> read)
      : backend_(backend), read_(std::move(read)), own_(backend.memory()) {}

  std::span<const ConstBytes> open(std::span<const ConstBytes> messages,
                                   std::span<const size_t> heads) override {
    bodies_.resize(messages.size());
    copied_from_.assign(messages.size(), kNowhere);
    shared_.clear();
    for (size_t m = 0; m < messages.size(); ++m) {
      bodies_[m] = messages[m].subspan(heads.empty() ? 0 : heads[m]);
      if (!bodies_[m].empty()) follow_writer(m, messages[m]);
    }
    copy_from_other_devices();
    return bodies_;
  }

 private:
  static constexpr int32_t kNowhere = -1;

  void follow_writer(size_t m, ConstBytes message) {
    auto shared = SharedMemory::find(message);
    if (shared == nullptr) {
      core::fail(SHARDREC_INTERNAL,
                 core::sentence("the body of the message of rank ", m, " is not on a device"),
                 {.rank = static_cast<int64_t>(m)});
    }
    backend_.marks()->follow(shared->written());
    shared->add_reader(read_);
    bodies_[m] = {shared->at(bodies_[m].data()), bodies_[m].size()};
    const int32_t device = shared->written().device();
    if (device != read_->device()) copied_from_[m] = device;
    shared_.push_back(std::move(shared));
  }

  void copy_from_other_devices() {
    size_t bytes = 0;
    for (size_t m = 0; m < bodies_.size(); ++m) {
      if (copied_from_[m] != kNowhere) bytes += room_of(bodies_[m]);
    }
    if (bytes == 0) return;
    std::byte* to = own_.resize(bytes);
    for (size_t m = 0; m < bodies_.size(); ++m) {
      if (copied_from_[m] == kNowhere) continue;
      ConstBytes& body = bodies_[m];
      backend_.transfer().copy_from_device(copied_from_[m], to, body.data(), body.size());
      std::byte* const next = to + room_of(body);
      body = {to, body.size()};
      to = next;
    }
  }

  compute::Backend& backend_;
  std::shared_ptr<compute::Mark> read_;
  compute::Buffer own_;  // for bodies of other devices
  std::vector<ConstBytes> bodies_;
  std::vector<int32_t>
      copied_from_;  // by message: the device, or that operations read it where it is
  // What was opened last. It is held on to, for the case that an exchange fails while operations read.
  std::vector<std::shared_ptr<SharedMemory>> shared_;
};

class SharedCarrier final : public BodyCarrier {
 public:
  SharedCarrier(compute::Backend& backend, std::shared_ptr<compute::Memory> memory)
      : BodyCarrier(backend), memory_(std::move(memory)), read_(backend.marks()->make()) {}

  bool stays_in_process() const override { return true; }
  std::unique_ptr<MessageBuffer> make_buffer() override {
    return std::make_unique<SharedBuffer>(backend(), memory_);
  }
  std::unique_ptr<ReceivedBodies> make_received() override {
    return std::make_unique<SharedBodies>(backend(), read_);
  }
  void finish_writing() override {}
  void finish_reading() override { backend().marks()->set(*read_); }

 private:
  std::shared_ptr<compute::Memory> memory_;
  std::shared_ptr<compute::Mark> read_;
};

}  // namespace

std::unique_ptr<BodyCarrier> make_shared_carrier(compute::Backend& backend,
                                                 std::shared_ptr<compute::Memory> memory) {
  return std::make_unique<SharedCarrier>(backend, std::move(memory));
}

}  // namespace shardrec::comm
