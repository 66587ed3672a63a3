// What a collective call that one rank refuses means for the others (status.h): they wait for the rank, or
// every rank is told.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "capi_test.h"
#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

using Tables = Owned<shardrec_collection, shardrec_collection_destroy>;
using Lookup = Owned<shardrec_lookup, shardrec_lookup_destroy>;

constexpr int kRanks = 2;
constexpr int64_t kDim = 4;

// What collective calls are made on, of one rank.
class Rank {
 public:
  Rank(shardrec_comm* its_comm, int its_rank, std::string its_folder)
      : comm(its_comm), rank(its_rank), folder(std::move(its_folder)) {
    EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 30));
    EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_SETUP_SECONDS, 30));
    EXPECT_OK(shardrec_model_create(nullptr, model.out()));
    EXPECT_OK(shardrec_model_add_table(model, "t", 8, kDim, nullptr, nullptr));
    EXPECT_OK(shardrec_model_add_feature(model, 0, "f", SHARDREC_POOLING_SUM));
    EXPECT_OK(shardrec_plan_collective(comm, nullptr, model, nullptr, plan.out()));
    EXPECT_OK(shardrec_mesh_create(comm, 1, nullptr, mesh.out()));
    EXPECT_OK(shardrec_collection_create(comm, nullptr, model, plan, nullptr, tables.out()));
    EXPECT_OK(shardrec_lookup_create(tables, nullptr, lookup.out()));
    EXPECT_OK(shardrec_ddp_create(comm, nullptr, ddp.out()));
    const shardrec_tensor parameter = vector();
    EXPECT_OK(shardrec_ddp_add_parameter(ddp, "p", &parameter, nullptr, nullptr));
    EXPECT_OK(shardrec_ddp_commit(ddp));
    EXPECT_OK(
        shardrec_checkpoint_create(comm, (folder + "/run").c_str(), nullptr, checkpoint.out()));
    EXPECT_OK(shardrec_checkpoint_add_collection(checkpoint, "tables", tables));
  }

  shardrec_tensor vector() { return vector_of(numbers); }
  shardrec_tensor row() { return matrix(numbers.data(), 1, kDim); }

  // A batch of one id, up to forward or to the gradient.
  void begin() {
    const shardrec_tensor values = vector_of(ids);
    const shardrec_tensor lengths = vector_of(bags);
    EXPECT_OK(begin_batch(lookup, {.batch_size = 1, .values = &values, .lengths = &lengths}));
  }
  void begin_and_forward() {
    begin();
    const shardrec_tensor out = row();
    EXPECT_OK(shardrec_lookup_forward(lookup, 0, &out));
    EXPECT_OK(shardrec_lookup_set_gradient(lookup, 0, &out));
  }

  shardrec_comm* comm;
  int rank;
  std::string folder;
  std::vector<float> numbers = std::vector<float>(kDim, 1.0F);
  std::vector<int64_t> ids = {3};
  std::vector<int64_t> bags = {1};
  Model model;
  Plan plan;
  Mesh mesh;
  Tables tables;
  Lookup lookup;
  Ddp ddp;
  Checkpoint checkpoint;
};

