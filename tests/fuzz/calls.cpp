// The calls of the fuzzer, by header.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "compute/probe/memory_profile.h"
#include "core/error.h"
#include "fuzz/rank.h"

namespace shardrec::fuzz {
namespace {

// In C++ an enumeration has the values of its enumerators' bits only.
template <class Enum>
Enum as_enum(int64_t value) {
  return static_cast<Enum>(value & 0x7fffffff);
}

// A file of the profile cache: read as a profile, or refused as corrupt.
void damaged_profile(Input& in) {
  using compute::profile_from_json;
  using compute::profile_to_json;
  compute::MemoryProfile profile{.machine = {"cpu", 2, 1, 2, 3, "set"}, .table_bytes = 64};
  profile.copies.push_back({1, 5});
  profile.rows.push_back({.row_bytes = 64, .bag_length = 20, .gb_per_second = 7, .by_hint = {7}});
  std::string text = profile_to_json(profile);
  for (int damage = 1 + in.below(4); damage > 0; --damage) {
    const size_t at = static_cast<size_t>(in.word() & INT32_MAX) % text.size();
    const auto length = static_cast<size_t>(in.below(32));
    if (in.one_in(4)) {
      text.erase(at, std::min(length, text.size() - 1));
    } else if (in.one_in(3)) {
      text.insert(at, length, static_cast<char>(in.byte()));
    } else {
      text[at] = static_cast<char>(in.byte());
    }
  }
  try {
    const std::string written = profile_to_json(profile_from_json(text, "file"));
    if (profile_to_json(profile_from_json(written, "file")) != written) std::abort();
  } catch (const core::Error& error) {
    if (error.status() != SHARDREC_CORRUPT_DATA || error.sentence().empty()) std::abort();
  }
}

}  // namespace

void Rank::call(Input& in) {
  const int which = in.below(16);
  if (which < 4) return step(in);
  if (which < 7) return lookup_call(in);
  if (which < 9) return collection_call(in);
  switch (which) {
    case 9:
      return options_call(in);
    case 10:
      return model_call(in);
    case 11:
      return plan_call(in);
    case 12:
      return comm_call(in);
    case 13:
      return dense_call(in);
    case 14:
      return library_call(in);
    default:
      return drop_something(in);
  }
}

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
  note(shardrec_model_set_optimizer(models_.live(0), options_.live(0)));
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
    return shardrec_plan_collective(comms_.live(0), models_.live(0), options_.live(0), out);
  });
  make(in, options_,
       [](auto out) { return shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, out); });
  note(shardrec_options_set_i64(options_.live(0), SHARDREC_OPTION_THREADS, 1));
  make(in, collections_, [&](auto out) {
    return shardrec_collection_create(comms_.live(0), models_.live(0), plans_.live(0),
                                      options_.live(0), out);
  });
  make(in, options_,
       [](auto out) { return shardrec_options_create(SHARDREC_OPTIONS_LOOKUP, out); });
  if (borrow) note(shardrec_options_set_i64(options_.live(0), SHARDREC_OPTION_BORROW, 1));
  make(in, lookups_, [&](auto out) {
    return shardrec_lookup_create(collections_.live(0), options_.live(0), out);
  });
  int32_t features = 0;
  note(shardrec_model_feature_count(models_.live(0), &features));
  shape_.features = features;
  if (features > 0) {
    note(shardrec_model_feature_columns(models_.live(0), 0, nullptr, nullptr, &shape_.width));
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
  note(in.one_in(6) ? shardrec_lookup_skip(lookup) : shardrec_lookup_backward(lookup));
}

void Rank::lookup_call(Input& in) {
  switch (in.below(9)) {
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
      note(shardrec_lookup_skip(handle(in, &Rank::lookups_)));
      return;
    case 7:  // no more data
      note(shardrec_lookup_begin(handle(in, &Rank::lookups_), in.one_in(4) ? in.number() : 0,
                                 nullptr, nullptr, nullptr));
      return;
    default:
      note(shardrec_lookup_backward(handle(in, &Rank::lookups_)));
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
        return shardrec_collection_create(handle(in, &Rank::comms_), handle(in, &Rank::models_),
                                          handle(in, &Rank::plans_),
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
      note(shardrec_collection_set_learning_rate(handle(in, &Rank::collections_), in.real()));
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
      note(write ? shardrec_collection_write(tables, table, part, row, rows, values)
                 : shardrec_collection_read(tables, table, part, row, rows, values));
      return;
    }
    case 5: {
      int64_t value = 0;
      note(shardrec_collection_stat_i64(handle(in, &Rank::collections_),
                                        as_enum<shardrec_collection_stat>(in.number()),
                                        in.one_in(8) ? nullptr : &value));
      return;
    }
    case 6: {
      double value = 0;
      const int64_t stat = in.one_in(4) ? in.number() : 100 + in.below(20);
      note(shardrec_collection_stat_f64(handle(in, &Rank::collections_),
                                        as_enum<shardrec_collection_stat>(stat),
                                        in.one_in(8) ? nullptr : &value));
      return;
    }
    default:
      note(shardrec_collection_load(
          handle(in, &Rank::collections_),
          in.of<const char*>({"/nonexistent/checkpoint", "", nullptr, "\xff"}),
          in.one_in(2) ? nullptr : handle(in, &Rank::controls_)));
  }
}

