#include "dense/ddp/exchange.h"

#include <algorithm>
#include <utility>

#include "core/align.h"
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
                               BucketMemory& memory, size_t number, int64_t elements,
                               std::vector<BucketParameter> parameters)
    : shape_(shape),
      number_(number),
      memory_(memory),
      gradients_(shape.dtype, std::move(parameters)),
      format_(shape.wire, gradients_.parameters(), shape.asks_who_used),
      ranges_{.count = elements,
              .ranks = shape.ranks,
              .grain = comm::line_grain(core::dtype_size(shape.wire))},
      direct_(shape.ranks <= 2 || !sends_gradients() ||
              format_.wire_bytes(elements) * static_cast<size_t>(shape.ranks - 1) <= kDirectBytes),
      reduce_scatter_(channels.parts, shape.ranks),
      all_gather_(channels.sums, shape.ranks),
      send_(static_cast<size_t>(shape.ranks)),
      head_bytes_(static_cast<size_t>(shape.ranks), format_.bytes_before()),
      used_(gradients_.parameters(), 0),
      written_(gradients_.parameters(), 1) {
  adding_ = memory.make_adder(number, shape.wire);
  const auto ranks = static_cast<size_t>(shape.ranks);
  sum_.reserve(gradients_.parameters() + ranks);
  inputs_.reserve((gradients_.parameters() + ranks) * ranks);
  if (alone()) return;
  packing_ = memory.make_adder(number, shape.wire);
  outgoing_ = memory.bodies().make_buffer();
  outgoing_->resize(direct_ ? message_stride() : ranks * message_stride());
  parts_ = memory.bodies().make_received();
  if (adds_by_nccl()) all_reduce_ = memory.make_all_reduce(shape.wire, elements);
  if (is_sent_by_post()) return;
  writing_ = memory.make_adder(number, shape.wire);
  if (direct_) return;
  own_sums_ = memory.bodies().make_buffer();
  own_sums_->resize(sums_room());
  sums_ = memory.bodies().make_received();
}

comm::OwnedRange BucketExchange::part_of(int rank) const noexcept {
  if (!direct_) return ranges_.of(rank);
  return {.begin = 0, .count = sends_gradients() ? ranges_.count : 0};
}

size_t BucketExchange::message_stride() const noexcept {
  const size_t data = format_.wire_bytes(part_of(0).count);  // no rank has a longer part
  return format_.bytes_before() + core::align_up(data, kLine);
}

size_t BucketExchange::sums_room() const noexcept {
  return std::max(format_.wire_bytes(part_of(shape_.rank).count), kLine);
}

size_t BucketExchange::bytes_sent() const noexcept {
  const size_t parts = format_.bytes_before() + format_.wire_bytes(part_of(0).count);
  const size_t sums = direct_ ? 0 : format_.wire_bytes(part_of(shape_.rank).count);
  return (parts + sums) * (send_.size() - 1) +
         (adds_by_nccl() ? format_.wire_bytes(ranges_.count) : 0);
}

double BucketExchange::room_for_ranks() const noexcept {
  return shape_.wire == SHARDREC_FLOAT16 ? headroom({}, shape_.ranks) : 1;
}

void BucketExchange::begin_sums(size_t addends) noexcept {
  sum_.clear();
  inputs_.clear();
  addends_ = addends;
}

void BucketExchange::add_up(BucketAdder& adder, BucketSum sum) {
  if (sum_.empty()) return;
  sum.runs = sum_;
  sum.inputs = inputs_;
  sum.addends = addends_;
  adder.add_up(sum);
}

