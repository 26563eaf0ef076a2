"""What people get wrong in Python ends in an exception that names the argument: never in a crash, a hang or a message about options of a command line.

All mistakes are made in one process, which works as well afterwards as before.
"""

import datetime
import decimal
import gc
import pathlib
import pickle
import re
import sys
import tempfile
import unittest

import numpy as np

import podsim

PRODUCT = {"machine": "tpu_v4", "slice": (4, 4), "gemm": (1024, 1024, 1024), "algorithm": "collective"}
GATHER = {"machine": "tpu_v4", "slice": (4, 4), "collective": "all-gather", "axis": "row", "bytes": "1MiB"}
SPEC = {"machine": "tpu_v4", "slice": "4x4", "collective": "all-gather", "axis": "row", "bytes": "1KiB"}
# 17 million task instances: some seconds, if nobody ends it.
LONG = {"machine": "tpu_v4", "slice": (64, 64), "gemm": (524288, 65536, 65536), "algorithm": "meshslice", "slice_count": 64, "fold": "off", "force": True}

# Of messages for people who write Python.
OF_A_COMMAND_LINE = re.compile(r"(?<![\w\"'-])--[a-z]|`|podsim: error|equal sign|incompatible function arguments")


class Odd:
    def __repr__(self):
        return "<odd>"


class Unprintable:
    def __repr__(self):
        raise LookupError("no text")


class BytesPath:
    def __fspath__(self):
        return b"tpu_v4"


def endless():
    while True:
        yield 1


def nested():
    values = []
    values.append(values)
    return values


def setUpModule():
    global before
    before = podsim.run(**PRODUCT).makespan_s


def tearDownModule():
    assert podsim.run(**PRODUCT).makespan_s == before, "after all mistakes the process no longer works as before"
    print(f"{Refused.mistakes} mistakes were made", file=sys.stderr)


class Refused(unittest.TestCase):
    mistakes = 0

    def refused(self, call, error, *words, argument=None):
        """That a call raises exactly this error, with these words, and blames this argument."""
        with self.assertRaises(BaseException) as raised:
            call()
        Refused.mistakes += 1
        found = raised.exception
        told = f"{type(found).__name__}: {str(found)[:400]}"
        self.assertIs(type(found), error, told)
        self.assertNotRegex(str(found), OF_A_COMMAND_LINE)
        self.assertLess(len(str(found)), 3000)
        for word in words:
            self.assertIn(word, str(found), told)
        if argument is not None:
            self.assertEqual(found.argument, argument, told)

    def all_refused(self, verb, usual, cases, error):
        """Of keywords with a value each: words of the message."""
        for keywords, *words in cases:
            with self.subTest(verb.__name__, **{name: type(value).__name__ + " " + ascii(value)[:80] for name, value in keywords.items()}):
                self.refused(lambda: verb(**{**usual, **keywords}), error, *words)


VERBS = (
    "run",
    "check",
    "compare",
    "tune",
    "calibrate",
    "validate",
    "diff",
    "schedule",
    "show_machine",
    "show_topology",
    "show_mesh",
    "show_plan",
    "show_program",
    "show_sharding",
    "show_training",
    "show_pipeline",
    "show_hlo",
)


