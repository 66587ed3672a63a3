#include "checkpoint/read/load.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <optional>
#include <tuple>
#include <utility>

#include "checkpoint/read/convert.h"
#include "checkpoint/read/files.h"
#include "checkpoint/read/load_deltas.h"
#include "checkpoint/read/load_plan.h"
#include "checkpoint/read/load_report.h"
#include "checkpoint/read/load_tables.h"
#include "checkpoint/read/match_load.h"
#include "checkpoint/read/row_lists.h"
#include "comm/collective/agree.h"
#include "core/error.h"
#include "core/hash.h"

namespace shardrec::checkpoint {

namespace {

using core::Control;
using core::Environment;
using core::fail;
using core::join_path;
using core::sentence;

constexpr int64_t kBlockBytes = int64_t{1} << 20;

comm::Operation operation_on(const char* name, const std::string& directory) {
  return {.name = name,
          .detail = core::hash64(0, directory),
          .deadline_kind = comm::DeadlineKind::kSetup};
}

uint64_t fingerprint(const Opened& opened) {
  return core::hash64(0, manifest_to_text(opened.manifest));
}

// Ranks that do not see the same files would load a mixture.
void compare_manifests(const Group& group, const comm::Operation& operation, const Opened& opened) {
  const uint64_t mine = fingerprint(opened);
  const auto all = group.collectives.all_gather(operation, std::as_bytes(std::span(&mine, 1)));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (!std::equal(all[rank].begin(), all[rank].end(), all[0].begin(), all[0].end())) {
      throw comm::AgreedError(
          SHARDREC_IO_ERROR,
          sentence("rank ", rank, " sees another checkpoint in ", opened.directory,
                   " than rank 0; all ranks must read the same directory"),
          {.rank = static_cast<int64_t>(rank), .path = opened.directory});
    }
  }
}

// Reads bytes [begin, end) of a tensor block by block; returns their hash.
uint64_t hash_of(Files& files, const Stored& stored, int64_t begin, int64_t end,
                 std::vector<std::byte>& buffer, Control* control) {
  core::StreamingHash hash;
  for (int64_t at = begin; at < end; at += kBlockBytes) {
    buffer.resize(static_cast<size_t>(std::min(kBlockBytes, end - at)));
    files.read(stored, at, buffer);
    hash.update(buffer);
    if (control != nullptr) control->advance(std::ssize(buffer));
  }
  return hash.digest();
}

// Verifies this rank's share of the tensors of tables, and of lists of rows: every size-th chunk, counted over all.
void verify_tables(const Group& group, const Opened& opened, Files& files, Control* control) {
  std::vector<std::byte> buffer;
  int64_t number = 0;
  for (const ManifestTensor& tensor : opened.manifest.tensors) {
    const int64_t chunk_bytes = tensor.chunk_rows * tensor.layout.row_bytes(tensor.cells.cols);
    const int64_t bytes = bytes_of(tensor);
    for (size_t i = 0; i < tensor.checksums.size(); ++i, ++number) {
      if (number % group.size != group.rank) continue;
      const int64_t begin = static_cast<int64_t>(i) * chunk_bytes;
      const int64_t end = std::min(bytes, begin + chunk_bytes);
      if (hash_of(files, tensor.stored, begin, end, buffer, control) != tensor.checksums[i]) {
        files.fail_damaged(tensor.stored, opened.manifest.table_of(tensor).name);
      }
    }
  }
  RowLists lists(opened, files, control);
  for (size_t list = 0; list < opened.manifest.lists.size(); ++list, ++number) {
    if (number % group.size == group.rank) (void)lists.read(static_cast<int32_t>(list));
    lists.forget();
  }
}

int64_t bytes_to_verify(const Group& group, const Opened& opened) {
  int64_t number = 0;
  int64_t total = 0;
  for (const ManifestTensor& tensor : opened.manifest.tensors) {
    const int64_t chunk_bytes = tensor.chunk_rows * tensor.layout.row_bytes(tensor.cells.cols);
    for (size_t i = 0; i < tensor.checksums.size(); ++i, ++number) {
      if (number % group.size != group.rank) continue;
      total += std::min(chunk_bytes, bytes_of(tensor) - static_cast<int64_t>(i) * chunk_bytes);
    }
  }
  for (const ManifestList& list : opened.manifest.lists) {
    if (number++ % group.size == group.rank) total += bytes_of(list);
  }
  return total;
}

void read_dense_from(Files& files, const ManifestDense& tensor, std::span<std::byte> out) {
  files.read(tensor.stored, 0, out);
  if (core::hash64(0, out) != tensor.checksum) files.fail_damaged(tensor.stored, "");
}

// Dense tensors, read and verified, on their way to where they belong.
class Staged {
 public:
  void read(Files& files, const Contents& wanted, std::span<const MatchedItem> matched,
            Control* control) {
    for (size_t number = 0; number < wanted.items.size(); ++number) {
      const ItemContents& item = wanted.items[number];
      const std::vector<const ManifestDense*>& tensors = matched[number].tensors;
      for (size_t i = 0; i < tensors.size(); ++i) {
        if (tensors[i] == nullptr) continue;
        Copy& copy = copies_.emplace_back(
            Copy{item.tensors[i].span(), std::vector<std::byte>(item.tensors[i].span().size())});
        read_dense_from(files, *tensors[i], copy.bytes);
        if (control != nullptr) control->advance(std::ssize(copy.bytes));
      }
    }
  }
  void apply() const noexcept {
    for (const Copy& copy : copies_) {
      if (!copy.bytes.empty()) std::memcpy(copy.to.data(), copy.bytes.data(), copy.bytes.size());
    }
  }

