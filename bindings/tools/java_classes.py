#!/usr/bin/env python3
"""java_classes.py API.xml INCLUDE_DIR PARTS FOLDER: a class of org.shardrec per handle, with a method per function of the C
API, and ShardRec with those of the library. PARTS/Name.java holds members that are written by hand."""

import html
import pathlib
import re
import sys

import headers
import java_docs
import java_enums
import methods
import swigxml
from java_docs import camel

CLASSES = {"collection": "EmbeddingCollection", "": "ShardRec"}
# Names that Java's own methods have, or that say more in Java.
NAMES = {
    "comm_close": "shutdown", "comm_set_f64": "set", "mlp_set_f64": "set", "comm_get_f64": "get", "comm_status": "check", "ddp_wait": "await", "fsdp_wait": "await",
}
TYPES = {"integer32": "int", "integer64": "long", "unsigned64": "long", "real": "double", "flag": "boolean",
         "text": "String", "tensor": "Tensor", "tensor_out": "Tensor", "control": "Control"}
ARRAYS = {"integer32": "int", "integer64": "long", "real": "double", "flag": "int", "enum": "int", "text": "String"}
IMPORT = "import org.jspecify.annotations.Nullable;"


def class_of(kind):
    return CLASSES.get(kind) or kind.capitalize()


def name_of(method):
    return NAMES.get(method.function) or camel(method.words)


def enum_of(name):
    own = swigxml.pascal(name.split("_"))
    return java_enums.NAMES.get(own, own)


def type_of(arg):
    if arg.kind == "enum":
        return enum_of(arg.of)
    if arg.kind == "handle":
        return class_of(arg.of)
    if arg.kind == "options":
        return f"{arg.of.capitalize()}Options"
    return TYPES[arg.kind]


def passed(arg):
    name = camel(arg.name.split("_"))
    return {"enum": f"{name}.value", "flag": f"{name} ? 1 : 0", "tensor_out": f"Tensor.writable({name})",
            "options": "made" if arg.of else "null", "control": "cancelled"}.get(arg.kind, name)


def returned_type(out):
    """An enumerator of a later release is null."""
    return f"@Nullable {enum_of(out.of)}" if out.kind == "enum" else TYPES[out.kind]


def parameter(arg):
    return f"{'@Nullable ' if arg.nullable else ''}{type_of(arg)} {camel(arg.name.split('_'))}"


def parameters(method):
    return ", ".join(parameter(a) for a in method.args if a.kind != "options" or a.of)


def out_name(out):
    return camel(out.name.removeprefix("out_").split("_")) if out.name not in ("out", "out_text") else "out"


def local(out):
    """The array that the call writes into."""
    return camel(out.name.split("_"))


def value_of(out):
    if out.kind == "enum":
        return f"{enum_of(out.of)}.of({local(out)}[0])"
    return f"{local(out)}[0]" + (" != 0" if out.kind == "flag" else "")


def call(method, this, out=None):
    """The call of the raw layer, wrapped where it takes options or a control."""
    ordered = ([this] if method.self_arg else []) + [passed(a) for a in method.args]
    ordered += [local(o) for o in method.outs] + ([out] if out else [])
    text = f"Capi.{method.raw}({', '.join(ordered)})"
    if any(a.kind == "control" for a in method.args):
        text = f"LongCall.run(control, cancelled -> {text})"
    taken = [a for a in method.args if a.kind == "options" and a.of]
    return f"Options.use({camel(taken[0].name.split('_'))}, made -> {text})" if taken else text


def parents(method):
    kept = (["this"] if method.self_arg else []) + [
        camel(a.name.split("_")) for a in method.args if a.kind == "handle" and a.of not in methods.COPIED]
    return ", ".join(kept)


def documented(method, words):
    """The header's comment, then what Javadoc wants to be said of each parameter: what the comment says of it, if it does."""
    text = words.of(" ".join(method.doc) or f"shardrec_{method.function}.", method.function, [a.name for a in method.args])
    tags = []
    for a in method.args:
        if a.kind == "options" and not a.of:
            continue
        said = re.search(rf"(?:^|[.;] ){camel(a.name.split('_'))}: (.+?)[.;](?: |$)", text)
        tags.append(f"@param {camel(a.name.split('_'))} {said[1] if said else 'as above'}")
    if method.outs or method.makes and method.function != f"{method.makes}_create":
        tags.append("@return " + ("the new handle" if method.makes else "what it asks for"))
    lines = java_enums.javadoc([text], "  ").split("\n")
    escaped = [html.escape(tag, quote=False) for tag in tags]
    wrapped = [line for tag in escaped for line in headers.wrapped(tag, "   * ")]
    return [*lines[:-1], *(["   *"] if tags else []), *wrapped, lines[-1]]


