// Options: every key of the header, one row each, against what the setters and getters do.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "capi_test.h"

namespace shardrec::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

enum class Type { kInteger, kReal, kText };

// What options.h says of a key.
struct Key {
  shardrec_option key;
  const char* name;
  std::vector<shardrec_options_kind> kinds;
  Type type;
  const char* initial;            // as text; "" of a number: it depends on the use
  std::vector<const char*> good;  // texts that are accepted, in the form that is given back
  std::vector<double> bad;        // values that are not
  std::vector<const char*> bad_texts;
};

#define KEY(name) SHARDREC_OPTION_##name, "SHARDREC_OPTION_" #name

const std::vector<Key>& keys() {
  const std::vector<shardrec_options_kind> optimizer = {SHARDREC_OPTIONS_OPTIMIZER,
                                                        SHARDREC_OPTIONS_MLP};
  const std::vector<shardrec_options_kind> of_tables = {SHARDREC_OPTIONS_OPTIMIZER};
  const std::vector<shardrec_options_kind> table = {SHARDREC_OPTIONS_TABLE};
  const std::vector<shardrec_options_kind> collection = {SHARDREC_OPTIONS_COLLECTION};
  const std::vector<shardrec_options_kind> both = {SHARDREC_OPTIONS_COLLECTION,
                                                   SHARDREC_OPTIONS_MLP};
  const std::vector<shardrec_options_kind> on_devices = {
      SHARDREC_OPTIONS_COLLECTION, SHARDREC_OPTIONS_MLP, SHARDREC_OPTIONS_METRICS,
      SHARDREC_OPTIONS_FSDP};
  const std::vector<shardrec_options_kind> fsdp = {SHARDREC_OPTIONS_FSDP};
  const std::vector<shardrec_options_kind> rendezvous = {SHARDREC_OPTIONS_RENDEZVOUS};
  static constexpr const char* k65Letters =
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
  const std::vector<double> not_a_size = {-1e-300, -1, kInfinity, -kInfinity, kNan};
  const std::vector<double> not_below_one = {-0.1, 1, 2, kInfinity, kNan};
  const std::vector<double> not_a_scale = {-1, 0, 0.999, 65536.5, kInfinity, kNan};
  const std::vector<double> not_finite = {kInfinity, -kInfinity, kNan};
  const std::vector<double> not_a_switch = {-1, 2, 1e9};
  const std::vector<const char*> no_number = {"", "x", "1x", " 1", "1 ", "0,5", "--1", "+-1"};
  const std::vector<const char*> no_integer = {"", "x", "1.0", "1e2", " 1", "99999999999999999999"};
  const std::vector<const char*> no_name = {"", "1", "SGD", "sgd ", "SHARDREC_OPTIMIZER_SGD"};
  static const std::vector<Key> all = {
      {KEY(OPTIMIZER),
       optimizer,
       Type::kInteger,
       "sgd",
       {"sgd", "adagrad", "rowwise_adagrad", "adam", "partial_rowwise_adam", "lamb",
        "partial_rowwise_lamb", "lars_sgd", "momentum_sgd"},
       {-1, 0, 10, 1e9, 5e9},
       no_name},
      {KEY(LEARNING_RATE),
       optimizer,
       Type::kReal,
       "0.01",
       {"0", "0.1", "1e-300"},
       not_a_size,
       no_number},
      {KEY(EPS), optimizer, Type::kReal, "1e-08", {"0", "1e-10", "0.5"}, not_a_size, no_number},
      {KEY(WEIGHT_DECAY), optimizer, Type::kReal, "0", {"0", "0.3"}, not_a_size, no_number},
      {KEY(WEIGHT_DECAY_MODE),
       optimizer,
       Type::kInteger,
       "none",
       {"none", "l2", "decouple"},
       {-1, 3, 1e9},
       no_name},
      {KEY(MAX_GRADIENT), optimizer, Type::kReal, "0", {"0", "1.5"}, not_a_size, no_number},
      {KEY(BETA1), optimizer, Type::kReal, "0.9", {"0", "0.999999"}, not_below_one, no_number},
      {KEY(BETA2), optimizer, Type::kReal, "0.999", {"0", "0.5"}, not_below_one, no_number},
      {KEY(ROW_STATISTICS), optimizer, Type::kInteger, "row", {"row", "shard"}, {-1, 2}, no_name},
      {KEY(MOMENTUM), optimizer, Type::kReal, "0.9", {"0", "0.5"}, not_below_one, no_number},
      {KEY(ETA), of_tables, Type::kReal, "0.001", {"0", "1", "1e-300"}, not_a_size, no_number},
      {KEY(MAX_NORM), of_tables, Type::kReal, "0", {"0", "2.5"}, not_a_size, no_number},
      {KEY(MOMENTUM_SCALE), of_tables, Type::kReal, "1", {"1", "65536"}, not_a_scale, no_number},
      {KEY(DTYPE),
       table,
       Type::kInteger,
       "float32",
       {"float32", "float16", "bfloat16"},
       {-1, 0, 7, 73731},
       no_name},
      {KEY(INIT), table, Type::kInteger, "uniform", {"uniform", "zeros"}, {-1, 2}, no_name},
      {KEY(INIT_MIN), table, Type::kReal, "", {"-1", "0", "-1e+300"}, not_finite, no_number},
      {KEY(INIT_MAX), table, Type::kReal, "", {"-1", "0", "2.5"}, not_finite, no_number},
      {KEY(ROUNDING),
       table,
       Type::kInteger,
       "nearest",
       {"nearest", "stochastic"},
       {-1, 2},
       no_name},
      {KEY(SHARDING),
       {SHARDREC_OPTIONS_PLAN},
       Type::kInteger,
       "auto",
       {"auto", "table_wise", "row_wise", "column_wise", "table_row_wise", "table_column_wise",
        "grid", "data_parallel", "mixed"},
       {-1, 9, 1e9},
       no_name},
      {KEY(REPLICATION),
       {SHARDREC_OPTIONS_PLAN},
       Type::kInteger,
       "auto",
       {"auto", "samples", "rows", "dense"},
       {-1, 4},
       no_name},
      {KEY(BATCH_SIZE),
       {SHARDREC_OPTIONS_PLAN},
       Type::kInteger,
       "0",
       {"0", "9223372036854775807"},
       {-1},
       no_integer},
      {KEY(BAG_LENGTH),
       {SHARDREC_OPTIONS_PLAN},
       Type::kReal,
       "1",
       {"0", "2.5", "1e+300"},
       {-1, kInfinity, kNan},
       no_number},
      {KEY(BALANCE),
       {SHARDREC_OPTIONS_PLAN},
       Type::kInteger,
       "bytes",
       {"bytes", "time"},
       {-1, 2},
       no_name},
      {KEY(SEED),
       both,
       Type::kInteger,
       "0",
       {"0", "-5", "9223372036854775807", "-9223372036854775808"},
       {},
       no_integer},
      {KEY(THREADS),
       {SHARDREC_OPTIONS_COLLECTION, SHARDREC_OPTIONS_MLP, SHARDREC_OPTIONS_DDP,
        SHARDREC_OPTIONS_FSDP},
       Type::kInteger,
       "",
       {"1", "1024"},
       {-1, 0, 1025, 1e12},
       no_integer},
      {KEY(GRADIENT_DIVISOR),
       collection,
       Type::kInteger,
       "ranks",
       {"ranks", "none", "custom", "samples"},
       {-1, 4},
       no_name},
      {KEY(GRADIENT_DIVISOR_VALUE),
       collection,
       Type::kReal,
       "1",
       {"0.5", "1e-30"},
       {0, -1, kInfinity, kNan},
       no_number},
      {KEY(OUT_OF_RANGE),
       table,
       Type::kInteger,
       "error",
       {"error", "drop", "clamp"},
       {-1, 3, 1e9},
       {"", "0", "Drop", "warn"}},
      {KEY(OUTPUT_DTYPE),
       collection,
       Type::kInteger,
       "float32",
       {"float32", "float16", "bfloat16"},
       {-1, SHARDREC_INT32, SHARDREC_FLOAT64, 1e9},
       {"", "int32", "float64", "half"}},
      {KEY(FORWARD_COMPRESSION),
       collection,
       Type::kInteger,
       "none",
       {"none", "float16", "bfloat16", "int8"},
       {-1, 4, 1e9},
       {"", "0", "float32", "Int8"}},
      {KEY(BACKWARD_COMPRESSION),
       collection,
       Type::kInteger,
       "none",
       {"none", "float16", "bfloat16", "int8"},
       {-1, 4, 1e9},
       {"", "0", "float32", "Int8"}},
      {KEY(HIERARCHICAL), collection, Type::kInteger, "", {"0", "1"}, not_a_switch, no_integer},
      {KEY(DEVICE), on_devices, Type::kInteger, "-1", {"-1", "0", "1023"}, {-2, 1024}, no_integer},
      {KEY(DEVICE_WAIT),
       {SHARDREC_OPTIONS_COLLECTION, SHARDREC_OPTIONS_MLP, SHARDREC_OPTIONS_METRICS,
        SHARDREC_OPTIONS_DDP, SHARDREC_OPTIONS_FSDP},
       Type::kInteger,
       "sleep",
       {"sleep", "spin"},
       {-1, 2, 1e9},
       {"", "0", "Spin", "yield"}},
      {KEY(REPLICA_SYNC),
       collection,
       Type::kInteger,
       "touched",
       {"full", "touched", "exact", "sharded"},
       {-1, 4, 1e9},
       {"", "1", "Full", "none"}},
      {KEY(SYNC_EVERY), collection, Type::kInteger, "0", {"0", "1", "1000"}, {-1}, no_integer},
      {KEY(NON_FINITE),
       {SHARDREC_OPTIONS_COLLECTION, SHARDREC_OPTIONS_DDP, SHARDREC_OPTIONS_FSDP,
        SHARDREC_OPTIONS_SCORER},
       Type::kInteger,
       "allow",
       {"allow", "error", "skip"},
       {-1, 3, 1e9},
       no_name},
      {KEY(LOOKUPS), collection, Type::kInteger, "2", {"1", "8"}, {-1, 0, 9}, no_integer},
      {KEY(WEIGHT_GRADIENT),
       {SHARDREC_OPTIONS_LOOKUP},
       Type::kInteger,
       "0",
       {"0", "1"},
       not_a_switch,
       no_integer},
      {KEY(BORROW),
       {SHARDREC_OPTIONS_LOOKUP},
       Type::kInteger,
       "0",
       {"0", "1"},
       not_a_switch,
       no_integer},
      {KEY(DDP_AVERAGE),
       {SHARDREC_OPTIONS_DDP, SHARDREC_OPTIONS_FSDP},
       Type::kInteger,
       "1",
       {"0", "1"},
       not_a_switch,
       no_integer},
      {KEY(DDP_BROADCAST),
       {SHARDREC_OPTIONS_DDP},
       Type::kInteger,
       "1",
       {"0", "1"},
       not_a_switch,
       no_integer},
      {KEY(DDP_FACTOR),
       {SHARDREC_OPTIONS_DDP, SHARDREC_OPTIONS_FSDP},
       Type::kReal,
       "1",
       {"0.5", "-2", "0"},
       {kInfinity, kNan},
       no_number},
      {KEY(DDP_FIRST_BUCKET_BYTES),
       {SHARDREC_OPTIONS_DDP},
       Type::kInteger,
       "1048576",
       {"1", "9223372036854775807"},
       {0, -1},
       no_integer},
      {KEY(DDP_BUCKET_BYTES),
       {SHARDREC_OPTIONS_DDP},
       Type::kInteger,
       "4194304",
       {"1", "9223372036854775807"},
       {0, -1},
       no_integer},
      {KEY(DDP_ORDER),
       {SHARDREC_OPTIONS_DDP},
       Type::kInteger,
       "reverse",
       {"reverse", "recorded"},
       {-1, 2, 1e9},
       no_name},
      {KEY(DDP_UNUSED),
       {SHARDREC_OPTIONS_DDP},
       Type::kInteger,
       "error",
       {"error", "mark", "zero"},
       {-1, 3, 1e9},
       no_name},
      {KEY(DDP_COMPRESSION),
       {SHARDREC_OPTIONS_DDP},
       Type::kInteger,
       "none",
       {"none", "float16", "bfloat16"},
       {-1, 3, 1e9},
       {"", "0", "float32", "int8"}},
      {KEY(DDP_JOIN_DIVISOR),
       {SHARDREC_OPTIONS_DDP},
       Type::kInteger,
       "world",
       {"world", "live"},
       {-1, 2, 1e9},
       no_name},
      {KEY(DDP_STEP_IN_BACKWARD),
       {SHARDREC_OPTIONS_DDP},
       Type::kInteger,
       "0",
       {"0", "1"},
       not_a_switch,
       no_integer},
      {KEY(DDP_THREAD),
       {SHARDREC_OPTIONS_DDP},
       Type::kInteger,
       "",
       {"0", "1"},
       not_a_switch,
       no_integer},
      {KEY(DDP_REDUCTION),
       {SHARDREC_OPTIONS_DDP},
       Type::kInteger,
       "ordered",
       {"ordered", "nccl"},
       {-1, 2, 1e9},
       no_name},
      {KEY(PRECISION),
       {SHARDREC_OPTIONS_MLP},
       Type::kInteger,
       "float32",
       {"float32", "tfloat32", "bfloat16", "float16"},
       {-1, 4, 1e9},
       no_name},
      {KEY(LOSS_SCALE),
       {SHARDREC_OPTIONS_MLP},
       Type::kReal,
       "65536",
       {"1", "2", "16777216"},
       {0, -2, 0.5, 3, 33554432, kInfinity, kNan},
       no_number},
      {KEY(LOSS_SCALE_STEPS),
       {SHARDREC_OPTIONS_MLP},
       Type::kInteger,
       "2000",
       {"0", "1", "9223372036854775807"},
       {-1},
       no_integer},
      {KEY(ACCUMULATE_GRADIENTS),
       {SHARDREC_OPTIONS_MLP},
       Type::kInteger,
       "0",
       {"0", "1"},
       not_a_switch,
       no_integer},
      {KEY(STREAM),
       {SHARDREC_OPTIONS_MLP, SHARDREC_OPTIONS_METRICS, SHARDREC_OPTIONS_DDP,
        SHARDREC_OPTIONS_FSDP},
       Type::kInteger,
       "0",
       {"0", "-5", "9223372036854775807", "-9223372036854775808"},
       {},
       no_integer},
      {KEY(ENGINE),
       {SHARDREC_OPTIONS_COMM},
       Type::kInteger,
       "",
       {"gloo", "mpi", "nccl"},
       {-1, 0, 4},
       {"", "1", "Gloo", "local"}},
      {KEY(COMM_SETUP_SECONDS),
       {SHARDREC_OPTIONS_COMM},
       Type::kReal,
       "1800",
       {"0.5", "1e-30"},
       {0, -1, kInfinity, kNan},
       no_number},
      {KEY(INTERFACE),
       {SHARDREC_OPTIONS_COMM},
       Type::kText,
       "",
       {"", "eth0", "127.0.0.1", "2001:db8::1"},
       {},
       {"eth 0", "e\n", k65Letters}},
      {KEY(ADDRESS),
       rendezvous,
       Type::kText,
       "127.0.0.1",
       {"::1", "node-3.example.org", "localhost"},
       {},
       {"", "a b", "http://x/"}},
      {KEY(PORT), rendezvous, Type::kInteger, "0", {"1", "65535"}, {-1, 65536}, no_integer},
      {KEY(ADVERTISED_ADDRESS), rendezvous, Type::kText, "", {"", "10.0.0.1"}, {}, {"a b"}},
      {KEY(JOB), rendezvous, Type::kText, "", {"", "job-1.2_~"}, {}, {"a:b", k65Letters}},
      {KEY(SECRET),
       rendezvous,
       Type::kText,
       "",
       {"", "0123456789abcdef"},
       {},
       {"0123456789abcde", "0123456789abcdef:", "0123456789abcde\xc3\xbc"}},
      {KEY(ALLOW_PLAIN_TCP),
       {SHARDREC_OPTIONS_RENDEZVOUS, SHARDREC_OPTIONS_COMM},
       Type::kInteger,
       "0",
       {"1", "0"},
       not_a_switch,
       no_integer},
      {KEY(SILENCE_SECONDS),
       rendezvous,
       Type::kReal,
       "4",
       {"0.1", "3600"},
       {0, 0.05, 3601, -1, kInfinity, kNan},
       no_number},
      {KEY(KEEP_LAST),
       {SHARDREC_OPTIONS_CHECKPOINT},
       Type::kInteger,
       "0",
       {"0", "1", "9223372036854775807"},
       {-1},
       no_integer},
      {KEY(MOST_DELTAS),
       {SHARDREC_OPTIONS_CHECKPOINT},
       Type::kInteger,
       "100",
       {"0", "1", "1000"},
       {-1, 1001},
       no_integer},
      {KEY(DELTA_STATES),
       {SHARDREC_OPTIONS_CHECKPOINT},
       Type::kInteger,
       "1",
       {"1", "0"},
       not_a_switch,
       no_integer},
      {KEY(SERVED_TABLES),
       {SHARDREC_OPTIONS_SCORER},
       Type::kInteger,
       "memory",
       {"memory", "mapped", "int8"},
       {-1, 3},
       no_name},
      {KEY(SERVED_COLLECTION), {SHARDREC_OPTIONS_SCORER}, Type::kText, "", {"tables", ""}, {}, {}},
      {KEY(BOTTOM_LAYERS), {SHARDREC_OPTIONS_SCORER}, Type::kText, "", {"below", ""}, {}, {}},
      {KEY(TOP_LAYERS), {SHARDREC_OPTIONS_SCORER}, Type::kText, "", {"above", ""}, {}, {}},
      {KEY(LOGITS),
       {SHARDREC_OPTIONS_SCORER},
       Type::kInteger,
       "0",
       {"1", "0"},
       not_a_switch,
       no_integer},
      {KEY(FSDP_STRATEGY),
       fsdp,
       Type::kInteger,
       "full_shard",
       {"full_shard", "shard_grad_op", "hybrid_shard", "no_shard"},
       {-1, 4},
       no_name},
      {KEY(FSDP_PREFETCH), fsdp, Type::kInteger, "1", {"0", "4"}, {-1, 5}, no_integer},
      {KEY(FSDP_HELD_UNITS), fsdp, Type::kInteger, "1", {"1", "64"}, {-1, 0, 65}, no_integer},
      {KEY(FSDP_PARAMETER_DTYPE),
       fsdp,
       Type::kInteger,
       "float32",
       {"float32", "float16", "bfloat16"},
       {-1, SHARDREC_INT32, SHARDREC_FLOAT64, 1e9},
       {"", "int32", "float64", "half"}},
      {KEY(FSDP_REDUCE_DTYPE),
       fsdp,
       Type::kInteger,
       "float32",
       {"float32", "float16", "bfloat16"},
       {-1, SHARDREC_INT32, SHARDREC_FLOAT64, 1e9},
       {"", "int32", "float64", "half"}},
      {KEY(FSDP_OFFLOAD), fsdp, Type::kInteger, "0", {"0", "1"}, not_a_switch, no_integer},
  };
  return all;
}
#undef KEY

