// Lists that operations read are on the device when they are sent, and are copied when they have changed.
#include "compute/cuda/host/arguments.h"

#include <cstring>
#include <vector>

#include "device/device_arrays.h"
#include "device/of_plugin.h"

namespace shardrec::test {
namespace {

using compute::cuda::host::Arguments;
using compute::cuda::host::PinnedRoom;

class ArgumentsOnDevice : public DeviceTest {
 protected:
  // Sends the lists in room for `most` numbers, and checks that they are there.
  void send(const std::vector<std::vector<int32_t>>& lists, size_t most = 64) {
    arguments_->begin(lists.size() * Arguments::bytes_of<int32_t>(most));
    std::vector<const int32_t*> there;
    there.reserve(lists.size());
    for (const auto& list : lists) there.push_back(arguments_->add(std::span(list)));
    arguments_->send();
    for (size_t i = 0; i < lists.size(); ++i) EXPECT_EQ(read(there[i], lists[i].size()), lists[i]);
  }

  std::vector<int32_t> read(const int32_t* there, size_t count) {
    if (count == 0) return {};
    PinnedRoom room;
    const size_t bytes = count * sizeof(int32_t);
    std::byte* const here = room.resize(bytes);
    stream_->copy(here, there, bytes);
    stream_->wait();
    std::vector<int32_t> numbers(count);
    std::memcpy(numbers.data(), here, bytes);
    ++read_;
    return numbers;
  }

  // Copies since the last call, but for those of read(); -1: nobody counts.
  int64_t copies() {
    const auto counted = of_plugin<int64_t()>("simt_copies");
    if (counted == nullptr) return -1;
    const int64_t now = counted() - std::exchange(read_, 0);
    return now - std::exchange(before_, counted());
  }

  std::unique_ptr<Arguments> arguments_;
  int64_t read_ = 0;
  int64_t before_ = 0;
};

TEST_F(ArgumentsOnDevice, AreCopiedWhenTheyHaveChanged) {
  arguments_ = std::make_unique<Arguments>(stream_);
  copies();
  const auto expect_copies = [&](int64_t expected) {
    const int64_t counted = copies();
    if (counted >= 0) {
      EXPECT_EQ(counted, expected);
    }
  };
  const std::vector<std::vector<int32_t>> lists[] = {
      {{1, 2, 3}, {4}}, {{1, 2, 5}, {4}}, {{1, 2}}, {{}, {}}};
  for (const auto& list : lists) send(list);
  expect_copies(3);
  for (int i = 0; i < 2; ++i) {
    for (const auto& list : lists) send(list);
  }
  expect_copies(0);
  send({{1, 2, 3}, {5}});  // another number
  expect_copies(1);
  for (const auto& list : std::span(lists).subspan(1)) send(list);
  expect_copies(0);
  send({{1, 2, 3}});  // what the device has begins so
  send(lists[1]);
  send({{1, 2, 7}});  // more than there was
  send({{8}, {}});
  expect_copies(2);
  for (int i = 0; i < 4; ++i) send({{1, 2, 3}}, 1 << 20);  // in more room
  expect_copies(4);
  for (int i = 0; i < 4; ++i) send({{1, 2, 3}});
  expect_copies(0);
}

}  // namespace
}  // namespace shardrec::test
