// Communicators between processes, by the name of their engine: brings together how ranks meet
// (rendezvous/), what carries their messages (a plug-in) and what an exchange is (remote/).
//
// Collective: each function returns when every rank has called it. Throws what
// rendezvous::join() and remote::open_transport() do, and INVALID_ARGUMENT for the interface.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "comm/engine_list.h"
#include "comm/rendezvous/protocol/token.h"

namespace shardrec::comm::rendezvous {
class Server;
}

namespace shardrec::comm {

struct EngineOptions {
  std::string engine = "gloo";
  double seconds = 1800;  // to meet in
  // Of ranks that meet as the environment says: how much later than another rank 0 may be.
  double rank_zero_seconds = 60;
  // Of engines that do not come with a launcher: a network interface or an address of this machine
  // for this rank's connections; empty: the address that it reaches the rendezvous from.
  std::string interface{};
  // Other machines may connect, even where the rendezvous was reached over loopback.
  bool allow_plain_tcp = false;
};

// The engines of this installation: those of the library and those whose plug-ins are installed.
std::vector<std::string_view> installed_engines();
// Why there is no engine of that name here: a sentence, which names a plug-in's package; empty where there is.
// Loads the plug-in to see.
std::string missing_engine(const std::string& name);

// The engine that the environment variable SHARDREC_ENGINE names; gloo where it is not set. Throws
// INVALID_ARGUMENT.
std::string engine_of_environment();
// What SHARDREC_INTERFACE and SHARDREC_ALLOW_PLAIN_TCP say, where the options do not. Throws
// INVALID_ARGUMENT.
void add_network_of_environment(EngineOptions& options);

// Does the engine's own launcher say who the ranks are? by_token: ranks have a rendezvous' token, which says it where an
// engine leaves that open. Throws UNSUPPORTED.
bool is_launched(const std::string& engine, bool by_token);

// Ranks that meet at the server of a token. server: where it is this process's, the communicator
// keeps it.
std::shared_ptr<Communicator> connect(const EngineOptions& options, const rendezvous::Token& token,
                                      int rank, int size,
                                      std::shared_ptr<rendezvous::Server> server = nullptr);
// Ranks that meet as their launcher or the environment says (rendezvous::from_environment). What
// the options leave open of the network is read by add_network_of_environment().
std::shared_ptr<Communicator> connect_from_environment(EngineOptions options);
// Ranks of an engine that is_launched(). rank, size: what the caller takes its numbers to be, -1
// where it asks for them; INVALID_ARGUMENT where the launcher says otherwise.
std::shared_ptr<Communicator> connect_as_launched(const EngineOptions& options, int rank = -1,
                                                  int size = -1);

}  // namespace shardrec::comm
