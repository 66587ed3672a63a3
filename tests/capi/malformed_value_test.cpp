// Malformed calls: values, names, tensors and texts. Each gives its status and a sentence that
// names the wrong value, and changes nothing.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>

#include "malformed.h"
#include "shardrec/native.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST_F(Malformed, GroupsAndCommunicators) {
  const auto no_property = static_cast<shardrec_comm_property>(9);
  expect_refused({
      {"no ranks", [&] { return shardrec_local_create(0, 1, nullptr, &out_group); },
       SHARDREC_INVALID_ARGUMENT, "ranks is 0; 1 to 1024"},
      {"negative ranks", [&] { return shardrec_local_create(-3, 1, nullptr, &out_group); },
       SHARDREC_INVALID_ARGUMENT, "ranks is -3"},
      {"too many ranks", [&] { return shardrec_local_create(1025, 1, nullptr, &out_group); },
       SHARDREC_INVALID_ARGUMENT, "ranks is 1025"},
      {"ranks_per_node 0", [&] { return shardrec_local_create(4, 0, nullptr, &out_group); },
       SHARDREC_INVALID_ARGUMENT, "ranks_per_node is 0; 1 to 4"},
      {"ranks_per_node above ranks",
       [&] { return shardrec_local_create(4, 5, nullptr, &out_group); }, SHARDREC_INVALID_ARGUMENT,
       "ranks_per_node is 5; 1 to 4"},
      {"negative rank", [&] { return shardrec_comm_create_local(group, -1, nullptr, &out_comm); },
       SHARDREC_INVALID_ARGUMENT, "rank is -1; 0 to 1"},
      {"rank beyond", [&] { return shardrec_comm_create_local(group, 2, nullptr, &out_comm); },
       SHARDREC_INVALID_ARGUMENT, "rank is 2; 0 to 1"},
      {"rank taken", [&] { return shardrec_comm_create_local(group, 0, nullptr, &out_comm); },
       SHARDREC_INVALID_STATE, "0"},
      {"deadline 0", [&] { return shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 0); },
       SHARDREC_INVALID_ARGUMENT, "SHARDREC_COMM_STEP_SECONDS is 0"},
      {"negative deadline",
       [&] { return shardrec_comm_set_f64(comm, SHARDREC_COMM_SETUP_SECONDS, -1.5); },
       SHARDREC_INVALID_ARGUMENT, "SHARDREC_COMM_SETUP_SECONDS is -1.5"},
      {"NaN deadline",
       [&] { return shardrec_comm_set_f64(comm, SHARDREC_COMM_WARN_SECONDS, kNan); },
       SHARDREC_INVALID_ARGUMENT, "SHARDREC_COMM_WARN_SECONDS is nan"},
      {"unknown property", [&] { return shardrec_comm_set_f64(comm, no_property, 1); },
       SHARDREC_INVALID_ARGUMENT, "property is 9"},
      {"unknown property read", [&] { return shardrec_comm_get_f64(comm, no_property, &out_real); },
       SHARDREC_INVALID_ARGUMENT, "property is 9"},
      {"reason not UTF-8", [&] { return shardrec_comm_abort(comm, "\xc3("); },
       SHARDREC_INVALID_ARGUMENT, "reason is not UTF-8"},
  });
}

