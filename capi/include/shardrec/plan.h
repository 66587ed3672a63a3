/* Topologies and plans: which box of which table lives on which rank.
 *
 * A plan cuts each table into boxes (a range of rows x a range of columns), each owned by one rank,
 * or replicates it on all ranks. Any tiling by rectangles is legal, also with several boxes of a
 * table on one rank. All ranks have the same plan.
 *
 * The named kinds of sharding, for N ranks of which G are one node:
 *   table_wise         one box; tables by falling bytes, each to the rank with the fewest bytes so far
 *   row_wise           ceil(rows / N) rows each in rank order, the last short, empty boxes left out
 *   column_wise        as many near-equal widths as ranks, multiples of 4 where dim >= 4 N; where dim < N
 *                      single columns, on the ranks with the fewest bytes so far
 *   table_row_wise     a node as table_wise takes a rank (by bytes per rank); its ranks as row_wise
 *   table_column_wise  a node as table_wise takes a rank; its ranks as column_wise
 *   grid               columns over the nodes as column_wise, rows over the ranks inside as row_wise
 *   data_parallel      replicated on all ranks (option REPLICATION)
 *   mixed              table i takes kind 1 + i mod 7 of these
 *   auto               small tables (up to 64 KiB) replicated; tables up to an even share of the
 *                      bytes table_wise; larger ones row_wise
 * With option BALANCE set to TIME, bytes (but for the 64 KiB) are expected time in all of these.
 *
 * A table's options limit what plans make of it; boxes that are given (shardrec_plan_add_box,
 * shardrec_plan_from_json) are not limited.
 *   ALLOWED_SHARDING   mixed: the next allowed kind in its order, going round; auto: the first allowed
 *                      one of table_wise, row_wise, table_row_wise, column_wise, table_column_wise,
 *                      grid, for larger tables of row_wise, table_row_wise, grid, column_wise,
 *                      table_column_wise, table_wise, then data_parallel; a named kind that is not
 *                      allowed is INVALID_ARGUMENT
 *   ALLOWED_RANKS      N ranks, nodes and their ranks above are those of them that are allowed; none
 *                      of the topology: INVALID_ARGUMENT
 *   MIN_COLUMNS        cuts of columns have as many parts as leave each that many columns; where that
 *                      is fewer than ranks (grid: nodes), those with the fewest bytes so far take them
 *
 * Thread rule: one thread at a time per handle, else BUSY.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_PLAN_H
#define SHARDREC_PLAN_H

#include "shardrec/comm.h"
#include "shardrec/control.h"
#include "shardrec/mesh.h"
#include "shardrec/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shardrec_topology shardrec_topology;
typedef struct shardrec_plan shardrec_plan;

/* What the machines are: `ranks` ranks, ranks_per_node of which are one node.
 * ranks in [1, 1048576], ranks_per_node in [1, ranks]. options: NULL (no kind of options is for topologies
 * yet). out: owned by the caller.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_topology_create(int32_t ranks, int32_t ranks_per_node,
                                                      SHARDREC_OPTIONS(NONE)
                                                      const shardrec_options *options,
                                                      shardrec_topology **out);

/* Destroys the handle and nulls the caller's copy. Since 0.1. */
SHARDREC_API void shardrec_topology_destroy(SHARDREC_NULLABLE shardrec_topology **topology);

/* The topology as JSON: {"format": "shardrec-topology-1", "ranks": 4, "ranks_per_node": 2}.
 *   "format"                    text: "shardrec-topology-1"
 *   "ranks", "ranks_per_node"   integer
 * out_text: freed by the caller with shardrec_text_free. Errors: INVALID_HANDLE, CLOSED, BUSY,
 * INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_topology_to_json(const shardrec_topology *topology,
                                                       char **out_text);

/* Makes a topology from such JSON, within the limits of shardrec_topology_create. All keys are
 * needed, unknown ones are refused, and so is a format of a later version. out: owned by the caller.
 * Errors: INVALID_ARGUMENT (the sentence says where), OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_topology_from_json(const char *json, shardrec_topology **out);

/* Plans the model on a topology. Local; deterministic, with BALANCE set to TIME for one machine's
 * profile. options: kind PLAN or NULL.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_plan_create(const shardrec_model *model,
                                                  const shardrec_topology *topology,
                                                  SHARDREC_OPTIONS(PLAN)
                                                  const shardrec_options *options,
                                                  shardrec_plan **out);

/* Plans the model on the ranks of a communicator: rank 0 plans, every rank gets its plan, after a
 * check that models and options are the same.
 * mesh: NULL, or a mesh of comm: the plan is for the ranks of a sharding group, the same on all ranks. AUTO
 * and MIXED then replicate only tables that may not be cut, for a replicated table makes all sharding groups
 * wait for each other in every step (mesh.h). What one rank gets wrong in its arguments,
 * but for comm, every rank gets as its error; the communicator lives on, and the call may be made again.
 * Collective, blocking (setup deadline). Errors: as shardrec_plan_create; INVALID_ARGUMENT (also: a mesh of
 * another communicator), DISAGREEMENT (models or options differ; names a rank and
 * the first difference), MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_plan_collective(
    shardrec_comm *comm, SHARDREC_NULLABLE shardrec_mesh *mesh, const shardrec_model *model,
    SHARDREC_OPTIONS(PLAN) const shardrec_options *options, shardrec_plan **out);

/* Makes a plan without boxes, to be filled with shardrec_plan_add_box and shardrec_plan_replicate.
 * options: NULL (no kind of options is for such plans yet). Errors: as shardrec_plan_create. Since 0.1. */
