#include "shardrec/layers.h"

#include <cmath>
#include <memory>
#include <span>
#include <string>

#include "compute/cpu/kernels/dispatch.h"
#include "core/tensor.h"
#include "dense/loss.h"
#include "guard.h"
#include "objects/dense_objects.h"
#include "structs.h"

namespace shardrec::capi {

dense::device::ContextOptions place_from(const Options& options) {
  const auto wait = options.choice<shardrec_device_wait>(SHARDREC_OPTION_DEVICE_WAIT);
  return {.device = static_cast<int32_t>(options.i64(SHARDREC_OPTION_DEVICE)),
          .caller_stream = options.i64(SHARDREC_OPTION_STREAM),
          .wait = wait == SHARDREC_DEVICE_WAIT_SPIN ? compute::HostWait::kSpin
                                                    : compute::HostWait::kSleep};
}

dense::device::CallerMatrix column_for(core::DeviceSet devices, const shardrec_tensor* tensor,
                                       const char* name, int64_t size) {
  const std::span<float> column = core::column_view<float>(tensor, name, size, devices);
  const auto count = static_cast<int64_t>(column.size());
  return {{.data = column.data(), .rows = 1, .cols = count, .stride = count},
          tensor->device_type == SHARDREC_DEVICE_CUDA};
}

dense::MlpOptions mlp_options(const Options& options) {
  compute::require_cpu_target();
  const auto threads = options.find_i64(SHARDREC_OPTION_THREADS);
  return {.optimizer = optimizer_from(options),
          .seed = static_cast<uint64_t>(options.i64(SHARDREC_OPTION_SEED)),
          .threads = threads ? static_cast<int>(*threads) : comm::ThreadShare::least(),
          .accumulate = options.i64(SHARDREC_OPTION_ACCUMULATE_GRADIENTS) != 0,
          .precision = static_cast<dense::Precision>(options.i64(SHARDREC_OPTION_PRECISION)),
          .loss_scale = {.scale = options.f64(SHARDREC_OPTION_LOSS_SCALE),
                         .steps = options.i64(SHARDREC_OPTION_LOSS_SCALE_STEPS)},
          .place = place_from(options)};
}

}  // namespace shardrec::capi

using namespace shardrec::capi;
namespace core = shardrec::core;
namespace dense = shardrec::dense;

namespace {

dense::device::CallerMatrix optional_column(core::DeviceSet devices, const shardrec_tensor* tensor,
                                            const char* name, int64_t size) {
  if (tensor == nullptr) return {{}, false};
  return column_for(devices, tensor, name, size);
}

std::span<float> floats_of(const dense::device::CallerMatrix& column) {
  return {column.rows.data, static_cast<size_t>(column.rows.cols)};
}

// On the CPU.
void compute_loss(const dense::device::LossVectors& vectors, double* mean) {
  const double loss =
      dense::bce_with_logits(floats_of(vectors.logits), floats_of(vectors.labels),
                             floats_of(vectors.probabilities), floats_of(vectors.gradient));
  if (mean != nullptr) *mean = loss;
}

// Of a stack or an interaction.
template <class Layers>
dense::device::CallerMatrix matrix_for(const Layers& layers, const shardrec_tensor* tensor,
                                       const char* name) {
  const core::AnyMatrix view = core::any_matrix_view(tensor, name, SHARDREC_FLOAT32, core::kAnySize,
                                                     core::kAnySize, layers.caller_devices());
  return {{static_cast<float*>(view.data), view.rows, view.cols, view.stride},
          view.device.type == SHARDREC_DEVICE_CUDA};
}

// What a caller sees of a parameter, where it is.
shardrec_tensor view_of(const dense::Mlp& mlp, float* data, const dense::ParameterInfo& info) {
  shardrec_tensor view = core::compact_view(data, SHARDREC_FLOAT32, info.shape);
  const core::DeviceSet devices = mlp.caller_devices();
  if (devices.cuda == core::DeviceSet::kNoDevice) return view;
  view.device_type = SHARDREC_DEVICE_CUDA;
  view.device_id = devices.cuda;
  return view;
}

dense::LayerShape shape_from(const shardrec_layer& layer) {
  const bool is_norm = layer.kind == SHARDREC_LAYER_LAYER_NORM;
  return {.kind = layer.kind,
          .activation = layer.activation,
          .outputs = layer.outputs,
          .rank = layer.rank,
          .epsilon = is_norm && layer.epsilon == 0 ? dense::kUsualEpsilon : layer.epsilon,
          .rate = layer.rate};
}

const dense::ParameterInfo& find_parameter(const dense::Parameters& parameters, int32_t index) {
  const auto count = static_cast<int64_t>(parameters.infos().size());
  if (index < 0 || index >= count) {
    core::fail(
        SHARDREC_NOT_FOUND,
        core::sentence("there is no parameter ", index, "; the stack has ", count, " parameters"),
        {.value = index, .limit = count});
  }
  return parameters.infos()[static_cast<size_t>(index)];
}

}  // namespace

