"""Values of Python in sweeps, and results as values of Python."""

import copy
import pickle
import tempfile
import unittest

import podsim

PRODUCT = {"machine": "tpu_v4", "slice": "4x4", "gemm": (1024, 1024, 1024), "algorithm": "meshslice"}
REDUCED = {"machine": "tpu_v4", "slice": "4x4", "mesh": {"row": 4, "col": 4}, "collective": "all-reduce", "bytes": 1 << 20, "algorithm": "ring"}


class Sweeps(unittest.TestCase):
    def rows(self, spec):
        with tempfile.TemporaryDirectory() as folder:
            return podsim.sweep(spec, store=f"{folder}/store.sqlite").rows()

    def test_numbers_and_flags_are_values(self):
        rows = self.rows({**PRODUCT, "slice_count": range(1, 3), "prefetch": [1, 2], "pad": True})
        self.assertEqual([(row["slice_count"], row["prefetch"]) for row in rows], [(1, 1), (1, 2), (2, 1), (2, 2)])
        for row in rows:
            self.assertEqual(row["makespan_s"], podsim.run(**PRODUCT, slice_count=row["slice_count"], prefetch=row["prefetch"], pad=True).makespan_s)

    def test_a_tuple_of_axes_is_one_value_and_a_list_has_several(self):
        joint = podsim.run(**REDUCED, axis=("row", "col")).makespan_s
        for axis in (("row", "col"), [("row", "col")], "row,col"):
            with self.subTest(axis):
                self.assertEqual([row["makespan_s"] for row in self.rows({**REDUCED, "axis": axis})], [joint])
        self.assertEqual([row["axis"] for row in self.rows({**REDUCED, "axis": ["row", "col"]})], ["row", "col"])

    def test_parts_of_one_value_stand_together(self):
        self.assertIn('fail: ["0.0-0.1; 1.0-1.1"]', podsim.sweep_text({**PRODUCT, "fail": ("0.0-0.1", "1.0-1.1")}))
        self.assertIn('shape: ["A=4x4; B=4x8"]', podsim.sweep_text({"shape": {"A": (4, 4), "B": (4, 8)}}))

    def test_values_of_another_type_name_their_field(self):
        for name, value in (("slice_count", "4"), ("slice_count", None), ("slice_count", 2.5), ("slice_count", True), ("pad", 1), ("axis", {"a": 1})):
            with self.subTest(name, value=value), self.assertRaisesRegex(TypeError, f"^{name} takes "):
                podsim.sweep_text({**PRODUCT, name: value})


class Results(unittest.TestCase):
    def test_are_mappings_of_their_keys(self):
        result = podsim.run(**PRODUCT, slice_count=2)
        self.assertIn("makespan_s", result)
        self.assertNotIn("nonsense", result)
        self.assertEqual(dict(result), result.to_dict())

    def test_plans_that_were_found_pickle_and_copy(self):
        best = podsim.tune("tpu_v4", slice="4x4", gemm=(4096, 4096, 4096)).best
        for again in (pickle.loads(pickle.dumps(best)), copy.copy(best), copy.deepcopy(best)):
            self.assertEqual(again.to_dict(), best.to_dict())


class Shifts(unittest.TestCase):
    def test_to_where_they_begin_are_refused(self):
        for by in (0, 4, -8):
            b = podsim.Builder({"ring": 4})
            with self.subTest(by), self.assertRaisesRegex(podsim.InputError, "moves nothing"):
                b.shift("ring", by, b.input("X", (4,), ["ring"]), b.output("Y", (4,), ["ring"]))


if __name__ == "__main__":
    unittest.main()
