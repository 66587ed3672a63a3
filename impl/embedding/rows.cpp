#include "embedding/rows.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "embedding/wire.h"

namespace shardrec::embedding {
namespace {

// Requests and writes begin with this.
struct RequestHeader {
  int32_t table = 0;
  int32_t what = 0;
  int64_t row = 0;
  int64_t rows = 0;
};

// The rows of a range that a part has.
struct Overlap {
  int64_t first = 0;  // rows of the table
  int64_t last = 0;
  int64_t rows() const { return std::max<int64_t>(0, last - first); }
};

Overlap overlap(const Part& part, int64_t row, int64_t rows) {
  return {std::max(part.row, row), std::min(part.row + part.rows, row + rows)};
}

bool state_by_row(const Collection& collection) {
  return collection.model().optimizer.row_statistics == SHARDREC_ROW_STATISTICS_ROW;
}

// How a part's rows stand in a message: one run of values per row.
int64_t message_width(const Collection& collection, const Part& part, int32_t what) {
  if (what == SHARDREC_TABLE_WEIGHTS) return part.width;
  return state_by_row(collection) ? 1 : static_cast<int64_t>(part.columns.size());
}

// Does the owner of a part send it to a reader? A row's statistic comes from its first column's
// owner.
bool sends(const Collection& collection, const Part& part, int32_t what, int reader) {
  if (!collection.layout().answers(part, reader)) return false;
  return what == SHARDREC_TABLE_WEIGHTS || !state_by_row(collection) || part.columns[0].col == 0;
}

Shard& shard_of(Collection& collection, int32_t part) {
  const auto own = collection.layout().parts_of(collection.layout().rank());
  const auto at = std::lower_bound(own.begin(), own.end(), part) - own.begin();
  return collection.shards()[static_cast<size_t>(at)];
}

void copy_out(Collection& collection, int32_t p, int32_t what, const Overlap& rows, float* out) {
  const Part& part = collection.layout().parts()[static_cast<size_t>(p)];
  const Shard& shard = shard_of(collection, p);
  const int64_t first = rows.first - part.row;
  if (what == SHARDREC_TABLE_WEIGHTS) {
    std::copy_n(shard.weights() + first * part.width, rows.rows() * part.width, out);
    return;
  }
  const size_t states = shard.columns().size();
  for (int64_t r = 0; r < rows.rows(); ++r) {
    for (size_t s = 0; s < states; ++s) *out++ = shard.state()[s][first + r];
  }
}

void copy_in(Collection& collection, int32_t p, int32_t what, const Overlap& rows,
             const float* in) {
  const Part& part = collection.layout().parts()[static_cast<size_t>(p)];
  Shard& shard = shard_of(collection, p);
  const int64_t first = rows.first - part.row;
  if (what == SHARDREC_TABLE_WEIGHTS) {
    std::copy_n(in, rows.rows() * part.width, shard.weights() + first * part.width);
    return;
  }
  const size_t states = shard.columns().size();
  for (int64_t r = 0; r < rows.rows(); ++r) {
    for (size_t s = 0; s < states; ++s) shard.state()[s][first + r] = *in++;
  }
}

// Moves a message's row between the part's order and the table's columns.
template <class Move>
void for_each_run(const Collection& collection, const Part& part, int32_t what, Move move) {
  if (what == SHARDREC_TABLE_WEIGHTS) {
    for (const ColumnPiece& piece : part.columns) move(piece.col, piece.offset, piece.cols);
  } else if (state_by_row(collection)) {
    move(0, 0, 1);
  } else {
    for (size_t s = 0; s < part.columns.size(); ++s) {
      move(part.columns[s].col, static_cast<int64_t>(s), -part.columns[s].cols);
    }
  }
}

struct Messages {
  explicit Messages(int ranks) : buffer(std::make_shared<std::vector<std::byte>>()), parts(ranks) {}
  std::shared_ptr<std::vector<std::byte>> buffer;
  std::vector<comm::ConstBytes> parts;
};

[[noreturn]] void corrupt(size_t rank, const char* name) {
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("rank ", rank, " sent a malformed message in ", name),
             {.rank = static_cast<int64_t>(rank), .operation = name});
}

RequestHeader read_header(const Collection& collection, comm::ConstBytes message, size_t rank,
                          const char* name) {
  RequestHeader header;
  if (message.size() < sizeof header) corrupt(rank, name);
  std::memcpy(&header, message.data(), sizeof header);
  const auto tables = static_cast<int32_t>(collection.model().tables.size());
  if (header.rows == 0) return header;
  if (header.table < 0 || header.table >= tables || header.row < 0 || header.rows < 0 ||
      header.row >
          collection.model().tables[static_cast<size_t>(header.table)].rows - header.rows) {
    corrupt(rank, name);
  }
  return header;
}

// Runs an exchange; its failure is the communicator's, so that peers do not wait.
template <class Body>
void or_fail(Collection& collection, const char* name, Body body) {
  try {
    body();
  } catch (...) {
    collection.communicator().fail(name);
    throw;
  }
}

}  // namespace

