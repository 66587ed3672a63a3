// The library does what the annotations of its headers say (shardrec/annotations.h): every function is
// called with arguments that it accepts, and with one of them changed to NULL, to options of each kind,
// or to a number that is no flag. A new function is called as soon as a header declares it.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "annotations/objects.h"

namespace shardrec::test {
namespace {

// Bits: the annotations of a parameter.
constexpr unsigned kNullable = 1;
constexpr unsigned kOutNullable = 2;
constexpr unsigned kOptions = 4;
constexpr unsigned kFlag = 8;
constexpr unsigned kWritten = 16;
constexpr unsigned kKept = 32;

struct Parameter {
  const char* name;
  unsigned annotations;
  const char* kind;  // of kOptions
};

// What a call returned, and the sentence of its error.
struct Outcome {
  shardrec_status status = SHARDREC_OK;
  std::string sentence;
};

// Calls that do not succeed in this test: they need a rendezvous or environment variables, measure for
// seconds, or need a device. For these the test only checks that they are not refused because of NULL.
const std::set<std::string> kCannotSucceed = {
    "shardrec_comm_create", "shardrec_comm_create_from_env", "shardrec_probe_json"};
// NULL is accepted with ENGINE_MPI only, or where other ranks bring what this one does not.
const std::set<std::string> kNullInOthers = {"shardrec_comm_create.token",
                                             "shardrec_collection_continue_from.from"};
// What leaves the error of the thread alone, so that no sentence says what is NULL.
const std::set<std::string> kWithoutSentence = {"shardrec_last_error_i64",
                                                "shardrec_last_error_text"};
// What is written by a later call, by calls for rows, or by calls of several ranks.
const std::set<std::string> kWrittenElsewhere = {
    "shardrec_ddp_add_parameter",     "shardrec_ddp_set_flat_gradient",
    "shardrec_collection_read_range", "shardrec_collection_read_rows",
    "shardrec_comm_all_reduce",       "shardrec_comm_broadcast"};

template <class Value>
Value good(Objects& objects, const char* name) {
  if constexpr (std::is_pointer_v<Value>) {
    using Target = std::remove_pointer_t<Value>;
    if constexpr (std::is_function_v<Target>) {
      return nullptr;  // a callback: none
    } else if constexpr (requires(std::remove_const_t<Target>*& out) { objects.good(name, out); }) {
      std::remove_const_t<Target>* out = nullptr;
      objects.good(name, out);
      return out;
    } else if constexpr (requires(Value& out) { objects.good(name, out); }) {
      Value out = nullptr;
      objects.good(name, out);
      return out;
    } else {
      return static_cast<Value>(objects.place());
    }
  } else if constexpr (requires(Value& out) { objects.good(name, out); }) {
    Value out{};
    objects.good(name, out);
    return out;
  } else {
    return static_cast<Value>(1);
  }
}

template <class Function>
class Annotated;

// A function, and its calls with one argument changed.
template <class Result, class... Arguments>
class Annotated<Result (*)(Arguments...)> {
 public:
  Annotated(const char* name, Result (*function)(Arguments...), std::vector<Parameter> parameters)
      : name_(name), function_(function), parameters_(std::move(parameters)) {
    EXPECT_EQ(parameters_.size(), sizeof...(Arguments)) << name;
  }

  void expect_null_as_annotated() const {
    for_each_parameter([&]<class Argument>(const Parameter& parameter, size_t index, Argument*) {
      if constexpr (std::is_pointer_v<Argument>) {
        const std::string where = std::string(name_) + "." + parameter.name;
        if (kNullInOthers.contains(where)) return;
        const Outcome outcome = call_with<Argument>(index, nullptr);
        const bool refused = contains(outcome.sentence, "the handle is NULL") ||
                             contains(outcome.sentence, std::string(parameter.name) + " is NULL");
        const std::string what =
            where + ": " + shardrec_status_name(outcome.status) + ": " + outcome.sentence;
        if ((parameter.annotations & (kNullable | kOptions)) != 0) {
          EXPECT_TRUE(outcome.status == SHARDREC_OK || (kCannotSucceed.contains(name_) && !refused))
              << "annotated as nullable: " << what;
          return;
        }
        EXPECT_TRUE(refused || kWithoutSentence.contains(name_))
            << "not annotated as nullable: " << what;
        EXPECT_TRUE(outcome.status == SHARDREC_INVALID_ARGUMENT ||
                    outcome.status == SHARDREC_INVALID_HANDLE ||
                    outcome.status == SHARDREC_INVALID_BATCH)
            << what;
      }
    });
  }

