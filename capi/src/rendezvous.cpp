#include "shardrec/rendezvous.h"

#include "guard.h"
#include "objects/rendezvous_object.h"
#include "options.h"

namespace shardrec::capi {
namespace {

comm::rendezvous::ServerOptions server_options(const Options& options) {
  return {.address = options.text(SHARDREC_OPTION_ADDRESS),
          .port = static_cast<uint16_t>(options.i64(SHARDREC_OPTION_PORT)),
          .advertised = options.text(SHARDREC_OPTION_ADVERTISED_ADDRESS),
          .job = options.text(SHARDREC_OPTION_JOB),
          .secret = options.text(SHARDREC_OPTION_SECRET),
          .allow_plain_tcp = options.i64(SHARDREC_OPTION_ALLOW_PLAIN_TCP) == 1,
          .silence_seconds = options.f64(SHARDREC_OPTION_SILENCE_SECONDS)};
}

}  // namespace

std::shared_ptr<comm::rendezvous::Server> server_of(const comm::rendezvous::Token& token) {
  for (const auto& held : open_objects<shardrec_rendezvous>()) {
    const comm::rendezvous::Token& own = held->server->token();
    if (own.job == token.job && own.port == token.port && own.secret == token.secret) {
      return held->server;
    }
  }
  return nullptr;
}

}  // namespace shardrec::capi

using namespace shardrec::capi;

shardrec_status shardrec_rendezvous_create(const shardrec_options* options,
                                           shardrec_rendezvous** out) {
  return guard([&] {
    require_out(out, "out");
    const auto how = server_options(read_options(options, SHARDREC_OPTIONS_RENDEZVOUS));
    Reserved<shardrec_rendezvous> reserved;
    reserved.publish(out, std::make_shared<Rendezvous>(Rendezvous{
                              std::make_shared<shardrec::comm::rendezvous::Server>(how)}));
  });
}

shardrec_status shardrec_rendezvous_token(const shardrec_rendezvous* rendezvous, char** out_text) {
  return guard([&] {
    const auto use = enter(rendezvous, Access::kShared);
    require_out(out_text, "out_text");
    *out_text = copy_text(use->server->token().text());
  });
}

void shardrec_rendezvous_destroy(shardrec_rendezvous** rendezvous) { destroy(rendezvous); }
