// Calls of training: a set-up, whole steps, and single calls on lookups and collections.
#include <algorithm>
#include <string>

#include "fuzz/rank.h"
#include "support/structs.h"

namespace shardrec::fuzz {

// What most programs begin with.
void Rank::set_up(Input& in) {
  shape_ = {};
  const int tables = 1 + in.below(3);
  const auto sharding = static_cast<int64_t>(in.below(9));
  const auto optimizer = in.of<int64_t>({1, 3, 2, 4, 5, 6, 7, 8});
  const bool borrow = in.one_in(4);
  make(in, models_, [](auto out) { return shardrec_model_create(nullptr, out); });
  make(in, options_,
       [](auto out) { return shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, out); });
  note(shardrec_options_set_i64(options_.live(0), SHARDREC_OPTION_OPTIMIZER, optimizer));
  note(shardrec_model_set_optimizer(models_.live(0), SHARDREC_ALL_TABLES, options_.live(0)));
  for (int t = 0; t < tables; ++t) {
    const std::string table = "table " + std::to_string(t);
    const int64_t rows = in.of<int64_t>({5, 1, 40, 7});
    const int64_t dim = in.of<int64_t>({4, 1, 3, 16, 8});
    const auto pooling = in.of<shardrec_pooling>(
        {SHARDREC_POOLING_SUM, SHARDREC_POOLING_MEAN, SHARDREC_POOLING_SUM, SHARDREC_POOLING_NONE});
    note(shardrec_model_add_table(models_.live(0), table.c_str(), rows, dim, nullptr, nullptr));
    note(shardrec_model_add_feature(models_.live(0), t, table.c_str(), pooling));
    shape_.rows = t == 0 ? rows : std::min(shape_.rows, rows);
  }
  make(in, options_, [](auto out) { return shardrec_options_create(SHARDREC_OPTIONS_PLAN, out); });
  note(shardrec_options_set_i64(options_.live(0), SHARDREC_OPTION_SHARDING, sharding));
  make(in, plans_, [&](auto out) {
    return shardrec_plan_collective(comms_.live(0), nullptr, models_.live(0), options_.live(0),
                                    out);
  });
  make(in, options_,
       [](auto out) { return shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, out); });
  note(shardrec_options_set_i64(options_.live(0), SHARDREC_OPTION_THREADS, 1));
  make(in, collections_, [&](auto out) {
    return shardrec_collection_create(comms_.live(0), nullptr, models_.live(0), plans_.live(0),
                                      options_.live(0), out);
  });
  make(in, options_,
       [](auto out) { return shardrec_options_create(SHARDREC_OPTIONS_LOOKUP, out); });
  if (borrow) note(shardrec_options_set_i64(options_.live(0), SHARDREC_OPTION_BORROW, 1));
  make(in, lookups_, [&](auto out) {
    return shardrec_lookup_create(collections_.live(0), options_.live(0), out);
  });
  shardrec_model_size size{};
  size.struct_size = sizeof size;
  note(shardrec_model_info(models_.live(0), &size));
  shape_.features = size.features;
  if (size.features > 0) {
    shardrec_feature feature{};
    feature.struct_size = sizeof feature;
    note(shardrec_model_feature(models_.live(0), 0, &feature, nullptr));
    shape_.width = feature.width;
  }
}

// A whole training step, mostly a good one.
void Rank::step(Input& in) {
  const bool clean = !in.one_in(4);
  begin(in, clean);
  const shardrec_tensor* out = or_null(in, matrix(in, clean, batch_, shape_.width));
  shardrec_lookup* lookup = handle(in, &Rank::lookups_);
  note(shardrec_lookup_forward(lookup, 0, out));
  const shardrec_tensor* gradient = or_null(in, matrix(in, clean, batch_, shape_.width));
  note(shardrec_lookup_set_gradient(lookup, 0, gradient));
  if (in.one_in(3)) {
    note(shardrec_lookup_send_gradients(
        lookup, in.one_in(8) ? SHARDREC_UPDATE_ACCUMULATE : SHARDREC_UPDATE_APPLY));
  }
  const shardrec_update update = in.one_in(6) ? SHARDREC_UPDATE_SKIP : SHARDREC_UPDATE_APPLY;
  if (in.one_in(3)) {
    note(shardrec_lookup_backward_begin(lookup, update));
    note(shardrec_lookup_backward_wait(lookup));
  } else {
    note(shardrec_lookup_backward(lookup, update));
  }
}

