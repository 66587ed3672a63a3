#include "shardrec/collection.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "embedding/rows/row_list.h"
#include "embedding/rows/rows.h"
#include "guard.h"
#include "objects/collection_object.h"
#include "objects/mesh_object.h"
#include "objects/model_object.h"
#include "options.h"

namespace shardrec::capi {

embedding::CollectionOptions collection_options(const shardrec_options* handle) {
  const Options options = read_options(handle, SHARDREC_OPTIONS_COLLECTION);
  embedding::CollectionOptions out;
  out.seed = options.i64(SHARDREC_OPTION_SEED);
  out.threads = static_cast<int>(options.find_i64(SHARDREC_OPTION_THREADS).value_or(0));
  out.divisor = options.choice<shardrec_divisor>(SHARDREC_OPTION_GRADIENT_DIVISOR);
  out.divisor_value = options.f64(SHARDREC_OPTION_GRADIENT_DIVISOR_VALUE);
  out.output_dtype = options.choice<shardrec_dtype>(SHARDREC_OPTION_OUTPUT_DTYPE);
  out.forward_compression =
      options.choice<shardrec_compression>(SHARDREC_OPTION_FORWARD_COMPRESSION);
  out.backward_compression =
      options.choice<shardrec_compression>(SHARDREC_OPTION_BACKWARD_COMPRESSION);
  out.non_finite = options.choice<shardrec_non_finite>(SHARDREC_OPTION_NON_FINITE);
  out.replica_sync = options.choice<shardrec_replica_sync>(SHARDREC_OPTION_REPLICA_SYNC);
  out.sync_every = options.i64(SHARDREC_OPTION_SYNC_EVERY);
  out.lookups = static_cast<int>(options.i64(SHARDREC_OPTION_LOOKUPS));
  out.device = static_cast<int32_t>(options.i64(SHARDREC_OPTION_DEVICE));
  if (out.device >= 0) out.backend = "cuda";
  const auto wait = options.choice<shardrec_device_wait>(SHARDREC_OPTION_DEVICE_WAIT);
  if (wait == SHARDREC_DEVICE_WAIT_SPIN) out.device_wait = compute::HostWait::kSpin;
  if (const auto deduplicate = options.find_i64(SHARDREC_OPTION_DEDUPLICATE)) {
    out.deduplicate = *deduplicate != 0;
  }
  if (const auto hierarchical = options.find_i64(SHARDREC_OPTION_HIERARCHICAL)) {
    out.hierarchical = *hierarchical != 0;
  }
  return out;
}

namespace {

constexpr comm::Operation kCreate{.name = "collection_create",
                                  .kind = static_cast<uint32_t>(CommCall::kCollectionCreate),
                                  .detail = 0,
                                  .deadline_kind = comm::DeadlineKind::kSetup};

// What a rank brings to shardrec_collection_create. Copies: the collective part must not keep other threads
// from the caller's handles.
struct CollectionRequest {
  std::optional<training::Mesh> groups;
  plan::Model model;
  plan::Plan plan;
  embedding::CollectionOptions options;
};

CollectionRequest read_request(const Use<shardrec_comm>& use, shardrec_mesh* mesh,
                               const shardrec_model* model, const shardrec_plan* plan,
                               const shardrec_options* options) {
  CollectionRequest request;
  request.groups = groups_of(use, mesh);
  request.options = collection_options(options);
  request.model = *enter(model, Access::kExclusive);
  request.plan = enter(plan, Access::kExclusive)->plan();
  return request;
}

std::shared_ptr<training::Tables> make_tables(const Use<shardrec_comm>& use,
                                              CollectionRequest& request) {
  const auto& world = use->membership->share();
  if (!request.groups) {
    return std::make_shared<training::Tables>(world, request.model, request.plan, request.options);
  }
  if (request.options.threads == 0) request.options.threads = world->default_threads();
  return std::make_shared<training::Tables>(world, *request.groups, use->collectives, kCreate,
                                            request.model, request.plan, request.options);
}

// The matrix of a read or a write; none is needed for no rows.
core::Matrix rows_view(const embedding::Collection& collection, const embedding::RowRange& range,
                       const shardrec_tensor* tensor, const char* name) {
  const int64_t width = embedding::row_width(collection, range);
  if (range.rows == 0 && tensor == nullptr) return {};
  return core::matrix_view(tensor, name, range.rows, width);
}

// The ids of a list; NULL: none.
embedding::RowList row_list(int32_t table, shardrec_table_part part, const shardrec_tensor* ids) {
  embedding::RowList list{table, part, {nullptr, 0, SHARDREC_INT64}};
  if (ids != nullptr) list.ids = core::id_view(ids, "ids");
  return list;
}

// The matrix of a read or a write of a list; none is needed for no ids.
core::Matrix rows_view(const embedding::Collection& collection, const embedding::RowList& list,
                       const shardrec_tensor* tensor, const char* name) {
  const int64_t width = embedding::row_width(collection, list);
  if (list.ids.size == 0 && tensor == nullptr) return {};
  return core::matrix_view(tensor, name, list.ids.size, width);
}

void require_learning_rate(double learning_rate) {
  if (!(learning_rate >= 0) || learning_rate > 3.4e38) {
    refuse_value("learning_rate", learning_rate, "a finite number of at least 0");
  }
}

void require_table(const embedding::Collection& collection, int32_t table) {
  const auto tables = static_cast<int64_t>(collection.model().tables.size());
  if (table < 0 || table >= tables) {
    core::fail(SHARDREC_NOT_FOUND,
               core::sentence("table ", table, " does not exist: the model has ", tables),
               {.value = int64_t{table}, .limit = tables});
  }
}

// A row of a table, or the one behind its last.
void require_row(const embedding::Collection& collection, int32_t table, int64_t row) {
  require_table(collection, table);
  const int64_t rows = collection.model().tables[static_cast<size_t>(table)].rows;
  if (row >= 0 && row <= rows) return;
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence("row is ", row, "; 0 to ", rows, ", the rows of table ", table,
                            ", is accepted"),
             {.value = row, .limit = rows});
}

double count_of(const embedding::TableCounters& counters, shardrec_stat stat) {
  switch (stat) {
    case SHARDREC_STAT_TABLE_OUT_OF_RANGE:
      return static_cast<double>(counters.ids_out_of_range);
    case SHARDREC_STAT_TABLE_IDS:
      return static_cast<double>(counters.ids_looked_up);
    case SHARDREC_STAT_TABLE_NON_FINITE:
      return static_cast<double>(counters.non_finite);
    default:
      return static_cast<double>(counters.rows_updated);
  }
}

// Of all tables where table is SHARDREC_ALL_TABLES.
double table_count(embedding::Collection& tables, shardrec_stat stat, int32_t table) {
  if (table != SHARDREC_ALL_TABLES) return count_of(tables.table_counters(table), stat);
  double sum = 0;
  const auto count = static_cast<int32_t>(tables.model().tables.size());
  for (int32_t each = 0; each < count; ++each) sum += count_of(tables.table_counters(each), stat);
  return sum;
}

double rank_stat(embedding::Collection& tables, shardrec_stat stat) {
  const embedding::Counters& counters = tables.counters();
  const auto whole = [](int64_t count) { return static_cast<double>(count); };
  switch (stat) {
    case SHARDREC_STAT_STEPS:
      return whole(tables.step());
    case SHARDREC_STAT_BYTES_TABLES:
      return whole(tables.table_bytes());
    case SHARDREC_STAT_BYTES_BUFFERS:
      return whole(counters.buffer_bytes->load(std::memory_order_relaxed));
    case SHARDREC_STAT_BYTES_INPUT:
      return whole(counters.bytes_input);
    case SHARDREC_STAT_BYTES_OUTPUT:
      return whole(counters.bytes_output);
    case SHARDREC_STAT_BYTES_GRADIENT:
      return whole(counters.bytes_gradient);
    case SHARDREC_STAT_IDS_SENT:
      return whole(counters.ids_sent);
    case SHARDREC_STAT_IDS_RECEIVED:
      return whole(counters.ids_received);
    case SHARDREC_STAT_THREADS_SEEN:
      return whole(tables.threads().most_seen());
    case SHARDREC_STAT_SATURATED:
      return whole(counters.saturated);
    case SHARDREC_STAT_BYTES_SYNC:
      return whole(counters.bytes_sync);
    case SHARDREC_STAT_ROWS_SYNCED:
      return whole(counters.rows_synced);
    case SHARDREC_STAT_IMBALANCE:
      return counters.imbalance();
    default:
      refuse_value("stat", int64_t{stat},
                   "SHARDREC_STAT_STEPS (1) to ROWS_SYNCED (12), SECONDS_ROUTE (101) to IMBALANCE "
                   "(109) or TABLE_OUT_OF_RANGE (201) to TABLE_NON_FINITE (204)");
  }
}

double stat_of(embedding::Collection& tables, shardrec_stat stat, int32_t table) {
  if (stat >= SHARDREC_STAT_TABLE_OUT_OF_RANGE && stat <= SHARDREC_STAT_TABLE_NON_FINITE) {
    return table_count(tables, stat, table);
  }
  if (table != SHARDREC_ALL_TABLES) {
    refuse_value("table", int64_t{table},
                 "SHARDREC_ALL_TABLES (-1), for what is not counted by table,");
  }
  const int64_t phase = int64_t{stat} - SHARDREC_STAT_SECONDS_ROUTE;
  if (phase >= 0 && phase < static_cast<int64_t>(embedding::kPhases)) {
    tables.counters().start_clock();
    return tables.counters().seconds(static_cast<size_t>(phase));
  }
  return rank_stat(tables, stat);
}

// A call on the tables that is collective over the mesh.
template <class Body>
shardrec_status on_replicas(shardrec_collection* collection, Body body) {
  return guard([&] {
    const auto use = enter(collection, Access::kExclusive);
    use->membership->require_open();
    body(*use->tables);
  });
}

}  // namespace
}  // namespace shardrec::capi