// On a set of one rank, so that commit returns.
TEST_F(Malformed, SetsOfParametersThatAreCommitted) {
  Local alone;
  Comm own;
  ASSERT_OK(shardrec_local_create(1, 1, nullptr, alone.out()));
  ASSERT_OK(shardrec_comm_create_local(alone, 0, nullptr, own.out()));
  Owned<shardrec_ddp, shardrec_ddp_destroy> set;
  ASSERT_OK(shardrec_ddp_create(own, nullptr, set.out()));
  std::array<float, 6> data{};
  shardrec_tensor view{}, out{};
  ASSERT_OK(shardrec_tensor_vector(data.data(), SHARDREC_FLOAT32, 6, &view));
  expect_refused({
      {"commit without parameters", [&] { return shardrec_ddp_commit(set); },
       SHARDREC_INVALID_STATE, "no parameter"},
      {"begin before commit", [&] { return shardrec_ddp_begin(set, 1); }, SHARDREC_INVALID_STATE,
       "before commit"},
      {"gradient before commit", [&] { return shardrec_ddp_gradient(set, 0, &out); },
       SHARDREC_INVALID_STATE, "commit"},
      {"bucket before commit", [&] { return shardrec_ddp_bucket_of(set, 0, &out32); },
       SHARDREC_INVALID_STATE, "commit"},
      {"step before commit", [&] { return shardrec_ddp_step(set); }, SHARDREC_INVALID_STATE,
       "before commit"},
      {"join before commit", [&] { return shardrec_ddp_join(set); }, SHARDREC_INVALID_STATE,
       "before commit"},
      {"row-wise optimizer",
       [&] {
         Options options;
         EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, options.out()));
         EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_OPTIMIZER, "lars_sgd"));
         return shardrec_ddp_set_optimizer(set, options);
       },
       SHARDREC_UNSUPPORTED, "MOMENTUM_SGD, ADAGRAD, ADAM and LAMB"},
  });
  ASSERT_OK(shardrec_ddp_add_parameter(set, "w", &view, nullptr, nullptr));
  ASSERT_OK(shardrec_ddp_commit(set));
  expect_refused({
      {"commit twice", [&] { return shardrec_ddp_commit(set); }, SHARDREC_INVALID_STATE, "second"},
      {"late parameter",
       [&] { return shardrec_ddp_add_parameter(set, "late", &view, nullptr, &out32); },
       SHARDREC_INVALID_STATE, "\"late\""},
      {"late optimizer", [&] { return shardrec_ddp_set_optimizer(set, nullptr); },
       SHARDREC_INVALID_STATE, "commit"},
      {"late hook", [&] { return shardrec_ddp_set_hook(set, nullptr, nullptr); },
       SHARDREC_INVALID_STATE, "commit"},
      {"no parameter 1", [&] { return shardrec_ddp_gradient(set, 1, &out); }, SHARDREC_NOT_FOUND,
       "no parameter 1"},
      {"no parameter -1", [&] { return shardrec_ddp_bucket_of(set, -1, &out32); },
       SHARDREC_NOT_FOUND, "no parameter -1"},
      {"state without optimizer", [&] { return shardrec_ddp_state(set, 0, 0, &out); },
       SHARDREC_INVALID_STATE, "optimizer"},
      {"step without optimizer", [&] { return shardrec_ddp_step(set); }, SHARDREC_INVALID_STATE,
       "optimizer"},
      {"sync 2", [&] { return shardrec_ddp_begin(set, 2); }, SHARDREC_INVALID_ARGUMENT,
       "sync is 2"},
      {"end without begin", [&] { return shardrec_ddp_end(set); }, SHARDREC_INVALID_STATE,
       "without a begin"},
      {"wait without end", [&] { return shardrec_ddp_wait(set); }, SHARDREC_INVALID_STATE,
       "without an end"},
      {"root 1", [&] { return shardrec_ddp_broadcast(set, 1); }, SHARDREC_INVALID_ARGUMENT,
       "no rank 1"},
      {"root -1", [&] { return shardrec_ddp_broadcast(set, -1); }, SHARDREC_INVALID_ARGUMENT,
       "no rank -1"},
      {"negative bound",
       [&] { return shardrec_ddp_clip_gradients(set, SHARDREC_CLIP_L2, -1, &out_real); },
       SHARDREC_INVALID_ARGUMENT, "bound is -1"},
      {"bound that is no number",
       [&] { return shardrec_ddp_clip_gradients(set, SHARDREC_CLIP_VALUE, kNan, &out_real); },
       SHARDREC_INVALID_ARGUMENT, "bound is nan"},
      {"unknown kind of clipping",
       [&] {
         return shardrec_ddp_clip_gradients(set, static_cast<shardrec_clip>(3), 1, &out_real);
       },
       SHARDREC_INVALID_ARGUMENT, "clip is 3"},
      {"rate that is no number", [&] { return shardrec_ddp_set_learning_rate(set, kNan); },
       SHARDREC_INVALID_ARGUMENT, "learning_rate is nan"},
  });
  EXPECT_OK(shardrec_ddp_all_reduce(set)) << "as before";
}