const std::vector<shardrec_options_kind> kKinds = {
    SHARDREC_OPTIONS_OPTIMIZER,  SHARDREC_OPTIONS_TABLE,      SHARDREC_OPTIONS_PLAN,
    SHARDREC_OPTIONS_COLLECTION, SHARDREC_OPTIONS_LOOKUP,     SHARDREC_OPTIONS_DDP,
    SHARDREC_OPTIONS_MLP,        SHARDREC_OPTIONS_MESH,       SHARDREC_OPTIONS_COMM,
    SHARDREC_OPTIONS_RENDEZVOUS, SHARDREC_OPTIONS_CHECKPOINT, SHARDREC_OPTIONS_SCORER,
    SHARDREC_OPTIONS_METRICS,    SHARDREC_OPTIONS_FSDP};

Options make(shardrec_options_kind kind) {
  Options options;
  EXPECT_OK(shardrec_options_create(kind, options.out()));
  return options;
}

std::string text_of(shardrec_options* options, shardrec_option key) {
  char* text = nullptr;
  EXPECT_OK(shardrec_options_get_text(options, key, &text));
  return take(text);
}

shardrec_status set_number(shardrec_options* options, const Key& key, double value) {
  return key.type == Type::kReal
             ? shardrec_options_set_f64(options, key.key, value)
             : shardrec_options_set_i64(options, key.key, static_cast<int64_t>(value));
}

