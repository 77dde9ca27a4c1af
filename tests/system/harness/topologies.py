"""Networks with cycles, for Mininet. Apps need links to work in them."""

from mininet.topo import Topo


def switch_links(topology):
    """Links between switches. All others lead to hosts."""
    return [link for link in topology.links() if all(topology.isSwitch(end) for end in link)]


class Ring(Topo):
    """Four switches in a ring, with a host each."""

    def build(self, switches=4):
        names = [self.addSwitch(f"s{number}") for number in range(1, switches + 1)]
        for index, name in enumerate(names):
            self.addLink(self.addHost(f"h{index + 1}"), name)
            self.addLink(name, names[(index + 1) % switches])


class Mesh(Topo):
    """Five switches, all linked with each other, with a host each."""

    def build(self, switches=5):
        names = [self.addSwitch(f"s{number}") for number in range(1, switches + 1)]
        for index, name in enumerate(names):
            self.addLink(self.addHost(f"h{index + 1}"), name)
            for other in names[index + 1:]:
                self.addLink(name, other)


class Grid(Topo):
    """Nine switches in three rows and three columns, each linked with its neighbours, with a host each."""

    def build(self, side=3):
        def name(row, column):
            return f"s{row * side + column + 1}"

        for index in range(side * side):
            self.addLink(self.addHost(f"h{index + 1}"), self.addSwitch(f"s{index + 1}"))
        for row in range(side):
            for column in range(side):
                if column + 1 < side:
                    self.addLink(name(row, column), name(row, column + 1))
                if row + 1 < side:
                    self.addLink(name(row, column), name(row + 1, column))


class FatTree(Topo):
    """The fat-tree of four-port switches: 20 switches, 16 hosts."""

    def build(self, k=4):
        half = k // 2
        number = iter(range(1, 1000))
        cores = [self.addSwitch(f"s{next(number)}") for _ in range(half * half)]
        hosts = iter(range(1, 1000))
        for _ in range(k):
            upper = [self.addSwitch(f"s{next(number)}") for _ in range(half)]
            lower = [self.addSwitch(f"s{next(number)}") for _ in range(half)]
            for index, switch in enumerate(upper):
                for core in cores[index * half:(index + 1) * half]:
                    self.addLink(switch, core)
                for edge in lower:
                    self.addLink(switch, edge)
            for edge in lower:
                for _ in range(half):
                    self.addLink(edge, self.addHost(f"h{next(hosts)}"))
