"""The options of each kind, with the types that a host gives their values: what the generators of their classes read."""

import pathlib
import re
from dataclasses import dataclass

import headers
import swigxml

# Options that a garbage collector, or the end of a borrow, would break: the library would read after the call.
WITHOUT = {"BORROW"}
# Sets of enumerators: as text, "row_wise, column_wise".
SETS = {"ALLOWED_SHARDING"}


@dataclass
class Option:
    key: str  # as in SHARDREC_OPTION_<key>
    words: list  # of the setter
    type: str  # "flag", "integer", "real", "text" or the words of an enum, "shardrec_init"
    text: str  # what the header says


@dataclass
class Kind:
    name: str  # as in SHARDREC_OPTIONS_<name>
    options: list

    @property
    def class_name(self):
        return self.name.capitalize() + "Options"


def load(api_path, include, table):
    """The kinds in the order of the table (option_kinds.txt)."""
    comments = headers.load(include)
    enums = swigxml.load(api_path).enums
    kinds = {}
    for line in pathlib.Path(table).read_text().splitlines():
        kind, key, type_ = line.split()
        if key in WITHOUT:
            continue
        text = comments[f"SHARDREC_OPTION_{key}"][0]
        enum = re.match(r"i64, (shardrec_\w+)", text)
        if key in SETS:
            type_ = "text"
        elif type_ == "integer" and enum and enum[1] in enums:
            type_ = enum[1]
        elif type_ == "integer" and re.match(r"i64, (0 or 1|0:|1 \(default\):)", text):
            type_ = "flag"
        words = key.lower().removeprefix(kind.lower() + "_").split("_")
        # The type is in the signature.
        text = re.sub(r"^(i64|f64|text),? *", "", text)
        kinds.setdefault(kind, Kind(kind, [])).options.append(Option(key, words, type_, text))
    return list(kinds.values())
