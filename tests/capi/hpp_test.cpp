// The C++ header: handles, exceptions and views over the C API.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "shardrec/shardrec.hpp"

namespace {

template <class... Types>
void expect_quiet_ends() {
  static_assert((std::is_nothrow_destructible_v<Types> && ...));
}

TEST(Hpp, HandlesMoveAndAreDestroyedOnce) {
  static_assert(!std::is_copy_constructible_v<shardrec::Model>);
  static_assert(std::is_nothrow_move_constructible_v<shardrec::Model>);
  expect_quiet_ends<shardrec::Model, shardrec::Topology, shardrec::Plan, shardrec::Mesh,
                    shardrec::Collection, shardrec::Lookup, shardrec::Comm, shardrec::Local,
                    shardrec::Rendezvous, shardrec::Mlp, shardrec::Interaction, shardrec::Ddp,
                    shardrec::Metrics, shardrec::Checkpoint, shardrec::Scorer, shardrec::Control,
                    shardrec::Memory, shardrec::Options>();
  const int64_t before = shardrec::live_objects();
  {
    shardrec::Model first;
    EXPECT_EQ(shardrec::live_objects(), before + 1);
    shardrec_model* handle = first.get();
    shardrec::Model second = std::move(first);
    EXPECT_EQ(second.get(), handle);
    EXPECT_EQ(first.get(), nullptr);  // NOLINT(bugprone-use-after-move): that is the promise
    shardrec::Model third;
    third = std::move(second);
    EXPECT_EQ(third.get(), handle);
    EXPECT_EQ(shardrec::live_objects(), before + 1);
    shardrec_model* released = third.release();
    EXPECT_EQ(shardrec::live_objects(), before + 1);
    shardrec_model_destroy(&released);
  }
  EXPECT_EQ(shardrec::live_objects(), before);
}

TEST(Hpp, ErrorsCarryStatusSentenceAndParts) {
  shardrec::Model model;
  model.add_table("t", 10, 4);
  try {
    model.add_table("u", 0, 4);
    FAIL() << "no exception";
  } catch (const shardrec::Error& error) {
    EXPECT_EQ(error.status(), SHARDREC_INVALID_ARGUMENT);
    EXPECT_STREQ(error.status_name(), "SHARDREC_INVALID_ARGUMENT");
    EXPECT_STREQ(error.what(), shardrec_last_error());
    EXPECT_EQ(error.table(), "u");
    EXPECT_EQ(error.value(), 0);
    EXPECT_EQ(error.rank(), std::nullopt);
    EXPECT_EQ(error.feature(), "");
  }
  EXPECT_EQ(model.info().tables, 1);
  EXPECT_THROW(model.add_table(std::string_view("a\0b", 3), 1, 1), std::invalid_argument);
}

TEST(Hpp, AnErrorMayGetAnotherSentenceAndKeepsItsParts) {
  shardrec::Model model;
  try {
    model.add_table("u", 0, 4);
    FAIL() << "no exception";
  } catch (const shardrec::Error& cause) {
    const shardrec::Error error(cause, std::string("model.json: ") + cause.what());
    EXPECT_EQ(error.what(), "model.json: " + std::string(shardrec_last_error()));
    EXPECT_EQ(error.status(), SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(error.table(), "u");
    EXPECT_EQ(error.value(), 0);
  }
  EXPECT_EQ(shardrec::Error().status(), SHARDREC_INVALID_ARGUMENT);
}

TEST(Hpp, HandlesOfTheCApiAreTakenOver) {
  const int64_t before = shardrec::live_objects();
  {
    shardrec_metrics* handle = nullptr;
    shardrec::check(shardrec_metrics_create(nullptr, nullptr, &handle));
    shardrec::Metrics metrics(handle);
    EXPECT_EQ(metrics.get(), handle);
    EXPECT_TRUE(metrics);
    EXPECT_EQ(shardrec::live_objects(), before + 1);
    metrics.destroy();
    EXPECT_FALSE(metrics);
  }
  EXPECT_EQ(shardrec::live_objects(), before);
}

TEST(Hpp, OptionsTakeNumbersEnumeratorsAndText) {
  shardrec::Options options(SHARDREC_OPTIONS_OPTIMIZER);
  options.set(SHARDREC_OPTION_OPTIMIZER, SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD)
      .set(SHARDREC_OPTION_LEARNING_RATE, 0.25f)
      .set(SHARDREC_OPTION_EPS, "1e-6");
  EXPECT_EQ(options.text(SHARDREC_OPTION_OPTIMIZER), "rowwise_adagrad");
  EXPECT_EQ(options.f64(SHARDREC_OPTION_LEARNING_RATE), 0.25);
  EXPECT_EQ(options.f64(SHARDREC_OPTION_EPS), 1e-6);
  EXPECT_EQ(options.i64(SHARDREC_OPTION_OPTIMIZER), SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD);
}

// Each setter is called once: a key that its kind does not take would throw.
TEST(Hpp, EveryOptionHasASetterOfItsKind) {
  const auto optimizer = [](auto& options) {
    options.optimizer("adam").learning_rate(0.5).eps(0.25).weight_decay(0.125);
    options.weight_decay_mode(SHARDREC_WEIGHT_DECAY_L2).max_gradient(2).beta1(0.5).beta2(0.75);
    options.momentum(0.25);
    EXPECT_EQ(options.f64(SHARDREC_OPTION_MOMENTUM), 0.25);
    EXPECT_EQ(options.i64(SHARDREC_OPTION_OPTIMIZER), SHARDREC_OPTIMIZER_ADAM);
    EXPECT_EQ(options.f64(SHARDREC_OPTION_LEARNING_RATE), 0.5);
    EXPECT_EQ(options.f64(SHARDREC_OPTION_EPS), 0.25);
    EXPECT_EQ(options.f64(SHARDREC_OPTION_WEIGHT_DECAY), 0.125);
    EXPECT_EQ(options.text(SHARDREC_OPTION_WEIGHT_DECAY_MODE), "l2");
    EXPECT_EQ(options.f64(SHARDREC_OPTION_MAX_GRADIENT), 2);
    EXPECT_EQ(options.f64(SHARDREC_OPTION_BETA1), 0.5);
    EXPECT_EQ(options.f64(SHARDREC_OPTION_BETA2), 0.75);
  };
  shardrec::OptimizerOptions of_tables;
  optimizer(of_tables);
  of_tables.row_statistics("shard").momentum(0.5).eta(0.25).max_norm(3).momentum_scale(2);
  EXPECT_EQ(of_tables.i64(SHARDREC_OPTION_ROW_STATISTICS), SHARDREC_ROW_STATISTICS_SHARD);
  EXPECT_EQ(of_tables.f64(SHARDREC_OPTION_MOMENTUM), 0.5);
  EXPECT_EQ(of_tables.f64(SHARDREC_OPTION_ETA), 0.25);
  EXPECT_EQ(of_tables.f64(SHARDREC_OPTION_MAX_NORM), 3);
  EXPECT_EQ(of_tables.f64(SHARDREC_OPTION_MOMENTUM_SCALE), 2);
  shardrec::MlpOptions layers;
  optimizer(layers);
  layers.seed(7).threads(2).accumulate_gradients(true);
  EXPECT_EQ(layers.i64(SHARDREC_OPTION_SEED), 7);
  EXPECT_EQ(layers.i64(SHARDREC_OPTION_THREADS), 2);
  EXPECT_EQ(layers.i64(SHARDREC_OPTION_ACCUMULATE_GRADIENTS), 1);

  shardrec::TableOptions table;
  table.dtype("float16").init(SHARDREC_INIT_UNIFORM).init_range(-2, 3).rounding("stochastic");
  table.out_of_range("drop").allowed_sharding("row_wise").allowed_ranks("0-3").min_columns(4);
  EXPECT_EQ(table.i64(SHARDREC_OPTION_DTYPE), SHARDREC_FLOAT16);
  EXPECT_EQ(table.i64(SHARDREC_OPTION_INIT), SHARDREC_INIT_UNIFORM);
  EXPECT_EQ(table.f64(SHARDREC_OPTION_INIT_MIN), -2);
  EXPECT_EQ(table.f64(SHARDREC_OPTION_INIT_MAX), 3);
  EXPECT_EQ(table.i64(SHARDREC_OPTION_ROUNDING), SHARDREC_ROUNDING_STOCHASTIC);
  EXPECT_EQ(table.i64(SHARDREC_OPTION_OUT_OF_RANGE), SHARDREC_OUT_OF_RANGE_DROP);
  EXPECT_EQ(table.i64(SHARDREC_OPTION_ALLOWED_SHARDING), 1 << SHARDREC_SHARDING_ROW_WISE);
  EXPECT_EQ(table.text(SHARDREC_OPTION_ALLOWED_RANKS), "0-3");
  EXPECT_EQ(table.i64(SHARDREC_OPTION_MIN_COLUMNS), 4);

  shardrec::PlanOptions plan;
  plan.sharding("mixed").replication("rows").batch_size(512).bag_length(2.5).balance("time");
  EXPECT_EQ(plan.i64(SHARDREC_OPTION_SHARDING), SHARDREC_SHARDING_MIXED);
  EXPECT_EQ(plan.i64(SHARDREC_OPTION_REPLICATION), SHARDREC_REPLICATION_ROWS);
  EXPECT_EQ(plan.i64(SHARDREC_OPTION_BATCH_SIZE), 512);
  EXPECT_EQ(plan.f64(SHARDREC_OPTION_BAG_LENGTH), 2.5);
  EXPECT_EQ(plan.i64(SHARDREC_OPTION_BALANCE), SHARDREC_BALANCE_TIME);
  shardrec::MeshOptions mesh;
  mesh.placement("intra_node_shard");
  EXPECT_EQ(mesh.i64(SHARDREC_OPTION_PLACEMENT), SHARDREC_PLACEMENT_INTRA_NODE_SHARD);
}

TEST(Hpp, EveryOptionOfTheStepAndOfTheRanksHasASetterOfItsKind) {
  shardrec::CollectionOptions tables;
  tables.seed(5).threads(3).gradient_divisor("samples").lookups(4).output_dtype("bfloat16");
  EXPECT_EQ(tables.i64(SHARDREC_OPTION_GRADIENT_DIVISOR), SHARDREC_DIVISOR_SAMPLES);
  tables.gradient_divisor_value(6).deduplicate(true).hierarchical(true);
  tables.device(1).non_finite(SHARDREC_NON_FINITE_SKIP);
  EXPECT_EQ(tables.i64(SHARDREC_OPTION_NON_FINITE), SHARDREC_NON_FINITE_SKIP);
  EXPECT_EQ(tables.i64(SHARDREC_OPTION_DEVICE), 1);
  tables.device_wait("spin");
  EXPECT_EQ(tables.i64(SHARDREC_OPTION_DEVICE_WAIT), SHARDREC_DEVICE_WAIT_SPIN);
  tables.replica_sync("full").sync_every(16);
  EXPECT_EQ(tables.i64(SHARDREC_OPTION_SYNC_EVERY), 16);
  EXPECT_EQ(tables.i64(SHARDREC_OPTION_REPLICA_SYNC), SHARDREC_REPLICA_SYNC_FULL);
  tables.forward_compression("int8").backward_compression(SHARDREC_COMPRESSION_FLOAT16);
  EXPECT_EQ(tables.i64(SHARDREC_OPTION_SEED), 5);
  EXPECT_EQ(tables.i64(SHARDREC_OPTION_THREADS), 3);
  EXPECT_EQ(tables.i64(SHARDREC_OPTION_GRADIENT_DIVISOR), SHARDREC_DIVISOR_CUSTOM);
  EXPECT_EQ(tables.f64(SHARDREC_OPTION_GRADIENT_DIVISOR_VALUE), 6);
  EXPECT_EQ(tables.i64(SHARDREC_OPTION_LOOKUPS), 4);
  EXPECT_EQ(tables.i64(SHARDREC_OPTION_OUTPUT_DTYPE), SHARDREC_BFLOAT16);
  EXPECT_EQ(tables.i64(SHARDREC_OPTION_DEDUPLICATE), 1);
  EXPECT_EQ(tables.i64(SHARDREC_OPTION_HIERARCHICAL), 1);
  EXPECT_EQ(tables.i64(SHARDREC_OPTION_FORWARD_COMPRESSION), SHARDREC_COMPRESSION_INT8);
  EXPECT_EQ(tables.i64(SHARDREC_OPTION_BACKWARD_COMPRESSION), SHARDREC_COMPRESSION_FLOAT16);
  shardrec::LookupOptions lookup;
  lookup.borrow(true).weight_gradient(true);
  EXPECT_EQ(lookup.i64(SHARDREC_OPTION_BORROW), 1);
  EXPECT_EQ(lookup.i64(SHARDREC_OPTION_WEIGHT_GRADIENT), 1);
  shardrec::DdpOptions ddp;
  ddp.average(false).broadcast(false).non_finite("error").reduction("nccl");
  EXPECT_EQ(ddp.i64(SHARDREC_OPTION_DDP_REDUCTION), SHARDREC_DDP_REDUCTION_NCCL);
  EXPECT_EQ(ddp.i64(SHARDREC_OPTION_NON_FINITE), SHARDREC_NON_FINITE_ERROR);
  EXPECT_EQ(ddp.i64(SHARDREC_OPTION_DDP_AVERAGE), 0);
  EXPECT_EQ(ddp.i64(SHARDREC_OPTION_DDP_BROADCAST), 0);
  shardrec::FsdpOptions fsdp;
  fsdp.non_finite("skip").device(1).offload(true).device_wait("spin").stream(7);
  EXPECT_EQ(fsdp.i64(SHARDREC_OPTION_DEVICE), 1);
  EXPECT_EQ(fsdp.i64(SHARDREC_OPTION_FSDP_OFFLOAD), 1);
  EXPECT_EQ(fsdp.i64(SHARDREC_OPTION_DEVICE_WAIT), SHARDREC_DEVICE_WAIT_SPIN);
  EXPECT_EQ(fsdp.i64(SHARDREC_OPTION_STREAM), 7);
  EXPECT_EQ(fsdp.i64(SHARDREC_OPTION_NON_FINITE), SHARDREC_NON_FINITE_SKIP);
  shardrec::CheckpointOptions checkpoint;
  checkpoint.keep_last(9).most_deltas(8).delta_states(false);
  EXPECT_EQ(checkpoint.i64(SHARDREC_OPTION_DELTA_STATES), 0);
  EXPECT_EQ(checkpoint.i64(SHARDREC_OPTION_KEEP_LAST), 9);
  EXPECT_EQ(checkpoint.i64(SHARDREC_OPTION_MOST_DELTAS), 8);
  shardrec::ScorerOptions scorer;
  scorer.tables("int8").collection("c").layers("below", "above").logits(true).non_finite("error");
  EXPECT_EQ(scorer.i64(SHARDREC_OPTION_NON_FINITE), SHARDREC_NON_FINITE_ERROR);
  EXPECT_EQ(scorer.i64(SHARDREC_OPTION_SERVED_TABLES), SHARDREC_SERVED_TABLES_INT8);
  EXPECT_EQ(scorer.text(SHARDREC_OPTION_SERVED_COLLECTION), "c");
  EXPECT_EQ(scorer.text(SHARDREC_OPTION_BOTTOM_LAYERS), "below");
  EXPECT_EQ(scorer.text(SHARDREC_OPTION_TOP_LAYERS), "above");
  EXPECT_EQ(scorer.i64(SHARDREC_OPTION_LOGITS), 1);

  shardrec::CommOptions comm;
  comm.engine("gloo").setup_seconds(8).interface("lo").rank_zero_seconds(9).allow_plain_tcp(true);
  EXPECT_EQ(comm.i64(SHARDREC_OPTION_ENGINE), SHARDREC_ENGINE_GLOO);
  EXPECT_EQ(comm.f64(SHARDREC_OPTION_COMM_SETUP_SECONDS), 8);
  EXPECT_EQ(comm.text(SHARDREC_OPTION_INTERFACE), "lo");
  EXPECT_EQ(comm.f64(SHARDREC_OPTION_RANK_ZERO_SECONDS), 9);
  EXPECT_EQ(comm.i64(SHARDREC_OPTION_ALLOW_PLAIN_TCP), 1);
  shardrec::RendezvousOptions rendezvous;
  rendezvous.address("10.0.0.1").port(80).advertised_address("host").job("j");
  rendezvous.secret("0123456789abcdef").allow_plain_tcp(true).silence_seconds(5);
  EXPECT_EQ(rendezvous.text(SHARDREC_OPTION_ADDRESS), "10.0.0.1");
  EXPECT_EQ(rendezvous.i64(SHARDREC_OPTION_PORT), 80);
  EXPECT_EQ(rendezvous.text(SHARDREC_OPTION_ADVERTISED_ADDRESS), "host");
  EXPECT_EQ(rendezvous.text(SHARDREC_OPTION_JOB), "j");
  EXPECT_EQ(rendezvous.text(SHARDREC_OPTION_SECRET), "0123456789abcdef");
  EXPECT_EQ(rendezvous.i64(SHARDREC_OPTION_ALLOW_PLAIN_TCP), 1);
  EXPECT_EQ(rendezvous.f64(SHARDREC_OPTION_SILENCE_SECONDS), 5);
}

TEST(Hpp, AnOptionThatIsNotAcceptedIsAnException) {
  EXPECT_THROW(shardrec::PlanOptions().sharding("diagonal"), shardrec::Error);
  EXPECT_THROW(shardrec::CommOptions().engine("carrier pigeon"), shardrec::Error);
  EXPECT_THROW(shardrec::PlanOptions().set(SHARDREC_OPTION_SEED, 1), shardrec::Error);
  EXPECT_EQ(shardrec::Options().get(), nullptr);  // the defaults
}

TEST(Hpp, ViewsStandForContainersSpansAndPointers) {
  std::vector<int64_t> ids = {1, 2, 3};
  const std::vector<int64_t> const_ids = {1, 2};
  std::array<float, 2> weights{};
  std::span<int64_t> span(ids);
  EXPECT_EQ(shardrec::Vector(ids).get()->shape[0], 3);
  EXPECT_EQ(shardrec::Vector(ids).get()->dtype, SHARDREC_INT64);
  EXPECT_EQ(shardrec::Vector(const_ids).get()->shape[0], 2);
  EXPECT_EQ(shardrec::Vector(weights).get()->dtype, SHARDREC_FLOAT32);
  EXPECT_EQ(shardrec::Vector(span.subspan(1)).get()->data, ids.data() + 1);
  EXPECT_EQ(shardrec::Vector(nullptr).get(), nullptr);
  EXPECT_NE(shardrec::Vector(std::vector<int32_t>{}).get(), nullptr);
  const shardrec::Matrix matrix(weights.data(), 1, 2, 8);
  EXPECT_EQ(matrix.get()->stride[0], 8);
  EXPECT_EQ(matrix.elements(), 2);
  const shardrec::Tensor bytes(std::string("abc"));
  EXPECT_EQ(bytes.dtype(), SHARDREC_UINT8);
  EXPECT_EQ(bytes.dimensions(), 1);
  EXPECT_EQ(bytes.size(0), 3);
  const shardrec::Tensor same = shardrec::Vector(ids);
  EXPECT_EQ(same.data<const int64_t>(), ids.data());
  EXPECT_THROW((void)same.data<float>(), std::invalid_argument);
  EXPECT_EQ(shardrec::Tensor(nullptr).elements(), 0);
}

TEST(Hpp, ParametersOfLayersAreViewsOfTheirMemory) {
  shardrec::Mlp layers(3);
  layers.add_linear(2);
  ASSERT_EQ(layers.info().parameters, 2);
  EXPECT_EQ(layers.parameter(0).value.elements(), 6);
  layers.parameter(1).value.data<float>()[1] = 5;
  EXPECT_EQ(layers.parameter(1).value.data<float>()[1], 5);
  EXPECT_EQ(layers.parameter(1).gradient.size(0), 2);
  EXPECT_THROW((void)layers.state(0, 0), shardrec::Error);  // SGD has none
  shardrec::Mlp adagrad(3, shardrec::MlpOptions().optimizer(SHARDREC_OPTIMIZER_ADAGRAD));
  adagrad.add_linear(2);
  EXPECT_EQ(adagrad.info().states, 1);
  EXPECT_EQ(adagrad.state(0, 0).elements(), 6);
}

// Rank 1 fails; rank 0, which waits for it, is told. What the caller sees is rank 1's failure.
TEST(Hpp, MemoryIsViewedAndCopied) {
  const int64_t before = shardrec::live_objects();
  {
    const shardrec::Memory memory(SHARDREC_DEVICE_CPU, 0, 48);
    EXPECT_EQ(shardrec::live_objects(), before + 1);
    std::vector<float> values = {1, 2, 3, 4, 5, 6};
    std::vector<float> got(6, -1);
    shardrec::copy(got, memory.vector(SHARDREC_FLOAT32, 6, 24));
    EXPECT_EQ(got, std::vector<float>(6));
    shardrec::copy(memory.vector(SHARDREC_FLOAT32, 6, 24), values);
    const shardrec::Matrix right = memory.matrix(SHARDREC_FLOAT32, 3, 2, 24);
    EXPECT_EQ(right.data<float>()[5], 6);
    shardrec::copy(memory.matrix(SHARDREC_FLOAT32, 3, 2), right);
    shardrec::copy(shardrec::Matrix(got.data(), 6, 1), memory.tensor(SHARDREC_FLOAT32, {6, 1}));
    EXPECT_EQ(got, values);
    EXPECT_THROW(memory.vector(SHARDREC_FLOAT32, 13), shardrec::Error);
    EXPECT_THROW(shardrec::copy(got, nullptr), shardrec::Error);
  }
  EXPECT_EQ(shardrec::live_objects(), before);
  EXPECT_THROW(shardrec::Memory(SHARDREC_DEVICE_CPU, 0, -1), shardrec::Error);
  shardrec::set_device_allocator(nullptr, nullptr);
}

TEST(Hpp, RunThrowsTheFirstFailureAndEndsTheOthers) {
  std::string other;
  try {
    shardrec::run(2, [&](shardrec::Comm& comm) {
      if (comm.rank() == 1) throw std::out_of_range("the data end here");
      try {
        comm.barrier();
      } catch (const shardrec::Error& error) {
        other = error.what();
        EXPECT_EQ(error.status(), SHARDREC_ABORTED);
        throw;
      }
    });
    FAIL() << "no exception";
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(), "the data end here");
  }
  EXPECT_NE(other.find("the data end here"), std::string::npos) << other;
}

TEST(Hpp, RunPassesOnWhatIsNoException) {
  EXPECT_THROW(shardrec::run(3,
                             [](shardrec::Comm& comm) {
                               if (comm.rank() == 2) throw 42;
                               comm.barrier();
                             }),
               int);
}

TEST(Hpp, APlanIsCheckedForCellsWithoutAnOwner) {
  shardrec::Model model;
  model.add_table("t", 10, 2);
  model.add_table("replicated", 10, 2);
  const shardrec::Topology topology(2, 2);
  shardrec::Plan plan = shardrec::Plan::empty(model, topology);
  plan.replicate(1);
  plan.add_box(0, {.rank = 0, .row = 0, .rows = 9, .col = 0, .cols = 2});
  EXPECT_THROW(plan.check_tiling(), shardrec::Error);
  EXPECT_THROW(plan.add_box(0, {.rank = 1, .row = 8, .rows = 2, .col = 0, .cols = 2}),
               shardrec::Error);
  plan.add_box(0, {.rank = 1, .row = 9, .rows = 1, .col = 0, .cols = 2});
  plan.check_tiling();
}

TEST(Hpp, PlansForTopologiesAndMeshes) {
  const auto topology = shardrec::Topology::from_json(shardrec::Topology(4, 2).to_json());
  EXPECT_NE(topology.to_json().find("\"ranks_per_node\": 2"), std::string::npos);
  shardrec::Model model;
  model.add_table("t", 10, 2, shardrec::TableOptions().allowed_ranks("2-3"));
  const shardrec::Plan plan(model, topology);
  EXPECT_EQ(plan.box(0, 0).weight_bytes + plan.box(0, 1).weight_bytes, 80);
  EXPECT_EQ(plan.box(0, 0).state_bytes, 0);
  shardrec::run(2, [](shardrec::Comm& comm) {
    shardrec::Model small;
    small.add_table("t", 10, 2);
    shardrec::Mesh mesh(comm, 1);
    EXPECT_EQ(shardrec::Plan::collective(comm, mesh, small).box_count(0), 1);
    EXPECT_EQ(mesh.comm(SHARDREC_MESH_GROUP_SHARDING).size(), 1);
    shardrec::Comm replicas = mesh.comm(SHARDREC_MESH_GROUP_REPLICA);
    EXPECT_EQ(replicas.size(), 2);
    replicas.barrier();
  });
}

// Rows of two replicas become their mean, then that of the second one.
TEST(Hpp, KeepsReplicasInStep) {
  shardrec::run(2, [](shardrec::Comm& comm) {
    shardrec::Model model;
    const int32_t table = model.add_table("t", 1, 2);
    model.add_feature(table, "f", SHARDREC_POOLING_SUM);
    shardrec::Mesh mesh(comm, 1);
    shardrec::Collection tables(comm, mesh, model, shardrec::Plan::collective(comm, mesh, model));
    std::vector<float> row(2);
    const auto write = [&](float value) {
      row = {value, value};
      tables.write_range(table, SHARDREC_TABLE_WEIGHTS, 0, 1, shardrec::Matrix(row.data(), 1, 2));
    };
    const auto expect = [&](float value) {
      tables.read_range(table, SHARDREC_TABLE_WEIGHTS, 0, 1, shardrec::Matrix(row.data(), 1, 2));
      EXPECT_EQ(row, std::vector<float>({value, value}));
    };
    write(comm.rank() == 0 ? 1.0F : 4.0F);
    EXPECT_THROW(tables.check_replicas(), shardrec::Error);
    tables.sync_begin();
    tables.sync_wait();
    expect(2.5F);
    tables.check_replicas();
    write(comm.rank() == 0 ? 1.0F : 4.0F);
    tables.replica_fill(1);
    expect(4);
    tables.check_replicas();
    shardrec::Collection later(comm, mesh, model, shardrec::Plan::collective(comm, mesh, model));
    later.continue_from(comm.rank() == 0 ? &tables : nullptr);  // which fills rank 1's
    later.read_range(table, SHARDREC_TABLE_WEIGHTS, 0, 1, shardrec::Matrix(row.data(), 1, 2));
    EXPECT_EQ(row, std::vector<float>({4, 4}));
  });
}

// One table, SGD: the weights after a step are known by hand.
TEST(Hpp, TrainsAStepOnTwoRanks) {
  shardrec::run(2, [](shardrec::Comm& comm) {
    shardrec::Model model;
    const int32_t table =
        model.add_table("t", 10, 2, shardrec::TableOptions().init(SHARDREC_INIT_ZEROS));
    model.add_feature(table, "f", SHARDREC_POOLING_SUM);
    model.set_optimizer(shardrec::OptimizerOptions().learning_rate(0.5));
    EXPECT_EQ(model.feature(0).width, 2);
    EXPECT_EQ(model.feature(0).name, "f");
    EXPECT_EQ(model.table(0).name, "t");
    const auto plan =
        shardrec::Plan::collective(comm, model, shardrec::PlanOptions().sharding("row_wise"));
    EXPECT_EQ(plan.box_count(table), 2);
    EXPECT_EQ(plan.box(table, 1).row, 5);
    shardrec::Collection tables(comm, model, plan);
    EXPECT_EQ(tables.model().to_json(), model.to_json());
    EXPECT_EQ(tables.plan().to_json(), plan.to_json());
    shardrec::Lookup lookup(tables);

    // Rank 0 looks up rows {1} and {1, 7}; rank 1 row {7}.
    const std::vector<int64_t> values =
        comm.rank() == 0 ? std::vector<int64_t>{1, 1, 7} : std::vector<int64_t>{7};
    const std::vector<int32_t> lengths =
        comm.rank() == 0 ? std::vector<int32_t>{1, 2} : std::vector<int32_t>{1};
    const auto batch = static_cast<int64_t>(lengths.size());
    std::vector<float> output(static_cast<size_t>(batch) * 2, 9);
    lookup.begin(batch, values, lengths);
    lookup.forward(0, {output.data(), batch, 2});
    for (const float value : output) EXPECT_EQ(value, 0);
    EXPECT_FALSE(lookup.all_done());
    const std::vector<float> gradient(output.size(), 1);
    lookup.set_gradient(0, {gradient.data(), batch, 2});
    lookup.send_gradients();
    lookup.backward();
    EXPECT_EQ(tables.step(), 1);

    // Each row: -0.5 * (1 / 2 ranks) * its number of occurrences, 2 for both.
    std::vector<float> weights(20, 9);
    tables.read_range(table, SHARDREC_TABLE_WEIGHTS, 0, 10, {weights.data(), 10, 2});
    for (size_t row = 0; row < 10; ++row) {
      const float expected = row == 1 || row == 7 ? -0.5f : 0.0f;
      EXPECT_EQ(weights[2 * row], expected);
      EXPECT_EQ(weights[2 * row + 1], expected);
    }
    // Both ranks write row 9, and the higher one's entry stays; row 3 twice, and the last one stays.
    const std::vector<float> rows = {1, 1, 2, 2, static_cast<float>(comm.rank()), 5};
    tables.write_rows(table, SHARDREC_TABLE_WEIGHTS, std::vector<int64_t>{3, 3, 9},
                      {rows.data(), 3, 2});
    std::vector<float> read(6, 9);
    tables.read_rows(table, SHARDREC_TABLE_WEIGHTS, std::vector<int32_t>{9, 3, 1},
                     {read.data(), 3, 2});
    EXPECT_EQ(read, (std::vector<float>{1, 5, 2, 2, -0.5, -0.5}));
    tables.read_rows(table, SHARDREC_TABLE_WEIGHTS, nullptr, nullptr);
    lookup.begin_without_data();
    lookup.forward(0, {nullptr, 0, 2});
    EXPECT_TRUE(lookup.all_done());
    lookup.backward(SHARDREC_UPDATE_SKIP);
  });
}

TEST(Hpp, ABadBatchIsAnExceptionWithItsPlaceOnEveryRank) {
  shardrec::run(2, [](shardrec::Comm& comm) {
    shardrec::Model model;
    model.add_feature(model.add_table("t", 10, 2), "f");
    const auto plan = shardrec::Plan::collective(comm, model);
    shardrec::Collection tables(comm, model, plan);
    shardrec::Lookup lookup(tables);
    const std::vector<int64_t> values = {3, comm.rank() == 1 ? 10 : 4};
    const std::vector<int64_t> lengths = {2};
    std::vector<float> output(2);
    lookup.begin(1, values, lengths);
    try {
      lookup.forward(0, {output.data(), 1, 2});
      ADD_FAILURE() << "no exception";
    } catch (const shardrec::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_INVALID_BATCH);
      EXPECT_EQ(error.rank(), 1);
      EXPECT_EQ(error.position(), 1);
      EXPECT_EQ(error.value(), 10);
      EXPECT_EQ(error.table(), "t");
      EXPECT_EQ(error.feature(), "f");
    }
  });
}