 private:
  struct Copy {
    std::span<std::byte> to;
    std::vector<std::byte> bytes;
  };
  std::vector<Copy> copies_;
};

// What this rank holds of the tables that are loaded: notes for all ranks, boxes for itself.
struct OwnBoxes {
  std::vector<BoxNote> notes;
  std::vector<const BoxTensor*> boxes;
  std::vector<const BoxTensor*> reset;  // states that become 0

  void add(const CollectionContents& wanted, const MatchedCollection& matched, int rank) {
    for (const BoxTensor& box : wanted.boxes) {
      check_box(box, *wanted.model);
      const MatchedTable& table = matched.tables[static_cast<size_t>(box.table)];
      if (table.fate != Fate::kLoaded) continue;
      if (box.part != TablePart::kWeights && !reads_states(table.state)) {
        if (table.state == StateRule::kReset) reset.push_back(&box);
        continue;
      }
      notes.push_back({.rank = rank,
                       .index = static_cast<int32_t>(boxes.size()),
                       .collection = matched.collection,
                       .table = table.saved,
                       .cells = box.cells,
                       .part = static_cast<int32_t>(box.part)});
      boxes.push_back(&box);
    }
  }

  int64_t zeros() const {
    int64_t most = 0;
    for (const BoxTensor* box : reset) most = std::max(most, zeros_for(*box));
    return most;
  }
};

// Sums up over all ranks what each has counted.
void add_counts(const Group& group, const comm::Operation& operation,
                std::span<NarrowedTable> narrowed) {
  if (narrowed.empty()) return;
  std::vector<int64_t> own;
  for (const NarrowedTable& table : narrowed) own.push_back(table.saturated);
  for (NarrowedTable& table : narrowed) table.saturated = 0;
  for (const comm::ConstBytes bytes :
       group.collectives.all_gather(operation, std::as_bytes(std::span(own)))) {
    for (size_t i = 0; i < std::min(narrowed.size(), bytes.size() / sizeof(int64_t)); ++i) {
      int64_t count = 0;
      std::memcpy(&count, bytes.data() + i * sizeof count, sizeof count);
      narrowed[i].saturated += count;
    }
  }
}

std::vector<BoxNote> gather_notes(const Group& group, const comm::Operation& operation,
                                  const std::vector<BoxNote>& own) {
  std::vector<BoxNote> all;
  for (const comm::ConstBytes bytes :
       group.collectives.all_gather(operation, std::as_bytes(std::span(own)))) {
    std::vector<BoxNote> notes(bytes.size() / sizeof(BoxNote));
    if (!bytes.empty()) std::memcpy(notes.data(), bytes.data(), bytes.size());
    all.insert(all.end(), notes.begin(), notes.end());
  }
  return all;
}

// Of the collection, what comes with its tables' states.
void take_settings(const Opened& opened, const MatchedCollection& matched, StepRule step,
                   CollectionContents& wanted) {
  if (!wanted.loaded) return;
  const ManifestCollection& saved =
      opened.manifest.collections[static_cast<size_t>(matched.collection)];
  if (step == StepRule::kLoad) wanted.step = saved.step;
  if (opened.manifest.format == 1) return;  // knows of no rates and of nothing frozen
  for (size_t t = 0; t < wanted.tables.size(); ++t) {
    const MatchedTable& table = matched.tables[t];
    if (table.fate != Fate::kLoaded || !reads_states(table.state)) continue;
    const ManifestTable& from = saved.tables[static_cast<size_t>(table.saved)];
    wanted.tables[t].learning_rate = from.learning_rate;
    wanted.tables[t].frozen = from.frozen;
  }
}

int64_t bytes_of_items(const Contents& wanted, std::span<const MatchedItem> matched) {
  int64_t total = 0;
  for (size_t number = 0; number < matched.size(); ++number) {
    const std::vector<const ManifestDense*>& found = matched[number].tensors;
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i] != nullptr) total += wanted.items[number].tensors[i].bytes();
    }
  }
  return total;
}

