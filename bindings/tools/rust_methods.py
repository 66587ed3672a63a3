#!/usr/bin/env python3
"""rust_methods.py API.xml INCLUDE_DIR > methods.rs: the functions of the C API as methods of their handles."""

import sys

import methods
import rust_docs
import rust_enums
from rust_names import RESERVED, name_of
from swigxml import pascal

# Handles that several threads may use at once.
SHARED = {"comm", "control", "mesh", "scorer"}
RAW = {"ddp": "raw"}  # the field of a type that is by hand
# By hand: a step of DDP, during which the library writes, like what keeps memory; and what takes a stream on trust.
BY_HAND = {"tensor_copy", "ddp_create", "ddp_add_mlp", "ddp_begin", "ddp_mark_ready", "ddp_mark_unused", "ddp_end", "ddp_wait"}
TYPES = {"integer32": "i32", "integer64": "i64", "unsigned64": "u64", "real": "f64", "flag": "bool", "text": "String"}
CARRIED = {"integer32": "0i32", "integer64": "0i64", "real": "0f64", "flag": "0i32", "text": "std::ptr::null_mut()"}


def enum_name(c_name):
    name = pascal(c_name.split("_"))
    return rust_enums.NAMES.get(name, name)


def type_of(arg):
    text = {"text": "&str", "tensor": "View<'_>", "tensor_out": "ViewMut<'_>"}.get(arg.kind)
    if text is None:
        if arg.kind == "enum":
            return enum_name(arg.of)
        if arg.kind == "handle":
            reference = "&" + pascal([arg.of])
            return f"Option<{reference}>" if arg.nullable else reference
        if arg.kind == "options":
            return f"Option<&{arg.of.capitalize()}Options>"
        if arg.kind == "control":
            return "Option<&Control>"
        return TYPES[arg.kind]
    return f"Option<{text}>" if arg.nullable else text


def returned_type(out):
    """An enumerator of a later release is None."""
    return f"Option<{enum_name(out.of)}>" if out.kind == "enum" else TYPES[out.kind]


def value_of(out):
    if out.kind == "text":
        return f"unsafe {{ taken({out.name}) }}"
    value = f"out.{out.name.removeprefix('out_')}" if out.struct else out.name
    if out.kind == "enum":
        return f"{enum_name(out.of)}::of({value})"
    return value + (" != 0" if out.kind == "flag" else "")


def variable(arg):
    return RESERVED.get(arg.name, arg.name)


def passed(arg):
    name = variable(arg)
    if arg.kind in ("tensor", "tensor_out") and arg.nullable:
        return f"{name}.as_ref().map_or(std::ptr::null(), |view| &view.raw)"
    if arg.kind == "handle" and arg.nullable:
        return f"{name}.map_or(std::ptr::null_mut(), |handle| handle.{RAW.get(arg.of, '0')})"
    if arg.kind == "text" and arg.nullable:
        return f"{name}.as_ref().map_or(std::ptr::null(), |text| text.as_ptr())"
    return {"enum": f"{name}.raw()", "flag": f"{name}.into()", "tensor": f"&{name}.raw", "tensor_out": f"&{name}.raw",
            "text": f"{name}.as_ptr()", "handle": f"{name}.{RAW.get(arg.of, '0')}",
            "control": f"{name}.map_or(std::ptr::null_mut(), |control| control.0)",
            "options": "made" if arg.of else "std::ptr::null()"}.get(arg.kind, name)

# Functions that take something on trust, and what.
UNSAFE = {"lookup_set_stream": ["Of a collection on a device, `stream` is a live stream of it, and stays one as said above. A",
                                "`Memory` of which calls are given tensors meanwhile is not dropped before the stream is through with them."]}


