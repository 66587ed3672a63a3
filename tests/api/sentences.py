#!/usr/bin/env python3
"""Sentences of the public headers that promise without exception are each held by a test.

Reads the comments of capi/include/shardrec (C and C++), takes each sentence that has one of WORDS, and compares with
sentences.tsv beside this file. A line there is a header, what holds the sentence, and the sentence, parted by tabs.
What holds it is one or several of, parted by blanks:

  FOLDER/FILE.cpp:SUITE.TEST   a test of that name in tests/FOLDER/FILE.cpp
  SCRIPT                       a test that is a program or a script, by its path in the repository
  caller                       nothing: the sentence says what the caller must do

Prints PASS and FAIL lines as tests/run counts them. It fails for a sentence that is not in the list, for a line
whose sentence the headers do not have, and for a test that there is not.

usage: tests/api/sentences.py [--list]      --list prints the sentences as lines of the list, without what holds them
"""
import glob
import os
import re
import sys

WORDS = ("never", "always", "nothing", "every")
FREE = ("caller",)  # what needs no test
LIST = "tests/api/sentences.tsv"
HEADERS = "capi/include/shardrec"


def comments(path):
    """The comments of a header, each as one text whose paragraphs are parted by empty lines."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    found = re.findall(r"/\*(.*?)\*/", text, re.DOTALL)
    rest = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    run = []
    for line in rest.split("\n") + [""]:  # comments of C++ that follow each other are one
        if match := re.match(r"\s*//(.*)", line):
            run.append(match.group(1))
        elif run:
            found.append("\n".join(run))
            run = []
        elif match := re.search(r"\s//(.*)", line):
            found.append(match.group(1))
    for comment in found:
        yield "\n".join(re.sub(r"^\s*\*?\s?", "", line) for line in comment.split("\n"))


def paragraphs(comment):
    """Texts that are parted by empty lines, or are entries of a list: rows of a table, or behind a dash."""
    lines, dashed = [], False
    for line in comment.split("\n") + [""]:
        row = re.match(r" {1,4}\S", line) and not dashed and (not lines or re.search(r"[.:;)]$|^ ", lines[-1]))
        out = lines and lines[-1].startswith(" ") and not line.startswith(" ") and not dashed
        if not line.strip() or line.startswith("- ") or row or out:
            yield " ".join(" ".join(lines).split())
            lines, dashed = [], line.startswith("- ")
        lines.append(line)


def errors_of(text):
    """The statuses of a list of errors, each with what stands behind it."""
    yield from re.split(r"[,;] (?=[A-Z_]{4,})", text.rstrip("."))


def sentences(path):
    """The sentences with one of WORDS, in their order, with single blanks."""
    words = re.compile(r"\b(" + "|".join(WORDS) + r")\b", re.IGNORECASE)
    for comment in comments(path):
        for paragraph in paragraphs(comment):
            # A sentence begins with a capital, or with the parameter that it is about; "Errors:" begins a list.
            for sentence in re.split(r"(?<=[.?!])\s+(?=[A-Z\"(*`]|[a-z_]+(?:, [a-z_]+)*: |[a-z]+_[a-z_]+ )", paragraph):
                parts = errors_of(sentence.removeprefix("Errors: ")) if sentence.startswith("Errors: ") else [sentence]
                yield from (part for part in parts if words.search(part))


def of_headers():
    found = []
    for path in sorted(glob.glob(f"{HEADERS}/*.h") + glob.glob(f"{HEADERS}/*.hpp") + glob.glob(f"{HEADERS}/cpp/*.hpp")):
        name = os.path.relpath(path, HEADERS)
        for sentence in sentences(path):
            if (name, sentence) not in found:
                found.append((name, sentence))
    return found


def of_list():
    """Header and sentence of each line, with what holds it."""
    with open(LIST, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file if line.strip() and not line.startswith("#")]
    return {(header, sentence): tests.split() for header, tests, sentence in lines}


def missing(test):
    """Why a test of the list is none; empty where it is there."""
    if test in FREE:
        return ""
    path, _, name = test.partition(":")
    if not name:
        return "" if os.access(path, os.X_OK) or path.endswith((".py", ".rs", ".java", ".go")) and os.path.exists(path) \
            else f"there is no script {path}"
    path = f"tests/{path}"
    if not os.path.exists(path):
        return f"there is no file {path}"
    with open(path, encoding="utf-8") as file:
        source = file.read()
    suite, _, case = name.partition(".")
    if re.search(rf"\bTEST(_F|_P)?\(\s*{re.escape(suite)},\s*{re.escape(case)}\)", source):
        return ""
    return f"{path} has no test {name}"


def main():
    found = of_headers()
    if sys.argv[1:] == ["--list"]:
        for header, sentence in found:
            print(f"{header}\t\t{sentence}")
        return 0
    listed = of_list()
    complaints = [f"{header}: no test is named for: {sentence}" for header, sentence in found
                  if not listed.get((header, sentence))]
    complaints += [f"{LIST}: {header} does not say: {sentence}" for header, sentence in listed
                   if (header, sentence) not in found]
    complaints += [f"{LIST}: {why}, for: {sentence}" for (_, sentence), tests in listed.items() for test in tests
                   if (why := missing(test))]
    for complaint in complaints:
        print(f"FAIL: api sentences: {complaint}")
    if not complaints:
        print(f"PASS: api {len(found)} sentences that know no exception are each held by a test")
    return 1 if complaints else 0


if __name__ == "__main__":
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    sys.exit(main())