TEST_F(Malformed, TensorsOfAllReduce) {
  std::array<float, 8> data{};
  shardrec_tensor good{};
  ASSERT_OK(shardrec_tensor_vector(data.data(), SHARDREC_FLOAT32, 4, &good));
  const auto reduce = [&](auto change, shardrec_reduction how = SHARDREC_REDUCTION_SUM) {
    shardrec_tensor tensor = good;
    change(tensor);
    return shardrec_comm_all_reduce(comm, &tensor, how);
  };
  expect_refused({
      {"NULL", [&] { return shardrec_comm_all_reduce(comm, nullptr, SHARDREC_REDUCTION_SUM); },
       SHARDREC_INVALID_ARGUMENT, "tensor is NULL"},
      {"CUDA",
       [&] { return reduce([](shardrec_tensor& t) { t.device_type = SHARDREC_DEVICE_CUDA; }); },
       SHARDREC_UNSUPPORTED, "tensor is on a CUDA device"},
      {"device type", [&] { return reduce([](shardrec_tensor& t) { t.device_type = 99; }); },
       SHARDREC_INVALID_ARGUMENT, "tensor has device type 99"},
      {"device id", [&] { return reduce([](shardrec_tensor& t) { t.device_id = 1; }); },
       SHARDREC_INVALID_ARGUMENT, "tensor has device id 1"},
      {"unknown dtype", [&] { return reduce([](shardrec_tensor& t) { t.dtype = 12345; }); },
       SHARDREC_INVALID_ARGUMENT, "unknown dtype 12345"},
      {"dtype that is not reduced",
       [&] { return reduce([](shardrec_tensor& t) { t.dtype = SHARDREC_BFLOAT16; }); },
       SHARDREC_INVALID_ARGUMENT, "dtype bfloat16"},
      {"negative ndim", [&] { return reduce([](shardrec_tensor& t) { t.ndim = -1; }); },
       SHARDREC_INVALID_ARGUMENT, "-1 dimensions"},
      {"ndim 9", [&] { return reduce([](shardrec_tensor& t) { t.ndim = 9; }); },
       SHARDREC_INVALID_ARGUMENT, "9 dimensions; 0 to 8"},
      {"negative size", [&] { return reduce([](shardrec_tensor& t) { t.shape[0] = -4; }); },
       SHARDREC_INVALID_ARGUMENT, "shape [-4]"},
      {"size that overflows",
       [&] {
         return reduce([](shardrec_tensor& t) {
           t.ndim = 3;
           t.shape[0] = t.shape[1] = t.shape[2] = int64_t{1} << 40;
         });
       },
       SHARDREC_INVALID_ARGUMENT, "which no memory can hold"},
      {"gaps", [&] { return reduce([](shardrec_tensor& t) { t.stride[0] = 2; }); },
       SHARDREC_INVALID_ARGUMENT, "stride 2 in dimension 0"},
      {"negative stride", [&] { return reduce([](shardrec_tensor& t) { t.stride[0] = -1; }); },
       SHARDREC_INVALID_ARGUMENT, "stride -1"},
      {"no data", [&] { return reduce([](shardrec_tensor& t) { t.data = nullptr; }); },
       SHARDREC_INVALID_ARGUMENT, "tensor has no data"},
      {"data out of alignment",
       [&] { return reduce([](shardrec_tensor& t) { t.data = static_cast<char*>(t.data) + 1; }); },
       SHARDREC_INVALID_ARGUMENT, "not aligned"},
      {"mean of integers",
       [&] {
         return reduce([](shardrec_tensor& t) { t.dtype = SHARDREC_INT32; },
                       SHARDREC_REDUCTION_MEAN);
       },
       SHARDREC_INVALID_ARGUMENT, "SHARDREC_REDUCTION_MEAN"},
      {"unknown reduction",
       [&] { return reduce([](shardrec_tensor&) {}, static_cast<shardrec_reduction>(4)); },
       SHARDREC_INVALID_ARGUMENT, "reduction is 4"},
  });
}