void Rank::options_call(Input& in) {
  const auto key =
      as_enum<shardrec_option>(in.of<int64_t>({1, 2, 3, 4, 5, 6, 7, 0}) * 100 + in.below(12));
  shardrec_options* options = handle(in, &Rank::options_);
  switch (in.below(7)) {
    case 0:
      make(in, options_, [&](auto out) {
        return shardrec_options_create(as_enum<shardrec_options_kind>(in.below(9)), out);
      });
      return;
    case 1:
      // A thousand threads would be started.
      note(shardrec_options_set_i64(options, key,
                                    key == SHARDREC_OPTION_THREADS ? in.below(3) : in.number()));
      return;
    case 2:
      note(shardrec_options_set_f64(options, key, in.real()));
      return;
    case 3:
      note(shardrec_options_set_text(
          options, key,
          in.of<const char*>({"sgd", "mixed", "1", "-1", "1e-3", "", "\xff", nullptr, "float16",
                              "ranks", "rowwise_adagrad"})));
      return;
    case 4: {
      char* text = nullptr;
      take(shardrec_options_get_text(options, key, &text), text);
      return;
    }
    case 5: {
      double value = 0;
      note(shardrec_options_get_f64(options, key, &value));
      return;
    }
    default: {
      int64_t value = 0;
      note(shardrec_options_get_i64(options, key, in.one_in(8) ? nullptr : &value));
    }
  }
}

void Rank::model_call(Input& in) {
  shardrec_model* model = handle(in, &Rank::models_);
  switch (in.below(7)) {
    case 0:
      make(in, models_, [&](auto out) {
        return shardrec_model_create(handle_or_null(in, &Rank::options_), out);
      });
      return;
    case 1:
    case 2: {
      // Small, or so large that every machine refuses it: between them memory would be filled.
      const int64_t rows = in.of<int64_t>({5, 1, 40, 0, -1, int64_t{1} << 40, INT64_MAX});
      const int64_t dim = in.of<int64_t>({4, 1, 16, 0, -1, 4096, 65537});
      int32_t table = 0;
      note(shardrec_model_add_table(model, in.one_in(8) ? nullptr : name(in).c_str(), rows, dim,
                                    handle_or_null(in, &Rank::options_),
                                    in.one_in(2) ? &table : nullptr));
      return;
    }
    case 3:
      note(shardrec_model_add_feature(model, static_cast<int32_t>(in.number()), name(in).c_str(),
                                      as_enum<shardrec_pooling>(in.below(4))));
      return;
    case 4:
      note(shardrec_model_set_optimizer(model, handle_or_null(in, &Rank::options_)));
      return;
    case 5: {
      char* text = nullptr;
      take(shardrec_model_to_json(model, &text), text);
      return;
    }
    default: {
      char* text = nullptr;
      std::string json = "{}";
      if (shardrec_model_to_json(model, &text) == SHARDREC_OK) json = text;
      shardrec_text_free(text);
      if (in.one_in(2))
        json[static_cast<size_t>(in.byte()) % json.size()] = static_cast<char>(in.byte());
      make(in, models_, [&](auto out) { return shardrec_model_from_json(json.c_str(), out); });
    }
  }
}

