// Collectives of tensors: any dtype, rows that lie apart, overlapping memory, parts of any size.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "comm/collective/agree.h"
#include "comm/collective/tensor_collectives.h"
#include "conformance/engine.h"

namespace shardrec::comm {
namespace {

using core::RowTensor;

constexpr Operation kTensorTest{.name = "test", .kind = 9};

// Rows of memory that the test owns; what lies between them must stay as it is.
class Rows {
 public:
  static constexpr std::byte kGap{0xA5};

  Rows(int32_t dtype, int64_t rows, int64_t columns, int64_t gap)
      : bytes_(static_cast<size_t>(rows * (columns + gap)) * core::dtype_size(dtype), kGap) {
    view_ = {.data = bytes_.data(),
             .rows = rows,
             .columns = columns,
             .stride = columns + gap,
             .dtype = dtype,
             .element_bytes = core::dtype_size(dtype)};
  }

  const RowTensor& view() const { return view_; }
  // Element i becomes what `of` says, cut to the dtype's bytes.
  Rows& fill(const std::function<uint64_t(int64_t)>& of) {
    for (int64_t i = 0; i < view_.size(); ++i) {
      const uint64_t value = of(i);
      std::memcpy(at(i), &value, view_.element_bytes);
    }
    return *this;
  }
  void expect(const std::function<uint64_t(int64_t)>& of, const std::string& what) {
    for (int64_t i = 0; i < view_.size(); ++i) {
      const uint64_t wanted = of(i);
      ASSERT_EQ(std::memcmp(at(i), &wanted, view_.element_bytes), 0) << what << " element " << i;
      std::fill_n(at(i), view_.element_bytes, kGap);
    }
    ASSERT_TRUE(std::all_of(bytes_.begin(), bytes_.end(), [](std::byte b) { return b == kGap; }))
        << what << ": memory between the rows was written";
  }

 private:
  std::byte* at(int64_t i) {
    const int64_t element = i / view_.columns * view_.stride + i % view_.columns;
    return bytes_.data() + view_.bytes(element);
  }

