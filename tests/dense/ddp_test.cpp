#include "dense/ddp/ddp.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "comm/world.h"
#include "dense/host_parameters.h"
#include "dense/reference.h"

namespace shardrec::dense {
namespace {

using comm::Communicator;
using test::same_bits;

struct Host {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> value, gradient;
};

// The parameters of a rank, filled with numbers that depend on the rank.
std::vector<Host> hosts(const std::vector<int64_t>& sizes, int rank) {
  auto state = static_cast<uint32_t>(rank + 100);
  const auto next = [&state] {
    state = state * 1664525U + 1013904223U;
    return static_cast<float>(static_cast<int32_t>(state)) * 0x1p-30F;
  };
  std::vector<Host> all;
  for (const int64_t size : sizes) {
    Host host{"p" + std::to_string(all.size()), {size}, {}, {}};
    for (int64_t i = 0; i < size; ++i) {
      host.value.push_back(next());
      host.gradient.push_back(next());
    }
    all.push_back(std::move(host));
  }
  return all;
}

void add_all(Ddp& ddp, std::vector<Host>& all) {
  for (Host& host : all) {
    ddp.add(host.name, host.shape, flat(host.value), flat(host.gradient));
  }
}

void expect_none(const std::vector<std::optional<core::Error>>& errors) {
  for (size_t r = 0; r < errors.size(); ++r) {
    EXPECT_FALSE(errors[r]) << "rank " << r << ": " << errors[r]->sentence();
  }
}

// Buckets of one parameter, of several, a tensor above the cap, an empty one, tiny ones at the end.
const std::vector<int64_t> kSizes = {5, 300000, 7, 0, 2100000, 1, 3, 100, 64};

TEST(Ddp, AllReduceGivesTheMeanAndTheSameBitsOnEveryRank) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    for (const bool average : {true, false}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, average " << average);
      const std::vector<int64_t> sizes =
          ranks <= 3 ? kSizes : std::vector<int64_t>{5, 300000, 0, 7, 100};
      std::vector<std::vector<Host>> all(static_cast<size_t>(ranks));
      std::vector<std::vector<double>> expected(sizes.size());
      for (int r = 0; r < ranks; ++r) {
        all[static_cast<size_t>(r)] = hosts(sizes, r);
        for (size_t p = 0; p < sizes.size(); ++p) {
          expected[p].resize(static_cast<size_t>(sizes[p]));
          for (size_t i = 0; i < expected[p].size(); ++i) {
            expected[p][i] += all[static_cast<size_t>(r)][p].gradient[i] / (average ? ranks : 1.0);
          }
        }
      }
      expect_none(comm::run_ranks(ranks, [&](Communicator& communicator) {
        // Not the communicator's owner: it lives as long as the body.
        const std::shared_ptr<Communicator> borrowed(&communicator, [](Communicator*) {});
        DdpOptions options;
        options.reducer.average = average;
        Ddp ddp(borrowed, options);
        add_all(ddp, all[static_cast<size_t>(communicator.rank())]);
        ddp.commit();
        ddp.all_reduce();
      }));
      for (size_t p = 0; p < sizes.size(); ++p) {
        test::expect_near(all[0][p].gradient, expected[p], 2e-6, "gradient");
        for (const auto& rank : all) {
          EXPECT_TRUE(same_bits(rank[p].gradient, all[0][p].gradient)) << "parameter " << p;
          EXPECT_TRUE(same_bits(rank[p].value, all[0][p].value)) << "broadcast of " << p;
        }
      }
      const std::vector<Host> original = hosts(sizes, 0);
      for (size_t p = 0; p < sizes.size(); ++p) {
        EXPECT_TRUE(same_bits(original[p].value, all[0][p].value)) << "rank 0 keeps its values";
      }
    }
  }
}