class RefusedCollectives : public testing::Test {
 protected:
  RefusedCollectives() {
    std::string name = testing::TempDir() + "shardrec_refused_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~RefusedCollectives() override { std::filesystem::remove_all(folder_); }

  void on_ranks(const std::function<void(Rank&)>& body) const {
    run_ranks(kRanks, [&](shardrec_comm* comm, int number) {
      Rank rank(comm, number, folder_);
      body(rank);
    });
  }

 private:
  std::string folder_;
};

// A call that a rank refuses, and the one that all ranks make. `before`: on all ranks.
struct Refusal {
  const char* what;
  shardrec_status status;
  std::function<shardrec_status(Rank&)> wrong;
  std::function<shardrec_status(Rank&)> right;
  std::function<void(Rank&)> before = [](Rank&) {};
};

const std::vector<Refusal>& refused_alone() {
  static const std::vector<Refusal> all = {
      {"all_reduce", SHARDREC_INVALID_ARGUMENT,
       [](Rank& r) {
         const shardrec_tensor values = r.vector();
         return shardrec_comm_all_reduce(r.comm, &values, static_cast<shardrec_reduction>(9));
       },
       [](Rank& r) {
         const shardrec_tensor values = r.vector();
         return shardrec_comm_all_reduce(r.comm, &values, SHARDREC_REDUCTION_MAX);
       }},
      {"broadcast", SHARDREC_INVALID_ARGUMENT,
       [](Rank& r) {
         const shardrec_tensor values = r.vector();
         return shardrec_comm_broadcast(r.comm, &values, kRanks);
       },
       [](Rank& r) {
         const shardrec_tensor values = r.vector();
         return shardrec_comm_broadcast(r.comm, &values, 0);
       }},
      {"split", SHARDREC_INVALID_ARGUMENT,
       [](Rank& r) { return shardrec_comm_split(r.comm, 0, 0, nullptr); },
       [](Rank& r) {
         Comm part;
         return shardrec_comm_split(r.comm, 0, 0, part.out());
       }},
      {"mesh_comm", SHARDREC_INVALID_ARGUMENT,
       [](Rank& r) {
         Comm group;
         return shardrec_mesh_comm(r.mesh, static_cast<shardrec_mesh_group>(7), group.out());
       },
       [](Rank& r) {
         Comm group;
         return shardrec_mesh_comm(r.mesh, SHARDREC_MESH_GROUP_REPLICA, group.out());
       }},
      {"forward of nothing", SHARDREC_INVALID_ARGUMENT,
       [](Rank& r) { return shardrec_lookup_forward(r.lookup, 0, nullptr); },
       [](Rank& r) {
         const shardrec_tensor out = r.row();
         return shardrec_lookup_forward(r.lookup, 0, &out);
       },
       [](Rank& r) { r.begin(); }},
      {"begin after begin", SHARDREC_INVALID_STATE,
       [](Rank& r) {
         return begin_batch(r.lookup, {.batch_size = 0, .values = nullptr, .lengths = nullptr});
       },
       [](Rank& r) {
         const shardrec_tensor out = r.row();
         return shardrec_lookup_forward(r.lookup, 0, &out);
       },
       [](Rank& r) { r.begin(); }},
      {"backward", SHARDREC_INVALID_ARGUMENT,
       [](Rank& r) { return shardrec_lookup_backward(r.lookup, static_cast<shardrec_update>(9)); },
       [](Rank& r) { return shardrec_lookup_backward(r.lookup, SHARDREC_UPDATE_APPLY); },
       [](Rank& r) { r.begin_and_forward(); }},
      {"read_range", SHARDREC_INVALID_ARGUMENT,
       [](Rank& r) {
         const shardrec_tensor out = r.row();
         return shardrec_collection_read_range(r.tables, 0, SHARDREC_TABLE_WEIGHTS, 8, 1, &out);
       },
       [](Rank& r) {
         const shardrec_tensor out = r.row();
         return shardrec_collection_read_range(r.tables, 0, SHARDREC_TABLE_WEIGHTS, 7, 1, &out);
       }},
      {"write_rows of a table that there is not", SHARDREC_NOT_FOUND,
       [](Rank& r) {
         return shardrec_collection_write_rows(r.tables, 5, SHARDREC_TABLE_WEIGHTS, nullptr,
                                               nullptr);
       },
       [](Rank& r) {
         return shardrec_collection_write_rows(r.tables, 0, SHARDREC_TABLE_WEIGHTS, nullptr,
                                               nullptr);
       }},
      {"wait before end", SHARDREC_INVALID_STATE, [](Rank& r) { return shardrec_ddp_wait(r.ddp); },
       [](Rank& r) { return shardrec_ddp_all_reduce(r.ddp); }},
      {"commit a second time, then another call", SHARDREC_INVALID_STATE,
       [](Rank& r) { return shardrec_ddp_commit(r.ddp); },
       [](Rank& r) { return shardrec_ddp_check_equal(r.ddp); }},
      {"broadcast of parameters", SHARDREC_INVALID_ARGUMENT,
       [](Rank& r) { return shardrec_ddp_broadcast(r.ddp, kRanks); },
       [](Rank& r) { return shardrec_ddp_broadcast(r.ddp, 0); }},
  };
  return all;
}

// Refused by rank 1 alone, and told to all before anything is done.
const std::vector<Refusal>& told_to_all() {
  static const auto create = [](Rank& r, const shardrec_model* model, const shardrec_plan* plan,
                                const shardrec_options* options, bool with_out) {
    Tables tables;
    return shardrec_collection_create(r.comm, nullptr, model, plan, options,
                                      with_out ? tables.out() : nullptr);
  };
  static const auto load_partial = [](Rank& r, const char* rules) {
    char* report = nullptr;
    const shardrec_status status =
        shardrec_checkpoint_load_partial(r.checkpoint, rules, nullptr, &report);
    shardrec_text_free(report);
    return status;
  };
  static const auto good_create = [](Rank& r) { return create(r, r.model, r.plan, nullptr, true); };
  static const std::vector<Refusal> all = {
      {"plan without model", SHARDREC_INVALID_HANDLE,
       [](Rank& r) {
         Plan plan;
         return shardrec_plan_collective(r.comm, nullptr, nullptr, nullptr, plan.out());
       },
       [](Rank& r) {
         Plan plan;
         return shardrec_plan_collective(r.comm, nullptr, r.model, nullptr, plan.out());
       }},
      {"collection without model", SHARDREC_INVALID_HANDLE,
       [](Rank& r) { return create(r, nullptr, r.plan, nullptr, true); }, good_create},
      {"collection without plan", SHARDREC_INVALID_HANDLE,
       [](Rank& r) { return create(r, r.model, nullptr, nullptr, true); }, good_create},
      {"collection with options of another kind", SHARDREC_INVALID_ARGUMENT,
       [](Rank& r) {
         Options options;
         EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_TABLE, options.out()));
         return create(r, r.model, r.plan, options, true);
       },
       good_create},
      {"collection without out", SHARDREC_INVALID_ARGUMENT,
       [](Rank& r) { return create(r, r.model, r.plan, nullptr, false); }, good_create},
      {"mesh without out", SHARDREC_INVALID_ARGUMENT,
       [](Rank& r) { return shardrec_mesh_create(r.comm, 2, nullptr, nullptr); },
       [](Rank& r) {
         Mesh mesh;
         return shardrec_mesh_create(r.comm, 2, nullptr, mesh.out());
       }},
      {"mesh with options of another kind", SHARDREC_INVALID_ARGUMENT,
       [](Rank& r) {
         Options options;
         Mesh mesh;
         EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_TABLE, options.out()));
         return shardrec_mesh_create(r.comm, 2, options, mesh.out());
       },
       [](Rank& r) {
         Mesh mesh;
         return shardrec_mesh_create(r.comm, 2, nullptr, mesh.out());
       }},
      {"commit", SHARDREC_INVALID_ARGUMENT,
       [](Rank& r) { return shardrec_checkpoint_commit(r.checkpoint, -1, nullptr); },
       [](Rank& r) { return shardrec_checkpoint_commit(r.checkpoint, 4, nullptr); }},
      {"open", SHARDREC_INVALID_ARGUMENT,
       [](Rank& r) { return shardrec_checkpoint_open(r.checkpoint, -2); },
       [](Rank& r) { return shardrec_checkpoint_open(r.checkpoint, 4); }},
      {"load with a destroyed control", SHARDREC_CLOSED,
       [](Rank& r) {
         shardrec_control* control = nullptr;
         EXPECT_OK(shardrec_control_create(nullptr, &control));
         shardrec_control* destroyed = control;
         shardrec_control_destroy(&control);
         return shardrec_checkpoint_load(r.checkpoint, destroyed);
       },
       [](Rank& r) { return shardrec_checkpoint_load(r.checkpoint, nullptr); }},
      {"load_partial without a document", SHARDREC_INVALID_ARGUMENT,
       [](Rank& r) { return load_partial(r, nullptr); },
       [](Rank& r) { return load_partial(r, R"({"version": 1})"); }},
      {"verify with a model for a control", SHARDREC_INVALID_HANDLE,
       [](Rank& r) {
         return shardrec_checkpoint_verify(r.checkpoint,
                                           reinterpret_cast<shardrec_control*>(r.model.get()));
       },
       [](Rank& r) { return shardrec_checkpoint_verify(r.checkpoint, nullptr); }},
  };
  return all;
}

