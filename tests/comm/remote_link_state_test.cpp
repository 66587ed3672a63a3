// The order in which a communicator between processes and what was split from it die.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "comm/remote/group.h"
#include "comm/remote/link_state.h"
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

// Every death takes a moment: the observer looks at the same time.
TEST(RemoteLinkState, WhoSeesAPartDeadSeesItsPartsDead) {
  for (int repeat = 0; repeat < 200; ++repeat) {
    const auto link = support::MemoryLink::make(1);
    LinkState link_state(link->layout(0), link->carrier(0), link->state_broadcast(0));
    std::vector<Part> halves;
    for (uint64_t n = 0; n < 4; ++n) {
      Part& half = halves.emplace_back(Part{.group = split(link_state.root(), n)});
      link_state.add(half.group, {});
      for (uint64_t m = 0; m < 8; ++m) {
        half.parts.push_back(split(half.group, m));
        link_state.add(half.parts.back(), {});
      }
    }
    std::atomic<bool> looking{false};
    int survivors = 0;
    std::thread observer([&] {
      looking = true;
      for (const Part& half : halves) {
        while (!half.group->dead()) {
        }
        for (const auto& part : half.parts) survivors += part->dead() ? 0 : 1;
      }
    });
    while (!looking) std::this_thread::yield();
    link_state.kill(*link_state.root(), {.reason = "enough"});
    observer.join();
    EXPECT_EQ(survivors, 0);
  }
}

}  // namespace
}  // namespace shardrec::comm::remote
