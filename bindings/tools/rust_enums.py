#!/usr/bin/env python3
"""rust_enums.py API.xml INCLUDE_DIR > enums.rs: the enums of the C API as Rust enums that may grow."""

import sys

import headers
import rust_docs
import swigxml

# A name that Rust's prelude has, or that says more in Rust.
NAMES = {"Option": "OptionKey", "Status": "ErrorKind"}


def main():
    api = swigxml.load(sys.argv[1])
    comments = headers.load(sys.argv[2])
    docs = rust_docs.Docs(sys.argv[1], sys.argv[2])
    out = ["// Made by bindings/tools/rust_enums.py from bindings/shardrec.i; do not edit.",
           "//! The enums of the C API.", "", "use shardrec_sys as sys;"]
    for words, items in swigxml.enum_words(api):
        c_name = "shardrec_" + "_".join(words)
        name = NAMES.get(swigxml.pascal(words), swigxml.pascal(words))
        variants = [(swigxml.pascal(item), c_item) for item, (c_item, _) in items.items() if c_item != "SHARDREC_OK"]
        out += ["", *docs.rustdoc([*comments.get(c_name, []), f"The C API's `{c_name}`."]), "#[non_exhaustive]",
                "#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]", f"pub enum {name} {{"]
        for variant, c_item in variants:
            text = f"`{c_item}`" + "".join(f": {c}" for c in comments.get(c_item, [])) + "."
            out += [*docs.rustdoc(headers.wrapped(text, ""), "    "), f"    {variant},"]
        out += ["}", "", f"impl {name} {{", "    /// The number that the C API and options of integers have for it.",
                "    pub const fn value(self) -> i64 {", "        self.raw().0 as i64", "    }", "",
                "    #[allow(dead_code)]", f"    pub(crate) const fn raw(self) -> sys::{c_name} {{", "        match self {"]
        out += [f"            {name}::{variant} => sys::{c_item}," for variant, c_item in variants]
        out += ["        }", "    }", "", "    /// None: of a later release.", "    #[allow(dead_code)]",
                f"    pub(crate) fn of(raw: sys::{c_name}) -> Option<{name}> {{", "        match raw {"]
        out += [f"            sys::{c_item} => Some({name}::{variant})," for variant, c_item in variants]
        out += ["            _ => None,", "        }", "    }", "}"]
    print("\n".join(out))


if __name__ == "__main__":
    main()
