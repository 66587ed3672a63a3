"""The functions of the C API as methods of their handles: what the generators of each host's classes read.

Facts of arguments (what may be NULL, is written, is a flag, is kept after the call, of which kind options are) are the headers'
annotations (shardrec/annotations.h): all hosts have them from here. What a host does otherwise (errors, texts, tensors,
options, the log), and what it must write by hand, is listed here, so that nothing is forgotten: load() refuses a function that
it cannot place, and an annotation that does not fit its parameter."""

from dataclasses import dataclass, field

import headers
import swigxml

# Inside types: how a host's statuses, texts, tensors and options are made.
INSIDE = {
    "status_name", "last_error", "last_error_status", "last_error_i64", "last_error_text", "text_free", "tensor_vector",
    "tensor_matrix", "options_create", "options_destroy", "options_set_i64", "options_set_f64", "options_set_text",
    "options_get_i64", "options_get_f64", "options_get_text",
}
# By hand, beside what by_hand() sees: what goes with a forward, which keeps its input, and what is no method.
BY_HAND = {"mlp_add", "mlp_backward", "interaction_backward", "checkpoint_tensor_info", "hash64", "api_version",
           "log_next"}
# Handles that calls copy: what is made of them does not refer to them.
COPIED = {"model", "plan", "topology"}


@dataclass
class Arg:
    name: str
    kind: str  # integer32, integer64, unsigned64, real, flag, text, tensor, tensor_out, handle, options, control, enum
    of: str = ""  # the enum's, handle's or options' kind
    nullable: bool = False  # of an argument; outs are always asked for
    struct: tuple = ()  # of a member: the parameter that it is a member of, and the struct's name


@dataclass
class Method:
    function: str  # without shardrec_
    owner: str  # the handle's kind; "" of the library
    words: list
    args: list = field(default_factory=list)
    outs: list = field(default_factory=list)  # of Arg; kinds integer32, integer64, real, flag, enum, text
    makes: str = ""  # the kind of handle that it makes
    may_make_none: bool = False  # the handle may come back NULL
    doc: list = field(default_factory=list)
    self_arg: str = None  # name of the handle in the C function; None: static
    is_const: bool = False  # the handle is only read
    flat: bool = False  # it takes structs, whose members are arguments or outs here (flat_calls.py)

    @property
    def raw(self):
        """What it is called in the raw layers of Java and Go."""
        return f"flat_{self.function}" if self.flat else self.function


def is_view(type_):
    """A tensor that the caller describes: the description is const, its memory need not be."""
    return type_.base == "shardrec_tensor" and type_.pointers == ["const"]


# Which parameters an annotation fits, and in words.
FITS = {
    "SHARDREC_NULLABLE": (lambda type_: bool(type_.pointers), "a pointer"),
    "SHARDREC_OUT_NULLABLE": (lambda type_: type_.pointers == ["mut", "mut"], "an out-parameter for a handle or a text"),
    "SHARDREC_OPTIONS": (lambda type_: type_.base == "shardrec_options" and type_.pointers == ["const"],
                         "a const shardrec_options *"),
    "SHARDREC_FLAG": (lambda type_: type_.base == "int32_t" and type_.pointers in ([], ["mut"]), "an int32_t or an int32_t *"),
    "SHARDREC_WRITTEN": (is_view, "a const shardrec_tensor *"),
    "SHARDREC_KEPT": (is_view, "a const shardrec_tensor *"),
}


def check(function, api, annotations):
    """Refuses an annotation that does not fit its parameter, and one that is missing where names and types need it."""
    name = function.name.removeprefix("shardrec_")
    kinds = {k.removeprefix("SHARDREC_OPTIONS_") for k in api.enums["shardrec_options_kind"]} | {"NONE"}
    if [p.name for p in function.parameters] != list(annotations):
        swigxml.refuse(f"{name}: its parameters in the header are not those of the parse tree")
    for p in function.parameters:
        facts = annotations[p.name]
        for fact, kind in facts.items():
            fits, words = FITS[fact]
            if not fits(p.type):
                swigxml.refuse(f"{name}.{p.name}: {fact} is for {words}, not for {p.type}")
            if kind and kind not in kinds:
                swigxml.refuse(f"{name}.{p.name}: there is no SHARDREC_OPTIONS_{kind}")
        is_options = FITS["SHARDREC_OPTIONS"][0](p.type) and not name.startswith("options_")
        if is_options and "SHARDREC_OPTIONS" not in facts:
            swigxml.refuse(f"{name}.{p.name}: SHARDREC_OPTIONS(KIND) is missing")
        if p.type.base == "shardrec_control" and not name.startswith("control_") and "SHARDREC_NULLABLE" not in facts:
            swigxml.refuse(f"{name}.{p.name}: SHARDREC_NULLABLE is missing; every call goes without a control too")
        if is_view(p.type) and p.name in ("out", "output") and "SHARDREC_WRITTEN" not in facts:
            swigxml.refuse(f"{name}.{p.name}: SHARDREC_WRITTEN is missing, or its name is wrong")