TEST(Hpp, CollectivesTakeContainersAndMatrices) {
  shardrec::run(2, [](shardrec::Comm& comm) {
    const int rank = comm.rank();
    std::vector<double> all(2);
    comm.all_gather(std::vector<double>{rank + 0.5}, all);
    EXPECT_EQ(all, (std::vector<double>{0.5, 1.5}));
    std::vector<float> matrix = {1, 2, -1, 3, 4, -1};
    if (rank == 0) matrix.assign(6, -1);
    comm.broadcast(shardrec::Matrix(matrix.data(), 2, 2, 3), 1);
    EXPECT_EQ(matrix, (std::vector<float>{1, 2, -1, 3, 4, -1}));
    std::vector<int64_t> part(1);
    comm.reduce_scatter(std::vector<int64_t>{10, 20}, part);
    EXPECT_EQ(part[0], rank == 0 ? 20 : 40);
    std::vector<int32_t> swapped(2);
    comm.all_to_all(std::vector<int32_t>{rank, rank}, swapped);
    EXPECT_EQ(swapped, (std::vector<int32_t>{0, 1}));
    std::vector<int32_t> of_one(rank == 0 ? 3 : 0);
    const std::vector<int32_t> mine(rank == 0 ? 1 : 2, rank);
    comm.all_to_all(mine, std::vector<int64_t>{rank == 0 ? 1 : 2, 0}, of_one,
                    std::vector<int64_t>{rank == 0 ? 1 : 0, rank == 0 ? 2 : 0});
    EXPECT_EQ(of_one, rank == 0 ? (std::vector<int32_t>{0, 1, 1}) : std::vector<int32_t>());
    auto part_of_two = comm.split(0, -rank);
    ASSERT_TRUE(part_of_two);
    EXPECT_EQ(part_of_two->rank(), 1 - rank);
    EXPECT_FALSE(comm.split(-1));
  });
}

