#!/usr/bin/env python3
"""go_wrappers.py capi.go: mends what SWIG wrote, in place.

Out-parameters: cgo takes each pointer for one that C may keep, so that the variable behind it is made on the heap, in every
call. No function of the library keeps one, and none calls Go: with cgo's noescape and nocallback they stay on the stack.
(SWIG itself lets slices and texts escape, which tensors that the library keeps need.)

SWIG's copy of a text goes through an integer, which `go vet` refuses."""

import re
import sys

COPY = re.compile(r"^[ \t]+r := string\(.*p\.p.*\)$", re.MULTILINE)


def main():
    path = sys.argv[1]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text, copies = COPY.subn("\tr := string([]byte(s))", text)
    if copies != 1:
        sys.exit(f"go_wrappers: {path} copies texts in another way than is known here")
    wrappers = re.findall(r"^extern \S+ (_wrap_\w+)\([^)]*\bswig_voidp arg\d+[^)]*\);$", text, re.MULTILINE)
    wrappers = [w for w in wrappers if "_destroy_" not in w]
    if not wrappers:
        sys.exit(f"go_wrappers: {path} has no out-parameters")
    lines = "".join(f"#cgo noescape {w}\n#cgo nocallback {w}\n" for w in wrappers)
    text = text.replace("#undef intgo\n*/\n", lines + "#undef intgo\n*/\n", 1)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
