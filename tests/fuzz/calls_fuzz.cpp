// Random sequences of calls on two ranks of one process: handles that are live, closed, null, of
// another kind, another rank's or garbage; shapes, dtypes, ids and options of all sorts; ranks that
// call different things. Nothing may crash, hang or leak, whatever the statuses are; a failed call
// has a sentence.
//
// Both ranks read the same bytes, so that most of their collective calls match and batches go
// through; some calls are one rank's alone. Memory that a tensor describes is always there: a view
// of memory that is not cannot be told from a good one.
#include <thread>

#include "fuzz/rank.h"

namespace {

void check(bool holds, const char* what) {
  if (!holds) shardrec::fuzz::broken_promise(what);
}

int64_t live_objects() {
  int64_t live = -1;
  check(shardrec_live_objects(&live) == SHARDREC_OK, "live objects are always counted");
  return live;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using shardrec::fuzz::Input;
  using shardrec::fuzz::Rank;
  const int64_t before = live_objects();
  {
    shardrec_local* group = nullptr;
    check(shardrec_local_create(2, 1, nullptr, &group) == SHARDREC_OK,
          "a group of two ranks is made");
    Rank first(0, group);
    Rank second(1, group);
    first.meet(second);
    second.meet(first);
    shardrec_local_destroy(&group);
    std::thread other([&] { second.run(Input({data, size})); });
    first.run(Input({data, size}));
    other.join();
  }
  check(live_objects() == before, "destroyed handles are gone");
  return 0;
}
