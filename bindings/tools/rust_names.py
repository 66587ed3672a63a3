"""What the functions of the C API are called in Rust."""

from swigxml import pascal

NAMES = {
    "comm_create": "new", "comm_create_local": "join", "comm_create_from_env": "from_env", "comm_close": "shutdown",
    "comm_set_f64": "set", "mlp_set_f64": "set", "comm_get_f64": "get", "comm_status": "check", "log_set_level": "set_log_level",
}
# Of what is written by hand.
BY_HAND = {
    "mlp_add": "Mlp::add_linear", "mlp_forward": "Mlp::forward", "mlp_backward": "MlpPass::backward",
    "mlp_parameter": "Mlp::parameter", "mlp_state": "Mlp::state", "interaction_forward": "Interaction::forward",
    "interaction_backward": "InteractionPass::backward", "ddp_add_parameter": "Ddp::add_parameter",
    "ddp_set_flat_gradient": "Ddp::set_flat_gradient", "ddp_gradient": "Ddp::gradient", "ddp_state": "Ddp::state",
    "ddp_begin": "Ddp::begin", "ddp_mark_ready": "DdpStep::mark_ready", "ddp_mark_unused": "DdpStep::mark_unused",
    "fsdp_parameter": "Fsdp::parameter", "fsdp_gradient": "Fsdp::gradient_mut", "fsdp_shard": "Fsdp::shard",
    "ddp_end": "DdpStep::end", "ddp_wait": "DdpExchange::wait", "checkpoint_tensor_info": "Checkpoint::tensor_info",
    "hash64": "hash64", "api_version": "api_version", "log_next": "next_log_message",
    "memory_tensor": "Memory::tensor", "tensor_copy": "copy", "lookup_begin": "Lookup::begin",
    "scorer_lookup": "Scorer::lookup", "scorer_predict": "Scorer::predict",
}
RESERVED = {"box": "placed_box", "type": "kind"}


def name_of(method):
    name = NAMES.get(method.function) or ("new" if method.function == f"{method.makes}_create" else "_".join(method.words))
    return RESERVED.get(name, name)


def path(method):
    """As it is called from outside, such as Comm::barrier."""
    if method.function in BY_HAND:
        return BY_HAND[method.function]
    return f"{pascal([method.owner])}::{name_of(method)}" if method.owner else name_of(method)
