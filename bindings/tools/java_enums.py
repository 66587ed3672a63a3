#!/usr/bin/env python3
"""java_enums.py API.xml FOLDER: the enums of the C API as Java enums of org.shardrec, one file each."""

import pathlib
import sys

import swigxml

ENUM = """// Made by bindings/tools/java_enums.py from bindings/shardrec.i; do not edit.
package org.shardrec;

/** The C API's shardrec_{c_name}. */
public enum {name} {{
{items};

  /** The value in the C API. */
  public final int value;

  {name}(int value) {{
    this.value = value;
  }}

  /** The enumerator of a value; null for a value of a later release. */
  public static {name} of(int value) {{
    for ({name} item : values()) if (item.value == value) return item;
    return null;
  }}
}}
"""

VERSION = """// Made by bindings/tools/java_enums.py from bindings/shardrec.i; do not edit.
package org.shardrec;

/** The version of the C API that these classes were made for. */
final class ApiVersion {{
  static final int VALUE = {version};

  private ApiVersion() {{}}
}}
"""


def java(words):
    name = "_".join(words).upper()
    return "_" + name if name[0].isdigit() else name


def main():
    api = swigxml.load(sys.argv[1])
    folder = pathlib.Path(sys.argv[2])
    for words, items in swigxml.enum_words(api):
        name = "".join(w.capitalize() for w in words)
        lines = ",\n".join(f"  {java(item)}({value})" for item, value in items.items())
        (folder / f"{name}.java").write_text(ENUM.format(c_name="_".join(words), name=name, items=lines))
    version = api.constants["SHARDREC_API_VERSION"]
    (folder / "ApiVersion.java").write_text(VERSION.format(version=version))


if __name__ == "__main__":
    main()
