#!/usr/bin/env python3
"""What a lab is made of, without making one. usage: lab_test.py PODSIM [unittest options]"""

import argparse
import ipaddress
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))

# pylint: disable=wrong-import-position
import batches  # noqa: E402
import launch  # noqa: E402
import mpi  # noqa: E402
import network  # noqa: E402
import runs  # noqa: E402
import study  # noqa: E402
import survey  # noqa: E402
import tables  # noqa: E402

PODSIM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 and os.path.isfile(sys.argv[1]) else None
RATE = ["--set", "link.bandwidth=10MB/s"]
TOPOLOGIES = {
    "torus": ["--slice", "4x4"],
    "open mesh": ["--slice", "3x4", "--wrap", "none"],
    "switches": ["--slice", "8", "--topology", "fat-tree:4:2"],
    "broken cable": ["--slice", "4x4", "--fail", "1.1-2.1"],
    "slow cable": ["--slice", "2x2", "--degrade", "0.0-0.1=0.5"],
    "two slices": ["--slice", "2x2", "--pods", "2", "--set", "dcn.nic_bandwidth=2MB/s", "--set", "dcn.host_bandwidth=10MB/s"],
}


def routes_of(*system):
    words = [PODSIM, "show", "topology", "--machine", "ideal", *RATE, *system, "--routes", "json", "--quiet"]
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout


class Networks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.networks = {name: network.read_network(routes_of(*system), name) for name, system in TOPOLOGIES.items()}

    def test_every_chip_reaches_every_other(self):
        for name, net in self.networks.items():
            for source in range(net.chips):
                for to in range(net.chips):
                    self.assertEqual(net.path(source, to)[-1], to, name)

    def test_each_cable_is_one_pair_of_interfaces_and_is_shaped_at_both_ends(self):
        for name, net in self.networks.items():
            pairs = [line for line in batches.whole("lab", net) if " name cable" in line]
            self.assertEqual(len(pairs), len(net.cables), name)
            rates = [line.split()[7] for n in range(net.nodes) for line in batches.shaping(net, n)]
            self.assertEqual(sorted(rates), sorted(f"{round(8 * rate)}bit" for cable in net.cables for rate in cable.bytes_per_s), name)

    def test_a_slow_cable_is_slow_and_the_others_are_not(self):
        net = self.networks["slow cable"]
        self.assertEqual(sorted(cable.bytes_per_s for cable in net.cables), [(5e6, 5e6)] + [(1e7, 1e7)] * 3)

    def test_a_detour_with_a_route_of_its_own_has_a_rule_of_its_own(self):
        net = self.networks["broken cable"]
        rules = [(n, line) for n in range(net.nodes) for line in batches.node(net, n) if line.startswith("rule add")]
        (exception,) = net.policy_routes
        expected = f"rule add from {network.address(exception.source)} to {network.address(exception.to)} lookup {batches.FIRST_TABLE + exception.cable}"
        self.assertEqual(rules, [(exception.at, expected)])

    def test_addresses_are_in_the_labs_networks_and_different(self):
        for address, of in ((network.address, network.CABLE_NETWORK), (network.management_address, network.MANAGEMENT_NETWORK)):
            found = {address(node) for node in range(network.MOST_NODES)}
            self.assertEqual(len(found), network.MOST_NODES)
            self.assertTrue(all(ipaddress.ip_address(one) in ipaddress.ip_network(of) for one in found))
        self.assertNotIn(network.HEAD_ADDRESS, {network.management_address(node) for node in range(network.MOST_NODES)})

    def test_every_name_of_an_interface_fits(self):
        self.assertLess(len(f"cable{3 * network.MOST_NODES}"), 16)
        self.assertLess(len(f"port{network.MOST_NODES}"), 16)

    def test_what_is_no_output_of_podsim_is_an_error_and_so_is_a_rate_beyond_a_computers(self):
        for text in ("", "[]", "{}", '{"nodes": 1}'):
            with self.assertRaisesRegex(network.LabError, "expected the output of"):
                network.read_network(text, "file")
        fast = json.loads(routes_of("--slice", "2x2"))
        for rate, found in ((5e10, "50 GB/s"), (None, "unlimited")):
            fast["cables"][0]["bandwidth_bytes_per_s"][1] = rate
            with self.assertRaisesRegex(network.LabError, found):
                network.read_network(json.dumps(fast), "file")

    def test_routes_that_leave_the_network_are_an_error(self):
        def changed(change):
            told = json.loads(routes_of(*TOPOLOGIES["broken cable"]))
            change(told)
            network.read_network(json.dumps(told), "file")

        changed(lambda told: None)
        for change, expected in (
            (lambda told: told.update(chips=17), "from 1 to 16 chips"),
            (lambda told: told["cables"][0].update(ends=[0, 16]), "between two of 16 nodes"),
            (lambda told: told["cables"][0].update(ends=[0, 0]), "between two of 16 nodes"),
            (lambda told: told["next_cable"].pop(), "a row for each of 16 nodes"),
            (lambda told: told["next_cable"][3].pop(), "an entry for each of 16 chips"),
            (lambda told: told["next_cable"][3].__setitem__(0, 99), "found cable 99 at node 3"),
            (lambda told: told["next_cable"][3].__setitem__(0, told["next_cable"][9][0]), "over its own cables"),
            (lambda told: told["policy_routes"][0].update(cable=-1), "found cable -1"),
            (lambda told: told["policy_routes"][0].update(to=16), "between two of 16 chips"),
        ):
            with self.assertRaisesRegex(network.LabError, expected):
                changed(change)


