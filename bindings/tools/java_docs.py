"""The headers' comments in Java's words: names of methods and classes, null, parameters as Java spells them, and nothing of
who frees what."""

import re

import swigxml

OWNED = re.compile(r"(?:out|out_text|out_name|out_reason): (?:UTF-8, )?(?:owned|freed) by (?:the caller)?(?: ?with )?(?:shardrec_text_free)?"
                   r"(?:; |[.,] ?)")
# Names of metrics, which look like functions.
LEFT = {"counters_text"}
BY_HAND = {"log_next": "ShardRec.nextLogMessage", "api_version": "ShardRec.apiVersion", "hash64": "ShardRec.hash64"}


def camel(words):
    return words[0] + swigxml.pascal(words[1:])


class Words:
    """every: all methods; by_hand: the functions that are written by hand; class_of, name_of: a handle's class and a method's name; api: the parse tree."""

    def __init__(self, every, by_hand, class_of, name_of, api):
        self.names = {h: class_of(h.removeprefix("shardrec_")) for h in api.handles}
        self.names |= {f"shardrec_{'_'.join(words)}": swigxml.pascal(words) for words, _ in swigxml.enum_words(api)}
        self.names |= {"shardrec_tensor": "Tensor"}
        for function in by_hand:
            kind, *rest = function.split("_")
            self.names[f"shardrec_{function}"] = BY_HAND.get(function) or f"{class_of(kind)}.{camel(rest)}"
        for method in every:
            owner = class_of(method.owner)
            made = method.function == f"{method.makes}_create"
            self.names[f"shardrec_{method.function}"] = f"new {owner}" if made else f"{owner}.{name_of(method)}"

    def of(self, text, function="", arguments=()):
        if function in LEFT:
            return text
        text = OWNED.sub("", text)
        text = re.sub(r"shardrec_\w+", lambda found: self.names.get(found[0], found[0]), text)
        for name in arguments:
            text = re.sub(rf"\b{name}\b", camel(name.split("_")), text)
        return re.sub(r"\bNULL\b", "null", text)
