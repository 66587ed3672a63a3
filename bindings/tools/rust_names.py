"""What the functions of the C API are called in Rust."""

from swigxml import pascal

NAMES = {
    "comm_create": "new", "comm_create_local": "join", "comm_create_from_env": "from_env", "comm_close": "shutdown",
    "comm_set_f64": "set", "comm_get_f64": "get", "comm_status": "check", "collection_stat_i64": "stat",
    "collection_stat_f64": "stat_real", "collection_table_stat_i64": "table_stat", "log_set_level": "set_log_level",
}
RESERVED = {"box": "placed_box", "type": "kind"}


def name_of(method):
    name = NAMES.get(method.function) or ("new" if method.function == f"{method.makes}_create" else "_".join(method.words))
    return RESERVED.get(name, name)


def path(method):
    return f"{pascal([method.owner])}::{name_of(method)}" if method.owner else name_of(method)