class Keywords(Refused):
    def test_a_keyword_that_there_is_not(self):
        for verb in VERBS:
            with self.subTest(verb):
                self.refused(lambda: getattr(podsim, verb)(outputt="x"), TypeError, f"{verb}()", "'outputt'", "did you mean 'output'")

    def test_a_keyword_of_another_verb_or_of_the_terminal(self):
        for verb, name in (
            ("run", "exhaustive"),
            ("tune", "algorithm_"),
            ("show_mesh", "gemm"),
            ("check", "trace"),
            ("run", "format"),
            ("run", "quiet"),
            ("run", "help"),
            ("validate", "collective"),
            ("show_sharding", "gemm"),
            ("run", "slice-count"),
            ("run", "--slice"),
        ):
            with self.subTest(verb, name=name):
                self.refused(lambda: getattr(podsim, verb)(**{name: 1}), TypeError, f"{verb}()", repr(name)[1:-1].lstrip("-"))

    def test_words_of_python_have_an_underscore(self):
        self.refused(lambda: podsim.run(**PRODUCT, **{"pass": "both"}), TypeError, "'pass'", "'pass_'")
        self.refused(lambda: podsim.calibrate("x.csv", **{"from": "csv"}), TypeError, "'from'", "'from_'")

    def test_more_positions_than_there_are(self):
        for call in (
            lambda: podsim.run("tpu_v4", "4x4"),
            lambda: podsim.check("tpu_v4", "4x4"),
            lambda: podsim.compare("tpu_v4", "tpu_v5p"),
            lambda: podsim.tune("tpu_v4", 64),
            lambda: podsim.schedule("tpu_v4", 4),
            lambda: podsim.diff("a", "b"),
            lambda: podsim.calibrate("a.csv", "b.csv"),
            lambda: podsim.show_sharding((16, 16)),
            lambda: podsim.machine("tpu_v4", {}, {}),
            lambda: podsim.machine(),
            lambda: podsim.sweep(SPEC, "x.sqlite"),
            lambda: podsim.merge(["a"], "b"),
        ):
            self.refused(call, TypeError)

    def test_one_thing_given_twice(self):
        self.refused(lambda: podsim.run("tpu_v4", **PRODUCT), TypeError, "machine", "twice")
        schedule = podsim.schedule(**PRODUCT)
        self.refused(lambda: podsim.run(schedule, schedule=schedule), TypeError, "schedule", "twice")

    def test_no_subject(self):
        for subject in (1, 1.5, b"tpu_v4", {"machine": "tpu_v4"}, Odd(), podsim, podsim.Machine, np.zeros(3), {1, 2}, True):
            with self.subTest(ascii(subject)):
                self.refused(lambda: podsim.run(subject, slice="4x4"), TypeError, "machine")


class Types(Refused):
    """Values of types that no keyword takes."""

    def test_what_is_no_text_number_or_list(self):
        values = (
            b"16",
            bytearray(b"16"),
            memoryview(b"16"),
            Odd(),
            Unprintable(),
            1j,
            {1, 2},
            frozenset({"x"}),
            endless(),
            lambda: 1,
            ...,
            int,
            [b"x"],
            [None],
            [Odd()],
            {1: 2},
            {"row=4,col": 4},
            {"a": None},
            {"a": b"x"},
            {"a": Odd()},
            datetime.date(2026, 1, 1),
            decimal.Decimal("1.5"),
            BytesPath(),
            [[[1]]],
            iter([1]),
            zip([1], [2]),
            nested(),
            NotImplemented,
            range,
        )
        for name in (
            "machine",
            "slice",
            "mesh",
            "gemm",
            "algorithm",
            "slice_count",
            "engine",
            "set",
            "topology",
            "fail",
            "workload",
            "plan",
            "threads",
            "output",
            "devices",
            "trace",
        ):
            for value in values:
                with self.subTest(name, value=type(value).__name__):
                    self.refused(lambda: podsim.run(**{**PRODUCT, name: value}), TypeError, name)

    def test_a_truth_value_where_there_is_none(self):
        cases = [({name: value}, name) for name in ("slice", "mesh", "gemm", "bytes", "seed", "machine", "engine") for value in (True, False, np.bool_(True))]
        self.all_refused(podsim.run, GATHER, cases, TypeError)

    def test_anything_but_a_truth_value(self):
        cases = [({name: value}, name, "True or False") for name in ("force", "explain", "pad") for value in (1, 0, "yes", "", [], Odd(), 1.0, b"")]
        self.all_refused(podsim.run, PRODUCT, cases, TypeError)

    def test_numbers_where_files_stand(self):
        cases = [
            ({name: value}, name)
            for name in ("machine", "output", "plan", "schedule", "trace", "scenario", "workload", "program", "hlo")
            for value in (0, 1.5, float("nan"), 10**30, np.int64(3))
        ]
        self.all_refused(podsim.run, {"slice": "4x4"}, cases, TypeError)

    def test_dicts_where_there_are_no_pairs(self):
        cases = [({name: {"a": 1}}, name) for name in ("machine", "slice", "engine", "topology", "collective", "bytes", "seed", "devices")]
        self.all_refused(podsim.run, GATHER, cases, TypeError)

    def test_progress_that_cannot_be_called(self):
        for verb in (podsim.run, podsim.check, podsim.compare):
            self.refused(lambda: verb(**PRODUCT, progress="bar"), TypeError, "progress")
        self.refused(lambda: podsim.sweep(SPEC, store="/tmp/x.sqlite", progress=3), TypeError, "progress")