SHARDREC_API shardrec_status shardrec_plan_create_empty(const shardrec_model *model,
                                                        const shardrec_topology *topology,
                                                        SHARDREC_OPTIONS(NONE)
                                                        const shardrec_options *options,
                                                        shardrec_plan **out);

/* A box: rows [row, row + rows) x columns [col, col + cols) of a table, owned by a rank. Its bytes are what a
 * collection allocates for it on its rank, buffers aside; shardrec_plan_add_box does not read them. */
typedef struct shardrec_box {
  int64_t struct_size; /* sizeof(shardrec_box), set by the caller */
  int32_t rank;
  int32_t reserved; /* 0 */
  int64_t row;
  int64_t rows;
  int64_t col;
  int64_t cols;
  SHARDREC_FILLED int64_t weight_bytes; /* rows x cols x the dtype's size */
  SHARDREC_FILLED int64_t
      state_bytes; /* of optimizer states, float32: per element, or one per row of
                                           the box; boxes of one row range on one rank share the latter
                                           where ROW_STATISTICS is ROW, and it counts with the first of
                                           them */
} shardrec_box;

/* Adds a box of a table. It is read during the call.
 * Errors: INVALID_HANDLE, CLOSED, BUSY; INVALID_ARGUMENT when the box is empty, leaves the table,
 * overlaps another box, or the table is replicated; UNSUPPORTED (members that this release does not know
 * are not zero), OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_plan_add_box(shardrec_plan *plan, int32_t table,
                                                   const shardrec_box *box);

/* Replicates a table on all ranks, which learn of each other's gradients in the way that replication
 * says; of a table that is replicated already, this sets the way. Errors: INVALID_HANDLE, CLOSED, BUSY;
 * INVALID_ARGUMENT (the table has boxes; not SAMPLES, ROWS or DENSE). Since 0.2. */
SHARDREC_API shardrec_status shardrec_plan_replicate(shardrec_plan *plan, int32_t table,
                                                     shardrec_replication replication);

/* Destroys the handle and nulls the caller's copy. Since 0.1. */
SHARDREC_API void shardrec_plan_destroy(SHARDREC_NULLABLE shardrec_plan **plan);

/* Checks that every cell of every table has exactly one owner, or its table is replicated. (Creating a
 * collection does it too.) Errors: INVALID_HANDLE, CLOSED, BUSY; INVALID_ARGUMENT naming a table
 * and a cell that has none. Since 0.1. */
SHARDREC_API shardrec_status shardrec_plan_check(const shardrec_plan *plan);

/* Number of boxes of a table; 0: replicated (or, before the check, none yet).
 * Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND (table), INVALID_ARGUMENT. Since 0.1. */
SHARDREC_API shardrec_status shardrec_plan_box_count(const shardrec_plan *plan, int32_t table,
                                                     int32_t *out);

/* Box `box` of a table, ordered by first row, then first column. Of a replicated table box 0 stands for the
 * copy that each rank has: all rows and columns, rank -1. out: its struct_size is set; the members that fit
 * in it are written.
 * Errors: as shardrec_plan_box_count (NOT_FOUND: box too). Since 0.1. */
SHARDREC_API shardrec_status shardrec_plan_box(const shardrec_plan *plan, int32_t table,
                                               int32_t box, shardrec_box *out);

/* The plan as JSON:
 *   {"format": "shardrec-plan-1", "ranks": 4, "ranks_per_node": 2,
 *    "tables": [{"name": "user", "rows": 943, "dim": 64, "replicated": false,
 *                "boxes": [{"rank": 0, "row": 0, "rows": 472, "col": 0, "cols": 64}]}]}
 *   "format"                    text: "shardrec-plan-1"
 *   "ranks", "ranks_per_node"   integer: of its topology
 *   "tables[].name"             text
 *   "tables[].rows", "tables[].dim"                             integer
 *   "tables[].replicated"       boolean
 *   "tables[].replication"      optional text: of replicated tables, "samples", "rows" or "dense"
 *   "tables[].boxes[].rank", "tables[].boxes[].row", "tables[].boxes[].rows"    integer
 *   "tables[].boxes[].col", "tables[].boxes[].cols"             integer
 * out_text: freed by the caller. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT,
 * OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_plan_to_json(const shardrec_plan *plan, char **out_text);

/* The plan as an aligned table for people: a line per table (rows, dim, bytes of weights and
 * of optimizer states on all ranks together, kind of sharding, number of boxes, ranks), then the bytes
 * of each rank. At most 40 tables and 40 ranks are listed.
 * As shardrec_plan_to_json. Since 0.1. */
SHARDREC_API shardrec_status shardrec_plan_to_text(const shardrec_plan *plan, char **out_text);

/* Makes a plan for a model from such JSON; tables are matched by name and must agree in rows and dim.
 * Unknown keys are refused, and so is a format of a later version; the tiling is checked. Errors:
 * INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_plan_from_json(const shardrec_model *model, const char *json,
                                                     shardrec_plan **out);

#ifdef __cplusplus
}
#endif
#endif
