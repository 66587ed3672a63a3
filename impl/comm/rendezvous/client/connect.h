// The way of a rank to its server, up to the point where both have proved to know the secret.
#pragma once

#include "comm/rendezvous/net/connection.h"
#include "comm/rendezvous/protocol/limits.h"
#include "comm/rendezvous/protocol/token.h"

namespace shardrec::comm::rendezvous {

// When a rank regards a server that does not answer as gone.
struct Belief {
  // Whether the server is known to have started. If it has, it is gone once nobody has listened at its
  // address for half a second.
  bool has_started = false;
  // If it has not, it may start later than its ranks: for how long nobody need listen at its address.
  double seconds_until_start = 60;
};

// Tries again until the deadline if nobody listens, the name is unknown or the connection breaks. If
// the server is gone, as `belief` has it, throws ServerGone (rendezvous.h). Throws TIMEOUT with the
// last reason, INVALID_ARGUMENT or UNSUPPORTED at once if another program listens at the address
// (handshake.h), and IO_ERROR if the system has no random numbers. Blocks; the lookup of a name may
// take longer than the deadline.
Connection connect(const Token& token, int rank, Clock::time_point deadline, const Belief& belief);

}  // namespace shardrec::comm::rendezvous
