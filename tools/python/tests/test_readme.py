"""Every command of the README and of docs/ runs, and does the same in Python: the numbers of the command with --format json, to the last digit, and the same files."""

import filecmp
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

import podsim
from command_lines import call_of, commands_in

ROOT = pathlib.Path(__file__).resolve().parents[3]
PODSIM = os.environ.get("PODSIM_COMMAND", str(pathlib.Path(podsim.__file__).parents[2] / "podsim"))

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Examples that take longer than this test may, and what runs instead of them. Whatever else the pages show is run.
SMALLER = {
    "podsim tune --machine tpu_v4 --chips 256 --training gpt3-175b --pad": "podsim tune --machine tpu_v5p --chips 4 --training llama3-8b --batch 8 --remat full --pad",
    "podsim tune --machine tpu_v5p --chips 64 --training llama3-70b --batch 64 --remat full --top 3": "podsim tune --machine tpu_v5p --chips 4 --training llama3-8b --batch 4 --remat full --top 3",
    "podsim check --slice 2x4 --mesh data=2,model=4 --hlo workloads/hlo/testdata/tpu_layers.hlo": "podsim check --slice 2x4 --mesh data=2,model=4 --hlo workloads/hlo/testdata/tpu_layers.hlo --structure-only",
    "podsim run --machine tpu_v4 --slice 16x16 --mesh x=16,y=16 --program 'P, L, U = lu(A)' --shape A=65536x65536 --shard A=x,y --block 512 "
    "--precision highest --force --explain": "podsim run --machine tpu_v4 --slice 4x4 --mesh x=4,y=4 --program 'P, L, U = lu(A)' --shape A=8192x8192 --shard A=x,y "
    "--block 512 --precision highest --force --explain",
    "podsim validate": "podsim validate tpu_v5p_ppermute",
    "podsim compare --machine tpu_v4 --slice 16x16,32x8 --gemm m=524288,n=49152,k=12288 --algorithms all --dataflow os,ls,rs --slice-count 1,4,16": "podsim compare "
    "--machine tpu_v4 --slice 4x4,8x2 --gemm m=32768,n=3072,k=768 --algorithms all --dataflow os,ls,rs --slice-count 1,4",
    "podsim tune --machine tpu_v4 --chips 256 --workload gpt3-block -o plan.textproto": "podsim tune --machine tpu_v4 --chips 64 --workload gpt3-block -o plan.textproto",
    "podsim compare --machine tpu_v4 --slice 32x8,16x16 --workload gpt3-block --algorithms collective,meshslice,wang": "podsim compare --machine tpu_v4 --slice 8x2,4x4 "
    "--workload gpt3-block --algorithms collective,meshslice,wang",
}
TABLES = (
    "podsim run --machine tpu_v4 --slice 4x4 --gemm m=4096,n=4096,k=4096 --algorithm collective",
    "podsim check --mesh row=4,col=2 --gemm m=512,n=1024,k=256 --algorithm meshslice --slice-count 4 --edges",
    "podsim compare --machine tpu_v4 --slice 4x4 --gemm m=4096,n=4096,k=4096 --slice-count 1,2,4",
    "podsim compare --machine ideal --slice 4 --hlo workloads/differences/testdata/ring.hlo --algorithm tp-ag-overlapped",
    "podsim tune --machine tpu_v4 --slice 4x4 --gemm m=4096,n=4096,k=4096",
    "podsim tune --machine tpu_v5p --chips 4 --training llama3-8b --batch 4 --remat full --top 3",
    "podsim calibrate validation/datasets/tpu_v5p_ppermute/observations.csv --base tpu_v5p --slice 2x2 --mesh row=4",
    "podsim validate tpu_v5p_ppermute --rows",
    "podsim validate --observations validation/datasets/msccl_h100/observations.csv --machine dgx_h100 --slice 1x8 --explain",
    "podsim show machine --machine tpu_v4",
    "podsim show topology --machine tpu_v4 --slice 4x4x4",
    "podsim show mesh --machine tpu_v4 --slice 2x2x4 --mesh x=4,y=4 --mesh-order jax",
    "podsim show sharding --array 16x16 --mesh x=4,y=2 --spec x,y",
    "podsim show pipeline --schedule 1f1b --stages 4 --microbatches 8",
    "podsim show training llama3-70b --mesh fsdp=64,col=4 --batch-per-device 1 --remat full",
)
OBSERVATIONS = "podsim calibrate validation/datasets/tpu_v5p_ppermute/observations.csv --observations-only"
TOLD_TIMES = re.compile(r"simulated in .*|in [0-9.]+ m?s$|[0-9.]+ CPU s", re.MULTILINE)
# What has words or pictures for people, and no function; sweeps have a test of their own.
BY_COMMAND_ALONE = ("podsim show timeline ", "podsim --version", "podsim help ", "podsim sweep ")
# What two runs of the same thing do not share.
TIMES = re.compile(r'"(wall_s|build_s)": [^,}\n]*,?\s*')


def without_times(text):
    return TIMES.sub("", text)