using namespace shardrec;  // NOLINT(google-build-using-namespace): the C functions live outside
using namespace shardrec::capi;  // NOLINT(google-build-using-namespace)

shardrec_status shardrec_collection_create(shardrec_comm* comm, shardrec_mesh* mesh,
                                           const shardrec_model* model, const shardrec_plan* plan,
                                           const shardrec_options* options,
                                           shardrec_collection** out) {
  return guard([&] {
    const auto use = enter(comm, Access::kExclusive);
    collective_call(use, "collection_create", [&] {
      CollectionRequest own;
      std::optional<Reserved<shardrec_collection>> reserved;
      comm::agree_on_same(use->collectives, kCreate, [&] {
        require_out(out, "out");
        own = read_request(use, mesh, model, plan, options);
        reserved.emplace();
        return std::vector<comm::SharedValue>{{"mesh (NULL or given)", own.groups.has_value()}};
      });
      auto object = std::make_shared<CollectionObject>(use->membership);
      object->set_tables(make_tables(use, own));
      reserved->publish(out, std::move(object));
    });
  });
}

void shardrec_collection_destroy(shardrec_collection** collection) { destroy(collection); }

shardrec_status shardrec_collection_model(const shardrec_collection* collection,
                                          shardrec_model** out) {
  return guard([&] {
    const auto use = enter(collection, Access::kShared);
    require_out(out, "out");
    create(out, std::make_shared<plan::Model>(use->collection().model()));
  });
}

