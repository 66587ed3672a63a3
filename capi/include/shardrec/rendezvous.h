/* How processes meet: a small server in one of them, and a token that tells the others where it is.
 *
 *   shardrec_rendezvous_create(NULL, &meeting);            in one process, rank 0's as a rule
 *   shardrec_rendezvous_token(meeting, &token);            travels to all ranks over the host's own
 * channel
 *   shardrec_comm_create(SHARDREC_ENGINE_GLOO, rank, size, token, NULL, &comm);       on all ranks
 *
 * One rendezvous brings one group together, and watches it: a rank whose process ends is lost to the
 * others at once, one that is silent for SILENCE_SECONDS (4 by default) after that time. The end
 * of the rendezvous' own process is the loss of rank 0, also to ranks that come only then: who finds
 * nobody listening at a token's address for half a second, or gets no answer for 4, does not wait for
 * one (a tunnel on the way has to be there first). Ranks without a token, which rank 0's address has to
 * do for, wait longer: shardrec_comm_create_from_env.
 *
 * Who connects must prove that it knows the token's secret, which itself never travels (HMAC-SHA256
 * of nonces of both ends), before anything else it sends is looked at; what one that cannot takes of
 * memory and time is bounded. What ranks send afterwards is clear text: by default the rendezvous can
 * be reached from this machine only. For several machines, set ADDRESS, SECRET and ALLOW_PLAIN_TCP
 * (options.h) on a network that you trust, or use a tunnel.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_RENDEZVOUS_H
#define SHARDREC_RENDEZVOUS_H

#include "shardrec/options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Any thread. */
typedef struct shardrec_rendezvous shardrec_rendezvous;

/* Starts the server: a thread and a listening socket. Does not wait for ranks.
 * options: kind RENDEZVOUS or NULL (this machine only, a free port, a random secret). out: owned by
 * the caller. Errors: INVALID_ARGUMENT (also: ADDRESS is not of this machine; it can be reached from
 * others and SECRET or ALLOW_PLAIN_TCP is not set), INVALID_STATE (the port is taken), INVALID_HANDLE,
 * CLOSED, BUSY for options, IO_ERROR, OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_rendezvous_create(SHARDREC_OPTIONS(RENDEZVOUS)
                                                        const shardrec_options *options,
                                                        shardrec_rendezvous **out);

/* What a rank needs to join: at most 512 bytes of printable ASCII without spaces. It holds the secret:
 * treat it as one. out_text: freed by the caller with shardrec_text_free.
 * Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_rendezvous_token(const shardrec_rendezvous *rendezvous,
                                                       char **out_text);

/* Destroys the handle and nulls the caller's copy. Communicators of this process that were made with
 * its token keep the server. Without such, it ends within a second: ranks of other processes that
 * have not closed their communicators take rank 0 for lost. Since 0.1. */
SHARDREC_API void shardrec_rendezvous_destroy(SHARDREC_NULLABLE shardrec_rendezvous **rendezvous);

#ifdef __cplusplus
}
#endif
#endif
