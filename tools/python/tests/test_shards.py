"""Shards of a sweep, merged: the store of one process, or an error that says what does not go together."""

import os
import sqlite3
import tempfile
import unittest

import podsim

SPEC = {"machine": "ideal", "slice": "4", "collective": "all-gather", "axis": "row", "bytes": ["16", "32", "64", "128", "256"], "algorithm": ["ring", "line"]}


class Shards(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def shard(self, index, count, spec=SPEC):
        return podsim.sweep(spec, store=self.path(f"{index}-of-{count}.sqlite"), shard=f"{index}/{count}").path

    def refused(self, kind, message, *arguments, **keywords):
        with self.assertRaises(kind) as raised:
            podsim.merge(*arguments, **keywords)
        self.assertIn(message, str(raised.exception))

    def test_merged_they_are_the_sweep_of_one_process(self):
        alone = podsim.sweep(SPEC, store=self.path("alone.sqlite"))
        for count in (1, 2, 3, 15):
            merged = podsim.merge([self.shard(index, count) for index in range(1, count + 1)], store=self.path(f"all{count}.sqlite"))
            self.assertEqual(merged.counts, {"points": 10, "remaining": 0})
            self.assertEqual(merged.export("csv"), alone.export("csv"))
            self.assertEqual(merged.rows(), alone.rows())

    def test_merged_as_they_finish_they_tell_what_remains(self):
        first, second = self.shard(1, 2), self.shard(2, 2)
        self.assertEqual(podsim.merge([first], store=self.path("all.sqlite")).counts, {"points": 10, "remaining": 5})
        self.assertEqual(podsim.Store(self.path("all.sqlite")).status()["shards"], ["1/2"])
        self.assertEqual(podsim.merge([second], store=self.path("all.sqlite")).counts, {"points": 10, "remaining": 0})
        self.assertEqual(podsim.Store(self.path("all.sqlite")).status()["shards"], [])

    def test_what_is_no_shard_is_told(self):
        none_of_4 = "expected a shard from 1 to 4, found "
        for shard, message in (("0/4", none_of_4 + "0"), ("5/4", none_of_4 + "5"), ("a/b", "expected I/N"), ("", "expected I/N")):
            with self.assertRaises(podsim.InputError) as raised:
                podsim.sweep(SPEC, store=self.path("never.sqlite"), shard=shard)
            self.assertIn(f"shard: {message}", str(raised.exception))
        for shard in (3, (3, 8), 0.375):
            with self.assertRaisesRegex(TypeError, 'shard takes a text'):
                podsim.sweep(SPEC, store=self.path("never.sqlite"), shard=shard)
        self.assertFalse(os.path.exists(self.path("never.sqlite")))
        first = self.shard(1, 2)
        with self.assertRaisesRegex(podsim.InputError, "expected a store for shard 2/2 alone, found one for shard 1/2"):
            podsim.sweep(SPEC, store=first, shard="2/2")

    def test_parts_that_do_not_go_together_are_named(self):
        first, second, store = self.shard(1, 2), self.shard(2, 2), self.path("never.sqlite")
        self.refused(TypeError, "parts takes a list of files", first, store=store)
        self.refused(podsim.InputError, "parts: expected the stores of shards, found none", [], store=store)
        self.refused(podsim.InputError, "is given twice", [first, second, first], store=store)
        self.refused(podsim.InputError, "expected a file of its own", [first, second], store=second)
        self.refused(podsim.InputError, f"{self.path('none.sqlite')}: cannot open the file", [first, self.path("none.sqlite")], store=store)
        other = podsim.sweep({**SPEC, "bytes": "512"}, store=self.path("other.sqlite")).path
        self.refused(podsim.InputError, f"{other}: expected a part of the sweep of {first}", [first, other], store=store)
        self.assertFalse(os.path.exists(store))

    def test_parts_that_disagree_are_both_named_with_the_point(self):
        first = self.shard(1, 2)
        changed = podsim.sweep(SPEC, store=self.path("changed.sqlite")).path
        (row,) = podsim.Store(first).query("SELECT point, key FROM results WHERE status = 'done' ORDER BY point LIMIT 1")
        with sqlite3.connect(changed) as database:
            database.execute("UPDATE runs SET makespan_s = makespan_s * 2 WHERE key = ?", (row["key"],))
        database.close()
        message = f"{changed}: the run of point {row['point']} came to another result than in {first}"
        self.refused(podsim.InputError, message, [first, changed], store=self.path("never.sqlite"))


if __name__ == "__main__":
    unittest.main()
