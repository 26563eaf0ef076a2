"""SUMMA: panels of K, each broadcast by the devices that have it, and multiplied as they come."""

import math

import podsim


def summa(mesh, m: int, n: int, k: int, panels: int = 0, dtype: str = "bf16") -> podsim.Schedule:
    """Y[m, n] = X[m, k] @ W[k, n], all sharded by rows and columns. ``panels``: a multiple of lcm(R, C), which 0 stands for."""
    b = podsim.Builder(mesh, name=f"summa os S={panels}" if panels else "summa os", dtype=dtype)
    R, C = b.size("row"), b.size("col")
    S = panels or math.lcm(R, C)
    X, W = b.input("X", (m, k), ["row", "col"]), b.input("W", (k, n), ["row", "col"])
    Y = b.output("Y", (m, n), ["row", "col"])
    slots, width = min(2, S), k // S  # one panel arrives while another one is multiplied
    left, right = b.scratch("left panel", (slots, m // R, width)), b.scratch("right panel", (slots, width, n // C))

    def broadcast(s):
        """Panel s of X along columns and of W along rows, from those that own it."""
        (owner, place), (below, under) = divmod(s, S // C), divmod(s, S // R)
        b.collective("broadcast", "col", X[:, place * width:(place + 1) * width], left[s % slots], root=owner, label=step("broadcast X", s))
        b.collective("broadcast", "row", W[under * width:(under + 1) * width], right[s % slots], root=below, label=step("broadcast W", s))

    def step(label, s):
        return f"{label} s{s}" if S > 1 else label

    broadcast(0)
    for s in range(S):
        if s + 1 < S:
            broadcast(s + 1)
        b.matmul(left[s % slots], right[s % slots], Y, accumulate=s > 0, left_split=2, right_split=2, label=step("matmul", s))
    b.claim_product(Y, X, W)
    return b.build()


if __name__ == "__main__":
    schedule = summa({"row": 2, "col": 2}, 64, 64, 64)
    print(schedule)
    print(podsim.check(schedule))
    print(f"{podsim.run(schedule, machine='tpu_v4').makespan_s * 1e6:.3f} us on tpu_v4")
