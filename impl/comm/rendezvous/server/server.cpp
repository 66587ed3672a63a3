#include "comm/rendezvous/server/server.h"

#include <algorithm>
#include <cmath>

#include "comm/rendezvous/server/server_loop.h"
#include "core/error.h"
#include "core/start_thread.h"

namespace shardrec::comm::rendezvous {
namespace {

using core::fail;
using core::sentence;

Address address_to_bind(const ServerOptions& options) {
  check_host(options.address, "the rendezvous' address");
  std::string reason;
  const auto addresses = look_up(options.address, options.port, reason);
  if (addresses.empty()) {
    fail(SHARDREC_INVALID_ARGUMENT, sentence("the rendezvous' address ", reason));
  }
  const auto ipv4 = std::find_if(addresses.begin(), addresses.end(),
                                 [](const Address& one) { return one.family() == AF_INET; });
  return ipv4 != addresses.end() ? *ipv4 : addresses.front();
}

void check_safety(const ServerOptions& options, const Address& address) {
  if (address.is_loopback()) return;
  if (options.secret.empty()) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("other machines can reach the rendezvous at ", address.host(),
                  ", and no secret is set; 127.0.0.1, or a secret of your own "
                  "(SHARDREC_OPTION_SECRET, in the environment SHARDREC_SECRET), is accepted"));
  }
  if (!options.allow_plain_tcp) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("other machines can reach the rendezvous at ", address.host(),
                  ", and what ranks send to each other is clear text; 127.0.0.1 (and a tunnel), or "
                  "SHARDREC_OPTION_ALLOW_PLAIN_TCP = 1 (in the environment "
                  "SHARDREC_ALLOW_PLAIN_TCP=1), is accepted"));
  }
  if (address.is_wildcard() && options.advertised.empty()) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("the rendezvous listens at ", address.host(),
                  ", which ranks cannot connect to; SHARDREC_OPTION_ADVERTISED_ADDRESS must say "
                  "under which address or name they reach it"));
  }
}

}  // namespace

Server::Server(const ServerOptions& options) {
  if (!options.secret.empty()) check_secret(options.secret, "the rendezvous' secret");
  if (!options.job.empty()) check_job(options.job, "the rendezvous' job");
  if (!options.advertised.empty()) check_host(options.advertised, "the advertised address");
  if (!is_silence(options.silence_seconds)) {
    fail(
        SHARDREC_INVALID_ARGUMENT,
        "the silence after which a rank is lost is out of range; 0.1 to 3600 seconds are accepted");
  }
  const Address address = address_to_bind(options);
  check_safety(options, address);
  Socket listener = Socket::listen(address);
  token_ = {.host = options.advertised.empty() ? address.host() : options.advertised,
            .port = listener.local().port(),
            .job = options.job.empty() ? random_name() : options.job,
            .secret = options.secret.empty() ? random_name() : options.secret};
  const auto silence = milliseconds(std::lround(options.silence_seconds * 1000));
  loop_ = std::make_unique<ServerLoop>(Listener(std::move(listener), Key(token_.secret, token_.job),
                                                token_.job, options.handshake_time),
                                       silence);
  thread_ = core::start_thread([loop = loop_.get()] { loop->run(); });
}

Server::~Server() {
  loop_->stop();
  thread_.join();
}

}  // namespace shardrec::comm::rendezvous
