#include "shardrec/collection.h"

#include "core/tensor.h"
#include "embedding/rows/row_list.h"
#include "embedding/rows/rows.h"
#include "guard.h"
#include "objects/collection_object.h"
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
  out.lookups = static_cast<int>(options.i64(SHARDREC_OPTION_LOOKUPS));
  out.device = static_cast<int32_t>(options.i64(SHARDREC_OPTION_DEVICE));
  if (out.device >= 0) out.backend = "cuda";
  if (const auto deduplicate = options.find_i64(SHARDREC_OPTION_DEDUPLICATE)) {
    out.deduplicate = *deduplicate != 0;
  }
  if (const auto hierarchical = options.find_i64(SHARDREC_OPTION_HIERARCHICAL)) {
    out.hierarchical = *hierarchical != 0;
  }
  return out;
}

namespace {

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

}  // namespace
}  // namespace shardrec::capi

using namespace shardrec;  // NOLINT(google-build-using-namespace): the C functions live outside
using namespace shardrec::capi;  // NOLINT(google-build-using-namespace)

shardrec_status shardrec_collection_create(shardrec_comm* comm, const shardrec_model* model,
                                           const shardrec_plan* plan,
                                           const shardrec_options* options,
                                           shardrec_collection** out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(comm, Access::kExclusive);
    collective_call(use, "collection_create", [&] {
      const embedding::CollectionOptions settings = collection_options(options);
      // Copies: the collective part must not keep other threads from the caller's handles.
      const plan::Model tables = *enter(model, Access::kExclusive);
      const plan::Plan boxes = enter(plan, Access::kExclusive)->plan;
      Reserved<shardrec_collection> reserved;
      // Before the collective part: what fails behind it fails on this rank alone.
      auto object = std::make_shared<CollectionObject>(use->membership);
      object->set_tables(
          std::make_unique<training::Tables>(use->membership->share(), tables, boxes, settings));
      reserved.publish(out, std::move(object));
    });
  });
}

void shardrec_collection_destroy(shardrec_collection** collection) { destroy(collection); }

shardrec_status shardrec_collection_step(const shardrec_collection* collection, int64_t* out) {
  return guard([&] {
    require_out(out, "out");
    *out = enter(collection, Access::kShared)->collection().step();
  });
}

shardrec_status shardrec_collection_synchronize(shardrec_collection* collection) {
  return guard([&] { enter(collection, Access::kExclusive)->collection().synchronize(); });
}

shardrec_status shardrec_collection_set_learning_rate(shardrec_collection* collection,
                                                      double learning_rate) {
  return guard([&] {
    const auto use = enter(collection, Access::kExclusive);
    require_learning_rate(learning_rate);
    use->collection().settings().set_learning_rate(learning_rate);
  });
}

shardrec_status shardrec_collection_set_table_learning_rate(shardrec_collection* collection,
                                                            int32_t table, double learning_rate) {
  return guard([&] {
    const auto use = enter(collection, Access::kExclusive);
    require_table(use->collection(), table);
    require_learning_rate(learning_rate);
    use->collection().settings().set_learning_rate(table, learning_rate);
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

shardrec_status shardrec_collection_read(shardrec_collection* collection, int32_t table,
                                         shardrec_table_part part, int64_t row, int64_t rows,
                                         const shardrec_tensor* out) {
  return guard([&] {
    const auto use = enter(collection, Access::kExclusive);
    use->membership->require_open();
    const embedding::RowRange range{table, part, row, rows};
    embedding::read_rows(use->collection(), range, rows_view(use->collection(), range, out, "out"));
  });
}

shardrec_status shardrec_collection_write(shardrec_collection* collection, int32_t table,
                                          shardrec_table_part part, int64_t row, int64_t rows,
                                          const shardrec_tensor* values) {
  return guard([&] {
    const auto use = enter(collection, Access::kExclusive);
    use->membership->require_open();
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
    const embedding::RowList list = row_list(table, part, ids);
    embedding::write_rows(use->collection(), list,
                          rows_view(use->collection(), list, values, "values"));
  });
}

shardrec_status shardrec_collection_stat_i64(const shardrec_collection* collection,
                                             shardrec_collection_stat stat, int64_t* out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(collection, Access::kShared);
    const embedding::Collection& tables = use->collection();
    const embedding::Counters& counters = tables.counters();
    switch (stat) {
      case SHARDREC_STAT_STEPS:
        *out = tables.step();
        return;
      case SHARDREC_STAT_BYTES_TABLES:
        *out = tables.table_bytes();
        return;
      case SHARDREC_STAT_BYTES_BUFFERS:
        *out = counters.buffer_bytes->load(std::memory_order_relaxed);
        return;
      case SHARDREC_STAT_BYTES_INPUT:
        *out = counters.bytes_input;
        return;
      case SHARDREC_STAT_BYTES_OUTPUT:
        *out = counters.bytes_output;
        return;
      case SHARDREC_STAT_BYTES_GRADIENT:
        *out = counters.bytes_gradient;
        return;
      case SHARDREC_STAT_IDS_SENT:
        *out = counters.ids_sent;
        return;
      case SHARDREC_STAT_IDS_RECEIVED:
        *out = counters.ids_received;
        return;
      case SHARDREC_STAT_THREADS_SEEN:
        *out = tables.threads().most_seen();
        return;
      default:
        refuse_value("stat", int64_t{stat}, "SHARDREC_STAT_STEPS (1) to THREADS_SEEN (9)");
    }
  });
}

shardrec_status shardrec_collection_table_stat_i64(const shardrec_collection* collection,
                                                   int32_t table, shardrec_table_stat stat,
                                                   int64_t* out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(collection, Access::kShared);
    require_table(use->collection(), table);
    const embedding::TableCounters& counters = use->collection().table_counters(table);
    switch (stat) {
      case SHARDREC_TABLE_STAT_OUT_OF_RANGE:
        *out = counters.ids_out_of_range;
        return;
      case SHARDREC_TABLE_STAT_IDS:
        *out = counters.ids_looked_up;
        return;
      case SHARDREC_TABLE_STAT_ROWS_UPDATED:
        *out = counters.rows_updated;
        return;
      default:
        refuse_value("stat", int64_t{stat},
                     "SHARDREC_TABLE_STAT_OUT_OF_RANGE (1) to ROWS_UPDATED (3)");
    }
  });
}

shardrec_status shardrec_collection_stat_f64(const shardrec_collection* collection,
                                             shardrec_collection_stat stat, double* out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(collection, Access::kShared);
    if (stat == SHARDREC_STAT_IMBALANCE) {
      *out = use->collection().counters().imbalance();
      return;
    }
    const int64_t phase = int64_t{stat} - SHARDREC_STAT_SECONDS_ROUTE;
    if (phase < 0 || phase >= static_cast<int64_t>(embedding::kPhases)) {
      refuse_value("stat", int64_t{stat}, "SHARDREC_STAT_SECONDS_ROUTE (101) to IMBALANCE (109)");
    }
    const auto& nanoseconds = use->collection().counters().nanoseconds;
    *out = static_cast<double>(nanoseconds[static_cast<size_t>(phase)].load()) * 1e-9;
  });
}