shardrec_status shardrec_collection_plan(const shardrec_collection* collection,
                                         shardrec_plan** out) {
  return guard([&] {
    const auto use = enter(collection, Access::kShared);
    require_out(out, "out");
    create(out, std::make_shared<PlanObject>(plan::PlannedModel{.model = use->collection().model(),
                                                                .plan = use->tables->plan()}));
  });
}

shardrec_status shardrec_collection_step(const shardrec_collection* collection, int64_t* out) {
  return guard([&] {
    require_out(out, "out");
    *out = enter(collection, Access::kShared)->collection().step();
  });
}

shardrec_status shardrec_collection_wait_device(shardrec_collection* collection) {
  return guard([&] { enter(collection, Access::kExclusive)->collection().synchronize(); });
}

shardrec_status shardrec_collection_sync_replicas(shardrec_collection* collection) {
  return on_replicas(collection, [](training::Tables& tables) { tables.sync(); });
}

shardrec_status shardrec_collection_sync_begin(shardrec_collection* collection) {
  return on_replicas(collection, [](training::Tables& tables) { tables.sync_begin(); });
}

shardrec_status shardrec_collection_sync_wait(shardrec_collection* collection) {
  return on_replicas(collection, [](training::Tables& tables) { tables.sync_wait(); });
}

shardrec_status shardrec_collection_check_replicas(shardrec_collection* collection) {
  return on_replicas(collection, [](training::Tables& tables) { tables.check_replicas(); });
}

shardrec_status shardrec_collection_replica_fill(shardrec_collection* collection, int32_t replica) {
  return on_replicas(collection, [&](training::Tables& tables) { tables.fill_replicas(replica); });
}

shardrec_status shardrec_collection_continue_from(shardrec_collection* collection,
                                                  shardrec_collection* from) {
  return guard([&] {
    if (from != nullptr && from == collection) {
      core::fail(SHARDREC_INVALID_ARGUMENT, "from is the collection itself");
    }
    const auto use = enter(collection, Access::kExclusive);
    use->membership->require_open();
    if (from == nullptr) return use->tables->continue_from(nullptr);
    const auto earlier = enter(from, Access::kExclusive);
    use->tables->continue_from(earlier->tables.get());
  });
}

shardrec_status shardrec_collection_set_learning_rate(shardrec_collection* collection,
                                                      int32_t table, double learning_rate) {
  return guard([&] {
    const auto use = enter(collection, Access::kExclusive);
    if (table != SHARDREC_ALL_TABLES) require_table(use->collection(), table);
    require_learning_rate(learning_rate);
    if (table == SHARDREC_ALL_TABLES) {
      use->collection().settings().set_learning_rate(learning_rate);
    } else {
      use->collection().settings().set_learning_rate(table, learning_rate);
    }
  });
}