class Words(unittest.TestCase):
    def test_chips_are_numbers_and_ranges(self):
        net = network.read_network(routes_of("--slice", "4x4"), "torus")
        self.assertEqual(mpi.chips_named(None, net), list(range(16)))
        self.assertEqual(mpi.chips_named("3,0,8-10", net), [3, 0, 8, 9, 10])
        for text in ("", "16", "1,1", "2-1", "a", "1-"):
            with self.assertRaisesRegex(network.LabError, "--chips"):
                mpi.chips_named(text, net)

    def test_a_survey_is_of_the_ends_of_a_fast_cable(self):
        slow = network.read_network(routes_of(*TOPOLOGIES["slow cable"]), "slow")
        self.assertEqual(survey.neighbours(slow), [0, 2])
        self.assertEqual(survey.neighbours(network.read_network(routes_of(*TOPOLOGIES["switches"]), "switches")), [0, 1])

    def test_two_flows_of_a_survey_share_the_cable_in_the_middle_of_four_chips(self):
        for topology in ("torus", "broken cable", "open mesh"):
            net = network.read_network(routes_of(*TOPOLOGIES[topology]), topology)
            one, two, three, four = survey.row_of_four(net)
            self.assertEqual([net.path(one, three), net.path(two, four)], [[one, two, three], [two, three, four]])
        self.assertIsNone(survey.row_of_four(network.read_network(routes_of(*TOPOLOGIES["switches"]), "switches")))
        self.assertEqual([name for name, fields in runs.survey(line=False) if fields["slice"] != "2"], [])

    def test_a_survey_measures_no_message_that_a_bucket_holds_in_part(self):
        halves = [int(fields["bytes"].removesuffix("KiB")) * 512 for name, fields in runs.survey() if "added" in name]
        self.assertGreaterEqual(min(halves), survey.LEAST_MESSAGE)
        with self.assertRaisesRegex(network.LabError, "--max-bytes"):
            survey.survey("lab", None, argparse.Namespace(max_bytes=1000))

    def test_a_bucket_holds_a_packet_and_what_late_timers_need(self):
        self.assertEqual(batches.burst_bytes(1.25e6), 1514 + 187)
        self.assertEqual(batches.burst_bytes(5e6), 1514 + 750)

    def test_ranks_that_never_sleep_get_no_priority(self):
        self.assertEqual(mpi.priority(["podsim_mpirun", "--between-looks", "0s"]), [])
        self.assertEqual(mpi.priority(["podsim_mpirun", "--between-looks", "0.0ms"]), [])
        self.assertEqual(mpi.priority(["podsim_mpirun", "--between-looks", "0.2ms"]), mpi.priority([]))

    def test_the_agent_enters_the_namespace_of_a_management_address(self):
        with tempfile.TemporaryDirectory() as folder:
            fake = pathlib.Path(folder, "ip")
            fake.write_text('#!/bin/sh\necho "$@"\n', encoding="utf-8")
            fake.chmod(0o755)
            environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PODSIM_LAB": "lab"}
            for node in (0, 300):
                words = [str(HERE / "agent"), network.management_address(node), "orted", "-x"]
                told = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
                self.assertEqual(told, f"netns exec lab-{node} unshare --uts sh -c hostname lab-{node}; exec orted -x\n")