// ruled: null where nobody asks for a report.
void run_load(const Group& group, const Opened& opened, Contents& wanted, const LoadRules& rules,
              const RuledLoad* ruled, Control* control, core::FunctionRef<void()> before_writing,
              Environment& environment) {
  const comm::Operation operation = operation_on("load", opened.directory);
  const Opened& whole = opened.whole();
  Files files(whole, environment);
  std::optional<Files> of_tip;  // of a delta: where all but tables is
  if (opened.base != nullptr) of_tip.emplace(opened, environment);
  Files& of_items = of_tip ? *of_tip : files;
  MatchedLoad matched;
  std::vector<NarrowedTable> narrowed;
  OwnBoxes own;
  comm::agree(group.collectives, operation, [&] {
    matched = match(opened, wanted, rules);
    for (size_t c = 0; c < wanted.collections.size(); ++c) {
      own.add(wanted.collections[c], matched.collections[c], group.rank);
    }
    narrowed = narrowed_tables(opened, wanted, matched);
  });
  const std::vector<BoxNote> notes = gather_notes(group, operation, own.notes);
  std::optional<LoadPlan> plan;
  std::optional<TableLoader> tables;
  std::list<DeltaLoader> deltas;
  std::vector<std::byte> zeros;
  Staged dense;
  comm::agree(group.collectives, operation, [&] {
    plan.emplace(whole.manifest, notes, group.size, whole.directory);
    tables.emplace(group, whole, *plan, own.boxes, narrowed, files, control);
    for (const Opened* const delta : opened.deltas()) {
      deltas.emplace_back(*delta, LoadedBoxes{.notes = notes, .own = own.boxes, .rank = group.rank},
                          narrowed, control, environment);
    }
    zeros.resize(static_cast<size_t>(own.zeros()));
    if (control != nullptr) {
      int64_t total = tables->bytes_to_read() + bytes_of_items(wanted, matched.items);
      for (const DeltaLoader& delta : deltas) total += delta.bytes_to_read();
      if (opened.manifest.format == 1) total += bytes_to_verify(group, opened);
      control->start(total);
      control->check();
    }
    files.check_share(group.rank, group.size);
    for (DeltaLoader& delta : deltas) delta.check_share(group.size);
    dense.read(of_items, wanted, matched.items, control);
    // Its checksums are of whole tensors, which nobody reads whole.
    if (opened.manifest.format == 1) verify_tables(group, opened, files, control);
  });
  before_writing();
  comm::agree(group.collectives, operation, [&] {
    tables->run(operation);
    for (DeltaLoader& delta : deltas) delta.run();
    for (const BoxTensor* box : own.reset) write_zeros(*box, zeros);
  });
  for (size_t c = 0; c < wanted.collections.size(); ++c) {
    CollectionContents& collection = wanted.collections[c];
    take_settings(opened, matched.collections[c], rules.of(collection.name).step, collection);
  }
  if (ruled != nullptr) {
    add_counts(group, operation, narrowed);
    comm::agree(group.collectives, operation,
                [&] { ruled->take_report(load_report(opened, wanted, matched, rules, narrowed)); });
  }
  dense.apply();
}

}  // namespace

Opened open(const Group& group, const std::string& directory, Environment& environment) {
  const comm::Operation operation = operation_on("open", directory);
  Opened opened;
  comm::agree(group.collectives, operation,
              [&] { opened = open_directory(directory, environment); });
  compare_manifests(group, operation, opened);
  return opened;
}

void load(const Group& group, const Opened& opened, Contents& wanted, Control* control,
          core::FunctionRef<void()> before_writing, Environment& environment) {
  run_load(group, opened, wanted, {.ignore_extra = true}, nullptr, control, before_writing,
           environment);
}

void load(const Group& group, const Opened& opened, Contents& wanted, const RuledLoad& ruled,
          Control* control, core::FunctionRef<void()> before_writing, Environment& environment) {
  run_load(group, opened, wanted, ruled.rules, &ruled, control, before_writing, environment);
}

void verify(const Group& group, const Opened& opened, Control* control, Environment& environment) {
  const comm::Operation operation = operation_on("verify", opened.directory);
  comm::agree(group.collectives, operation, [&] {
    std::list<std::pair<const Opened*, Files>> all;
    const auto add = [&](const Opened& one) {
      all.emplace_back(std::piecewise_construct, std::forward_as_tuple(&one),
                       std::forward_as_tuple(one, environment));
    };
    add(opened.whole());
    for (const Opened* const delta : opened.deltas()) add(*delta);
    if (control != nullptr) {
      int64_t total = 0;
      for (const auto& [one, files] : all) total += bytes_to_verify(group, *one);
      control->start(total);
      control->check();
    }
    for (auto& [one, files] : all) {
      files.check_share(group.rank, group.size);
      verify_tables(group, *one, files, control);
      files.close();
    }
    if (group.rank != 0) return;
    Files& files = all.back().second;
    for (const ManifestItem& item : opened.manifest.items) {
      for (const ManifestDense& tensor : item.tensors) {
        // Sizes are those of the file, which is there: memory in proportion to it.
        std::vector<std::byte> bytes(static_cast<size_t>(bytes_of(tensor)));
        read_dense_from(files, tensor, bytes);
      }
    }
  });
}

void read_dense(const Opened& opened, const ManifestDense& tensor, std::span<std::byte> out,
                Environment& environment) {
  Files files(opened, environment);
  std::vector<std::byte> bytes(out.size());
  read_dense_from(files, tensor, bytes);
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
}

}  // namespace shardrec::checkpoint
