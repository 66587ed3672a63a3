#include "embedding/rows/row_list.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/function_ref.h"
#include "core/memory.h"
#include "embedding/rows/row_list_message.h"
#include "embedding/rows/row_values.h"
#include "embedding/rows/rows.h"

namespace shardrec::embedding {
namespace {

// The parts of its table that an entry of this rank's list concerns: those that hold its row and,
// in a read, send it to this rank.
class Targets {
 public:
  Targets(const Layout& layout, const RowList& list, const Values& values, RowsWay way)
      : layout_(layout),
        table_(layout.table(list.table)),
        number_(list.table),
        values_(values),
        way_(way),
        receivers_(table_.replicated || layout.groups().exact ? table_.parts
                                                              : layout.answering(list.table)),
        of_part_(layout.parts().size(), -1) {
    for (const int32_t p : receivers_) {
      if (!concerned(p)) continue;
      of_part_[static_cast<size_t>(p)] = static_cast<int32_t>(parts_.size());
      parts_.push_back(p);
    }
    positions_.resize(parts_.size());
  }

  // Sorts the entries [begin, end) of the list by part.
  void route(const RowList& list, int64_t begin, int64_t end) {
    for (std::vector<int64_t>& positions : positions_) positions.clear();
    for (int64_t at = begin; at < end; ++at) {
      for_each_part_of(list.id(at), [&](int32_t target) {
        positions_[static_cast<size_t>(target)].push_back(at);
      });
    }
  }

  // Calls visit(part, positions in the list) for the concerned parts of a rank, in canonical order.
  template <class Visit>
  void for_each(int owner, Visit visit) const {
    for (const int32_t p : layout_.parts_of(owner)) {
      const int32_t target = of_part_[static_cast<size_t>(p)];
      if (target < 0) continue;
      visit(layout_.parts()[static_cast<size_t>(p)],
            std::span<const int64_t>(positions_[static_cast<size_t>(target)]));
    }
  }

 private:
  bool concerned(int32_t p) const {
    const Part& part = layout_.parts()[static_cast<size_t>(p)];
    return concerns(layout_, part, values_, way_, layout_.rank());
  }

  template <class Visit>
  void for_each_part_of(int64_t row, Visit visit) const {
    if (table_.replicated) {
      for (size_t target = 0; target < parts_.size(); ++target) {
        visit(static_cast<int32_t>(target));
      }
      return;
    }
    const Routing& routing = table_.routing;
    const auto cut = std::upper_bound(routing.cuts.begin(), routing.cuts.end(), row) - 1;
    const auto interval = static_cast<size_t>(cut - routing.cuts.begin());
    for (auto t = static_cast<size_t>(routing.first_target[interval]);
         t < static_cast<size_t>(routing.first_target[interval + 1]); ++t) {
      const auto receiver = static_cast<size_t>(routing.targets[t]);
      for_each_copy(receiver, [&](int32_t part) {
        const int32_t target = of_part_[static_cast<size_t>(part)];
        if (target >= 0) visit(target);
      });
    }
  }

  // Where states are shared, targets are those of a rank of the first group: each group has a copy of its parts for
  // lookups.
  template <class Visit>
  void for_each_copy(size_t receiver, Visit visit) const {
    const ShardingGroups& groups = layout_.groups();
    const bool copied =
        layout_.shares_states(number_) && receiver < table_.parts_of_group(0, groups).size();
    for (int group = 0; copied && group < groups.count; ++group) {
      visit(table_.parts_of_group(group, groups)[receiver]);
    }
    if (!copied) visit(receivers_[receiver]);
  }

  const Layout& layout_;
  const TableLayout& table_;
  int32_t number_;  // of the table
  Values values_;
  RowsWay way_;
  PartRange receivers_;         // of a cut table, those of the own sharding group, or of exact ones
  std::vector<int32_t> parts_;  // concerned ones
  std::vector<int32_t> of_part_;  // number among them by part of the layout; -1: not concerned
  std::vector<std::vector<int64_t>> positions_;
};

// This rank's list, cut into blocks.
struct Blocks {
  Blocks(const Collection& collection, const RowList& list, int64_t width, size_t bytes_at_once)
      : ids(list.ids.size) {
    const size_t entry = static_cast<size_t>(width) * sizeof(float) + sizeof(int64_t);
    const size_t share = bytes_at_once / static_cast<size_t>(collection.layout().ranks());
    each = static_cast<int64_t>(std::max<size_t>(share / entry, 1));
    count = std::max<int64_t>((ids + each - 1) / each, 1);
  }
  int64_t begin(int64_t block) const { return std::min(ids, std::min(block, count) * each); }
  int64_t end(int64_t block) const { return begin(block + 1); }

