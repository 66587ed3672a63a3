// Destroys wait for no other rank, and what was made on a communicator that is dead can still be destroyed.
#include <gtest/gtest.h>

#include <latch>
#include <optional>
#include <thread>
#include <vector>

#include "capi/checkpoint_job.h"
#include "shardrec/shardrec.hpp"

namespace shardrec_test {
namespace {

// One of each that is made on a communicator, and one of those that are not.
struct Everything {
  explicit Everything(shardrec::Comm& comm)
      : model(make_model()),
        plan(make_plan(model, 2, SHARDREC_SHARDING_ROW_WISE)),
        mesh(comm, 1),
        tables(comm, model, plan),
        lookup(tables),
        ddp(comm),
        fsdp(comm),
        metrics(comm),
        checkpoint(comm, "not there") {}

  shardrec::Model model;
  shardrec::Plan plan;
  shardrec::Mesh mesh;
  shardrec::Collection tables;
  shardrec::Lookup lookup;
  shardrec::Ddp ddp;
  shardrec::Fsdp fsdp;
  shardrec::Metrics metrics;
  shardrec::Checkpoint checkpoint;
  shardrec::Options options{SHARDREC_OPTIONS_PLAN};
  shardrec::Control control;
  shardrec::Topology topology{2, 2};
};

TEST(Destroy, OfEverythingReturnsWhileTheOtherRankDoesNothing) {
  std::latch destroyed(1);
  std::latch made(2);
  shardrec::Local group(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      std::optional<shardrec::Comm> comm(std::in_place, group, rank);
      std::optional<Everything> all(std::in_place, *comm);
      made.arrive_and_wait();
      if (rank == 0) {
        all.reset();
        comm.reset();
        destroyed.count_down();
      }
      destroyed.wait();  // a destroy that waited for this rank would not end
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Destroy, OfWhatWasMadeOnADeadCommunicatorIsInOrder) {
  const int64_t before = shardrec::live_objects();
  run(2, [](shardrec::Comm& comm, int rank) {
    const Everything all(comm);
    if (rank == 1) comm.abort("enough");
    EXPECT_EQ(status_of([&] { comm.barrier(); }), SHARDREC_ABORTED);
  });
  EXPECT_EQ(shardrec::live_objects(), before);
}

}  // namespace
}  // namespace shardrec_test
