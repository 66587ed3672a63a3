#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "checkpoint/format/manifest.h"
#include "checkpoint/world.h"

namespace shardrec::checkpoint {
namespace {

std::vector<ManifestTable>& tables_of(Manifest& manifest) {
  return manifest.collections.front().tables;
}

// A small checkpoint of two ranks, to be damaged.
class Damage : public ::testing::Test {
 protected:
  void SetUp() override { expect_ok(save_all(model_, plan_, scratch_.path(), 9)); }

  std::string file(const std::string& name) const { return scratch_.path() + "/" + name; }
  std::string manifest_path() const { return file("manifest.json"); }
  Loaded load() const { return load_all(model_, plan_, scratch_.path()); }

  // On one rank, which verifies everything: quick enough to be done thousands of times.
  Loaded load_alone() const {
    return load_all(model_, make_plan(model_, {1, 1}, SHARDREC_SHARDING_TABLE_WISE),
                    scratch_.path());
  }

  // What is found before tables change has changed nothing; else all ranks know that tables may be
  // filled in part.
  static void expect_no_mixture(const Loaded& loaded) {
    if (loaded.begun) return;
    EXPECT_EQ(loaded.changed, 0);
    EXPECT_EQ(static_cast<size_t>(loaded.unaware), loaded.errors.size());
  }

  void expect_refused(shardrec_status status, const std::string& part = "") const {
    const Loaded loaded = load();
    expect_all(loaded.errors, status, part);
    EXPECT_EQ(loaded.changed, 0);
  }

  // Loads a manifest that is well-formed and signed, but wrong.
  template <class Change>
  void expect_manifest_refused(const Change& change, const std::string& part,
                               shardrec_status status = SHARDREC_CORRUPT_DATA) {
    const std::string good = read_all(manifest_path());
    Manifest manifest = manifest_from_text(good, "manifest");
    change(manifest);
    write_all(manifest_path(), manifest_to_text(manifest));
    expect_refused(status, part);
    write_all(manifest_path(), good);
  }

  Scratch scratch_;
  plan::Model model_ = model_of({{5, 3}});
  plan::Plan plan_ = make_plan(model_, {2, 1}, SHARDREC_SHARDING_ROW_WISE);
};

TEST_F(Damage, OfAnySingleByteIsNoticed) {
  for (const std::string& name : names_in(scratch_.path())) {
    const std::string good = read_all(file(name));
    for (size_t at = 0; at < good.size(); ++at) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (at % 2 == 0 ? 1 : 0x80));
      write_all(file(name), bad);
      const Loaded loaded = load_alone();
      expect_all(loaded.errors, SHARDREC_CORRUPT_DATA, name);
      ASSERT_NO_FATAL_FAILURE(expect_no_mixture(loaded)) << name << " byte " << at;
    }
    write_all(file(name), good);
  }
  EXPECT_EQ(load().wrong, 0);
}

TEST_F(Damage, OfAnyTruncationOrExtensionIsNoticed) {
  for (const std::string& name : names_in(scratch_.path())) {
    const std::string good = read_all(file(name));
    for (size_t size = 0; size < good.size(); ++size) {
      write_all(file(name), good.substr(0, size));
      const Loaded loaded = load_alone();
      expect_all(loaded.errors, SHARDREC_CORRUPT_DATA);
      ASSERT_EQ(loaded.changed, 0) << name << " cut to " << size;
    }
    write_all(file(name), good + " ");
    expect_refused(SHARDREC_CORRUPT_DATA);
    write_all(file(name), good);
  }
}

TEST_F(Damage, NamesTheTensorThatIsDamaged) {
  const std::string name = file("rank_00001.safetensors");
  std::string bad = read_all(name);
  bad.back() = static_cast<char>(bad.back() ^ 4);
  write_all(name, bad);
  const Loaded loaded = load();
  expect_all(loaded.errors, SHARDREC_CORRUPT_DATA, "tensor \"t0/state/sum/3_0\" of " + name);
  expect_no_mixture(loaded);
}

TEST_F(Damage, AMissingFileIsNamed) {
  std::filesystem::remove(file("rank_00001.safetensors"));
  expect_refused(SHARDREC_CORRUPT_DATA, "rank_00001.safetensors");
}

TEST_F(Damage, FilesOfAnotherCheckpointAreNoticed) {
  std::filesystem::copy_file(file("rank_00000.safetensors"), file("rank_00001.safetensors"),
                             std::filesystem::copy_options::overwrite_existing);
  expect_refused(SHARDREC_CORRUPT_DATA, "rank_00001.safetensors");
}

TEST_F(Damage, ADirectoryOrPipeInPlaceOfAFileIsRefused) {
  std::filesystem::remove(file("rank_00001.safetensors"));
  std::filesystem::create_directory(file("rank_00001.safetensors"));
  expect_refused(SHARDREC_IO_ERROR, "rank_00001.safetensors");
  std::filesystem::remove(file("rank_00001.safetensors"));
  ASSERT_EQ(::mkfifo(file("rank_00001.safetensors").c_str(), 0600), 0);
  expect_refused(SHARDREC_IO_ERROR, "rank_00001.safetensors");
}