shardrec_status shardrec_mlp_create(int64_t inputs, const shardrec_options* options,
                                    shardrec_mlp** out) {
  return guard([&] {
    require_out(out, "out");
    create(out, std::make_shared<dense::Mlp>(
                    inputs, mlp_options(read_options(options, SHARDREC_OPTIONS_MLP))));
  });
}

void shardrec_mlp_destroy(shardrec_mlp** mlp) { destroy(mlp); }

shardrec_status shardrec_mlp_add(shardrec_mlp* mlp, const shardrec_layer* layer) {
  return guard([&] {
    const auto use = enter(mlp, Access::kExclusive);
    use->add(shape_from(read_struct(layer, "layer")));
  });
}

shardrec_status shardrec_mlp_info(const shardrec_mlp* mlp, shardrec_layers* out) {
  return guard([&] {
    const auto use = enter(mlp, Access::kExclusive);
    use->fetch_loss_scale();
    const dense::Parameters& parameters = use->parameters();
    const auto count = static_cast<int32_t>(parameters.infos().size());
    const shardrec_optimizer optimizer = parameters.optimizer().kind;
    write_struct(
        out, "out",
        shardrec_layers{.struct_size = sizeof(shardrec_layers),
                        .inputs = use->inputs(),
                        .outputs = use->outputs(),
                        .layers = static_cast<int32_t>(use->shapes().size()),
                        .parameters = count,
                        .elements = parameters.size(),
                        .step = parameters.steps(),
                        .learning_rate = parameters.optimizer().learning_rate,
                        .optimizer = optimizer,
                        .states = static_cast<int32_t>(dense::state_names(optimizer).size()),
                        .loss_scale = use->loss_scale().scale,
                        .skipped_steps = use->loss_scale().skipped_steps});
  });
}

shardrec_status shardrec_mlp_parameter(shardrec_mlp* mlp, int32_t index,
                                       shardrec_tensor* out_parameter,
                                       shardrec_tensor* out_gradient) {
  return guard([&] {
    const auto use = enter(mlp, Access::kExclusive);
    const dense::Parameters& parameters = use->parameters();
    const dense::ParameterInfo& info = find_parameter(parameters, index);
    use->require_own_parameters("shardrec_mlp_parameter");
    if (out_parameter != nullptr) *out_parameter = view_of(*use, use->values(info.offset), info);
    if (out_gradient != nullptr) *out_gradient = view_of(*use, use->gradients(info.offset), info);
  });
}

shardrec_status shardrec_mlp_state(const shardrec_mlp* mlp, int32_t index, int32_t state,
                                   shardrec_tensor* out) {
  return guard([&] {
    const auto use = enter(mlp, Access::kExclusive);
    require_out(out, "out");
    const dense::Parameters& parameters = use->parameters();
    const dense::ParameterInfo& info = find_parameter(parameters, index);
    use->require_own_parameters("shardrec_mlp_state");
    const auto states =
        static_cast<int64_t>(dense::state_names(parameters.optimizer().kind).size());
    if (state < 0 || state >= states) {
      core::fail(SHARDREC_NOT_FOUND,
                 core::sentence("there is no state ", state, "; the stack's optimizer keeps ",
                                states, " of each parameter"),
                 {.value = state, .limit = states});
    }
    *out = view_of(*use, use->state(state, info.offset), info);
  });
}

shardrec_status shardrec_mlp_forward(shardrec_mlp* mlp, const shardrec_tensor* input,
                                     const shardrec_tensor* output) {
  return guard([&] {
    const auto use = enter(mlp, Access::kExclusive);
    use->forward(matrix_for(*use, input, "input"), matrix_for(*use, output, "output"));
  });
}

shardrec_status shardrec_mlp_backward(shardrec_mlp* mlp, const shardrec_tensor* output_gradient,
                                      const shardrec_tensor* input_gradient) {
  return guard([&] {
    const auto use = enter(mlp, Access::kExclusive);
    use->backward(matrix_for(*use, output_gradient, "output_gradient"),
                  input_gradient == nullptr ? dense::device::CallerMatrix({}, false)
                                            : matrix_for(*use, input_gradient, "input_gradient"));
  });
}