  std::vector<std::byte> bytes_;
  RowTensor view_;
};

uint64_t value(int rank, int64_t i) {
  return (static_cast<uint64_t>(i) + 1) * 0x9E3779B97F4A7C15U ^
         static_cast<uint64_t>(rank + 1) * 0xD1B54A32D192ED03U;
}

constexpr int32_t kAnyDtype[] = {SHARDREC_FLOAT16, SHARDREC_BFLOAT16, SHARDREC_INT32,
                                 SHARDREC_INT64,   SHARDREC_FLOAT32,  SHARDREC_FLOAT64};

Collectives collectives_of(Communicator& comm) {
  return {comm.open_channel(Purpose::kControl), comm.rank(), comm.size()};
}

struct Shape {
  int64_t rows;
  int64_t columns;
  int64_t gap;
};
constexpr Shape kShapes[] = {{0, 3, 0}, {1, 1, 0}, {7, 3, 0}, {7, 3, 2}, {13, 1, 4}, {257, 33, 1}};

TEST_P(CollectiveConformance, BroadcastOfATensorCopiesTheRootsRowsWhateverTheirStride) {
  for (const int world : engine().worlds) {
    run_well(engine(), world, [&](Communicator& comm) {
      Collectives collectives = collectives_of(comm);
      for (const int32_t dtype : kAnyDtype) {
        for (const Shape& shape : kShapes) {
          const int root = static_cast<int>(shape.rows) % world;
          // Ranks may lay out the same elements differently.
          Rows rows(dtype, shape.rows, shape.columns, comm.rank() % 2 == 0 ? shape.gap : 0);
          rows.fill([&](int64_t i) { return value(comm.rank(), i); });
          broadcast(collectives, kTensorTest, root, rows.view());
          rows.expect([&](int64_t i) { return value(root, i); }, core::sentence("root ", root));
        }
      }
    });
  }
}

TEST_P(CollectiveConformance, AllGatherOfTensorsHoldsEveryRanksElementsInRankOrder) {
  for (const int world : engine().worlds) {
    run_well(engine(), world, [&](Communicator& comm) {
      Collectives collectives = collectives_of(comm);
      for (const int32_t dtype : kAnyDtype) {
        for (const Shape& shape : kShapes) {
          Rows mine(dtype, shape.rows, shape.columns, shape.gap);
          mine.fill([&](int64_t i) { return value(comm.rank(), i); });
          const int64_t each = mine.view().size();
          const auto wanted = [&](int64_t i) {
            return value(static_cast<int>(i / each), i % each);
          };
          Rows stacked(dtype, world, each, shape.gap);
          all_gather(collectives, kTensorTest, mine.view(), stacked.view());
          stacked.expect(wanted, "stacked");
          Rows joined(dtype, world * shape.rows, shape.columns, shape.gap);
          all_gather(collectives, kTensorTest, mine.view(), joined.view());
          joined.expect(wanted, "joined");
        }
      }
    });
  }
}

TEST_P(CollectiveConformance, AllGatherMayTakeItsInputFromAnyPlaceOfItsOutput) {
  for (const int world : engine().worlds) {
    run_well(engine(), world, [&](Communicator& comm) {
      Collectives collectives = collectives_of(comm);
      constexpr int64_t kEach = 1500;
      Rows out(SHARDREC_FLOAT32, world, kEach, 0);
      for (int place = 0; place < world; ++place) {
        RowTensor mine = out.view();
        mine.data += mine.bytes(place * kEach);
        mine.rows = 1;
        std::vector<uint32_t> words(kEach);
        for (int64_t i = 0; i < kEach; ++i) {
          words[static_cast<size_t>(i)] = static_cast<uint32_t>(value(comm.rank(), i));
        }
        std::memcpy(mine.data, words.data(), words.size() * sizeof(uint32_t));
        all_gather(collectives, kTensorTest, mine, out.view());
        out.expect([&](int64_t i) { return value(static_cast<int>(i / kEach), i % kEach); },
                   core::sentence("in place ", place));
      }
    });
  }
}

template <class T>
void check_reduce_scatter(Collectives& collectives, int32_t dtype, Reduction reduction,
                          int64_t part, int64_t gap) {
  const int64_t ranks = collectives.size();
  std::vector<T> whole(static_cast<size_t>(ranks * part));
  for (size_t i = 0; i < whole.size(); ++i) {
    const uint64_t bits = value(collectives.rank(), static_cast<int64_t>(i));
    whole[i] = static_cast<T>(static_cast<int64_t>(bits) >> 20) / static_cast<T>(3);
  }
  Rows tensor(dtype, ranks * part, 1, gap);
  tensor.fill([&](int64_t i) {
    uint64_t bits = 0;
    std::memcpy(&bits, &whole[static_cast<size_t>(i)], sizeof(T));
    return bits;
  });
  Rows out(dtype, part, 1, gap);
  reduce_scatter(collectives, kTensorTest, reduction, tensor.view(), out.view());
  collectives.all_reduce<T>(kTensorTest, reduction, std::span<T>(whole));
  out.expect(
      [&](int64_t i) {
        uint64_t bits = 0;
        std::memcpy(&bits, &whole[static_cast<size_t>(collectives.rank() * part + i)], sizeof(T));
        return bits;
      },
      core::sentence("part ", part));
}

TEST_P(CollectiveConformance, ReduceScatterOfATensorHasTheBitsOfAllReduce) {
  for (const int world : engine().worlds) {
    run_well(engine(), world, [&](Communicator& comm) {
      Collectives collectives = collectives_of(comm);
      for (const int64_t part : {0, 1, 37, 5001}) {
        for (const int64_t gap : {0, 2}) {
          for (const Reduction reduction : {Reduction::kSum, Reduction::kMin, Reduction::kMax}) {
            check_reduce_scatter<float>(collectives, SHARDREC_FLOAT32, reduction, part, gap);
            check_reduce_scatter<double>(collectives, SHARDREC_FLOAT64, reduction, part, gap);
            check_reduce_scatter<int32_t>(collectives, SHARDREC_INT32, reduction, part, gap);
            check_reduce_scatter<int64_t>(collectives, SHARDREC_INT64, reduction, part, gap);
          }
          check_reduce_scatter<float>(collectives, SHARDREC_FLOAT32, Reduction::kMean, part, gap);
        }
      }
    });
  }
}

// Rows from rank `from` to rank `to`: none between some, many between others.
int64_t rows_between(int from, int to, int round) {
  return (from * 5 + to * 3 + round) % 4 * round;
}

TEST_P(CollectiveConformance, AllToAllBringsEachRankTheRowsThatAreForItInRankOrder) {
  for (const int world : engine().worlds) {
    run_well(engine(), world, [&](Communicator& comm) {
      Collectives collectives = collectives_of(comm);
      for (const int32_t dtype : kAnyDtype) {
        for (const int round : {0, 1, 50}) {
          std::vector<int64_t> sent;
          std::vector<int64_t> received;
          for (int peer = 0; peer < world; ++peer) {
            sent.push_back(rows_between(comm.rank(), peer, round));
            received.push_back(rows_between(peer, comm.rank(), round));
          }
          constexpr int64_t kColumns = 5;
          const int64_t gap = round % 3;
          Rows tensor(dtype, std::accumulate(sent.begin(), sent.end(), int64_t{0}), kColumns, gap);
          Rows out(dtype, std::accumulate(received.begin(), received.end(), int64_t{0}), kColumns,
                   1 - comm.rank() % 2);
          std::vector<uint64_t> outgoing;
          std::vector<uint64_t> wanted;
          for (int peer = 0; peer < world; ++peer) {
            const auto at = [&](size_t i) { return i < sent.size() ? sent[i] : 0; };
            for (int64_t i = 0; i < at(static_cast<size_t>(peer)) * kColumns; ++i) {
              outgoing.push_back(value(comm.rank() * 64 + peer, i));
            }
            for (int64_t i = 0; i < received[static_cast<size_t>(peer)] * kColumns; ++i) {
              wanted.push_back(value(peer * 64 + comm.rank(), i));
            }
          }
          tensor.fill([&](int64_t i) { return outgoing[static_cast<size_t>(i)]; });
          all_to_all(collectives, kTensorTest, tensor.view(), sent, out.view(), received);
          out.expect([&](int64_t i) { return wanted[static_cast<size_t>(i)]; },
                     core::sentence("round ", round));
        }
      }
    });
  }
}

TEST_P(CollectiveConformance, AllToAllInPlaceTransposes) {
  for (const int world : engine().worlds) {
    run_well(engine(), world, [&](Communicator& comm) {
      Collectives collectives = collectives_of(comm);
      constexpr int64_t kEach = 300;
      Rows rows(SHARDREC_INT64, world * kEach, 1, 0);
      rows.fill([&](int64_t i) { return value(comm.rank(), i); });
      const std::vector<int64_t> equal(static_cast<size_t>(world), kEach);
      all_to_all(collectives, kTensorTest, rows.view(), equal, rows.view(), equal);
      rows.expect(
          [&](int64_t i) {
            return value(static_cast<int>(i / kEach), comm.rank() * kEach + i % kEach);
          },
          "transposed");
    });
  }
}

// One of three ranks deviates; the communicator outlives it.
TEST_P(CollectiveConformance, RowsThatDoNotFitAreTheSameMismatchEverywhereAndHarmNobody) {
  if (!engine().offers(3)) GTEST_SKIP() << "needs 3 ranks";
  struct Deviation {
    const char* says;
    int32_t dtype;
    int64_t columns;
    std::vector<int64_t> sent;
    std::vector<int64_t> received;
  };
  const Deviation deviations[] = {
      {"rank 2 has 2 rows for rank 0 in \"test\", which expects 1 of it",
       SHARDREC_FLOAT32,
       2,
       {2, 0, 1},
       {1, 1, 1}},
      {"rank 0 has 1 rows for rank 2 in \"test\", which expects 0 of it",
       SHARDREC_FLOAT32,
       2,
       {1, 1, 1},
       {0, 2, 1}},
      {"rank 2 brings rows of 3 elements to \"test\" and rank 0 rows of 2",
       SHARDREC_FLOAT32,
       3,
       {1, 1, 1},
       {1, 1, 1}},
      {"rank 2 brings int32 to \"test\" and rank 0 float32",
       SHARDREC_INT32,
       2,
       {1, 1, 1},
       {1, 1, 1}},
  };
  for (const Deviation& deviation : deviations) {
    run_well(engine(), 3, [&](Communicator& comm) {
      Collectives collectives = collectives_of(comm);
      const bool deviates = comm.rank() == 2;
      const std::vector<int64_t> ones = {1, 1, 1};
      Rows tensor(deviates ? deviation.dtype : SHARDREC_FLOAT32, 3,
                  deviates ? deviation.columns : 2, 0);
      Rows out(deviates ? deviation.dtype : SHARDREC_FLOAT32, 3, deviates ? deviation.columns : 2,
               0);
      const auto nine = [](int64_t) -> uint64_t { return 9; };
      tensor.fill([&](int64_t i) { return value(comm.rank(), i); });
      out.fill(nine);
      const auto error = error_of([&] {
        all_to_all(collectives, kTensorTest, tensor.view(), deviates ? deviation.sent : ones,
                   out.view(), deviates ? deviation.received : ones);
      });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->status(), SHARDREC_DISAGREEMENT);
      EXPECT_NE(error->sentence().find(deviation.says), std::string::npos) << error->sentence();
      out.expect(nine, "after the mismatch");
      comm.check();
      out.fill(nine);
      Rows good(SHARDREC_INT32, 3, 1, 0);
      good.fill([&](int64_t i) { return value(comm.rank(), i); });
      all_to_all(collectives, kTensorTest, good.view(), ones, good.view(), ones);
      good.expect([&](int64_t i) { return value(static_cast<int>(i), comm.rank()); }, "next");
    });
  }
}

TEST_P(FailureConformance, TensorsThatDifferInSizeDtypeRootOrReductionAreMismatches) {
  if (!engine().offers(3)) GTEST_SKIP() << "needs 3 ranks";
  const std::function<void(bool, Collectives&)> calls[] = {
      [](bool deviates, Collectives& c) {
        broadcast(c, kTensorTest, 0, Rows(SHARDREC_FLOAT32, deviates ? 4 : 5, 1, 0).view());
      },
      [](bool deviates, Collectives& c) {
        broadcast(c, kTensorTest, 0,
                  Rows(deviates ? SHARDREC_INT32 : SHARDREC_FLOAT32, 5, 1, 0).view());
      },
      [](bool deviates, Collectives& c) {
        broadcast(c, kTensorTest, deviates ? 2 : 0, Rows(SHARDREC_FLOAT32, 5, 1, 0).view());
      },
      [](bool deviates, Collectives& c) {
        const int64_t count = deviates ? 4 : 5;
        const Rows out(SHARDREC_FLOAT32, count, 3, 0);
        all_gather(c, kTensorTest, Rows(SHARDREC_FLOAT32, count, 1, 0).view(), out.view());
      },
      [](bool deviates, Collectives& c) {
        const Rows out(SHARDREC_FLOAT32, 5, 1, 0);
        reduce_scatter(c, kTensorTest, deviates ? Reduction::kMax : Reduction::kSum,
                       Rows(SHARDREC_FLOAT32, 5, 3, 0).view(), out.view());
      },
  };
  for (const auto& call : calls) {
    for (const auto& [rank, error] : run(engine(), 3, [&](Communicator& comm) {
           Collectives collectives = collectives_of(comm);
           call(comm.rank() == 1, collectives);
         })) {
      ASSERT_TRUE(error) << "rank " << rank;
      EXPECT_EQ(error->status(), SHARDREC_MISMATCH) << error->sentence();
    }
  }
}

TEST_P(FailureConformance, ARankThatDiesInACollectiveOfTensorsEndsTheOthersCall) {
  if (!engine().offers(3)) GTEST_SKIP() << "needs 3 ranks";
  const std::function<void(Collectives&)> calls[] = {
      [](Collectives& c) {
        broadcast(c, kTensorTest, 1, Rows(SHARDREC_FLOAT32, 500, 3, 1).view());
      },
      [](Collectives& c) {
        const Rows out(SHARDREC_FLOAT32, 500, 3, 0);
        all_gather(c, kTensorTest, Rows(SHARDREC_FLOAT32, 500, 1, 0).view(), out.view());
      },
      [](Collectives& c) {
        const Rows out(SHARDREC_FLOAT32, 500, 1, 0);
        reduce_scatter(c, kTensorTest, Reduction::kSum, Rows(SHARDREC_FLOAT32, 500, 3, 0).view(),
                       out.view());
      },
      [](Collectives& c) {
        const Rows rows(SHARDREC_FLOAT32, 1500, 3, 0);
        const std::vector<int64_t> equal = {500, 500, 500};
        all_to_all(c, kTensorTest, rows.view(), equal, rows.view(), equal);
      },
  };
  for (const auto& call : calls) {
    for (const auto& [rank, error] : run(engine(), 3, [&](Communicator& comm) {
           Collectives collectives = collectives_of(comm);
           collectives.barrier(kTensorTest);
           if (comm.rank() == 1) core::fail(SHARDREC_INTERNAL, "dies");
           call(collectives);
         })) {
      ASSERT_TRUE(error) << "rank " << rank;
      if (rank == 1) continue;
      EXPECT_EQ(error->status(), SHARDREC_PEER_FAILED) << error->sentence();
      EXPECT_EQ(error->parts().rank, 1);
    }
  }
}

}  // namespace
}  // namespace shardrec::comm
