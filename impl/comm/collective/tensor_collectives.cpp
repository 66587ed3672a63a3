#include "comm/collective/tensor_collectives.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "comm/collective/agree.h"
#include "comm/collective/received.h"
#include "comm/collective/reduce.h"
#include "core/error.h"

namespace shardrec::comm {
namespace {

using core::RowTensor;
using core::sentence;

// What must be equal on all ranks beside the number of elements.
uint64_t detail_of(int argument, int32_t dtype) {
  return uint64_t{static_cast<uint32_t>(argument)} << 32 | static_cast<uint32_t>(dtype);
}

void set_detail(Operation& operation, const RowTensor& tensor, int argument) {
  operation.detail = detail_of(argument, tensor.dtype);
  operation.size = static_cast<uint64_t>(tensor.size());
}

// The elements of a tensor, one after the other, in memory that the next call may send.
ConstBytes staged(Collectives& collectives, const RowTensor& tensor) {
  const std::span<std::byte> copy = collectives.stage(tensor.bytes(tensor.size()));
  tensor.copy_out(0, tensor.size(), copy.data());
  return copy;
}

template <class T>
void reduce(Reduction reduction, std::span<const ConstBytes> received, const RowTensor& out) {
  const auto count = static_cast<size_t>(out.size());
  if (out.compact()) {
    T* data = static_cast<T*>(static_cast<void*>(out.data));
    return reduce_ranks<T>(reduction, received, {data, count});
  }
  std::vector<T> compact(count);
  reduce_ranks<T>(reduction, received, std::span<T>(compact));
  out.copy_in(0, out.size(), std::as_bytes(std::span(compact)).data());
}

// What a rank tells another one of the rows between them.
struct Note {
  int64_t sent = 0;      // to the other
  int64_t expected = 0;  // of the other
  int64_t columns = 0;
  int64_t dtype = 0;
};

// In front of the rows of each message: what the sender makes of the notes.
struct Finding {
  enum class Defect : int32_t { kNone, kDtype, kColumns, kRows };
  Defect defect = Defect::kNone;
  int32_t peer = 0;  // whose note it is about
  int64_t theirs = 0;
  int64_t mine = 0;
};

Finding compare(const Note& mine, const Note& theirs, size_t peer) {
  const auto number = static_cast<int32_t>(peer);
  using Defect = Finding::Defect;
  if (theirs.dtype != mine.dtype) return {Defect::kDtype, number, theirs.dtype, mine.dtype};
  if (theirs.columns != mine.columns) {
    return {Defect::kColumns, number, theirs.columns, mine.columns};
  }
  if (theirs.sent != mine.expected) return {Defect::kRows, number, theirs.sent, mine.expected};
  return {};
}

[[noreturn]] void throw_finding(const Operation& operation, const Finding& found, size_t finder) {
  std::string text;
  switch (found.defect) {
    case Finding::Defect::kDtype:
      text =
          sentence("rank ", found.peer, " brings ",
                   core::dtype_name(static_cast<int32_t>(found.theirs)), " to \"", operation.name,
                   "\" and rank ", finder, " ", core::dtype_name(static_cast<int32_t>(found.mine)),
                   ": the dtype must be the same on all ranks");
      break;
    case Finding::Defect::kColumns:
      text = sentence("rank ", found.peer, " brings rows of ", found.theirs, " elements to \"",
                      operation.name, "\" and rank ", finder, " rows of ", found.mine,
                      ": their length must be the same on all ranks");
      break;
    default:
      text = sentence("rank ", found.peer, " has ", found.theirs, " rows for rank ", finder,
                      " in \"", operation.name, "\", which expects ", found.mine, " of it");
  }
  throw AgreedError(SHARDREC_DISAGREEMENT, std::move(text),
                    {.rank = int64_t{found.peer},
                     .value = found.theirs,
                     .limit = found.mine,
                     .operation = operation.name});
}

// Tells each rank of the rows to and from it; returns the first thing that does not fit.
Finding exchange_notes(Collectives& collectives, const Operation& operation,
                       std::span<const Note> notes) {
  const std::span<std::byte> memory = collectives.stage(notes.size_bytes());
  std::memcpy(memory.data(), notes.data(), notes.size_bytes());
  std::vector<ConstBytes> send(notes.size());
  for (size_t r = 0; r < send.size(); ++r) {
    send[r] = memory.subspan(r * sizeof(Note), sizeof(Note));
  }
  const auto received = collectives.all_to_all(operation, send);
  Finding found;
  for (size_t r = 0; r < received.size(); ++r) {
    require_size(operation, r, received[r], sizeof(Note));
    Note theirs;
    std::memcpy(&theirs, received[r].data(), sizeof theirs);
    if (found.defect == Finding::Defect::kNone) found = compare(notes[r], theirs, r);
  }
  return found;
}

}  // namespace

void all_reduce(Collectives& collectives, Operation operation, Reduction reduction,
                const core::FlatView& tensor) {
  operation.detail = detail_of(static_cast<int>(reduction), tensor.dtype);
  switch (tensor.dtype) {
    case SHARDREC_FLOAT32:
      return collectives.all_reduce(operation, reduction, tensor.as<float>());
    case SHARDREC_FLOAT64:
      return collectives.all_reduce(operation, reduction, tensor.as<double>());
    case SHARDREC_INT32:
      return collectives.all_reduce(operation, reduction, tensor.as<int32_t>());
    default:
      return collectives.all_reduce(operation, reduction, tensor.as<int64_t>());
  }
}

void broadcast(Collectives& collectives, Operation operation, int root, const RowTensor& tensor) {
  set_detail(operation, tensor, root);
  const auto from = static_cast<size_t>(root);
  const auto ranks = static_cast<size_t>(collectives.size());
  std::vector<ConstBytes> send(ranks);
  const bool receives = collectives.rank() != root;
  if (!receives && ranks > 1) {
    std::fill(send.begin(), send.end(), staged(collectives, tensor));
    send[from] = {};
  }
  const auto received = collectives.all_to_all(operation, send);
  if (!receives) return;
  require_size(operation, from, received[from], tensor.bytes(tensor.size()));
  tensor.copy_in(0, tensor.size(), received[from].data());
}

void all_gather(Collectives& collectives, Operation operation, const RowTensor& tensor,
                const RowTensor& out) {
  set_detail(operation, tensor, 0);
  const auto ranks = static_cast<size_t>(collectives.size());
  const std::vector<ConstBytes> send(ranks, staged(collectives, tensor));
  const auto received = collectives.all_to_all(operation, send);
  const int64_t each = tensor.size();
  for (size_t r = 0; r < ranks; ++r) require_size(operation, r, received[r], tensor.bytes(each));
  for (size_t r = 0; r < ranks; ++r) {
    out.copy_in(static_cast<int64_t>(r) * each, each, received[r].data());
  }
}

void reduce_scatter(Collectives& collectives, Operation operation, Reduction reduction,
                    const RowTensor& tensor, const RowTensor& out) {
  set_detail(operation, tensor, static_cast<int>(reduction));
  const auto ranks = static_cast<size_t>(collectives.size());
  const size_t part = out.bytes(out.size());
  const ConstBytes all = staged(collectives, tensor);
  std::vector<ConstBytes> send(ranks);
  for (size_t r = 0; r < ranks; ++r) send[r] = all.subspan(r * part, part);
  const auto received = collectives.all_to_all(operation, send);
  for (size_t r = 0; r < ranks; ++r) require_size(operation, r, received[r], part);
  if (part == 0) return;
  switch (tensor.dtype) {
    case SHARDREC_FLOAT32:
      return reduce<float>(reduction, received, out);
    case SHARDREC_FLOAT64:
      return reduce<double>(reduction, received, out);
    case SHARDREC_INT32:
      return reduce<int32_t>(reduction, received, out);
    default:
      return reduce<int64_t>(reduction, received, out);
  }
}

void all_to_all(Collectives& collectives, const Operation& operation, const RowTensor& tensor,
                std::span<const int64_t> send_rows, const RowTensor& out,
                std::span<const int64_t> receive_rows) {
  const auto ranks = static_cast<size_t>(collectives.size());
  std::vector<Note> notes(ranks);
  for (size_t r = 0; r < ranks; ++r) {
    notes[r] = {send_rows[r], receive_rows[r], tensor.columns, tensor.dtype};
  }
  const Finding mine = exchange_notes(collectives, operation, notes);

  // A rank whose peers' notes do not fit sends its finding alone; the others learn of it before
  // they write.
  const bool good = mine.defect == Finding::Defect::kNone;
  const int64_t sent = good ? tensor.size() : 0;
  const std::span<std::byte> memory =
      collectives.stage(ranks * sizeof(Finding) + tensor.bytes(sent));
  std::vector<ConstBytes> send(ranks);
  size_t at = 0;
  int64_t row = 0;
  for (size_t r = 0; r < ranks; ++r) {
    const size_t begin = at;
    std::memcpy(memory.data() + at, &mine, sizeof mine);
    at += sizeof mine;
    if (good) {
      const int64_t count = send_rows[r] * tensor.columns;
      tensor.copy_out(row * tensor.columns, count, memory.data() + at);
      at += tensor.bytes(count);
      row += send_rows[r];
    }
    send[r] = memory.subspan(begin, at - begin);
  }
  const auto received = collectives.all_to_all(operation, send);
  for (size_t r = 0; r < ranks; ++r) {
    Finding theirs;
    if (received[r].size() < sizeof theirs) require_size(operation, r, received[r], sizeof theirs);
    std::memcpy(&theirs, received[r].data(), sizeof theirs);
    if (theirs.defect != Finding::Defect::kNone) throw_finding(operation, theirs, r);
  }
  for (size_t r = 0; r < ranks; ++r) {
    require_size(operation, r, received[r],
                 sizeof(Finding) + out.bytes(receive_rows[r] * out.columns));
  }
  row = 0;
  for (size_t r = 0; r < ranks; ++r) {
    out.copy_in(row * out.columns, receive_rows[r] * out.columns,
                received[r].data() + sizeof(Finding));
    row += receive_rows[r];
  }
}

}  // namespace shardrec::comm
