/* libshardrec: train recommendation models whose embedding tables are larger than one device.
 *
 * The umbrella header. Read in this order: status.h (errors), comm.h (ranks), model.h (tables and
 * features), plan.h (what lives where), collection.h (the tables), lookup.h (a step); for the dense
 * half ddp.h, layers.h, metrics.h; to save checkpoint.h, to serve scorer.h.
 *
 * Conventions
 * - Handles are opaque tickets: any value may be passed, and a bad one is INVALID_HANDLE or CLOSED,
 *   never a crash. A handle from an out-parameter is owned by the caller, who destroys it once;
 *   destroy nulls the caller's copy, waits for no other rank, takes part in no collective call, and may come
 *   in any order. It returns at once, but for what a device was given to do (lookup.h, memory.h) and for
 *   connections between processes, which can take a second (comm.h). A call in progress on a handle that is
 *   destroyed returns as if it had not been, or with CLOSED.
 * - No handle belongs to a thread. A handle documented as "one thread at a time" returns BUSY to a
 *   second one.
 * - Text is UTF-8; names that contain NUL cannot be passed. Text comes back as char **, freed with
 *   shardrec_text_free. An out-parameter is written only when the status is OK.
 * - Documents in JSON have a field "version", which is 1 where no other number is given; models, plans and
 *   topologies have it at the end of "format". Later releases add fields; where one changes its meaning or
 *   goes, the number grows. Readers skip fields that they do not know; calls that read a document refuse one
 *   of a later version, and models, plans and topologies with unknown keys. Fields are listed beside the
 *   functions, by path, with type and unit: [] stands for the members of an array; "optional" ones may be
 *   left out.
 * - Counters, phases and events have the names of capi/NAMES.md.
 * - Pointers must not be NULL unless they are annotated as SHARDREC_NULLABLE or are options (annotations.h).
 * - No exception, signal, abort or exit crosses this border, and nothing is written to stdout or
 *   stderr. After fork, a child must not use handles made before it: every call on one returns INVALID_STATE.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_SHARDREC_H
#define SHARDREC_SHARDREC_H

#include "shardrec/annotations.h"
#include "shardrec/export.h"
#include "shardrec/status.h"
#include "shardrec/library.h"
#include "shardrec/log.h"
#include "shardrec/control.h"
#include "shardrec/tensor.h"
#include "shardrec/memory.h"
#include "shardrec/options.h"
#include "shardrec/rendezvous.h"
#include "shardrec/comm.h"
#include "shardrec/mesh.h"
#include "shardrec/model.h"
#include "shardrec/plan.h"
#include "shardrec/collection.h"
#include "shardrec/batch.h"
#include "shardrec/lookup.h"
#include "shardrec/ddp.h"
#include "shardrec/fsdp.h"
#include "shardrec/layers.h"
#include "shardrec/checkpoint.h"
#include "shardrec/scorer.h"
#include "shardrec/metrics.h"
#include "shardrec/observe.h"
#include "shardrec/probe.h"

#endif
