// Messages of more bytes than 31 bits count, between two ranks. Needs 12 GiB of memory.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/collective/tensor_collectives.h"
#include "conformance/engine.h"
#include "core/memory.h"

namespace shardrec::comm {
namespace {

constexpr size_t kHuge = (size_t{1} << 31) + 8;
constexpr Operation kTest{.name = "test", .kind = 1};

// Word i of what a rank sends.
uint64_t word(int rank, size_t i) { return i * 0x9E3779B97F4A7C15U + static_cast<uint64_t>(rank); }

TEST_P(HugeConformance, AMessageOfMoreThan31BitsArrivesWhole) {
  run_well(engine(), 2, [](Communicator& comm) {
    const auto channel = comm.open_channel(Purpose::kOutput);
    const auto pages = std::make_shared<core::Pages>(kHuge);
    const std::span<uint64_t> words(static_cast<uint64_t*>(static_cast<void*>(pages->data())),
                                    kHuge / 8);
    for (size_t i = 0; i < words.size(); ++i) words[i] = word(comm.rank(), i);
    const auto other = static_cast<size_t>(1 - comm.rank());
    std::vector<ConstBytes> send(2);
    send[other] = std::as_bytes(words);
    std::vector<ConstBytes> received(2);
    const Ticket ticket = channel->post(kTest, send, pages);
    channel->receive(ticket, received);
    ASSERT_EQ(received[other].size(), kHuge);
    const auto* got =
        static_cast<const uint64_t*>(static_cast<const void*>(received[other].data()));
    for (size_t i = 0; i < words.size(); ++i) {
      ASSERT_EQ(got[i], word(1 - comm.rank(), i)) << i;
    }
    channel->release(ticket);
    channel->reclaim(ticket);
  });
}

TEST_P(HugeConformance, AReductionOfMoreThan31BitsIsWholeOnEveryRank) {
  run_well(engine(), 2, [](Communicator& comm) {
    const auto pages = std::make_shared<core::Pages>(kHuge);
    const std::span<int32_t> data(static_cast<int32_t*>(static_cast<void*>(pages->data())),
                                  kHuge / 4);
    for (size_t i = 0; i < data.size(); ++i) {
      data[i] = static_cast<int32_t>(static_cast<uint32_t>(word(comm.rank(), i)));
    }
    Collectives collectives(comm.open_channel(Purpose::kDense), comm.rank(), comm.size());
    collectives.all_reduce<int32_t>(kTest, Reduction::kSum, data, pages);
    for (size_t i = 0; i < data.size(); ++i) {
      const uint32_t sum = static_cast<uint32_t>(word(0, i)) + static_cast<uint32_t>(word(1, i));
      ASSERT_EQ(static_cast<uint32_t>(data[i]), sum) << i;
    }
  });
}

// One way only: input, copy, message and output are 8 GiB together.
TEST_P(HugeConformance, RowsOfMoreThan31BitsGoToTheirRank) {
  run_well(engine(), 2, [](Communicator& comm) {
    constexpr int64_t kColumns = 8;
    constexpr auto kRows = static_cast<int64_t>(kHuge / sizeof(uint64_t)) / kColumns + 1;
    const bool sends = comm.rank() == 0;
    core::Pages pages(static_cast<size_t>(kRows * kColumns) * sizeof(uint64_t));
    auto* const words = static_cast<uint64_t*>(static_cast<void*>(pages.data()));
    if (sends) {
      for (size_t i = 0; i < static_cast<size_t>(kRows * kColumns); ++i) words[i] = word(0, i);
    }
    const core::RowTensor none{
        .columns = kColumns, .stride = kColumns, .dtype = SHARDREC_INT64, .element_bytes = 8};
    core::RowTensor all = none;
    all.data = pages.data();
    all.rows = kRows;
    Collectives collectives(comm.open_channel(Purpose::kDense), comm.rank(), comm.size());
    const std::vector<int64_t> sent = {0, sends ? kRows : 0};
    const std::vector<int64_t> received = {sends ? 0 : kRows, 0};
    all_to_all(collectives, kTest, sends ? all : none, sent, sends ? none : all, received);
    for (size_t i = 0; i < static_cast<size_t>(kRows * kColumns); ++i) {
      ASSERT_EQ(words[i], word(0, i)) << i;
    }
  });
}

}  // namespace
}  // namespace shardrec::comm
