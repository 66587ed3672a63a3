#!/usr/bin/env python3
"""flat_calls.py API.xml INCLUDE_DIR FOLDER: for Java and Go, functions that take structs, with their members as arguments.

SWIG's typemaps are for tensors, numbers and texts. A struct that grows is taken apart into these here, in C: the host's class of
the struct, or its record of what a call returns, is the host's own. FOLDER/flat_calls.h has shardrec_flat_x for each function
shardrec_x that takes one, and FOLDER/flat_ignored.i hides shardrec_x itself from SWIG."""

import pathlib
import sys

import headers
import swigxml


def declared(type_, name):
    text = type_.base
    for mark in type_.pointers:
        text = f"const {text} *" if mark == "const" else f"{text} *"
    return f"{text} {name}".replace("* ", "*")


def out_of(member, api):
    """Its out-parameter. An enumerator is told by its number: of a later release it may be one that the host does not know."""
    base = "int32_t" if member.type.base in api.enums else member.type.base
    return declared(swigxml.Type(base, ["mut"]), f"out_{member.name}")


def flattened(function, api, facts_of):
    parameters, passed, before, after = [], [], [], []
    for p in function.parameters:
        if not swigxml.is_struct(p.type, api):
            parameters.append(declared(p.type, p.name))
            passed.append(p.name)
            continue
        passed.append(f"&{p.name}_struct")
        before.append(f"  {p.type.base} {p.name}_struct = {{.struct_size = sizeof({p.type.base})}};")
        members = swigxml.members(p.type, api)
        if p.type.pointers == ["const"]:
            members = [m for m in members if "SHARDREC_FILLED" not in facts_of[p.type.base][m.name]]
            parameters += [declared(m.type, m.name) for m in members]
            before += [f"  {p.name}_struct.{m.name} = {m.name};" for m in members]
        else:
            parameters += [out_of(m, api) for m in members]
            after += [f"  if (out_{m.name} != NULL) *out_{m.name} = {p.name}_struct.{m.name};" for m in members]
    name = function.name.replace("shardrec_", "shardrec_flat_", 1)
    return [f"static shardrec_status {name}({', '.join(parameters)}) {{", "  shardrec_status status;", *before,
            f"  status = {function.name}({', '.join(passed)});", "  if (status != SHARDREC_OK) return status;", *after,
            "  return SHARDREC_OK;", "}"]


def main():
    api = swigxml.load(sys.argv[1])
    folder = pathlib.Path(sys.argv[3])
    taking = [f for f in api.functions if any(swigxml.is_struct(p.type, api) for p in f.parameters)]
    facts_of = headers.members(sys.argv[2])
    lines = [line for f in taking for line in flattened(f, api, facts_of)]
    (folder / "flat_calls.h").write_text("\n".join(lines) + "\n")
    (folder / "flat_ignored.i").write_text("".join(f"%ignore {f.name};\n" for f in taking))


if __name__ == "__main__":
    main()