def write(method, doc):
    name = name_of(method)
    receiver = []
    if method.self_arg:
        receiver = ["&self" if method.owner in SHARED or method.is_const else "&mut self"]
    parameters = receiver + [f"{variable(a)}: {type_of(a)}" for a in method.args if a.kind != "options" or a.of]
    ordered = ([f"self.{RAW.get(method.owner, '0')}"] if method.self_arg else []) + [
        passed(a) for a in method.args if not a.struct]
    structs = {a.struct for a in [*method.args, *method.outs] if a.struct}
    for parameter, base in structs:
        ordered.append("&mut out" if parameter == "out" else "&given")
    options = next((variable(a) for a in method.args if a.kind == "options" and a.of), None)
    texts = [f"        let {variable(a)} = {variable(a)}.map(c_text).transpose()?;" if a.nullable else
             f"        let {variable(a)} = c_text({variable(a)})?;" for a in method.args if a.kind == "text"]
    text_out = [o.kind for o in method.outs] == ["text"]
    outs = [] if text_out else [f"&mut {o.name}" for o in method.outs if not o.struct]
    call = f"unsafe {{ sys::shardrec_{method.function}({', '.join(ordered + outs + (['out'] if text_out or method.makes else []))}) }}"

    def around(text):
        return f"with({options}.map(|o| &o.0), |made| {text})" if options else text

    body, record = list(texts), []
    for parameter, base in structs:
        made = "mut out" if parameter == "out" else "given"
        fields = [f"{a.name}: {passed(a)}".replace(f"{a.name}: {a.name}", a.name) for a in method.args if a.struct]
        fields.append(f"..sys::{base}::new()")
        body.append(f"        let {made} = sys::{base} {{ {', '.join(fields)} }};" if len(fields) > 1 else
                    f"        let {made} = sys::{base}::new();")
    if method.function == "trace_stop":
        returned = None
        body.append(f"        {call}")
    elif method.makes:
        made = pascal([method.makes])
        if method.may_make_none:
            returned = f"Result<Option<{made}>>"
            body += [f"        let made = {around(f'{made}::made_by(|out| {call})')}?;",
                     "        // NULL: there is nothing to own.", "        Ok(if made.0.is_null() { None } else { Some(made) })"]
        else:
            returned = f"Result<{made}>"
            body.append(f"        {around(f'{made}::made_by(|out| {call})')}")
    elif text_out:
        returned = "Result<String>"
        body.append(f"        {around(f'take_text(|out| {call})')}")
    elif not method.outs:
        returned = "Result<()>"
        body.append(f"        {around(f'check({call})')}")
    else:
        body += [f"        let mut {o.name} = {CARRIED[o.kind]};" for o in method.outs if not o.struct]
        body.append(f"        {around(f'check({call})')}?;")
        values = [value_of(o) for o in method.outs]
        if len(values) == 1:
            returned = f"Result<{returned_type(method.outs[0])}>"
            body.append(f"        Ok({values[0]})")
        else:
            kind = pascal([method.owner]) + pascal(method.words)
            fields = [o.name.removeprefix("out_") for o in method.outs]
            kinds = {o.kind for o in method.outs}
            traits = ["Clone", *["Copy"] * ("text" not in kinds), "Debug", "PartialEq", *["Eq"] * ("real" not in kinds)]
            path = f"{pascal([method.owner])}::{name}" if method.owner else name
            record = ["", f"/// What [`{path}`] returns.", f"#[derive({', '.join(traits)})]", f"pub struct {kind} {{"]
            for o, f in zip(method.outs, fields):
                record += [f"    /// See there.", f"    pub {f}: {returned_type(o)},"]
            record.append("}")
            returned = f"Result<{kind}>"
            body.append(f"        Ok({kind} {{ {', '.join(f'{f}: {v}' for f, v in zip(fields, values))} }})")
    arrow = f" -> {returned}" if returned else ""
    # Clippy's limit on arguments is for hands.
    lint = ["    #[allow(clippy::too_many_arguments)]"] if len(parameters) > 7 else []
    safety = UNSAFE.get(method.function)
    doc = [*doc, "    ///", "    /// # Safety", *(f"    /// {line}" for line in safety)] if safety else doc
    unsafe = "unsafe " if safety else ""
    return record, ["", *doc, *lint, f"    pub {unsafe}fn {name}({', '.join(parameters)}){arrow} {{", *body, "    }"]


def main():
    docs = rust_docs.Docs(sys.argv[1], sys.argv[2])
    every = [m for m in methods.load(sys.argv[1], sys.argv[2]) if m.function not in BY_HAND]
    commented = None  # the last method with a comment: it is that of those right behind it too
    described = {}
    for method in every:
        if method.doc:
            commented = method.function
        described[method.function] = method.doc or [f"See `shardrec_{commented}`."]
    enums = sorted({enum_name(a.of) for m in every for a in [*m.args, *m.outs] if a.kind == "enum"})
    options = sorted({f"{a.of.capitalize()}Options" for m in every for a in m.args if a.kind == "options" and a.of})
    handles = sorted({pascal([m.owner]) for m in every if m.owner} | {pascal([m.makes]) for m in every if m.makes})
    out = ["// Made by bindings/tools/rust_methods.py from bindings/shardrec.i; do not edit.",
           "//! The functions of the C API as methods of their handles.", "",
           "// SAFETY of every call below: handles are tickets of any value; tensors, texts and out-parameters outlive",
           "// the call, and the library keeps none of them.", "",
           "use shardrec_sys as sys;", "", f"use crate::enums::{{{', '.join(enums)}}};",
           "use crate::error::{c_text, check, take_text, taken, Result};", "use crate::ddp::Ddp;",
           f"use crate::handles::{{{', '.join(h for h in handles if h != 'Ddp')}}};",
           f"use crate::option_types::{{{', '.join(options)}}};", "use crate::options::with;",
           "use crate::tensor::{View, ViewMut};"]
    for owner in dict.fromkeys(m.owner for m in every):
        records, members = [], []
        for method in (m for m in every if m.owner == owner):
            record, lines = write(method, docs.of_method(method.function, described[method.function], "    "))
            records += record
            members += lines
        if owner:
            out += [*records, "", f"impl {pascal([owner])} {{", *members[1:], "}"]
        else:
            out += [*records, *(line[4:] if line.startswith("    ") else line for line in members)]
    print("\n".join(out))


if __name__ == "__main__":
    main()