shardrec_status shardrec_mlp_zero_gradients(shardrec_mlp* mlp) {
  return guard([&] { enter(mlp, Access::kExclusive)->zero_gradients(); });
}

shardrec_status shardrec_mlp_step(shardrec_mlp* mlp) {
  return guard([&] { enter(mlp, Access::kExclusive)->step(); });
}

shardrec_status shardrec_mlp_set_f64(shardrec_mlp* mlp, shardrec_mlp_setting setting,
                                     double value) {
  return guard([&] {
    const auto use = enter(mlp, Access::kExclusive);
    switch (setting) {
      case SHARDREC_MLP_LEARNING_RATE:
        if (!std::isfinite(value) || value < 0) {
          refuse_value("LEARNING_RATE", value, "a finite number, 0 or more,");
        }
        use->require_own_parameters("shardrec_mlp_set_f64 of LEARNING_RATE");
        use->parameters().set_learning_rate(value);
        return;
      case SHARDREC_MLP_TRAINING:
        if (value != 0 && value != 1) refuse_value("TRAINING", value, "0 or 1");
        use->set_training(value == 1);
        return;
      default:
        core::fail(SHARDREC_INVALID_ARGUMENT,
                   core::sentence("there is no setting number ", static_cast<int>(setting),
                                  "; LEARNING_RATE and TRAINING are accepted"),
                   {.value = static_cast<int>(setting)});
    }
  });
}

shardrec_status shardrec_interaction_create(int64_t features, int64_t dim,
                                            const shardrec_options* options,
                                            shardrec_interaction** out) {
  return guard([&] {
    require_out(out, "out");
    const dense::MlpOptions given = mlp_options(read_options(options, SHARDREC_OPTIONS_MLP));
    create(out, std::make_shared<dense::Interaction>(features, dim, given.threads, given.place));
  });
}

void shardrec_interaction_destroy(shardrec_interaction** interaction) { destroy(interaction); }

shardrec_status shardrec_interaction_outputs(const shardrec_interaction* interaction,
                                             int64_t* out) {
  return guard([&] {
    const auto use = enter(interaction, Access::kShared);
    require_out(out, "out");
    *out = use->outputs();
  });
}

shardrec_status shardrec_interaction_forward(shardrec_interaction* interaction,
                                             const shardrec_tensor* dense_vectors,
                                             const shardrec_tensor* embeddings,
                                             const shardrec_tensor* output) {
  return guard([&] {
    const auto use = enter(interaction, Access::kExclusive);
    use->forward(matrix_for(*use, dense_vectors, "dense"),
                 matrix_for(*use, embeddings, "embeddings"), matrix_for(*use, output, "output"));
  });
}

shardrec_status shardrec_interaction_backward(shardrec_interaction* interaction,
                                              const shardrec_tensor* output_gradient,
                                              const shardrec_tensor* dense_gradient,
                                              const shardrec_tensor* embedding_gradient) {
  return guard([&] {
    const auto use = enter(interaction, Access::kExclusive);
    use->backward(matrix_for(*use, output_gradient, "output_gradient"),
                  matrix_for(*use, dense_gradient, "dense_gradient"),
                  matrix_for(*use, embedding_gradient, "embedding_gradient"));
  });
}

shardrec_status shardrec_bce_with_logits(shardrec_mlp* stack, const shardrec_tensor* logits,
                                         const shardrec_tensor* labels,
                                         const shardrec_tensor* probabilities,
                                         const shardrec_tensor* gradient, double* out_loss) {
  return guard([&] {
    const auto vectors_on = [&](core::DeviceSet devices) -> dense::device::LossVectors {
      const dense::device::CallerMatrix z = column_for(devices, logits, "logits");
      const int64_t batch = z.rows.cols;
      return {.logits = z,
              .labels = column_for(devices, labels, "labels", batch),
              .probabilities = optional_column(devices, probabilities, "probabilities", batch),
              .gradient = optional_column(devices, gradient, "gradient", batch)};
    };
    if (stack == nullptr) return compute_loss(vectors_on(core::kHostOnly), out_loss);
    const auto use = enter(stack, Access::kExclusive);
    const core::DeviceSet devices = use->caller_devices();
    const dense::device::LossVectors vectors = vectors_on(devices);
    if (devices.cuda == core::DeviceSet::kNoDevice) return compute_loss(vectors, out_loss);
    use->compute_loss(vectors, out_loss);
  });
}
