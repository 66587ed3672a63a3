#include "embedding/rows.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "embedding/exchange/wire.h"
#include "embedding/row_values.h"
#include "plan/names.h"

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

RequestHeader read_header(const Collection& collection, comm::ConstBytes message, size_t rank,
                          const char* name) {
  RequestHeader header;
  if (message.size() < sizeof header) throw_malformed(rank, name);
  std::memcpy(&header, message.data(), sizeof header);
  const auto tables = static_cast<int32_t>(collection.model().tables.size());
  if (header.rows == 0) return header;
  if (header.table < 0 || header.table >= tables || header.row < 0 || header.rows < 0 ||
      header.row >
          collection.model().tables[static_cast<size_t>(header.table)].rows - header.rows ||
      !values_exist(collection.model(), header.table, header.what)) {
    throw_malformed(rank, name);
  }
  return header;
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
  if (!values_exist(model, range.table, range.what)) {
    const shardrec_optimizer kind = model.optimizer_of(range.table).kind;
    std::string parts = "WEIGHTS (0)";
    int number = 0;
    for (const plan::OptimizerState& state : plan::states_of(kind)) {
      parts += core::sentence(number == 0 ? ", STATE (" : ", STATE_2 (", number + 1, ": ",
                              state.name, ")");
      ++number;
    }
    core::fail(SHARDREC_NOT_FOUND,
               core::sentence("part ", static_cast<int>(range.what), " of table \"", table.name,
                              "\" does not exist: with ", plan::name_of(kind), " it has ", parts),
               {.table = table.name});
  }
  if (range.row < 0 || range.rows < 0 || range.row > table.rows ||
      range.rows > table.rows - range.row) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("rows [", range.row, ", ", range.row, " + ", range.rows,
                              ") leave table \"", table.name, "\", which has ", table.rows),
               {.value = range.row, .limit = table.rows, .table = table.name});
  }
  const Values values = values_of(model, range.table, range.what);
  return values.by_row && !values.per_box ? 1 : table.dim;
}

void read_rows(Collection& collection, const RowRange& range, const core::Matrix& out) {
  constexpr const char* kName = "collection_read";
  collection.require_whole();
  const Layout& layout = collection.layout();
  const int ranks = layout.ranks();
  const compute::Kernels& kernels = collection.kernels();
  collection.communicator().check_before(kName);
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
          const Values what = values_of(collection.model(), wanted.table, wanted.what);
          for (const int32_t p : layout.parts_of(layout.rank())) {
            const Part& part = layout.parts()[static_cast<size_t>(p)];
            if (part.table != wanted.table || !sends(layout, part, what, reader)) continue;
            const Overlap rows = overlap(part, wanted.row, wanted.rows);
            const size_t bytes = what.bytes(rows.rows() * message_width(part, what));
            if (writing && bytes != 0) {
              StoredRows(collection, p, what)
                  .copy_out(rows.first - part.row, rows.rows(), reply.buffer->data() + at);
            }
            at += bytes;
          }
        }
        if (writing) reply.parts[r] = comm::ConstBytes(*reply.buffer).subspan(first, at - first);
      }
      if (!writing) reply.buffer->resize(at);
    }
    const auto replies =
        collection.exchange(Exchange::kReadReply, kName, 0, reply.parts, reply.buffer);
    if (range.rows == 0) return;
    const Values what = values_of(collection.model(), range.table, range.what);
    for (int owner = 0; owner < ranks; ++owner) {
      const comm::ConstBytes message = replies[static_cast<size_t>(owner)];
      size_t at = 0;
      for (const int32_t p : layout.parts_of(owner)) {
        const Part& part = layout.parts()[static_cast<size_t>(p)];
        if (part.table != range.table || !sends(layout, part, what, layout.rank())) continue;
        const Overlap rows = overlap(part, range.row, range.rows);
        const size_t row_bytes = what.bytes(message_width(part, what));
        const size_t bytes = static_cast<size_t>(rows.rows()) * row_bytes;
        if (bytes > message.size() - at) throw_malformed(static_cast<size_t>(owner), kName);
        const std::byte* in = message.data() + at;
        for (int64_t r = 0; r < rows.rows(); ++r, in += row_bytes) {
          widen_row(kernels, part, what, in, out.row(rows.first + r - range.row));
        }
        at += bytes;
      }
    }
  });
  collection.settle();
}

void write_rows(Collection& collection, const RowRange& range, const core::Matrix& values) {
  constexpr const char* kName = "collection_write";
  collection.require_whole();
  const Layout& layout = collection.layout();
  const int ranks = layout.ranks();
  const compute::Kernels& kernels = collection.kernels();
  collection.communicator().check_before(kName);
  or_fail(collection, kName, [&] {
    collection.settle();
    const RequestHeader mine{range.table, range.what, range.row, range.rows};
    Messages outgoing(ranks);
    const Values what =
        range.rows == 0 ? Values{} : values_of(collection.model(), range.table, range.what);
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
          const size_t row_bytes = what.bytes(message_width(part, what));
          if (writing) {
            std::byte* to = outgoing.buffer->data() + at;
            for (int64_t r = 0; r < rows.rows(); ++r, to += row_bytes) {
              narrow_row(kernels, part, what, values.row(rows.first + r - range.row), to);
            }
          }
          at += static_cast<size_t>(rows.rows()) * row_bytes;
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
        const Values told =
            header.rows == 0 ? Values{} : values_of(collection.model(), header.table, header.what);
        for (const int32_t p : layout.parts_of(layout.rank())) {
          const Part& part = layout.parts()[static_cast<size_t>(p)];
          if (header.rows == 0 || part.table != header.table) continue;
          const Overlap rows = overlap(part, header.row, header.rows);
          const size_t bytes = told.bytes(rows.rows() * message_width(part, told));
          if (bytes > message.size() - at) throw_malformed(source, kName);
          if (applying && bytes != 0) {
            StoredRows(collection, p, told)
                .copy_in(rows.first - part.row, rows.rows(), message.data() + at);
          }
          at += bytes;
        }
        if (at != message.size()) throw_malformed(source, kName);
      }
    }
  });
  collection.settle();
}

}  // namespace shardrec::embedding
