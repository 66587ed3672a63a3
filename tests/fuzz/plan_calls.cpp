// Calls on options, models, topologies and plans.
#include <string>

#include "fuzz/rank.h"
#include "support/structs.h"

namespace shardrec::fuzz {

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
  switch (in.below(8)) {
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
      note(shardrec_model_set_optimizer(
          model, in.one_in(2) ? SHARDREC_ALL_TABLES : static_cast<int32_t>(in.number()),
          handle_or_null(in, &Rank::options_)));
      return;
    case 5: {
      char* text = nullptr;
      take(shardrec_model_to_json(model, &text), text);
      return;
    }
    case 6: {
      // Of any size, of which there is as much memory as the largest that is taken needs.
      const auto room = [&] { return in.one_in(2) ? int64_t{64} : in.number(); };
      std::array<int64_t, 512> size{room()}, table{room()}, feature{room()};
      char* name = nullptr;
      note(shardrec_model_info(model, reinterpret_cast<shardrec_model_size*>(size.data())));
      const auto index = static_cast<int32_t>(in.number());
      const bool wants_name = in.one_in(2);
      const shardrec_status told =
          shardrec_model_table(model, index, reinterpret_cast<shardrec_table*>(table.data()),
                               wants_name ? &name : nullptr);
      take(told, name, wants_name);
      note(shardrec_model_feature(model, index, reinterpret_cast<shardrec_feature*>(feature.data()),
                                  nullptr));
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
            static_cast<int32_t>(in.of<int64_t>({1, 2, in.number()})), nullptr, out);
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
        return shardrec_plan_collective(handle(in, &Rank::comms_), nullptr,
                                        handle(in, &Rank::models_),
                                        handle_or_null(in, &Rank::options_), out);
      });
      return;
    case 3:
      make(in, plans_, [&](auto out) {
        return shardrec_plan_create_empty(handle(in, &Rank::models_),
                                          handle(in, &Rank::topologies_), nullptr, out);
      });
      return;
    case 4: {
      const auto table = static_cast<int32_t>(in.number());
      const auto rank = static_cast<int32_t>(in.number());
      const int64_t row = in.number();
      const int64_t rows = in.number();
      const int64_t col = in.number();
      const int64_t cols = in.number();
      note(add_box(plan, table, rank, row, rows, col, cols));
      return;
    }
    case 5:
      note(shardrec_plan_replicate(plan, static_cast<int32_t>(in.number()),
                                   SHARDREC_REPLICATION_SAMPLES));
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
      // Of any size, of which there is as much memory as the largest that is taken needs.
      std::array<int64_t, 512> room{in.one_in(2) ? int64_t{sizeof(shardrec_box)} : in.number()};
      note(shardrec_plan_box(
          plan, static_cast<int32_t>(in.number()), static_cast<int32_t>(in.number()),
          in.one_in(8) ? nullptr : reinterpret_cast<shardrec_box*>(room.data())));
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

}  // namespace shardrec::fuzz
