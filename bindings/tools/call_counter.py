#!/usr/bin/env python3
"""call_counter.py API.xml > calls.c: a library to preload, which passes every function of the C API on, and at the end of
the process adds the names of those that were called to the file that SHARDREC_CALLS names."""

import sys

import swigxml


def c_type(type_):
    text = type_.base
    for mark in type_.pointers:
        text += " const *" if mark == "const" else " *"
    return text


def main():
    api = swigxml.load(sys.argv[1])
    out = ["#define _GNU_SOURCE", "#include <dlfcn.h>", "#include <stdio.h>", "#include <stdlib.h>",
           '#include "shardrec/shardrec.h"', "", f"static _Atomic char called[{len(api.functions)}];"]
    for i, f in enumerate(api.functions):
        parameters = ", ".join(f"{c_type(p.type)} a{n}" for n, p in enumerate(f.parameters)) or "void"
        passed = ", ".join(f"a{n}" for n in range(len(f.parameters)))
        result = c_type(f.result)
        returns = "" if result == "void" else "return "
        out += [f"{result} {f.name}({parameters}) {{", f"  static {result} (*_Atomic next)({parameters});",
                f'  if (next == 0) next = ({result} (*)({parameters}))dlsym(RTLD_NEXT, "{f.name}");',
                f"  called[{i}] = 1;", f"  {returns}next({passed});", "}"]
    names = ", ".join(f'"{f.name}"' for f in api.functions)
    out += [f"static const char *const names[] = {{{names}}};", "__attribute__((destructor)) static void tell(void) {",
            '  const char *path = getenv("SHARDREC_CALLS");', '  FILE *file = path == 0 ? 0 : fopen(path, "a");',
            "  if (file == 0) return;", f"  for (int i = 0; i < {len(api.functions)}; ++i)",
            '    if (called[i]) fprintf(file, "%s\\n", names[i]);', "  fclose(file);", "}"]
    print("\n".join(out))


if __name__ == "__main__":
    main()
