// Malformed calls: handles and out-parameters.
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <utility>
#include <vector>

#include "malformed.h"
#include "shardrec/native.h"

namespace shardrec::test {
namespace {

TEST_F(Malformed, HandlesOfEveryKind) {
  shardrec_model_size out_size{};
  out_size.struct_size = sizeof out_size;
  auto* garbage = std::bit_cast<shardrec_model*>(uint64_t{0xdeadbeefcafef00d});
  auto* garbage_comm = std::bit_cast<shardrec_comm*>(uint64_t{8});
  expect_refused({
      {"NULL model", [&] { return shardrec_model_info(nullptr, &out_size); },
       SHARDREC_INVALID_HANDLE, "the handle is NULL; a shardrec_model is needed"},
      {"garbage model", [&] { return shardrec_model_info(garbage, &out_size); },
       SHARDREC_INVALID_HANDLE, "no handle of this library; a shardrec_model is needed"},
      {"plan as a model",
       [&] { return shardrec_model_info(as<shardrec_model>(plan.get()), &out_size); },
       SHARDREC_INVALID_HANDLE, "this is a shardrec_plan; a shardrec_model is needed"},
      {"closed model", [&] { return shardrec_model_info(closed_model(), &out_size); },
       SHARDREC_CLOSED, "this shardrec_model was destroyed"},
      {"closed model to plan_create",
       [&] { return shardrec_plan_create(closed_model(), topology, nullptr, &out_plan); },
       SHARDREC_CLOSED, "shardrec_model"},
      {"NULL comm", [&] { return shardrec_comm_barrier(nullptr); }, SHARDREC_INVALID_HANDLE,
       "a shardrec_comm is needed"},
      {"garbage comm", [&] { return shardrec_comm_close(garbage_comm); }, SHARDREC_INVALID_HANDLE,
       "a shardrec_comm is needed"},
      {"model as a comm",
       [&] { return shardrec_comm_rank(as<shardrec_comm>(model.get()), &out32); },
       SHARDREC_INVALID_HANDLE, "this is a shardrec_model; a shardrec_comm is needed"},
      {"comm as a group",
       [&] {
         return shardrec_comm_create_local(as<shardrec_local>(comm.get()), 1, nullptr, &out_comm);
       },
       SHARDREC_INVALID_HANDLE, "this is a shardrec_comm; a shardrec_local is needed"},
      {"NULL topology to JSON", [&] { return shardrec_topology_to_json(nullptr, nullptr); },
       SHARDREC_INVALID_HANDLE, "a shardrec_topology is needed"},
      {"NULL plan", [&] { return shardrec_plan_box(nullptr, 0, 0, nullptr); },
       SHARDREC_INVALID_HANDLE, "a shardrec_plan is needed"},
      {"NULL topology", [&] { return shardrec_plan_create(model, nullptr, nullptr, &out_plan); },
       SHARDREC_INVALID_HANDLE, "a shardrec_topology is needed"},
      {"model as options",
       [&] {
         return shardrec_plan_create(model, topology, as<shardrec_options>(model.get()), &out_plan);
       },
       SHARDREC_INVALID_HANDLE, "this is a shardrec_model; a shardrec_options is needed"},
      {"garbage options",
       [&] {
         return shardrec_model_set_optimizer(model, SHARDREC_ALL_TABLES,
                                             std::bit_cast<shardrec_options*>(uint64_t{1}));
       },
       SHARDREC_INVALID_HANDLE, "a shardrec_options is needed"},
      {"NULL options", [&] { return shardrec_options_set_i64(nullptr, SHARDREC_OPTION_SEED, 1); },
       SHARDREC_INVALID_HANDLE, "a shardrec_options is needed"},
      {"options as a control",
       [&] { return shardrec_control_cancel(as<shardrec_control>(plan_options.get())); },
       SHARDREC_INVALID_HANDLE, "this is a shardrec_options; a shardrec_control is needed"},
      {"NULL plan", [&] { return shardrec_plan_check(nullptr); }, SHARDREC_INVALID_HANDLE,
       "a shardrec_plan is needed"},
      {"NULL control", [&] { return shardrec_control_progress(nullptr, &out64, &out64); },
       SHARDREC_INVALID_HANDLE, "a shardrec_control is needed"},
  });
}

TEST_F(Malformed, SetsOfParameters) {
  shardrec_tensor out{};
  const auto call = [](auto function, auto... arguments) {
    return [function, arguments...] { return function(nullptr, arguments...); };
  };
  const std::vector<std::pair<const char*, std::function<shardrec_status()>>> on_null = {
      {"add_parameter", call(shardrec_ddp_add_parameter, "w", nullptr, nullptr, &out32)},
      {"add_mlp", call(shardrec_ddp_add_mlp, "net", nullptr, &out32)},
      {"set_flat_gradient", call(shardrec_ddp_set_flat_gradient, &out)},
      {"set_optimizer", call(shardrec_ddp_set_optimizer, nullptr)},
      {"set_callback", call(shardrec_ddp_set_callback, nullptr, nullptr)},
      {"set_hook", call(shardrec_ddp_set_hook, nullptr, nullptr)},
      {"commit", call(shardrec_ddp_commit)},
      {"gradient", call(shardrec_ddp_gradient, 0, &out)},
      {"bucket_of", call(shardrec_ddp_bucket_of, 0, &out32)},
      {"begin", call(shardrec_ddp_begin, 1)},
      {"mark_ready", call(shardrec_ddp_mark_ready, 0, 1)},
      {"mark_unused", call(shardrec_ddp_mark_unused, 0, 1)},
      {"end", call(shardrec_ddp_end)},
      {"wait", call(shardrec_ddp_wait)},
      {"all_reduce", call(shardrec_ddp_all_reduce)},
      {"join", call(shardrec_ddp_join)},
      {"zero_gradients", call(shardrec_ddp_zero_gradients)},
      {"clip_gradients", call(shardrec_ddp_clip_gradients, SHARDREC_CLIP_L2, 1.0, &out_real)},
      {"step", call(shardrec_ddp_step)},
      {"set_learning_rate", call(shardrec_ddp_set_learning_rate, 0.1)},
      {"state", call(shardrec_ddp_state, 0, 0, &out)},
      {"check_equal", call(shardrec_ddp_check_equal)},
      {"broadcast", call(shardrec_ddp_broadcast, 0)},
      {"statistics", call(shardrec_ddp_statistics_json, &out_text)},
  };
  for (const auto& [what, refused] : on_null) {
    expect_refused(
        {{what, refused, SHARDREC_INVALID_HANDLE, "the handle is NULL; a shardrec_ddp is needed"}});
  }
  auto* const model_as_ddp = as<shardrec_ddp>(model.get());
  Owned<shardrec_ddp, shardrec_ddp_destroy> set;
  ASSERT_OK(shardrec_ddp_create(comm, nullptr, set.out()));
  expect_refused({
      {"model to mark_ready", [&] { return shardrec_ddp_mark_ready(model_as_ddp, 0, 1); },
       SHARDREC_INVALID_HANDLE, "this is a shardrec_model; a shardrec_ddp is needed"},
      {"NULL stack", [&] { return shardrec_ddp_add_mlp(set, "net", nullptr, &out32); },
       SHARDREC_INVALID_HANDLE, "a shardrec_mlp is needed"},
      {"model as a stack",
       [&] { return shardrec_ddp_add_mlp(set, "net", as<shardrec_mlp>(model.get()), &out32); },
       SHARDREC_INVALID_HANDLE, "this is a shardrec_model; a shardrec_mlp is needed"},
      {"options of another kind", [&] { return shardrec_ddp_set_optimizer(set, plan_options); },
       SHARDREC_INVALID_ARGUMENT, "OPTIMIZER"},
      {"no flat gradient", [&] { return shardrec_ddp_set_flat_gradient(set, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "gradients is NULL"},
      {"gradient without out", [&] { return shardrec_ddp_gradient(set, 0, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
      {"bucket_of without out", [&] { return shardrec_ddp_bucket_of(set, 0, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
      {"state without out", [&] { return shardrec_ddp_state(set, 0, 0, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
      {"statistics without out", [&] { return shardrec_ddp_statistics_json(set, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out_text is NULL"},
      {"create without out", [&] { return shardrec_ddp_create(comm, nullptr, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
  });
}

TEST_F(Malformed, SetsOfShardedParameters) {
  shardrec_tensor out{};
  const auto call = [](auto function, auto... arguments) {
    return [function, arguments...] { return function(nullptr, arguments...); };
  };
  const std::vector<std::pair<const char*, std::function<shardrec_status()>>> on_null = {
      {"add_unit", call(shardrec_fsdp_add_unit, "u", &out32)},
      {"add_mlp", call(shardrec_fsdp_add_mlp, "m", nullptr, int64_t{1}, &out32)},
      {"add_parameter", call(shardrec_fsdp_add_parameter, 0, "w", 1, 0, &out32)},
      {"set_optimizer", call(shardrec_fsdp_set_optimizer, nullptr)},
      {"commit", call(shardrec_fsdp_commit)},
      {"begin", call(shardrec_fsdp_begin, 1)},
      {"unshard", call(shardrec_fsdp_unshard, 0)},
      {"wait_unshard", call(shardrec_fsdp_wait_unshard, 0)},
      {"parameter", call(shardrec_fsdp_parameter, 0, &out)},
      {"reshard", call(shardrec_fsdp_reshard, 0)},
      {"gradient", call(shardrec_fsdp_gradient, 0, &out)},
      {"mark_ready", call(shardrec_fsdp_mark_ready, 0)},
      {"end", call(shardrec_fsdp_end)},
      {"wait", call(shardrec_fsdp_wait)},
      {"zero_gradients", call(shardrec_fsdp_zero_gradients)},
      {"clip_gradients", call(shardrec_fsdp_clip_gradients, SHARDREC_CLIP_L2, 1.0, &out_real)},
      {"step", call(shardrec_fsdp_step)},
      {"set_learning_rate", call(shardrec_fsdp_set_learning_rate, 0.1)},
      {"shard", call(shardrec_fsdp_shard, 0, 0, &out64, &out)},
      {"full", call(shardrec_fsdp_full, 0, 0, &out)},
      {"set_full", call(shardrec_fsdp_set_full, 0, 0, &out, -1)},
      {"check_equal", call(shardrec_fsdp_check_equal)},
      {"statistics", call(shardrec_fsdp_statistics_json, &out_text)},
  };
  for (const auto& [what, refused] : on_null) {
    expect_refused({{what, refused, SHARDREC_INVALID_HANDLE,
                     "the handle is NULL; a shardrec_fsdp is needed"}});
  }
  Fsdp set;
  ASSERT_OK(shardrec_fsdp_create(comm, nullptr, nullptr, set.out()));
  ASSERT_OK(shardrec_fsdp_add_unit(set, "u", nullptr));
  constexpr int64_t kHuge = int64_t{1} << 40;
  expect_refused({
      {"options of another kind",
       [&] { return shardrec_fsdp_create(comm, nullptr, plan_options, Fsdp().out()); },
       SHARDREC_INVALID_ARGUMENT, "FSDP"},
      {"create without out", [&] { return shardrec_fsdp_create(comm, nullptr, nullptr, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
      {"a unit without a name", [&] { return shardrec_fsdp_add_unit(set, "", nullptr); },
       SHARDREC_INVALID_ARGUMENT, "empty name"},
      {"a unit twice", [&] { return shardrec_fsdp_add_unit(set, "u", nullptr); },
       SHARDREC_INVALID_ARGUMENT, "already a unit named \"u\""},
      {"a parameter of no unit",
       [&] { return shardrec_fsdp_add_parameter(set, 1, "w", 1, 0, nullptr); }, SHARDREC_NOT_FOUND,
       "there is no unit 1; 1 were added"},
      {"negative rows", [&] { return shardrec_fsdp_add_parameter(set, 0, "w", -1, 0, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "rows"},
      {"negative columns", [&] { return shardrec_fsdp_add_parameter(set, 0, "w", 1, -2, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "columns"},
      {"too many elements",
       [&] { return shardrec_fsdp_add_parameter(set, 0, "w", kHuge, kHuge, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "2^48"},
      {"a stack that is none", [&] { return shardrec_fsdp_add_mlp(set, "m", nullptr, 1, nullptr); },
       SHARDREC_INVALID_HANDLE, "the handle is NULL; a shardrec_mlp is needed"},
      {"statistics without out", [&] { return shardrec_fsdp_statistics_json(set, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out_text is NULL"},
  });
}

TEST_F(Malformed, OutParametersThatAreMissing) {
  expect_refused({
      {"model_create", [&] { return shardrec_model_create(nullptr, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
      {"model_info", [&] { return shardrec_model_info(model, nullptr); }, SHARDREC_INVALID_ARGUMENT,
       "out is NULL"},
      {"model_table", [&] { return shardrec_model_table(model, 0, nullptr, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
      {"model_feature", [&] { return shardrec_model_feature(model, 0, nullptr, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
      {"model_to_json", [&] { return shardrec_model_to_json(model, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out_text is NULL"},
      {"model_from_json", [&] { return shardrec_model_from_json("{}", nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
      {"topology_create", [&] { return shardrec_topology_create(1, 1, nullptr, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
      {"topology_to_json", [&] { return shardrec_topology_to_json(topology, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out_text is NULL"},
      {"topology_from_json", [&] { return shardrec_topology_from_json("{}", nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
      {"plan_create", [&] { return shardrec_plan_create(model, topology, nullptr, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
      {"plan_box_count", [&] { return shardrec_plan_box_count(plan, 0, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
      {"plan_to_text", [&] { return shardrec_plan_to_text(plan, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out_text is NULL"},
      {"local_create", [&] { return shardrec_local_create(1, 1, nullptr, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
      {"comm_create_local", [&] { return shardrec_comm_create_local(group, 1, nullptr, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
      {"comm_operations_json", [&] { return shardrec_comm_operations_json(comm, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out_text is NULL"},
      {"comm_rank", [&] { return shardrec_comm_rank(comm, nullptr); }, SHARDREC_INVALID_ARGUMENT,
       "out is NULL"},
      {"comm_size", [&] { return shardrec_comm_size(comm, nullptr); }, SHARDREC_INVALID_ARGUMENT,
       "out is NULL"},
      {"comm_get_f64",
       [&] { return shardrec_comm_get_f64(comm, SHARDREC_COMM_STEP_SECONDS, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
      {"options_create", [&] { return shardrec_options_create(SHARDREC_OPTIONS_DDP, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
      {"options_get_text",
       [&] { return shardrec_options_get_text(plan_options, SHARDREC_OPTION_SHARDING, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out_text is NULL"},
      {"control_create", [&] { return shardrec_control_create(nullptr, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
      {"capabilities", [&] { return shardrec_capabilities_json(nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out_text is NULL"},
      {"live_objects", [&] { return shardrec_live_objects(nullptr); }, SHARDREC_INVALID_ARGUMENT,
       "out is NULL"},
      {"log_next", [&] { return shardrec_log_next(0, nullptr, nullptr, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out_text is NULL"},
      {"tensor_vector", [&] { return shardrec_tensor_vector(nullptr, SHARDREC_INT32, 0, nullptr); },
       SHARDREC_INVALID_ARGUMENT, "out is NULL"},
  });
}

TEST_F(Malformed, DestroyTakesAnything) {
  shardrec_model_destroy(nullptr);
  shardrec_model* none = nullptr;
  shardrec_model_destroy(&none);
  shardrec_model_size out_size{};
  out_size.struct_size = sizeof out_size;
  auto* garbage = std::bit_cast<shardrec_model*>(uint64_t{0xdeadbeefcafef00d});
  shardrec_model_destroy(&garbage);
  EXPECT_EQ(garbage, nullptr);
  auto* foreign = as<shardrec_model>(plan.get());
  shardrec_model_destroy(&foreign);
  EXPECT_EQ(foreign, nullptr);
  shardrec_model* closed = closed_model();
  shardrec_model_destroy(&closed);
  shardrec_text_free(nullptr);
}

}  // namespace
}  // namespace shardrec::test
