#!/usr/bin/env python3
"""list_functions.py INCLUDE_DIR: the functions of the public headers with the annotations of their parameters, as
annotations_test.cpp includes them: ANNOTATED(function, {{"parameter", Annotations, "KIND"}, ...})."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bindings/tools"))
import headers  # noqa: E402


def constant(annotation):
    """SHARDREC_OUT_NULLABLE: kOutNullable."""
    return "k" + annotation.removeprefix("SHARDREC_").title().replace("_", "")


def parameter(name, annotations):
    kind = annotations.get("SHARDREC_OPTIONS")
    return f'{{"{name}", {" | ".join(map(constant, annotations)) or 0}, "{kind or ""}"}}'


def main():
    for function, parameters in headers.annotations(sys.argv[1]).items():
        listed = ", ".join(parameter(*p) for p in parameters.items())
        print(f"ANNOTATED({function}, {{{listed}}})")


if __name__ == "__main__":
    main()