TEST_F(RefusedCollectives, OnOneRankLetTheOthersWaitUntilThatRankCallsAgain) {
  on_ranks([](Rank& rank) {
    for (const Refusal& refusal : refused_alone()) {
      SCOPED_TRACE(refusal.what);
      refusal.before(rank);
      if (rank.rank == 1) {
        EXPECT_EQ(refusal.wrong(rank), refusal.status) << shardrec_last_error();
      }
      EXPECT_OK(refusal.right(rank));
    }
  });
}

TEST_F(RefusedCollectives, OnOneRankEndTheOthersByTheirDeadline) {
  for (const Refusal& refusal : refused_alone()) {
    SCOPED_TRACE(refusal.what);
    const std::string what = refusal.what;
    if (what != "all_reduce" && what != "save" && what != "mesh_comm") continue;
    on_ranks([&](Rank& rank) {
      if (rank.rank == 1) {
        EXPECT_EQ(refusal.wrong(rank), refusal.status);
        while (shardrec_comm_status(rank.comm) == SHARDREC_OK) std::this_thread::yield();
        EXPECT_EQ(shardrec_comm_status(rank.comm), SHARDREC_TIMEOUT);
        return;
      }
      EXPECT_OK(shardrec_comm_set_f64(rank.comm, SHARDREC_COMM_STEP_SECONDS, 0.1));
      EXPECT_OK(shardrec_comm_set_f64(rank.comm, SHARDREC_COMM_SETUP_SECONDS, 0.1));
      EXPECT_EQ(refusal.right(rank), SHARDREC_TIMEOUT) << shardrec_last_error();
      EXPECT_TRUE(contains(shardrec_last_error(), "rank 1 did not come")) << shardrec_last_error();
    });
  }
}