TEST(Hpp, MetricsAndLossWorkWithoutACommunicator) {
  const std::vector<float> logits = {0, 2, -2, 1};
  const std::vector<float> labels = {0, 1, 0, 1};
  std::vector<float> probabilities(4);
  const double loss = shardrec::bce_with_logits(logits, labels, probabilities);
  double expected = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double p = 1 / (1 + std::exp(-static_cast<double>(logits[i])));
    EXPECT_NEAR(probabilities[i], p, 1e-6);
    expected -= std::log(labels[i] == 1 ? p : 1 - p) / 4;
  }
  EXPECT_NEAR(loss, expected, 1e-6);
  shardrec::Metrics metrics;
  metrics.update(probabilities, labels);
  metrics.compute();
  EXPECT_EQ(metrics.metric(SHARDREC_METRIC_AUC), 1);
  EXPECT_EQ(metrics.metric(SHARDREC_METRIC_SAMPLES), 4);
  EXPECT_EQ(metrics.find_metric(SHARDREC_METRIC_AUC), 1);
  metrics.reset();
  metrics.compute();
  EXPECT_THROW(metrics.metric(SHARDREC_METRIC_AUC), shardrec::Error);
  EXPECT_EQ(metrics.find_metric(SHARDREC_METRIC_AUC), std::nullopt);
}

