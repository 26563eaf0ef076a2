#!/usr/bin/env python3
"""Links and pictures in the *.md files of the repository lead to files that are there, and anchors to headings; maps of folders name each.

usage: links_test.py ROOT

Addresses with a scheme (https:) are not looked up. Indented blocks, fences and `code` hold no links.
"""

import pathlib
import re
import sys
import tempfile
import unittest
import urllib.parse

LINK = re.compile(r"\]\(<?([^()\s>]+)>?(?:\s+\"[^\"]*\")?\)|^\[[^\]]+\]:\s+(\S+)|(?:src|href)=\"([^\"]+)\"")


def files(root):
    """The *.md files, but for what is built or hidden."""
    for path in sorted(root.rglob("*.md")):
        if not any(part.startswith((".", "build")) for part in path.relative_to(root).parts):
            yield path


def lines_without_code(text):
    """(number, line) of what is no code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, re.sub(r"(`+)(?:(?!\1).)+\1", "", line)


def anchors(text):
    """The names that headings can be linked by, as GitHub makes them."""
    names, fenced = set(), False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        found = None if fenced else re.match(r"#+\s+(.*?)\s*#*$", line)
        if found:
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found[1])
            name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            again = 0
            while (name if not again else f"{name}-{again}") in names:
                again += 1
            names.add(name if not again else f"{name}-{again}")
        names.update(re.findall(r'<a (?:id|name)="([^"]+)"', line))
    return names


def broken(root):
    """FILE:LINE: what is wrong."""
    for path in files(root):
        text = path.read_text(encoding="utf-8")
        for number, line in lines_without_code(text):
            for groups in LINK.findall(line):
                target = next(group for group in groups if group)
                if re.match(r"[a-z][a-z0-9+.-]*:", target):
                    continue
                name, _, anchor = urllib.parse.unquote(target).partition("#")
                where = f"{path.relative_to(root)}:{number}: {target}"
                file = (path.parent / name).resolve() if name else path.resolve()
                if not file.exists() or root.resolve() not in (file, *file.parents):
                    yield f"{where}: there is no such file"
                elif anchor and (file.suffix != ".md" or anchor not in anchors(file.read_text(encoding="utf-8"))):
                    yield f"{where}: there is no such heading"


class Links(unittest.TestCase):
    maxDiff = None

    def test_all_lead_somewhere(self):
        self.assertGreater(len(list(files(ROOT))), 50)
        self.assertEqual(list(broken(ROOT)), [])


class Maps(unittest.TestCase):
    def test_each_top_folder_has_a_readme(self):
        for folder in ROOT.iterdir():
            if folder.is_dir() and not folder.name.startswith((".", "build")):
                self.assertTrue((folder / "README.md").exists(), folder.name)

    def test_name_each_folder_once(self):
        """The tables whose first column is `folder`, `folder/` or [folder](...)."""
        for top in ("", "sim", "tools"):
            rows = re.findall(r"^\| (?:`([\w/]+?)/?`|\[(\w+)\]\(\w+/README\.md\)) \|", (ROOT / top / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
            named = ["".join(row) for row in rows if "/" not in "".join(row)]
            there = [path.name for path in (ROOT / top).iterdir() if path.is_dir() and not path.name.startswith((".", "build", "__", "cmake", "engine"))]
            self.assertEqual(sorted(name for name in named if name != "engine"), sorted(there), top or "the repository")


class TheTestItself(unittest.TestCase):
    def test_finds_what_leads_nowhere(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "a.md").write_text(
                "# One, `two`: three\n## A [link](a.md)\n# Again\n# Again\n[x](b.md) [y](a.md#one-two-three) ![z](c.svg) `[code](no)` [w](https://nowhere/)\n    [code](no)\n"
                "[p](#a-link) [q](#again-1) [r](#again-2) [out](../a.md) [`d`](d) [![s](t.svg)](u.md)\n",
                encoding="utf-8",
            )
            (root / "d").mkdir()
            self.assertEqual(
                [line.split(": ", 1) for line in broken(root)],
                [
                    ["a.md:5", "b.md: there is no such file"],
                    ["a.md:5", "c.svg: there is no such file"],
                    ["a.md:7", "#again-2: there is no such heading"],
                    ["a.md:7", "../a.md: there is no such file"],
                    ["a.md:7", "t.svg: there is no such file"],
                    ["a.md:7", "u.md: there is no such file"],
                ],
            )


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv.pop(1))
    unittest.main()