void BucketExchange::post(const BucketHead& given, std::span<const char> used) {
  own_head_ = given;
  if (!sends_gradients()) own_head_.has_gradients = 0;
  state_ = State::kPosted;
  if (alone()) {
    std::copy(used.begin(), used.end(), used_.begin());
    return;
  }
  reduce_scatter_.reclaim();
  const size_t messages = direct_ ? 1 : send_.size();
  std::byte* const bodies = outgoing_->resize(messages * message_stride());
  begin_sums(1);
  for (size_t r = 0; r < messages; ++r) {
    const comm::OwnedRange part = part_of(static_cast<int>(r));
    std::byte* const at = bodies + r * message_stride();
    const size_t bytes = format_.write_head(own_head_, used, part.count, outgoing_->host(at));
    send_[r] = outgoing_->host(at, at + bytes);
    if (own_head_.has_gradients == 0) continue;
    gradients_.for_each_run(part, [&](const BucketGradients::Run& run) {
      add_run(at + format_.bytes_before() + format_.wire_bytes(run.begin - part.begin), run.count);
      add_input(used[run.parameter] == 0 ? nullptr : run.gradient);
    });
  }
  std::fill(send_.begin() + static_cast<std::ptrdiff_t>(messages), send_.end(), send_[0]);
  if (own_head_.has_gradients != 0) {
    memory_.follow_marks(number_);
    add_up(*packing_, {.from = shape_.dtype, .to = shape_.wire, .for_way = is_compressed()});
    for (size_t r = 0; r < messages; ++r) {
      const std::byte* const at = bodies + r * message_stride();
      if (send_[r].size() == format_.bytes_before()) continue;
      outgoing_->publish(at + format_.bytes_before(), at + send_[r].size());
    }
    memory_.bodies().finish_writing();
  }
  if (adds_by_nccl()) give_to_nccl(used);
  reduce_scatter_.start(parts_of(number_, ranges_.count), send_, outgoing_->keep_alive());
}

// What is compressed saturates and is counted as where it is sent, then makes room for the sum.
void BucketExchange::give_to_nccl(std::span<const char> used) {
  begin_sums(1);
  gradients_.for_each_run({.begin = 0, .count = ranges_.count}, [&](const auto& run) {
    add_run(all_reduce_->data() + format_.wire_bytes(run.begin), run.count);
    add_input(used[run.parameter] == 0 ? nullptr : run.gradient);
  });
  BucketSum sum{.from = shape_.dtype,
                .to = shape_.wire,
                .scale = {.divisor = room_for_ranks()},
                .for_way = is_compressed()};
  if (is_compressed()) sum.through = shape_.wire;
  memory_.follow_marks(number_);
  add_up(*packing_, sum);
  all_reduce_->publish();
}

bool BucketExchange::has_arrived() const noexcept {
  if (alone()) return true;
  return state_ == State::kSumsPosted ? all_gather_.has_arrived() : reduce_scatter_.has_arrived();
}

void BucketExchange::receive(ScaleOf scale_of) {
  state_ = State::kDone;
  if (alone()) {
    heads_ = heads_of(own_head_);
    for (size_t s = 0; s < written_.size(); ++s) {
      written_[s] = shape_.asks_who_used ? used_[s] : char{1};
    }
    if (heads_.verdict == BucketVerdict::kReady) take_own(scale_of(heads_));
    return;
  }
  reduce_scatter_.finish([&](std::span<const comm::ConstBytes> messages) {
    heads_ = format_.read_heads(messages, part_of(shape_.rank).count, written_);
    if (heads_.verdict != BucketVerdict::kReady) return;
    if (adds_by_nccl()) return add_by_nccl(scale_of(heads_));
    const auto bodies = parts_->open(messages, head_bytes_);
    add_parts(bodies, scale_of(heads_));
    memory_.bodies().finish_reading();
  });
  if (!direct_ && heads_.verdict == BucketVerdict::kReady) post_sums();
  memory_.submit();
}

// What would have come back: of numbers that change nothing on their way, nothing is touched.
void BucketExchange::take_own(const GradientScale& scale) {
  const bool changes = is_compressed() || scale.divisor != 1 || scale.factor != 1;
  memory_.follow_marks(number_);  // what is done to gradients next is behind them
  if (!shape_.carries_gradients) return;
  begin_sums(1);
  gradients_.for_each_run(part_of(0), [&](const BucketGradients::Run& run) {
    const bool is_used = own_head_.has_gradients != 0 && used_[run.parameter] != 0;
    if (written_[run.parameter] == 0 || (is_used && !changes)) return;
    add_run(run.gradient, run.count);
    add_input(is_used ? run.gradient : nullptr);
  });
  BucketSum sum{.from = shape_.dtype, .to = shape_.dtype, .scale = scale};
  if (is_compressed()) {
    sum.through = shape_.wire;
    sum.for_way = true;
  }
  add_up(*adding_, sum);
  memory_.submit();
}