// A rank whose gradients stand one behind the other reduces in place, another one copies: the
// buckets and the bits must be the same.
TEST(Ddp, BitsDoNotDependOnHowGradientsLieInMemory) {
  constexpr int64_t kFirst = 3000, kSecond = 5000;
  std::vector<std::vector<float>> results(2);
  for (const bool contiguous : {true, false}) {
    expect_none(comm::run_ranks(2, [&](Communicator& communicator) {
      const std::shared_ptr<Communicator> borrowed(&communicator, [](Communicator*) {});
      const bool one_block = contiguous && communicator.rank() == 0;
      std::vector<Host> all = hosts({kFirst, kSecond}, communicator.rank());
      std::vector<float> block = all[0].gradient;
      block.insert(block.end(), all[1].gradient.begin(), all[1].gradient.end());
      const std::span<float> first =
          one_block ? std::span(block).first(kFirst) : std::span(all[0].gradient);
      const std::span<float> second =
          one_block ? std::span(block).subspan(kFirst) : std::span(all[1].gradient);
      Ddp ddp(borrowed, {});
      ddp.add("a", {kFirst}, flat(all[0].value), flat(first));
      ddp.add("b", {kSecond}, flat(all[1].value), flat(second));
      ddp.commit();
      ddp.all_reduce();
      if (communicator.rank() != 0) return;
      std::vector<float>& result = results[contiguous ? 0 : 1];
      result.assign(first.begin(), first.end());
      result.insert(result.end(), second.begin(), second.end());
    }));
  }
  EXPECT_TRUE(same_bits(results[0], results[1]));
}

TEST(Ddp, WithoutBroadcastEveryRankKeepsItsValues) {
  std::vector<std::vector<Host>> all = {hosts({10}, 0), hosts({10}, 1)};
  expect_none(comm::run_ranks(2, [&](Communicator& communicator) {
    const std::shared_ptr<Communicator> borrowed(&communicator, [](Communicator*) {});
    Ddp ddp(borrowed, {.broadcast = false});
    add_all(ddp, all[static_cast<size_t>(communicator.rank())]);
    ddp.commit();
  }));
  EXPECT_TRUE(same_bits(all[1][0].value, hosts({10}, 1)[0].value));
}

struct Mismatch {
  const char* what;
  std::function<void(Ddp&, std::vector<Host>&, int rank)> add;  // odd ones out: rank 2 of 3
  std::function<DdpOptions(int rank)> options = [](int) { return DdpOptions{}; };
  const char* sentence;
};

