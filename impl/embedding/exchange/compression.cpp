#include "embedding/exchange/compression.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/memory.h"
#include "embedding/exchange/wire.h"

namespace shardrec::embedding {
namespace {

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

}  // namespace

WireCodec::WireCodec(const Layout& layout, shardrec_compression compression,
                     comm::BodyCarrier& bodies, std::atomic<int64_t>& saturated)
    : layout_(layout),
      element_(element_of_compression(compression)),
      buffer_(bodies.make_buffer()),
      saturated_(saturated),
      encoded_(static_cast<size_t>(layout.ranks())),
      decoded_(static_cast<size_t>(layout.ranks())),
      first_byte_(static_cast<size_t>(layout.ranks()) + 1) {
  boxes_.resize(layout.parts().size());
  for (size_t p = 0; p < boxes_.size() && element_ == compute::Element::kFloat32; ++p) {
    for (const ColumnPiece& box : layout.parts()[p].columns) {
      boxes_[p].push_back({box.offset, box.offset + box.cols});
    }
  }
}

size_t WireCodec::coded_bytes(int64_t rows, const Part& part) const {
  const auto count = static_cast<size_t>(rows);
  const auto width = static_cast<size_t>(part.width);
  const size_t row = element_ == compute::Element::kFloat32
                         ? part.columns.size() * sizeof(compute::RowScale) + width
                         : width * compute::element_bytes(element_);
  return align_up(count * row, 64);
}

void WireCodec::begin(Way way) {
  way_ = way;
  to_ = 0;
  runs_.clear();
}

void WireCodec::begin_message(int peer, size_t head) {
  peer_ = peer;
  head_ = head;
  first_byte_[static_cast<size_t>(peer)] = to_;
  from_ = 0;
  to_ += head;
}

void WireCodec::add(int64_t rows, const Block& block) {
  if (rows == 0) return;
  const Part& part = layout_.parts()[static_cast<size_t>(block.part)];
  const size_t floats = rows_bytes(rows, part.width);
  const size_t coded = coded_bytes(rows, part);
  runs_.push_back({.part = block.part, .rows = rows, .peer = peer_, .from = from_, .to = to_});
  from_ += way_ == Way::kEncode ? floats : coded;
  to_ += way_ == Way::kEncode ? coded : floats;
}

void WireCodec::end_message(comm::ConstBytes body, const char* what, const char* operation) {
  first_byte_[static_cast<size_t>(peer_) + 1] = to_;
  if (from_ == body.size()) return;
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("rank ", peer_, " sent ", what, " of ", body.size(), " bytes, ", from_,
                            " were expected"),
             {.rank = int64_t{peer_}, .operation = operation});
}

std::span<const comm::ConstBytes> WireCodec::encode_outputs(
    const Inbox& inbox, std::span<const comm::ConstBytes> bodies, compute::Backend& backend) {
  const auto blocks = layout_.blocks_of(layout_.rank());
  begin(Way::kEncode);
  for (int source = 0; source < layout_.ranks(); ++source) {
    const auto received = inbox.blocks(source);
    begin_message(source, 0);
    for (size_t b = 0; b < blocks.size(); ++b) {
      const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
      if (layout_.answers(part, source)) add(received[b].answers(blocks[b].sequence), blocks[b]);
    }
    end_message(bodies[static_cast<size_t>(source)], "outputs", "forward");
  }
  return encoded(convert(bodies, backend, *buffer_));
}

std::span<const comm::ConstBytes> WireCodec::decode_outputs(
    const RoutedBatch& routed, std::span<const comm::ConstBytes> bodies, compute::Backend& backend,
    comm::MessageBuffer& memory) {
  begin(Way::kDecode);
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    const auto blocks = layout_.blocks_of(owner);
    const auto sent = routed.blocks(owner);
    begin_message(owner, 0);
    for (size_t b = 0; b < blocks.size(); ++b) {
      const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
      if (layout_.answers(part, layout_.rank()))
        add(sent[b].answers(blocks[b].sequence), blocks[b]);
    }
    end_message(bodies[static_cast<size_t>(owner)], "outputs", "forward");
  }
  return decoded(convert(bodies, backend, memory));
}

