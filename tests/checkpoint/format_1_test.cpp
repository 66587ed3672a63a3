// Checkpoints that an earlier release wrote are still read: one of two ranks, recorded, and a file
// of layers without a checksum.
#include <gtest/gtest.h>

#include <cstring>

#include "checkpoint/world.h"
#include "shardrec/shardrec.hpp"
#include "support/tables_alone.h"

namespace shardrec::checkpoint {
namespace {

// Tables "user" [5, 3] float32 and "item" [3, 4] bfloat16, row-wise AdaGrad, row-wise on two ranks,
// seven steps; weights 1, 2, ... and 20, 21, ..., sums 100, 101, ... and 200, 201, ...
constexpr const char* kManifest =
    R"({
"format": "shardrec-checkpoint-1",
"step": 7,
"tables": [
{"name": "user", )"
    R"("rows": 5, "dim": 3, "dtype": "float32", "optimizer": "rowwise_adagrad", )"
    R"("row_statistics": "row"},
{"name": "item", "rows": 3, "dim": 4, )"
    R"("dtype": "bfloat16", "optimizer": "rowwise_adagrad", "row_statistics": "row"}
],
)"
    R"("files": [
{"name": "rank_00000.safetensors", "bytes": 456},
)"
    R"({"name": "rank_00001.safetensors", "bytes": 428}
],
"tensors": [
{"table": "user", )"
    R"("part": "weights", "row": 0, "rows": 3, "col": 0, "cols": 3, "dtype": "float32", )"
    R"("file": "rank_00000.safetensors", "tensor": "user/weights/0_0", "bytes": 36, )"
    R"("checksum": "05d9c161c2bb1fe7"},
{"table": "user", "part": "state/sum", "row": 0, )"
    R"("rows": 3, "col": 0, "cols": 3, "dtype": "float32", )"
    R"("file": "rank_00000.safetensors", "tensor": "user/state/sum/0_0", "bytes": 12, )"
    R"("checksum": "c9c5c1512c7581ad"},
{"table": "item", "part": "weights", "row": 0, )"
    R"("rows": 2, "col": 0, "cols": 4, "dtype": "bfloat16", )"
    R"("file": "rank_00000.safetensors", "tensor": "item/weights/0_0", "bytes": 16, )"
    R"("checksum": "17f4fe13b9e4c79a"},
{"table": "item", "part": "state/sum", "row": 0, )"
    R"("rows": 2, "col": 0, "cols": 4, "dtype": "float32", )"
    R"("file": "rank_00000.safetensors", "tensor": "item/state/sum/0_0", "bytes": 8, )"
    R"("checksum": "8e961027679d442f"},
{"table": "user", "part": "weights", "row": 3, )"
    R"("rows": 2, "col": 0, "cols": 3, "dtype": "float32", )"
    R"("file": "rank_00001.safetensors", "tensor": "user/weights/3_0", "bytes": 24, )"
    R"("checksum": "f2cf8ff6de7dfb5f"},
{"table": "user", "part": "state/sum", "row": 3, )"
    R"("rows": 2, "col": 0, "cols": 3, "dtype": "float32", )"
    R"("file": "rank_00001.safetensors", "tensor": "user/state/sum/3_0", "bytes": 8, )"
    R"("checksum": "bd1472ec9ef7dea3"},
{"table": "item", "part": "weights", "row": 2, )"
    R"("rows": 1, "col": 0, "cols": 4, "dtype": "bfloat16", )"
    R"("file": "rank_00001.safetensors", "tensor": "item/weights/2_0", "bytes": 8, )"
    R"("checksum": "75b236870a639757"},
{"table": "item", "part": "state/sum", "row": 2, )"
    R"("rows": 1, "col": 0, "cols": 4, "dtype": "float32", )"
    R"("file": "rank_00001.safetensors", "tensor": "item/state/sum/2_0", "bytes": 4, )"
    R"("checksum": "c2e81a384c5fbd1a"}
],
"checksum": "e83dd36671e60690"
})";
constexpr const char* kHeader0 =
    R"({"user/weights/0_0": {"dtype": "F32", "shape": [3, 3], "data_offsets": [0, 36]}, )"
    R"("user/state/sum/0_0": {"dtype": "F32", "shape": [3], "data_offsets": [36, 48]}, )"
    R"("item/weights/0_0": {"dtype": "BF16", "shape": [2, 4], "data_offsets": [48, 64]}, )"
    R"("item/state/sum/0_0": {"dtype": "F32", "shape": [2], "data_offsets": [64, 72]}})";
constexpr const char* kHeader1 =
    R"({"user/weights/3_0": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, )"
    R"("user/state/sum/3_0": {"dtype": "F32", "shape": [2], "data_offsets": [24, 32]}, )"
    R"("item/weights/2_0": {"dtype": "BF16", "shape": [1, 4], "data_offsets": [32, 40]}, )"
    R"("item/state/sum/2_0": {"dtype": "F32", "shape": [1], "data_offsets": [40, 44]}})";
// A safetensors file with a header padded to `header_bytes`.
std::string file_of(const char* header, size_t header_bytes) {
  std::string out(8, '\0');
  std::memcpy(out.data(), &header_bytes, 8);
  out += header;
  out.resize(8 + header_bytes, ' ');
  return out;
}

void add_floats(std::string& file, float first, int count) {
  for (int i = 0; i < count; ++i, first += 1) {
    char bytes[sizeof first];
    std::memcpy(bytes, &first, sizeof first);
    file.append(bytes, sizeof bytes);
  }
}

