#include "embedding/exchange/compression.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "embedding/exchange/wire.h"

namespace shardrec::embedding {
namespace {

// Floats that a task converts, about.
constexpr int64_t kTaskFloats = 32 << 10;

constexpr size_t kScaleBytes = sizeof(compute::RowScale);
static_assert(kScaleBytes == 2 * sizeof(float));

compute::Element element_of_compression(shardrec_compression compression) {
  switch (compression) {
    case SHARDREC_COMPRESSION_FLOAT16:
      return compute::Element::kFloat16;
    case SHARDREC_COMPRESSION_BFLOAT16:
      return compute::Element::kBfloat16;
    default:
      return compute::Element::kFloat32;
  }
}

const float* floats_at(const std::byte* at) {
  return static_cast<const float*>(static_cast<const void*>(at));
}
float* floats_at(std::byte* at) { return static_cast<float*>(static_cast<void*>(at)); }

}  // namespace

WireCodec::WireCodec(const Layout& layout, shardrec_compression compression)
    : layout_(layout),
      element_(element_of_compression(compression)),
      encoded_(static_cast<size_t>(layout.ranks())),
      decoded_(static_cast<size_t>(layout.ranks())),
      first_byte_(static_cast<size_t>(layout.ranks()) + 1) {
  size_t sent = 0;
  for (int rank = 0; rank < layout.ranks(); ++rank) sent += layout.blocks_of(rank).size();
  const size_t received =
      static_cast<size_t>(layout.ranks()) * layout.blocks_of(layout.rank()).size();
  // Gradient messages may have their blocks twice.
  runs_.reserve(2 * std::max(sent, received));
  tasks_.reserve(runs_.capacity());
}

size_t WireCodec::coded_bytes(int64_t rows, const Part& part) const {
  const auto count = static_cast<size_t>(rows);
  const auto width = static_cast<size_t>(part.width);
  const size_t row = element_ == compute::Element::kFloat32
                         ? part.columns.size() * kScaleBytes + width
                         : width * compute::element_bytes(element_);
  return align_up(count * row, 64);
}

int64_t WireCodec::rows_per_task(const Part& part) const {
  return std::max<int64_t>(1, kTaskFloats / part.width);
}

void WireCodec::begin(Way way) {
  way_ = way;
  to_ = 0;
  runs_.clear();
  tasks_.clear();
}

void WireCodec::begin_message(int peer, size_t header) {
  peer_ = peer;
  header_ = header;
  first_byte_[static_cast<size_t>(peer)] = to_;
  from_ = header;
  to_ += header;
}

void WireCodec::add(int64_t rows, const Part& part) {
  const size_t floats = rows_bytes(rows, part.width);
  const size_t coded = coded_bytes(rows, part);
  runs_.push_back({.part = &part, .rows = rows, .peer = peer_, .from = from_, .to = to_});
  const int64_t per_task = rows_per_task(part);
  tasks_.add((rows + per_task - 1) / per_task);
  from_ += way_ == Way::kEncode ? floats : coded;
  to_ += way_ == Way::kEncode ? coded : floats;
}

void WireCodec::end_message(comm::ConstBytes message, const char* what, const char* operation) {
  first_byte_[static_cast<size_t>(peer_) + 1] = to_;
  if (from_ == message.size()) return;
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("rank ", peer_, " sent ", what, " message of ", message.size(),
                            " bytes, ", from_, " were expected"),
             {.rank = int64_t{peer_}, .operation = operation});
}

std::span<const comm::ConstBytes> WireCodec::encode_outputs(
    const Inbox& inbox, std::span<const comm::ConstBytes> messages, const StepContext& context) {
  const auto blocks = layout_.blocks_of(layout_.rank());
  begin(Way::kEncode);
  for (int source = 0; source < layout_.ranks(); ++source) {
    const auto received = inbox.blocks(source);
    begin_message(source, 0);
    for (size_t b = 0; b < blocks.size(); ++b) {
      const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
      if (layout_.answers(part, source)) add(received[b].answers(blocks[b].sequence), part);
    }
    end_message(messages[static_cast<size_t>(source)], "an output", "forward");
  }
  return convert(messages, context, *buffer_);
}

std::span<const comm::ConstBytes> WireCodec::decode_outputs(
    const RoutedBatch& routed, std::span<const comm::ConstBytes> messages,
    const StepContext& context, core::Scratch& memory) {
  begin(Way::kDecode);
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    const auto blocks = layout_.blocks_of(owner);
    const auto sent = routed.blocks(owner);
    begin_message(owner, 0);
    for (size_t b = 0; b < blocks.size(); ++b) {
      const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
      if (layout_.answers(part, layout_.rank())) add(sent[b].answers(blocks[b].sequence), part);
    }
    end_message(messages[static_cast<size_t>(owner)], "an output", "forward");
  }
  return convert(messages, context, memory);
}

