#!/usr/bin/env python3
"""How uniform all-to-all traffic loads the links of plain and twisted tori, by how ties between shortest routes are broken. Independent of podsim.

Every chip sends one block to every other. All chips see the same network, so the blocks per link follow from the displacements out of one chip:
    greatest   of the shortest displacements, the one with the greatest first coordinate (as podsim routes)
    both       half along the greatest, half along the least (podsim's bound)
    all        spread evenly over all shortest displacements
"""

import itertools

LINK = 45e9  # bytes per second, one direction


def shortest(extents, twists, target):
    """Displacements to `target` with the fewest hops. Going round dimension d shifts the others by twists[d]."""
    found = {}
    for times in itertools.product(range(-2, 3), repeat=3):
        shift = [sum(times[d] * twists[d][e] for d in range(3) if d != e) for e in range(3)]
        displacement = tuple(target[e] + times[e] * extents[e] - shift[e] for e in range(3))
        found.setdefault(sum(map(abs, displacement)), set()).add(displacement)
    return found[min(found)]


def loads(extents, twists, ties):
    """Blocks per link, for each dimension and sign."""
    blocks = {(e, sign): 0.0 for e in range(3) for sign in (1, -1)}
    for target in itertools.product(*map(range, extents)):
        routes = shortest(extents, twists, target)
        if ties == "greatest":
            routes = [max(routes)]
        elif ties == "both":
            routes = [max(routes), min(routes)]
        for route in routes:
            for e, hops in enumerate(route):
                if hops != 0:
                    blocks[e, 1 if hops > 0 else -1] += abs(hops) / len(routes)
    return blocks


def main():
    print(f"\n{'slice':6} {'topology':8} {'ties':9} {'blocks on each link of  x+     x-     y+     y-     z+     z-':>66}  GB/s per chip")
    for extents in ((4, 4, 8), (4, 8, 8)):
        k, chips = min(extents), extents[0] * extents[1] * extents[2]
        plain = [[0] * 3 for _ in range(3)]
        twisted = [[k if extents[d] == k and extents[e] == 2 * k else 0 for e in range(3)] for d in range(3)]
        for name, twists in (("torus", plain), ("twisted", twisted)):
            for ties in ("greatest", "both", "all"):
                blocks = loads(extents, twists, ties)
                rate = LINK * (chips - 1) / max(blocks.values()) / 1e9
                columns = " ".join(f"{blocks[e, sign]:6.1f}" for e in range(3) for sign in (1, -1))
                print(f"{'x'.join(map(str, extents)):6} {name:8} {ties:9} {columns:>66}  {rate:.2f}")


if __name__ == "__main__":
    main()