  void expect_writes_as_annotated() const {
    if constexpr ((std::is_same_v<Arguments, const shardrec_tensor*> || ...)) {
      Objects objects(name_);
      const Outcome outcome =
          call_with(objects, sizeof...(Arguments), 0, std::index_sequence_for<Arguments...>());
      EXPECT_EQ(outcome.status, SHARDREC_OK) << name_ << ": " << outcome.sentence;
      const std::vector<bool> changed = objects.changed_tensors();
      size_t tensor = 0;
      for_each_parameter([&]<class Argument>(const Parameter& parameter, size_t, Argument*) {
        if constexpr (std::is_same_v<Argument, const shardrec_tensor*>) {
          const bool annotated = (parameter.annotations & kWritten) != 0;
          const bool is_changed = changed.at(tensor++);
          if (annotated && kWrittenElsewhere.contains(name_)) return;
          EXPECT_EQ(is_changed, annotated) << name_ << "." << parameter.name;
        }
      });
    }
  }

  void expect_flags_as_annotated() const {
    for_each_parameter([&]<class Argument>(const Parameter& parameter, size_t index, Argument*) {
      if constexpr (std::is_same_v<Argument, int32_t>) {
        if ((parameter.annotations & kFlag) == 0) return;
        const Outcome outcome = call_with<Argument>(index, 2);
        EXPECT_EQ(outcome.status, SHARDREC_INVALID_ARGUMENT) << name_;
        EXPECT_TRUE(contains(outcome.sentence, std::string(parameter.name) + " is 2; 0 or 1"))
            << name_ << ": " << outcome.sentence;
      }
    });
  }

  void expect_options_of_creates() const {
    const std::string_view name = name_;
    if (name == "shardrec_options_create" || !contains(name, "_create")) return;
    EXPECT_TRUE((std::is_same_v<Arguments, const shardrec_options*> || ...)) << name_;
  }

  void expect_kinds_as_annotated() const {
    static constexpr std::array kKinds = {"OPTIMIZER", "TABLE",      "PLAN",       "COLLECTION",
                                          "LOOKUP",    "DDP",        "MLP",        "MESH",
                                          "COMM",      "RENDEZVOUS", "CHECKPOINT", "SCORER"};
    for_each_parameter([&]<class Argument>(const Parameter& parameter, size_t index, Argument*) {
      if constexpr (std::is_same_v<Argument, const shardrec_options*>) {
        if ((parameter.annotations & kOptions) == 0) return;
        for (size_t kind = 0; kind < kKinds.size(); ++kind) {
          Options options;
          ASSERT_OK(
              shardrec_options_create(static_cast<shardrec_options_kind>(kind + 1), options.out()));
          const Outcome outcome = call_with<Argument>(index, options);
          const bool refused =
              outcome.status == SHARDREC_INVALID_ARGUMENT && contains(outcome.sentence, "kind");
          EXPECT_EQ(refused, kKinds[kind] != std::string_view(parameter.kind))
              << name_ << " with options of kind " << kKinds[kind] << ": " << outcome.sentence;
        }
      }
    });
  }

 private:
  template <class Check>
  void for_each_parameter(const Check& check) const {
    size_t index = 0;
    [[maybe_unused]] const auto one = [&]<class Argument>(Argument* type) {
      check(parameters_[index], index, type);
      ++index;
    };
    (one(static_cast<Arguments*>(nullptr)), ...);
  }

  // Calls with good arguments, but for that with this index.
  template <class Argument>
  Outcome call_with(size_t index, Argument changed) const {
    Objects objects(name_);
    return call_with(objects, index, changed, std::index_sequence_for<Arguments...>());
  }
  template <class Argument, size_t... indices>
  Outcome call_with(Objects& objects, size_t index, Argument changed,
                    std::index_sequence<indices...>) const {
    std::tuple<Arguments...> arguments{good<Arguments>(objects, parameters_[indices].name)...};
    const auto change = [&](auto& argument, size_t at) {
      if constexpr (std::is_same_v<std::remove_reference_t<decltype(argument)>, Argument>) {
        if (at == index) argument = changed;
      }
    };
    (change(std::get<indices>(arguments), indices), ...);
    if constexpr (std::is_same_v<Result, shardrec_status>) {
      const shardrec_status status = std::apply(function_, arguments);
      Outcome outcome{status, status == SHARDREC_OK ? "" : shardrec_last_error()};
      destroy_made(arguments, status);
      return outcome;
    } else {
      std::apply(function_, arguments);  // cannot fail
      return {};
    }
  }

