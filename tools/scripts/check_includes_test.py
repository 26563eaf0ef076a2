#!/usr/bin/env python3
"""Tests of check_includes.py: small trees with one deliberate violation each, which must be found and named."""

import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_includes.py")

# Headers that the includes below may lead to; each folder exists so that a missing file is never the reason of a finding.
HEADERS = ["sim/base/a.hpp", "sim/mesh/a.hpp", "sim/schedule/a.hpp", "sim/engine/a.hpp", "sim/engine/numeric/a.hpp", "sim/engine/des/a.hpp", "sim/engine/simgrid/a.hpp",
           "sim/engine/table/a.hpp", "sim/config/a.hpp", "topologies/a.hpp", "algorithms/gemm/a.hpp", "validation/a.hpp", "tools/a.hpp"]


def run(files):
    """Exit status and findings for a tree with the given files."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**{header: "#pragma once\n" for header in HEADERS}, **files}.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        result = subprocess.run([sys.executable, SCRIPT, "--root", root], stdout=subprocess.PIPE, text=True, check=False)
        return result.returncode, result.stdout.splitlines()[:-1]


class CheckIncludes(unittest.TestCase):
    def finds(self, path, include, expected):
        status, findings = run({path: f"// a file\n#include {include}\n"})
        self.assertEqual((status, findings), (1, [f"{path}:2:10: {expected}"]))

    def accepts(self, path, include):
        self.assertEqual(run({path: f"#include {include}\n"}), (0, []))

    def test_arrows_are_followed_through_other_folders(self):
        self.accepts("sim/engine/x.cpp", '"sim/base/a.hpp"')
        self.accepts("tools/cli/x.cpp", '"sim/mesh/a.hpp"')
        self.accepts("algorithms/gemm/x.cpp", '"algorithms/gemm/a.hpp"')

    def test_against_an_arrow(self):
        self.finds("sim/base/x.hpp", '"sim/mesh/a.hpp"', "sim/base may include only itself, not sim/mesh")
        self.finds("sim/mesh/x.cpp", '"sim/engine/a.hpp"', "sim/mesh may include only itself and sim/base, not sim/engine")

    def test_sibling_engines_are_blind_to_each_other(self):
        for one, other in [("numeric", "des"), ("des", "simgrid"), ("simgrid", "numeric"), ("max_plus", "des")]:
            below = "sim/engine/max_plus, " if one == "des" else ""
            self.finds(f"sim/engine/{one}/x.cpp", f'"sim/engine/{other}/a.hpp"',
                       f"sim/engine/{one} may include only itself and sim/base, sim/engine, {below}sim/machine, sim/mesh, sim/model, sim/schedule, sim/topology, "
                       f"not sim/engine/{other}")

    def test_algorithms_know_no_engine_but_their_tests_do(self):
        self.finds("algorithms/gemm/x.cpp", '"sim/engine/a.hpp"',
                   "algorithms may include only itself and sim/base, sim/mesh, sim/schedule, not sim/engine")
        self.accepts("algorithms/gemm/x_test.cpp", '"sim/engine/table/a.hpp"')
        self.accepts("algorithms/gemm/testing.hpp", '"sim/engine/table/a.hpp"')

    def test_outside_libraries_have_one_home(self):
        self.finds("sim/engine/des/x.cpp", "<simgrid/s4u.hpp>", "SimGrid may be included only in sim/engine/simgrid, not in sim/engine/des")
        self.finds("topologies/x.cpp", "<boost/graph/graph_traits.hpp>", "Boost.Graph may be included only in sim/topology, sim/engine/max_plus, workloads/sharded, not in topologies")
        self.finds("validation/x.cpp", "<boost/program_options.hpp>", "Boost.Program_options may be included only in tools/command, not in validation")
        self.finds("sim/engine/x.cpp", "<cblas.h>", "the linear algebra library may be included only in sim/engine/numeric, not in sim/engine")
        protobuf = "Protobuf may be included only in sim/config, workloads, validation/calibration/importers, validation/validate, tools/page, tools/sweep, not in "
        self.finds("topologies/x.cpp", "<google/protobuf/message.h>", protobuf + "topologies")
        self.finds("topologies/x.cpp", '"sim/config/machine.pb.h"', protobuf + "topologies")
        self.finds("validation/x.cpp", '"sim/config/machine.pb.h"', protobuf + "validation")
        self.accepts("validation/calibration/importers/x.cpp", '"sim/config/machine.pb.h"')
        self.accepts("validation/validate/x.cpp", '"validation/validate/study.pb.h"')
        self.accepts("sim/engine/simgrid/x.cpp", "<simgrid/s4u.hpp>")
        self.accepts("sim/engine/numeric/x.cpp", "<cblas.h>")

    def test_tests_are_held_to_the_homes_of_outside_libraries(self):
        self.finds("algorithms/gemm/x_test.cpp", "<simgrid/s4u.hpp>", "SimGrid may be included only in sim/engine/simgrid, not in algorithms")

    def test_own_headers_are_named_from_the_root_in_quotes(self):
        self.finds("sim/mesh/x.cpp", '"a.hpp"', '"a.hpp" is not a path from the root of the repository; outside headers are included with <>')
        self.finds("sim/mesh/x.cpp", "<sim/base/a.hpp>", 'headers of this repository are included with quotes: "sim/base/a.hpp"')
        self.finds("sim/mesh/x.cpp", '"sim/base/gone.hpp"', 'there is no file "sim/base/gone.hpp"')

    def test_comments_do_not_count(self):
        self.assertEqual(run({"sim/base/x.hpp": '// #include "sim/mesh/a.hpp"\n/*\n#include "sim/mesh/a.hpp"\n*/\n'}), (0, []))

    def test_every_violation_is_reported(self):
        status, findings = run({"sim/base/x.hpp": '#include "sim/mesh/a.hpp"\n#include <vector>\n  #include "tools/a.hpp"\n'})
        self.assertEqual(status, 1)
        self.assertEqual([finding.split(": ")[0] for finding in findings], ["sim/base/x.hpp:1:10", "sim/base/x.hpp:3:12"])


if __name__ == "__main__":
    unittest.main()
