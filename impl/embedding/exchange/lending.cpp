#include "embedding/exchange/lending.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/error.h"
#include "embedding/exchange/wire.h"

namespace shardrec::embedding {
namespace {

// Null: nothing is lent to other ranks.
Lending* lending_of(comm::ConstBytes gradient) {
  GradientHeader header;
  std::memcpy(&header, gradient.data(), sizeof header);
  return header.lending;
}

}  // namespace

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

Reading::Reading(std::span<const comm::ConstBytes> gradients,
                 const comm::Communicator& communicator)
    : gradients_(gradients) {
  for (; count_ < gradients.size(); ++count_) {
    Lending* lending = lending_of(gradients[count_]);
    if (lending == nullptr || lending->read()) continue;
    const auto rank = static_cast<int64_t>(count_);
    stop();
    communicator.check();
    core::fail(SHARDREC_PEER_FAILED,
               core::sentence("rank ", rank, " left backward before its gradients were read"),
               {.rank = rank, .operation = "backward"});
  }
}

Reading::~Reading() { stop(); }

void Reading::stop() {
  for (; count_ > 0; --count_) {
    Lending* lending = lending_of(gradients_[count_ - 1]);
    if (lending != nullptr) lending->stop();
  }
}

bool any_lent(std::span<const comm::ConstBytes> gradients) {
  return std::any_of(gradients.begin(), gradients.end(),
                     [](comm::ConstBytes message) { return lending_of(message) != nullptr; });
}

}  // namespace shardrec::embedding
