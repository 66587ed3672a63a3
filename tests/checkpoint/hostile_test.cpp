// Files that claim to be large cost no more than what is really in them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "checkpoint/store/store.h"
#include "checkpoint/world.h"
#include "core/hash.h"
#include "support/address_space.h"

namespace shardrec::checkpoint {
namespace {

class Hostile : public ::testing::Test {
 protected:
  void SetUp() override { expect_ok(save_all(model_, plan_, scratch_.path(), 9)); }

  std::string file(const std::string& name) const { return scratch_.path() + "/" + name; }

  // Two threads' stacks and arenas, and what both take for 40 MiB of text with as many values as a
  // manifest of that size can have, while their arrays grow: some 380 MiB each.
  static constexpr uint64_t kEnough = uint64_t{1000} << 20;

  void expect_corrupt(const std::string& part) const {
    const test::AddressSpace limit(kEnough);
    const Loaded loaded = load_all(model_, plan_, scratch_.path());
    expect_all(loaded.errors, SHARDREC_CORRUPT_DATA, part);
    EXPECT_EQ(loaded.changed, 0);
  }

  static std::string sign(std::string text) {
    const std::string sum = core::to_hex(core::hash64(0, text));
    return std::move(text) + ",\n\"checksum\": \"" + sum + "\"\n}";
  }

  Scratch scratch_;
  plan::Model model_ = model_of({{5, 3}});
  plan::Plan plan_ = make_plan(model_, {2, 1}, SHARDREC_SHARDING_ROW_WISE);
};

TEST_F(Hostile, ASparseManifestEndsAtItsFirstHole) {
  std::filesystem::resize_file(file("manifest.json"), uint64_t{4} << 30);
  expect_corrupt("zero byte");
}

TEST_F(Hostile, ASparseLatestIsTooLarge) {
  std::filesystem::create_directories(scratch_.path("run"));
  write_all(scratch_.path("run/LATEST"), "step_000000000001");
  std::filesystem::resize_file(scratch_.path("run/LATEST"), uint64_t{1} << 40);
  const auto errors = comm::run_ranks(1, [&](comm::Communicator& communicator) {
    Ranks ranks(communicator);
    Lineage lineage;
    open_step(ranks.group(), scratch_.path("run"), -1, lineage);
  });
  expect_all(errors, SHARDREC_CORRUPT_DATA, "LATEST");
}

TEST_F(Hostile, ARankFileOfAnotherSizeIsNotRead) {
  std::filesystem::resize_file(file("rank_00001.safetensors"), uint64_t{1} << 40);
  expect_corrupt("rank_00001.safetensors");
}

TEST_F(Hostile, AManifestOfMoreValuesThanAnyHasIsRefusedBeforeTheyAreKept) {
  std::string text = "{\n\"format\": \"shardrec-checkpoint-2\",\n\"tensors\": [0";
  while (text.size() < size_t{40} << 20) text += ",0,0,0,0,0,0,0,0";
  write_all(file("manifest.json"), sign(std::move(text) + "]"));
  expect_corrupt("too many values");
}

// A header of format 1 takes no more than the manifest's tensors can need.
TEST_F(Hostile, ALongHeaderOfFormat1IsRefusedByItsSize) {
  std::string text =
      "{\n\"format\": \"shardrec-checkpoint-1\",\n\"step\": 1,\n\"tables\": "
      "[\n{\"name\": \"t0\", \"rows\": 5, \"dim\": 3, \"dtype\": \"float32\", "
      "\"optimizer\": \"sgd\", \"row_statistics\": \"row\"}\n],\n\"files\": "
      "[\n{\"name\": \"f\", \"bytes\": 90000068}\n],\n\"tensors\": [\n{\"table\": "
      "\"t0\", \"part\": \"weights\", \"row\": 0, \"rows\": 5, \"col\": 0, \"cols\": "
      "3, \"dtype\": \"float32\", \"file\": \"f\", \"tensor\": \"a\", \"bytes\": 60, "
      "\"checksum\": \"0000000000000000\"}\n]";
  write_all(file("manifest.json"), sign(std::move(text)));
  std::string header(8, '\0');
  const uint64_t size = 90000000;
  std::memcpy(header.data(), &size, sizeof size);
  header += "{\"a\":[0";
  while (header.size() < 90000006) header += ",0";
  header += "]}";
  header.resize(90000068, ' ');
  write_all(file("f"), header);
  model_ = model_of({{5, 3}}, SHARDREC_OPTIMIZER_SGD);
  expect_corrupt("claims a header");
}

}  // namespace
}  // namespace shardrec::checkpoint