TEST_F(RefusedCollectives, OnACommunicatorThatIsDeadAllGiveItsStatusAtOnce) {
  on_ranks([](Rank& rank) {
    if (rank.rank == 1) {
      while (shardrec_comm_status(rank.comm) == SHARDREC_OK) std::this_thread::yield();
    } else {
      EXPECT_OK(shardrec_comm_set_f64(rank.comm, SHARDREC_COMM_STEP_SECONDS, 0.1));
      EXPECT_EQ(shardrec_comm_barrier(rank.comm), SHARDREC_TIMEOUT);
      EXPECT_OK(shardrec_comm_set_f64(rank.comm, SHARDREC_COMM_STEP_SECONDS, 1000));
      EXPECT_OK(shardrec_comm_set_f64(rank.comm, SHARDREC_COMM_SETUP_SECONDS, 1000));
    }
    for (const Refusal& refusal : refused_alone()) {
      const std::string what = refusal.what;
      // These need a batch that has begun, which is refused before.
      if (what.starts_with("forward") || what.starts_with("begin") || what == "backward") continue;
      EXPECT_EQ(refusal.right(rank), SHARDREC_TIMEOUT) << what << ": " << shardrec_last_error();
    }
    EXPECT_EQ(begin_batch(rank.lookup, {.batch_size = 0}), SHARDREC_TIMEOUT);
    for (const Refusal& refusal : told_to_all()) {
      if (std::string(refusal.what).starts_with("load")) continue;  // needs an open checkpoint
      if (std::string(refusal.what).starts_with("verify")) continue;
      EXPECT_EQ(refusal.right(rank), SHARDREC_TIMEOUT) << refusal.what;
    }
  });
}

TEST_F(RefusedCollectives, OnOneRankThatThenMakesAnotherCallAreAMismatch) {
  on_ranks([](Rank& rank) {
    const Refusal& refusal = refused_alone().front();
    if (rank.rank == 1) {
      EXPECT_EQ(refusal.wrong(rank), refusal.status);
      EXPECT_EQ(shardrec_comm_barrier(rank.comm), SHARDREC_MISMATCH);
    } else {
      EXPECT_EQ(refusal.right(rank), SHARDREC_MISMATCH);
    }
  });
}

TEST_F(RefusedCollectives, OnOneRankThatThenDestroysItsCommunicatorArePeerFailed) {
  Local group;
  ASSERT_OK(shardrec_local_create(kRanks, kRanks, nullptr, group.out()));
  std::vector<std::thread> threads;
  for (int number = 0; number < kRanks; ++number) {
    threads.emplace_back([&, number] {
      Comm comm;
      EXPECT_OK(shardrec_comm_create_local(group, number, nullptr, comm.out()));
      if (number == 1) {
        EXPECT_EQ(shardrec_comm_all_reduce(comm, nullptr, SHARDREC_REDUCTION_SUM),
                  SHARDREC_INVALID_ARGUMENT);
      } else {
        EXPECT_EQ(shardrec_comm_barrier(comm), SHARDREC_PEER_FAILED) << shardrec_last_error();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(RefusedCollectives, WhoseArgumentsAreSharedFirstAreEveryRanksError) {
  on_ranks([](Rank& rank) {
    for (const Refusal& refusal : told_to_all()) {
      SCOPED_TRACE(refusal.what);
      EXPECT_EQ(rank.rank == 1 ? refusal.wrong(rank) : refusal.right(rank), refusal.status);
      EXPECT_TRUE(contains(shardrec_last_error(), "rank 1")) << shardrec_last_error();
      EXPECT_OK(refusal.right(rank));
    }
  });
}

}  // namespace
}  // namespace shardrec::test