TEST_F(Malformed, Models) {
  const auto add = [&](const char* name, int64_t rows, int64_t dim,
                       shardrec_options* options = nullptr) {
    return shardrec_model_add_table(model, name, rows, dim, options, &out32);
  };
  const auto feature = [&](int32_t table, const char* name, int pooling = SHARDREC_POOLING_SUM) {
    return shardrec_model_add_feature(model, table, name, static_cast<shardrec_pooling>(pooling));
  };
  expect_refused({
      {"options for a model", [&] { return shardrec_model_create(plan_options, &out_model); },
       SHARDREC_INVALID_ARGUMENT, "NULL is accepted"},
      {"NULL name", [&] { return add(nullptr, 1, 1); }, SHARDREC_INVALID_ARGUMENT, "name is NULL"},
      {"empty name", [&] { return add("", 1, 1); }, SHARDREC_INVALID_ARGUMENT, "empty"},
      {"name that is not UTF-8", [&] { return add("\xff", 1, 1); }, SHARDREC_INVALID_ARGUMENT,
       "name is not UTF-8"},
      {"name taken", [&] { return add("user", 1, 1); }, SHARDREC_INVALID_ARGUMENT, "\"user\""},
      {"no rows", [&] { return add("t", 0, 1); }, SHARDREC_INVALID_ARGUMENT, "0 rows"},
      {"negative rows", [&] { return add("t", INT64_MIN, 1); }, SHARDREC_INVALID_ARGUMENT,
       "-9223372036854775808 rows"},
      {"too many rows", [&] { return add("t", (int64_t{1} << 40) + 1, 1); },
       SHARDREC_INVALID_ARGUMENT, "1099511627777 rows"},
      {"no columns", [&] { return add("t", 1, 0); }, SHARDREC_INVALID_ARGUMENT, "0 columns"},
      {"too many columns", [&] { return add("t", 1, 65537); }, SHARDREC_INVALID_ARGUMENT,
       "65537 columns"},
      {"options of another kind", [&] { return add("t", 1, 1, plan_options); },
       SHARDREC_INVALID_ARGUMENT, "kind PLAN; kind TABLE is accepted"},
      {"an initial range upside down",
       [&] {
         Options options;
         EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_TABLE, options.out()));
         EXPECT_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_INIT_MIN, 2));
         EXPECT_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_INIT_MAX, 1));
         return add("t", 1, 1, options);
       },
       SHARDREC_INVALID_ARGUMENT, "\"t\""},
      {"feature of no table", [&] { return feature(2, "f"); }, SHARDREC_INVALID_ARGUMENT,
       "table 2; the model has 2 tables"},
      {"feature of a negative table", [&] { return feature(-1, "f"); }, SHARDREC_INVALID_ARGUMENT,
       "table -1"},
      {"feature taken", [&] { return feature(1, "user_id"); }, SHARDREC_INVALID_ARGUMENT,
       "\"user_id\""},
      {"feature without a name", [&] { return feature(1, nullptr); }, SHARDREC_INVALID_ARGUMENT,
       "name is NULL"},
      {"unknown pooling", [&] { return feature(1, "f", 7); }, SHARDREC_INVALID_ARGUMENT, "7"},
      {"optimizer options of another kind",
       [&] { return shardrec_model_set_optimizer(model, SHARDREC_ALL_TABLES, table_options); },
       SHARDREC_INVALID_ARGUMENT, "kind TABLE; kind OPTIMIZER is accepted"},
      {"a weight decay that the optimizer does not take",
       [&] {
         Options options;
         EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, options.out()));
         EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_OPTIMIZER, "adam"));
         EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_WEIGHT_DECAY_MODE, "l2"));
         return shardrec_model_set_optimizer(model, SHARDREC_ALL_TABLES, options);
       },
       SHARDREC_UNSUPPORTED, "adam has no weight_decay_mode l2"},
      {"an optimizer for no table",
       [&] { return shardrec_model_set_optimizer(model, -2, nullptr); }, SHARDREC_NOT_FOUND,
       "no table -2"},
      {"a table's optimizer of another kind",
       [&] { return shardrec_model_set_optimizer(model, 0, table_options); },
       SHARDREC_INVALID_ARGUMENT, "kind TABLE; kind OPTIMIZER is accepted"},
      {"no feature", [&] { return shardrec_model_feature(model, 1, nullptr, nullptr); },
       SHARDREC_NOT_FOUND, "no feature 1"},
      {"a negative feature", [&] { return shardrec_model_feature(model, -1, nullptr, nullptr); },
       SHARDREC_NOT_FOUND, "no feature -1"},
      {"no table", [&] { return shardrec_model_table(model, 2, nullptr, nullptr); },
       SHARDREC_NOT_FOUND, "no table 2"},
      {"NULL JSON", [&] { return shardrec_model_from_json(nullptr, &out_model); },
       SHARDREC_INVALID_ARGUMENT, "json is NULL"},
      {"no JSON", [&] { return shardrec_model_from_json("{", &out_model); },
       SHARDREC_INVALID_ARGUMENT, "model"},
      {"JSON of something else",
       [&] { return shardrec_model_from_json(R"({"format": "shardrec-plan-1"})", &out_model); },
       SHARDREC_INVALID_ARGUMENT, "format"},
  });
}

