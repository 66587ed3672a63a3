// Long chains of deltas, and deltas that are opened by other paths than the one below their root.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/read/opened.h"
#include "checkpoint/store/root_files.h"
#include "checkpoint/trained.h"
#include "checkpoint/world.h"
#include "support/few_descriptors.h"

namespace shardrec_test {
namespace {

namespace checkpoint = shardrec::checkpoint;
using shardrec::Checkpoint;
using shardrec::Comm;

// A whole checkpoint of step 0 and a delta of each step up to `last`.
void commit_chain(const std::string& root, int64_t last) {
  on_ranks({2, 2, SHARDREC_SHARDING_ROW_WISE}, [&](Trained& trained, Comm& comm) {
    Checkpoint handle(comm, root);
    handle.add("tables", *trained.tables);
    for (int64_t step = 0; step <= last; ++step) {
      trained.step(step);
      EXPECT_EQ(handle.commit_delta(step), step != 0);
    }
  });
}

TEST(ChainOfDeltas, IsLoadedAndVerifiedWithFewDescriptors) {
  const checkpoint::Scratch scratch;
  commit_chain(scratch.path(), 30);
  on_ranks({2, 2, SHARDREC_SHARDING_COLUMN_WISE}, [&](Trained& trained, Comm& comm) {
    Checkpoint handle(comm, scratch.path());
    handle.add("tables", *trained.tables);
    comm.barrier();
    std::optional<shardrec::test::FewDescriptors> few;
    if (comm.rank() == 0) {
      few.emplace(20);
      EXPECT_TRUE(few->set());
    }
    comm.barrier();
    handle.open();
    handle.verify();
    handle.load();
    EXPECT_EQ(handle.info().step, 30);
    comm.barrier();
  });
}

// As whole checkpoints are: by a link, by a path that ends in "." or a slash, from inside.
TEST(ChainOfDeltas, IsOpenedByAnyPathOfItsNewest) {
  const checkpoint::Scratch scratch;
  commit_chain(scratch.path("run"), 3);
  commit_chain(scratch.path("other"), 3);
  namespace fs = std::filesystem;
  const std::string step = scratch.path("run") + "/" + checkpoint::step_name(3);
  fs::create_directory_symlink(step, scratch.path("best"));
  // Beside checkpoints of the same steps of another run.
  fs::create_directory_symlink(step, scratch.path("other") + "/best");
  fs::create_directory_symlink(step, scratch.path("other") + "/step_link");
  const auto expect_opened = [&](const std::string& path) {
    const checkpoint::Opened opened = checkpoint::open_directory(path);
    EXPECT_EQ(opened.manifest.step, 3) << path;
    EXPECT_EQ(opened.deltas().size(), 3U) << path;
    EXPECT_EQ(opened.whole().manifest.step, 0) << path;
    EXPECT_TRUE(fs::exists(opened.whole().directory + "/manifest.json")) << path;
  };
  for (const std::string& path :
       {step, step + "/", step + "/.", step + "/..//" + checkpoint::step_name(3),
        scratch.path("best"), scratch.path("other") + "/best",
        scratch.path("other") + "/step_link"}) {
    expect_opened(path);
  }
  const fs::path here = fs::current_path();
  fs::current_path(step);
  expect_opened(".");
  fs::current_path(here);
  // Where some steps are on another disk, the root that the path names is the one.
  fs::rename(step, scratch.path("moved"));
  fs::create_directory_symlink(scratch.path("moved"), step);
  expect_opened(step);
}

}  // namespace
}  // namespace shardrec_test

namespace shardrec::checkpoint {
namespace {

// More rows than a back end is given numbers of at once.
TEST(ListedRows, OfABackEndAreMovedInPieces) {
  constexpr int64_t kRows = 1'300'000;
  const OtherMemory other;
  std::vector<float> from(kRows);
  std::iota(from.begin(), from.end(), 1.0F);
  std::vector<float> to(kRows, 0.0F);
  BoxTensor box{.part = TablePart::kState,
                .layout = {.by_row = true, .dtype = SHARDREC_FLOAT32},
                .cells = {.row = 0, .rows = kRows, .col = 0, .cols = 8},
                .data = reinterpret_cast<std::byte*>(from.data()),
                .stride = 1,
                .backend = other.backend.get()};
  std::vector<compute::RowWord> bits(compute::row_words(kRows));
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < kRows; ++row) {
    if (row % 13 != 5) rows.push_back(row);
  }
  compute::set_row_bits(bits.data(), rows.data(), std::ssize(rows));
  std::vector<std::byte> read;
  for_each_chunk(box, {.rows = kRows, .bits = bits, .count = std::ssize(rows)},
                 [&](std::span<const std::byte> bytes) {
                   read.insert(read.end(), bytes.begin(), bytes.end());
                 });
  ASSERT_EQ(read.size(), rows.size() * sizeof(float));
  box.data = reinterpret_cast<std::byte*>(to.data());
  write_listed_cells(box, rows, 0, 8, read.data(), sizeof(float));
  for (int64_t row = 0; row < kRows; ++row) {
    const auto at = static_cast<size_t>(row);
    ASSERT_EQ(to[at], row % 13 == 5 ? 0.0F : from[at]) << row;
  }
}

}  // namespace
}  // namespace shardrec::checkpoint
