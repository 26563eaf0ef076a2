"""Schedules written in Python: the edges that their regions need, what they compute on numpy arrays, and mistakes."""

import unittest

import numpy as np

import podsim
from podsim import InputError, block


def two_buffers():
    """On a ring of 4: X[16] sharded, Y[16] the same, and scratch A, B of 4 elements."""
    b = podsim.Builder({"ring": 4}, name="test")
    return b, b.input("X", (16,), ["ring"]), b.output("Y", (16,), ["ring"]), b.scratch("A", (4,)), b.scratch("B", (4,))


def gemm_2d(R, C, m, n, k, dtype="f32"):
    b = podsim.Builder({"row": R, "col": C}, name="gemm", dtype=dtype)
    X, W, Y = b.input("X", (m, k), ["row", "col"]), b.input("W", (k, n), ["row", "col"]), b.output("Y", (m, n), ["row", "col"])
    left, right = b.scratch("left", (m // R, k)), b.scratch("right", (k, n // C))
    b.collective("all-gather", "col", X, left, dim=1)
    b.collective("all-gather", "row", W, right)
    b.matmul(left, right, Y)
    b.claim_product(Y, X, W)
    return b.build()


class Edges(unittest.TestCase):
    def edges_of(self, b):
        return [(edge.task, edge.after, edge.done, edge.gates, edge.because) for edge in b.edges()]

    def test_a_reader_waits_for_its_writer_and_the_next_writer_for_the_reader(self):
        b, X, Y, A, B = two_buffers()
        b.copy(X, A)
        b.copy(A, B)
        b.copy(X, A)
        self.assertEqual(self.edges_of(b), [(1, 0, "both", "both", "read after write"), (2, 1, "both", "both", "write after read")])

    def test_halves_of_shifts_wait_for_themselves(self):
        b, X, Y, A, B = two_buffers()
        b.shift("ring", 1, X, A)
        b.copy(A, B)
        b.shift("ring", 1, X, A)
        self.assertEqual(self.edges_of(b), [(1, 0, "received", "both", "read after write"), (2, 1, "both", "receive", "write after read")])

    def test_tasks_on_different_devices_or_elements_do_not_wait(self):
        b, X, Y, A, B = two_buffers()
        i = b.index("ring")
        b.copy(X, A, where=i < 2)
        b.copy(X, A, where=i >= 2)
        b.copy(X[:2], B[:2])
        b.copy(X[2:], B[2:])
        self.assertEqual(self.edges_of(b), [])

    def test_regions_that_depend_on_the_device_are_compared_on_each(self):
        b = podsim.Builder({"ring": 4})
        i = b.index("ring")
        X, A = b.input("X", (4,), ["ring"]), b.scratch("A", (4,))
        b.place(X, A[i])
        b.place(X, A[(i + 1) % 4])
        b.copy(A[0], A[3])  # on devices 0 and 3, where one of the two lies in place 0; and on 3 and 2, where one is in place 3
        self.assertEqual([(edge.task, edge.after) for edge in b.edges()], [(2, 0), (2, 1)])

    def test_what_is_derived_is_shown_with_its_reason(self):
        b, X, Y, A, B = two_buffers()
        b.shift("ring", 1, X, A, label="first")
        b.copy(A[1:3], B[:2], label="second")
        self.assertEqual(str(b.edges()), '1 "second" after 0 "first" received: read after write, A[1:3] and A[:] on ring=0')
        self.assertIn("<pre>", b.edges()._repr_html_())
        self.assertIn("after 0.received", str(b.build()))

    def test_explicit_edges_stay_and_are_not_doubled(self):
        b, X, Y, A, B = two_buffers()
        first = b.shift("ring", 1, X, A)
        second = b.copy(X, B, after=first.sent)
        b.copy(A, B, after=[first, second])
        self.assertEqual(self.edges_of(b), [])
        self.assertIn("after 0.sent", str(b.build()))

    def test_a_schedule_without_an_edge_that_it_needs_would_be_found(self):
        b, X, Y, A, B = two_buffers()
        b.copy(X, A)
        b.copy(A, Y)
        text = b.build().text()
        self.assertTrue(podsim.check(b.build(), structure_only=True))
        broken = podsim.Schedule.from_text(text.replace(" after { task: 0 }", ""))
        self.assertNotEqual(broken.text(), text)
        self.assertFalse(podsim.check(broken, structure_only=True))


class Building(unittest.TestCase):
    def test_a_gemm_is_proven_and_timed(self):
        schedule = gemm_2d(4, 2, 64, 32, 16)
        self.assertTrue(podsim.check(schedule))
        self.assertGreater(podsim.run(schedule, machine="tpu_v4").makespan_s, 0)

    def test_send_and_recv_meet_across_programs(self):
        b = podsim.Builder({"x": 2}, name="pair")
        b.program(0, 1)
        X = b.input("X", (4,))
        b.send(X, {"x": 1})
        b.program(1, 2)
        Y = b.output("Y", (4,))
        b.recv(Y, {"x": 0})
        x = np.arange(4.0)
        np.testing.assert_array_equal(podsim.execute(b.build(), {"X": x})["Y"], x)

    def test_a_halo_exchange_stays_on_open_axes(self):
        b = podsim.Builder({"x": 4}, wraps=False)
        i = b.index("x")
        X, Y, A = b.input("X", (8,), ["x"]), b.output("Y", (8,), ["x"]), b.scratch("A", (1,))
        b.shift("x", 1, X[1], A, where=i < 3)
        b.copy(X, Y)
        b.add(Y[0], A, Y[0], where=i > 0)
        np.testing.assert_array_equal(podsim.execute(b.build(), {"X": np.arange(8.0)})["Y"], [0, 1, 3, 3, 7, 5, 11, 7])

    def test_the_builder_can_be_used_on(self):
        b, X, Y, A, B = two_buffers()
        b.copy(X, A)
        before = b.build()
        b.copy(A, Y)
        self.assertEqual((len(before), len(b.build())), (1, 2))

    def test_a_schedule_is_what_its_text_says(self):
        schedule = gemm_2d(2, 2, 8, 8, 8)
        self.assertEqual(podsim.Schedule.from_text(schedule.text()), schedule)

    def test_coordinates_are_whole_numbers_that_depend_on_the_device(self):
        b = podsim.Builder({"row": 2, "col": 4})
        row, col = b.index("row"), b.index("col")
        X, A = b.input("X", (1,)), b.scratch("A", (32,))
        b.place(X, A[4 * (4 * row + col)])
        b.place(X, A[(2 * col - row + 1) % 8])
        b.place(X, A[8 * ((col + 1) % 4) + 3])
        listing = str(b.build())
        for place in ("A[(4*row+col)*4]", "A[(2*col-row+1)%8]", "A[((col+1)%4)*8+3]"):
            self.assertIn(place, listing)


class Execute(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(20)

    def test_a_gemm_is_that_of_numpy(self):
        x, w = self.random.integers(-8, 8, (64, 16)).astype(float), self.random.integers(-8, 8, (16, 32)).astype(float)
        y = podsim.execute(gemm_2d(4, 2, 64, 32, 16), {"X": x, "W": w})["Y"]
        self.assertEqual((y.dtype, y.shape), (np.float64, (64, 32)))
        np.testing.assert_array_equal(y, x @ w)

    def test_every_algorithm_of_cpp_is_that_of_numpy(self):
        x, w = self.random.integers(-8, 8, (128, 128)).astype(float), self.random.integers(-8, 8, (128, 128)).astype(float)
        for algorithm, options in (("collective", {}), ("summa", {}), ("cannon", {}), ("wang", {}), ("meshslice", {"slice_count": 4})):
            for dataflow in ("os", "ls", "rs"):
                with self.subTest(algorithm=algorithm, dataflow=dataflow):
                    schedule = podsim.schedule("tpu_v4", slice="4x4x1", mesh={"row": 4, "col": 4}, gemm=(128, 128, 128, "f32"), algorithm=algorithm,
                                               dataflow=dataflow, **options)
                    given = {"X": x.T if dataflow == "rs" else x, "W": w.T if dataflow == "ls" else w}
                    np.testing.assert_array_equal(podsim.execute(schedule, given)["Y"], x @ w)

    def test_float32_is_what_it_computes_in(self):
        x, w = self.random.standard_normal((8, 8)), self.random.standard_normal((8, 8))
        y = podsim.execute(gemm_2d(2, 2, 8, 8, 8), {"X": x, "W": w})["Y"]
        np.testing.assert_array_equal(y, y.astype(np.float32))
        np.testing.assert_allclose(y, x @ w, atol=1e-5)

    def test_bf16_buffers_round(self):
        b = podsim.Builder({"x": 2}, dtype="bf16")
        b.copy(b.input("X", (4,), ["x"]), b.output("Y", (4,), ["x"]))
        np.testing.assert_array_equal(podsim.execute(b.build(), {"X": [1 + 2**-10, 2, 3, 4]})["Y"], [1, 2, 3, 4])

    def test_whole_and_complex_numbers(self):
        b = podsim.Builder({"x": 2})
        b.copy(b.input("I", (4,), ["x"], dtype="s32"), b.output("J", (4,), ["x"], dtype="s32"))
        b.copy(b.input("C", (4,), ["x"], dtype="c64"), b.output("D", (4,), ["x"], dtype="c64"))
        found = podsim.execute(b.build(), {"I": np.array([1, -2, 3, 2**31 - 1]), "C": [1j, 2, 3, 4]})
        np.testing.assert_array_equal(found["J"], [1, -2, 3, 2**31 - 1])
        np.testing.assert_array_equal(found["D"], [1j, 2, 3, 4])
        self.assertEqual((found["J"].dtype, found["D"].dtype), (np.int32, np.complex128))

    def test_what_no_task_writes_is_not_a_number(self):
        b, X, Y, A, B = two_buffers()
        b.copy(X, Y, where=b.index("ring") == 2)
        y = podsim.execute(b.build(), {"X": np.arange(16)})["Y"]
        np.testing.assert_array_equal(y, [np.nan] * 8 + [8, 9, 10, 11] + [np.nan] * 4)

    def test_arrays_may_have_any_layout(self):
        x, w = self.random.integers(0, 9, (16, 64)).T, self.random.integers(0, 9, (16, 64))[:, ::2]
        np.testing.assert_array_equal(podsim.execute(gemm_2d(4, 2, 64, 32, 16), {"X": x, "W": w})["Y"], x @ w)

    def test_wrong_inputs_are_errors(self):
        schedule = gemm_2d(2, 2, 8, 8, 8)
        x = np.zeros((8, 8))
        for given, argument, message in (({"X": x}, "inputs", '"W" of shape (8, 8) is missing'),
                                         ({"X": x, "W": x, "V": x}, "inputs", 'no input "V"'),
                                         ({"X": x[:4], "W": x}, "X", "expected an array of shape (8, 8), found (4, 8)"),
                                         ({"X": x.ravel(), "W": x}, "X", "found (64,)"),
                                         ({"X": x * 1j, "W": x}, "X", "found complex128"),
                                         ({"X": x.astype(str), "W": x}, "X", "found <U32"),
                                         ({"X": np.full((8, 8), None), "W": x}, "X", "found object")):
            with self.subTest(message), self.assertRaises(InputError) as raised:
                podsim.execute(schedule, given)
            self.assertEqual(raised.exception.argument, argument)
            self.assertIn(message, str(raised.exception))
        with self.assertRaises(TypeError):
            podsim.execute("gemm", {})
        with self.assertRaises(TypeError):
            podsim.execute(schedule, [x, x])

    def test_a_singular_matrix_is_an_error_of_the_data(self):
        b = podsim.Builder({"x": 1})
        b.local("solve", [b.input("A", (2, 2)), b.input("B", (2, 1))], [b.output("Y", (2, 1))])
        np.testing.assert_array_equal(podsim.execute(b.build(), {"A": [[2, 0], [0, 4]], "B": [[2], [8]]})["Y"], [[1], [2]])
        with self.assertRaises(podsim.DataError):
            podsim.execute(b.build(), {"A": np.zeros((2, 2)), "B": np.ones((2, 1))})


class Mistakes(unittest.TestCase):
    """Each is an InputError that names the argument, at the call that makes it."""

    def test_at_the_call(self):
        b, X, Y, A, B = two_buffers()
        other = two_buffers()[1]
        i = b.index("ring")
        matrix = b.scratch("M", (4, 4))
        mistakes = {
            "mesh: no sizes": (lambda: podsim.Builder(["ring", 4]), "mesh", "expected axis names and sizes"),
            "mesh: no number": (lambda: podsim.Builder({"ring": "4"}), "mesh", "expected a whole number"),
            "mesh: size 0": (lambda: podsim.Builder({"ring": 0}), "mesh", ""),
            "wraps of no axis": (lambda: podsim.Builder({"ring": 4}, wraps={"rong": True}), "wraps", 'did you mean "ring"'),
            "axis": (lambda: b.index("rinng"), "axis", 'did you mean "ring"'),
            "axis of a shift": (lambda: b.shift("row", 1, X, A), "axis", "row"),
            "axis that is none": (lambda: b.shift(1, 1, X, A), "axis", "expected the name of a mesh axis"),
            "distance": (lambda: b.shift("ring", 0.5, X, A), "by", "expected a whole number"),
            "axis of a sharding": (lambda: b.input("Z", (8,), ["rin"]), "sharding", 'did you mean "ring"'),
            "too many entries": (lambda: b.input("Z", (8,), ["ring", None]), "sharding", "found 2 entries"),
            "axis twice": (lambda: b.input("Z", (16, 16), ["ring", "ring"]), "sharding", "twice"),
            "does not divide": (lambda: b.input("Z", (6,), ["ring"]), "shape", "which 4 devices do not divide"),
            "no shape": (lambda: b.scratch("Z", 4), "shape", "expected an extent for each dimension"),
            "negative extent": (lambda: b.scratch("Z", (-4,)), "shape", "expected positive extents"),
            "extent of text": (lambda: b.scratch("Z", ("4",)), "shape", "expected a whole number"),
            "view": (lambda: b.input("Z", (16,), ["ring"], view={0: (3, 1)}), "view", "the view has 3"),
            "view of no dimension": (lambda: b.input("Z", (16,), ["ring"], view={2: (4,)}), "view", "no dimension 2"),
            "dtype": (lambda: b.scratch("Z", (4,), dtype="f16"), "dtype", "f16"),
            "name twice": (lambda: b.scratch("A", (4,)), "name", "there is a buffer"),
            "no buffer": (lambda: b.copy(X, "A"), "writes", "expected a buffer"),
            "buffer of another builder": (lambda: b.copy(other, A), "reads", "another builder"),
            "outside": (lambda: A[2:6], "A", "2:6 is outside dimension 0"),
            "outside by a number": (lambda: A[4], "A", "outside"),
            "negative": (lambda: A[-1], "A", "outside"),
            "empty": (lambda: A[2:2], "A", "outside"),
            "step": (lambda: A[::2], "A", "no step"),
            "too many subscripts": (lambda: A[0, 0], "A", "found 2 subscripts"),
            "subscript of text": (lambda: A["0"], "A", "expected a whole number"),
            "length that differs": (lambda: A[0:i], "A", "the same on all devices"),
            "outside on a device": (lambda: b.copy(X[0], A[i + 1]), "local", "A"),
            "lengths": (lambda: b.copy(X, A[:2]), "local", ""),
            "shapes of a product": (lambda: b.matmul(matrix[:2], matrix[:, :2], matrix), "matmul", ""),
            "ranks of a product": (lambda: b.matmul(A, A, A), "matmul", ""),
            "a product over its operand": (lambda: b.matmul(matrix, matrix, matrix), "matmul", "writes over parts"),
            "a shift over its source": (lambda: b.shift("ring", 1, A, A), "shift", "race"),
            "kind of a collective": (lambda: b.collective("all-gathr", "ring", A, B), "kind", 'did you mean "all-gather"'),
            "shape of a collective": (lambda: b.collective("all-gather", "ring", A, B), "collective", ""),
            "root": (lambda: b.collective("broadcast", "ring", A, B, root=4), "collective", ""),
            "kind of a local": (lambda: b.local("gellu", [A], [B]), "kind", 'did you mean "gelu"'),
            "operands of a local": (lambda: b.local("add", [A], [B]), "local", ""),
            "unit": (lambda: b.copy(A, B, unit="cpu"), "unit", "expected"),
            "type of a local's argument": (lambda: b.local("fft", [A], [B], dims=(1, 2, 3)), "local", "wrong type"),
            "where": (lambda: b.copy(A, B, where=True), "where", "expected a condition"),
            "and": (lambda: b.copy(A, B, where=i < 2 and i > 0), "where", "joined by &"),
            "chained": (lambda: b.copy(A, B, where=0 < i < 2), "where", "joined by &"),
            "index as truth": (lambda: bool(i), "where", "an index has a value on a device only"),
            "after": (lambda: b.copy(A, B, after=[0]), "after", "expected tasks"),
            "peer": (lambda: b.send(A, {"rng": 1}), "to", 'did you mean "ring"'),
            "peer that is none": (lambda: b.recv(A, 1), "sender", "expected coordinates"),
            "modulus": (lambda: i % 0, "index", "positive"),
            "remainder of a remainder": (lambda: (2 * i % 3) % 2, "index", "remainder"),
            "product of indices": (lambda: i * i, "index", "expected a whole number"),
            "fraction": (lambda: i * 0.5, "index", "expected a whole number"),
            "devices": (lambda: b.program(2, 9), "last", "expected devices of 0 to 4"),
            "product of vectors": (lambda: b.claim_product(Y, X, X), "out", "two dimensions"),
            "half": (lambda: b.copy(X, A).gates("both"), "half", "expected"),
        }
        for name, (mistake, argument, message) in mistakes.items():
            with self.subTest(name), self.assertRaises(InputError) as raised:
                mistake()
            with self.subTest(name):
                self.assertEqual(raised.exception.argument, argument)
                self.assertIn(message, str(raised.exception))

    def test_a_shift_off_the_end_of_an_open_axis(self):
        b = podsim.Builder({"x": 4}, wraps=False)
        with self.assertRaisesRegex(InputError, "off the end of the open axis x"):
            b.shift("x", 1, b.scratch("A", (1,)), b.scratch("B", (1,)))

    def test_a_send_without_its_receive_is_found_when_built(self):
        b, X, Y, A, B = two_buffers()
        b.send(X, {"ring": (b.index("ring") + 1) % 4})
        with self.assertRaisesRegex(InputError, "which has no receive for it"):
            b.build()

    def test_messages_count_tasks_as_the_schedule_does(self):
        b, X, Y, A, B = two_buffers()
        b.copy(X, A)
        b.copy(X, B)
        with self.assertRaisesRegex(InputError, 'task 2 "third"'):
            b.copy(X, A[:2], label="third")
        self.assertEqual(len(b.build()), 2)  # what is wrong is not added

    def test_unknown_keywords_are_type_errors(self):
        b, X, Y, A, B = two_buffers()
        for call in (lambda: b.copy(X, A, wher=None), lambda: b.shift("ring", 1, X, A, ad=True), lambda: b.input("Z", (4,), dtyp="f32")):
            with self.assertRaises(TypeError):
                call()

    def test_a_product_that_is_none(self):
        b = podsim.Builder({"x": 1})
        X, W, Y = b.input("X", (2, 3)), b.input("W", (4, 5)), b.output("Y", (2, 5))
        with self.assertRaisesRegex(InputError, r"\(2, 3\) times \(4, 5\) is not \(2, 5\)"):
            b.claim_product(Y, X, W)


if __name__ == "__main__":
    unittest.main()