class Values(Refused):
    """Values of the right type."""

    def inputs_refused(self, verb, usual, cases):
        self.all_refused(verb, usual, cases, podsim.InputError)

    def test_numbers(self):
        self.inputs_refused(
            podsim.run,
            GATHER,
            [
                ({"slice": (0, 4)}, "slice"),
                ({"slice": (-4, 4)}, "slice"),
                ({"slice": (10**30, 4)}, "slice"),
                ({"slice": (1 << 31, 1 << 31)}, "slice"),
                ({"slice": ()}, "slice"),
                ({"slice": (2, 2, 2, 2, 2)}, "slice"),
                ({"slice": 10**4000}, "slice"),
                ({"bytes": -1}, "bytes"),
                ({"bytes": 10**30}, "bytes"),
                ({"bytes": 1.5}, "bytes"),
                ({"bytes": float("nan")}, "bytes"),
                ({"bytes": float("inf")}, "bytes"),
                ({"threads": -1}, "threads"),
                ({"threads": 10**9}, "threads"),
                ({"seed": -1}, "seed"),
                ({"seed": 2**64}, "seed"),
                ({"root": 99}, "root"),
                ({"pods": 0}, "pods"),
                ({"devices": [0, 0]}, "devices"),
                ({"devices": [99]}, "devices"),
                ({"devices": [-1]}, "devices"),
                ({"devices": []}, "devices"),
                ({"chunks": 0}, "chunks"),
                ({"shift": 0.5}, "shift"),
            ],
        )
        self.inputs_refused(
            podsim.run,
            PRODUCT,
            [
                ({"gemm": (0, 1, 1)}, "gemm"),
                ({"gemm": (-1, 1, 1)}, "gemm"),
                ({"gemm": (1024, 1024)}, "gemm", "2 entries"),
                ({"gemm": (1, 2, 3, 4, 5)}, "gemm", "5 entries"),
                ({"gemm": (1024, 1024, 1024, "f99")}, "gemm", "f99"),
                ({"gemm": {"m": 1024, "n": 1024}}, "gemm", "k"),
                ({"gemm": {"m": 1, "n": 1, "k": 1, "x": 1}}, "gemm", "x"),
                ({"gemm": (2**62, 2**62, 2**62)}, "gemm"),
                ({"gemm": (1024.5, 1024, 1024)}, "gemm"),
                ({"gemm": (float("nan"),) * 3}, "gemm"),
                ({"gemm": (10**30,) * 3}, "gemm"),
                ({"gemm": ()}, "gemm"),
                ({"gemm": ""}, "gemm"),
                ({"gemm": "m=1,n=1"}, "gemm"),
                ({"gemm": (1001, 1024, 1024)}, "1001"),
                ({"algorithm": "meshslice"}, "slice_count"),
                ({"algorithm": "meshslice", "slice_count": 0}, "slice_count"),
                ({"algorithm": "meshslice", "slice_count": 10**12}, "slice_count"),
                ({"algorithm": "meshslice", "slice_count": [2, 4]}, "slice_count"),
                ({"slice_count": 2}, "slice_count"),
                ({"block": 0, "algorithm": "meshslice", "slice_count": 2}, "block"),
            ],
        )

    def test_names_and_near_ones(self):
        for keywords, near in (
            ({"machine": "tpu_v44"}, "tpu_v4"),
            ({"algorithm": "meshslize"}, "meshslice"),
            ({"engine": "dez"}, None),
            ({"dataflow": "ox"}, None),
            ({"topology": "torsu"}, "torus"),
            ({"fold": "on"}, None),
            ({"wrap": "q"}, None),
            ({"dtype": "f12"}, None),
            ({"precision": "jaxx"}, None),
        ):
            usual = PRODUCT if "dtype" not in keywords else {"machine": "ideal", "slice": "4", "program": "C = A @ B", "shape": {"A": (8, 8), "B": (8, 8)}}
            with self.subTest(**keywords), self.assertRaises(podsim.InputError) as raised:
                podsim.run(**{**usual, **keywords})
            self.assertIn(*keywords.values(), str(raised.exception))
            if near is not None:
                self.assertIn(near, str(raised.exception))
        self.inputs_refused(
            podsim.run, GATHER, [({"collective": "all-gathr"}, "all-gathr", "all-gather"), ({"axis": "rwo"}, "rwo"), ({"axis": ["row", "row"]}, "row")]
        )

    def test_the_nearest_name_is_told_as_data(self):
        with self.assertRaises(podsim.InputError) as raised:
            podsim.machine("tpu_v4", {"link.bandwith": "45GB/s"})
        self.assertEqual(raised.exception.argument, "set")
        self.assertIn("link.bandwidth", raised.exception.nearest)

    def test_units(self):
        for path, value in (
            ("link.bandwidth", "45"),
            ("link.bandwidth", 45),
            ("link.bandwidth", "45 GB"),
            ("link.bandwidth", "-45GB/s"),
            ("link.bandwidth", "nan GB/s"),
            ("link.bandwidth", "45GiB/s/s"),
            ("link.latency", "1"),
            ("link.latency", "1 kg"),
            ("chip.peak", "275T"),
            ("chip.hbm_bandwidth", ""),
            ("link.bandwidth", "45 Gb/s"),
        ):
            with self.subTest(path, value=value):
                self.refused(lambda: podsim.machine("tpu_v4", {path: value}), podsim.InputError, path, argument="set")
                self.refused(lambda: podsim.run(**PRODUCT, set={path: value}), podsim.InputError, "set")
        self.inputs_refused(podsim.run, GATHER, [({"bytes": "1 MB/s"}, "bytes"), ({"bytes": "1MiBs"}, "bytes"), ({"bytes": "one"}, "bytes")])

    def test_meshes_that_do_not_fit(self):
        self.inputs_refused(
            podsim.run,
            PRODUCT,
            [
                ({"mesh": {"row": 4, "col": 5}}, "mesh"),
                ({"mesh": {"row": 32, "col": 8}}, "mesh"),
                ({"mesh": {"row": 16}}, "row", "col"),
                ({"mesh": {"row": 4, "row ": 4}}, "row"),
                ({"mesh": {"row": 0, "col": 4}}, "mesh"),
                ({"mesh": {"row": -4, "col": -4}}, "mesh"),
                ({"mesh": {"": 16}}, "mesh"),
                ({"mesh": {"row": 4.5, "col": 4}}, "mesh"),
                ({"mesh": {"row": "four", "col": 4}}, "mesh"),
                ({"mesh": "row"}, "mesh"),
                ({"mesh": "row=4;col=4"}, "mesh"),
                ({"mesh": []}, "mesh"),
                ({"mesh": {}}, "mesh"),
                ({"mesh": {"row": 10**20, "col": 4}}, "mesh"),
                ({"mesh": {"row\0": 4, "col": 4}}, "row"),
                ({"slice": (8, 8), "mesh": {"row": 4, "col": 4}}, "mesh"),
            ],
        )

    def test_what_goes_not_together(self):
        self.inputs_refused(
            podsim.run,
            PRODUCT,
            [
                ({"collective": "all-gather"}, "gemm", "collective"),
                ({"workload": "gpt3-block"}, "gemm", "workload"),
                ({"bytes": "1KiB"}, "bytes"),
                ({"root": 1}, "root"),
            ],
        )
        for nothing in ({}, {"machine": "tpu_v4"}, {"slice": "4x4"}, {"machine": "tpu_v4", "slice": "4x4"}):
            with self.subTest(**nothing):
                self.refused(lambda: podsim.run(**nothing), podsim.InputError)

    def test_hostile_texts(self):
        texts = (
            "",
            " ",
            "\0",
            "a\0b",
            "\n",
            "--help",
            "-o",
            "--machine=ideal",
            "%s%n%x",
            "$(reboot)",
            "'; DROP TABLE",
            "\ud800",
            "tpu_v4\udfff",
            "\U0001f600" * 50,
            "x" * 10_000_000,
            "../" * 500,
            "=" * 1000,
            "," * 1000,
            "\x1b[2J",
            "４x４",
            "row=4,row=4",
            "4x4,4x4",
        )
        for name in ("machine", "slice", "mesh", "gemm", "algorithm", "engine", "topology"):
            for text in texts:
                with self.subTest(name, text=ascii(text)[:30]):
                    self.refused(lambda: podsim.run(**{**PRODUCT, name: text}), podsim.InputError)

    def test_programs(self):
        usual = {"mesh": {"x": 4, "y": 2}, "program": "C = A @ B", "shape": {"A": (48, 24), "B": (24, 96)}}
        self.inputs_refused(
            podsim.check,
            usual,
            [
                ({"program": "C = A @@ B"}, "program"),
                ({"program": "C = "}, "program"),
                ({"program": "C = A @ D"}, "D"),
                ({"program": "(" * 10000}, "program"),
                ({"shape": {"A": (48, 24)}}, "B"),
                ({"shape": {"A": (48, 25), "B": (24, 96)}}, "48x25"),
                ({"shape": {"A": (0, 24), "B": (24, 96)}}, "shape"),
                ({"shard": {"A": ("z", None)}}, "z"),
                ({"shard": {"A": ("x", "y", None)}}, "shard"),
                ({"shard": {"Q": ("x", None)}}, "Q"),
                ({"shard": {"A": ("x", "x")}}, "x"),
                ({"out": {"C": "x,z"}}, "z"),
                ({"out": {"Z": ("x", "y")}}, "Z"),
                ({"shape": {}}, "A"),
                ({"data": "zeros"}, "data", "zeros"),
            ],
        )
        for keywords in (
            {"shard": {"A": (1, 2)}},
            {"shape": {"A": (48, None)}},
            {"shape": {"A": 48.5j}},
            {"shard": {"A": (("x", 3), None)}},
            {"shape": {3: (4, 4)}},
        ):
            with self.subTest(**keywords):
                self.refused(lambda: podsim.check(**{**usual, **keywords}), TypeError, *keywords)

    def test_drawings_and_tables(self):
        for call, word in (
            (lambda: podsim.show_sharding(array=(16, 16), mesh={"x": 4}, spec=("q",)), "q"),
            (lambda: podsim.show_sharding(array=(16,), mesh={"x": 4}, spec=("x", "x")), "x"),
            (lambda: podsim.show_sharding(), "array"),
            (lambda: podsim.show_mesh("tpu_v4"), "slice"),
            (lambda: podsim.show_topology("tpu_v9", slice="4x4"), "tpu_v9"),
            (lambda: podsim.show_pipeline(schedule="2f2b", stages=4, microbatches=8), "2f2b"),
            (lambda: podsim.show_pipeline(schedule="1f1b", stages=0, microbatches=8), "stages"),
            (lambda: podsim.show_training("llama9"), "llama9"),
            (lambda: podsim.show_plan(), "plan"),
            (lambda: podsim.show_hlo(), "hlo"),
            (lambda: podsim.show_machine("tpu_v4", set={"x.y": 1}), "x.y"),
            (lambda: podsim.tune("tpu_v4", chips=0, workload="gpt3-block"), "chips"),
            (lambda: podsim.tune("tpu_v4", chips=64, workload="gpt9"), "gpt9"),
            (lambda: podsim.tune("tpu_v4", workload="gpt3-block"), "chips"),
            (lambda: podsim.compare("tpu_v4", slice="4x4", gemm=(64, 64, 64), vary={"link.nothing": ["1GB/s"]}), "link.nothing"),
            (lambda: podsim.compare("tpu_v4", slice="4x4", gemm=(64, 64, 64), algorithms=["collective", "no"]), "no"),
        ):
            with self.subTest(word):
                self.refused(call, podsim.InputError, word)


