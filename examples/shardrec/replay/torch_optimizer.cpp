// PyTorch's optimizers as the library's: the same formulas under other names and defaults.
#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "replay/case_model.h"
#include "replay/ddp_case.h"

namespace shardrec::cli {
namespace {

constexpr auto kSgdNames =
    std::to_array<std::string_view>({"lr", "momentum", "dampening", "weight_decay", "nesterov"});
constexpr auto kAdamNames = std::to_array<std::string_view>(
    {"lr", "betas[0]", "betas[1]", "eps", "weight_decay", "amsgrad"});
constexpr auto kAdagradNames = std::to_array<std::string_view>(
    {"lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps"});
// How it is computed, not what.
constexpr auto kNoMatter =
    std::to_array<std::string_view>({"foreach", "fused", "capturable", "differentiable"});

// Arguments that change the formula: the library has it for the default only.
constexpr auto kDefaultOnly = std::to_array<std::string_view>(
    {"dampening", "nesterov", "amsgrad", "lr_decay", "initial_accumulator_value", "maximize"});

bool any_of(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::span<const std::string_view> arguments_of(const std::string& type) {
  if (type == "SGD") return kSgdNames;
  if (type == "Adam" || type == "AdamW") return kAdamNames;
  if (type == "Adagrad") return kAdagradNames;
  throw Unsupported("The library has no optimizer that is PyTorch's " + type + ".");
}

}  // namespace

OptimizerOptions TorchOptimizer::options() const {
  const auto known = arguments_of(type);
  const auto refuse = [this](std::string_view name) {
    throw Unsupported("The library has no option for the argument '" + std::string(name) + "' of " +
                      type + ".");
  };
  for (const auto& [name, value] : numbers) {
    if (any_of(kNoMatter, name)) continue;
    const bool default_only = any_of(kDefaultOnly, name);
    if (!any_of(known, name) && name != "maximize") refuse(name);
    if (default_only && value != 0) refuse(name);
  }
  if (!other_arguments.empty()) refuse(other_arguments.front());

  const auto number = [this](const char* name, double otherwise) {
    const auto found = numbers.find(name);
    return found == numbers.end() ? otherwise : found->second;
  };
  OptimizerOptions options;
  offered([&] {
    const bool is_adam = type == "Adam" || type == "AdamW";
    options.weight_decay(number("weight_decay", type == "AdamW" ? 0.01 : 0));
    options.weight_decay_mode(type == "AdamW" ? SHARDREC_WEIGHT_DECAY_DECOUPLE
                                              : SHARDREC_WEIGHT_DECAY_L2);
    if (is_adam) {
      options.optimizer(SHARDREC_OPTIMIZER_ADAM);
      options.learning_rate(number("lr", 1e-3)).eps(number("eps", 1e-8));
      options.beta1(number("betas[0]", 0.9)).beta2(number("betas[1]", 0.999));
    } else if (type == "Adagrad") {
      options.optimizer(SHARDREC_OPTIMIZER_ADAGRAD);
      options.learning_rate(number("lr", 1e-2)).eps(number("eps", 1e-10));
    } else {
      const double momentum = number("momentum", 0);
      options.optimizer(momentum == 0 ? SHARDREC_OPTIMIZER_SGD : SHARDREC_OPTIMIZER_MOMENTUM_SGD);
      options.learning_rate(number("lr", 1e-3));
      if (momentum != 0) options.momentum(momentum);
    }
  });
  return options;
}

}  // namespace shardrec::cli