TEST_F(Malformed, TopologiesAndPlans) {
  const auto box = [&](int32_t table, int32_t rank, int64_t row, int64_t rows, int64_t col,
                       int64_t cols) { return add_box(plan, table, rank, row, rows, col, cols); };
  const auto read = [&](int32_t table, int32_t number) {
    shardrec_box out{};
    return read_box(plan, table, number, &out);
  };
  expect_refused({
      {"no ranks", [&] { return shardrec_topology_create(0, 1, nullptr, &out_topology); },
       SHARDREC_INVALID_ARGUMENT, "ranks is 0"},
      {"too many ranks",
       [&] { return shardrec_topology_create(1048577, 1, nullptr, &out_topology); },
       SHARDREC_INVALID_ARGUMENT, "ranks is 1048577"},
      {"ranks_per_node", [&] { return shardrec_topology_create(2, 3, nullptr, &out_topology); },
       SHARDREC_INVALID_ARGUMENT, "ranks_per_node is 3"},
      {"options of another kind",
       [&] { return shardrec_plan_create(model, topology, table_options, &out_plan); },
       SHARDREC_INVALID_ARGUMENT, "kind TABLE; kind PLAN is accepted"},
      {"box of no table", [&] { return box(2, 0, 0, 1, 0, 1); }, SHARDREC_INVALID_ARGUMENT, "2"},
      {"box on no rank", [&] { return box(0, 4, 50, 50, 0, 8); }, SHARDREC_INVALID_ARGUMENT, "4"},
      {"box on a negative rank", [&] { return box(0, -1, 50, 50, 0, 8); },
       SHARDREC_INVALID_ARGUMENT, "-1"},
      {"empty box", [&] { return box(0, 0, 50, 0, 0, 8); }, SHARDREC_INVALID_ARGUMENT, "\"user\""},
      {"box with negative columns", [&] { return box(0, 0, 50, 50, 0, -8); },
       SHARDREC_INVALID_ARGUMENT, "\"user\""},
      {"box beyond the rows", [&] { return box(0, 0, 50, 51, 0, 8); }, SHARDREC_INVALID_ARGUMENT,
       "\"user\""},
      {"box that overflows", [&] { return box(0, 0, INT64_MAX, INT64_MAX, 0, 8); },
       SHARDREC_INVALID_ARGUMENT, "\"user\""},
      {"box beyond the columns", [&] { return box(0, 0, 50, 50, 1, 8); }, SHARDREC_INVALID_ARGUMENT,
       "\"user\""},
      {"box that overlaps", [&] { return box(0, 0, 49, 51, 0, 8); }, SHARDREC_INVALID_ARGUMENT,
       "overlap"},
      {"box of a replicated table", [&] { return box(1, 0, 0, 50, 0, 4); },
       SHARDREC_INVALID_ARGUMENT, "\"item\""},
      {"replicated with boxes",
       [&] { return shardrec_plan_replicate(plan, 0, SHARDREC_REPLICATION_SAMPLES); },
       SHARDREC_INVALID_ARGUMENT, "\"user\""},
      {"replicated, no table",
       [&] { return shardrec_plan_replicate(plan, 5, SHARDREC_REPLICATION_SAMPLES); },
       SHARDREC_INVALID_ARGUMENT, "5"},
      {"a hole", [&] { return shardrec_plan_check(plan); }, SHARDREC_INVALID_ARGUMENT, "\"user\""},
      {"count of no table", [&] { return shardrec_plan_box_count(plan, 2, &out32); },
       SHARDREC_NOT_FOUND, "no table 2"},
      {"no such box", [&] { return read(0, 1); }, SHARDREC_NOT_FOUND,
       "no box 1; table \"user\" has 1 boxes"},
      {"negative box", [&] { return read(0, -1); }, SHARDREC_NOT_FOUND, "no box -1"},
      {"box of no table", [&] { return read(-1, 0); }, SHARDREC_NOT_FOUND, "no table -1"},
      {"NULL JSON", [&] { return shardrec_plan_from_json(model, nullptr, &out_plan); },
       SHARDREC_INVALID_ARGUMENT, "json is NULL"},
      {"no JSON", [&] { return shardrec_plan_from_json(model, "[]", &out_plan); },
       SHARDREC_INVALID_ARGUMENT, "plan"},
      {"a plan with a hole",
       [&] {
         char* text = nullptr;
         EXPECT_OK(shardrec_plan_to_json(plan, &text));
         return shardrec_plan_from_json(model, take(text).c_str(), &out_plan);
       },
       SHARDREC_INVALID_ARGUMENT, "\"user\""},
  });
}