// Calls body(key, kind, options) for every key and every kind that takes it.
template <class Body>
void for_each_key(const Body& body) {
  for (const Key& key : keys()) {
    for (const shardrec_options_kind kind : key.kinds) {
      SCOPED_TRACE(std::string(key.name) + " of kind " + std::to_string(kind));
      const Options options = make(kind);
      body(key, options);
    }
  }
}

TEST(Options, EveryKeyHasItsDefault) {
  for_each_key([](const Key& key, shardrec_options* options) {
    if (key.initial[0] != '\0' || key.type == Type::kText) {
      EXPECT_EQ(text_of(options, key.key), key.initial);
      return;
    }
    int64_t integer = 77;
    double real = 77;
    char* text = nullptr;
    EXPECT_EQ(shardrec_options_get_text(options, key.key, &text), SHARDREC_NOT_FOUND);
    EXPECT_EQ(text, nullptr);
    if (key.type == Type::kReal) {
      EXPECT_EQ(shardrec_options_get_f64(options, key.key, &real), SHARDREC_NOT_FOUND);
    } else {
      EXPECT_EQ(shardrec_options_get_i64(options, key.key, &integer), SHARDREC_NOT_FOUND);
    }
    EXPECT_EQ(integer, 77);
    EXPECT_EQ(real, 77);
    EXPECT_TRUE(contains(shardrec_last_error(), key.name)) << shardrec_last_error();
  });
}