int64_t row_width(const Collection& collection, const RowRange& range) {
  const plan::Model& model = collection.model();
  if (range.table < 0 || static_cast<size_t>(range.table) >= model.tables.size()) {
    core::fail(SHARDREC_NOT_FOUND,
               core::sentence("table ", range.table, " does not exist: the model has ",
                              model.tables.size()),
               {.value = int64_t{range.table}, .limit = static_cast<int64_t>(model.tables.size())});
  }
  const plan::Table& table = model.tables[static_cast<size_t>(range.table)];
  if (range.what != SHARDREC_TABLE_WEIGHTS && range.what != SHARDREC_TABLE_STATE) {
    core::fail(SHARDREC_NOT_FOUND,
               core::sentence("part ", static_cast<int>(range.what), " of table \"", table.name,
                              "\" does not exist: WEIGHTS (0) and STATE (1) do"),
               {.table = table.name});
  }
  if (range.what == SHARDREC_TABLE_STATE &&
      model.optimizer.kind != SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD) {
    core::fail(SHARDREC_NOT_FOUND,
               "table \"" + table.name + "\" has no optimizer state: its optimizer is SGD",
               {.table = table.name});
  }
  if (range.row < 0 || range.rows < 0 || range.row > table.rows ||
      range.rows > table.rows - range.row) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("rows [", range.row, ", ", range.row, " + ", range.rows,
                              ") leave table \"", table.name, "\", which has ", table.rows),
               {.value = range.row, .limit = table.rows, .table = table.name});
  }
  return range.what == SHARDREC_TABLE_STATE && state_by_row(collection) ? 1 : table.dim;
}

void read_rows(Collection& collection, const RowRange& range, const core::Matrix& out) {
  constexpr const char* kName = "collection_read";
  const Layout& layout = collection.layout();
  const int ranks = layout.ranks();
  collection.communicator().check();
  or_fail(collection, kName, [&] {
    collection.settle();
    Messages request(ranks);
    const RequestHeader mine{range.table, range.what, range.row, range.rows};
    request.buffer->resize(sizeof mine);
    std::memcpy(request.buffer->data(), &mine, sizeof mine);
    std::fill(request.parts.begin(), request.parts.end(), comm::ConstBytes(*request.buffer));
    const auto requests =
        collection.exchange(Exchange::kReadRequest, kName, 0, request.parts, request.buffer);

    // Replies: for each reader, the overlap of each of this rank's parts.
    Messages reply(ranks);
    for (const bool writing : {false, true}) {
      size_t at = 0;
      for (int reader = 0; reader < ranks; ++reader) {
        const auto r = static_cast<size_t>(reader);
        const RequestHeader wanted = read_header(collection, requests[r], r, kName);
        const size_t first = at;
        if (wanted.rows != 0) {
          for (const int32_t p : layout.parts_of(layout.rank())) {
            const Part& part = layout.parts()[static_cast<size_t>(p)];
            if (part.table != wanted.table || !sends(collection, part, wanted.what, reader))
              continue;
            const Overlap rows = overlap(part, wanted.row, wanted.rows);
            const int64_t floats = rows.rows() * message_width(collection, part, wanted.what);
            if (writing && floats != 0) {
              copy_out(collection, p, wanted.what, rows,
                       static_cast<float*>(static_cast<void*>(reply.buffer->data() + at)));
            }
            at += static_cast<size_t>(floats) * sizeof(float);
          }
        }
        if (writing) reply.parts[r] = comm::ConstBytes(*reply.buffer).subspan(first, at - first);
      }
      if (!writing) reply.buffer->resize(at);
    }
    const auto replies =
        collection.exchange(Exchange::kReadReply, kName, 0, reply.parts, reply.buffer);
    if (range.rows == 0) return;
    for (int owner = 0; owner < ranks; ++owner) {
      const comm::ConstBytes message = replies[static_cast<size_t>(owner)];
      size_t at = 0;
      for (const int32_t p : layout.parts_of(owner)) {
        const Part& part = layout.parts()[static_cast<size_t>(p)];
        if (part.table != range.table || !sends(collection, part, range.what, layout.rank())) {
          continue;
        }
        const Overlap rows = overlap(part, range.row, range.rows);
        const int64_t width = message_width(collection, part, range.what);
        const auto bytes = static_cast<size_t>(rows.rows() * width) * sizeof(float);
        if (bytes > message.size() - at) corrupt(static_cast<size_t>(owner), kName);
        const auto* in = static_cast<const float*>(static_cast<const void*>(message.data() + at));
        for (int64_t r = 0; r < rows.rows(); ++r, in += width) {
          float* to = out.row(rows.first + r - range.row);
          for_each_run(collection, part, range.what,
                       [&](int64_t col, int64_t offset, int64_t cols) {
                         if (cols < 0) {
                           std::fill_n(to + col, -cols, in[offset]);  // a box's state, all columns
                         } else {
                           std::copy_n(in + offset, cols, to + col);
                         }
                       });
        }
        at += bytes;
      }
    }
  });
  collection.settle();
}

