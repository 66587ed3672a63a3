#include "dense/ddp/exchange.h"

#include <utility>

#include "core/tensor.h"

namespace shardrec::dense {
namespace {

// Up to so many bytes from each rank to all others together, one exchange is quicker than two.
constexpr size_t kDirectBytes = size_t{256} << 10;
constexpr size_t kLine = 64;

comm::Operation parts_of(uint64_t bucket, int64_t elements) {
  return {
      .name = "ddp: bucket", .kind = 3, .detail = bucket, .size = static_cast<uint64_t>(elements)};
}

comm::Operation sums_of(uint64_t bucket, int64_t elements) {
  return {.name = "ddp: sums of a bucket",
          .kind = 4,
          .detail = bucket,
          .size = static_cast<uint64_t>(elements)};
}

}  // namespace

BucketExchange::BucketExchange(const ExchangeShape& shape, BucketChannels& channels,
                               uint64_t number, int64_t elements,
                               std::vector<BucketParameter> parameters)
    : shape_(shape),
      number_(number),
      gradients_(shape.dtype, std::move(parameters)),
      format_(shape.wire, gradients_.parameters(), shape.asks_who_used),
      ranges_{.count = elements,
              .ranks = shape.ranks,
              .grain = comm::line_grain(core::dtype_size(shape.wire))},
      direct_(shape.ranks <= 2 || !shape.carries_gradients ||
              format_.wire_bytes(elements) * static_cast<size_t>(shape.ranks - 1) <= kDirectBytes),
      reduce_scatter_(channels.parts, shape.ranks),
      all_gather_(channels.sums, shape.ranks),
      send_(static_cast<size_t>(shape.ranks)),
      inputs_(static_cast<size_t>(shape.ranks)),
      written_(gradients_.parameters(), 1) {
  outgoing_->resize(direct_ ? message_stride()
                            : static_cast<size_t>(shape_.ranks) * message_stride());
  if (!direct_) own_sums_->resize(format_.wire_bytes(part_of(shape_.rank).count));
}

comm::OwnedRange BucketExchange::part_of(int rank) const noexcept {
  if (!direct_) return ranges_.of(rank);
  return {.begin = 0, .count = shape_.carries_gradients ? ranges_.count : 0};
}

size_t BucketExchange::message_stride() const noexcept {
  const size_t data = format_.wire_bytes(part_of(0).count);  // no rank has a longer part
  return format_.bytes_before() + (data + kLine - 1) / kLine * kLine;
}

size_t BucketExchange::bytes_per_peer() const noexcept {
  const size_t parts = format_.bytes_before() + format_.wire_bytes(part_of(0).count);
  return direct_ ? parts : parts + format_.wire_bytes(part_of(shape_.rank).count);
}

void BucketExchange::post(const BucketHead& given, std::span<const char> used) {
  reduce_scatter_.reclaim();
  BucketHead head = given;
  if (!shape_.carries_gradients) head.has_gradients = 0;
  for (size_t r = 0; r < send_.size(); ++r) {
    if (direct_ && r != 0) {
      send_[r] = send_[0];
      continue;
    }
    send_[r] = format_.write(head, used, gradients_, part_of(static_cast<int>(r)),
                             outgoing_->data() + r * message_stride(), saturated_);
  }
  reduce_scatter_.start(parts_of(number_, ranges_.count), send_, outgoing_);
  state_ = State::kPosted;
}

bool BucketExchange::has_arrived() const noexcept {
  return state_ == State::kSumsPosted ? all_gather_.has_arrived() : reduce_scatter_.has_arrived();
}

void BucketExchange::receive(RankSums& sums, ScaleOf scale_of) {
  reduce_scatter_.finish([&](std::span<const comm::ConstBytes> messages) {
    heads_ = format_.read(messages, part_of(shape_.rank).count, inputs_, written_);
    if (heads_.verdict == BucketVerdict::kReady) add_up(sums, scale_of(heads_));
  });
  state_ = State::kDone;
  if (direct_ || heads_.verdict != BucketVerdict::kReady) return;
  const size_t bytes = format_.wire_bytes(part_of(shape_.rank).count);
  all_gather_.start(sums_of(number_, ranges_.count), {own_sums_->data(), bytes}, own_sums_);
  state_ = State::kSumsPosted;
}

void BucketExchange::add_up(RankSums& sums, const GradientScale& scale) {
  const comm::OwnedRange own = part_of(shape_.rank);
  if (direct_) {
    gradients_.for_each_run(own, [&](const BucketGradients::Run& run) {
      if (written_[run.parameter] == 0) return;
      sums.add_up(inputs_, shape_.wire, run.begin, run.count, scale, run.gradient, shape_.dtype,
                  false);
    });
    return;
  }
  all_gather_.reclaim();
  const bool compressed = shape_.wire != shape_.dtype;
  const double room = compressed && shape_.wire == SHARDREC_FLOAT16
                          ? headroom(scale, shape_.ranks - heads_.joined)
                          : 1;
  factor_behind_ = static_cast<float>(room);
  saturated_ += sums.add_up(inputs_, shape_.wire, 0, own.count,
                            {.divisor = scale.divisor, .factor = scale.factor / room},
                            own_sums_->data(), shape_.wire, compressed);
}

void BucketExchange::finish() {
  all_gather_.finish();
  all_gather_.for_each_range(ranges_, core::dtype_size(shape_.wire),
                             [&](const comm::OwnedRange& range, const std::byte* sums) {
                               gradients_.write(range, sums, shape_.wire, written_, factor_behind_);
                             });
  all_gather_.release();
  state_ = State::kDone;
}

}  // namespace shardrec::dense
