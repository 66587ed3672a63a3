#include "checkpoint/read/load_plan.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/error.h"

namespace shardrec::checkpoint {

namespace {

int64_t bytes_of(const Need& need, const ManifestTensor& tensor) {
  return need.cells.rows * tensor.layout.row_bytes(need.cells.cols);
}

}  // namespace

LoadPlan::LoadPlan(const Manifest& manifest, std::span<const BoxNote> notes, int ranks,
                   const std::string& path)
    : needs_(manifest.tensors.size()) {
  std::map<std::tuple<int32_t, int32_t, int32_t>, std::vector<const BoxNote*>> boxes;
  for (const BoxNote& note : notes) {
    boxes[{note.collection, note.table, note.part}].push_back(&note);
  }
  for (size_t t = 0; t < manifest.tensors.size(); ++t) {
    const ManifestTensor& tensor = manifest.tensors[t];
    const auto found =
        boxes.find({tensor.collection, tensor.table, static_cast<int32_t>(tensor.part)});
    if (found == boxes.end()) continue;
    for (const BoxNote* note : found->second) {
      const Need need{.rank = note->rank,
                      .box = note->index,
                      .cells = plan::intersect(note->cells, tensor.cells)};
      if (need.cells.empty()) continue;
      if (tensor.layout.by_row &&
          (tensor.cells.col != note->cells.col || tensor.cells.cols != note->cells.cols)) {
        const std::string& name = manifest.table_of(tensor).name;
        core::fail(SHARDREC_UNSUPPORTED,
                   core::sentence("the checkpoint ", path, " holds the optimizer state of table \"",
                                  name, "\" over columns [", tensor.cells.col, ", ",
                                  tensor.cells.end_col(), "), this plan needs it over [",
                                  note->cells.col, ", ", note->cells.end_col(),
                                  "): a statistic of shards loads into the same column cuts only"),
                   {.table = name, .path = path});
      }
      needs_[t].push_back(need);
    }
    std::sort(needs_[t].begin(), needs_[t].end(), [](const Need& a, const Need& b) {
      return std::tie(a.cells.row, a.cells.col, a.rank, a.box) <
             std::tie(b.cells.row, b.cells.col, b.rank, b.box);
    });
  }
  cut(manifest, ranks);
}

void LoadPlan::needs_of(const Chunk& chunk, std::vector<Need>& out) const {
  out.clear();
  for (const Need& need : needs_[static_cast<size_t>(chunk.tensor)]) {
    if (need.cells.row >= chunk.row + chunk.rows) break;  // they are ordered by row
    Need part = need;
    part.cells =
        plan::intersect(need.cells, {chunk.row, chunk.rows, need.cells.col, need.cells.cols});
    if (!part.cells.empty()) out.push_back(part);
  }
}

// The reader of a chunk is, of the ranks that need it, the one with the least to read so far. It goes
// on with the chunks that follow for a stretch, because a disk reads ahead of who reads in order.
void LoadPlan::cut(const Manifest& manifest, int ranks) {
  std::vector<int64_t> load(static_cast<size_t>(ranks), 0);
  std::vector<std::vector<Chunk>> shared(static_cast<size_t>(ranks));
  std::vector<Need> needs;
  // What one rank alone needs it reads whatever the others do: those first, so that they count.
  for (const bool several : {false, true}) {
    for (size_t t = 0; t < manifest.tensors.size(); ++t) {
      if (needs_[t].empty()) continue;
      const ManifestTensor& tensor = manifest.tensors[t];
      const int64_t stretch = std::min(
          kStretch, tensor.cells.rows * tensor.layout.row_bytes(tensor.cells.cols) / ranks);
      int32_t last_reader = -1;
      // The one checksum of a tensor of format 1 is verified beforehand.
      const int64_t height = manifest.format == 1
                                 ? rows_per_chunk(tensor.layout.row_bytes(tensor.cells.cols))
                                 : tensor.chunk_rows;
      for (int64_t number = 0; number * height < tensor.cells.rows; ++number) {
        Chunk chunk{.tensor = static_cast<int32_t>(t),
                    .number = number,
                    .row = tensor.cells.row + number * height,
                    .rows = std::min(height, tensor.cells.rows - number * height)};
        needs_of(chunk, needs);
        if (needs.empty()) continue;
        chunk.reader = needs.front().rank;
        bool alone = true;
        bool goes_on = false;
        const auto load_of = [&](int32_t rank) {
          return std::pair(load[static_cast<size_t>(rank)], rank);
        };
        for (const Need& need : needs) {
          alone = alone && need.rank == needs.front().rank;
          goes_on = goes_on || need.rank == last_reader;
          if (several && load_of(need.rank) < load_of(chunk.reader)) chunk.reader = need.rank;
        }
        if (alone == several) continue;
        if (goes_on && load_of(last_reader).first < load_of(chunk.reader).first + stretch) {
          chunk.reader = last_reader;
        }
        last_reader = chunk.reader;
        load[static_cast<size_t>(chunk.reader)] +=
            chunk.rows * tensor.layout.row_bytes(tensor.cells.cols);
        if (several) {
          shared[static_cast<size_t>(chunk.reader)].push_back(chunk);
        } else {
          own_.push_back(chunk);
        }
      }
    }
  }
  make_rounds(manifest, shared);
}

void LoadPlan::make_rounds(const Manifest& manifest, std::vector<std::vector<Chunk>>& shared) {
  std::vector<size_t> next(shared.size(), 0);
  std::vector<int64_t> received(shared.size());
  std::vector<Need> needs;
  size_t first = 0;  // who may read in any case takes turns
  for (;;) {
    std::vector<Chunk> round;
    std::fill(received.begin(), received.end(), 0);
    for (size_t i = 0; i < shared.size(); ++i) {
      const size_t reader = (first + i) % shared.size();
      if (next[reader] == shared[reader].size()) continue;
      const Chunk& chunk = shared[reader][next[reader]];
      const ManifestTensor& tensor = manifest.tensors[static_cast<size_t>(chunk.tensor)];
      needs_of(chunk, needs);
      std::vector<int64_t> after = received;
      for (const Need& need : needs) {
        if (need.rank != chunk.reader) {
          after[static_cast<size_t>(need.rank)] += bytes_of(need, tensor);
        }
      }
      const bool fits = std::all_of(after.begin(), after.end(),
                                    [](int64_t bytes) { return bytes <= kMostReceived; });
      if (!fits && !round.empty()) continue;
      received = std::move(after);
      round.push_back(chunk);
      ++next[reader];
    }
    if (round.empty()) return;
    ++first;
    std::sort(round.begin(), round.end(),
              [](const Chunk& a, const Chunk& b) { return a.reader < b.reader; });
    rounds_.push_back(std::move(round));
  }
}

}  // namespace shardrec::checkpoint
