// The way of a rank to its server, up to the point where both have proved to know the secret.
#pragma once

#include "comm/rendezvous/net/connection.h"
#include "comm/rendezvous/protocol/limits.h"
#include "comm/rendezvous/protocol/token.h"

namespace shardrec::comm::rendezvous {

// How long to believe in a server.
struct Belief {
  // It listens, or did: nobody listening for half a second, and silence, mean that it is gone.
  bool has_started = false;
  // Else it may start later than its ranks: so long nobody may listen while its host answers.
  double seconds_until_start = 60;
};

// Tries again until the deadline while nobody listens, the name is unknown or the connection
// breaks; not longer than `belief` allows: then it throws ServerGone (rendezvous.h). Throws TIMEOUT
// with the last reason; at once INVALID_ARGUMENT or UNSUPPORTED where somebody else listens there
// (handshake.h), and IO_ERROR where there are no random numbers. Blocks; a name that has to be
// looked up may take longer than the deadline.
Connection connect(const Token& token, int rank, Clock::time_point deadline, const Belief& belief);

}  // namespace shardrec::comm::rendezvous
