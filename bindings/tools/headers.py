"""The comments of the public headers, by the name of what they describe, for the documentation that the generators
in this folder write. A comment stands right above a declaration, or behind an enumerator or a member."""

import pathlib
import re
import textwrap

COMMENT = r"/\*(?:(?!\*/).)*\*/"
DECLARED = re.compile(
    rf"({COMMENT})\n(?:typedef (?:enum|struct) (\w+)|SHARDREC_API [^;(]*?(\w+)\(|#define (\w+))", re.DOTALL)
BODY = re.compile(r"typedef (?:enum|struct) (\w+) \{\n(.*?)\n\}", re.DOTALL)
MEMBER = re.compile(rf"^ +(?:[\w *]*?)(\w+)(?:\[\w+\])?(?: = [^,;/\n]+)?[,;]? *({COMMENT})$", re.DOTALL | re.MULTILINE)


def lines_of(comment):
    text = comment.removeprefix("/*").removesuffix("*/").strip()
    return [re.sub(r"^ *\* ?", "", line).rstrip() for line in text.split("\n")]


def load(folder):
    """{name: lines}; of an enumerator or member one line, whose name is struct.member for the latter."""
    comments = {}
    for path in sorted(pathlib.Path(folder).glob("shardrec/*.h")):
        source = path.read_text()
        for match in DECLARED.finditer(source):
            comments[next(filter(None, match.groups()[1:]))] = lines_of(match[1])
        for body in BODY.finditer(source):
            for member, comment in MEMBER.findall(body[2]):
                name = member if member.startswith("SHARDREC_") else f"{body[1]}.{member}"
                comments[name] = [" ".join(" ".join(lines_of(comment)).split())]
    return comments


def wrapped(text, prefix, width=110):
    """A paragraph as lines that begin with the prefix."""
    return textwrap.wrap(text, width, initial_indent=prefix, subsequent_indent=prefix, break_long_words=False,
                         break_on_hyphens=False)


def rustdoc(lines, indent=""):
    """Lines as documentation, in which nothing is a link, HTML or markup but what stands in `ticks`."""
    for line in lines:
        parts = re.split(r"(`[^`]*`)", line)
        text = "".join(p if p.startswith("`") else re.sub(r"([\[\]<>*\\])", r"\\\1", p) for p in parts)
        yield f"{indent}/// {text}".replace("///   ", "/// ").rstrip()
