#!/usr/bin/env python3
"""call_counter.py API.xml > calls.c: a library to preload, which passes every function of the C API on, and adds the
names of those that are called to the file that SHARDREC_CALLS names."""

import sys

import swigxml


def c_type(type_):
    text = type_.base
    for mark in type_.pointers:
        text += " const *" if mark == "const" else " *"
    return text


def main():
    api = swigxml.load(sys.argv[1])
    out = ["#define _GNU_SOURCE", "#include <dlfcn.h>", "#include <fcntl.h>", "#include <stdlib.h>", "#include <string.h>",
           "#include <unistd.h>", '#include "shardrec/shardrec.h"', "",
           "/* At the first call, for a host may end without running destructors, as Go's do. */",
           "static void tell(_Atomic char *told, const char *line) {",
           '  const char *path = *told ? 0 : getenv("SHARDREC_CALLS");',
           "  int file = path == 0 ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT, 0666);", "  if (file < 0) return;",
           "  *told = write(file, line, strlen(line)) > 0;", "  close(file);", "}"]
    for f in api.functions:
        parameters = ", ".join(f"{c_type(p.type)} a{n}" for n, p in enumerate(f.parameters)) or "void"
        passed = ", ".join(f"a{n}" for n in range(len(f.parameters)))
        result = c_type(f.result)
        returns = "" if result == "void" else "return "
        out += [f"{result} {f.name}({parameters}) {{", f"  static {result} (*_Atomic next)({parameters});",
                "  static _Atomic char told;",
                f'  if (next == 0) next = ({result} (*)({parameters}))dlsym(RTLD_NEXT, "{f.name}");',
                f'  tell(&told, "{f.name}\\n");', f"  {returns}next({passed});", "}"]
    print("\n".join(out))


if __name__ == "__main__":
    main()