  int64_t ids = 0;
  int64_t each = 1;
  int64_t count = 1;
};

void put_ids(MessageWriter& writer, const RowList& list, const Part& part,
             std::span<const int64_t> positions) {
  const auto count = static_cast<int64_t>(positions.size());
  writer.put(&count, sizeof count);
  for (const int64_t at : positions) {
    const int64_t row = list.id(at) - part.row;
    writer.put(&row, sizeof row);
  }
}

// Calls serve(part number, part, the rows that are named) for what a message says of this rank's
// parts.
template <class Serve>
void for_each_named(const Layout& layout, ListReader& reader, RowsWay way, const Values& values,
                    int source, Serve serve) {
  if (reader.header().ids == 0) return;
  for (const int32_t p : layout.parts_of(layout.rank())) {
    const Part& part = layout.parts()[static_cast<size_t>(p)];
    if (part.table != reader.header().table) continue;
    if (!concerns(layout, part, values, way, source)) continue;
    serve(p, part, reader.take_ids(part));
  }
}

RowNumbers numbers_of(std::span<const int64_t> list) {
  return {.count = std::ssize(list), .list = list.data()};
}

Values values_in(const Collection& collection, const ListHeader& header) {
  return header.ids == 0 ? Values{} : values_of(collection.model(), header.table, header.what);
}

// Which rank wrote a row last, where a call writes in several blocks: a later block of a lower rank
// must not overwrite it. Pages that nothing is noted in cost no memory.
class LastWriters {
 public:
  // May `source` write the row? If so it is the last one now. Ranks are below 65536.
  bool may_write(int32_t p, const Part& part, int32_t what, int64_t row, size_t source) {
    core::Pages& pages = writers_[{p, what}];
    if (pages.data() == nullptr) {
      pages = core::Pages(static_cast<size_t>(part.rows) * sizeof(uint16_t));
    }
    std::byte* const at = pages.data() + static_cast<size_t>(row) * sizeof(uint16_t);
    uint16_t last = 0;
    std::memcpy(&last, at, sizeof last);
    if (source < last) return false;
    last = static_cast<uint16_t>(source);
    std::memcpy(at, &last, sizeof last);
    return true;
  }

 private:
  std::map<std::pair<int32_t, int32_t>, core::Pages> writers_;  // by part and what of it
};

// Writes the rows that a message names, but those that a higher rank has written.
void write_named(StoredRows& stored, std::span<const int64_t> named, const std::byte* rows,
                 size_t row_bytes, core::FunctionRef<bool(int64_t)> may_write) {
  size_t first = 0;  // of a run of rows that are written
  for (size_t i = 0; i <= named.size(); ++i) {
    if (i < named.size() && may_write(named[i])) continue;
    stored.copy_in({.count = static_cast<int64_t>(i - first), .list = named.data() + first},
                   rows + first * row_bytes);
    first = i + 1;
  }
}

// Applies what one rank wrote to this rank's parts; applying false: only checks the message.
void apply_write(Collection& collection, comm::ConstBytes message, size_t source,
                 const char* operation, LastWriters* writers, bool applying) {
  ListReader reader(collection, message, source, operation);
  const Values values = values_in(collection, reader.header());
  const int32_t what = reader.header().what;
  for_each_named(collection.layout(), reader, RowsWay::kWrite, values, static_cast<int>(source),
                 [&](int32_t p, const Part& part, std::span<const int64_t> named) {
                   const size_t row_bytes = values.bytes(message_width(part, values));
                   const comm::ConstBytes rows = reader.take(named.size() * row_bytes);
                   if (!applying || named.empty()) return;
                   StoredRows stored(collection, p, values);
                   write_named(stored, named, rows.data(), row_bytes, [&](int64_t row) {
                     return writers == nullptr || writers->may_write(p, part, what, row, source);
                   });
                 });
  reader.expect_end();
}

// The answer to what every rank asks for.
void write_reply(Collection& collection, std::span<const comm::ConstBytes> requests,
                 const char* operation, Messages& reply, int64_t& blocks) {
  const Layout& layout = collection.layout();
  write_messages(reply, [&](MessageWriter& writer) {
    for (size_t r = 0; r < requests.size(); ++r) {
      ListReader reader(collection, requests[r], r, operation);
      blocks = std::max(blocks, reader.header().blocks);
      const Values values = values_in(collection, reader.header());
      for_each_named(layout, reader, RowsWay::kRead, values, static_cast<int>(r),
                     [&](int32_t p, const Part& part, std::span<const int64_t> named) {
                       const size_t row_bytes = values.bytes(message_width(part, values));
                       std::byte* const to = writer.room(named.size() * row_bytes);
                       if (to == nullptr || named.empty()) return;
                       StoredRows(collection, p, values).copy_out(numbers_of(named), to);
                     });
      reader.expect_end();
      writer.end_message(static_cast<int>(r));
    }
  });
}

}  // namespace

int64_t row_width(const Collection& collection, const RowList& list) {
  const int64_t width = row_width(collection, RowRange{list.table, list.what, 0, 0});
  const plan::Table& table = collection.model().tables[static_cast<size_t>(list.table)];
  for (int64_t at = 0; at < list.ids.size; ++at) {
    const int64_t id = list.id(at);
    if (id >= 0 && id < table.rows) continue;
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("ids[", at, "] is ", id, "; table \"", table.name,
                              "\" has rows 0 to ", table.rows - 1),
               {.position = at, .value = id, .limit = table.rows, .table = table.name});
  }
  return width;
}