// The blocks of a gradient message, and the pooled ones once more where its header says so.
template <class RowsOf>
void WireCodec::add_gradients(comm::ConstBytes message, std::span<const Block> blocks,
                              RowsOf rows_of) {
  GradientHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  for (size_t b = 0; b < blocks.size(); ++b) {
    add(rows_of(b), layout_.parts()[static_cast<size_t>(blocks[b].part)]);
  }
  for (size_t b = 0; header.unscaled != 0 && b < blocks.size(); ++b) {
    if (blocks[b].sequence) continue;
    add(rows_of(b), layout_.parts()[static_cast<size_t>(blocks[b].part)]);
  }
}

std::span<const comm::ConstBytes> WireCodec::encode_gradients(
    const RoutedBatch& routed, std::span<const comm::ConstBytes> messages,
    const StepContext& context) {
  begin(Way::kEncode);
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    const comm::ConstBytes message = messages[static_cast<size_t>(owner)];
    const auto sent = routed.blocks(owner);
    begin_message(owner, sizeof(GradientHeader));
    add_gradients(message, layout_.blocks_of(owner), [&](size_t b) { return sent[b].rows; });
    end_message(message, "a gradient", "backward");
  }
  return convert(messages, context, *buffer_);
}

std::span<const comm::ConstBytes> WireCodec::decode_gradients(
    const Inbox& inbox, std::span<const comm::ConstBytes> messages, const StepContext& context,
    core::Scratch& memory) {
  begin(Way::kDecode);
  for (int source = 0; source < layout_.ranks(); ++source) {
    const comm::ConstBytes message = messages[static_cast<size_t>(source)];
    const auto received = inbox.blocks(source);
    begin_message(source, sizeof(GradientHeader));
    add_gradients(message, layout_.blocks_of(layout_.rank()),
                  [&](size_t b) { return received[b].rows; });
    end_message(message, "a gradient", "backward");
  }
  return convert(messages, context, memory);
}

std::span<const comm::ConstBytes> WireCodec::convert(std::span<const comm::ConstBytes> messages,
                                                     const StepContext& context,
                                                     core::Scratch& memory) {
  std::byte* out = memory.resize(to_);
  std::vector<comm::ConstBytes>& results = way_ == Way::kEncode ? encoded_ : decoded_;
  for (size_t m = 0; m < messages.size(); ++m) {
    if (header_ != 0) std::memcpy(out + first_byte_[m], messages[m].data(), header_);
    results[m] = {out + first_byte_[m], out + first_byte_[m + 1]};
  }
  context.threads.parallel_for(tasks_.count(), 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const auto place = tasks_.find(task);
      const Run& run = runs_[place.group];
      const int64_t per_task = rows_per_task(*run.part);
      const int64_t row = place.task * per_task;
      convert_rows(run, messages[static_cast<size_t>(run.peer)].data() + run.from, out + run.to,
                   row, std::min(row + per_task, run.rows), context.kernels);
    }
  });
  return results;
}

void WireCodec::convert_rows(const Run& run, const std::byte* from, std::byte* to, int64_t first,
                             int64_t last, const compute::Kernels& kernels) const {
  const int64_t width = run.part->width;
  const auto skipped = static_cast<size_t>(first * width);
  if (element_ != compute::Element::kFloat32) {
    const size_t skipped_bytes = skipped * compute::element_bytes(element_);
    const int64_t count = (last - first) * width;
    if (way_ == Way::kEncode) {
      kernels.narrow(floats_at(from) + skipped, element_, to + skipped_bytes, count);
    } else {
      kernels.widen(from + skipped_bytes, element_, floats_at(to) + skipped, count);
    }
    return;
  }
  const std::vector<ColumnPiece>& boxes = run.part->columns;
  const size_t scale_bytes = boxes.size() * kScaleBytes;
  const size_t codes = static_cast<size_t>(run.rows) * scale_bytes;  // behind all scales
  for (int64_t row = first; row < last; ++row) {
    for (size_t b = 0; b < boxes.size(); ++b) {
      const size_t scale_at = static_cast<size_t>(row) * scale_bytes + b * kScaleBytes;
      const auto column = static_cast<size_t>(row * width + boxes[b].offset);
      if (way_ == Way::kEncode) {
        auto* bytes = static_cast<uint8_t*>(static_cast<void*>(to + codes + column));
        const compute::RowScale scale =
            kernels.quantize(floats_at(from) + column, bytes, boxes[b].cols);
        std::memcpy(to + scale_at, &scale, sizeof scale);
      } else {
        compute::RowScale scale;
        std::memcpy(&scale, from + scale_at, sizeof scale);
        const auto* bytes =
            static_cast<const uint8_t*>(static_cast<const void*>(from + codes)) + column;
        kernels.dequantize(bytes, scale, floats_at(to) + column, boxes[b].cols);
      }
    }
  }
}

}  // namespace shardrec::embedding
