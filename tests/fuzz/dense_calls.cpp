// Calls of the dense half: layers, interaction, loss, metrics.
#include <array>

#include "fuzz/rank.h"
#include "support/layers.h"

namespace shardrec::fuzz {

// A layer of each kind, with numbers that are mostly accepted, and a linear one.
void Rank::add_layers(Input& in, shardrec_mlp* mlp) {
  if (in.one_in(2)) {
    const int kind = in.below(5);
    const shardrec_layer layer{
        .struct_size = in.one_in(8) ? in.number() : int64_t{sizeof(shardrec_layer)},
        .kind = kind,
        .outputs = kind == SHARDREC_LAYER_LINEAR ? in.below(6) : 0,
        .rank = kind == SHARDREC_LAYER_CROSS ? in.below(4) : 0,
        .epsilon = kind == SHARDREC_LAYER_LAYER_NORM ? in.real() : 0,
        .rate = kind == SHARDREC_LAYER_DROPOUT ? in.real() : 0};
    note(shardrec_mlp_add(mlp, in.one_in(8) ? nullptr : &layer));
  }
  note(add_linear(mlp, in.below(6), as_enum<shardrec_activation>(in.below(3))));
}

void Rank::dense_call(Input& in) {
  switch (in.below(12)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return in.one_in(3) ? fsdp_call(in) : ddp_call(in);
    case 4: {
      make(in, mlps_, [&](auto out) {
        return shardrec_mlp_create(in.below(7), handle_or_null(in, &Rank::options_), out);
      });
      add_layers(in, handle(in, &Rank::mlps_));
      return;
    }
    case 5: {
      shardrec_mlp* mlp = handle(in, &Rank::mlps_);
      const int64_t batch = in.below(4);
      const int64_t inputs = in.below(7);
      const int64_t outputs = in.below(6);
      const shardrec_tensor* input = or_null(in, matrix(in, false, batch, inputs));
      const shardrec_tensor* output = or_null(in, matrix(in, false, batch, outputs));
      const shardrec_tensor* output_gradient = or_null(in, matrix(in, false, batch, outputs));
      const shardrec_tensor* input_gradient = or_null(in, matrix(in, false, batch, inputs));
      note(shardrec_mlp_forward(mlp, input, output));
      note(shardrec_mlp_backward(mlp, output_gradient, input_gradient));
      note(shardrec_mlp_step(mlp));
      if (in.one_in(2)) note(shardrec_mlp_zero_gradients(mlp));
      return;
    }
    case 6: {
      shardrec_mlp* mlp = handle(in, &Rank::mlps_);
      shardrec_tensor parameter{};
      // Of any size, of which there is as much memory as the largest that is taken needs.
      std::array<int64_t, 512> room{in.one_in(2) ? int64_t{sizeof(shardrec_layers)} : in.number()};
      note(shardrec_mlp_info(
          mlp, in.one_in(8) ? nullptr : reinterpret_cast<shardrec_layers*>(room.data())));
      note(shardrec_mlp_parameter(mlp, static_cast<int32_t>(in.number()), &parameter, nullptr));
      note(shardrec_mlp_set_f64(mlp, as_enum<shardrec_mlp_setting>(in.below(4)),
                                in.one_in(2) ? static_cast<double>(in.below(3)) : in.real()));
      note(shardrec_mlp_state(mlp, static_cast<int32_t>(in.number()),
                              static_cast<int32_t>(in.number()),
                              in.one_in(8) ? nullptr : &parameter));
      return;
    }
    case 7:
      make(in, interactions_, [&](auto out) {
        return shardrec_interaction_create(in.below(4), in.below(5), nullptr, out);
      });
      return;
    case 8: {
      shardrec_interaction* interaction = handle(in, &Rank::interactions_);
      const int64_t batch = in.below(4);
      const int64_t features = in.below(4);
      const int64_t dim = in.below(5);
      int64_t outputs = 0;
      note(shardrec_interaction_outputs(interaction, &outputs));
      const shardrec_tensor* dense = or_null(in, matrix(in, false, batch, dim));
      const shardrec_tensor* rows = or_null(in, matrix(in, false, batch, features * dim));
      const shardrec_tensor* output = or_null(in, matrix(in, false, batch, outputs));
      note(shardrec_interaction_forward(interaction, dense, rows, output));
      note(shardrec_interaction_backward(interaction, output, dense, rows));
      return;
    }
    case 9:
      make(in, metrics_, [&](auto out) {
        return shardrec_metrics_create(handle(in, &Rank::comms_), nullptr, out);
      });
      return;
    case 10: {
      shardrec_metrics* metrics = handle(in, &Rank::metrics_);
      const int64_t length = in.below(5);
      const auto bytes = static_cast<size_t>(length) * sizeof(double);
      const shardrec_tensor* probabilities =
          or_null(in, vector(in, false, SHARDREC_FLOAT32, length, memory(bytes)));
      const shardrec_tensor* labels =
          or_null(in, vector(in, false, SHARDREC_FLOAT32, length, memory(bytes)));
      note(shardrec_metrics_update(metrics, probabilities, labels));
      double value = 0;
      note(shardrec_metrics_compute(metrics));
      note(shardrec_metrics_get(metrics, as_enum<shardrec_metric>(in.below(9)), &value));
      note(shardrec_bce_with_logits(nullptr, probabilities, labels, nullptr, nullptr, &value));
      return;
    }
    default:
      note(shardrec_metrics_reset(handle(in, &Rank::metrics_)));
  }
}

}  // namespace shardrec::fuzz
