"""Comments of the C headers as documentation of Rust: functions by the names that they have there, None in place of NULL,
and nothing about who frees what, which Rust's types say."""

import re

import headers
import methods
import rust_names

FREED = re.compile(
    r" ?\bout(_text|_name|_reason)?:\s+(?:UTF-8,\s+)?(?:owned|freed)\s+by\s+"
    r"(?:the\s+caller(?:\s+with\s+shardrec_text_free)?|shardrec_text_free)([.;])(\s*)(\w?)")
OPTIONAL_OUTS = re.compile(r"[;,]\s+(?:either out )?may\s+be\s+NULL|\s*\bEach(?: out)?\s+may\s+be\s+NULL\.")
WITHOUT_LINKS = {"counters_text"}  # its names are those of metrics


class Docs:
    def __init__(self, api_path, include):
        self.paths = {m.function: rust_names.path(m) for m in methods.load(api_path, include)} | rust_names.BY_HAND

    def of_method(self, function, lines, indent):
        text = OPTIONAL_OUTS.sub("", FREED.sub(self.owned, "\n".join(lines)))
        lines = [line.strip() if line.startswith(" ") and not line.startswith("  ") else line
                 for line in re.sub(r"\bNULL\b", "None", text).strip().split("\n")]
        return list(headers.rustdoc(lines, indent)) if function in WITHOUT_LINKS else self.rustdoc(lines, indent)

    def rustdoc(self, lines, indent=""):
        return [re.sub(r"`?\bshardrec_(\w+)`?", self.link, line) for line in headers.rustdoc(lines, indent)]

    @staticmethod
    def owned(match):
        text, end, space, then = match.groups()
        if end == ";":
            then = then.upper() if text else "It " + then
        return ("\n" if "\n" in space else " ") + then

    def link(self, match):
        path = self.paths.get(match[1])
        return f"[`{path}`](crate::{path})" if path else match[0]