void write_rows(Collection& collection, const RowRange& range, const core::Matrix& values) {
  constexpr const char* kName = "collection_write";
  const Layout& layout = collection.layout();
  const int ranks = layout.ranks();
  collection.communicator().check();
  or_fail(collection, kName, [&] {
    collection.settle();
    const RequestHeader mine{range.table, range.what, range.row, range.rows};
    Messages outgoing(ranks);
    for (const bool writing : {false, true}) {
      size_t at = 0;
      for (int owner = 0; owner < ranks; ++owner) {
        const size_t first = at;
        if (writing) std::memcpy(outgoing.buffer->data() + at, &mine, sizeof mine);
        at += sizeof mine;
        for (const int32_t p : layout.parts_of(owner)) {
          const Part& part = layout.parts()[static_cast<size_t>(p)];
          if (range.rows == 0 || part.table != range.table) continue;
          const Overlap rows = overlap(part, range.row, range.rows);
          const int64_t width = message_width(collection, part, range.what);
          if (writing) {
            auto* to = static_cast<float*>(static_cast<void*>(outgoing.buffer->data() + at));
            for (int64_t r = 0; r < rows.rows(); ++r, to += width) {
              const float* from = values.row(rows.first + r - range.row);
              for_each_run(collection, part, range.what,
                           [&](int64_t col, int64_t offset, int64_t cols) {
                             std::copy_n(from + col, cols < 0 ? 1 : cols, to + offset);
                           });
            }
          }
          at += static_cast<size_t>(rows.rows() * width) * sizeof(float);
        }
        if (writing) {
          outgoing.parts[static_cast<size_t>(owner)] =
              comm::ConstBytes(*outgoing.buffer).subspan(first, at - first);
        }
      }
      if (!writing) outgoing.buffer->resize(at);
    }
    const auto incoming =
        collection.exchange(Exchange::kWrite, kName, 0, outgoing.parts, outgoing.buffer);
    // All messages are checked before the first one is applied.
    for (const bool applying : {false, true}) {
      for (size_t source = 0; source < incoming.size(); ++source) {
        const comm::ConstBytes message = incoming[source];
        const RequestHeader header = read_header(collection, message, source, kName);
        size_t at = sizeof header;
        for (const int32_t p : layout.parts_of(layout.rank())) {
          const Part& part = layout.parts()[static_cast<size_t>(p)];
          if (header.rows == 0 || part.table != header.table) continue;
          const Overlap rows = overlap(part, header.row, header.rows);
          const auto bytes =
              static_cast<size_t>(rows.rows() * message_width(collection, part, header.what)) *
              sizeof(float);
          if (bytes > message.size() - at) corrupt(source, kName);
          if (applying && bytes != 0) {
            copy_in(collection, p, header.what, rows,
                    static_cast<const float*>(static_cast<const void*>(message.data() + at)));
          }
          at += bytes;
        }
        if (at != message.size()) corrupt(source, kName);
      }
    }
  });
  collection.settle();
}

}  // namespace shardrec::embedding
