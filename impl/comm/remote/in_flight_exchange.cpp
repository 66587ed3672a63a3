#include "comm/remote/in_flight_exchange.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace shardrec::comm::remote {

void Transfer::fail(std::string why) noexcept {
  request_.reset();
  failed_ = true;
  why_ = std::move(why);
  failed_at_ = Clock::now();
}

void Transfer::start(core::FunctionRef<std::unique_ptr<Request>()> request) {
  try {
    request_ = request();
  } catch (const core::Error& error) {
    if (error.status() == SHARDREC_OUT_OF_MEMORY) throw;
    fail(error.sentence());
  }
}

void Transfer::wait(double seconds) {
  if (request_ == nullptr) return;
  Result result = request_->wait(seconds);
  switch (result.outcome) {
    case Outcome::kDone:
      request_.reset();
      return;
    case Outcome::kTimeout:
      return;
    case Outcome::kFailed:
      return fail(std::move(result.text));
    case Outcome::kCancelled:
      // Nobody will say more about it.
      fail("the transport was cancelled");
      failed_at_ = Clock::time_point::min();
      return;
  }
}

void PeerTransfers::ask_sending() {
  for (Transfer& transfer : sending) transfer.wait(0);
}

void PeerTransfers::drop_sending() noexcept {
  for (Transfer& transfer : sending) transfer.drop();
}

void InFlightExchange::clear() noexcept {
  for (PeerTransfers& transfers : by_peer) {
    transfers.receiving.drop();
    transfers.drop_sending();
    transfers.inbound = PeerTransfers::Inbound::kNothing;
    transfers.view = {};
  }
  keep_alive.reset();
  own = {};
  reclaimed = false;
  released = false;
}

bool InFlightExchange::sent() const noexcept {
  return std::all_of(by_peer.begin(), by_peer.end(),
                     [](const PeerTransfers& transfers) { return transfers.sent(); });
}

bool InFlightExchange::arrived() const noexcept {
  return std::all_of(by_peer.begin(), by_peer.end(), [](const PeerTransfers& transfers) {
    return transfers.inbound == PeerTransfers::Inbound::kDone;
  });
}

}  // namespace shardrec::comm::remote
