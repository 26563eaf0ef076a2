"""A GEMM on R x C devices that gathers both operands, then multiplies once."""

import podsim


def collective(mesh, m: int, n: int, k: int, dtype: str = "bf16") -> podsim.Schedule:
    """Y[m, n] = X[m, k] @ W[k, n], all sharded by rows and columns; ``mesh`` has the axes row and col."""
    b = podsim.Builder(mesh, name="collective os", dtype=dtype)
    R, C = b.size("row"), b.size("col")
    X, W = b.input("X", (m, k), ["row", "col"]), b.input("W", (k, n), ["row", "col"])
    Y = b.output("Y", (m, n), ["row", "col"])
    left, right = b.scratch("left gathered", (1, m // R, C, k // C)), b.scratch("right gathered", (1, R, k // R, n // C))
    b.collective("all-gather", "col", X, left, dim=2, label="gather X")
    b.collective("all-gather", "row", W, right, dim=1, label="gather W")
    b.matmul(left, right, Y, left_split=2, right_split=3)
    b.claim_product(Y, X, W)
    return b.build()


if __name__ == "__main__":
    schedule = collective({"row": 4, "col": 2}, 64, 64, 64)
    print(schedule)
    print(podsim.check(schedule))
    print(f"{podsim.run(schedule, machine='tpu_v4').makespan_s * 1e6:.3f} us on tpu_v4")