TEST(Hpp, WhatMayNotBeThereIsEmpty) {
  const std::string directory = testing::TempDir() + "/hpp_checkpoint";
  std::filesystem::remove_all(directory);
  shardrec::run(1, [&](shardrec::Comm& comm) {
    shardrec::Checkpoint checkpoint(comm, directory);
    EXPECT_FALSE(checkpoint.try_open());
    checkpoint.set_tensor("note", std::string("abc"));
    EXPECT_FALSE(checkpoint.commit_delta(0));
    EXPECT_TRUE(checkpoint.commit_delta(1));
    EXPECT_TRUE(checkpoint.commit_delta_begin(2));
    EXPECT_TRUE(checkpoint.commit_wait());
    ASSERT_TRUE(checkpoint.try_open());
    EXPECT_FALSE(checkpoint.find_model("tables"));
    EXPECT_FALSE(checkpoint.find_tensor_info("other"));
    EXPECT_THROW(checkpoint.tensor_info("other"), shardrec::Error);
    const auto info = checkpoint.find_tensor_info("note");
    ASSERT_TRUE(info);
    std::string note(static_cast<size_t>(info->tensor.elements()), ' ');
    checkpoint.get_tensor("note", 0, note);
    EXPECT_EQ(note, "abc");
  });
  std::filesystem::remove_all(directory);
}

