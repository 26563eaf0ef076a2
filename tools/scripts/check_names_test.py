#!/usr/bin/env python3
"""Tests of check_names.py."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_names  # noqa: E402


class CheckNames(unittest.TestCase):
    def problems(self, files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return check_names.check(root)[0]

    def test_one_name_in_two_files_is_found_with_both_places(self):
        self.assertEqual(
            self.problems({"a/x.hpp": "namespace podsim {\n\nstruct Same {\n};\n}\n", "b/y.cpp": "namespace podsim {\nclass Same final : public Base {};\n}\n"}),
            ["b/y.cpp:2: podsim::Same is defined in a/x.hpp:3 too"],
        )

    def test_enums_and_nested_namespaces_count(self):
        self.assertEqual(
            self.problems({"a.hpp": "namespace p::q { enum class E : int { a }; }", "b.hpp": "namespace p { namespace q { enum class E { b }; } }"}),
            ["b.hpp:1: p::q::E is defined in a.hpp:1 too"],
        )

    def test_unnamed_namespaces_other_namespaces_and_members_are_their_own(self):
        self.assertEqual(
            self.problems(
                {
                    "a.cpp": "namespace p { namespace { struct S {}; } struct A { struct Inner {}; }; }",
                    "b.cpp": "namespace p { namespace { struct S {}; } struct B { struct Inner {}; }; void f() { struct A {}; } }",
                    "c.cpp": "namespace p::test { struct A {}; }",
                }
            ),
            [],
        )

    def test_declarations_members_defined_outside_comments_and_texts_do_not_count(self):
        self.assertEqual(
            self.problems(
                {
                    "a.hpp": "namespace p { struct S {}; struct T; }",
                    "b.cpp": 'namespace p { struct S; class S* f(); struct A::S {}; /* struct S {} */ // struct S {\nauto t = "struct S {"; auto r = R"(struct S {)"; }',
                }
            ),
            [],
        )

    def test_this_repository_is_read_to_its_end(self):
        problems, types = check_names.check(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
        self.assertGreater(types, 100)
        self.assertEqual(problems, [])


if __name__ == "__main__":
    unittest.main()