void BucketExchange::add_parts(std::span<const comm::ConstBytes> bodies,
                               const GradientScale& scale) {
  const comm::OwnedRange own = part_of(shape_.rank);
  const auto add_inputs = [&](int64_t first) {
    for (const comm::ConstBytes body : bodies) {
      add_input(body.empty() ? nullptr : body.data() + format_.wire_bytes(first));
    }
  };
  begin_sums(bodies.size());
  if (direct_) {
    gradients_.for_each_run(own, [&](const BucketGradients::Run& run) {
      if (written_[run.parameter] == 0) return;
      add_run(run.gradient, run.count);
      add_inputs(run.begin);
    });
    add_up(*adding_, {.from = shape_.wire, .to = shape_.dtype, .scale = scale});
    return;
  }
  all_gather_.reclaim();
  own_sums_at_ = own_sums_->resize(sums_room());
  if (own.count == 0) return;
  const double room = is_compressed() && shape_.wire == SHARDREC_FLOAT16
                          ? headroom(scale, shape_.ranks - heads_.joined)
                          : 1;
  factor_behind_ = room;
  add_run(own_sums_at_, own.count);
  add_inputs(0);
  add_up(*adding_, {.from = shape_.wire,
                    .to = shape_.wire,
                    .scale = {.divisor = scale.divisor, .factor = scale.factor / room},
                    .for_way = is_compressed()});
}

void BucketExchange::add_by_nccl(const GradientScale& scale) {
  all_reduce_->start("ddp: all_reduce of a bucket");
  begin_sums(1);
  gradients_.for_each_run({.begin = 0, .count = ranges_.count}, [&](const auto& run) {
    if (written_[run.parameter] == 0) return;
    add_run(run.gradient, run.count);
    add_input(all_reduce_->data() + format_.wire_bytes(run.begin));
  });
  add_up(*writing_,
         {.from = shape_.wire,
          .to = shape_.dtype,
          .scale = {.divisor = scale.divisor, .factor = scale.factor * room_for_ranks()}});
}

void BucketExchange::post_sums() {
  const size_t bytes = format_.wire_bytes(part_of(shape_.rank).count);
  if (bytes != 0) {
    own_sums_->publish(own_sums_at_, own_sums_at_ + bytes);
    memory_.bodies().finish_writing();
  }
  all_gather_.start(sums_of(number_, ranges_.count),
                    own_sums_->host(own_sums_at_, own_sums_at_ + bytes), own_sums_->keep_alive());
  state_ = State::kSumsPosted;
}

void BucketExchange::finish() {
  const std::span<const comm::ConstBytes> messages = all_gather_.finish();
  all_gather_.for_each_range(ranges_, core::dtype_size(shape_.wire),
                             [](const comm::OwnedRange&, const std::byte*) {});
  const auto bodies = sums_->open(messages);
  begin_sums(1);
  for (size_t r = 0; r < bodies.size(); ++r) {
    const comm::OwnedRange range = ranges_.of(static_cast<int64_t>(r));
    gradients_.for_each_run(range, [&](const BucketGradients::Run& run) {
      if (written_[run.parameter] == 0) return;
      add_run(run.gradient, run.count);
      add_input(bodies[r].data() + format_.wire_bytes(run.begin - range.begin));
    });
  }
  add_up(*writing_, {.from = shape_.wire, .to = shape_.dtype, .scale = {.factor = factor_behind_}});
  memory_.bodies().finish_reading();
  all_gather_.release();
  memory_.submit();
  state_ = State::kDone;
}

}  // namespace shardrec::dense
