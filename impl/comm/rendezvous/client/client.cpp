#include "comm/rendezvous/client/client.h"

#include "comm/rendezvous/client/client_loop.h"
#include "core/start_thread.h"

namespace shardrec::comm::rendezvous {

Client::Client(Connection connection, const Join& join)
    : local_address_(connection.socket().local()),
      loop_(std::make_shared<ClientLoop>(std::move(connection), join)) {
  thread_ = core::start_thread([loop = loop_] { loop->run(); });
}

Client::~Client() {
  loop_->listen({});
  loop_->close();
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

Formed Client::wait_until_formed(Clock::time_point deadline) {
  return loop_->wait_until_formed(deadline);
}

double Client::silence_seconds() const noexcept {
  return std::chrono::duration<double>(loop_->silence()).count();
}

void Client::announce(ConstBytes bulletin) noexcept { loop_->announce(bulletin); }

void Client::listen(Listener listener) { loop_->listen(std::move(listener)); }

void Client::set(std::string_view key, ConstBytes value, Clock::time_point deadline) {
  const auto loop = loop_;
  loop->set(key, value, deadline);
}

Bytes Client::get(std::string_view key, Clock::time_point deadline) {
  const auto loop = loop_;
  return loop->get(key, deadline);
}

void Client::close() noexcept { loop_->close(); }

}  // namespace shardrec::comm::rendezvous