TEST(Options, ValuesComeBackInEveryForm) {
  for_each_key([](const Key& key, shardrec_options* options) {
    for (const char* value : key.good) {
      SCOPED_TRACE(value);
      EXPECT_OK(shardrec_options_set_text(options, key.key, value));
      EXPECT_EQ(text_of(options, key.key), value);
      if (key.type == Type::kText) continue;
      const Options other = make(key.kinds[0]);
      if (key.type == Type::kReal) {
        double number = 0;
        EXPECT_OK(shardrec_options_get_f64(options, key.key, &number));
        EXPECT_EQ(number, std::strtod(value, nullptr));
        EXPECT_OK(shardrec_options_set_f64(other, key.key, number));
      } else {
        int64_t number = 0;
        EXPECT_OK(shardrec_options_get_i64(options, key.key, &number));
        EXPECT_OK(shardrec_options_set_i64(other, key.key, number));
      }
      EXPECT_EQ(text_of(other, key.key), value);
    }
  });
}

TEST(Options, RefusedValuesChangeNothingAndTheSentenceNamesTheKey) {
  for_each_key([](const Key& key, shardrec_options* options) {
    const char* before = key.good.back();
    ASSERT_OK(shardrec_options_set_text(options, key.key, before));
    for (const double value : key.bad) {
      SCOPED_TRACE(value);
      EXPECT_EQ(set_number(options, key, value), SHARDREC_INVALID_ARGUMENT);
      EXPECT_TRUE(contains(shardrec_last_error(), key.name)) << shardrec_last_error();
      EXPECT_TRUE(contains(shardrec_last_error(), "is accepted")) << shardrec_last_error();
    }
    for (const char* text : key.bad_texts) {
      SCOPED_TRACE(text);
      EXPECT_EQ(shardrec_options_set_text(options, key.key, text), SHARDREC_INVALID_ARGUMENT);
      EXPECT_TRUE(contains(shardrec_last_error(), key.name)) << shardrec_last_error();
    }
    EXPECT_EQ(shardrec_options_set_text(options, key.key, nullptr), SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(shardrec_options_set_text(options, key.key, "\xff"), SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(text_of(options, key.key), before);
  });
}

TEST(Options, AKeyIsOfOneType) {
  for_each_key([](const Key& key, shardrec_options* options) {
    int64_t integer = 77;
    double real = 77;
    if (key.type == Type::kText) {
      EXPECT_EQ(shardrec_options_set_i64(options, key.key, 0), SHARDREC_INVALID_ARGUMENT);
      EXPECT_TRUE(contains(shardrec_last_error(), "is a text")) << shardrec_last_error();
      EXPECT_EQ(shardrec_options_get_i64(options, key.key, &integer), SHARDREC_INVALID_ARGUMENT);
      EXPECT_EQ(shardrec_options_set_f64(options, key.key, 0), SHARDREC_INVALID_ARGUMENT);
      EXPECT_EQ(shardrec_options_get_f64(options, key.key, &real), SHARDREC_INVALID_ARGUMENT);
    } else if (key.type == Type::kReal) {
      EXPECT_EQ(shardrec_options_set_i64(options, key.key, 0), SHARDREC_INVALID_ARGUMENT);
      EXPECT_TRUE(contains(shardrec_last_error(), "real number")) << shardrec_last_error();
      EXPECT_EQ(shardrec_options_get_i64(options, key.key, &integer), SHARDREC_INVALID_ARGUMENT);
    } else {
      EXPECT_EQ(shardrec_options_set_f64(options, key.key, 1), SHARDREC_INVALID_ARGUMENT);
      EXPECT_TRUE(contains(shardrec_last_error(), "integer")) << shardrec_last_error();
      EXPECT_EQ(shardrec_options_get_f64(options, key.key, &real), SHARDREC_INVALID_ARGUMENT);
    }
    EXPECT_TRUE(contains(shardrec_last_error(), key.name)) << shardrec_last_error();
    EXPECT_EQ(integer, 77);
    EXPECT_EQ(real, 77);
  });
}

TEST(Options, KindsRefuseTheKeysOfOthers) {
  for (const Key& key : keys()) {
    for (const shardrec_options_kind kind : kKinds) {
      if (std::find(key.kinds.begin(), key.kinds.end(), kind) != key.kinds.end()) continue;
      SCOPED_TRACE(std::string(key.name) + " of kind " + std::to_string(kind));
      const Options options = make(kind);
      int64_t integer = 77;
      double real = 77;
      char* text = nullptr;
      EXPECT_EQ(shardrec_options_set_i64(options, key.key, 1), SHARDREC_INVALID_ARGUMENT);
      EXPECT_TRUE(contains(shardrec_last_error(), key.name)) << shardrec_last_error();
      EXPECT_EQ(shardrec_options_set_f64(options, key.key, 1), SHARDREC_INVALID_ARGUMENT);
      EXPECT_EQ(shardrec_options_set_text(options, key.key, "1"), SHARDREC_INVALID_ARGUMENT);
      EXPECT_EQ(shardrec_options_get_i64(options, key.key, &integer), SHARDREC_INVALID_ARGUMENT);
      EXPECT_EQ(shardrec_options_get_f64(options, key.key, &real), SHARDREC_INVALID_ARGUMENT);
      EXPECT_EQ(shardrec_options_get_text(options, key.key, &text), SHARDREC_INVALID_ARGUMENT);
      EXPECT_EQ(integer, 77);
      EXPECT_EQ(real, 77);
      EXPECT_EQ(text, nullptr);
    }
  }
}

TEST(Options, KeysAndKindsThatDoNotExistAreRefused) {
  const Options options = make(SHARDREC_OPTIONS_PLAN);
  for (const int number : {0, 1, 99, 199, 299, 399, 499, 699, 1000000}) {
    const auto key = static_cast<shardrec_option>(number);
    EXPECT_EQ(shardrec_options_set_i64(options, key, 1), SHARDREC_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(shardrec_last_error(), std::to_string(number))) << shardrec_last_error();
  }
  for (const int number : {0, 15, 1000000}) {
    const auto kind = static_cast<shardrec_options_kind>(number);
    shardrec_options* out = nullptr;
    EXPECT_EQ(shardrec_options_create(kind, &out), SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(out, nullptr);
    EXPECT_TRUE(contains(shardrec_last_error(), std::to_string(number))) << shardrec_last_error();
  }
}

TEST(Options, DtypesThatTablesDoNotHaveAreRefused) {
  const Options options = make(SHARDREC_OPTIONS_TABLE);
  for (const char* dtype : {"int32", "int64", "float64"}) {
    EXPECT_EQ(shardrec_options_set_text(options, SHARDREC_OPTION_DTYPE, dtype),
              SHARDREC_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(shardrec_last_error(), dtype)) << shardrec_last_error();
  }
  EXPECT_EQ(text_of(options, SHARDREC_OPTION_DTYPE), "float32");
}

TEST(Options, ANumberMayHaveAPlusSign) {
  const Options options = make(SHARDREC_OPTIONS_COLLECTION);
  EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_LOOKUPS, "+3"));
  EXPECT_EQ(text_of(options, SHARDREC_OPTION_LOOKUPS), "3");
}

// Switches to a locale with a decimal comma, which is compiled where none is installed; false when
// that is not possible either.
bool use_comma_locale() {
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8"}) {
    if (std::setlocale(LC_ALL, name) != nullptr) return true;
  }
  const std::string folder = ::testing::TempDir() + "shardrec_locale_" + std::to_string(getpid());
  const std::string command = "mkdir -p " + folder + " && localedef -i de_DE -f UTF-8 " + folder +
                              "/de_DE.UTF-8 >/dev/null 2>&1";
  const bool made = std::system(command.c_str()) == 0;
  setenv("LOCPATH", folder.c_str(), 1);
  const bool found = made && std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
  unsetenv("LOCPATH");
  std::filesystem::remove_all(folder);
  return found;
}