// Whole numbers of up to 8 bits have zeros in the lower half.
void add_bfloats(std::string& file, float first, int count) {
  for (int i = 0; i < count; ++i, first += 1) {
    char bytes[sizeof first];
    std::memcpy(bytes, &first, sizeof first);
    file.append(bytes + 2, 2);
  }
}

class Format1 : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string rank_0 = file_of(kHeader0, 376);
    add_floats(rank_0, 1, 9);
    add_floats(rank_0, 100, 3);
    add_bfloats(rank_0, 20, 8);
    add_floats(rank_0, 200, 2);
    std::string rank_1 = file_of(kHeader1, 376);
    add_floats(rank_1, 10, 6);
    add_floats(rank_1, 103, 2);
    add_bfloats(rank_1, 28, 4);
    add_floats(rank_1, 202, 1);
    std::filesystem::create_directories(scratch_.path());
    write_all(scratch_.path() + "/manifest.json", kManifest);
    write_all(scratch_.path() + "/rank_00000.safetensors", rank_0);
    write_all(scratch_.path() + "/rank_00001.safetensors", rank_1);
  }

  // What a load on so many ranks fills; throws on the first rank that fails.
  std::vector<float> load(int ranks, shardrec_sharding sharding) const {
    shardrec::Local group(ranks);
    std::vector<float> all;
    std::vector<std::exception_ptr> errors(static_cast<size_t>(ranks));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          shardrec::Comm comm(group, rank);
          std::vector<float> own = load_on(comm, ranks, sharding);
          if (rank == 0) all = std::move(own);
        } catch (...) {
          errors[static_cast<size_t>(rank)] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (errors[0] != nullptr) std::rethrow_exception(errors[0]);
    return all;
  }

  Scratch scratch_;

 private:
  std::vector<float> load_on(shardrec::Comm& comm, int ranks, shardrec_sharding sharding) const {
    shardrec::Model model;
    shardrec::Options half(SHARDREC_OPTIONS_TABLE);
    half.set(SHARDREC_OPTION_DTYPE, SHARDREC_BFLOAT16);
    model.add_feature(model.add_table("user", 5, 3), "user_id");
    model.add_feature(model.add_table("item", 3, 4, half), "item_id");
    shardrec::Options optimizer(SHARDREC_OPTIONS_OPTIMIZER);
    optimizer.set(SHARDREC_OPTION_OPTIMIZER, SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD);
    model.set_optimizer(optimizer);
    shardrec::Options kind(SHARDREC_OPTIONS_PLAN);
    kind.set(SHARDREC_OPTION_SHARDING, sharding);
    shardrec::Collection tables(comm, model,
                                shardrec::Plan(model, shardrec::Topology(ranks), kind));
    test::load_tables(comm, tables, scratch_.path(), "");
    EXPECT_EQ(tables.step(), 7);
    std::vector<float> all;
    const auto read = [&](int32_t table, shardrec_table_part part, int64_t rows, int64_t width) {
      std::vector<float> values(static_cast<size_t>(rows * width));
      tables.read_range(table, part, 0, rows, {values.data(), rows, width});
      all.insert(all.end(), values.begin(), values.end());
    };
    read(0, SHARDREC_TABLE_WEIGHTS, 5, 3);
    read(0, SHARDREC_TABLE_STATE, 5, 1);
    read(1, SHARDREC_TABLE_WEIGHTS, 3, 4);
    read(1, SHARDREC_TABLE_STATE, 3, 1);
    return all;
  }
};

TEST_F(Format1, IsReadByAnyPlan) {
  std::vector<float> expected;
  const auto add = [&](float first, int count) {
    for (int i = 0; i < count; ++i) expected.push_back(first + static_cast<float>(i));
  };
  add(1, 15);
  add(100, 5);
  add(20, 12);
  add(200, 3);
  for (const int ranks : {1, 2, 3}) {
    for (const auto sharding : {SHARDREC_SHARDING_ROW_WISE, SHARDREC_SHARDING_COLUMN_WISE,
                                SHARDREC_SHARDING_DATA_PARALLEL, SHARDREC_SHARDING_TABLE_WISE}) {
      EXPECT_EQ(load(ranks, sharding), expected);
    }
  }
}

TEST_F(Format1, AnyFlippedByteOfTheTablesIsNoticed) {
  for (const char* name : {"/rank_00000.safetensors", "/rank_00001.safetensors"}) {
    const std::string good = read_all(scratch_.path() + name);
    for (size_t at = good.find("}}") + 2; at < good.size(); at += 3) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 1);
      write_all(scratch_.path() + name, bad);
      EXPECT_THROW(load(2, SHARDREC_SHARDING_COLUMN_WISE), shardrec::Error) << name << " " << at;
    }
    write_all(scratch_.path() + name, good);
  }
}

TEST_F(Format1, HasNoModelToTake) {
  shardrec::Local group(1);
  shardrec::Comm comm(group, 0);
  shardrec::Checkpoint checkpoint(comm, scratch_.path());
  checkpoint.open();
  EXPECT_EQ(checkpoint.info().step, 7);
  EXPECT_EQ(checkpoint.info().format, 1);
  checkpoint.verify();
  try {
    checkpoint.model("");
    ADD_FAILURE() << "a model";
  } catch (const shardrec::Error& error) {
    EXPECT_EQ(error.status(), SHARDREC_NOT_FOUND);
  }
}

}  // namespace
}  // namespace shardrec::checkpoint
