"""An all-gather on a ring, one way: every device passes on what the one before it sent."""

import podsim


def ring_all_gather(devices: int, elements: int) -> podsim.Schedule:
    """``elements`` on each of ``devices``; after it every device has all of them."""
    b = podsim.Builder({"ring": devices}, name="all-gather by hand")
    i = b.index("ring")
    shard = b.input("X", (devices * elements,), ["ring"], name="shard")
    everything = b.output("X", (devices * elements,), name="all")
    b.place(shard, everything[podsim.block(i, elements)], label="own shard")
    for t in range(1, devices):  # pass on what step t - 1 brought
        b.shift("ring", 1, everything[podsim.block((i - t + 1) % devices, elements)], everything[podsim.block((i - t) % devices, elements)], label=f"step {t}")
    b.claim_collective("all-gather", "ring", shard, everything)
    return b.build()


if __name__ == "__main__":
    schedule = ring_all_gather(4, 16)
    print(schedule)
    print(podsim.check(schedule))
    print(f"{podsim.run(schedule, machine='tpu_v4').makespan_s * 1e6:.3f} us on tpu_v4")