TEST(Options, TextsDoNotDependOnTheLocale) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  if (!use_comma_locale()) {
    GTEST_SKIP() << "no locale with a decimal comma is installed, and localedef cannot make one "
                    "(the package locales would do)";
  }
  EXPECT_STREQ(std::localeconv()->decimal_point, ",");
  const Options options = make(SHARDREC_OPTIONS_OPTIMIZER);
  EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_LEARNING_RATE, "0.125"));
  double value = 0;
  EXPECT_OK(shardrec_options_get_f64(options, SHARDREC_OPTION_LEARNING_RATE, &value));
  EXPECT_EQ(value, 0.125);
  EXPECT_EQ(text_of(options, SHARDREC_OPTION_LEARNING_RATE), "0.125");
  EXPECT_EQ(shardrec_options_set_text(options, SHARDREC_OPTION_LEARNING_RATE, "0,125"),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_options_set_f64(options, SHARDREC_OPTION_LEARNING_RATE, -0.5),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(shardrec_last_error(), "-0.5")) << shardrec_last_error();
  Model model;
  EXPECT_OK(shardrec_model_create(nullptr, model.out()));
  EXPECT_OK(shardrec_model_set_optimizer(model, SHARDREC_ALL_TABLES, options));
  char* json = nullptr;
  EXPECT_OK(shardrec_model_to_json(model, &json));
  EXPECT_TRUE(contains(json, "\"learning_rate\": 0.125")) << json;
  Model copy;
  EXPECT_OK(shardrec_model_from_json(json, copy.out()));
  shardrec_text_free(json);
  std::setlocale(LC_ALL, before.c_str());
}

}  // namespace
}  // namespace shardrec::test