void Rank::plan_call(Input& in) {
  shardrec_plan* plan = handle(in, &Rank::plans_);
  switch (in.below(9)) {
    case 0:
      make(in, topologies_, [&](auto out) {
        return shardrec_topology_create(
            static_cast<int32_t>(in.of<int64_t>({2, 1, 4, in.number()})),
            static_cast<int32_t>(in.of<int64_t>({1, 2, in.number()})), out);
      });
      return;
    case 1:
      make(in, plans_, [&](auto out) {
        return shardrec_plan_create(handle(in, &Rank::models_), handle(in, &Rank::topologies_),
                                    handle_or_null(in, &Rank::options_), out);
      });
      return;
    case 2:
      make(in, plans_, [&](auto out) {
        return shardrec_plan_collective(handle(in, &Rank::comms_), handle(in, &Rank::models_),
                                        handle_or_null(in, &Rank::options_), out);
      });
      return;
    case 3:
      make(in, plans_, [&](auto out) {
        return shardrec_plan_create_empty(handle(in, &Rank::models_),
                                          handle(in, &Rank::topologies_), out);
      });
      return;
    case 4: {
      const auto table = static_cast<int32_t>(in.number());
      const auto rank = static_cast<int32_t>(in.number());
      const int64_t row = in.number();
      const int64_t rows = in.number();
      const int64_t col = in.number();
      const int64_t cols = in.number();
      note(shardrec_plan_add_box(plan, table, rank, row, rows, col, cols));
      return;
    }
    case 5:
      note(shardrec_plan_add_replicated(plan, static_cast<int32_t>(in.number())));
      return;
    case 6: {
      char* text = nullptr;
      take(in.one_in(2) ? shardrec_plan_to_json(plan, &text) : shardrec_plan_to_text(plan, &text),
           text);
      return;
    }
    case 7: {
      int32_t count = 0;
      note(shardrec_plan_check(plan));
      note(shardrec_plan_box_count(plan, static_cast<int32_t>(in.number()), &count));
      note(shardrec_plan_box(plan, static_cast<int32_t>(in.number()),
                             static_cast<int32_t>(in.number()), &count, nullptr, nullptr, nullptr,
                             nullptr));
      int64_t bytes = 0;
      note(shardrec_plan_box_bytes(plan, static_cast<int32_t>(in.number()),
                                   static_cast<int32_t>(in.number()), &bytes, nullptr));
      return;
    }
    default: {
      char* text = nullptr;
      std::string json = "[]";
      if (shardrec_plan_to_json(plan, &text) == SHARDREC_OK) json = text;
      shardrec_text_free(text);
      if (in.one_in(2))
        json[static_cast<size_t>(in.byte()) % json.size()] = static_cast<char>(in.byte());
      make(in, plans_, [&](auto out) {
        return shardrec_plan_from_json(handle(in, &Rank::models_), json.c_str(), out);
      });
    }
  }
}

void Rank::comm_call(Input& in) {
  shardrec_comm* comm = handle(in, &Rank::comms_);
  switch (in.below(13)) {
    case 0:
    case 1:
      note(shardrec_comm_barrier(comm));
      return;
    case 2:
    case 3: {
      const int64_t length = in.of<int64_t>({3, 0, 1, 500});
      const auto dtype = in.of<shardrec_dtype>(
          {SHARDREC_FLOAT32, SHARDREC_FLOAT64, SHARDREC_INT32, SHARDREC_INT64});
      const shardrec_tensor* tensor = or_null(
          in,
          vector(in, false, dtype, length, memory(static_cast<size_t>(length) * sizeof(double))));
      note(shardrec_comm_all_reduce(comm, tensor, as_enum<shardrec_reduction>(in.below(5))));
      return;
    }
    case 10:
    case 11:
      return tensors_call(in, comm);
    case 12: {
      const auto key = static_cast<int32_t>(in.number());
      const auto color = static_cast<int32_t>(in.one_in(8) ? in.number() : in.below(2));
      if (color < 0) {  // no part, no handle
        shardrec_comm* none = nullptr;
        note(shardrec_comm_split(comm, color, key, in.one_in(8) ? nullptr : &none));
        if (none != nullptr) std::abort();
        return;
      }
      make(in, comms_, [&](auto out) { return shardrec_comm_split(comm, color, key, out); });
      return;
    }
    case 4:
      make(in, groups_, [&](auto out) {
        return shardrec_local_create(static_cast<int32_t>(in.of<int64_t>({1, 2, 3, in.number()})),
                                     static_cast<int32_t>(in.of<int64_t>({1, 2, in.number()})),
                                     out);
      });
      return;
    case 5: {
      make(in, comms_, [&](auto out) {
        return shardrec_comm_create_local(handle(in, &Rank::groups_),
                                          static_cast<int32_t>(in.number()), out);
      });
      for (int slot = 0; slot < 2; ++slot) {
        if (comms_.live(slot) == nullptr) continue;
        shardrec_comm_set_f64(comms_.live(slot), SHARDREC_COMM_STEP_SECONDS, 0.03);
        shardrec_comm_set_f64(comms_.live(slot), SHARDREC_COMM_SETUP_SECONDS, 0.03);
      }
      return;
    }
    case 6: {
      const auto key = as_enum<shardrec_comm_property>(in.below(5));
      double value = 0;
      note(shardrec_comm_get_f64(comm, key, &value));
      note(shardrec_comm_set_f64(comm, key, in.of({0.02, 0.01, -1.0, 0.0, 0.0 / 0.0})));
      return;
    }
    case 7: {
      int32_t value = 0;
      note(shardrec_comm_rank(comm, in.one_in(8) ? nullptr : &value));
      note(shardrec_comm_size(comm, &value));
      note(shardrec_comm_status(comm));
      return;
    }
    case 8:
      if (in.one_in(3)) note(shardrec_comm_close(comm));
      return;
    default:
      if (in.one_in(3)) {
        note(shardrec_comm_abort(comm, in.of<const char*>({nullptr, "why", "\xff", ""})));
      }
  }
}