class Files(Refused):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "empty").write_bytes(b"")
        (cls.folder / "junk").write_bytes(bytes(range(256)) * 40)
        (cls.folder / "words.textproto").write_text("format_version: 1\nnonsense: 3\n")
        (cls.folder / "newer.textproto").write_text("format_version: 99\n")

    def test_files_that_are_none(self):
        readers = {
            "machine": podsim.machine,
            "Schedule": podsim.Schedule,
            "Plan": podsim.Plan,
            "schedule": lambda path: podsim.run(**{**GATHER, "collective": None, "axis": None, "bytes": None}, schedule=path),
            "plan": lambda path: podsim.run(plan=path),
            "hlo": lambda path: podsim.run(machine="tpu_v4", slice="4x4", hlo=path),
            "program": lambda path: podsim.check(mesh={"x": 4}, program=path),
            "observations": lambda path: podsim.calibrate(path, base="dgx_h100", slice="1x8"),
            "measured": lambda path: podsim.diff(measured=path, plan=path),
            "scenario": lambda path: podsim.run(scenario=path),
            "sweep": lambda path: podsim.sweep(path, store=self.folder / "never.sqlite"),
        }
        for name, reader in readers.items():
            for file in ("missing", "missing/folder/file", ".", "empty", "junk", "words.textproto", "newer.textproto"):
                with self.subTest(name, file=file):
                    self.refused(lambda: reader(self.folder / file), podsim.InputError)

    def test_a_file_says_where(self):
        with self.assertRaises(podsim.InputError) as raised:
            podsim.Schedule(self.folder / "words.textproto")
        error = raised.exception
        self.assertEqual((error.file, error.line), (str(self.folder / "words.textproto"), 2))
        self.assertIn("nonsense", error.message)
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(again), again.file, again.line, again.column, again.nearest), (str(error), error.file, error.line, error.column, error.nearest))

    def test_files_that_are_not_utf8(self):
        observations = self.folder / "latin1.csv"
        observations.write_bytes(b"op,devices,bytes,seconds,axis,dtype,source\nall-gather,4,65536,-1,row,bf16,caf\xe9\nall-g\xe9ther,4,65536,4e-6,row,bf16,x\n")
        self.refused(lambda: podsim.calibrate(observations, observations_only=True), podsim.InputError, "latin1.csv")
        schedule = self.folder / "latin1.textproto"
        schedule.write_bytes(b'format_version: 1 name: "caf\xe9" nonsense\n')
        self.refused(lambda: podsim.Schedule(schedule), podsim.InputError, "latin1.textproto")
        source = self.folder / "source.csv"
        source.write_bytes(b"op,devices,bytes,seconds,axis,dtype,source\nall-gather,4,65536,4.18e-6,row,bf16,caf\xe9\n")
        with self.assertRaises(podsim.InputError) as raised:
            podsim.calibrate(source, observations_only=True)
        self.assertEqual((raised.exception.file, raised.exception.line, raised.exception.column), (str(source), 2, 40))
        log = self.folder / "nccl.txt"  # a line of another program, which nothing is read from
        log.write_bytes(b"# caf\xe9\n" + (pathlib.Path(__file__).resolve().parents[3] / "tests/golden/input/nccl.txt").read_bytes())
        podsim.calibrate(log, from_="nccl-tests", observations_only=True)

    def test_files_that_cannot_be_written(self):
        for path in (self.folder, self.folder / "no" / "folder" / "x.json", "\0", self.folder / ("x" * 300)):
            with self.subTest(ascii(str(path))[-40:]):
                self.refused(lambda: podsim.run(**PRODUCT, output=path), podsim.InputError)
        self.refused(lambda: podsim.run(**PRODUCT, trace=self.folder / "trace.txt"), podsim.InputError, "trace")
        self.refused(lambda: podsim.machine("tpu_v4").save(self.folder / "no" / "x.textproto"), FileNotFoundError)

    def test_an_output_is_no_input(self):
        path = self.folder / "s.textproto"
        podsim.schedule(**PRODUCT).save(path)
        self.refused(lambda: podsim.run("tpu_v4", slice=(4, 4), schedule=path, output=path), podsim.InputError, "s.textproto")

    def test_texts_of_machines_schedules_and_plans(self):
        for kind in (podsim.Machine, podsim.Schedule, podsim.Plan):
            for text in ("", "nonsense", "\0", "{" * 10000, "name: 3", "\ud800"):
                with self.subTest(kind.__name__, text=ascii(text)[:20]):
                    self.refused(lambda: kind.from_text(text), podsim.InputError)
            for text in (None, 3, ["name"], Odd()):
                self.refused(lambda: kind.from_text(text), TypeError, "text")
            for path in (None, 3, [], b"x", Odd(), BytesPath()):
                self.refused(lambda: kind(path), TypeError)

    def test_sweeps(self):
        store = self.folder / "never.sqlite"
        for spec in ({**SPEC, "nothing": 1}, {**SPEC, "machine": b"x"}, {**SPEC, "bytes": [Odd()]}, 3, None, b"spec", {"machine": {1, 2}}):
            with self.subTest(ascii(spec)[-40:]):
                self.refused(lambda: podsim.sweep(spec, store=store), TypeError)
        for spec in (
            {},
            [],
            {**SPEC, "machine": "tpu_v9"},
            {**SPEC, "bytes": "much"},
            {**SPEC, "slice": "\0"},
            {**SPEC, "machine": podsim.machine("tpu_v4", {"link.bandwidth": "1GB/s"})},
            self.folder / "missing.textproto",
        ):
            with self.subTest(ascii(spec)[-40:]):
                self.refused(lambda: podsim.sweep(spec, store=store), podsim.InputError)
        self.refused(lambda: podsim.sweep(SPEC), podsim.InputError, argument="store")
        for shard in ("0/4", "5/4", "a/b", "1", "1/0"):
            self.refused(lambda: podsim.sweep(SPEC, store=store, shard=shard), podsim.InputError, argument="shard")
        for shard in (3, (1, 4), b"1/4"):
            self.refused(lambda: podsim.sweep(SPEC, store=store, shard=shard), TypeError, "shard")
        for threads in ("four", 1.5, None, b"1"):
            self.refused(lambda: podsim.sweep(SPEC, store=store, threads=threads), TypeError, "threads")
        for threads in (-1, 10**9, 10**30):
            self.refused(lambda: podsim.sweep(SPEC, store=store, threads=threads), podsim.InputError, argument="threads")
        for other in (3, b"x", [], Odd()):
            self.refused(lambda: podsim.sweep(SPEC, store=other), TypeError, "store")
        self.refused(lambda: podsim.sweep(SPEC, store=self.folder / "junk"), podsim.InputError, "junk")
        self.refused(lambda: podsim.Store(self.folder / "missing.sqlite").rows(), podsim.InputError, "missing.sqlite")
        for client in (3, "tcp://localhost:8786", Odd()):
            self.refused(lambda: podsim.sweep(SPEC, store=store, client=client), TypeError, "client")
            self.refused(lambda: podsim.tune("tpu_v4", chips=4, workload="gpt3-block", client=client), TypeError, "client")
        self.assertEqual(list(self.folder.glob("never.sqlite*")), [], "a mistake leaves no store behind")
        whole = podsim.sweep(SPEC, store=self.folder / "whole.sqlite")
        for sql in ("DROP TABLE results", "SELECT nothing FROM results", "", "SELECT 1; SELECT 2", "'", "\0", "ATTACH 'x' AS y"):
            with self.subTest(sql):
                self.refused(lambda: whole.query(sql), podsim.InputError)
        for sql in (3, None, b"SELECT 1", ["SELECT 1"]):
            self.refused(lambda: whole.query(sql), TypeError, "query")
        self.refused(lambda: whole.export("xml"), podsim.InputError, "xml", argument="export")
        self.assertEqual(len(whole.rows()), 1)
        self.refused(lambda: podsim.merge([], store=store), podsim.InputError, argument="parts")
        self.refused(lambda: podsim.merge([self.folder / "missing.sqlite"], store=store), podsim.InputError, "missing.sqlite")
        for parts in (3, None, [3], "part.sqlite"):
            self.refused(lambda: podsim.merge(parts, store=store), TypeError, "parts")


