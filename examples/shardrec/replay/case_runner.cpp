// How a case is run on ranks and held against what was recorded.
#include "replay/case_runner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "command/numbers.h"
#include "launch/ranks.h"
#include "replay/case_model.h"

namespace shardrec::cli {
namespace {

// The states of an optimizer, in the order of shardrec_table_part.
struct CaseState {
  const char* name;
  bool by_row = false;
};

std::vector<CaseState> states_of(const std::string& optimizer) {
  if (optimizer == "adagrad") return {{"sum"}};
  if (optimizer == "rowwise_adagrad") return {{"sum", true}};
  if (optimizer == "adam" || optimizer == "lamb") return {{"exp_avg"}, {"exp_avg_sq"}};
  if (optimizer == "partial_rowwise_adam" || optimizer == "partial_rowwise_lamb") {
    return {{"exp_avg"}, {"exp_avg_sq", true}};
  }
  if (optimizer == "lars_sgd") return {{"momentum_buffer"}};
  return {};
}

// Where a rank stands: among all, and in 2D parallel in its sharding group.
struct Place {
  int rank = 0;
  int ranks = 1;
  int32_t sharding_rank = 0;
  int32_t replica = 0;
};

// One rank's way through a case.
class CaseRank {
 public:
  CaseRank(const RecordedCase& recorded, const Safetensors& arrays, const Place& place,
           Collection tables)
      : recorded_(recorded),
        arrays_(arrays),
        place_(place),
        tables_(std::move(tables)),
        lookup_(tables_) {}

  CaseResult run() {
    write_initial_weights();
    for (int64_t step = 1; step <= recorded_.steps; ++step) {
      train(step);
      const auto& syncs = recorded_.sync_after;
      if (std::find(syncs.begin(), syncs.end(), step) != syncs.end()) sync(step);
    }
    if (!recorded_.replicas()) compare_tables("final", "final_state");
    return result_;
  }

 private:
  // The first rank of a sharding group writes and reads whole tables; the others only take part.
  [[nodiscard]] int64_t my_rows(const CaseTable& table) const {
    return place_.sharding_rank == 0 ? table.rows : 0;
  }
  [[nodiscard]] Matrix my_view(const std::vector<float>& data, int64_t rows,
                               int64_t columns) const {
    return place_.sharding_rank == 0 ? Matrix(data.data(), rows, columns) : Matrix(nullptr);
  }

  void write_initial_weights() {
    for (size_t t = 0; t < recorded_.tables.size(); ++t) {
      const CaseTable& table = recorded_.tables[t];
      const auto weights =
          arrays_.floats(recorded_.name + "/init/" + table.name, table.rows * table.dim);
      tables_.write_range(static_cast<int32_t>(t), SHARDREC_TABLE_WEIGHTS, 0, my_rows(table),
                          my_view(weights, my_rows(table), table.dim));
    }
  }

  void sync(int64_t step) {
    const std::string prefix =
        "replica" + std::to_string(place_.replica) + "/step" + std::to_string(step) + "/";
    compare_tables(prefix + "before", prefix + "before_state");
    tables_.sync_replicas();
    compare_tables(prefix + "after", prefix + "after_state");
  }

  void train(int64_t step) {
    const CaseStep data(recorded_, arrays_, step);
    const Slice slice = slice_of(recorded_.global_batch(), place_.ranks, place_.rank);
    const CaseStep::Part part = data.part(slice.first, slice.last);
    lookup_.begin(slice.size(), part.values, part.lengths,
                  part.weights.empty() ? Vector(nullptr) : Vector(part.weights));
    std::vector<float> out(part.out.size());
    lookup_.forward(0, {out.data(), slice.size(), recorded_.width()});
    compare(out, part.out, result_.out);
    tables_.set_learning_rate(recorded_.optimizer.learning_rate(step));
    lookup_.set_gradient(0, {part.gradient.data(), slice.size(), recorded_.width()});
    lookup_.backward();
  }

