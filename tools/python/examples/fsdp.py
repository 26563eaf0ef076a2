"""1-D FSDP: every device has rows of X and of W, and gathers all of W before it multiplies."""

import podsim


def fsdp(mesh, m: int, n: int, k: int, dtype: str = "bf16") -> podsim.Schedule:
    """Y[m, n] = X[m, k] @ W[k, n], sharded by rows along the axis row, the only one."""
    b = podsim.Builder(mesh, name="1d-fsdp", dtype=dtype)
    X, W, Y = b.input("X", (m, k), ["row"]), b.input("W", (k, n), ["row"]), b.output("Y", (m, n), ["row"])
    gathered = b.scratch("W gathered", (k, n))
    b.collective("all-gather", "row", W, gathered, label="gather W")
    b.matmul(X, gathered, Y)
    b.claim_product(Y, X, W)
    return b.build()


if __name__ == "__main__":
    schedule = fsdp({"row": 4}, 64, 64, 64)
    print(schedule)
    print(podsim.check(schedule))
    print(f"{podsim.run(schedule, machine='tpu_v4').makespan_s * 1e6:.3f} us on tpu_v4")