TEST_F(Damage, ManifestsThatDoNotHoldEveryCellOnceAreRefused) {
  expect_manifest_refused([](Manifest& m) { m.tensors.erase(m.tensors.begin()); }, "exactly once");
  expect_manifest_refused([](Manifest& m) { m.tensors.erase(m.tensors.begin() + 1); },
                          "state/sum exactly once");
  expect_manifest_refused([](Manifest& m) { m.tensors[2].cells.row = 2; }, "overlap");
  expect_manifest_refused(
      [](Manifest& m) {
        m.tensors.push_back(m.tensors[0]);
        m.tensors.back().stored.name = "other";
      },
      "overlap");
  expect_manifest_refused([](Manifest& m) { tables_of(m)[0].rows = 6; }, "no box owns row 5");
  expect_manifest_refused([](Manifest& m) { tables_of(m).push_back({"more", 1, 1}); },
                          "table \"more\"");
  expect_manifest_refused([](Manifest& m) { tables_of(m)[0].optimizer = SHARDREC_OPTIMIZER_ADAM; },
                          "tensors[1].bytes");
}

TEST_F(Damage, ManifestsThatLieAboutFilesAreRefused) {
  expect_manifest_refused([](Manifest& m) { m.files[0].name = "../rank_00000.safetensors"; },
                          "files[0].name");
  expect_manifest_refused([](Manifest& m) { m.files[0].name = "/etc/passwd"; }, "files[0].name");
  expect_manifest_refused([](Manifest& m) { m.files[0].name = ".hidden"; }, "files[0].name");
  expect_manifest_refused([](Manifest& m) { m.files[0].name = ""; }, "files[0].name");
  expect_manifest_refused([](Manifest& m) { m.files[0].name = "missing"; }, "missing");
  expect_manifest_refused([](Manifest& m) { m.files[1].name = m.files[0].name; }, "twice");
  expect_manifest_refused([](Manifest& m) { m.files[0].bytes += 1; },
                          "its header and tensors take");
  expect_manifest_refused([](Manifest& m) { m.files[0].header_bytes += 1; }, "holes and overlaps");
  expect_manifest_refused([](Manifest& m) { m.tensors[0].stored.offset += 4; },
                          "holes and overlaps");
  expect_manifest_refused([](Manifest& m) { m.tensors[1].stored.offset -= 4; },
                          "holes and overlaps");
  expect_manifest_refused([](Manifest& m) { m.files[0].bytes = -1; }, "files[0].bytes");
  expect_manifest_refused([](Manifest& m) { m.tensors[1].stored.name = m.tensors[0].stored.name; },
                          "twice");
  expect_manifest_refused([](Manifest& m) { m.tensors[0].stored.file = 1; }, "tensors");
  expect_manifest_refused([](Manifest& m) { m.files[0].header_checksum ^= 1; }, "checksum");
}

TEST_F(Damage, ManifestsOfImpossibleNumbersAreRefused) {
  expect_manifest_refused([](Manifest& m) { m.step = -1; }, "step");
  expect_manifest_refused([](Manifest& m) { tables_of(m)[0].rows = 0; }, "tables[0].rows");
  expect_manifest_refused([](Manifest& m) { tables_of(m)[0].rows = (int64_t{1} << 40) + 1; },
                          "tables[0].rows");
  expect_manifest_refused([](Manifest& m) { tables_of(m)[0].dim = 65537; }, "tables[0].dim");
  expect_manifest_refused([](Manifest& m) { tables_of(m).push_back(tables_of(m)[0]); }, "twice");
  expect_manifest_refused([](Manifest& m) { m.tensors[0].cells.row = -1; }, "tensors[0].row");
  expect_manifest_refused([](Manifest& m) { m.tensors[0].cells.rows = int64_t{1} << 40; },
                          "tensors[0].rows");
  expect_manifest_refused([](Manifest& m) { m.tensors[0].cells.col = 3; }, "tensors[0].col");
  expect_manifest_refused([](Manifest& m) { m.tensors[0].cells.cols = 0; }, "tensors[0].cols");
  expect_manifest_refused([](Manifest& m) { m.tensors[0].chunk_rows += 1; },
                          "tensors[0].chunk_rows");
  expect_manifest_refused([](Manifest& m) { m.tensors[0].checksums.push_back(1); },
                          "tensors[0].checksums");
  expect_manifest_refused([](Manifest& m) { m.tensors[0].checksums.clear(); },
                          "tensors[0].checksums");
  expect_manifest_refused([](Manifest& m) { m.commit = -1; }, "commit");
  expect_manifest_refused([](Manifest& m) { m.ranks = 0; }, "ranks");
  expect_manifest_refused([](Manifest& m) { m.collections.push_back(m.collections[0]); }, "twice");
}

TEST_F(Damage, ManifestsOfLaterReleasesAreUnsupported) {
  expect_manifest_refused(
      [](Manifest& m) {
        tables_of(m)[0].row_statistics = static_cast<shardrec_row_statistics>(99);
      },
      "unknown", SHARDREC_UNSUPPORTED);
  expect_manifest_refused([](Manifest& m) { tables_of(m)[0].dtype = SHARDREC_FLOAT64; },
                          "reads float32, float16 and bfloat16", SHARDREC_UNSUPPORTED);
}

TEST_F(Damage, AManifestEditedByHandIsNoticed) {
  std::string text = read_all(manifest_path());
  text.replace(text.find("\"step\": 9"), 9, "\"step\": 8");
  write_all(manifest_path(), text);
  expect_refused(SHARDREC_CORRUPT_DATA, "checksum does not match");
}

}  // namespace
}  // namespace shardrec::checkpoint