TEST_F(Malformed, LogAndTensors) {
  shardrec_tensor tensor{};
  const auto no_dtype = static_cast<shardrec_dtype>(1);
  expect_refused({
      {"level", [&] { return shardrec_log_set_level(static_cast<shardrec_log_level>(5)); },
       SHARDREC_INVALID_ARGUMENT, "level is 5"},
      {"timeout", [&] { return shardrec_log_next(-1, nullptr, nullptr, &out_text); },
       SHARDREC_INVALID_ARGUMENT, "timeout_ms is -1"},
      {"dtype", [&] { return shardrec_tensor_vector(nullptr, no_dtype, 0, &tensor); },
       SHARDREC_INVALID_ARGUMENT, "dtype is 1"},
      {"length", [&] { return shardrec_tensor_vector(nullptr, SHARDREC_INT32, -1, &tensor); },
       SHARDREC_INVALID_ARGUMENT, "length is -1"},
      {"rows", [&] { return shardrec_tensor_matrix(nullptr, SHARDREC_INT32, -1, 0, &tensor); },
       SHARDREC_INVALID_ARGUMENT, "rows is -1"},
      {"cols", [&] { return shardrec_tensor_matrix(nullptr, SHARDREC_INT32, 0, -2, &tensor); },
       SHARDREC_INVALID_ARGUMENT, "cols is -2"},
  });
  EXPECT_EQ(tensor.dtype, 0);
}

}  // namespace
}  // namespace shardrec::test
