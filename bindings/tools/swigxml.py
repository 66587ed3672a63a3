"""The C API as SWIG's parse tree has it (`swig -xml`): what the generators in this folder read.

The vocabulary is closed: a type that is not listed here ends the generator with a message, so that the
API cannot grow an argument that some host cannot pass."""

import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field

SCALARS = {"int32_t", "int64_t", "uint64_t", "double", "char", "void"}


@dataclass
class Type:
    """base, with one mark per pointer level from the inside out: "const" or "mut"."""

    base: str
    pointers: list = field(default_factory=list)


@dataclass
class Field:
    name: str
    type: Type
    length: int = 0  # 0: not an array


@dataclass
class Function:
    name: str
    result: Type
    parameters: list


@dataclass
class Api:
    constants: dict
    enums: dict  # name -> {enumerator: value}
    handles: list
    structs: dict  # name -> [Field]
    functions: list


def refuse(message):
    sys.exit(f"swigxml: {message}")


def attributes(node):
    listing = node.find("attributelist")
    return {} if listing is None else {a.get("name"): a.get("value") for a in listing.findall("attribute")}


def own(root, tag):
    """Nodes of the public headers; SWIG's own library is not in a tree without a language."""
    return (n for n in root.iter(tag) if "shardrec" in attributes(n).get("name", "").lower())


def parse_type(encoded, api, where):
    """p.q(const).char is const char *; p.p.shardrec_x is shardrec_x **."""
    parts = encoded.replace("struct ", "").replace("enum ", "").split(".")
    base = parts.pop()
    pointers = []
    constant = False
    for part in reversed(parts):
        if part == "q(const)":
            constant = True
        elif part == "p":
            pointers.append("const" if constant else "mut")
            constant = False
        else:
            refuse(f"{where}: unknown part {part!r} in type {encoded!r}")
    if base not in SCALARS and base not in api.enums and base not in api.handles and base not in api.structs:
        refuse(f"{where}: type {base!r} is not in the vocabulary")
    if base in api.handles and not pointers or base == "void" and len(pointers) > 1:
        refuse(f"{where}: {encoded!r} cannot be passed")
    return Type(base, pointers)


def load(path):
    root = ElementTree.parse(path).getroot()
    api = Api({}, {}, [], {}, [])
    for node in own(root, "constant"):
        a = attributes(node)
        api.constants[a["name"]] = int(a["value"].strip("()"))
    for node in own(root, "enum"):
        items = {}
        for item in node.findall("enumitem"):
            a = attributes(item)
            try:
                items[a["name"]] = int(a["enumvalue"], 0)
            except (KeyError, ValueError):
                refuse(f"{a['name']}: enumerators have literal values")
        api.enums[attributes(node)["name"]] = items
    structs = list(own(root, "class"))
    api.structs = {attributes(node)["name"]: [] for node in structs}
    for node in own(root, "cdecl"):
        a = attributes(node)
        if a["kind"] == "typedef" and a["name"] not in api.enums and a["name"] not in api.structs:
            if a["type"] != "struct " + a["name"]:
                refuse(f"typedef {a['name']}: only opaque structs")
            api.handles.append(a["name"])
    for node in structs:
        name = attributes(node)["name"]
        for member in node.findall("cdecl"):
            a = attributes(member)
            length = 0
            decl = a["decl"]
            if decl.startswith("a("):
                size, decl = decl[2:].split(").", 1)
                length = api.constants.get(size) or int(size)
            api.structs[name].append(
                Field(a["name"], parse_type(decl + a["type"], api, f"{name}.{a['name']}"), length))
    for node in own(root, "cdecl"):
        a = attributes(node)
        if a["kind"] != "function":
            continue
        result = a["decl"][a["decl"].rindex(").") + 2:]
        parameters = []
        for parm in node.find("attributelist").find("parmlist") or ():
            p = attributes(parm)
            if p["type"] == "void":
                continue
            parameters.append(Field(p["name"], parse_type(p["type"], api, a["name"])))
        api.functions.append(Function(a["name"], parse_type(result + a["type"], api, a["name"]), parameters))
    return api


def is_struct(type_, api):
    """A struct that grows: all but the tensor, whose layout is frozen."""
    return type_.base in api.structs and type_.base != "shardrec_tensor"


def members(type_, api):
    """Its members but for its size and what is reserved."""
    fields = api.structs[type_.base]
    if fields[0].name != "struct_size":
        refuse(f"{type_.base}: a struct begins with struct_size")
    return [f for f in fields[1:] if f.name != "reserved"]


def pascal(words):
    """("error", "part"): ErrorPart."""
    return "".join(w[:1].upper() + w[1:] for w in words)


def enum_words(api):
    """Yields each enum as (words of its name, {words of the enumerator: (C name, value)}): ("error", "part"),
    {("rank",): ("SHARDREC_ERROR_RANK", 1), ...}. What an enum's enumerators share in front (SHARDREC_ERROR_) is left
    out, and so are the FORCE_32 ones, which only fix the size in C."""
    for name, items in api.enums.items():
        words = {k: k.lower().split("_")[1:] for k in items if not k.endswith("_FORCE_32")}
        lists = list(words.values())
        shared = 0
        while all(len(w) > shared + 1 and w[shared] == lists[0][shared] for w in lists):
            shared += 1
        if name == "shardrec_status":
            shared = 0
        yield name.split("_")[1:], {tuple(w[shared:]): (k, items[k]) for k, w in words.items()}