void read_rows(Collection& collection, const RowList& list, const core::Matrix& out,
               size_t bytes_at_once) {
  constexpr const char* kName = "collection_read_rows";
  const Layout& layout = collection.layout();
  const int ranks = layout.ranks();
  collection.check_before(kName);
  collection.ordered().require_nothing_posted(kName);
  or_fail(collection, kName, [&] {
    const Values values = values_of(collection.model(), list.table, list.what);
    const Blocks mine(collection, list, out.cols, bytes_at_once);
    Targets targets(layout, list, values, RowsWay::kRead);
    Messages request(ranks);
    Messages reply(ranks);
    int64_t blocks = mine.count;
    for (int64_t block = 0; block < blocks; ++block) {
      collection.ordered().settle();
      targets.route(list, mine.begin(block), mine.end(block));
      const ListHeader header{list.table, list.what, mine.count,
                              mine.end(block) - mine.begin(block)};
      write_messages(request, [&](MessageWriter& writer) {
        for (int owner = 0; owner < ranks; ++owner) {
          writer.put(&header, sizeof header);
          if (header.ids != 0) {
            targets.for_each(owner, [&](const Part& part, std::span<const int64_t> positions) {
              put_ids(writer, list, part, positions);
            });
          }
          writer.end_message(owner);
        }
      });
      const auto requests = collection.ordered().exchange(ExchangeKind::kReadListRequest, kName, 0,
                                                          request.parts, request.buffer);
      write_reply(collection, requests, kName, reply, blocks);
      const auto replies = collection.ordered().exchange(ExchangeKind::kReadListReply, kName, 0,
                                                         reply.parts, reply.buffer);
      if (header.ids == 0) continue;
      for (int owner = 0; owner < ranks; ++owner) {
        comm::ConstBytes rest = replies[static_cast<size_t>(owner)];
        targets.for_each(owner, [&](const Part& part, std::span<const int64_t> positions) {
          const size_t bytes = positions.size() * values.bytes(message_width(part, values));
          if (rest.size() < bytes) throw_malformed(static_cast<size_t>(owner), kName);
          widen_rows(collection.backend(), part, values, rest.data(), numbers_of(positions), out);
          rest = rest.subspan(bytes);
        });
        if (!rest.empty()) throw_malformed(static_cast<size_t>(owner), kName);
      }
    }
    collection.ordered().settle();
  });
}

void write_rows(Collection& collection, const RowList& list, const core::Matrix& values_in_rows,
                size_t bytes_at_once) {
  constexpr const char* kName = "collection_write_rows";
  const Layout& layout = collection.layout();
  const int ranks = layout.ranks();
  collection.check_before(kName);
  collection.ordered().require_nothing_posted(kName);
  or_fail(collection, kName, [&] {
    const Values values = values_of(collection.model(), list.table, list.what);
    const Blocks mine(collection, list, values_in_rows.cols, bytes_at_once);
    Targets targets(layout, list, values, RowsWay::kWrite);
    Messages outgoing(ranks);
    LastWriters writers;
    int64_t blocks = mine.count;
    for (int64_t block = 0; block < blocks; ++block) {
      collection.ordered().settle();
      targets.route(list, mine.begin(block), mine.end(block));
      const ListHeader header{list.table, list.what, mine.count,
                              mine.end(block) - mine.begin(block)};
      write_messages(outgoing, [&](MessageWriter& writer) {
        for (int owner = 0; owner < ranks; ++owner) {
          writer.put(&header, sizeof header);
          if (header.ids != 0) {
            targets.for_each(owner, [&](const Part& part, std::span<const int64_t> positions) {
              put_ids(writer, list, part, positions);
              std::byte* const to =
                  writer.room(positions.size() * values.bytes(message_width(part, values)));
              if (to == nullptr) return;
              narrow_rows(collection.backend(), part, values, values_in_rows, numbers_of(positions),
                          to);
            });
          }
          writer.end_message(owner);
        }
      });
      const auto incoming = collection.ordered().exchange(ExchangeKind::kWriteList, kName, 0,
                                                          outgoing.parts, outgoing.buffer);
      // All messages are checked before the first one is applied.
      for (size_t source = 0; source < incoming.size(); ++source) {
        apply_write(collection, incoming[source], source, kName, nullptr, false);
        ListHeader theirs;
        std::memcpy(&theirs, incoming[source].data(), sizeof theirs);
        blocks = std::max(blocks, theirs.blocks);
      }
      collection.begin_rewrite();
      for (size_t source = 0; source < incoming.size(); ++source) {
        apply_write(collection, incoming[source], source, kName, blocks > 1 ? &writers : nullptr,
                    true);
      }
    }
    collection.ordered().settle();
    collection.end_rewrite();
  });
}

}  // namespace shardrec::embedding
