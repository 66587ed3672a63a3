#!/usr/bin/env python3
"""java_enums.py API.xml INCLUDE_DIR FOLDER: the enums of the C API as Java enums of org.shardrec, one file each."""

import html
import pathlib
import sys

import headers
import swigxml

ENUM = """// Made by bindings/tools/java_enums.py from bindings/shardrec.i; do not edit.
package org.shardrec;

import org.jspecify.annotations.Nullable;

{doc}
public enum {name} {{
{items};

  /** The value in the C API. */
  public final int value;

  {name}(int value) {{
    this.value = value;
  }}

  /**
   * The enumerator of a value.
   *
   * @param value of the C API
   * @return null for a value of a later release
   */
  public static @Nullable {name} of(int value) {{
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


# A name that java.lang, java.util or what Scala imports by itself has, and the one in its place.
NAMES = {"Option": "OptionKey"}


def java(words):
    name = "_".join(words).upper()
    return "_" + name if name[0].isdigit() else name


def javadoc(lines, indent=""):
    text = html.escape(" ".join(lines), quote=False).replace("@", "&#64;")
    return "\n".join([f"{indent}/**", *headers.wrapped(text, f"{indent} * "), f"{indent} */"])


def main():
    api = swigxml.load(sys.argv[1])
    comments = headers.load(sys.argv[2])
    folder = pathlib.Path(sys.argv[3])
    for words, items in swigxml.enum_words(api):
        name = swigxml.pascal(words)
        name = NAMES.get(name, name)
        c_name = "shardrec_" + "_".join(words)
        lines = ",\n".join(
            javadoc([f"{item_name}:", *comments[item_name]] if item_name in comments else [f"{item_name}."], "  ")
            + f"\n  {java(item)}({value})" for item, (item_name, value) in items.items())
        doc = javadoc([*comments.get(c_name, []), f"The C API's {c_name}."])
        (folder / f"{name}.java").write_text(ENUM.format(doc=doc, name=name, items=lines))
    version = api.constants["SHARDREC_API_VERSION"]
    (folder / "ApiVersion.java").write_text(VERSION.format(version=version))


if __name__ == "__main__":
    main()
