// The object behind shardrec_rendezvous: the server of a group.
#pragma once

#include <memory>

#include "comm/rendezvous/server/server.h"
#include "handle.h"
#include "shardrec/rendezvous.h"

namespace shardrec::capi {

struct Rendezvous {
  std::shared_ptr<comm::rendezvous::Server> server;
};

template <>
struct Handle<shardrec_rendezvous> {
  using Object = Rendezvous;
  static constexpr Kind kKind = Kind::kRendezvous;
};

// Where this process holds the rendezvous of a token: its server. Else null.
std::shared_ptr<comm::rendezvous::Server> server_of(const comm::rendezvous::Token& token);

}  // namespace shardrec::capi
