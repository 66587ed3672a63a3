#!/usr/bin/env python3
"""option_kinds.py API.xml LIBRARY > option_kinds.txt: which options each kind takes, and of which type, as the
library has it: "KIND KEY integer|real|text"."""

import ctypes
import sys

import swigxml

OK, NOT_FOUND = 0, 7  # set or with a default; taken, but its default depends on where it is used


def main():
    api = swigxml.load(sys.argv[1])
    library = ctypes.CDLL(sys.argv[2])
    taken = (OK, NOT_FOUND)
    for kind, value in api.enums["shardrec_options_kind"].items():
        if kind.endswith("_FORCE_32"):
            continue
        options = ctypes.c_void_p()
        assert library.shardrec_options_create(value, ctypes.byref(options)) == OK
        for key, number in api.enums["shardrec_option"].items():
            if key.endswith("_FORCE_32"):
                continue
            integer, real, text = ctypes.c_int64(), ctypes.c_double(), ctypes.c_void_p()
            if library.shardrec_options_get_text(options, number, ctypes.byref(text)) not in taken:
                continue
            library.shardrec_text_free(text)
            type_ = "text"
            if library.shardrec_options_get_i64(options, number, ctypes.byref(integer)) in taken:
                type_ = "integer"
            elif library.shardrec_options_get_f64(options, number, ctypes.byref(real)) in taken:
                type_ = "real"
            print(kind.removeprefix("SHARDREC_OPTIONS_"), key.removeprefix("SHARDREC_OPTION_"), type_)
        library.shardrec_options_destroy(ctypes.byref(options))


if __name__ == "__main__":
    main()
