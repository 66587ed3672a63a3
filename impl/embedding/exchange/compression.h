// The output and gradient exchanges in fewer bytes: what a rank packed as floats is encoded just
// before it is sent, and what arrives becomes floats again before anybody reads it. All else of a
// step knows floats only.
//
// Every block is coded, also those that a rank sends to itself, so that the numbers say nothing of
// who owns a box: with 16 bits they depend on the option only, with 8 bits on the boxes too, a row
// of a box being what has one scale.
//
// A block of `rows` rows in a message (wire.h), beginning and ending at a multiple of 64 bytes:
//   FLOAT16, BFLOAT16   [rows, width], rounded to nearest even; of FLOAT16, finite numbers saturate
//   INT8                (scale, offset) [rows, boxes] in floats, then [rows, width] bytes, as
//                       compute::Kernels::quantize says
// Headers stay as they are.
//
// Thread rule: one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/bodies/carrier.h"
#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/transfer_operations.h"
#include "embedding/exchange/inbox.h"
#include "embedding/exchange/route.h"
#include "embedding/tables/layout.h"
#include "shardrec/options.h"

namespace shardrec::embedding {

class WireCodec {
 public:
  // compression: not NONE. saturated: grows by the numbers that were beyond fp16's range; outlives this.
  WireCodec(const Layout& layout, shardrec_compression compression, comm::BodyCarrier& bodies,
            std::atomic<int64_t>& saturated);

  // The messages of PartialSums, none of whose blocks is direct, as they travel. bodies: the floats,
  // by rank.
  std::span<const comm::ConstBytes> encode_outputs(const Inbox& inbox,
                                                   std::span<const comm::ConstBytes> bodies,
                                                   compute::Backend& backend);
  // The floats that PartialSums of the owners wrote, by rank, in `memory`. Throws CORRUPT_DATA when a
  // body is not as long as the batch needs.
  std::span<const comm::ConstBytes> decode_outputs(const RoutedBatch& routed,
                                                   std::span<const comm::ConstBytes> bodies,
                                                   compute::Backend& backend,
                                                   comm::MessageBuffer& memory);

  // The same for what GradientPacking wrote, in a step that all ranks apply; no gradient is lent.
  // messages: their heads are read.
  std::span<const comm::ConstBytes> encode_gradients(const RoutedBatch& routed,
                                                     std::span<const comm::ConstBytes> messages,
                                                     std::span<const comm::ConstBytes> bodies,
                                                     compute::Backend& backend);
  std::span<const comm::ConstBytes> decode_gradients(const Inbox& inbox,
                                                     std::span<const comm::ConstBytes> messages,
                                                     std::span<const comm::ConstBytes> bodies,
                                                     compute::Backend& backend,
                                                     comm::MessageBuffer& memory);

  // Keeps what was encoded alive; it is written again by the next encoding.
  std::shared_ptr<const void> keep_alive() const { return buffer_->keep_alive(); }

 private:
  enum class Way : uint8_t { kEncode, kDecode };
  // A block on its way; offsets are of the body in `from`, of all messages in the result.
  struct Run {
    int32_t part = 0;
    int64_t rows = 0;
    int peer = 0;
    size_t from = 0;
    size_t to = 0;
  };

  size_t coded_bytes(int64_t rows, const Part& part) const;
  void begin(Way way);
  void begin_message(int peer, size_t head);
  void add(int64_t rows, const Block& block);
  template <class RowsOf>
  void add_gradients(comm::ConstBytes message, std::span<const Block> blocks, RowsOf rows_of);
  void end_message(comm::ConstBytes body, const char* what, const char* operation);
  // Converts the blocks of the bodies into `memory`; returns where it begins.
  std::byte* convert(std::span<const comm::ConstBytes> bodies, compute::Backend& backend,
                     comm::MessageBuffer& memory);
  // The messages to all ranks are in buffer_ but for their heads.
  std::span<const comm::ConstBytes> encoded(std::byte* first);
  std::span<const comm::ConstBytes> decoded(const std::byte* first);
  compute::RowCoding coding_of(const Run& run) const;

  const Layout& layout_;
  compute::Element element_ = compute::Element::kFloat32;  // kFloat32: 8 bits
  std::vector<std::vector<compute::ColumnRange>> boxes_;   // by part; none with 16 bits
  std::unique_ptr<comm::MessageBuffer> buffer_;
  std::atomic<int64_t>& saturated_;
  std::vector<comm::ConstBytes> encoded_;
  std::vector<comm::ConstBytes> decoded_;
  // Of the messages that are being converted.
  Way way_ = Way::kEncode;
  int peer_ = 0;
  size_t from_ = 0;
  size_t to_ = 0;
  std::vector<Run> runs_;
  std::vector<compute::RowEncoding> encodings_;  // by run
  std::vector<compute::RowDecoding> decodings_;
  std::vector<size_t> first_byte_;  // of each message in the result
  size_t head_ = 0;                 // bytes of each
};

// Null: compression is NONE, what is exchanged is what was packed.
std::unique_ptr<WireCodec> make_codec(const Layout& layout, shardrec_compression compression,
                                      comm::BodyCarrier& bodies, std::atomic<int64_t>& saturated);

}  // namespace shardrec::embedding
