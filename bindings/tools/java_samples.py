#!/usr/bin/env python3
"""java_samples.py README.md FOLDER: each sample of Java in the page as a program of FOLDER, and their names on the standard
output. A sample without a class is the body of main; it may end main, and begin another method that main's end closes."""

import pathlib
import re
import sys

WRAPPED = """import java.nio.*;
import org.shardrec.*;

public final class {name} {{
  public static void main(String[] arguments) throws Exception {{
{body}
  }}
}}
"""


def main():
    page, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for number, body in enumerate(re.findall(r"^```java\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE), 1):
        whole = re.search(r"^public final class (\w+)", body, re.MULTILINE)
        name = whole[1] if whole else f"Sample{number}"
        (folder / f"{name}.java").write_text(body if whole else WRAPPED.format(name=name, body=body.rstrip("\n")))
        print(name)


if __name__ == "__main__":
    main()
