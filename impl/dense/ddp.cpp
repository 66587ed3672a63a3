#include "dense/ddp.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace shardrec::dense {
namespace {

constexpr int64_t kFirstBucket = (int64_t{1} << 20) / int64_t{sizeof(float)};
constexpr int64_t kBucket = (int64_t{8} << 20) / int64_t{sizeof(float)};

constexpr comm::Operation kCompare{
    .name = "ddp: commit", .kind = 1, .patience = comm::Patience::kSetup};
constexpr comm::Operation kBroadcast{
    .name = "ddp: broadcast", .kind = 2, .patience = comm::Patience::kSetup};
constexpr comm::Operation kReduce{.name = "ddp: all_reduce", .kind = 3};

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ", ";
    core::append(text, shape[i]);
  }
  return text + "]";
}

void put(std::string& out, int64_t value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

// Reads what describe() wrote. Only ever of the same release of the library.
class Reader {
 public:
  explicit Reader(comm::ConstBytes bytes) : bytes_(bytes) {}
  int64_t number() {
    int64_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() {
    const comm::ConstBytes bytes = take(static_cast<size_t>(number()));
    std::string out(bytes.size(), '\0');
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  std::vector<int64_t> numbers() {
    std::vector<int64_t> out(static_cast<size_t>(number()));
    for (int64_t& value : out) value = number();
    return out;
  }

 private:
  comm::ConstBytes take(size_t size) {
    const comm::ConstBytes out = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return out;
  }
  comm::ConstBytes bytes_;
};

[[noreturn]] void mismatch(size_t rank, const std::string& what, int64_t position = -1) {
  core::ErrorParts parts{.rank = static_cast<int64_t>(rank), .operation = "ddp: commit"};
  if (position >= 0) parts.position = position;
  core::fail(SHARDREC_MISMATCH, core::sentence("rank ", rank, " differs from rank 0: ", what),
             std::move(parts));
}

const char* averaged(int64_t average) { return average != 0 ? "averages" : "sums"; }
const char* broadcasts(int64_t broadcast) { return broadcast != 0 ? "broadcasts" : "keeps"; }

}  // namespace

Ddp::Ddp(std::shared_ptr<comm::Communicator> communicator, const DdpOptions& options)
    : communicator_(std::move(communicator)),
      options_(options),
      buffer_(std::make_shared<core::Scratch>()) {}

void Ddp::add(std::string name, std::vector<int64_t> shape, std::span<float> parameter,
              std::span<float> gradient) {
  if (committed_) {
    core::fail(SHARDREC_INVALID_STATE,
               core::sentence("parameter \"", name,
                              "\" was added after commit; add all parameters before it"));
  }
  if (name.empty()) {
    core::fail(SHARDREC_INVALID_ARGUMENT, "a parameter has an empty name; give each one its own");
  }
  for (const Parameter& known : parameters_) {
    if (known.name != name) continue;
    core::fail(SHARDREC_INVALID_ARGUMENT, core::sentence("there is already a parameter named \"",
                                                         name, "\"; names must be unique"));
  }
  parameters_.push_back({std::move(name), std::move(shape), parameter, gradient});
}

std::string Ddp::describe() const {
  std::string out;
  put(out, options_.average ? 1 : 0);
  put(out, options_.broadcast ? 1 : 0);
  put(out, static_cast<int64_t>(parameters_.size()));
  for (const Parameter& parameter : parameters_) {
    put(out, static_cast<int64_t>(parameter.name.size()));
    out += parameter.name;
    put(out, static_cast<int64_t>(parameter.shape.size()));
    for (const int64_t size : parameter.shape) put(out, size);
  }
  return out;
}

// All ranks read the same descriptions and so throw the same: the first difference of the lowest
// rank that differs from rank 0.
void Ddp::compare(std::span<const comm::ConstBytes> descriptions) const {
  for (size_t rank = 1; rank < descriptions.size(); ++rank) {
    const comm::ConstBytes mine = descriptions[0];
    const comm::ConstBytes theirs = descriptions[rank];
    if (std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end())) continue;
    Reader expected(mine);
    Reader seen(theirs);
    const int64_t average = expected.number();
    const int64_t its_average = seen.number();
    if (average != its_average) {
      mismatch(rank, core::sentence("it ", averaged(its_average), " gradients, rank 0 ",
                                    averaged(average), " them (option DDP_AVERAGE)"));
    }
    const int64_t broadcast = expected.number();
    const int64_t its_broadcast = seen.number();
    if (broadcast != its_broadcast) {
      mismatch(rank, core::sentence("its commit ", broadcasts(its_broadcast),
                                    " parameters, that of rank 0 ", broadcasts(broadcast),
                                    " them (option DDP_BROADCAST)"));
    }
    const int64_t count = expected.number();
    const int64_t its_count = seen.number();
    for (int64_t i = 0; i < std::min(count, its_count); ++i) {
      const std::string name = expected.text();
      const std::string its_name = seen.text();
      if (name != its_name) {
        mismatch(rank,
                 core::sentence("its parameter ", i, " is named \"", its_name,
                                "\", that of rank 0 \"", name, "\""),
                 i);
      }
      const std::vector<int64_t> shape = expected.numbers();
      const std::vector<int64_t> its_shape = seen.numbers();
      if (shape != its_shape) {
        mismatch(rank,
                 core::sentence("its parameter \"", name, "\" has shape ", shape_text(its_shape),
                                ", that of rank 0 ", shape_text(shape)),
                 i);
      }
    }
    const std::string extra = count < its_count ? seen.text() : expected.text();
    mismatch(rank,
             core::sentence("it added ", its_count, " parameters, rank 0 added ", count, "; \"",
                            extra, "\" is missing on rank ", count < its_count ? 0 : rank),
             std::min(count, its_count));
  }
}

std::vector<Ddp::Bucket> Ddp::cut() const {
  std::vector<Bucket> buckets;
  int64_t limit = kFirstBucket;
  Bucket open;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    open.end = i + 1;
    open.size += static_cast<int64_t>(parameters_[i].gradient.size());
    if (open.size < limit && i + 1 < parameters_.size()) continue;
    limit = kBucket;
    const Bucket full = std::exchange(open, {.begin = i + 1});
    if (full.size != 0) buckets.push_back(full);
  }
  for (Bucket& bucket : buckets) {
    const float* next = nullptr;
    bucket.in_place = true;
    for (size_t i = bucket.begin; i < bucket.end; ++i) {
      const std::span<float> gradient = parameters_[i].gradient;
      if (gradient.empty()) continue;
      if (next != nullptr && gradient.data() != next) bucket.in_place = false;
      next = gradient.data() + gradient.size();
    }
  }
  return buckets;
}

