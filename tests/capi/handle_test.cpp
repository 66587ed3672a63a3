// The handle table: tickets, counting, closing, one thread at a time.
#include "handle.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <bit>
#include <memory>
#include <random>
#include <thread>
#include <vector>

struct shardrec_test_thing;
struct shardrec_test_pair;
struct shardrec_test_asker;

namespace shardrec::capi {

// An object that knows whether it is alive, and tells when it is closed.
struct TestThing {
  static inline std::atomic<int> alive{0};
  explicit TestThing(int number) : value(number) { alive.fetch_add(1); }
  ~TestThing() {
    value = -1;
    alive.fetch_sub(1);
  }
  void closing() noexcept { closed.store(true); }

  int value;
  std::atomic<bool> closed{false};
};

// An object that asks, while it is freed, what its own ticket has become.
struct TestAsker {
  ~TestAsker();
  shardrec_status* answer;
  shardrec_test_asker* own = nullptr;
};

// Two handles that only one thread at a time may use.
struct TestPair {
  std::shared_ptr<BusyFlag> flag;
  BusyFlag& busy_flag() const { return *flag; }
};

template <>
struct Handle<shardrec_test_thing> {
  using Object = TestThing;
  static constexpr Kind kKind = Kind::kMetrics;
};
template <>
struct Handle<shardrec_test_pair> {
  using Object = TestPair;
  static constexpr Kind kKind = Kind::kInteraction;
};

template <>
struct Handle<shardrec_test_asker> {
  using Object = TestAsker;
  static constexpr Kind kKind = Kind::kInteraction;
};

namespace {

shardrec_test_thing* make(int value) {
  shardrec_test_thing* handle = nullptr;
  create(&handle, std::make_shared<TestThing>(value));
  return handle;
}

template <class Type>
shardrec_status enter_status(Type* handle, Access access = Access::kShared) {
  try {
    enter(handle, access);
    return SHARDREC_OK;
  } catch (const core::Error& error) {
    return error.status();
  }
}

}  // namespace

TestAsker::~TestAsker() { *answer = enter_status(own); }

namespace {

TEST(Handles, ATicketIsClosedAlsoWhileTheLastCallFreesTheObject) {
  shardrec_status answer = SHARDREC_OK;
  shardrec_test_asker* handle = nullptr;
  create(&handle, std::make_shared<TestAsker>(&answer));
  enter(handle, Access::kShared)->own = handle;
  destroy(&handle);
  EXPECT_EQ(answer, SHARDREC_CLOSED);
}

TEST(Handles, OpenOnesAreFoundAndDestroyedOnesAreClosed) {
  shardrec_test_thing* handle = make(7);
  ASSERT_NE(handle, nullptr);
  EXPECT_EQ(enter(handle, Access::kShared)->value, 7);
  shardrec_test_thing* copy = handle;
  destroy(&handle);
  EXPECT_EQ(handle, nullptr);
  EXPECT_EQ(enter_status(copy), SHARDREC_CLOSED);
  destroy(&copy);  // closed: nothing happens
  EXPECT_EQ(copy, nullptr);
  EXPECT_EQ(TestThing::alive.load(), 0);
}

TEST(Handles, ClosedOnesStayClosedWhenTheirSlotIsUsedAgain) {
  std::vector<shardrec_test_thing*> old;
  for (int i = 0; i < 1000; ++i) {
    shardrec_test_thing* handle = make(i);
    old.push_back(handle);
    destroy(&handle);
  }
  shardrec_test_thing* now = make(1);
  for (shardrec_test_thing* handle : old) {
    EXPECT_NE(handle, now);
    EXPECT_EQ(enter_status(handle), SHARDREC_CLOSED);
    destroy(&handle);
  }
  EXPECT_EQ(enter(now, Access::kShared)->value, 1);
  destroy(&now);
}

TEST(Handles, GarbageIsNoHandle) {
  shardrec_test_thing* handle = make(1);
  const auto ticket = std::bit_cast<uint64_t>(handle);
  EXPECT_EQ(enter_status(static_cast<shardrec_test_thing*>(nullptr)), SHARDREC_INVALID_HANDLE);
  for (int bit = 0; bit < 64; ++bit) {
    auto* wrong = std::bit_cast<shardrec_test_thing*>(ticket ^ uint64_t{1} << bit);
    const shardrec_status status = enter_status(wrong);
    EXPECT_TRUE(status == SHARDREC_INVALID_HANDLE || status == SHARDREC_CLOSED)
        << "bit " << bit << ": " << shardrec_status_name(status);
    destroy(&wrong);
  }
  std::mt19937_64 random(5);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t value = random();
    EXPECT_EQ(enter_status(std::bit_cast<shardrec_test_thing*>(value)), SHARDREC_INVALID_HANDLE)
        << value;
  }
  int on_the_stack = 0;
  auto* foreign = static_cast<shardrec_test_thing*>(static_cast<void*>(&on_the_stack));
  EXPECT_EQ(enter_status(foreign), SHARDREC_INVALID_HANDLE);
  EXPECT_EQ(enter_status(handle), SHARDREC_OK);
  destroy(&handle);
}

TEST(Handles, AnotherKindIsNamed) {
  shardrec_test_thing* handle = make(1);
  auto* wrong = std::bit_cast<shardrec_test_pair*>(handle);
  try {
    enter(wrong, Access::kShared);
    FAIL() << "a handle of another kind was accepted";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.status(), SHARDREC_INVALID_HANDLE);
    EXPECT_EQ(error.sentence(), "this is a shardrec_metrics; a shardrec_interaction is needed");
  }
  destroy(&wrong);  // of another kind: nothing happens
  EXPECT_EQ(enter_status(handle), SHARDREC_OK);
  destroy(&handle);
}

