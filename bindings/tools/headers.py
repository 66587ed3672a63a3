"""What SWIG's parse tree does not have of the public headers, by the name of what it describes:

- load(): the comments, for the documentation that the generators in this folder write. A comment stands right above a
  declaration, or behind an enumerator or a member.
- annotations(): those of parameters (shardrec/annotations.h), which stand before the parameter's type. A word that begins with
  SHARDREC_ and is no annotation is refused, wherever it stands in a declaration."""

import pathlib
import re
import sys
import textwrap

COMMENT = r"/\*(?:(?!\*/).)*\*/"
DECLARED = re.compile(
    rf"({COMMENT})\n(?:typedef (?:enum|struct) (\w+)|SHARDREC_API [^;(]*?(\w+)\(|#define (\w+))", re.DOTALL)
BODY = re.compile(r"typedef (?:enum|struct) (\w+) \{\n(.*?)\n\}", re.DOTALL)
MEMBER = re.compile(rf"^ +(?:[\w *]*?)(\w+)(?:\[\w+\])?(?: = [^,;/\n]+)?[,;]? *({COMMENT})$", re.DOTALL | re.MULTILINE)
FUNCTION = re.compile(r"^SHARDREC_API\s+([^;()]*?)(\w+)\(([^;]*)\);", re.MULTILINE)
ANNOTATION = re.compile(r"(SHARDREC_\w+)(?:\((\w+)\))?\s+")
WITH_KIND = {"SHARDREC_OPTIONS"}
WITHOUT = {"SHARDREC_NULLABLE", "SHARDREC_OUT_NULLABLE", "SHARDREC_FLAG", "SHARDREC_WRITTEN", "SHARDREC_KEPT",
           "SHARDREC_FILLED"}


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


def annotations_of(parameter, where):
    """({annotation: kind, or None where it has none}, the parameter without them)"""
    found = {}
    while match := ANNOTATION.match(parameter):
        word, kind = match.groups()
        if word not in (WITH_KIND if kind else WITHOUT):
            sys.exit(f"headers: {where}: {match[0].strip()} is no annotation of shardrec/annotations.h")
        if word in found:
            sys.exit(f"headers: {where}: {word} stands there twice")
        found[word] = kind
        parameter = parameter[match.end():]
    if misplaced := re.search(r"SHARDREC_\w+", parameter):
        sys.exit(f"headers: {where}: {misplaced[0]} is no annotation, or does not stand before the type of a parameter")
    if not re.fullmatch(r"[\w *]*\w", parameter):
        sys.exit(f"headers: {where}: the parameter is not understood")
    return found, parameter


def annotations(folder):
    """{function: {parameter: {annotation: kind, or None where it has none}}}"""
    functions = {}
    for path in sorted(pathlib.Path(folder).glob("shardrec/*.h")):
        source = re.sub(COMMENT, "", path.read_text(), flags=re.DOTALL)
        matches = list(FUNCTION.finditer(source))
        if len(matches) != len(re.findall(r"^SHARDREC_API\b", source, re.MULTILINE)):
            sys.exit(f"headers: {path}: a declaration is not understood")
        for result, name, parameters in (m.groups() for m in matches):
            if misplaced := re.search(r"SHARDREC_\w+", result):
                sys.exit(f"headers: {name}: {misplaced[0]} does not belong before a function")
            functions[name] = {}
            for parameter in parameters.split(",") if parameters.strip() != "void" else ():
                found, rest = annotations_of(parameter.strip(), f"{name}: {parameter.strip()}")
                functions[name][re.search(r"\w*$", rest)[0]] = found
    return functions


def members(folder):
    """{struct: {member: {annotation: kind, or None where it has none}}}"""
    structs = {}
    for path in sorted(pathlib.Path(folder).glob("shardrec/*.h")):
        source = re.sub(COMMENT, "", path.read_text(), flags=re.DOTALL)
        for name, body in re.findall(r"^typedef struct (\w+) \{\n(.*?)\n\}", source, re.DOTALL | re.MULTILINE):
            structs[name] = {}
            for member in (" ".join(m.split()) for m in body.split(";") if m.strip()):
                found, rest = annotations_of(re.sub(r"\[\w+\]$", "", member), f"{name}: {member}")
                structs[name][re.search(r"\w*$", rest)[0]] = found
    return structs


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
