"""Wang's collective matmul: W is gathered, X passes round its ring in two halves, and each hop is multiplied while the next one is on its way."""

import podsim


def wang(mesh, m: int, n: int, k: int, dtype: str = "bf16") -> podsim.Schedule:
    """Y[m, n] = X[m, k] @ W[k, n], all sharded by rows and columns. It passes X on, as is right where m (C - 1) >= n (R - 1)."""
    b = podsim.Builder(mesh, name="wang os", dtype=dtype)
    C, col = b.size("col"), b.index("col")
    X, W = b.input("X", (m, k), ["row", "col"]), b.input("W", (k, n), ["row", "col"])
    Y = b.output("Y", (m, n), ["row", "col"])
    block = k // C
    first = block if C <= 2 else (block + 1) // 2
    halves = [(1, 0, first), (-1, first, block)][:1 if first == block else 2]  # which way round, and the part of a block

    gathered, by_step = b.scratch("W gathered", (k, n // C)), b.scratch("W by step", (C, block, n // C))
    b.collective("all-gather", "row", W, gathered, label="gather W")
    for t in range(C):  # what hop t multiplies by: a compiler fuses this slice into the product
        for by, begin, end in halves:
            start = (col - by * t) % C * block
            b.place(gathered[start + begin:start + end], by_step[t, begin:end], label=f"slice W s{t}")

    slots = min(2, C - 1)
    arrived = b.scratch("X arrived", (slots, *X.shape))
    for t in range(C):
        source = X if t == 0 else arrived[(t - 1) % slots]
        for by, begin, end in halves if t + 1 < C else []:
            part = X[:, begin:end] if t == 0 else arrived[(t - 1) % slots, :, begin:end]
            b.shift("col", by, part, arrived[t % slots, :, begin:end], label=f"pass X s{t}")
        b.matmul(source, by_step[t], Y, accumulate=t > 0, left_split=1 if t == 0 else 2, right_split=2, label=f"matmul s{t}")
    b.claim_product(Y, X, W)
    return b.build()


if __name__ == "__main__":
    schedule = wang({"row": 2, "col": 4}, 64, 64, 64)
    print(schedule)
    print(podsim.check(schedule))
    print(f"{podsim.run(schedule, machine='tpu_v4').makespan_s * 1e6:.3f} us on tpu_v4")
