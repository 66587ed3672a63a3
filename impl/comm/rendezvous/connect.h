// The way of a rank to its server, up to the point where both have proved to know the secret.
#pragma once

#include "comm/rendezvous/connection.h"
#include "comm/rendezvous/limits.h"
#include "comm/rendezvous/token.h"

namespace shardrec::comm::rendezvous {

// Tries again until the deadline while nobody listens, the name is unknown or the connection
// breaks: the server may start later than its ranks. Where it is known to have started, nobody
// listening and silence mean that it is gone: PEER_FAILED, soon. Throws TIMEOUT with the last
// reason; at once INVALID_ARGUMENT or UNSUPPORTED where somebody else listens there (handshake.h).
// Blocks; a name that has to be looked up may take longer than the deadline.
Connection connect(const Token& token, int rank, Clock::time_point deadline, bool has_started);

}  // namespace shardrec::comm::rendezvous