// Tensors of which some fit together on both ranks.
void Rank::tensors_call(Input& in, shardrec_comm* comm) {
  const int64_t rows = in.of<int64_t>({2, 0, 1, 4, 64});
  const int64_t cols = in.of<int64_t>({3, 1, 0, 16});
  const shardrec_tensor* tensor = or_null(in, matrix(in, false, rows, cols));
  const shardrec_tensor* more = or_null(in, matrix(in, false, 2 * rows, cols));
  switch (in.below(4)) {
    case 0:
      note(shardrec_comm_broadcast(comm, tensor,
                                   static_cast<int32_t>(in.one_in(6) ? in.number() : in.below(2))));
      return;
    case 1:
      note(shardrec_comm_all_gather(comm, tensor, more));
      return;
    case 2:
      note(shardrec_comm_reduce_scatter(comm, more, tensor,
                                        as_enum<shardrec_reduction>(in.below(5))));
      return;
    default: {
      const auto counts = [&]() -> const shardrec_tensor* {
        if (in.one_in(2)) return nullptr;
        auto* const data = static_cast<int64_t*>(memory(2 * sizeof(int64_t)));
        data[0] = in.one_in(6) ? in.number() : rows;
        data[1] = in.one_in(6) ? in.number() : rows;
        return or_null(in, vector(in, false, SHARDREC_INT64, 2, data));
      };
      const shardrec_tensor* sent = counts();
      note(shardrec_comm_all_to_all(comm, more, sent, in.one_in(3) ? more : tensor, counts()));
    }
  }
}