class Results(Refused):
    def test_names_that_a_result_has_not(self):
        run = podsim.run(**PRODUCT)
        self.refused(lambda: run.makespan, AttributeError, "'makespan'", "makespan_s")
        self.refused(lambda: run["makespan"], KeyError, "makespan")
        self.refused(lambda: podsim.compare(**PRODUCT).best_of_all, AttributeError, "rows")
        self.refused(lambda: podsim.compare(**PRODUCT)[7], IndexError)
        self.refused(lambda: podsim.Machine("tpu_v4").link, AttributeError, "link")

    def test_times_are_not_written(self):
        timeline = podsim.run(**PRODUCT).timeline()
        for view in (timeline.start_ps, timeline.sent_ps):
            self.refused(lambda: view.__setitem__(0, 1), ValueError, "read-only")
            self.refused(lambda: view.setflags(write=True), ValueError)

    def test_a_result_outlives_its_machine(self):
        machine = podsim.machine("tpu_v4", {"link.bandwidth": "45GB/s"})
        run = podsim.run(machine, slice=(4, 4), gemm=(1024, 1024, 1024), algorithm="collective", fold="off")
        told, ends = run.json(), run.timeline().end_ps.copy()
        timeline = run.timeline()
        del machine
        gc.collect()
        self.assertEqual(run.json(), told)
        self.assertEqual(run.device_order().shape, (4, 4))
        del run
        gc.collect()
        self.assertTrue((timeline.end_ps == ends).all())
        self.assertEqual(timeline.start_ps.min(), 0)

    def test_what_a_pickled_result_does_not_keep(self):
        run = pickle.loads(pickle.dumps(podsim.run(**PRODUCT)))
        for call in (run.timeline, run.device_order, run.csv):
            self.refused(call, ValueError, "pickled")
        tuning = pickle.loads(pickle.dumps(podsim.tune("tpu_v4", slice=(4, 4), gemm=(4096, 4096, 4096))))
        self.refused(lambda: tuning.best.plan, ValueError, "pickled")

    def test_pickles_of_something_else(self):
        for kind in (podsim._core.Machine, podsim._core.Schedule, podsim._core.Plan):
            for state in ((), (3,), ("nonsense",), (b"nonsense",), None, 3):
                with self.subTest(kind.__name__, state=state), self.assertRaises((TypeError, ValueError, IndexError, RuntimeError)):
                    kind.__new__(kind).__setstate__(state)

    def test_handles_of_the_simulator_are_not_made_by_hand(self):
        for kind in (podsim._core.Machine, podsim._core.Schedule, podsim._core.Plan, podsim._core.RunAnswer, podsim._core.Timeline):
            self.refused(kind, TypeError, "No constructor")


class Callbacks(Refused):
    def test_what_a_callback_raises_ends_the_run(self):
        for error in (LookupError("mine"), podsim.InputError("mine"), SystemExit("mine"), KeyboardInterrupt("mine")):

            def fail(_, error=error):
                raise error

            with self.subTest(type(error).__name__), self.assertRaisesRegex(
                type(error) if not isinstance(error, KeyboardInterrupt) else KeyboardInterrupt, "mine|interrupted"
            ):
                podsim.run(**LONG, progress=fail)

    def test_a_callback_takes_one_text(self):
        self.refused(lambda: podsim.run(**LONG, progress=lambda: None), TypeError, "positional argument")

    def test_what_is_passed_to_the_module_raises_its_own_errors(self):
        class Path:
            def __fspath__(self):
                raise LookupError("mine")

        self.refused(lambda: podsim.run(**{**PRODUCT, "output": Path()}), LookupError, "mine")


if __name__ == "__main__":
    unittest.main()