// A wait of a hundredth of a second counts as late: the waiting rank says so in the log.
TEST(Hpp, MessagesGoToASinkUntilItIsTakenAway) {
  std::atomic<int> messages{0};
  shardrec::set_log_sink([](void* context, shardrec_log_level, int32_t,
                            const char*) { ++*static_cast<std::atomic<int>*>(context); },
                         &messages);
  const auto wait_for_the_sink = [&](shardrec::Comm& comm) {
    comm.set(SHARDREC_COMM_WARN_SECONDS, 0.01);
    while (comm.rank() == 1 && messages == 0) std::this_thread::yield();
    comm.barrier();
  };
  shardrec::run(2, wait_for_the_sink);
  EXPECT_GT(messages, 0);
  shardrec::set_log_sink(nullptr);
  const int heard = messages;
  while (shardrec::next_log(0).has_value()) {
  }
  shardrec::run(2, [&](shardrec::Comm& comm) {
    comm.set(SHARDREC_COMM_WARN_SECONDS, 0.01);
    if (comm.rank() == 1) {
      EXPECT_TRUE(shardrec::next_log(60000).has_value());
    }
    comm.barrier();
  });
  EXPECT_EQ(messages, heard);
}

TEST(Hpp, TheLibraryTellsOfItself) {
  EXPECT_EQ(shardrec::api_version(), SHARDREC_API_VERSION);
  EXPECT_NE(shardrec::capabilities_json().find("\"local\""), std::string::npos);
  EXPECT_EQ(shardrec::hash64(""), UINT64_C(0x2d06800538d394c2));
  while (shardrec::next_log(0).has_value()) {
  }
  EXPECT_FALSE(shardrec::next_log(0).has_value());
}

}  // namespace