def creator(method):
    """A constructor for what is called create, else a method that returns the new handle."""
    made = class_of(method.makes)
    destroy = f"Capi::{method.makes}_destroy"
    if method.function == f"{method.makes}_create":
        return [f"  public {made}({parameters(method)}) {{",
                f"    super(out -> {call(method, None, 'out')}, {destroy}{', ' if parents(method) else ''}{parents(method)});",
                "  }"]
    static = "" if method.self_arg else "static "
    null = "@Nullable " if method.may_make_none else ""
    lines = [f"  public {static}{null}{made} {name_of(method)}({parameters(method)}) {{",
             f"    long value = created(out -> {call(method, 'this', 'out')});"]
    if method.may_make_none:
        lines.append("    if (value == 0) return null;")
    return lines + [f"    return new {made}(new Handle[] {{{parents(method)}}}, value);", "  }"]


def member(method, words):
    if method.makes:
        return creator(method)
    record = swigxml.pascal(method.words)
    many = len(method.outs) > 1
    returned = "void" if not method.outs else record if many else returned_type(method.outs[0])
    static = "" if method.self_arg else "static "
    lines = [f"  public {static}{returned} {name_of(method)}({parameters(method)}) {{"]
    for o in method.outs:
        kept = not many and o.kind != "text"
        made = f"Outs.{ARRAYS[o.kind].upper()}.get()" if kept else f"new {ARRAYS[o.kind]}[1]"
        lines.append(f"    {ARRAYS[o.kind]}[] {local(o)} = {made};")
    lines.append(f"    {call(method, 'this')};")
    lines += [f"    keep({camel(a.name.split('_'))});" for a in method.args if a.kind == "handle" and method.self_arg]
    if many:
        lines.append(f"    return new {record}({', '.join(value_of(o) for o in method.outs)});")
    elif method.outs:
        lines.append(f"    return {value_of(method.outs[0])};")
    lines.append("  }")
    if many:
        fields = ", ".join(f"{returned_type(o)} {out_name(o)}" for o in method.outs)
        tags = [f"   * @param {out_name(o)} see there" for o in method.outs]
        lines = ["  /**", f"   * What {name_of(method)} returns.", "   *", *tags, "   */",
                 f"  public record {record}({fields}) {{}}", "", *documented(method, words), *lines]
    return lines


def described(kind, include):
    """What the header that declares the handle begins with, and its thread rule."""
    for path in sorted(pathlib.Path(include).glob("shardrec/*.h")):
        source = path.read_text()
        if f"typedef struct shardrec_{kind} shardrec_{kind};" in source:
            paragraphs = "\n".join(headers.lines_of(source[:source.index("*/") + 2])).split("\n\n")
            rule = [p[p.index("Thread rule"):] for p in paragraphs[1:] if "Thread rule" in p]
            return " ".join([paragraphs[0], *rule]).split("\n")
    return []


def lines_of(method, words):
    lines = member(method, words)
    return lines if lines[0].lstrip().startswith("/**") else [*documented(method, words), *lines]


def main():
    every = methods.load(sys.argv[1], sys.argv[2])
    comments = headers.load(sys.argv[2])
    api = swigxml.load(sys.argv[1])
    words = java_docs.Words(every, methods.written_by_hand(api, sys.argv[2]), class_of, name_of, api)
    parts, folder = pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4])
    for kind in sorted({m.owner for m in every}):
        name = class_of(kind)
        own = [m for m in every if m.owner == kind]
        doc = ["The library itself, and ranks as threads of this process."]
        if kind:
            doc = comments.get(f"shardrec_{kind}") or described(kind, sys.argv[2])
        part = parts / f"{name}.java"
        by_hand = part.read_text() if part.exists() else ""
        imports = [line for line in by_hand.split("\n") if line.startswith("import ")]
        by_hand = "\n".join(line for line in by_hand.split("\n") if not line.startswith("import ")).strip("\n")
        members = [lines_of(method, words) for method in own]
        imports += [IMPORT] * any("@Nullable" in line for lines in [[by_hand], *members] for line in lines)
        out = ["// Made by bindings/tools/java_classes.py from bindings/shardrec.i; do not edit.", "package org.shardrec;", "",
               *imports, *([""] if imports else []), java_enums.javadoc([words.of(" ".join(doc))]),
               f"public final class {name} {'extends Handle ' if kind else ''}{{"]
        if kind:
            out += [f"  {name}(Handle[] parents, long value) {{", f"    super(value, Capi::{kind}_destroy, parents);", "  }"]
        else:
            out += ["  private ShardRec() {}"]
        if by_hand:
            out += ["", by_hand]
        for lines in members:
            out += ["", *lines]
        out.append("}\n")
        (folder / f"{name}.java").write_text("\n".join(out))


if __name__ == "__main__":
    main()
