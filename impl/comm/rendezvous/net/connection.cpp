#include "comm/rendezvous/net/connection.h"

namespace shardrec::comm::rendezvous {

bool Connection::ended(const Io& io) {
  if (io.outcome != Io::Outcome::kEnded) return false;
  if (how_.empty()) how_ = io.how;
  return true;
}

bool Connection::flush() {
  while (queued() > 0) {
    const Io io = socket_.write(ConstBytes(out_).subspan(written_));
    if (ended(io)) return false;
    if (io.outcome == Io::Outcome::kLater) break;
    written_ += io.bytes;
  }
  if (queued() == 0) {
    out_.clear();
    written_ = 0;
  } else if (written_ > out_.size() / 2) {
    out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(written_));
    written_ = 0;
  }
  return true;
}

bool Connection::receive(std::span<std::byte> scratch,
                         core::FunctionRef<void(const Frame&)> handle) {
  const Io io = socket_.read(scratch);
  if (ended(io)) return false;
  if (io.outcome == Io::Outcome::kLater) return true;
  decoder_.append(scratch.first(io.bytes));
  while (const auto frame = decoder_.next()) handle(*frame);
  return true;
}

}  // namespace shardrec::comm::rendezvous
