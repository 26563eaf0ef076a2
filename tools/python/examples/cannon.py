"""Cannon: on P x P devices both operands are skewed, then pass to a neighbour after each product."""

import podsim


def cannon(mesh, m: int, n: int, k: int, dtype: str = "bf16") -> podsim.Schedule:
    """Y[m, n] = X[m, k] @ W[k, n], all sharded by rows and columns; ``mesh`` has the axes row and col, equally long."""
    b = podsim.Builder(mesh, name="cannon os", dtype=dtype)
    P, row, col = b.size("row"), b.index("row"), b.index("col")
    X, W = b.input("X", (m, k), ["row", "col"]), b.input("W", (k, n), ["row", "col"])
    Y = b.output("Y", (m, n), ["row", "col"])
    farthest = P // 2  # unit shifts, the short way round

    def skewed(name, matrix, axis, amount):
        """Two slots through which the matrix moves by -amount along the axis; all devices are done at the same step, so in the same slot."""
        moving = b.scratch(f"{name} moving", (2, *matrix.shape))
        ways = [(-1, amount.between(0, farthest + 1), farthest - amount)]
        if farthest + 1 < P:
            ways.append((1, amount.between(farthest + 1, P), amount + farthest - P))
        for slot in range(2):
            for _, devices, first_step in ways:
                b.place(matrix, moving[slot], where=devices & (first_step % 2 == slot), label=f"skew {name}")
        for step in range(farthest):
            for by, _, _ in ways:
                movers = (farthest - step, farthest + 1) if by < 0 else (farthest + 1, P - farthest + step + 1)
                if movers[0] < movers[1]:
                    b.shift(axis, by, moving[step % 2], moving[(step + 1) % 2], where=amount.between(*movers), label=f"skew {name}")
        return moving

    left, right = skewed("X", X, "col", row), skewed("W", W, "row", col)
    for t in range(P):
        now, then = (farthest + t) % 2, (farthest + t + 1) % 2
        label = f" s{t}" if P > 1 else ""
        if t + 1 < P:
            b.shift("col", -1, left[now], left[then], label=f"pass X{label}")
            b.shift("row", -1, right[now], right[then], label=f"pass W{label}")
        b.matmul(left[now], right[now], Y, accumulate=t > 0, left_split=2, right_split=2, label=f"matmul{label}")
    b.claim_product(Y, X, W)
    return b.build()


if __name__ == "__main__":
    schedule = cannon({"row": 4, "col": 4}, 64, 64, 64)
    print(schedule)
    print(podsim.check(schedule))
    print(f"{podsim.run(schedule, machine='tpu_v4').makespan_s * 1e6:.3f} us on tpu_v4")
