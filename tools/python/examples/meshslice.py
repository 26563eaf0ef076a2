"""MeshSlice: K in S slices of interleaved blocks; the gathers of the next slice overlap the product of this one."""

import podsim


def meshslice(mesh, m: int, n: int, k: int, slices: int, block: int = 8, dtype: str = "bf16") -> podsim.Schedule:
    """Y[m, n] = X[m, k] @ W[k, n], all sharded by rows and columns; k is a multiple of lcm(R, C) * slices * block, and there are at least two slices."""
    b = podsim.Builder(mesh, name=f"meshslice os S={slices}", dtype=dtype)
    R, C, row, col = b.size("row"), b.size("col"), b.index("row"), b.index("col")
    X = b.input("X", (m, k), ["row", "col"], view={1: (k // C // slices // block, slices, block)})
    W = b.input("W", (k, n), ["row", "col"], view={0: (k // R // slices // block, slices, block)})
    Y = b.output("Y", (m, n), ["row", "col"])
    left, right = b.scratch("left gathered", (2, m // R, C, k // C // slices)), b.scratch("right gathered", (2, R, k // R // slices, n // C))

    def gather(s):
        """Slice s, cut by a copy into a device's own place in the slot."""
        X_slot, W_slot = left[s % 2], right[s % 2]
        b.copy(X[:, :, s], left[s % 2, :, col], label=f"cut X s{s}")
        b.collective("all-gather", "col", left[s % 2, :, col], X_slot, dim=2, label=f"gather X s{s}")
        b.copy(W[:, s], right[s % 2, row], label=f"cut W s{s}")
        b.collective("all-gather", "row", right[s % 2, row], W_slot, dim=1, label=f"gather W s{s}")

    gather(0)
    for s in range(slices):
        if s + 1 < slices:
            gather(s + 1)
        b.matmul(left[s % 2], right[s % 2], Y, accumulate=s > 0, left_split=2, right_split=3, label=f"matmul s{s}")
    b.claim_product(Y, X, W)
    return b.build()


if __name__ == "__main__":
    schedule = meshslice({"row": 2, "col": 2}, 64, 64, 64, slices=2)
    print(schedule)
    print(podsim.check(schedule))
    print(f"{podsim.run(schedule, machine='tpu_v4').makespan_s * 1e6:.3f} us on tpu_v4")
