#include "checkpoint/read/load_tables.h"

#include <algorithm>

#include "core/error.h"

namespace shardrec::checkpoint {

namespace {

// A message of one byte says that its sender has failed; no part of a chunk is that small, for
// elements take two bytes at least.
constexpr std::byte kFailed[] = {std::byte{1}};

// Where a need begins in its chunk.
const std::byte* in_chunk(const std::byte* chunk_data, const Chunk& chunk,
                          const ManifestTensor& tensor, const Need& need) {
  const int64_t col = tensor.layout.by_row ? 0 : need.cells.col - tensor.cells.col;
  return chunk_data + (need.cells.row - chunk.row) * tensor.layout.row_bytes(tensor.cells.cols) +
         col * tensor.layout.element_bytes();
}

}  // namespace

int64_t TableLoader::bytes_to_read() const {
  int64_t total = 0;
  const auto add = [&](const Chunk& chunk) {
    if (chunk.reader == group_.rank) total += bytes_of_chunk(chunk);
  };
  for (const Chunk& chunk : plan_.own()) add(chunk);
  for (const std::vector<Chunk>& round : plan_.rounds()) {
    for (const Chunk& chunk : round) add(chunk);
  }
  return total;
}

void TableLoader::run(const comm::Operation& operation) {
  try {
    read_own();
  } catch (...) {
    failure_ = std::current_exception();
  }
  for (const std::vector<Chunk>& round : plan_.rounds()) {
    const bool telling = run_round(operation, round);
    const bool told = std::any_of(incoming_.begin(), incoming_.end(), [](comm::ConstBytes message) {
      return message.size() == std::size(kFailed);
    });
    if (told || telling) break;
  }
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

void TableLoader::read_own() {
  for (const Chunk& chunk : plan_.own()) {
    if (chunk.reader != group_.rank) continue;
    if (!read_in_place(chunk)) {
      const auto bytes = static_cast<size_t>(bytes_of_chunk(chunk));
      const auto data = read_chunk(chunk, buffer_.resize_as<std::byte>(bytes));
      plan_.needs_of(chunk, needs_);
      for (const Need& need : needs_) scatter(chunk, need, data.data(), false);
    }
    if (control_ != nullptr) control_->advance(bytes_of_chunk(chunk));
  }
}

// A chunk whose rows lie in the box as they do in the file, elements and all, needs no buffer.
bool TableLoader::read_in_place(const Chunk& chunk) {
  plan_.needs_of(chunk, needs_);
  const ManifestTensor& tensor = tensor_of(chunk);
  if (needs_.size() != 1 || needs_[0].cells.rows != chunk.rows ||
      needs_[0].cells.cols != tensor.cells.cols) {
    return false;
  }
  const BoxTensor& box = *boxes_[static_cast<size_t>(needs_[0].box)];
  if (box.backend != nullptr || !box.compact() || box.cells.cols != tensor.cells.cols ||
      box.layout.dtype != tensor.layout.dtype) {
    return false;
  }
  read_chunk(chunk, {box.at_row(chunk.row), static_cast<size_t>(bytes_of_chunk(chunk))});
  return true;
}

std::span<const std::byte> TableLoader::read_chunk(const Chunk& chunk, std::span<std::byte> into) {
  const ManifestTensor& tensor = tensor_of(chunk);
  files_.read(tensor.stored,
              (chunk.row - tensor.cells.row) * tensor.layout.row_bytes(tensor.cells.cols), into);
  files_.check_chunk(tensor, chunk.number, into);
  count_narrowed(chunk, into);
  return into;
}

// Each chunk is read by one rank: every number is counted once.
void TableLoader::count_narrowed(const Chunk& chunk, std::span<const std::byte> data) {
  const ManifestTensor& tensor = tensor_of(chunk);
  if (tensor.part != TablePart::kWeights) return;
  const int64_t row_bytes = tensor.layout.row_bytes(tensor.cells.cols);
  for (NarrowedTable& table : narrowed_) {
    if (table.collection != tensor.collection || table.table != tensor.table) continue;
    const int64_t rows = std::clamp<int64_t>(table.rows - chunk.row, 0, chunk.rows);
    table.saturated +=
        beyond_float16(data.first(static_cast<size_t>(rows * row_bytes)), tensor.layout.dtype);
  }
}

bool TableLoader::run_round(const comm::Operation& operation, const std::vector<Chunk>& round) {
  std::fill(outgoing_.begin(), outgoing_.end(), comm::ConstBytes{});
  if (failure_ == nullptr) {
    try {
      for (const Chunk& chunk : round) {
        if (chunk.reader == group_.rank) read_and_pack(chunk);
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  const bool telling = failure_ != nullptr;
  if (telling) {
    for (comm::ConstBytes& message : outgoing_) message = kFailed;
    outgoing_[static_cast<size_t>(group_.rank)] = {};
  }
  const comm::Ticket ticket = group_.channel.post(operation, outgoing_, nullptr);
  group_.channel.receive(ticket, incoming_);
  try {
    if (failure_ == nullptr) {
      for (const Chunk& chunk : round) {
        if (chunk.reader != group_.rank) {
          unpack(chunk, incoming_[static_cast<size_t>(chunk.reader)]);
        }
      }
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
  // Only sizes are looked at from here on.
  group_.channel.release(ticket);
  group_.channel.reclaim(ticket);
  return telling;
}

int64_t TableLoader::message_bytes(const Chunk& chunk, int rank) {
  plan_.needs_of(chunk, needs_);
  const ManifestTensor& tensor = tensor_of(chunk);
  int64_t bytes = 0;
  for (const Need& need : needs_) {
    if (need.rank == rank) bytes += need.cells.rows * tensor.layout.row_bytes(need.cells.cols);
  }
  return bytes;
}

void TableLoader::read_and_pack(const Chunk& chunk) {
  const ManifestTensor& tensor = tensor_of(chunk);
  const int64_t row_bytes = tensor.layout.row_bytes(tensor.cells.cols);
  const auto data =
      read_chunk(chunk, buffer_.resize_as<std::byte>(static_cast<size_t>(bytes_of_chunk(chunk))));
  if (control_ != nullptr) control_->advance(bytes_of_chunk(chunk));
  plan_.needs_of(chunk, needs_);
  // Ranks with a single need of the whole chunk are sent the chunk itself.
  const auto whole = [&](const Need& need) {
    return need.cells.rows == chunk.rows && need.cells.cols == tensor.cells.cols &&
           std::count_if(needs_.begin(), needs_.end(),
                         [&](const Need& other) { return other.rank == need.rank; }) == 1;
  };
  int64_t packed_bytes = 0;
  for (const Need& need : needs_) {
    if (need.rank != group_.rank && !whole(need)) {
      packed_bytes += need.cells.rows * tensor.layout.row_bytes(need.cells.cols);
    }
  }
  std::byte* packed = packed_.resize(static_cast<size_t>(packed_bytes));
  for (int rank = 0; rank < group_.size; ++rank) {
    const std::byte* begin = packed;
    for (const Need& need : needs_) {
      if (need.rank != rank) continue;
      if (rank == group_.rank) {
        scatter(chunk, need, data.data(), false);
      } else if (whole(need)) {
        outgoing_[static_cast<size_t>(rank)] = data;
      } else {
        const int64_t wanted = tensor.layout.row_bytes(need.cells.cols);
        copy_rows(in_chunk(data.data(), chunk, tensor, need), row_bytes, packed, wanted,
                  need.cells.rows, wanted);
        packed += need.cells.rows * wanted;
      }
    }
    if (packed != begin) {
      outgoing_[static_cast<size_t>(rank)] = {begin, static_cast<size_t>(packed - begin)};
    }
  }
}

void TableLoader::unpack(const Chunk& chunk, comm::ConstBytes message) {
  if (message.size() == std::size(kFailed)) return;  // all stop after this round
  if (std::ssize(message) != message_bytes(chunk, group_.rank)) {
    core::fail(SHARDREC_CORRUPT_DATA,
               core::sentence("rank ", chunk.reader, " sent a malformed part of a checkpoint"),
               {.rank = int64_t{chunk.reader}});
  }
  const ManifestTensor& tensor = tensor_of(chunk);
  const std::byte* at = message.data();
  for (const Need& need : needs_) {
    if (need.rank != group_.rank) continue;
    scatter(chunk, need, at, true);
    at += need.cells.rows * tensor.layout.row_bytes(need.cells.cols);
  }
}

void TableLoader::scatter(const Chunk& chunk, const Need& need, const std::byte* from,
                          bool from_message) {
  const ManifestTensor& tensor = tensor_of(chunk);
  const BoxTensor& box = *boxes_[static_cast<size_t>(need.box)];
  const std::byte* const first = from_message ? from : in_chunk(from, chunk, tensor, need);
  const int64_t stride =
      tensor.layout.row_bytes(from_message ? need.cells.cols : tensor.cells.cols);
  if (box.layout.dtype == tensor.layout.dtype) {
    write_cells(box, need.cells, first, stride);
  } else {
    converter_.write_cells(box, need.cells, first, stride, tensor.layout.dtype);
  }
}

}  // namespace shardrec::checkpoint
