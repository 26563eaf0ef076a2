"""What `ip -batch` and `tc -batch` read to make a lab. Text alone: nothing here asks the kernel."""

from network import FRAME, HEAD_ADDRESS, address, hardware_address, management_address

HEAD = "head"  # the namespace of mpirun
PROBE = "probe"  # and one that shows what the kernel has
FIRST_TABLE = 1000  # of routing tables: one per cable whose use depends on the source
QUEUE_BYTES = 4 * 1024 * 1024  # waiting at the end of a cable: as much as one connection may have on its way (tcp_wmem), so that one alone loses nothing, as on links with credits
# Nothing is lost: a connection may have 100 packets on their way from the beginning, and never takes an answer that waits behind data for a loss. Not more: a flow
# that passes through a node would fill the queue before those that begin there.
WINDOW = "initcwnd 100 initrwnd 100 rto_min 10s"
LATE_S = 150e-6  # of the kernel's timers: what would have passed meanwhile may leave at once


def namespace(lab, node):
    return f"{lab}-{node}"


def namespaces(lab, network):
    return [namespace(lab, node) for node in [HEAD, *range(network.nodes)]]


def whole(lab, network):
    """For ip, outside all namespaces: the namespaces, and pairs of interfaces that are made inside them, so that the host's own list of interfaces stays as it is."""
    lines = [f"netns add {name}" for name in namespaces(lab, network)]
    for number, cable in enumerate(network.cables):
        one, other = cable.ends
        lines.append(
            f"link add name cable{number} address {hardware_address(one, number)} netns {namespace(lab, one)} type veth"
            f" peer name cable{number} address {hardware_address(other, number)} netns {namespace(lab, other)}"
        )
    head = namespace(lab, HEAD)
    lines.append(f"link add name bridge netns {head} type bridge")
    for node in range(network.nodes):
        lines.append(f"link add name management netns {namespace(lab, node)} type veth peer name port{node} netns {head}")
        # The node's own address is on no cable, as cables come and go. No module for `dummy` interfaces is needed so.
        lines.append(f"link add name node netns {namespace(lab, node)} type veth peer name node-end netns {namespace(lab, node)}")
    return lines


def head(network):
    """For ip, in the namespace of mpirun: a bridge that all nodes are on, apart from the cables."""
    lines = ["link set lo up", f"addr add {HEAD_ADDRESS}/16 dev bridge", "link set bridge up"]
    for node in range(network.nodes):
        lines.append(f"link set port{node} master bridge")
        lines.append(f"link set port{node} up")
    return lines


def node(network, n):
    """For ip, in the namespace of a node: addresses, then the way to every chip."""
    lines = ["link set lo up", f"addr add {address(n)}/32 dev node", f"addr add {management_address(n)}/16 dev management"]
    lines += [f"link set {interface} up" for interface in ("node", "node-end", "management")]
    own = network.cables_at(n)
    for number, cable in own:
        other = cable.other(n)
        lines.append(f"link set cable{number} up")
        lines.append(f"neigh replace {address(other)} lladdr {hardware_address(other, number)} dev cable{number} nud permanent")
    ends = dict(own)

    def over(number):
        return f"via {address(ends[number].other(n))} dev cable{number} onlink src {address(n)} {WINDOW}"

    for chip, number in enumerate(network.next_cable[n]):
        if number is not None:
            lines.append(f"route add {address(chip)}/32 {over(number)}")
    policies = [route for route in network.policy_routes if route.at == n]
    for number in sorted({route.cable for route in policies}):
        lines.append(f"route add default {over(number)} table {FIRST_TABLE + number}")
    for route in policies:
        lines.append(f"rule add from {address(route.source)} to {address(route.to)} lookup {FIRST_TABLE + route.cable}")
    return lines


def burst_bytes(rate):
    """What a token bucket holds: a full packet, and no more than late timers need. The first packets of a message pass by it for nothing (README.md)."""
    return FRAME + round(rate * LATE_S)


def shaping(network, n):
    """For tc, in the namespace of a node: the rate of each cable in the direction away from it."""
    lines = []
    for number, cable in network.cables_at(n):
        rate = cable.rate(n)
        lines.append(f"qdisc add dev cable{number} root tbf rate {round(8 * rate)}bit burst {burst_bytes(rate)} limit {QUEUE_BYTES}")
    return lines


# In every namespace. Packets pass through, whatever way an answer takes; no IPv6. TCP: no model of the path, as BBR has one, which takes the moment in which
# the bucket is full for the path's latency, and the answers that wait behind data for a slow path; whole messages fit its buffers, so that a rank need not
# wake up for the kernel to go on; a connection that was idle does not start slowly again, and nothing is remembered from one to the next.
SETTINGS = {
    "net/ipv4/ip_forward": "1",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
    "net/ipv4/conf/all/send_redirects": "0",
    "net/ipv4/conf/default/send_redirects": "0",
    "net/ipv4/tcp_congestion_control": "reno",
    "net/ipv4/tcp_slow_start_after_idle": "0",
    "net/ipv4/tcp_no_metrics_save": "1",
    "net/ipv4/tcp_early_retrans": "0",
    "net/ipv4/tcp_wmem": f"4096 {QUEUE_BYTES} {QUEUE_BYTES}",
    "net/ipv4/tcp_rmem": f"4096 {2 * QUEUE_BYTES} {4 * QUEUE_BYTES}",
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
}
