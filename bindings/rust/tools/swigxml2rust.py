#!/usr/bin/env python3
"""swigxml2rust.py API.xml INCLUDE_DIR > raw.rs: the extern declarations of shardrec-sys from SWIG's parse
tree. Enums become open newtypes (a C enum may hold values of a later release), handles opaque structs.
Struct layouts are asked of the C compiler and asserted by the Rust one."""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import headers  # noqa: E402
import swigxml  # noqa: E402

SCALARS = {"int32_t": "i32", "int64_t": "i64", "uint64_t": "u64", "double": "f64", "char": "c_char",
           "void": "c_void"}
RESERVED = {"type", "move", "ref", "box", "in", "where", "loop", "match", "use", "mod", "fn", "impl"}


def rust_type(type_):
    text = SCALARS.get(type_.base, type_.base)
    for mark in type_.pointers:
        text = f"*{mark} {text}"
    return text


def rust_name(name):
    return "r#" + name if name in RESERVED else name


def layouts(structs, include):
    """{struct: (size, alignment, {field: offset})} as the C compiler has it."""
    lines = ["#include <stdio.h>", '#include "shardrec/shardrec.h"', "int main(void) {"]
    for name, fields in structs.items():
        lines.append(f"struct align_{name} {{ char c; {name} value; }};")
        lines.append(f'printf("%zu %zu\\n", sizeof({name}), offsetof(struct align_{name}, value));')
        lines += [f'printf("%zu\\n", offsetof({name}, {f.name}));' for f in fields]
    lines.append("return 0; }")
    with tempfile.TemporaryDirectory() as folder:
        source, program = f"{folder}/layout.c", f"{folder}/layout"
        pathlib.Path(source).write_text("\n".join(lines))
        subprocess.run([os.environ.get("CC", "cc"), "-I", include, source, "-o", program], check=True)
        numbers = iter(subprocess.run([program], check=True, capture_output=True, text=True).stdout.split())
    result = {}
    for name, fields in structs.items():
        size, alignment = next(numbers), next(numbers)
        result[name] = (size, alignment, {f.name: next(numbers) for f in fields})
    return result


def main():
    api = swigxml.load(sys.argv[1])
    comments = headers.load(sys.argv[2])

    def doc(name, indent=""):
        return headers.rustdoc(comments[name], indent) if name in comments else [f"{indent}/// The C API's `{name}`."]

    out = ["// Made by bindings/rust/tools/swigxml2rust.py from bindings/shardrec.i; do not edit.", "",
           "use core::ffi::{c_char, c_void};", ""]
    for name, value in api.constants.items():
        out += [*doc(name), f"pub const {name}: i32 = {value};"]
    for name, items in api.enums.items():
        out += ["", *doc(name), "#[repr(transparent)]", "#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]",
                f"pub struct {name}(pub u32);"]
        for item, value in items.items():
            if not item.endswith("_FORCE_32"):
                out += [*doc(item), f"pub const {item}: {name} = {name}({value});"]
        out.append(f"const _: () = assert!(core::mem::size_of::<{name}>() == 4);")
    for name in api.handles:
        out += ["", *doc(name), "#[repr(C)]", f"pub struct {name} {{", "    _opaque: [u8; 0],",
                "    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,", "}"]
    measured = layouts(api.structs, sys.argv[2])
    for name, fields in api.structs.items():
        size, alignment, offsets = measured[name]
        out += ["", *doc(name), "#[repr(C)]", "#[derive(Clone, Copy, Debug)]", f"pub struct {name} {{"]
        for f in fields:
            text = rust_type(f.type)
            out += doc(f"{name}.{f.name}", "    ")
            out.append(f"    pub {rust_name(f.name)}: {f'[{text}; {f.length}]' if f.length else text},")
        out += ["}", "const _: () = {", f"    assert!(core::mem::size_of::<{name}>() == {size});",
                f"    assert!(core::mem::align_of::<{name}>() == {alignment});"]
        out += [f"    assert!(core::mem::offset_of!({name}, {rust_name(f)}) == {o});" for f, o in offsets.items()]
        out.append("};")
        if fields[0].name == "struct_size":
            out += [f"impl {name} {{", "    /// All members zero but its size.", f"    pub const fn new() -> {name} {{",
                    "        // SAFETY: zeros are a value of every member: numbers and pointers.",
                    f"        let mut made: {name} = unsafe {{ core::mem::zeroed() }};", f"        made.struct_size = {size};",
                    "        made", "    }", "}", f"impl Default for {name} {{", f"    fn default() -> {name} {{",
                    f"        {name}::new()", "    }", "}"]
    out += ["", 'extern "C" {']
    for f in api.functions:
        parameters = ", ".join(f"{rust_name(p.name)}: {rust_type(p.type)}" for p in f.parameters)
        plain_void = f.result.base == "void" and not f.result.pointers
        out += doc(f.name, "    ")
        out.append(f"    pub fn {f.name}({parameters})" + (";" if plain_void else f" -> {rust_type(f.result)};"))
    out.append("}")
    print("\n".join(out))


if __name__ == "__main__":
    main()