void Ddp::commit() {
  if (committed_) {
    core::fail(SHARDREC_INVALID_STATE, "commit was called a second time");
  }
  try {
    if (channel_ == nullptr) {
      channel_ = communicator_->open_channel(comm::Purpose::kDense);
      collectives_.emplace(channel_, communicator_->rank(), communicator_->size());
    }
    const std::string mine = describe();
    compare(collectives_->all_gather(kCompare, std::as_bytes(std::span(mine))));
    std::vector<Bucket> buckets = cut();
    size_t largest = 0;
    for (const Bucket& bucket : buckets) {
      if (!bucket.in_place) largest = std::max(largest, static_cast<size_t>(bucket.size));
    }
    buffer_->resize_as<float>(largest);
    buckets_ = std::move(buckets);
    if (options_.broadcast) {
      for (const Parameter& parameter : parameters_) {
        collectives_->broadcast(kBroadcast, 0, std::as_writable_bytes(parameter.values));
      }
    }
  } catch (const core::Error& error) {
    // A difference between the ranks is everybody's error already.
    if (error.status() != SHARDREC_MISMATCH) communicator_->fail("ddp: commit");
    throw;
  } catch (...) {
    communicator_->fail("ddp: commit");
    throw;
  }
  committed_ = true;
}

void Ddp::all_reduce() {
  if (!committed_) {
    core::fail(SHARDREC_INVALID_STATE, "all_reduce was called before commit");
  }
  const comm::Reduction reduction =
      options_.average ? comm::Reduction::kMean : comm::Reduction::kSum;
  for (const Bucket& bucket : buckets_) {
    const std::span<const Parameter> inside(&parameters_[bucket.begin], bucket.end - bucket.begin);
    if (bucket.in_place) {
      const auto first = std::find_if(inside.begin(), inside.end(),
                                      [](const Parameter& p) { return !p.gradient.empty(); });
      collectives_->all_reduce<float>(kReduce, reduction,
                                      {first->gradient.data(), static_cast<size_t>(bucket.size)});
      continue;
    }
    const std::span<float> buffer = buffer_->resize_as<float>(static_cast<size_t>(bucket.size));
    auto at = buffer.begin();
    for (const Parameter& parameter : inside) {
      at = std::copy(parameter.gradient.begin(), parameter.gradient.end(), at);
    }
    collectives_->all_reduce<float>(kReduce, reduction, buffer, buffer_);
    at = buffer.begin();
    for (const Parameter& parameter : inside) {
      std::copy_n(at, parameter.gradient.size(), parameter.gradient.begin());
      at += static_cast<std::ptrdiff_t>(parameter.gradient.size());
    }
  }
}

}  // namespace shardrec::dense
