"""The functions of the C API as methods of their handles: what the generators of each host's classes read.

What a host does otherwise (errors, texts, tensors, options, the log), and what it must write by hand because the library
keeps memory after the call, is listed here too, so that nothing is forgotten: load() refuses a function that it cannot
place."""

from dataclasses import dataclass, field

import headers
import swigxml

# Inside types: how a host's statuses, texts, tensors and options are made.
INSIDE = {
    "status_name", "last_error", "last_error_status", "last_error_i64", "last_error_text", "text_free", "tensor_vector",
    "tensor_matrix", "options_create", "options_destroy", "options_set_i64", "options_set_f64", "options_set_text",
    "options_get_i64", "options_get_f64", "options_get_text",
}
# By hand: memory that outlives the call, views of the library's memory, and what is no method.
BY_HAND = {
    "mlp_add_linear", "mlp_forward", "mlp_backward", "mlp_parameter", "interaction_forward", "interaction_backward",
    "ddp_add_parameter", "ddp_set_flat_gradient", "ddp_gradient", "ddp_state", "checkpoint_tensor_info", "hash64",
    "api_version", "log_next", "memory_tensor",
}
# Of which kind the options are; None: the function takes none yet.
OPTIONS = {
    "model_create": None, "model_add_table": "TABLE", "model_set_optimizer": "OPTIMIZER",
    "model_set_table_optimizer": "OPTIMIZER", "ddp_set_optimizer": "OPTIMIZER", "interaction_create": "MLP",
}
FLAGS = {"lookup_all_done.out", "collection_set_frozen.frozen", "ddp_begin.sync", "lookup_send_gradients.accumulate"}
# Tensors that are written, but for those called out and output.
WRITTEN = {"comm_all_reduce.tensor", "comm_broadcast.tensor", "copy.to", "bce_with_logits.probabilities", "bce_with_logits.gradient"}
NULLABLE = {
    "comm_create.token", "comm_all_to_all.send_counts", "comm_all_to_all.receive_counts", "lookup_begin.values",
    "lookup_begin.lengths", "lookup_begin.weights", "lookup_begin_offsets.values", "lookup_begin_offsets.offsets",
    "lookup_begin_offsets.weights", "lookup_begin_variable.batch_sizes", "lookup_begin_variable.inverse",
    "lookup_begin_variable.values", "lookup_begin_variable.lengths", "lookup_begin_variable.weights",
    "collection_read_rows.ids", "collection_read_rows.out", "collection_write_rows.ids", "collection_write_rows.values",
    "bce_with_logits.probabilities", "bce_with_logits.gradient", "scorer_lookup.weights", "scorer_predict.weights",
}
# Handles that come back NULL where there is nothing.
MAYBE = {"comm_split"}


@dataclass
class Arg:
    name: str
    kind: str  # integer32, integer64, unsigned64, real, flag, text, tensor, tensor_out, handle, options, control, enum
    of: str = ""  # the enum's, handle's or options' kind
    nullable: bool = False


@dataclass
class Method:
    function: str  # without shardrec_
    owner: str  # the handle's kind; "" of the library
    words: list
    args: list = field(default_factory=list)
    outs: list = field(default_factory=list)  # of Arg; kinds integer32, integer64, real, flag, text
    makes: str = ""  # the kind of handle that it makes
    doc: list = field(default_factory=list)
    self_arg: str = None  # name of the handle in the C function; None: static
    is_const: bool = False  # the handle is only read


def place(function, api):
    name = function.name.removeprefix("shardrec_")
    kinds = {h.removeprefix("shardrec_") for h in api.handles}
    method = Method(name, "", name.split("_"))
    for p in function.parameters:
        base = p.type.base.removeprefix("shardrec_")
        where = f"{name}.{p.name}"
        pointers = p.type.pointers
        nullable = where in NULLABLE
        if base == "options":
            kind = OPTIONS.get(name, name.split("_")[0].upper())
            if name.startswith("checkpoint_mlp"):
                kind = "MLP"
            method.args.append(Arg(p.name, "options", kind or ""))
        elif base == "control" and not name.startswith("control_"):
            method.args.append(Arg(p.name, "control"))
        elif base in kinds and len(pointers) == 2:
            method.makes = base
        elif base in kinds and not method.args and method.self_arg is None:
            method.owner, method.self_arg, method.is_const = base, p.name, pointers == ["const"]
        elif base in kinds:
            method.args.append(Arg(p.name, "handle", base))
        elif base == "tensor" and pointers == ["const"]:
            written = p.name in ("out", "output") or where in WRITTEN
            method.args.append(Arg(p.name, "tensor_out" if written else "tensor", nullable=nullable))
        elif base == "char" and pointers == ["const"]:
            method.args.append(Arg(p.name, "text", nullable=nullable))
        elif base == "char" and pointers == ["mut", "mut"]:
            method.outs.append(Arg(p.name, "text"))
        elif pointers == ["mut"] and base in ("int32_t", "int64_t", "double"):
            kind = {"int32_t": "integer32", "int64_t": "integer64", "double": "real"}[base]
            method.outs.append(Arg(p.name, "flag" if where in FLAGS else kind))
        elif not pointers and p.type.base in api.enums:
            method.args.append(Arg(p.name, "enum", base))
        elif not pointers and base in ("int32_t", "int64_t", "uint64_t", "double"):
            kind = {"int32_t": "integer32", "int64_t": "integer64", "uint64_t": "unsigned64", "double": "real"}[base]
            method.args.append(Arg(p.name, "flag" if where in FLAGS else kind))
        else:
            swigxml.refuse(f"{where}: no rule for {p.type} in tools/methods.py")
    # What makes a handle belongs to its class, but for what another one makes of itself (comm_split).
    if method.makes and method.words[0] != method.owner:
        if method.self_arg:
            method.args.insert(0, Arg(method.self_arg, "handle", method.owner))
            method.self_arg = None
        method.owner = method.makes
    if method.owner and method.words[0] == method.owner:
        method.words = method.words[1:]
    return method


def load(api_path, include):
    """Methods in the order of the headers."""
    api = swigxml.load(api_path)
    comments = headers.load(include)
    methods = []
    for function in api.functions:
        name = function.name.removeprefix("shardrec_")
        if name in INSIDE or name in BY_HAND or name.endswith("_destroy"):
            continue
        method = place(function, api)
        method.doc = comments.get(function.name, [])
        methods.append(method)
    return methods