TEST(Ddp, CommitNamesRankAndParameterOfAMismatchAndTheCommunicatorLivesOn) {
  const std::vector<Mismatch> cases = {
      {.what = "one parameter less",
       .add =
           [](Ddp& ddp, std::vector<Host>& all, int rank) {
             if (rank == 2) all.pop_back();
             add_all(ddp, all);
           },
       .sentence = "rank 2 differs from rank 0: it added 2 parameters, rank 0 added 3; \"p2\" is "
                   "missing on rank 2"},
      {.what = "one parameter more",
       .add =
           [](Ddp& ddp, std::vector<Host>& all, int rank) {
             if (rank == 2) all.push_back({"extra", {1}, {0}, {0}});
             add_all(ddp, all);
           },
       .sentence =
           "rank 2 differs from rank 0: it added 4 parameters, rank 0 added 3; \"extra\" is "
           "missing on rank 0"},
      {.what = "another name",
       .add =
           [](Ddp& ddp, std::vector<Host>& all, int rank) {
             if (rank == 2) all[1].name = "q1";
             add_all(ddp, all);
           },
       .sentence =
           "rank 2 differs from rank 0: its parameter 1 is named \"q1\", that of rank 0 \"p1\""},
      {.what = "another shape of the same size",
       .add =
           [](Ddp& ddp, std::vector<Host>& all, int rank) {
             if (rank == 2) all[1].shape = {2, 3};
             add_all(ddp, all);
           },
       .sentence = "rank 2 differs from rank 0: its parameter \"p1\" has shape [2, 3], that of "
                   "rank 0 [6]"},
      {.what = "no parameters",
       .add =
           [](Ddp& ddp, std::vector<Host>& all, int rank) {
             if (rank != 2) add_all(ddp, all);
           },
       .sentence = "rank 2 differs from rank 0: it added 0 parameters, rank 0 added 3; \"p0\" is "
                   "missing on rank 2"},
      {.what = "another average option",
       .add = [](Ddp& ddp, std::vector<Host>& all, int) { add_all(ddp, all); },
       .options =
           [](int rank) {
             DdpOptions options;
             options.reducer.average = rank != 2;
             return options;
           },
       .sentence = "rank 2 differs from rank 0: its option DDP_AVERAGE is 0, that of rank 0 1"},
      {.what = "another broadcast option",
       .add = [](Ddp& ddp, std::vector<Host>& all, int) { add_all(ddp, all); },
       .options = [](int rank) { return DdpOptions{.broadcast = rank != 2}; },
       .sentence = "rank 2 differs from rank 0: its option DDP_BROADCAST is 0, that of rank 0 1"},
  };
  for (const Mismatch& mismatch : cases) {
    SCOPED_TRACE(mismatch.what);
    expect_none(comm::run_ranks(3, [&](Communicator& communicator) {
      const std::shared_ptr<Communicator> borrowed(&communicator, [](Communicator*) {});
      const int rank = communicator.rank();
      std::vector<Host> all = hosts({5, 6, 7}, rank);
      Ddp ddp(borrowed, mismatch.options(rank));
      mismatch.add(ddp, all, rank);
      const std::vector<float> before = all[0].value;
      const auto error = comm::error_of([&] { ddp.commit(); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->status(), SHARDREC_DISAGREEMENT);
      EXPECT_EQ(error->sentence(), mismatch.sentence);
      EXPECT_EQ(error->parts().rank, 2);
      EXPECT_TRUE(same_bits(before, all[0].value)) << "nothing was broadcast";

      // The communicator lives: the same parameters on all ranks are accepted, and reduced.
      communicator.check();
      std::vector<Host> again = hosts({5, 6, 7}, rank);
      Ddp good(borrowed, {});
      add_all(good, again);
      good.commit();
      good.all_reduce();
    }));
  }
}

TEST(Ddp, CallsOutOfOrderAndBadNamesAreRefused) {
  expect_none(comm::run_ranks(1, [&](Communicator& communicator) {
    const std::shared_ptr<Communicator> borrowed(&communicator, [](Communicator*) {});
    Ddp ddp(borrowed, {});
    std::vector<float> value(2), gradient(2);
    const auto status = [](const std::function<void()>& call) {
      const auto error = comm::error_of(call);
      return error ? error->status() : SHARDREC_OK;
    };
    EXPECT_EQ(status([&] { ddp.all_reduce(); }), SHARDREC_INVALID_STATE);
    EXPECT_EQ(status([&] { ddp.add("", {2}, flat(value), flat(gradient)); }),
              SHARDREC_INVALID_ARGUMENT);
    ddp.add("a", {2}, flat(value), flat(gradient));
    EXPECT_EQ(status([&] { ddp.add("a", {2}, flat(value), flat(gradient)); }),
              SHARDREC_INVALID_ARGUMENT);
    ddp.commit();
    EXPECT_EQ(status([&] { ddp.commit(); }), SHARDREC_INVALID_STATE);
    EXPECT_EQ(status([&] { ddp.add("b", {2}, flat(value), flat(gradient)); }),
              SHARDREC_INVALID_STATE);
    EXPECT_EQ(status([&] { ddp.all_reduce(); }), SHARDREC_OK);
  }));
}

TEST(Ddp, ARankThatNeverComesEndsAllReduceForTheOthers) {
  const auto errors = comm::run_ranks(2, [&](Communicator& communicator) {
    const std::shared_ptr<Communicator> borrowed(&communicator, [](Communicator*) {});
    std::vector<Host> all = hosts({2000}, communicator.rank());
    Ddp ddp(borrowed, {});
    add_all(ddp, all);
    ddp.commit();
    if (communicator.rank() == 1) core::fail(SHARDREC_INTERNAL, "gone");
    ddp.all_reduce();
  });
  ASSERT_TRUE(errors[0]);
  EXPECT_EQ(errors[0]->status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(errors[0]->parts().rank, 1);
}

}  // namespace
}  // namespace shardrec::dense