  // Against the arrays under these names.
  void compare_tables(const std::string& weights, const std::string& states) {
    for (size_t t = 0; t < recorded_.tables.size(); ++t) {
      const CaseTable& table = recorded_.tables[t];
      const auto expected =
          arrays_.floats(recorded_.name + "/" + weights + "/" + table.name, table.rows * table.dim);
      compare(read(t, SHARDREC_TABLE_WEIGHTS, table.dim), expected, result_.weights);
      int part = SHARDREC_TABLE_STATE;
      for (const CaseState& state : states_of(recorded_.optimizer.type)) {
        compare_state(t, static_cast<shardrec_table_part>(part++), state, states);
      }
    }
  }

  void compare_state(size_t t, shardrec_table_part part, const CaseState& state,
                     const std::string& prefix) {
    const CaseTable& table = recorded_.tables[t];
    const std::string name = recorded_.name + "/" + prefix + "/" + state.name + "/" + table.name;
    if (!arrays_.has(name)) return;
    if (!state.by_row) {
      compare(read(t, part, table.dim), arrays_.floats(name, table.rows * table.dim),
              result_.state);
      return;
    }
    // State per column shard is read with a value per column; recorded is one per row.
    const int64_t columns = recorded_.optimizer.shard_statistics ? table.dim : 1;
    std::vector<float> expected;
    for (const float value : arrays_.floats(name, table.rows)) {
      expected.insert(expected.end(), static_cast<size_t>(columns), value);
    }
    compare(read(t, part, columns), expected, result_.state);
  }

  // The whole table on the first rank of a sharding group, nothing on the others.
  std::vector<float> read(size_t t, shardrec_table_part part, int64_t columns) {
    const int64_t rows = my_rows(recorded_.tables[t]);
    std::vector<float> values(static_cast<size_t>(rows * columns));
    tables_.read_range(static_cast<int32_t>(t), part, 0, rows, my_view(values, rows, columns));
    return values;
  }

  void compare(const std::vector<float>& values, const std::vector<float>& expected,
               LargestError& largest) {
    for (size_t i = 0; i < values.size(); ++i) {
      largest.add(values[i], expected[i], recorded_.rtol, recorded_.atol);
    }
  }