void Rank::dense_call(Input& in) {
  switch (in.below(12)) {
    case 0:
      make(in, ddps_, [&](auto out) {
        return shardrec_ddp_create(handle(in, &Rank::comms_), handle_or_null(in, &Rank::options_),
                                   out);
      });
      return;
    case 1: {
      const shardrec_tensor* parameter = or_null(in, matrix(in, false, 2, 3));
      const shardrec_tensor* gradient = or_null(in, matrix(in, false, 2, 3));
      note(shardrec_ddp_add(handle(in, &Rank::ddps_), name(in).c_str(), parameter, gradient));
      return;
    }
    case 2:
      note(shardrec_ddp_commit(handle(in, &Rank::ddps_)));
      return;
    case 3:
      note(shardrec_ddp_all_reduce(handle(in, &Rank::ddps_)));
      return;
    case 4: {
      make(in, mlps_, [&](auto out) {
        return shardrec_mlp_create(in.below(7), handle_or_null(in, &Rank::options_), out);
      });
      note(shardrec_mlp_add_linear(handle(in, &Rank::mlps_), in.below(6),
                                   as_enum<shardrec_activation>(in.below(3))));
      return;
    }
    case 5: {
      shardrec_mlp* mlp = handle(in, &Rank::mlps_);
      const int64_t batch = in.below(4);
      const int64_t inputs = in.below(7);
      const int64_t outputs = in.below(6);
      const shardrec_tensor* input = or_null(in, matrix(in, false, batch, inputs));
      const shardrec_tensor* output = or_null(in, matrix(in, false, batch, outputs));
      const shardrec_tensor* output_gradient = or_null(in, matrix(in, false, batch, outputs));
      const shardrec_tensor* input_gradient = or_null(in, matrix(in, false, batch, inputs));
      note(shardrec_mlp_forward(mlp, input, output));
      note(shardrec_mlp_backward(mlp, output_gradient, input_gradient));
      note(shardrec_mlp_step(mlp));
      if (in.one_in(2)) note(shardrec_mlp_zero_gradient(mlp));
      return;
    }
    case 6: {
      shardrec_mlp* mlp = handle(in, &Rank::mlps_);
      int32_t count = 0;
      shardrec_tensor parameter{};
      note(shardrec_mlp_parameter_count(mlp, &count));
      note(shardrec_mlp_parameter(mlp, static_cast<int32_t>(in.number()), &parameter, nullptr));
      note(shardrec_mlp_set_learning_rate(mlp, in.real()));
      note(shardrec_mlp_load(mlp, in.of<const char*>({"/nonexistent/x", nullptr, ""})));
      return;
    }
    case 7:
      make(in, interactions_, [&](auto out) {
        return shardrec_interaction_create(in.below(4), in.below(5), nullptr, out);
      });
      return;
    case 8: {
      shardrec_interaction* interaction = handle(in, &Rank::interactions_);
      const int64_t batch = in.below(4);
      const int64_t features = in.below(4);
      const int64_t dim = in.below(5);
      int64_t outputs = 0;
      note(shardrec_interaction_outputs(interaction, &outputs));
      const shardrec_tensor* dense = or_null(in, matrix(in, false, batch, dim));
      const shardrec_tensor* rows = or_null(in, matrix(in, false, batch, features * dim));
      const shardrec_tensor* output = or_null(in, matrix(in, false, batch, outputs));
      note(shardrec_interaction_forward(interaction, dense, rows, output));
      note(shardrec_interaction_backward(interaction, output, dense, rows));
      return;
    }
    case 9:
      make(in, metrics_,
           [&](auto out) { return shardrec_metrics_create(handle(in, &Rank::comms_), out); });
      return;
    case 10: {
      shardrec_metrics* metrics = handle(in, &Rank::metrics_);
      const int64_t length = in.below(5);
      const auto bytes = static_cast<size_t>(length) * sizeof(double);
      const shardrec_tensor* probabilities =
          or_null(in, vector(in, false, SHARDREC_FLOAT32, length, memory(bytes)));
      const shardrec_tensor* labels =
          or_null(in, vector(in, false, SHARDREC_FLOAT32, length, memory(bytes)));
      note(shardrec_metrics_update(metrics, probabilities, labels));
      double value = 0;
      note(shardrec_metrics_compute(metrics));
      note(shardrec_metrics_get(metrics, as_enum<shardrec_metric>(in.below(9)), &value));
      note(shardrec_bce_with_logits(probabilities, labels, nullptr, nullptr, &value));
      return;
    }
    default:
      note(shardrec_metrics_reset(handle(in, &Rank::metrics_)));
  }
}

void Rank::library_call(Input& in) {
  switch (in.below(8)) {
    case 0: {
      char* text = nullptr;
      shardrec_log_level level{};
      int32_t rank = 0;
      note(shardrec_log_next(static_cast<int32_t>(in.of<int64_t>({0, 0, 1, -1})), &level, &rank,
                             &text));
      shardrec_text_free(text);
      return;
    }
    case 1:
      note(shardrec_log_set_level(as_enum<shardrec_log_level>(in.below(7))));
      return;
    case 2: {
      char* text = nullptr;
      take(shardrec_capabilities(&text), text);
      return;
    }
    case 3: {
      make(in, controls_, [](auto out) { return shardrec_control_create(out); });
      int64_t done = 0;
      note(shardrec_control_progress(handle(in, &Rank::controls_), &done, nullptr));
      note(shardrec_control_cancel(handle(in, &Rank::controls_)));
      return;
    }
    case 4: {
      int64_t value = 0;
      const auto status = shardrec_last_error_i64(as_enum<shardrec_error_part>(in.below(7)),
                                                  in.one_in(8) ? nullptr : &value);
      (void)status;  // leaves the error alone, so that note() would not find it
      return;
    }
    case 5: {
      char* text = nullptr;
      take(shardrec_probe_cached(in.one_in(8) ? nullptr : &text), text);
      // Numbers of threads that are refused: others are measured, for seconds.
      const auto threads = in.of<int32_t>({-1, 4097, INT32_MIN, INT32_MAX});
      shardrec_control* control = in.one_in(2) ? nullptr : handle(in, &Rank::controls_);
      char* measured = nullptr;
      take(shardrec_probe(threads, control, &measured), measured);
      return;
    }
    case 6:
      return damaged_profile(in);
    default: {
      char* text = nullptr;
      const auto status =
          shardrec_last_error_text(as_enum<shardrec_error_part>(100 + in.below(6)), &text);
      (void)status;
      shardrec_text_free(text);
    }
  }
}

}  // namespace shardrec::fuzz