class Studies(unittest.TestCase):
    """The study of the dataset lab_4x4, and what is made of its measurements."""

    def test_the_stored_runs_are_those_of_the_script(self):
        text = (study.FOLDER / "validation.textproto").read_text(encoding="utf-8")
        self.assertEqual(text[text.index(runs.MARK) :], runs.section(), "python3 validation/lab/runs.py validation/datasets/lab_4x4/validation.textproto")
        self.assertEqual(study.read_runs(study.FOLDER), [(name, {field: str(value) for field, value in fields.items()}) for name, fields in runs.runs()])
        self.assertGreaterEqual(len(runs.runs()), 300)

    def test_options_of_a_run(self):
        fields = {"slice": "4", "training": "layers.textproto", "slice_count": "2"}
        self.assertEqual(launch.words_of(pathlib.Path("/f"), fields), ["--slice", "4", "--training", "/f/layers.textproto", "--slice-count", "2"])

    def test_a_study_that_was_cut_off_in_a_line_goes_on_with_that_run(self):
        with tempfile.TemporaryDirectory() as folder:
            head = "# a computer\n" + ",".join(study.COLUMNS) + "\n"
            pathlib.Path(folder, "measurements.csv").write_text(head + "a,4,2026-11-30T07:00:00Z,1.0,0.010000,0.020000 0.021000\nb,4,2026-11-30T07:00:05Z,1.0,0.01", encoding="utf-8")
            found = study.read_measured(pathlib.Path(folder))
        self.assertEqual(list(found), ["a"])
        self.assertEqual(found["a"]["seconds"], [0.02, 0.021])
        self.assertAlmostEqual(study.spread(found["a"]["seconds"]), 0.001 / 0.0205)

    def test_what_is_measured_after_a_cut_has_a_line_of_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "measurements.csv")
            whole = ",".join(study.COLUMNS) + "\na,4,2026-11-30T07:00:00Z,1.0,0.010000,0.020000\n"
            row = "b,4,2026-11-30T07:00:05Z,1.0,0.010000,0.030000\n"
            for cut in ("", row[:20]):
                file.write_text(whole + cut, encoding="utf-8")
                study.drop_cut_line(file)
                with open(file, "a", encoding="utf-8") as more:
                    more.write(row)
                self.assertEqual(file.read_text(encoding="utf-8"), whole + row)

    def test_pairs_and_slice_counts_of_what_was_measured(self):
        class Found:
            folder = None
            fields = {name: fields for name, fields in study.read_runs(study.FOLDER) if name.startswith("gemm:")}
            rows = {name: {"error": 0.0} for name in fields}

            def measured(self, name):
                return 1.0 if "S=4" in name else 2.0

            def predicted(self, name):
                return 1.0 if "S=4" in name else 0.5 if "S=8" in name else 2.0

        found = Found()
        self.assertTrue(all(len({found.fields[name]["gemm"] for name in names}) == 1 for names in tables.variants(found)))
        lines = tables.best_counts(found).splitlines()
        self.assertIn("| row=4,col=4 | m=512,n=512,k=512 | forward | 1, 2, 4, 8, 16 | 8 | 4 | 100.0 % |", lines)
        self.assertIn("| row=16,col=1 | m=512,n=512,k=512 | forward | 1, 2, 4 | 4 | 4 | 0.0 % |", lines)
        self.assertIn("| products |", tables.order(found))


class Program(unittest.TestCase):
    def lab(self, *words, before=()):
        return subprocess.run([*before, sys.executable, str(HERE / "lab"), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)

    @unittest.skipIf(shutil.which("setpriv") is None, "no setpriv")
    def test_without_root_it_says_why_it_refuses(self):
        before = ["setpriv", "--reuid", "65534", "--clear-groups"] if os.geteuid() == 0 else []
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(routes_of("--slice", "2x2"))
            file.flush()
            os.chmod(file.name, 0o644)
            for words in (["up", file.name], ["down"]):
                done = self.lab(*words, before=before)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", "lab: error: a lab needs root, for network namespaces\n"))

    def test_bad_input_is_status_2(self):
        for words, told in ((["up", "/does/not/exist"], "No such file"), (["--name", "A b", "down"], "name"), (["--name", "nosuchlab", "run", "--", "--help"], "no lab nosuchlab is up")):
            done = self.lab(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(told, done.stderr)


if __name__ == "__main__":
    if PODSIM is None:
        sys.exit(__doc__)
    unittest.main()
