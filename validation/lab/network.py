"""The network of a lab: what `podsim show topology --routes json` says, and the addresses and names that its parts get."""

import dataclasses
import json

# Where an end of a cable could no longer be shaped by this kernel as it is told: a packet of 1514 bytes takes a microsecond.
MOST_BYTES_PER_S = 1.25e9
MOST_NODES = 4096
# What a cable carries beside the payload of a full packet: 1448 bytes of payload in an Ethernet frame of 1514 (IPv4 20, TCP 20 and its timestamps 12, Ethernet 14).
PAYLOAD, FRAME = 1448, 1514


class LabError(Exception):
    """What a person can mend; the program ends with status 2."""


@dataclasses.dataclass(frozen=True)
class Cable:
    ends: tuple  # two nodes
    bytes_per_s: tuple  # away from each of them

    def other(self, node):
        return self.ends[1 if self.ends[0] == node else 0]

    def rate(self, node):
        """Of what leaves this node."""
        return self.bytes_per_s[0 if self.ends[0] == node else 1]


@dataclasses.dataclass(frozen=True)
class PolicyRoute:
    at: int
    source: int
    to: int
    cable: int


@dataclasses.dataclass(frozen=True)
class Network:
    chips: int
    names: list  # of nodes, chips first
    cables: list
    next_cable: list  # per node and chip; None: the chip itself, or nothing passes
    policy_routes: list
    machine: str
    slice: str

    @property
    def nodes(self):
        return len(self.names)

    def cables_at(self, node):
        return [(number, cable) for number, cable in enumerate(self.cables) if node in cable.ends]

    def path(self, source, to):
        """The nodes that a packet visits, both ends included."""
        exceptions = {(route.at, route.source, route.to): route.cable for route in self.policy_routes}
        visited = [source]
        while visited[-1] != to:
            at = visited[-1]
            visited.append(self.cables[exceptions.get((at, source, to), self.next_cable[at][to])].other(at))
            if len(visited) > self.nodes:
                raise LabError(f"the routes from {self.names[source]} to {self.names[to]} go in a circle")
        return visited


def read_network(text, where):
    try:
        return network_of(json.loads(text))
    except (json.JSONDecodeError, KeyError, TypeError, IndexError) as error:
        raise LabError(f"{where}: expected the output of `podsim show topology --routes json`: {error!r}") from error


def network_of(told):
    cables = [Cable(tuple(cable["ends"]), tuple(cable["bandwidth_bytes_per_s"])) for cable in told["cables"]]
    names = [node["name"] for node in told["nodes"]]
    if len(names) > MOST_NODES:
        raise LabError(f"a lab has at most {MOST_NODES} nodes, found {len(names)}")
    for cable in cables:
        for rate in cable.bytes_per_s:
            if rate is None or rate > MOST_BYTES_PER_S:
                found = "unlimited" if rate is None else f"{rate / 1e9:g} GB/s"
                between = " and ".join(names[end] for end in cable.ends)
                raise LabError(f"a cable of a lab carries at most {MOST_BYTES_PER_S / 1e9:g} GB/s, found {found} between {between}: --set link.bandwidth=10MB/s")
    policies = [PolicyRoute(route["at"], route["from"], route["to"], route["cable"]) for route in told["policy_routes"]]
    require_ends(told, names, cables, policies)
    return Network(told["chips"], names, cables, told["next_cable"], policies, told["machine"], told["slice"])


def require_ends(told, names, cables, policies):
    """Errors: chips, ends of cables or routes that are not of this network."""
    nodes, chips = range(len(names)), range(told["chips"])
    if not 0 < len(chips) <= len(names):
        raise LabError(f"expected from 1 to {len(names)} chips, found {told['chips']}")
    for cable in cables:
        if len(cable.ends) != 2 or len(cable.bytes_per_s) != 2 or cable.ends[0] == cable.ends[1] or not all(end in nodes for end in cable.ends):
            raise LabError(f"expected a cable between two of {len(names)} nodes with a rate away from each, found ends {cable.ends} and rates {cable.bytes_per_s}")
    if len(told["next_cable"]) != len(names) or any(len(row) != len(chips) for row in told["next_cable"]):
        raise LabError(f"expected next_cable to have a row for each of {len(names)} nodes, an entry for each of {len(chips)} chips")
    used = [(node, cable) for node, row in enumerate(told["next_cable"]) for cable in row if cable is not None] + [(route.at, route.cable) for route in policies]
    for node, cable in used:
        if cable not in range(len(cables)) or node not in cables[cable].ends:
            raise LabError(f"expected routes of a node to leave over its own cables, found cable {cable} at node {node}")
    for route in policies:
        if route.source not in chips or route.to not in chips:
            raise LabError(f"expected a route between two of {len(chips)} chips, found {route.source} to {route.to}")


# ---- Addresses. Each lab is in namespaces of its own, so that two of them may have the same.

CABLE_NETWORK, MANAGEMENT_NETWORK = "10.97.0.0/16", "10.98.0.0/16"
HEAD_ADDRESS = "10.98.0.1"


def address(node):
    """Of a node in the network of cables."""
    return f"10.97.{(node + 1) >> 8}.{(node + 1) & 255}"


def management_address(node):
    return f"10.98.{(node + 2) >> 8}.{(node + 2) & 255}"


def hardware_address(node, cable):
    """Of a node's end of a cable."""
    return f"02:{node >> 8:02x}:{node & 255:02x}:{cable >> 16:02x}:{cable >> 8 & 255:02x}:{cable & 255:02x}"
