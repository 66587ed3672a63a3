#!/usr/bin/env python3
"""go_methods.py API.xml INCLUDE_DIR > methods.go: a type per handle, with a method per function of the C API."""

import sys

import go_docs
import headers
import methods
from go_names import local, name_of, pascal

TYPES = {"integer32": "int", "integer64": "int", "unsigned64": "uint64", "real": "float64", "flag": "bool", "text": "string",
         "tensor": "Tensor", "tensor_out": "Tensor"}
CARRIED = {"integer32": "int32", "integer64": "int64", "real": "float64", "flag": "int32", "enum": "int32",
           "text": "string"}


def type_of(arg):
    return {"enum": lambda: pascal(arg.of.split("_")), "handle": lambda: "*" + pascal([arg.of]),
            "options": lambda: f"*{arg.of.capitalize()}Options"}.get(arg.kind, lambda: TYPES[arg.kind])()


def passed(arg):
    name = local(arg.name)
    return {"enum": f"int32({name})", "integer32": f"int32({name})", "integer64": f"int64({name})",
            "flag": f"int32(number({name}))", "tensor": f"{name}.raw", "tensor_out": f"{name}.raw",
            "handle": f"rawOf({name})", "control": "control", "options": "made" if arg.of else "nil"}.get(arg.kind, name)


def result_of(out, variable):
    if out.kind == "enum":
        return f"{type_of(out)}({variable})"
    return {"flag": f"{variable} != 0", "integer32": f"int({variable})", "integer64": f"int({variable})"}.get(
        out.kind, variable)


def out_name(out):
    return "out" if out.name in ("out", "out_text") else local("out_" + out.name.removeprefix("out_"))


def wrapped(method, text):
    """An expression of type error, with the native objects that the call needs for its own time."""
    for arg in method.args:
        if arg.kind == "options" and arg.of:
            text = f"use({local(arg.name)}, func(made *capi.Handle) error {{ return {text} }})"
        elif arg.kind == "control":
            text = f"controlled(ctx, func(control *capi.Handle) error {{ return {text} }})"
    return text


def doc(docs, method, name):
    return [f"// {name} is shardrec_{method.function}."] + (["//"] if method.doc else []) + [
        f"// {line}".rstrip() for line in docs.of_method(method)]


def write(docs, method):
    name = name_of(method)
    receiver = method.owner[:1] or "l"
    parameters = [f"{local(a.name)} {type_of(a)}" for a in method.args
                  if a.kind != "control" and (a.kind != "options" or a.of)]
    if any(a.kind == "control" for a in method.args):
        parameters.insert(0, "ctx context.Context")
    head = f"func ({receiver} *{pascal([method.owner])}) " if method.self_arg else "func "
    ordered = [f"{receiver}.raw()"] if method.self_arg else []
    ordered += [passed(a) for a in method.args]
    function = "capi." + method.raw[:1].upper() + method.raw[1:]
    out = ["", *doc(docs, method, name)]
    if method.makes:
        text = wrapped(method, f"{function}({', '.join([*ordered, 'out'])})")
        parents = ([f"{receiver}.raw()"] if method.self_arg else []) + [
            passed(a) for a in method.args if a.kind == "handle" and a.of not in methods.COPIED]
        made = pascal([method.makes])
        return out + [f"{head}{name}({', '.join(parameters)}) (*{made}, error) {{",
                      f"\treturn opened[{made}](capi.{made}_destroy, func(out *uintptr) error {{ return {text} }}"
                      + "".join(f", {p}" for p in parents) + ")", "}"]
    text = wrapped(method, f"{function}({', '.join(ordered + ['&' + out_name(o) for o in method.outs])})")
    # One of the same kind is read by the call, and not used behind it.
    keeps = [f"\t{receiver}.raw().Keep({local(a.name)})" for a in method.args
             if a.kind == "handle" and method.self_arg and a.of != method.owner]
    if method.function == "trace_stop":
        return out + [f"{head}{name}() {{ {text} }}"]
    if not method.outs:
        if not keeps:
            return out + [f"{head}{name}({', '.join(parameters)}) error {{", f"\treturn {text}", "}"]
        return out + [f"{head}{name}({', '.join(parameters)}) error {{", *keeps, f"\treturn {text}", "}"]
    variables = [f"\tvar {out_name(o)} {CARRIED[o.kind]}" for o in method.outs]
    if len(method.outs) == 1:
        o = method.outs[0]
        return out + [f"{head}{name}({', '.join(parameters)}) ({type_of(o)}, error) {{", *variables, *keeps,
                      f"\terr := {text}", f"\treturn {result_of(o, out_name(o))}, err", "}"]
    record = pascal([method.owner]) + pascal(method.words)
    fields = [pascal(o.name.removeprefix("out_").split("_")) for o in method.outs]
    values = ", ".join(f"{f}: {result_of(o, out_name(o))}" for f, o in zip(fields, method.outs))
    kinds = [f"\t{f} {type_of(o)}" for f, o in zip(fields, method.outs)]
    return ["", f"// {record} is what {name} returns.", f"type {record} struct {{", *kinds, "}", *out,
            f"{head}{name}({', '.join(parameters)}) ({record}, error) {{", *variables, f"\terr := {text}",
            f"\treturn {record}{{{values}}}, err", "}"]


def main():
    every = methods.load(sys.argv[1], sys.argv[2])
    comments = headers.load(sys.argv[2])
    docs = go_docs.Docs(*sys.argv[1:3])
    out = ["// Code generated by bindings/tools/go_methods.py from bindings/shardrec.i. DO NOT EDIT.", "", "package shardrec", "",
           "import (", '\t"context"', "", '\t"shardrec.org/shardrec/internal/capi"', ")"]
    seen = set()
    for method in every:
        if method.owner and method.owner not in seen:
            seen.add(method.owner)
            name = pascal([method.owner])
            out += ["", f"// {name} is a shardrec_{method.owner}."]
            text = comments.get(f"shardrec_{method.owner}")
            out += ["//", *(f"// {line}".rstrip() for line in text)] if text else []
            out.append(f"type {name} struct{{ handle }}")
        out += write(docs, method)
    print("\n".join(out))


if __name__ == "__main__":
    main()