class Folders:
    """Two folders that look like the root of the repository, one for the command and one for Python, in which this process is meanwhile; and what is written into them."""

    def __enter__(self):
        self.folder, self.before = tempfile.TemporaryDirectory(), os.getcwd()
        self.command, self.python = pathlib.Path(self.folder.name, "command"), pathlib.Path(self.folder.name, "python")
        for side in (self.command, self.python):
            side.mkdir()
            for entry in ROOT.iterdir():
                if entry.is_dir() and not entry.name.startswith((".", "build")):
                    (side / entry.name).symlink_to(entry)
        os.chdir(self.python)
        return self

    def __exit__(self, *_):
        os.chdir(self.before)
        self.folder.cleanup()

    def written(self, side):
        """Every file of one side."""
        tops = [path for path in side.iterdir() if not path.is_symlink()]
        return sorted(path.relative_to(side) for top in tops for path in (top.rglob("*") if top.is_dir() else [top]) if path.is_file())


def as_json(command, verb, keywords):
    """The command that prints JSON, where it can; `-o` of pictures and graphs, and listings, cannot."""
    is_else = verb in ("schedule", "report") or not {"chart", "observations_only"}.isdisjoint(keywords) or keywords.get("output", "").endswith((".svg", ".png", ".dot"))
    return command if is_else or "--format" in command else command + " --format json"


def told_by_python(verb, keywords):
    """What the command prints, by the module."""
    result = getattr(podsim, verb)(**keywords)
    if isinstance(result, str):
        return result
    return str(result) if verb == "schedule" else result.table() if "chart" in keywords else result.json()


class ReadmeInPython(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.folders = self.enterContext(Folders())

    def test_every_example_gives_the_same_json_and_the_same_files(self):
        seen = set()
        for page in PAGES:
            with self.subTest(page.name), Folders() as self.folders:  # of its own: no page lives on what another one writes
                commands = commands_in(page)
                seen.update(commands)
                self.page(commands)
        self.assertGreater(len(seen), 90)
        self.assertLessEqual(set(SMALLER), seen, "an example that takes long is no longer there")

    def page(self, commands):
        alone = set()  # what no function has written
        for command in commands:
            command = SMALLER.get(command, command)
            if command.startswith(BY_COMMAND_ALONE):
                with self.subTest(command):
                    before = set(self.folders.written(self.folders.command))
                    self.printed_by(command)
                    made = set(self.folders.written(self.folders.command)) - before
                    alone |= made
                    for path in made:  # which a function may read
                        if len(path.parts) == 1:
                            (self.folders.python / path).symlink_to(self.folders.command / path)
                continue
            verb, keywords = call_of(command)
            with self.subTest(command, call=f"podsim.{verb}({keywords})"):
                self.same(command, verb, keywords)
        self.same_files(alone)

    def printed_by(self, command):
        done = subprocess.run(command.replace("podsim", PODSIM, 1), shell=True, cwd=self.folders.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def same(self, command, verb, keywords):
        text = as_json(command, verb, keywords)
        with subprocess.Popen(
            text.replace("podsim", PODSIM, 1), shell=True, cwd=self.folders.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            told = told_by_python(verb, keywords)
            printed, errors = process.communicate()
        self.assertEqual(process.returncode, 0, errors)
        if printed:
            self.assertEqual(without_times(told), without_times(printed))
        else:
            self.assertIn("output", keywords)  # the file is compared
            self.assertTrue(told)

    def same_files(self, alone):
        """Later examples read what earlier ones have written."""
        written = [path for path in self.folders.written(self.folders.command) if path not in alone]
        self.assertEqual(self.folders.written(self.folders.python), written)
        for path in written:
            ours, theirs = self.folders.python / path, self.folders.command / path
            if path.suffix == ".json":
                self.assertEqual(without_times(ours.read_text()), without_times(theirs.read_text()), path)
            else:
                self.assertTrue(filecmp.cmp(ours, theirs, shallow=False), f"{path} has other bytes")

    def test_tables_are_what_the_command_prints(self):
        for command in TABLES:
            verb, keywords = call_of(command)
            with self.subTest(command):
                printed = self.printed_by(command)
                result = getattr(podsim, verb)(**keywords)
                self.assertEqual(*(TOLD_TIMES.sub("", text) for text in (result.table(), printed)))
                self.assertEqual(repr(result), f"<podsim.{type(result).__name__}>\n{result.table()}")
                self.assertRegex(result._repr_html_(), "<pre|<svg")

    def test_observations_alone_are_csv(self):
        printed = subprocess.run([PODSIM, *shlex.split(OBSERVATIONS)[1:]], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
        verb, keywords = call_of(OBSERVATIONS)
        self.assertEqual(getattr(podsim, verb)(**keywords), printed)

    def test_the_sweep_stores_and_exports_the_same(self):
        run, export, _ = (command for command in commands_in(ROOT / "docs" / "sweeps.md") if command.startswith("podsim sweep "))
        self.printed_by(run)
        exported = self.printed_by(export)
        store = podsim.sweep(shlex.split(run)[2], store="gemm.sqlite")
        self.assertEqual(store.counts["points"], 594)
        self.assertEqual(store.export("csv"), exported)
        rows = store.rows()
        self.assertEqual([row["point"] for row in rows], [int(line.split(",")[0]) for line in exported.splitlines()[1:]])
        self.assertEqual(store.query("SELECT count(*) AS points FROM results"), [{"points": len(rows)}])
        self.assertEqual(store.status()["points"], 594)


if __name__ == "__main__":
    unittest.main()
