"""The type stubs name the keywords that the verbs take, and the verbs' help says what each is."""

import ast
import contextlib
import importlib.util
import inspect
import io
import pathlib
import pydoc
import unittest

import podsim
from podsim._help import VERBS, command_of
from podsim._words import options

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "scripts" / "make_stubs.py"


def make_stubs():
    spec = importlib.util.spec_from_file_location("make_stubs", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Stubs(unittest.TestCase):
    def test_the_committed_stubs_are_what_the_script_writes(self):
        script = make_stubs()
        self.assertEqual(script.STUBS.read_text(encoding="utf-8"), script.stubs(), f"run {SCRIPT}")

    def test_they_are_python_and_name_every_keyword_once(self):
        functions = {node.name: node for node in ast.parse(make_stubs().STUBS.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)}
        for verb in VERBS:
            names = [each.arg for each in [*functions[verb].args.posonlyargs, *functions[verb].args.args, *functions[verb].args.kwonlyargs]]
            self.assertEqual(len(names), len(set(names)), verb)
            self.assertLessEqual(set(options(*command_of(verb))), set(names), verb)

    def test_whatever_the_module_exports_is_there(self):
        for name in podsim.__all__:
            self.assertIsNotNone(getattr(podsim, name))
        self.assertEqual(len(podsim.__all__), len(set(podsim.__all__)))


class Help(unittest.TestCase):
    def test_help_of_a_verb_lists_its_keywords(self):
        for verb in VERBS:
            text = pydoc.plain(pydoc.render_doc(getattr(podsim, verb)))
            for option in options(*command_of(verb)).values():
                self.assertIn(f"{option.name}: ", text, verb)
            self.assertNotRegex(text, r"(?<![\w\"'-])--[a-z]", verb)

    def test_help_says_shapes_and_units(self):
        for kind, words in ((podsim.Run, ("makespan_s", "seconds")), (podsim.Timeline, ("start_ps", "picoseconds", "views")), (podsim.Timeline.to_numpy, ("structured", "copy")),
                            (podsim.Run.device_order, ("shape of the mesh",)), (podsim.machine, ("link.bandwidth", "45GB/s")), (podsim.sweep, ("store", "threads"))):
            for word in words:
                self.assertIn(word, inspect.getdoc(kind))

    def test_podsim_help_prints_keywords_and_the_command(self):
        for named in ("run", podsim.run):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                podsim.help(named)
            self.assertIn("slice_count: ", out.getvalue())
            self.assertIn("usage: podsim run", out.getvalue())
        for wrong in ("rum", 3, podsim.Machine):
            with self.assertRaisesRegex(podsim.InputError, "function: there is no verb"):
                podsim.help(wrong)

    def test_everything_public_says_what_it_is(self):
        for name in podsim.__all__:
            found = getattr(podsim, name)
            if callable(found):
                self.assertTrue(inspect.getdoc(found), name)


if __name__ == "__main__":
    unittest.main()
