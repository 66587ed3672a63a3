#!/usr/bin/env python3
"""function_table.py API.xml INCLUDE_DIR > FUNCTIONS.md: where each function of the C API is in each language."""

import sys

import go_methods
import java_classes
import methods
import rust_names
import swigxml

# What is written by hand: (Java, Go, Rust).
BY_HAND = {
    "api_version": ("ShardRec.apiVersion", "checked when it is loaded", "api_version"),
    "hash64": ("ShardRec.hash64", "Hash64", "hash64"),
    "log_next": ("ShardRec.nextLogMessage", "NextLogMessage", "next_log_message"),
    "mlp_add": ("Mlp.addLinear, Mlp.addCross, Mlp.addLayerNorm, Mlp.addDropout",
                "Mlp.AddLinear, Mlp.AddCross, Mlp.AddLayerNorm, Mlp.AddDropout",
                "Mlp::add_linear, Mlp::add_cross, Mlp::add_layer_norm, Mlp::add_dropout"),
    "mlp_forward": ("Mlp.forward", "Mlp.Forward", "Mlp::forward"),
    "mlp_backward": ("Mlp.backward", "Mlp.Backward", "MlpPass::backward"),
    "mlp_parameter": ("Mlp.parameter", "Mlp.Parameter", "Mlp::parameter, Mlp::set_parameter"),
    "mlp_state": ("Mlp.state", "Mlp.State", "Mlp::state"),
    "interaction_forward": ("Interaction.forward", "Interaction.Forward", "Interaction::forward"),
    "interaction_backward": ("Interaction.backward", "Interaction.Backward", "InteractionPass::backward"),
    "ddp_add_parameter": ("Ddp.addParameter", "Ddp.AddParameter", "Ddp::add_parameter"),
    "ddp_set_flat_gradient": ("Ddp.setFlatGradient", "Ddp.SetFlatGradient", "Ddp::set_flat_gradient"),
    "ddp_gradient": ("Ddp.gradient", "Ddp.Gradient", "Ddp::gradient, Ddp::gradient_mut"),
    "ddp_state": ("Ddp.state", "Ddp.State", "Ddp::state"),
    "fsdp_parameter": ("Fsdp.parameter", "Fsdp.Parameter", "Fsdp::parameter"),
    "fsdp_gradient": ("Fsdp.gradient", "Fsdp.Gradient", "Fsdp::gradient_mut, Fsdp::views"),
    "fsdp_shard": ("Fsdp.shard", "Fsdp.Shard", "Fsdp::shard, Fsdp::set_shard"),
    "checkpoint_tensor_info": ("Checkpoint.tensorInfo", "Checkpoint.TensorInfo", "Checkpoint::tensor_info"),
    "lookup_begin": ("Lookup.begin", "Lookup.Begin", "Lookup::begin"),
    "scorer_lookup": ("Scorer.lookup", "Scorer.Lookup", "Scorer::lookup"),
    "scorer_predict": ("Scorer.predict", "Scorer.Predict", "Scorer::predict"),
    "memory_tensor": ("Memory.tensor", "Memory.Tensor", "Memory::tensor, Memory::tensor_mut"),
}
INSIDE = {
    "status": ("ShardRecException, Status", "Error, Status", "Error, ErrorKind"),
    "last": ("ShardRecException", "Error", "Error"), "text": ("String", "string", "String"),
    "tensor": ("Tensor", "Vector, Matrix", "View, ViewMut"), "options": ("Options", "TableOptions ...", "TableOptions ..."),
}


def java(method):
    owner = java_classes.class_of(method.owner)
    if method.function == f"{method.makes}_create":
        return f"new {owner}"
    return f"{owner}.{java_classes.name_of(method)}"


def go(method):
    name = go_methods.name_of(method)
    return f"{go_methods.pascal([method.owner])}.{name}" if method.self_arg else name


def main():
    placed = {m.function: m for m in methods.load(sys.argv[1], sys.argv[2])}
    print("# Functions\n\nMade by `tools/function_table.py`; do not edit. The prefix `shardrec_` is left out.\n")
    print("| C | Java | Go | Rust |\n|---|---|---|---|")
    for function in swigxml.load(sys.argv[1]).functions:
        name = function.name.removeprefix("shardrec_")
        if name in placed:
            cells = [f(placed[name]) for f in (java, go, rust_names.path)]
        elif name in BY_HAND:
            cells = BY_HAND[name]
        elif name.endswith("_destroy"):
            cells = ("options are plain values",) * 3 if name == "options_destroy" else ("close", "Close", "drop")
        else:
            cells = INSIDE[name.split("_")[0]]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