void Rank::lookup_call(Input& in) {
  switch (in.below(11)) {
    case 0:
      make(in, lookups_, [&](auto out) {
        return shardrec_lookup_create(handle(in, &Rank::collections_),
                                      handle_or_null(in, &Rank::options_), out);
      });
      return;
    case 1:
      return begin(in, false);
    case 2:
    case 3: {
      const shardrec_tensor* out = or_null(in, matrix(in, false, batch_, shape_.width));
      note(shardrec_lookup_forward(handle(in, &Rank::lookups_),
                                   static_cast<int32_t>(in.one_in(6) ? in.number() : 0), out));
      return;
    }
    case 4: {
      const shardrec_tensor* gradient = or_null(in, matrix(in, false, batch_, shape_.width));
      note(shardrec_lookup_set_gradient(handle(in, &Rank::lookups_),
                                        static_cast<int32_t>(in.one_in(6) ? in.number() : 0),
                                        gradient));
      return;
    }
    case 5: {
      int32_t done = 0;
      note(shardrec_lookup_all_done(handle(in, &Rank::lookups_), in.one_in(8) ? nullptr : &done));
      return;
    }
    case 6:
      note(shardrec_lookup_backward(handle(in, &Rank::lookups_), SHARDREC_UPDATE_SKIP));
      return;
    case 7:  // no more data
      note(
          begin_batch(handle(in, &Rank::lookups_), {.batch_size = in.one_in(4) ? in.number() : 0}));
      return;
    case 8:
      note(shardrec_lookup_send_gradients(
          handle(in, &Rank::lookups_),
          as_enum<shardrec_update>(static_cast<int64_t>(in.below(5)) - 1)));
      return;
    case 9:
      note(shardrec_lookup_backward_begin(
          handle(in, &Rank::lookups_),
          as_enum<shardrec_update>(static_cast<int64_t>(in.below(5)) - 1)));
      if (in.one_in(8)) return;
      note(shardrec_lookup_backward_wait(handle(in, &Rank::lookups_)));
      return;
    default:
      note(shardrec_lookup_backward(handle(in, &Rank::lookups_), SHARDREC_UPDATE_APPLY));
  }
}

void Rank::collection_call(Input& in) {
  switch (in.below(10)) {
    case 8:
    case 9: {
      const bool write = in.one_in(2);
      const auto table = static_cast<int32_t>(in.one_in(6) ? in.number() : in.below(3));
      const auto part = as_enum<shardrec_table_part>(in.of<int64_t>({0, 0, 1, 2, -1, 99}));
      const int64_t count = in.of<int64_t>({3, 0, 1, 40});
      auto* const ids = static_cast<int64_t*>(memory(static_cast<size_t>(count) * sizeof(int64_t)));
      for (int64_t i = 0; i < count; ++i) {
        ids[i] = (i * 3 + rank_) % std::max<int64_t>(shape_.rows, 1);
      }
      if (count > 0 && in.one_in(8)) ids[count - 1] = in.number();
      const shardrec_tensor* list = or_null(in, vector(in, false, SHARDREC_INT64, count, ids));
      const shardrec_tensor* rows =
          or_null(in, matrix(in, false, count, in.of<int64_t>({4, 1, 3, 16, 8})));
      shardrec_collection* tables = handle(in, &Rank::collections_);
      note(write ? shardrec_collection_write_rows(tables, table, part, list, rows)
                 : shardrec_collection_read_rows(tables, table, part, list, rows));
      return;
    }
    case 0:
      make(in, collections_, [&](auto out) {
        return shardrec_collection_create(handle(in, &Rank::comms_), nullptr,
                                          handle(in, &Rank::models_), handle(in, &Rank::plans_),
                                          handle_or_null(in, &Rank::options_), out);
      });
      return;
    case 1: {
      int64_t step = 0;
      note(shardrec_collection_step(handle(in, &Rank::collections_),
                                    in.one_in(8) ? nullptr : &step));
      return;
    }
    case 2:
      if (in.one_in(4)) note(shardrec_collection_wait_device(handle(in, &Rank::collections_)));
      note(shardrec_collection_set_learning_rate(handle(in, &Rank::collections_),
                                                 SHARDREC_ALL_TABLES, in.real()));
      return;
    case 3:
    case 4: {
      const bool write = in.one_in(2);
      const auto table = static_cast<int32_t>(in.number());
      const auto part = as_enum<shardrec_table_part>(in.of<int64_t>({0, 0, 1, 2, -1, 99}));
      const int64_t row = in.number();
      const int64_t rows = in.number();
      const shardrec_tensor* values =
          or_null(in, matrix(in, false, rows, in.of<int64_t>({4, 1, 3, 16, 8})));
      shardrec_collection* tables = handle(in, &Rank::collections_);
      note(write ? shardrec_collection_write_range(tables, table, part, row, rows, values)
                 : shardrec_collection_read_range(tables, table, part, row, rows, values));
      return;
    }
    case 5: {
      double value = 0;
      const int64_t stat = in.one_in(4) ? in.number() : 100 * in.below(3) + in.below(20);
      const auto table = static_cast<int32_t>(in.one_in(2) ? SHARDREC_ALL_TABLES : in.number());
      note(shardrec_collection_stat(handle(in, &Rank::collections_), as_enum<shardrec_stat>(stat),
                                    table, in.one_in(8) ? nullptr : &value));
      return;
    }
    case 6: {
      double rate = 0;
      int32_t frozen = 0;
      const auto table = static_cast<int32_t>(in.number());
      note(shardrec_collection_learning_rate(handle(in, &Rank::collections_), table,
                                             in.one_in(8) ? nullptr : &rate));
      note(shardrec_collection_frozen(handle(in, &Rank::collections_), table,
                                      in.one_in(8) ? nullptr : &frozen));
      return;
    }
    default:
      make(in, models_, [&](auto out) {
        return shardrec_collection_model(handle(in, &Rank::collections_), out);
      });
      make(in, plans_, [&](auto out) {
        return shardrec_collection_plan(handle(in, &Rank::collections_), out);
      });
  }
}

}  // namespace shardrec::fuzz