TEST(Handles, ExclusiveCallsGetBusyAndSharedOnesPass) {
  shardrec_test_thing* handle = make(1);
  {
    const auto inside = enter(handle, Access::kExclusive);
    EXPECT_EQ(enter_status(handle, Access::kExclusive), SHARDREC_BUSY);
    EXPECT_EQ(enter_status(handle, Access::kShared), SHARDREC_OK);
  }
  EXPECT_EQ(enter_status(handle, Access::kExclusive), SHARDREC_OK);
  destroy(&handle);
}

TEST(Handles, ObjectsThatShareABusyFlagAreUsedByOneThreadAtATime) {
  const auto flag = std::make_shared<BusyFlag>();
  shardrec_test_pair* first = nullptr;
  shardrec_test_pair* second = nullptr;
  create(&first, std::make_shared<TestPair>(TestPair{flag}));
  create(&second, std::make_shared<TestPair>(TestPair{flag}));
  {
    const auto inside = enter(first, Access::kExclusive);
    EXPECT_EQ(enter_status(second, Access::kExclusive), SHARDREC_BUSY);
    EXPECT_EQ(enter_status(second, Access::kShared), SHARDREC_OK);
  }
  EXPECT_EQ(enter_status(second, Access::kExclusive), SHARDREC_OK);
  EXPECT_EQ(enter_status(first, Access::kExclusive), SHARDREC_OK);
  destroy(&first);
  destroy(&second);
}

TEST(Handles, DestroyDoesNotWaitAndTheLastCallFrees) {
  shardrec_test_thing* handle = make(3);
  const int64_t before = live_objects();
  {
    const auto inside = enter(handle, Access::kExclusive);
    shardrec_test_thing* copy = handle;
    EXPECT_FALSE(inside.closed());
    destroy(&copy);  // returns although a call is inside
    EXPECT_TRUE(inside.closed());
    EXPECT_TRUE(inside->closed.load()) << "closing() was not called";
    EXPECT_EQ(inside->value, 3);
    EXPECT_EQ(enter_status(handle), SHARDREC_CLOSED);
    EXPECT_EQ(live_objects(), before);
  }
  EXPECT_EQ(TestThing::alive.load(), 0);
  EXPECT_EQ(live_objects(), before - 1);
  EXPECT_EQ(enter_status(handle), SHARDREC_CLOSED);
}

