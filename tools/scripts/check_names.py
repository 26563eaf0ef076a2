#!/usr/bin/env python3
"""Checks that no two files define a type of the same full name.

usage: check_names.py [--root DIR]      exit status 0: all differ, 1: duplicates, printed as FILE:LINE: message

Two types of one name in two folders are fine for the compiler, which never sees both, and undefined behaviour for the linker, which keeps one
of their inline functions for both: a destructor of one then takes an object of the other apart. Types of one file belong in an unnamed
namespace.
"""

import argparse
import os
import re
import sys

SUFFIXES = (".cpp", ".hpp")
TOKEN = re.compile(
    r"\bnamespace\s*(?P<namespace>[\w:]*)\s*\{"
    r"|\b(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?:\[\[[^\]]*\]\]\s*)?(?P<type>[\w:]+)(?:\s+final)?\s*(?::(?!:)[^;{()]*)?\{"
    r"|(?P<open>\{)|(?P<close>\})"
)
# What may hold braces or keywords without being code. A raw string is written R"(...)" here, without a delimiter.
NO_CODE = re.compile(r'R"\(.*?\)"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL)


def blanked(text):
    """The text without comments and literals, line by line where it was."""
    return NO_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def types_of(text):
    """(full name, line) of every type that is defined directly in named namespaces."""
    scopes = []  # of each open brace: the namespace's name, "" for an unnamed one, None for anything else
    bare = blanked(text)
    for match in TOKEN.finditer(bare):
        if match.group("close"):
            if scopes:
                scopes.pop()
        elif match.group("open"):
            scopes.append(None)
        elif match.group("type"):
            if all(scopes) and "::" not in match.group("type"):
                yield "::".join(scopes + [match.group("type")]), bare.count("\n", 0, match.start("type")) + 1
            scopes.append(None)
        else:
            scopes.append(match.group("namespace"))


def sources(root):
    for directory, folders, files in os.walk(root):
        folders[:] = sorted(folder for folder in folders if not folder.startswith((".", "build")))
        for name in sorted(files):
            if name.endswith(SUFFIXES):
                yield os.path.relpath(os.path.join(directory, name), root).replace(os.sep, "/")


def check(root):
    """All duplicates as text, and how many types were looked at."""
    places = {}
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            for name, line in types_of(file.read()):
                places.setdefault(name, {}).setdefault(path, line)
    problems = []
    for name, files in sorted(places.items()):
        first, *others = files.items()
        problems += [f"{path}:{line}: {name} is defined in {first[0]}:{first[1]} too" for path, line in others]
    return problems, len(places)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description="Checks that no two files define a type of the same full name.", allow_abbrev=False)
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(here)), help="root of the repository (default: the one of this script)")
    problems, types = check(parser.parse_args().root)
    for problem in problems:
        print(problem)
    print(f"check_names: {types} types, {len(problems)} of them twice")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
