#include "embedding/exchange/lending.h"

#include <algorithm>
#include <cstring>

#include "comm/bodies/registry.h"
#include "core/error.h"
#include "core/memory.h"

namespace shardrec::embedding {
namespace {

// Never destroyed: other threads may train while the process ends.
comm::Registry<Lending>& lendings() {
  static comm::Registry<Lending>& all = *new comm::Registry<Lending>;
  return all;
}

GradientHeader header_of(comm::ConstBytes gradient) {
  GradientHeader header;
  std::memcpy(&header, gradient.data(), sizeof header);
  return header;
}

}  // namespace

void Lending::make_room(std::span<const size_t> blocks) {
  first_.resize(1);
  for (const size_t count : blocks) first_.push_back(first_.back() + count);
  rows_.clear();
  core::reserve_with_slack(rows_, first_.back());
  rows_.resize(first_.back());
}

std::span<GradientRows> Lending::blocks(int owner) {
  const auto o = static_cast<size_t>(owner);
  if (o + 1 >= first_.size()) return {};
  return std::span(rows_).subspan(first_[o], first_[o + 1] - first_[o]);
}

void Lending::lend() {
  const std::unique_lock lock(mutex_);
  lent_ = true;
}

void Lending::take_back() {
  const std::unique_lock lock(mutex_);
  lent_ = false;
}

bool Lending::read() {
  mutex_.lock_shared();
  if (lent_) return true;
  mutex_.unlock_shared();
  return false;
}

LendingNumber::LendingNumber(const std::shared_ptr<Lending>& lending)
    : value_(lendings().add(lending)) {}

LendingNumber::~LendingNumber() { lendings().remove(value_); }

LentGradients::LentGradients(int ranks, int rank)
    : rank_(rank), read_(static_cast<size_t>(ranks)), blocks_(static_cast<size_t>(ranks)) {}

Reading::Reading(LentGradients& lent, std::span<const comm::ConstBytes> gradients,
                 const comm::Communicator& communicator)
    : lent_(lent) {
  for (size_t source = 0; source < gradients.size(); ++source) {
    lent_.blocks_[source] = {};
    const GradientHeader header = header_of(gradients[source]);
    if (header.lends == Lends::kNothing) continue;
    std::shared_ptr<Lending> lending = lendings().find(header.lending);
    if (lending != nullptr && lending->read()) {
      lent_.blocks_[source] = lending->blocks(lent_.rank_);
      lent_.read_[source] = std::move(lending);
      continue;
    }
    const auto rank = static_cast<int64_t>(source);
    stop();
    communicator.check();
    core::fail(SHARDREC_PEER_FAILED,
               core::sentence("rank ", rank, " left backward before its gradients were read"),
               {.rank = rank, .operation = "backward"});
  }
}

void Reading::stop() {
  for (std::shared_ptr<Lending>& lending : lent_.read_) {
    if (lending != nullptr) lending->stop();
    lending.reset();
  }
}

bool any_lent(std::span<const comm::ConstBytes> gradients) {
  return std::any_of(gradients.begin(), gradients.end(), [](comm::ConstBytes message) {
    return header_of(message).lends == Lends::kToProcess;
  });
}

}  // namespace shardrec::embedding
