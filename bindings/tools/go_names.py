"""What the functions of the C API are called in Go."""

CAPITALS = {"json": "JSON"}
NAMES = {
    "comm_create_local": "NewLocalComm", "comm_create_from_env": "NewCommFromEnv", "plan_collective": "NewCollectivePlan",
    "plan_create_empty": "NewEmptyPlan", "scorer_open": "OpenScorer", "hash64_ids": "Hash64IDs",
    "model_from_json": "ModelFromJSON", "plan_from_json": "PlanFromJSON",
    "topology_from_json": "TopologyFromJSON", "comm_close": "Shutdown", "comm_set_f64": "Set", "comm_get_f64": "Get",
    "mlp_set_f64": "Set",
    "comm_status": "Check", "log_set_level": "SetLogLevel", "available": "IsAvailable",
}
RESERVED = {"type", "range", "func", "map", "package", "import"}


def pascal(words):
    return "".join(CAPITALS.get(w) or w[:1].upper() + w[1:] for w in words)


def local(name):
    words = name.split("_")
    text = words[0] + pascal(words[1:])
    return text + "_" if text in RESERVED else text


def name_of(method):
    if method.function in NAMES:
        return NAMES[method.function]
    return "New" + pascal([method.makes]) if method.function == f"{method.makes}_create" else pascal(method.words)


def path(method):
    """As others call it, such as Lookup.Begin."""
    return f"{pascal([method.owner])}.{name_of(method)}" if method.self_arg else name_of(method)
