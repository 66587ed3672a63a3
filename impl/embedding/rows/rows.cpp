#include "embedding/rows/rows.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "embedding/exchange/wire.h"
#include "embedding/rows/row_messages.h"
#include "embedding/rows/row_values.h"
#include "plan/model/names.h"

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

// Calls visit(part number, part, its rows of the range, their bytes) for what each part of `owner` has
// of a range, in the order of messages. caller: the rank that reads or writes it.
template <class Visit>
void for_each_overlap(const Layout& layout, int owner, const RequestHeader& range,
                      const Values& values, RowsWay way, int caller, Visit visit) {
  if (range.rows == 0) return;
  for (const int32_t p : layout.parts_of(owner)) {
    const Part& part = layout.parts()[static_cast<size_t>(p)];
    if (part.table != range.table || !concerns(layout, part, values, way, caller)) continue;
    const Overlap rows = overlap(part, range.row, range.rows);
    visit(p, part, rows, values.bytes(rows.rows() * message_width(part, values)));
  }
}

Values values_in(const Collection& collection, const RequestHeader& range) {
  return range.rows == 0 ? Values{} : values_of(collection.model(), range.table, range.what);
}

// What each rank asks for.
std::span<const comm::ConstBytes> exchange_requests(Collection& collection,
                                                    const RequestHeader& mine, const char* name) {
  Messages request(collection.layout().ranks());
  request.buffer->resize(sizeof mine);
  std::memcpy(request.buffer->data(), &mine, sizeof mine);
  std::fill(request.parts.begin(), request.parts.end(), comm::ConstBytes(*request.buffer));
  return collection.ordered().exchange(ExchangeKind::kReadRequest, name, 0, request.parts,
                                       request.buffer);
}

// The replies: for each reader, the overlap of each of this rank's parts.
std::span<const comm::ConstBytes> exchange_replies(Collection& collection,
                                                   std::span<const comm::ConstBytes> requests,
                                                   const char* name) {
  const Layout& layout = collection.layout();
  Messages reply(layout.ranks());
  write_messages(reply, [&](MessageWriter& writer) {
    for (int reader = 0; reader < layout.ranks(); ++reader) {
      const auto r = static_cast<size_t>(reader);
      const RequestHeader wanted = read_header(collection, requests[r], r, name);
      const Values values = values_in(collection, wanted);
      for_each_overlap(layout, layout.rank(), wanted, values, RowsWay::kRead, reader,
                       [&](int32_t p, const Part& part, const Overlap& rows, size_t bytes) {
                         std::byte* const to = writer.room(bytes);
                         if (to == nullptr || bytes == 0) return;
                         StoredRows(collection, p, values)
                             .copy_out({.first = rows.first - part.row, .count = rows.rows()}, to);
                       });
      writer.end_message(reader);
    }
  });
  return collection.ordered().exchange(ExchangeKind::kReadReply, name, 0, reply.parts,
                                       reply.buffer);
}

// Puts the replies of all owners together.
void take_replies(Collection& collection, const RequestHeader& mine,
                  std::span<const comm::ConstBytes> replies, const core::Matrix& out,
                  const char* name) {
  const Layout& layout = collection.layout();
  const Values values = values_in(collection, mine);
  for (int owner = 0; owner < layout.ranks(); ++owner) {
    comm::ConstBytes rest = replies[static_cast<size_t>(owner)];
    for_each_overlap(layout, owner, mine, values, RowsWay::kRead, layout.rank(),
                     [&](int32_t, const Part& part, const Overlap& rows, size_t bytes) {
                       if (bytes > rest.size()) throw_malformed(static_cast<size_t>(owner), name);
                       widen_rows(collection.backend(), part, values, rest.data(),
                                  {.first = rows.first - mine.row, .count = rows.rows()}, out);
                       rest = rest.subspan(bytes);
                     });
  }
}

// What each owner gets of the rows that this rank writes.
std::span<const comm::ConstBytes> exchange_writes(Collection& collection, const RequestHeader& mine,
                                                  const core::Matrix& in, const char* name) {
  const Layout& layout = collection.layout();
  const Values values = values_in(collection, mine);
  Messages outgoing(layout.ranks());
  write_messages(outgoing, [&](MessageWriter& writer) {
    for (int owner = 0; owner < layout.ranks(); ++owner) {
      writer.put(&mine, sizeof mine);
      for_each_overlap(layout, owner, mine, values, RowsWay::kWrite, layout.rank(),
                       [&](int32_t, const Part& part, const Overlap& rows, size_t bytes) {
                         std::byte* const to = writer.room(bytes);
                         if (to == nullptr) return;
                         narrow_rows(collection.backend(), part, values, in,
                                     {.first = rows.first - mine.row, .count = rows.rows()}, to);
                       });
      writer.end_message(owner);
    }
  });
  return collection.ordered().exchange(ExchangeKind::kWrite, name, 0, outgoing.parts,
                                       outgoing.buffer);
}

// Applies what a rank wrote to this rank's parts; applying false: only checks the message.
void apply_write(Collection& collection, comm::ConstBytes message, size_t source, const char* name,
                 bool applying) {
  const Layout& layout = collection.layout();
  const RequestHeader header = read_header(collection, message, source, name);
  const Values values = values_in(collection, header);
  comm::ConstBytes rest = message.subspan(sizeof header);
  for_each_overlap(layout, layout.rank(), header, values, RowsWay::kWrite, static_cast<int>(source),
                   [&](int32_t p, const Part& part, const Overlap& rows, size_t bytes) {
                     if (bytes > rest.size()) throw_malformed(source, name);
                     if (applying && bytes != 0) {
                       StoredRows(collection, p, values)
                           .copy_in({.first = rows.first - part.row, .count = rows.rows()},
                                    rest.data());
                     }
                     rest = rest.subspan(bytes);
                   });
  if (!rest.empty()) throw_malformed(source, name);
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
  constexpr const char* kName = "collection_read_range";
  collection.check_before(kName);
  collection.ordered().require_nothing_posted(kName);
  or_fail(collection, kName, [&] {
    collection.ordered().settle();
    const RequestHeader mine{range.table, range.what, range.row, range.rows};
    const auto requests = exchange_requests(collection, mine, kName);
    const auto replies = exchange_replies(collection, requests, kName);
    take_replies(collection, mine, replies, out, kName);
    collection.ordered().settle();
  });
}

void write_rows(Collection& collection, const RowRange& range, const core::Matrix& values) {
  constexpr const char* kName = "collection_write_range";
  collection.check_before(kName);
  collection.ordered().require_nothing_posted(kName);
  or_fail(collection, kName, [&] {
    collection.ordered().settle();
    const RequestHeader mine{range.table, range.what, range.row, range.rows};
    const auto incoming = exchange_writes(collection, mine, values, kName);
    // All messages are checked before the first one is applied.
    for (const bool applying : {false, true}) {
      if (applying) collection.begin_rewrite();
      for (size_t source = 0; source < incoming.size(); ++source) {
        apply_write(collection, incoming[source], source, kName, applying);
      }
    }
    collection.ordered().settle();
    collection.end_rewrite();
  });
}

}  // namespace shardrec::embedding