TEST(Handles, ChildrenKeepTheObject) {
  shardrec_test_thing* handle = make(9);
  const std::shared_ptr<TestThing> kept = enter(handle, Access::kShared).share();
  destroy(&handle);
  EXPECT_EQ(kept->value, 9);
  EXPECT_EQ(TestThing::alive.load(), 1);
}

TEST(Handles, AReservationThatIsNotUsedLeavesNothing) {
  const int64_t before = live_objects();
  {
    const Reserved<shardrec_test_thing> reserved;
  }
  EXPECT_EQ(live_objects(), before);
  shardrec_test_thing* handle = make(2);
  EXPECT_EQ(live_objects(), before + 1);
  destroy(&handle);
}

// Threads make, use and destroy handles in a shared array; every use must see the object whole.
TEST(Handles, ManyThreadsCreateUseAndDestroyAtRandom) {
  constexpr int kThreads = 4;
  constexpr int kSlots = 8;
  constexpr int kRounds = 20000;
  std::array<std::atomic<shardrec_test_thing*>, kSlots> handles{};
  std::atomic<int64_t> used{0};
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int round = 0; round < kRounds; ++round) {
        const size_t slot = random() % kSlots;
        const unsigned action = random() % 8;
        if (action == 0) {
          shardrec_test_thing* old = handles[slot].exchange(make(static_cast<int>(slot)));
          destroy(&old);
          continue;
        }
        shardrec_test_thing* handle = handles[slot].load();
        try {
          const auto use = enter(handle, action < 4 ? Access::kExclusive : Access::kShared);
          if (use->value != static_cast<int>(slot)) wrong.fetch_add(1);
          used.fetch_add(1);
        } catch (const core::Error& error) {
          const bool expected = error.status() == SHARDREC_BUSY ||
                                error.status() == SHARDREC_CLOSED ||
                                (handle == nullptr && error.status() == SHARDREC_INVALID_HANDLE);
          if (!expected) wrong.fetch_add(1);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& handle : handles) {
    shardrec_test_thing* last = handle.load();
    destroy(&last);
  }
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_GT(used.load(), kRounds / 4);
  EXPECT_EQ(TestThing::alive.load(), 0);
}

TEST(Handles, ExclusiveUsesOfOneObjectNeverOverlap) {
  shardrec_test_thing* handle = make(0);
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  std::atomic<int> uses{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 5000; ++round) {
        try {
          const auto use = enter(handle, Access::kExclusive);
          if (inside.fetch_add(1) != 0) overlaps.fetch_add(1);
          use->value += 1;  // a data race if two were inside
          inside.fetch_sub(1);
          uses.fetch_add(1);
        } catch (const core::Error&) {
          std::this_thread::yield();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(overlaps.load(), 0);
  EXPECT_EQ(enter(handle, Access::kShared)->value, uses.load());
  destroy(&handle);
}

TEST(Handles, TheTableGrowsWhileOthersLookUp) {
  constexpr int kCount = 3000;
  shardrec_test_thing* first = make(-5);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    while (!stop.load()) {
      if (enter(first, Access::kShared)->value != -5) wrong.fetch_add(1);
    }
  });
  std::vector<shardrec_test_thing*> handles;
  for (int i = 0; i < kCount; ++i) handles.push_back(make(i));
  stop.store(true);
  reader.join();
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(enter(handles[static_cast<size_t>(i)], Access::kShared)->value, i);
  }
  for (shardrec_test_thing* handle : handles) destroy(&handle);
  destroy(&first);
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(TestThing::alive.load(), 0);
}

}  // namespace
}  // namespace shardrec::capi
