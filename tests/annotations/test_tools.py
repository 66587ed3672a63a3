"""The generators of the bindings read the annotations of the headers, and refuse those that are wrong."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bindings/tools"))
import headers  # noqa: E402
import methods  # noqa: E402
import swigxml  # noqa: E402

API = swigxml.Api(
    constants={}, enums={"shardrec_status": {}, "shardrec_options_kind": {"SHARDREC_OPTIONS_TABLE": 2}}, structs={},
    handles=["shardrec_model", "shardrec_options", "shardrec_control"], functions=[])
TENSOR = swigxml.Type("shardrec_tensor", ["const"])
OPTIONS = swigxml.Type("shardrec_options", ["const"])
MODEL = swigxml.Type("shardrec_model", ["mut"])
NUMBER = swigxml.Type("int32_t")


def annotations_in(declaration):
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "shardrec").mkdir()
        (pathlib.Path(folder) / "shardrec/one.h").write_text(declaration)
        return headers.annotations(folder)


def function(name, **parameters):
    return swigxml.Function(f"shardrec_{name}", swigxml.Type("shardrec_status"),
                            [swigxml.Field(p, type_) for p, type_ in parameters.items()])


class Annotations(unittest.TestCase):
    def refused(self, part, call, *arguments):
        with self.assertRaises(SystemExit) as end:
            call(*arguments)
        self.assertIn(part, str(end.exception))

    def test_stand_before_a_parameter(self):
        found = annotations_in("/* int (old) */\nSHARDREC_API shardrec_status\nshardrec_f(SHARDREC_OPTIONS(TABLE)\n  const int *a,"
                               " SHARDREC_NULLABLE SHARDREC_WRITTEN const shardrec_tensor *b, int32_t c);\n"
                               "SHARDREC_API void shardrec_g(void);\n")
        self.assertEqual(found, {
            "shardrec_f": {"a": {"SHARDREC_OPTIONS": "TABLE"}, "b": {"SHARDREC_NULLABLE": None, "SHARDREC_WRITTEN": None}, "c": {}},
            "shardrec_g": {}})

    def test_that_are_misspelt_or_misplaced_are_refused(self):
        for declaration, part in (
                ("SHARDREC_API int f(SHARDREC_NULABLE const char *a);", "SHARDREC_NULABLE is no annotation"),
                ("SHARDREC_API int f(SHARDREC_OPTIONS const int *a);", "SHARDREC_OPTIONS is no annotation"),
                ("SHARDREC_API int f(SHARDREC_FLAG(ON) int32_t a);", "SHARDREC_FLAG(ON) is no annotation"),
                ("SHARDREC_API int f(const char *SHARDREC_NULLABLE a);", "SHARDREC_NULLABLE is no annotation, or does not stand"),
                ("SHARDREC_API int f(SHARDREC_FLAG SHARDREC_FLAG int32_t a);", "stands there twice"),
                ("SHARDREC_API SHARDREC_NULLABLE int f(int32_t a);", "does not belong before a function"),
                ("SHARDREC_API int f(int (*callback)(int32_t));", "the parameter is not understood")):
            self.refused(part, annotations_in, declaration)

    def test_that_do_not_fit_their_parameter_are_refused(self):
        for fact, type_, part in (
                ("SHARDREC_FLAG", TENSOR, "SHARDREC_FLAG is for an int32_t"),
                ("SHARDREC_WRITTEN", NUMBER, "SHARDREC_WRITTEN is for a const shardrec_tensor *"),
                ("SHARDREC_KEPT", MODEL, "SHARDREC_KEPT is for a const shardrec_tensor *"),
                ("SHARDREC_NULLABLE", NUMBER, "SHARDREC_NULLABLE is for a pointer"),
                ("SHARDREC_OUT_NULLABLE", MODEL, "SHARDREC_OUT_NULLABLE is for an out-parameter"),
                ("SHARDREC_OPTIONS", MODEL, "SHARDREC_OPTIONS is for a const shardrec_options *")):
            self.refused(part, methods.check, function("model_f", a=type_), API, {"a": {fact: None}})

    def test_that_are_missing_or_name_no_kind_are_refused(self):
        self.refused("SHARDREC_OPTIONS(KIND) is missing", methods.check, function("model_f", a=OPTIONS), API, {"a": {}})
        self.refused("there is no SHARDREC_OPTIONS_TABEL", methods.check, function("model_f", a=OPTIONS), API,
                     {"a": {"SHARDREC_OPTIONS": "TABEL"}})
        self.refused("SHARDREC_WRITTEN is missing", methods.check, function("model_f", out=TENSOR), API, {"out": {}})
        self.refused("SHARDREC_NULLABLE is missing", methods.check,
                     function("model_f", control=swigxml.Type("shardrec_control", ["mut"])), API, {"control": {}})
        self.refused("are not those of the parse tree", methods.check, function("model_f", a=NUMBER), API, {"b": {}})

    def test_become_facts_of_arguments(self):
        placed = methods.place(
            function("model_f", model=MODEL, options=OPTIONS, ids=TENSOR, to=TENSOR, freeze=NUMBER), API,
            {"model": {}, "options": {"SHARDREC_OPTIONS": "TABLE"}, "ids": {"SHARDREC_NULLABLE": None},
             "to": {"SHARDREC_WRITTEN": None}, "freeze": {"SHARDREC_FLAG": None}}, {})
        self.assertEqual([(a.kind, a.of, a.nullable) for a in placed.args],
                         [("options", "TABLE", True), ("tensor", "", True), ("tensor_out", "", False), ("flag", "", False)])

    def test_of_a_struct_become_facts_of_its_members(self):
        size = swigxml.Field("struct_size", swigxml.Type("int64_t"))
        api = swigxml.Api(constants={}, enums=API.enums, handles=API.handles, functions=[], structs={
            "shardrec_in": [size, swigxml.Field("ids", TENSOR), swigxml.Field("reserved", NUMBER)],
            "shardrec_out": [size, swigxml.Field("rank", NUMBER)]})
        facts_of = {"shardrec_in": {"ids": {"SHARDREC_NULLABLE": None}}, "shardrec_out": {"rank": {"SHARDREC_FLAG": None}}}
        takes = function("model_f", model=MODEL, given=swigxml.Type("shardrec_in", ["const"]),
                         out=swigxml.Type("shardrec_out", ["mut"]))
        placed = methods.place(takes, api, {"model": {}, "given": {}, "out": {}}, facts_of)
        self.assertEqual([(a.name, a.kind, a.nullable) for a in placed.args], [("ids", "tensor", True)])
        self.assertEqual([(o.name, o.kind) for o in placed.outs], [("out_rank", "flag")])
        self.assertEqual(placed.raw, "flat_model_f")
        self.refused("begins with struct_size", methods.place, takes, swigxml.Api(
            constants={}, enums={}, handles=API.handles, functions=[],
            structs={name: fields[1:] for name, fields in api.structs.items()}), {"model": {}, "given": {}, "out": {}}, facts_of)

    def test_say_what_is_written_by_hand(self):
        keeps = function("model_f", a=TENSOR)
        self.assertTrue(methods.by_hand(keeps, {"a": {"SHARDREC_KEPT": None}}))
        self.assertFalse(methods.by_hand(keeps, {"a": {}}))
        self.assertTrue(methods.by_hand(function("model_f", out=swigxml.Type("shardrec_tensor", ["mut"])), {"out": {}}))

    def test_of_all_headers_are_read(self):
        declared = sum(path.read_text().count("\nSHARDREC_API ") for path in (ROOT / "capi/include/shardrec").glob("*.h"))
        self.assertEqual(len(headers.annotations(ROOT / "capi/include")), declared)
        self.assertEqual(headers.members(ROOT / "capi/include")["shardrec_batch"]["weights"], {"SHARDREC_NULLABLE": None})


if __name__ == "__main__":
    unittest.main()