NUMBERS = {"int32_t": "integer32", "int64_t": "integer64", "uint64_t": "unsigned64", "double": "real"}


def members_of(parameter, api, facts_of):
    """The members of a struct that a function takes or fills, as arguments or outs."""
    base = parameter.type.base
    for member in swigxml.members(parameter.type, api):
        where = f"{base}.{member.name}"
        facts = facts_of[base][member.name]
        of = (parameter.name, base)
        if parameter.type.pointers == ["const"] and "SHARDREC_FILLED" in facts:
            continue
        if parameter.type.pointers == ["const"] and is_view(member.type):
            yield Arg(member.name, "tensor", nullable="SHARDREC_NULLABLE" in facts, struct=of)
        elif not member.type.pointers and member.type.base in NUMBERS:
            name = member.name if parameter.type.pointers == ["const"] else f"out_{member.name}"
            yield Arg(name, "flag" if "SHARDREC_FLAG" in facts else NUMBERS[member.type.base], struct=of)
        elif parameter.type.pointers != ["const"] and not member.type.pointers and member.type.base in api.enums:
            yield Arg(f"out_{member.name}", "enum", member.type.base.removeprefix("shardrec_"), struct=of)
        else:
            swigxml.refuse(f"{where}: no rule for {member.type} in tools/methods.py")


def place(function, api, annotations, facts_of):
    name = function.name.removeprefix("shardrec_")
    kinds = {h.removeprefix("shardrec_") for h in api.handles}
    method = Method(name, "", name.split("_"))
    for p in function.parameters:
        base = p.type.base.removeprefix("shardrec_")
        where = f"{name}.{p.name}"
        pointers = p.type.pointers
        facts = annotations[p.name]
        nullable = "SHARDREC_NULLABLE" in facts
        if swigxml.is_struct(p.type, api):
            method.flat = True
            (method.args if pointers == ["const"] else method.outs).extend(members_of(p, api, facts_of))
        elif base == "options":
            kind = facts["SHARDREC_OPTIONS"]
            method.args.append(Arg(p.name, "options", "" if kind == "NONE" else kind, nullable=True))
        elif base == "control" and not name.startswith("control_"):
            method.args.append(Arg(p.name, "control", nullable=nullable))
        elif base in kinds and len(pointers) == 2:
            method.makes, method.may_make_none = base, "SHARDREC_OUT_NULLABLE" in facts
        elif base in kinds and not method.args and method.self_arg is None and not nullable:
            method.owner, method.self_arg, method.is_const = base, p.name, pointers == ["const"]
        elif base in kinds:
            method.args.append(Arg(p.name, "handle", base, nullable))
        elif is_view(p.type):
            method.args.append(Arg(p.name, "tensor_out" if "SHARDREC_WRITTEN" in facts else "tensor", nullable=nullable))
        elif base == "char" and pointers == ["const"]:
            method.args.append(Arg(p.name, "text", nullable=nullable))
        elif base == "char" and pointers == ["mut", "mut"]:
            method.outs.append(Arg(p.name, "text"))
        elif pointers == ["mut"] and base in ("int32_t", "int64_t", "double"):
            kind = NUMBERS[base]
            method.outs.append(Arg(p.name, "flag" if "SHARDREC_FLAG" in facts else kind))
        elif not pointers and p.type.base in api.enums:
            method.args.append(Arg(p.name, "enum", base))
        elif not pointers and base in ("int32_t", "int64_t", "uint64_t", "double"):
            kind = NUMBERS[base]
            method.args.append(Arg(p.name, "flag" if "SHARDREC_FLAG" in facts else kind))
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


def by_hand(function, annotations):
    """What a host writes by hand: it must hold memory that the library keeps, or makes views of the library's memory, or takes
    the host's own Batch."""
    keeps = any("SHARDREC_KEPT" in annotations[p.name] for p in function.parameters)
    views = any(p.type.base == "shardrec_tensor" and p.type.pointers == ["mut"] for p in function.parameters)
    batches = any(p.type.base == "shardrec_batch" for p in function.parameters)
    return keeps or views or batches or function.name.removeprefix("shardrec_") in BY_HAND


def written_by_hand(api, include):
    """The names of the functions of that kind."""
    annotations = headers.annotations(include)
    names = (f.name.removeprefix("shardrec_") for f in api.functions if by_hand(f, annotations[f.name]))
    return [name for name in names if name not in INSIDE]


def load(api_path, include):
    """Methods in the order of the headers."""
    api = swigxml.load(api_path)
    comments = headers.load(include)
    annotations = headers.annotations(include)
    facts_of = headers.members(include)
    methods = []
    for function in api.functions:
        facts = annotations[function.name]
        check(function, api, facts)
        name = function.name.removeprefix("shardrec_")
        if name in INSIDE or name.endswith("_destroy") or by_hand(function, facts):
            continue
        method = place(function, api, facts, facts_of)
        method.doc = comments.get(function.name, [])
        methods.append(method)
    return methods
