"""Comments of the C headers as documentation of Go: functions, types and statuses by the names that they have there, as
links; nil or a tensor that is none in place of NULL; contexts in place of controls; and nothing about who frees what, which
handles do themselves."""

import re

import go_names
import methods
import rust_docs
import swigxml

# Written by hand.
BY_HAND = {
    "mlp_add": "Mlp.AddLinear", "mlp_forward": "Mlp.Forward", "mlp_backward": "Mlp.Backward", "mlp_parameter": "Mlp.Parameter",
    "interaction_forward": "Interaction.Forward", "interaction_backward": "Interaction.Backward",
    "ddp_add_parameter": "Ddp.AddParameter", "ddp_set_flat_gradient": "Ddp.SetFlatGradient", "ddp_gradient": "Ddp.Gradient",
    "ddp_state": "Ddp.State", "fsdp_parameter": "Fsdp.Parameter", "fsdp_gradient": "Fsdp.Gradient", "fsdp_shard": "Fsdp.Shard", "mlp_state": "Mlp.State", "checkpoint_tensor_info": "Checkpoint.TensorInfo", "hash64": "Hash64", "log_next": "NextLogMessage",
    "api_version": "APIVersion", "control_cancel": "Control.Cancel",
}
WITHOUT_LINKS = {"counters_text"}  # its names are those of metrics
CONTROL = re.compile(r"\bcontrol: (NULL allowed(;\s+counts (this rank's )?bytes, cancels)?|progress and cancellation, NULL for none)\.")
IN_GO = (("control: as ", "ctx: as "), ("token is NULL", 'token is ""'), ("device: NULL or", 'device: "" or'), ("(UTF-8, NULL allowed)", "(UTF-8)"), (" (out NULL)", ""),
         ("(out NULL: ", "("), ("*out becomes NULL", "the result is nil"))
def listed(lines, parameters):
    """(line, whether it is code). A line that describes a parameter, and is ended by what is known to be something else, is an
    item of a list: what is indented below it would be a block of code in Go."""
    inside = False
    for line, after in zip(lines, [*lines[1:], ""]):
        begins = re.match(r"\w+: ", line) and line.split(":")[0] in parameters
        ended = not after or after.startswith("  ") or after.split(":")[0] in parameters or line.endswith(".") and after[:1].isupper()
        if line.startswith("  "):
            yield ("    " + line.strip(), False) if inside else (line, True)
            continue
        inside = bool(begins and ended)
        yield ("  - " + line if inside else line), False


class Docs:
    def __init__(self, api_path, include):
        api = swigxml.load(api_path)
        self.names = {m.function: go_names.path(m) for m in methods.load(api_path, include)} | BY_HAND
        for c_name in [*api.enums, *api.handles]:
            words = c_name.split("_")[1:]
            self.names.setdefault("_".join(words), swigxml.pascal(words))
        self.statuses = {"_".join(words).upper(): "Err" + swigxml.pascal(words)
                         for enum, items in swigxml.enum_words(api) if enum == ["status"] for words in items if words != ("ok",)}

    def of_method(self, method):
        text = rust_docs.OPTIONAL_OUTS.sub("", rust_docs.FREED.sub(rust_docs.Docs.owned, "\n".join(method.doc)))
        text = CONTROL.sub("ctx: its end cancels; [WithControl] tells how far it is.", text)
        for old, new in IN_GO:
            text = text.replace(old, new)
        for arg in method.args:
            text = re.sub(rf"\b{arg.name}\b", go_names.local(arg.name), text) if "_" in arg.name else text
        lines = [line.strip() if line.startswith(" ") and not line.startswith("  ") else line for line in text.strip().split("\n")]
        kinds = {a.kind for a in method.args}
        nothing = "none" if kinds & {"tensor", "tensor_out"} and "options" not in kinds else "nil"
        if method.function in WITHOUT_LINKS:
            return lines
        return [self.line(line, nothing, is_code) for line, is_code in listed(lines, {go_names.local(a.name) for a in method.args} | {"out"})]

    def line(self, line, nothing="nil", is_code=False):
        line = re.sub(r"\bNULL\b", nothing, line)
        line = re.sub(r"`?\bshardrec_(\w+)`?", lambda m: self.link(self.names.get(m[1]), m[0], is_code), line)
        return line if is_code else re.sub(r"\b[A-Z_]{4,}\b", lambda m: self.link(self.statuses.get(m[0]), m[0], False), line)

    @staticmethod
    def link(name, otherwise, is_code):
        return otherwise if not name else name if is_code else f"[{name}]"