  const RecordedCase& recorded_;
  const Safetensors& arrays_;
  Place place_;
  Collection tables_;
  Lookup lookup_;
  CaseResult result_;
};

// Errors as numbers, for other ranks. Infinite ones travel as the largest number.
std::vector<double> numbers_of(const CaseResult& result) {
  std::vector<double> numbers;
  for (const LargestError* error : {&result.out, &result.weights, &result.state}) {
    numbers.push_back(static_cast<double>(error->compared));
    numbers.push_back(std::min(error->absolute, std::numeric_limits<double>::max()));
    numbers.push_back(std::min(error->of_tolerance, std::numeric_limits<double>::max()));
  }
  return numbers;
}

CaseResult add_up(const std::vector<std::vector<double>>& ranks) {
  CaseResult all;
  for (const std::vector<double>& numbers : ranks) {
    const double* at = numbers.data();
    for (LargestError* error : {&all.out, &all.weights, &all.state}) {
      error->add(
          {.compared = static_cast<int64_t>(at[0]), .absolute = at[1], .of_tolerance = at[2]});
      at += 3;
    }
  }
  return all;
}

CollectionOptions table_options(const RecordedCase& recorded, int64_t device) {
  CollectionOptions tables;
  tables.threads(1).device(device);
  if (recorded.mean_gradients) {
    tables.gradient_divisor_value(recorded.sharding_group_size);
  } else {
    tables.gradient_divisor(SHARDREC_DIVISOR_NONE);
  }
  return tables;
}

// Collective.
CaseResult run_rank_of(const RecordedCase& recorded, const Safetensors& arrays,
                       const ReplayOptions& options, const RankGroup& where, int rank, Comm& comm) {
  if (recorded.ddp) return run_ddp_case(recorded, arrays, comm);
  const Model model = make_model(recorded);
  const CollectionOptions tables =
      table_options(recorded, options.tables_on.device_of(where, rank));
  Place place{.rank = rank, .ranks = comm.size(), .sharding_rank = rank};
  if (!recorded.replicas()) {
    const Plan plan = make_plan(recorded, options, model, place.ranks, where.ranks_per_node);
    return CaseRank(recorded, arrays, place, Collection(comm, model, plan, tables)).run();
  }
  const int group = recorded.sharding_group_size;
  Mesh mesh(comm, group, MeshOptions().placement(recorded.placement));
  place.sharding_rank = mesh.place().sharding_rank;
  place.replica = mesh.place().replica_rank;
  const Plan plan = make_plan(recorded, options, model, group, group);
  return CaseRank(recorded, arrays, place, Collection(comm, mesh, model, plan, tables)).run();
}

CaseResult train_and_compare(const RecordedCase& recorded, const Safetensors& arrays,
                             const ReplayOptions& options) {
  const int ranks = ranks_of(recorded, options);
  const int ranks_per_node = std::min(ranks, recorded.local_world_size);
  // What is not offered, or not comparable, shows itself before ranks are started.
  if (recorded.ddp) {
    require_offered(recorded, arrays);
  } else {
    const int group = recorded.replicas() ? recorded.sharding_group_size : ranks;
    (void)make_plan(recorded, options, make_model(recorded), group,
                    std::min(group, ranks_per_node));
  }
  CaseResult all;
  const RankGroup where{.ranks = ranks, .ranks_per_node = ranks_per_node, .engine = options.engine};
  run_ranks(where, [&](int rank, Comm& comm) {
    const CaseResult own = run_rank_of(recorded, arrays, options, where, rank, comm);
    const CaseResult together = add_up(gather(comm, numbers_of(own)));
    if (rank == 0) all = together;
  });
  all.ranks = ranks;
  return all;
}

}  // namespace

void LargestError::add(double value, double expected, double rtol, double atol) {
  ++compared;
  double error = std::abs(value - expected);
  if (value == expected) error = 0;  // infinities too
  if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
  const double allowed = atol + rtol * std::abs(expected);
  const double ratio = error == 0 ? 0 : error / allowed;
  absolute = std::max(absolute, error);
  of_tolerance =
      std::max(of_tolerance, std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio);
}

void LargestError::add(const LargestError& other) {
  compared += other.compared;
  absolute = std::max(absolute, other.absolute);
  of_tolerance = std::max(of_tolerance, other.of_tolerance);
}

int ranks_of(const RecordedCase& recorded, const ReplayOptions& options) {
  return options.ranks > 0 ? options.ranks : recorded.world_size;
}

CaseResult run_case(const RecordedCase& recorded, const Safetensors& arrays,
                    const ReplayOptions& options) {
  CaseResult result;
  result.ranks = ranks_of(recorded, options);
  const bool as_recorded = options.sharding.empty() && result.ranks == recorded.world_size;
  try {
    if (recorded.replicas() && result.ranks != recorded.world_size) {
      throw NotComparable(
          "Each replica trains on batches of its own, so it runs on its recorded number of ranks.");
    }
    if (recorded.optimizer.shard_statistics && !as_recorded) {
      throw NotComparable(
          "Its row-wise state is kept per column shard, so it runs only under its recorded boxes.");
    }
    if (recorded.ddp && !options.sharding.empty()) {
      throw NotComparable("It has no tables, which a kind of sharding is for.");
    }
    if (recorded.ddp && recorded.global_batch() % result.ranks != 0) {
      throw NotComparable(
          "Its gradients are means over the samples of a rank, so every rank needs as many.");
    }
    result = train_and_compare(recorded, arrays, options);
    const double worst =
        std::max({result.out.of_tolerance, result.weights.of_tolerance, result.state.of_tolerance});
    if (worst > 1) {
      result.outcome = Outcome::kFailed;
      result.reason = "out of tolerance by a factor of " + fixed(worst, 2);
    }
  } catch (const NotComparable& error) {
    result.outcome = Outcome::kNotComparable;
    result.reason = error.what();
  } catch (const Unsupported& error) {
    result.outcome = Outcome::kUnsupported;
    result.reason = error.what();
  } catch (const Error& error) {
    result.outcome = Outcome::kFailed;
    result.reason = error.what();
  }
  return result;
}

}  // namespace shardrec::cli
