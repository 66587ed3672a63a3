// The order in which a communicator between processes and what was split from it die.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "comm/remote/group.h"
#include "comm/remote/hub.h"
#include "support/memory_link.h"

namespace shardrec::comm::remote {
namespace {

std::shared_ptr<Group> split(const std::shared_ptr<Group>& parent, uint64_t n) {
  return std::make_shared<Group>(Group::Shape{
      .parent = parent, .members = {0}, .numbers = parent->shape().numbers.split(n).value()});
}

// A group, and what was split from it, all with numbers above its own.
struct Part {
  std::shared_ptr<Group> group;
  std::vector<std::shared_ptr<Group>> parts;
};

// Every death takes a moment: the witness looks at the same time.
TEST(RemoteHub, WhoSeesAPartDeadSeesItsPartsDead) {
  for (int repeat = 0; repeat < 200; ++repeat) {
    const auto link = support::MemoryLink::make(1);
    Hub hub(link->roster(0), link->carrier(0), link->board(0));
    std::vector<Part> halves;
    for (uint64_t n = 0; n < 4; ++n) {
      Part& half = halves.emplace_back(Part{.group = split(hub.root(), n)});
      hub.add(half.group, {});
      for (uint64_t m = 0; m < 8; ++m) {
        half.parts.push_back(split(half.group, m));
        hub.add(half.parts.back(), {});
      }
    }
    std::atomic<bool> looking{false};
    int survivors = 0;
    std::thread witness([&] {
      looking = true;
      for (const Part& half : halves) {
        while (!half.group->dead()) {
        }
        for (const auto& part : half.parts) survivors += part->dead() ? 0 : 1;
      }
    });
    while (!looking) std::this_thread::yield();
    hub.kill(*hub.root(), {.reason = "enough"});
    witness.join();
    EXPECT_EQ(survivors, 0);
  }
}

}  // namespace
}  // namespace shardrec::comm::remote
