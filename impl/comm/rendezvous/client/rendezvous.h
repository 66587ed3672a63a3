// How the ranks of a group meet; the public header of this folder. A server runs in one process
// (server.h). Every rank joins it with the server's token, and gets the layout of the ranks, a
// StateBroadcast and a store.
//
//   Server server({});                                    // in rank 0's process, as a rule
//   Meeting meeting = join(server.token(), rank, size, {.seconds = 60});
//   ... meeting.client is the StateBroadcast, and has the store
//
// join() blocks until every rank has joined. If one does not, all get an error that names it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/remote/link.h"
#include "comm/rendezvous/client/client.h"
#include "comm/rendezvous/client/connect.h"
#include "comm/rendezvous/protocol/token.h"
#include "comm/rendezvous/server/server.h"
#include "core/error.h"

namespace shardrec::comm::rendezvous {

// The group of this token has had all its ranks.
class GroupComplete : public core::Error {
 public:
  GroupComplete(std::string sentence, int rank)
      : Error(SHARDREC_INVALID_STATE, std::move(sentence), {.rank = rank, .operation = "join"}) {}
};

// No server listens at the address of the token.
class ServerGone : public core::Error {
 public:
  explicit ServerGone(std::string sentence)
      : Error(SHARDREC_PEER_FAILED, std::move(sentence), {.rank = 0, .operation = "join"}) {}
};

struct JoinOptions {
  double seconds = 1800;
  // The number that the launcher gave; 0 if it gave none.
  int ranks_on_host = 0;
  // For how long to try again if the group is complete already: its server may be about to end, and
  // the next one to start at the same address.
  double seconds_for_next_group = 0;
  // How long to look for the server (connect.h).
  Belief belief{};
};

struct Meeting {
  remote::RankLayout layout;
  std::shared_ptr<Client> client;
  // Not null if this process runs the server and nothing else keeps it. Destroyed after the client.
  std::shared_ptr<Server> server;
};

// Throws INVALID_ARGUMENT (rank, size, another job or secret), UNSUPPORTED (another version),
// TIMEOUT, and on all ranks MISMATCH (sizes, LOCAL_WORLD_SIZE), INVALID_STATE (a rank joined
// twice), PEER_FAILED (a rank is gone).
Meeting join(const Token& token, int rank, int size, const JoinOptions& options);

// The same, as the environment says; a Variable is std::getenv but for tests:
//   RANK, WORLD_SIZE                    needed
//   LOCAL_WORLD_SIZE, LOCAL_RANK        ranks of this node, and this one's place among them
//   SHARDREC_TOKEN                      of a server that runs; else rank 0 starts one
//   SHARDREC_TOKEN_FILE                 and writes its token there, for the others (token_file.h);
//                                       or with:
//   MASTER_ADDR, SHARDREC_PORT          where ranks find rank 0
//   SHARDREC_SECRET                     16 to 128 letters, digits and -._~
//   SHARDREC_JOB                        "default"; tells groups of the same secret apart
//   SHARDREC_BIND                       where rank 0 listens, if not at MASTER_ADDR
//   SHARDREC_ALLOW_PLAIN_TCP            1: other machines may take part
// Every SHARDREC_ variable that is set is checked, on every rank. Of a rank 0 whose place is known
// (MASTER_ADDR, or what its file says), but where nobody listens, the others think for
// seconds_until_rank_zero that it is late; then they throw PEER_FAILED.
// Throws INVALID_ARGUMENT naming the variable, and what join() and Server throw.
struct EnvironmentOptions {
  double seconds = 1800;
  double seconds_until_rank_zero = Belief().seconds_until_start;
};
using Variable = std::function<const char*(const char*)>;
Meeting from_environment(const EnvironmentOptions& options, const Variable& variable);
Meeting from_environment(const EnvironmentOptions& options);

}  // namespace shardrec::comm::rendezvous
