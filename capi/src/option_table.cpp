#include "option_table.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "checkpoint/format/manifest.h"
#include "comm/engine_list.h"
#include "comm/rendezvous/net/interfaces.h"
#include "comm/rendezvous/protocol/limits.h"
#include "comm/rendezvous/protocol/token.h"
#include "dense/loss_scale.h"
#include "plan/model/limits.h"
#include "plan/model/names.h"
#include "shardrec/comm.h"
#include "shardrec/tensor.h"

namespace shardrec::capi {
namespace {

template <class... Kinds>
constexpr uint32_t kinds(Kinds... kind) {
  return ((1u << kind) | ...);
}
constexpr uint32_t kOptimizer = kinds(SHARDREC_OPTIONS_OPTIMIZER, SHARDREC_OPTIONS_MLP);
constexpr uint32_t kTableOptimizer = kinds(SHARDREC_OPTIONS_OPTIMIZER);
constexpr uint32_t kTable = kinds(SHARDREC_OPTIONS_TABLE);
constexpr uint32_t kPlan = kinds(SHARDREC_OPTIONS_PLAN);
constexpr uint32_t kCollection = kinds(SHARDREC_OPTIONS_COLLECTION);
constexpr uint32_t kWithThreads = kinds(SHARDREC_OPTIONS_COLLECTION, SHARDREC_OPTIONS_MLP,
                                        SHARDREC_OPTIONS_DDP, SHARDREC_OPTIONS_FSDP);
constexpr uint32_t kNonFiniteKinds = kinds(SHARDREC_OPTIONS_COLLECTION, SHARDREC_OPTIONS_DDP,
                                           SHARDREC_OPTIONS_FSDP, SHARDREC_OPTIONS_SCORER);
constexpr uint32_t kCollectionAndMlp = kinds(SHARDREC_OPTIONS_COLLECTION, SHARDREC_OPTIONS_MLP);
constexpr uint32_t kOnDevices = kinds(SHARDREC_OPTIONS_COLLECTION, SHARDREC_OPTIONS_MLP,
                                      SHARDREC_OPTIONS_METRICS, SHARDREC_OPTIONS_FSDP);
constexpr uint32_t kWaitsForDevices = kOnDevices | kinds(SHARDREC_OPTIONS_DDP);
constexpr uint32_t kOrderedByStreams = kinds(SHARDREC_OPTIONS_MLP, SHARDREC_OPTIONS_METRICS,
                                             SHARDREC_OPTIONS_DDP, SHARDREC_OPTIONS_FSDP);
constexpr uint32_t kLookup = kinds(SHARDREC_OPTIONS_LOOKUP);
constexpr uint32_t kMlp = kinds(SHARDREC_OPTIONS_MLP);
constexpr uint32_t kDdp = kinds(SHARDREC_OPTIONS_DDP);
constexpr uint32_t kDdpAndFsdp = kinds(SHARDREC_OPTIONS_DDP, SHARDREC_OPTIONS_FSDP);
constexpr uint32_t kFsdp = kinds(SHARDREC_OPTIONS_FSDP);
constexpr uint32_t kMesh = kinds(SHARDREC_OPTIONS_MESH);
constexpr uint32_t kComm = kinds(SHARDREC_OPTIONS_COMM);
constexpr uint32_t kCheckpoint = kinds(SHARDREC_OPTIONS_CHECKPOINT);
constexpr uint32_t kScorer = kinds(SHARDREC_OPTIONS_SCORER);
constexpr uint32_t kRendezvous = kinds(SHARDREC_OPTIONS_RENDEZVOUS);
constexpr uint32_t kCommAndRendezvous = kinds(SHARDREC_OPTIONS_COMM, SHARDREC_OPTIONS_RENDEZVOUS);

// Names that models and plans spell out too come from plan/names.h.
template <class Enum>
constexpr OptionChoices kChoicesOf = {
    .name = [](int64_t value) -> std::string {
      if (value < 0 || value > INT32_MAX) return "";  // what an enumeration can hold
      const char* name = plan::name_of(static_cast<Enum>(value));
      const std::optional<Enum> known = plan::value_of<Enum>(name);
      return known.has_value() && *known == value ? name : "";
    },
    .value = [](std::string_view name) -> std::optional<int64_t> {
      const std::optional<Enum> value = plan::value_of<Enum>(name);
      return value.has_value() ? std::optional<int64_t>(*value) : std::nullopt;
    },
    .list = [] { return plan::names_of<Enum>(); },
};

// Enumerators that only options spell out.
struct Named {
  int64_t value;
  const char* name;
};
constexpr std::array<Named, 4> kDivisors = {{
    {SHARDREC_DIVISOR_RANKS, "ranks"},
    {SHARDREC_DIVISOR_NONE, "none"},
    {SHARDREC_DIVISOR_CUSTOM, "custom"},
    {SHARDREC_DIVISOR_SAMPLES, "samples"},
}};
constexpr std::array<Named, 2> kPlacements = {{
    {SHARDREC_PLACEMENT_INTRA_NODE_SYNC, "intra_node_sync"},
    {SHARDREC_PLACEMENT_INTRA_NODE_SHARD, "intra_node_shard"},
}};

constexpr std::array<Named, 4> kCompressions = {{
    {SHARDREC_COMPRESSION_NONE, "none"},
    {SHARDREC_COMPRESSION_FLOAT16, "float16"},
    {SHARDREC_COMPRESSION_BFLOAT16, "bfloat16"},
    {SHARDREC_COMPRESSION_INT8, "int8"},
}};

constexpr std::array<Named, 3> kDdpCompressions = {{
    {SHARDREC_COMPRESSION_NONE, "none"},
    {SHARDREC_COMPRESSION_FLOAT16, "float16"},
    {SHARDREC_COMPRESSION_BFLOAT16, "bfloat16"},
}};
constexpr std::array<Named, 2> kDdpOrders = {{
    {SHARDREC_DDP_ORDER_REVERSE, "reverse"},
    {SHARDREC_DDP_ORDER_RECORDED, "recorded"},
}};
constexpr std::array<Named, 2> kDdpReductions = {{
    {SHARDREC_DDP_REDUCTION_ORDERED, "ordered"},
    {SHARDREC_DDP_REDUCTION_NCCL, "nccl"},
}};
constexpr std::array<Named, 4> kFsdpStrategies = {{
    {SHARDREC_FSDP_FULL_SHARD, "full_shard"},
    {SHARDREC_FSDP_SHARD_GRAD_OP, "shard_grad_op"},
    {SHARDREC_FSDP_HYBRID_SHARD, "hybrid_shard"},
    {SHARDREC_FSDP_NO_SHARD, "no_shard"},
}};
constexpr std::array<Named, 3> kNonFinite = {{
    {SHARDREC_NON_FINITE_ALLOW, "allow"},
    {SHARDREC_NON_FINITE_ERROR, "error"},
    {SHARDREC_NON_FINITE_SKIP, "skip"},
}};
constexpr std::array<Named, 2> kDeviceWaits = {{
    {SHARDREC_DEVICE_WAIT_SLEEP, "sleep"},
    {SHARDREC_DEVICE_WAIT_SPIN, "spin"},
}};
constexpr std::array<Named, 4> kReplicaSyncs = {{
    {SHARDREC_REPLICA_SYNC_FULL, "full"},
    {SHARDREC_REPLICA_SYNC_TOUCHED, "touched"},
    {SHARDREC_REPLICA_SYNC_EXACT, "exact"},
    {SHARDREC_REPLICA_SYNC_SHARDED, "sharded"},
}};
constexpr std::array<Named, 4> kPrecisions = {{
    {SHARDREC_PRECISION_FLOAT32, "float32"},
    {SHARDREC_PRECISION_TFLOAT32, "tfloat32"},
    {SHARDREC_PRECISION_BFLOAT16, "bfloat16"},
    {SHARDREC_PRECISION_FLOAT16, "float16"},
}};
constexpr std::array<Named, 3> kUnused = {{
    {SHARDREC_UNUSED_ERROR, "error"},
    {SHARDREC_UNUSED_MARK, "mark"},
    {SHARDREC_UNUSED_ZERO, "zero"},
}};
constexpr std::array<Named, 2> kJoinDivisors = {{
    {SHARDREC_JOIN_DIVISOR_WORLD, "world"},
    {SHARDREC_JOIN_DIVISOR_LIVE, "live"},
}};

constexpr std::array<Named, 3> kServedTables = {{
    {SHARDREC_SERVED_TABLES_MEMORY, "memory"},
    {SHARDREC_SERVED_TABLES_MAPPED, "mapped"},
    {SHARDREC_SERVED_TABLES_INT8, "int8"},
}};

template <const auto& kNames>
constexpr OptionChoices kChoicesIn = {
    .name = [](int64_t value) -> std::string {
      for (const Named& named : kNames) {
        if (named.value == value) return named.name;
      }
      return "";
    },
    .value = [](std::string_view name) -> std::optional<int64_t> {
      for (const Named& named : kNames) {
        if (named.name == name) return named.value;
      }
      return std::nullopt;
    },
    .list =
        [] {
          std::string list;
          for (const Named& named : kNames)
            list += (list.empty() ? "" : ", ") + std::string(named.name);
          return list;
        },
};

// Engines between processes.
constexpr OptionChoices kEngineChoices = {
    .name = [](int64_t value) -> std::string {
      for (const comm::EngineRow& engine : comm::kEngines) {
        if (engine.value == value) return std::string(engine.name);
      }
      return "";
    },
    .value = [](std::string_view name) -> std::optional<int64_t> {
      const comm::EngineRow* engine = comm::find_process_engine(name);
      return engine != nullptr ? std::optional<int64_t>(*engine->value) : std::nullopt;
    },
    .list = [] { return comm::process_engine_names(", "); },
};

bool any_real(double) { return true; }
bool not_negative(double value) { return value >= 0; }
bool positive(double value) { return value > 0; }
bool below_one(double value) { return value >= 0 && value < 1; }
bool a_scale(double value) { return value >= 1 && value <= 65536; }
bool is_loss_scale(double value) { return dense::is_loss_scale(value); }
bool is_silence(double value) { return comm::rendezvous::is_silence(value); }
bool any_text(std::string_view) { return true; }
bool is_host(std::string_view value) { return comm::rendezvous::is_host(value); }
bool is_host_or_empty(std::string_view value) { return value.empty() || is_host(value); }
bool is_interface_or_empty(std::string_view value) {
  return value.empty() || comm::rendezvous::is_interface(value);
}
bool is_job_or_empty(std::string_view value) {
  return value.empty() || comm::rendezvous::is_job(value);
}
bool is_secret_or_empty(std::string_view value) {
  return value.empty() || comm::rendezvous::is_secret(value);
}

constexpr OptionRow choice(shardrec_option key, const char* name, uint32_t taken_by,
                           const OptionChoices& choices, std::optional<int64_t> fallback) {
  return {.key = key,
          .name = name,
          .kinds = taken_by,
          .type = OptionType::kChoice,
          .accepted = "",
          .choices = &choices,
          .default_i64 = fallback};
}

constexpr OptionRow integer(shardrec_option key, const char* name, uint32_t taken_by,
                            const char* accepted, int64_t least, int64_t most,
                            std::optional<int64_t> fallback) {
  return {.key = key,
          .name = name,
          .kinds = taken_by,
          .type = OptionType::kInteger,
          .accepted = accepted,
          .least = least,
          .most = most,
          .default_i64 = fallback};
}

constexpr OptionRow real(shardrec_option key, const char* name, uint32_t taken_by,
                         const char* accepted, bool (*is_accepted)(double),
                         std::optional<double> fallback) {
  return {.key = key,
          .name = name,
          .kinds = taken_by,
          .type = OptionType::kReal,
          .accepted = accepted,
          .real_accepted = is_accepted,
          .default_f64 = fallback};
}

constexpr OptionRow text(shardrec_option key, const char* name, uint32_t taken_by,
                         const char* accepted, bool (*is_accepted)(std::string_view),
                         const char* fallback) {
  return {.key = key,
          .name = name,
          .kinds = taken_by,
          .type = OptionType::kText,
          .accepted = accepted,
          .text_accepted = is_accepted,
          .default_text = fallback};
}

constexpr bool is_output_dtype(int64_t value) {
  return value == SHARDREC_FLOAT32 || value == SHARDREC_FLOAT16 || value == SHARDREC_BFLOAT16;
}
constexpr OptionChoices kOutputDtypeChoices = {
    .name = [](int64_t value) -> std::string {
      return is_output_dtype(value) ? plan::name_of(static_cast<shardrec_dtype>(value)) : "";
    },
    .value = [](std::string_view name) -> std::optional<int64_t> {
      const auto value = plan::value_of<shardrec_dtype>(name);
      return value.has_value() && is_output_dtype(*value) ? std::optional<int64_t>(*value)
                                                          : std::nullopt;
    },
    .list = [] { return std::string("float16, bfloat16, float32"); },
};

constexpr OptionChoices kShardingKinds = {
    .name = [](int64_t value) -> std::string {
      const auto kinds = plan::ShardingKinds::of_mask(value);
      return kinds.has_value() ? kinds->text() : "";
    },
    .value = [](std::string_view text) -> std::optional<int64_t> {
      const auto kinds = plan::ShardingKinds::of_text(text);
      return kinds.has_value() ? std::optional(kinds->mask()) : std::nullopt;
    },
    .list = [] { return plan::ShardingKinds().names(); },
    .lead = "all (0), or a set (bits 1 << kind, or names with commas between them) of ",
};
bool is_rank_set(std::string_view value) { return plan::RankSet::of_text(value).has_value(); }

// Key and its spelling at once.
#define KEY(name) SHARDREC_OPTION_##name, "SHARDREC_OPTION_" #name
constexpr const char* kFinite = "a finite number";
constexpr const char* kFiniteNotNegative = "a finite number, 0 or more,";
constexpr const char* kFinitePositive = "a finite number above 0";
constexpr const char* kBelowOne = "a number in [0, 1)";
constexpr const char* kScale = "a number in [1, 65536]";
constexpr const char* kSwitch = "0 or 1";
constexpr const char* kPositive = "an integer of at least 1";
constexpr const char* kAnyText = "a text";
constexpr const char* kThreads = "an integer in [1, 1024]";

constexpr std::array kRows = {
    choice(KEY(OPTIMIZER), kOptimizer, kChoicesOf<shardrec_optimizer>, SHARDREC_OPTIMIZER_SGD),
    real(KEY(LEARNING_RATE), kOptimizer, kFiniteNotNegative, not_negative, 0.01),
    real(KEY(EPS), kOptimizer, kFiniteNotNegative, not_negative, 1e-8),
    real(KEY(WEIGHT_DECAY), kOptimizer, kFiniteNotNegative, not_negative, 0.0),
    choice(KEY(WEIGHT_DECAY_MODE), kOptimizer, kChoicesOf<shardrec_weight_decay>,
           SHARDREC_WEIGHT_DECAY_NONE),
    real(KEY(MAX_GRADIENT), kOptimizer, kFiniteNotNegative, not_negative, 0.0),
    real(KEY(BETA1), kOptimizer, kBelowOne, below_one, 0.9),
    real(KEY(BETA2), kOptimizer, kBelowOne, below_one, 0.999),
    choice(KEY(ROW_STATISTICS), kOptimizer, kChoicesOf<shardrec_row_statistics>,
           SHARDREC_ROW_STATISTICS_ROW),
    real(KEY(MOMENTUM), kOptimizer, kBelowOne, below_one, 0.9),
    real(KEY(ETA), kTableOptimizer, kFiniteNotNegative, not_negative, 0.001),
    real(KEY(MAX_NORM), kTableOptimizer, kFiniteNotNegative, not_negative, 0.0),
    real(KEY(MOMENTUM_SCALE), kTableOptimizer, kScale, a_scale, 1.0),
    choice(KEY(DTYPE), kTable, kChoicesOf<shardrec_dtype>, SHARDREC_FLOAT32),
    choice(KEY(INIT), kTable, kChoicesOf<shardrec_init>, SHARDREC_INIT_UNIFORM),
    real(KEY(INIT_MIN), kTable, kFinite, any_real, std::nullopt),
    real(KEY(INIT_MAX), kTable, kFinite, any_real, std::nullopt),
    choice(KEY(ROUNDING), kTable, kChoicesOf<shardrec_rounding>, SHARDREC_ROUNDING_NEAREST),
    choice(KEY(OUT_OF_RANGE), kTable, kChoicesOf<shardrec_out_of_range>,
           SHARDREC_OUT_OF_RANGE_ERROR),
    choice(KEY(ALLOWED_SHARDING), kTable, kShardingKinds, 0),
    text(KEY(ALLOWED_RANKS), kTable,
         "numbers and ranges of ranks such as \"0-3, 7\", or an empty text,", is_rank_set, ""),
    integer(KEY(MIN_COLUMNS), kTable, "an integer in [1, 65536]", 1, 65536, 1),
    choice(KEY(SHARDING), kPlan, kChoicesOf<shardrec_sharding>, SHARDREC_SHARDING_AUTO),
    choice(KEY(REPLICATION), kPlan, kChoicesOf<shardrec_replication>, SHARDREC_REPLICATION_AUTO),
    integer(KEY(BATCH_SIZE), kPlan, "an integer of at least 0", 0, INT64_MAX, 0),
    real(KEY(BAG_LENGTH), kPlan, kFiniteNotNegative, not_negative, 1.0),
    choice(KEY(BALANCE), kPlan, kChoicesOf<shardrec_balance>, SHARDREC_BALANCE_BYTES),
    integer(KEY(SEED), kCollectionAndMlp, "an integer", INT64_MIN, INT64_MAX, 0),
    integer(KEY(THREADS), kWithThreads, kThreads, 1, 1024, std::nullopt),
    choice(KEY(GRADIENT_DIVISOR), kCollection, kChoicesIn<kDivisors>, SHARDREC_DIVISOR_RANKS),
    real(KEY(GRADIENT_DIVISOR_VALUE), kCollection, kFinitePositive, positive, 1.0),
    integer(KEY(LOOKUPS), kCollection, "an integer in [1, 8]", 1, 8, 2),
    choice(KEY(OUTPUT_DTYPE), kCollection, kOutputDtypeChoices, SHARDREC_FLOAT32),
    integer(KEY(DEDUPLICATE), kCollection, kSwitch, 0, 1, std::nullopt),
    choice(KEY(FORWARD_COMPRESSION), kCollection, kChoicesIn<kCompressions>,
           SHARDREC_COMPRESSION_NONE),
    choice(KEY(BACKWARD_COMPRESSION), kCollection, kChoicesIn<kCompressions>,
           SHARDREC_COMPRESSION_NONE),
    integer(KEY(HIERARCHICAL), kCollection, kSwitch, 0, 1, std::nullopt),
    integer(KEY(DEVICE), kOnDevices, "an integer in [-1, 1023]", -1, 1023, -1),
    choice(KEY(NON_FINITE), kNonFiniteKinds, kChoicesIn<kNonFinite>, SHARDREC_NON_FINITE_ALLOW),
    choice(KEY(DEVICE_WAIT), kWaitsForDevices, kChoicesIn<kDeviceWaits>,
           SHARDREC_DEVICE_WAIT_SLEEP),
    choice(KEY(REPLICA_SYNC), kCollection, kChoicesIn<kReplicaSyncs>,
           SHARDREC_REPLICA_SYNC_TOUCHED),
    integer(KEY(SYNC_EVERY), kCollection, "an integer of at least 0", 0, INT64_MAX, 0),
    integer(KEY(BORROW), kLookup, kSwitch, 0, 1, 0),
    integer(KEY(WEIGHT_GRADIENT), kLookup, kSwitch, 0, 1, 0),
    integer(KEY(DDP_AVERAGE), kDdpAndFsdp, kSwitch, 0, 1, 1),
    integer(KEY(DDP_BROADCAST), kDdp, kSwitch, 0, 1, 1),
    real(KEY(DDP_FACTOR), kDdpAndFsdp, kFinite, any_real, 1.0),
    integer(KEY(DDP_FIRST_BUCKET_BYTES), kDdp, kPositive, 1, INT64_MAX, int64_t{1} << 20),
    integer(KEY(DDP_BUCKET_BYTES), kDdp, kPositive, 1, INT64_MAX, int64_t{1} << 22),
    choice(KEY(DDP_ORDER), kDdp, kChoicesIn<kDdpOrders>, SHARDREC_DDP_ORDER_REVERSE),
    choice(KEY(DDP_UNUSED), kDdp, kChoicesIn<kUnused>, SHARDREC_UNUSED_ERROR),
    choice(KEY(DDP_COMPRESSION), kDdp, kChoicesIn<kDdpCompressions>, SHARDREC_COMPRESSION_NONE),
    choice(KEY(DDP_JOIN_DIVISOR), kDdp, kChoicesIn<kJoinDivisors>, SHARDREC_JOIN_DIVISOR_WORLD),
    integer(KEY(DDP_STEP_IN_BACKWARD), kDdp, kSwitch, 0, 1, 0),
    integer(KEY(DDP_THREAD), kDdp, kSwitch, 0, 1, std::nullopt),
    choice(KEY(DDP_REDUCTION), kDdp, kChoicesIn<kDdpReductions>, SHARDREC_DDP_REDUCTION_ORDERED),
    integer(KEY(ACCUMULATE_GRADIENTS), kMlp, kSwitch, 0, 1, 0),
    integer(KEY(STREAM), kOrderedByStreams, "an integer", INT64_MIN, INT64_MAX, 0),
    choice(KEY(PRECISION), kMlp, kChoicesIn<kPrecisions>, SHARDREC_PRECISION_FLOAT32),
    real(KEY(LOSS_SCALE), kMlp, "a power of two in [1, 2^24]", is_loss_scale,
         dense::kUsualLossScale),
    integer(KEY(LOSS_SCALE_STEPS), kMlp, "an integer, 0 or more,", 0, INT64_MAX,
            dense::kUsualLossScaleSteps),
    choice(KEY(PLACEMENT), kMesh, kChoicesIn<kPlacements>, SHARDREC_PLACEMENT_INTRA_NODE_SYNC),
    choice(KEY(ENGINE), kComm, kEngineChoices, std::nullopt),
    real(KEY(COMM_SETUP_SECONDS), kComm, kFinitePositive, positive, 1800.0),
    text(KEY(INTERFACE), kComm,
         "a network interface's name, an IPv4 or an IPv6 address, or an empty text,",
         is_interface_or_empty, ""),
    real(KEY(RANK_ZERO_SECONDS), kComm, kFinitePositive, positive, 60.0),
    text(KEY(ADDRESS), kRendezvous, "a host's name, an IPv4 or an IPv6 address", is_host,
         "127.0.0.1"),
    integer(KEY(PORT), kRendezvous, "an integer in [0, 65535]", 0, 65535, 0),
    text(KEY(ADVERTISED_ADDRESS), kRendezvous,
         "a host's name, an IPv4 or an IPv6 address, or an empty text,", is_host_or_empty, ""),
    text(KEY(JOB), kRendezvous, "a text of up to 64 letters, digits and -._~", is_job_or_empty, ""),
    text(KEY(SECRET), kRendezvous, "a text of 16 to 128 letters, digits and -._~, or an empty one,",
         is_secret_or_empty, ""),
    integer(KEY(ALLOW_PLAIN_TCP), kCommAndRendezvous, kSwitch, 0, 1, 0),
    real(KEY(SILENCE_SECONDS), kRendezvous, "a number in [0.1, 3600]", is_silence,
         comm::rendezvous::kSilenceSeconds),
    integer(KEY(KEEP_LAST), kCheckpoint, "an integer, 0 or more,", 0, INT64_MAX, 0),
    integer(KEY(MOST_DELTAS), kCheckpoint, "an integer in [0, 1000]", 0, checkpoint::kMostDeltas,
            100),
    integer(KEY(DELTA_STATES), kCheckpoint, kSwitch, 0, 1, 1),
    choice(KEY(SERVED_TABLES), kScorer, kChoicesIn<kServedTables>, SHARDREC_SERVED_TABLES_MEMORY),
    text(KEY(SERVED_COLLECTION), kScorer, kAnyText, any_text, ""),
    text(KEY(BOTTOM_LAYERS), kScorer, kAnyText, any_text, ""),
    text(KEY(TOP_LAYERS), kScorer, kAnyText, any_text, ""),
    integer(KEY(LOGITS), kScorer, kSwitch, 0, 1, 0),
    choice(KEY(FSDP_STRATEGY), kFsdp, kChoicesIn<kFsdpStrategies>, SHARDREC_FSDP_FULL_SHARD),
    integer(KEY(FSDP_PREFETCH), kFsdp, "an integer in [0, 4]", 0, 4, 1),
    integer(KEY(FSDP_HELD_UNITS), kFsdp, "an integer in [1, 64]", 1, 64, 1),
    choice(KEY(FSDP_PARAMETER_DTYPE), kFsdp, kOutputDtypeChoices, SHARDREC_FLOAT32),
    choice(KEY(FSDP_REDUCE_DTYPE), kFsdp, kOutputDtypeChoices, SHARDREC_FLOAT32),
    integer(KEY(FSDP_OFFLOAD), kFsdp, kSwitch, 0, 1, 0),
};
#undef KEY

}  // namespace

std::span<const OptionRow> option_rows() noexcept { return kRows; }

const OptionRow* find_option(shardrec_option key) noexcept {
  const auto found = std::find_if(kRows.begin(), kRows.end(),
                                  [&](const OptionRow& row) { return row.key == key; });
  return found == kRows.end() ? nullptr : &*found;
}

const char* options_kind_name(shardrec_options_kind kind) noexcept {
  switch (kind) {
    case SHARDREC_OPTIONS_OPTIMIZER:
      return "OPTIMIZER";
    case SHARDREC_OPTIONS_TABLE:
      return "TABLE";
    case SHARDREC_OPTIONS_PLAN:
      return "PLAN";
    case SHARDREC_OPTIONS_COLLECTION:
      return "COLLECTION";
    case SHARDREC_OPTIONS_LOOKUP:
      return "LOOKUP";
    case SHARDREC_OPTIONS_DDP:
      return "DDP";
    case SHARDREC_OPTIONS_MLP:
      return "MLP";
    case SHARDREC_OPTIONS_MESH:
      return "MESH";
    case SHARDREC_OPTIONS_COMM:
      return "COMM";
    case SHARDREC_OPTIONS_RENDEZVOUS:
      return "RENDEZVOUS";
    case SHARDREC_OPTIONS_CHECKPOINT:
      return "CHECKPOINT";
    case SHARDREC_OPTIONS_SCORER:
      return "SCORER";
    case SHARDREC_OPTIONS_METRICS:
      return "METRICS";
    case SHARDREC_OPTIONS_FSDP:
      return "FSDP";
    case SHARDREC_OPTIONS_KIND_FORCE_32:
      break;
  }
  return nullptr;
}

}  // namespace shardrec::capi