  // A handle or a text that a call has made.
  void destroy_made(std::tuple<Arguments...>& arguments, shardrec_status status) const {
    if (status != SHARDREC_OK) return;
    std::apply([](auto&... argument) { (destroy_if_made(argument), ...); }, arguments);
  }
  template <class Argument>
  static void destroy_if_made(Argument argument) {
    if constexpr (std::is_same_v<Argument, char**>) {
      if (argument != nullptr) shardrec_text_free(std::exchange(*argument, nullptr));
    } else if constexpr (requires { destroy_handle(argument); }) {
      destroy_handle(argument);
    }
  }

  static void destroy_handle(shardrec_options** made) { shardrec_options_destroy(made); }
  static void destroy_handle(shardrec_control** made) { shardrec_control_destroy(made); }
  static void destroy_handle(shardrec_local** made) { shardrec_local_destroy(made); }
  static void destroy_handle(shardrec_comm** made) { shardrec_comm_destroy(made); }
  static void destroy_handle(shardrec_model** made) { shardrec_model_destroy(made); }
  static void destroy_handle(shardrec_topology** made) { shardrec_topology_destroy(made); }
  static void destroy_handle(shardrec_plan** made) { shardrec_plan_destroy(made); }
  static void destroy_handle(shardrec_collection** made) { shardrec_collection_destroy(made); }
  static void destroy_handle(shardrec_lookup** made) { shardrec_lookup_destroy(made); }
  static void destroy_handle(shardrec_mesh** made) { shardrec_mesh_destroy(made); }
  static void destroy_handle(shardrec_rendezvous** made) { shardrec_rendezvous_destroy(made); }
  static void destroy_handle(shardrec_ddp** made) { shardrec_ddp_destroy(made); }
  static void destroy_handle(shardrec_fsdp** made) { shardrec_fsdp_destroy(made); }
  static void destroy_handle(shardrec_mlp** made) { shardrec_mlp_destroy(made); }
  static void destroy_handle(shardrec_interaction** made) { shardrec_interaction_destroy(made); }
  static void destroy_handle(shardrec_metrics** made) { shardrec_metrics_destroy(made); }
  static void destroy_handle(shardrec_checkpoint** made) { shardrec_checkpoint_destroy(made); }
  static void destroy_handle(shardrec_scorer** made) { shardrec_scorer_destroy(made); }
  static void destroy_handle(shardrec_memory** made) { shardrec_memory_destroy(made); }

  const char* name_;
  Result (*function_)(Arguments...);
  std::vector<Parameter> parameters_;
};

// Calls check with every function of the public headers.
template <class Check>
void for_each_function(const Check& check) {
#define ANNOTATED(function, ...) \
  check(Annotated<decltype(&function)>(#function, &function, std::vector<Parameter> __VA_ARGS__));
#include "annotated_functions.inc"
#undef ANNOTATED
}

TEST(Annotations, NullIsAcceptedWhereItIsAnnotatedAndRefusedElsewhere) {
  for_each_function([](const auto& function) { function.expect_null_as_annotated(); });
}

TEST(Annotations, OnlyAnnotatedMemoryIsWritten) {
  for_each_function([](const auto& function) { function.expect_writes_as_annotated(); });
}

TEST(Annotations, FlagsAreZeroOrOne) {
  for_each_function([](const auto& function) { function.expect_flags_as_annotated(); });
}

TEST(Annotations, EveryCreateTakesOptions) {
  for_each_function([](const auto& function) { function.expect_options_of_creates(); });
}

TEST(Annotations, OptionsAreOfTheAnnotatedKind) {
  for_each_function([](const auto& function) { function.expect_kinds_as_annotated(); });
}

}  // namespace
}  // namespace shardrec::test
