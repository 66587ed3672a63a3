// Tensors of the host's are copied to a device beside its operations: operations find what was sent before them, neither
// pinned memory nor that of the device is overwritten too early, and the host waits for nothing else.
#include "compute/cuda/host/routing/pinned_staging.h"

#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "device/held_streams.h"

namespace shardrec::test {
namespace {

using compute::StagedTensor;
using compute::cuda::host::PinnedMemory;
using compute::cuda::host::PinnedStaging;
using compute::cuda::host::RoutingFamily;
using compute::cuda::host::Stream;

class Staging : public HeldStreamsTest {
 protected:
  void SetUp() override {
    HeldStreamsTest::SetUp();
    if (IsSkipped()) return;
    staging_.emplace(copies_, operations_, routing_);
  }

  // Two tensors of letters, which are overwritten at once, and an operation that reads them.
  void send_and_read(char letter, size_t bytes, PinnedMemory& read) {
    std::string first(bytes, letter);
    std::string second(3, letter);
    StagedTensor tensors[] = {{.here = first.data(), .bytes = first.size()},
                              {.here = nullptr, .bytes = 0},
                              {.here = second.data(), .bytes = second.size()}};
    staging_->send(tensors);
    first.assign(first.size(), '-');
    second.assign(second.size(), '-');
    operations_->copy(read.data(), tensors[0].there, bytes);
    operations_->copy(read.data() + bytes, tensors[2].there, 3);
    staging_->release();
  }
  static void expect_letters(const PinnedMemory& read, char letter) {
    std::string found(read.size(), ' ');
    std::memcpy(found.data(), read.data(), read.size());
    EXPECT_EQ(found, std::string(read.size(), letter));
  }
  void hold(const Stream& stream) { hold_(stream.number()); }

  static constexpr size_t kBytes = 1000;
  std::shared_ptr<Stream> copies_ = std::make_shared<Stream>(0, booked_);
  std::shared_ptr<Stream> operations_ = std::make_shared<Stream>(0);
  RoutingFamily routing_{operations_};
  std::optional<PinnedStaging> staging_;
};

TEST_F(Staging, SendsWhileOperationsAreHeldAndOverwritesNothingTheyHaveToRead) {
  PinnedMemory first(kBytes + 3);
  PinnedMemory second(kBytes + 3);
  PinnedMemory larger(5 * kBytes + 3);
  hold(*operations_);
  EXPECT_TRUE(returns_while_held([&] { send_and_read('a', kBytes, first); }));
  // The copy of the next one is behind them on the device, and the host waits for the copy before alone.
  EXPECT_TRUE(returns_while_held([&] { send_and_read('b', kBytes, second); }));
  EXPECT_TRUE(go_on_during([&] { send_and_read('c', 5 * kBytes, larger); }));
  operations_->wait();
  expect_letters(first, 'a');
  expect_letters(second, 'b');
  expect_letters(larger, 'c');
}

TEST_F(Staging, OperationsAreBehindTheirCopies) {
  PinnedMemory read(kBytes + 3);
  hold(*copies_);
  EXPECT_TRUE(returns_while_held([&] { send_and_read('a', kBytes, read); }));
  EXPECT_TRUE(go_on_during([&] { operations_->wait(); }));
  expect_letters(read, 'a');
}

TEST_F(Staging, PinnedMemoryIsNotOverwrittenBeforeItIsCopied) {
  PinnedMemory first(kBytes + 3);
  PinnedMemory second(kBytes + 3);
  hold(*copies_);
  EXPECT_TRUE(returns_while_held([&] { send_and_read('a', kBytes, first); }));
  EXPECT_TRUE(go_on_during([&] { send_and_read('b', kBytes, second); }));
  operations_->wait();
  expect_letters(first, 'a');
  expect_letters(second, 'b');
}

TEST_F(Staging, IsGivenBackBehindWhatReadsIt) {
  PinnedMemory read(kBytes + 3);
  hold(*operations_);
  send_and_read('a', kBytes, read);
  EXPECT_GT(*booked_, static_cast<int64_t>(kBytes));
  // To give pinned memory back, the host waits for the device.
  EXPECT_TRUE(go_on_during([&] { staging_.reset(); }));
  operations_->wait();
  expect_letters(read, 'a');
  EXPECT_EQ(*booked_, 0);
}

}  // namespace
}  // namespace shardrec::test