// The blocks of a gradient message, and the pooled ones once more where its header says so.
template <class RowsOf>
void WireCodec::add_gradients(comm::ConstBytes message, std::span<const Block> blocks,
                              RowsOf rows_of) {
  GradientHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  const auto updated = [&](size_t b) {
    return layout_.updates(layout_.parts()[static_cast<size_t>(blocks[b].part)]);
  };
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (updated(b)) add(rows_of(b), blocks[b]);
  }
  for (size_t b = 0; header.unscaled != 0 && b < blocks.size(); ++b) {
    if (!blocks[b].sequence && updated(b)) add(rows_of(b), blocks[b]);
  }
}

std::span<const comm::ConstBytes> WireCodec::encode_gradients(
    const RoutedBatch& routed, std::span<const comm::ConstBytes> messages,
    std::span<const comm::ConstBytes> bodies, compute::Backend& backend) {
  begin(Way::kEncode);
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    const auto sent = routed.blocks(owner);
    begin_message(owner, sizeof(GradientHeader));
    add_gradients(messages[static_cast<size_t>(owner)], layout_.blocks_of(owner),
                  [&](size_t b) { return sent[b].rows; });
    end_message(bodies[static_cast<size_t>(owner)], "gradients", "backward");
  }
  std::byte* first = convert(bodies, backend, *buffer_);
  for (size_t m = 0; m < messages.size(); ++m) {
    std::memcpy(buffer_->host(first + first_byte_[m]), messages[m].data(), head_);
  }
  return encoded(first);
}

std::span<const comm::ConstBytes> WireCodec::decode_gradients(
    const Inbox& inbox, std::span<const comm::ConstBytes> messages,
    std::span<const comm::ConstBytes> bodies, compute::Backend& backend,
    comm::MessageBuffer& memory) {
  begin(Way::kDecode);
  for (int source = 0; source < layout_.ranks(); ++source) {
    const auto received = inbox.blocks(source);
    begin_message(source, 0);
    add_gradients(messages[static_cast<size_t>(source)], layout_.blocks_of(layout_.rank()),
                  [&](size_t b) { return received[b].rows; });
    end_message(bodies[static_cast<size_t>(source)], "gradients", "backward");
  }
  return decoded(convert(bodies, backend, memory));
}

std::byte* WireCodec::convert(std::span<const comm::ConstBytes> bodies, compute::Backend& backend,
                              comm::MessageBuffer& memory) {
  std::byte* out = memory.resize(to_);
  encodings_.clear();
  decodings_.clear();
  if (way_ == Way::kEncode) {
    core::reserve_with_slack(encodings_, runs_.size());
  } else {
    core::reserve_with_slack(decodings_, runs_.size());
  }
  for (const Run& run : runs_) {
    const std::byte* from = bodies[static_cast<size_t>(run.peer)].data() + run.from;
    std::byte* to = out + run.to;
    if (way_ == Way::kEncode) {
      encodings_.push_back({coding_of(run),
                            static_cast<const float*>(static_cast<const void*>(from)), to,
                            &saturated_});
    } else {
      decodings_.push_back({coding_of(run), from, static_cast<float*>(static_cast<void*>(to))});
    }
  }
  backend.transfer().encode_rows(encodings_);
  backend.transfer().decode_rows(decodings_);
  return out;
}

std::span<const comm::ConstBytes> WireCodec::encoded(std::byte* first) {
  for (size_t m = 0; m < encoded_.size(); ++m) {
    const std::byte* begin = first + first_byte_[m];
    const std::byte* end = first + first_byte_[m + 1];
    encoded_[m] = buffer_->host(begin, end);
    buffer_->publish(begin + head_, end);
  }
  return encoded_;
}

std::span<const comm::ConstBytes> WireCodec::decoded(const std::byte* first) {
  for (size_t m = 0; m < decoded_.size(); ++m) {
    decoded_[m] = {first + first_byte_[m], first + first_byte_[m + 1]};
  }
  return decoded_;
}

compute::RowCoding WireCodec::coding_of(const Run& run) const {
  const auto part = static_cast<size_t>(run.part);
  return {.rows = run.rows,
          .width = layout_.parts()[part].width,
          .element = element_,
          .boxes = boxes_[part]};
}

std::unique_ptr<WireCodec> make_codec(const Layout& layout, shardrec_compression compression,
                                      comm::BodyCarrier& bodies, std::atomic<int64_t>& saturated) {
  if (compression == SHARDREC_COMPRESSION_NONE) return nullptr;
  return std::make_unique<WireCodec>(layout, compression, bodies, saturated);
}

}  // namespace shardrec::embedding