shardrec_status shardrec_collection_learning_rate(const shardrec_collection* collection,
                                                  int32_t table, double* out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(collection, Access::kExclusive);
    require_table(use->collection(), table);
    *out = use->collection().settings().learning_rate(table);
  });
}

shardrec_status shardrec_collection_frozen(const shardrec_collection* collection, int32_t table,
                                           int32_t* out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(collection, Access::kExclusive);
    require_table(use->collection(), table);
    *out = use->collection().settings().frozen(table) ? 1 : 0;
  });
}

shardrec_status shardrec_collection_set_frozen(shardrec_collection* collection, int32_t table,
                                               int32_t frozen) {
  return guard([&] {
    const auto use = enter(collection, Access::kExclusive);
    require_table(use->collection(), table);
    if (frozen != 0 && frozen != 1) refuse_value("frozen", int64_t{frozen}, "0 or 1");
    use->collection().settings().set_frozen(table, frozen == 1);
  });
}

shardrec_status shardrec_collection_set_step(shardrec_collection* collection, int64_t step) {
  return guard([&] {
    const auto use = enter(collection, Access::kExclusive);
    if (step < 0) refuse_value("step", step, "0 or more");
    use->collection().set_step(step);
  });
}

shardrec_status shardrec_collection_read_range(shardrec_collection* collection, int32_t table,
                                               shardrec_table_part part, int64_t row, int64_t rows,
                                               const shardrec_tensor* out) {
  return guard([&] {
    const auto use = enter(collection, Access::kExclusive);
    use->membership->require_open();
    const embedding::RowRange range{table, part, row, rows};
    embedding::read_rows(use->collection(), range, rows_view(use->collection(), range, out, "out"));
  });
}

shardrec_status shardrec_collection_write_range(shardrec_collection* collection, int32_t table,
                                                shardrec_table_part part, int64_t row, int64_t rows,
                                                const shardrec_tensor* values) {
  return guard([&] {
    const auto use = enter(collection, Access::kExclusive);
    use->membership->require_open();
    use->tables->require_no_sync("write_range");
    const embedding::RowRange range{table, part, row, rows};
    embedding::write_rows(use->collection(), range,
                          rows_view(use->collection(), range, values, "values"));
  });
}

shardrec_status shardrec_collection_read_rows(shardrec_collection* collection, int32_t table,
                                              shardrec_table_part part, const shardrec_tensor* ids,
                                              const shardrec_tensor* out) {
  return guard([&] {
    const auto use = enter(collection, Access::kExclusive);
    use->membership->require_open();
    const embedding::RowList list = row_list(table, part, ids);
    embedding::read_rows(use->collection(), list, rows_view(use->collection(), list, out, "out"));
  });
}

shardrec_status shardrec_collection_write_rows(shardrec_collection* collection, int32_t table,
                                               shardrec_table_part part, const shardrec_tensor* ids,
                                               const shardrec_tensor* values) {
  return guard([&] {
    const auto use = enter(collection, Access::kExclusive);
    use->membership->require_open();
    use->tables->require_no_sync("write_rows");
    const embedding::RowList list = row_list(table, part, ids);
    embedding::write_rows(use->collection(), list,
                          rows_view(use->collection(), list, values, "values"));
  });
}

shardrec_status shardrec_collection_mark(shardrec_collection* collection, int64_t* out_mark) {
  return guard([&] {
    require_out(out_mark, "out_mark");
    const auto use = enter(collection, Access::kExclusive);
    *out_mark = use->marks.make(use->collection());
  });
}

shardrec_status shardrec_collection_changed_rows(shardrec_collection* collection, int64_t mark,
                                                 int32_t table, int64_t row,
                                                 const shardrec_tensor* rows, int64_t* out_count) {
  return guard([&] {
    require_out(out_count, "out_count");
    const auto use = enter(collection, Access::kExclusive);
    require_row(use->collection(), table, row);
    if (rows == nullptr) {
      *out_count = use->marks.count(use->collection(), mark, table, row);
      return;
    }
    const auto numbers = core::vector_view<int64_t>(rows, "rows");
    *out_count =
        static_cast<int64_t>(use->marks.list(use->collection(), mark, table, row, numbers));
  });
}

shardrec_status shardrec_collection_release_mark(shardrec_collection* collection, int64_t mark) {
  return guard([&] { enter(collection, Access::kExclusive)->marks.release(mark); });
}

shardrec_status shardrec_collection_stat(const shardrec_collection* collection, shardrec_stat stat,
                                         int32_t table, double* out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(collection, Access::kShared);
    if (table != SHARDREC_ALL_TABLES) require_table(use->collection(), table);
    *out = stat_of(use->collection(), stat, table);
  });
}
