"""The controller stops under running traffic and starts again, or is told to end."""

import signal
import time

from harness.case import SystemTest, on_both_versions
from harness.network import Line, Pings, tree

# Time limit from the start of the new controller until every pair is reachable.
BACK_LIMIT_S = 5
# Time without a controller. By its end, switches try to connect once a second.
AWAY_S = 3
PING_INTERVAL_S = 0.2
STEADY_S = 2
IPV6_PORT = "[::1]:6653"


class Restart(SystemTest):
    """Stops and starts the controller."""

    @on_both_versions
    def under_traffic(self, version):
        """Every pair of hosts is reachable within five seconds of the new start, under running traffic."""
        controller = self.controller()
        network = self.network(tree(), version)
        # Each host sends to its neighbour. No other pair has communicated when the controller stops.
        hosts = network.hosts
        running = [Pings(one, other, PING_INTERVAL_S) for one, other in zip(hosts, hosts[1:] + hosts[:1])]
        time.sleep(1)
        self.assertEqual(controller.stop(), 0, "exit status after SIGTERM")
        time.sleep(AWAY_S)
        self.assertEqual(network.unreachable([("h1", "h5")]), [("h1", "h5")], "a new pair, while nobody is in control")

        began = time.time()
        self.controller()
        network.seconds_until_reachable(BACK_LIMIT_S)
        time.sleep(max(0, began + BACK_LIMIT_S - time.time()) + STEADY_S)
        for pings in running:
            answers = [(at, sequence) for at, sequence, ms in pings.finish() if at - ms / 1000 >= began + BACK_LIMIT_S]
            sequences = [sequence for _, sequence in answers]
            self.assertGreater(len(sequences), STEADY_S / PING_INTERVAL_S / 2, f"answers to {pings.name} after the limit")
            self.assertEqual(sequences, list(range(sequences[0], sequences[-1] + 1)), f"{pings.name} lost some afterwards")


class Stop(SystemTest):
    """Ctrl-C and SIGTERM stop it with status 0. It also listens on IPv6."""

    def stop_by(self, how, version):
        # The hub sees every packet, so there are packets to drain.
        controller = self.controller(app="hub")
        network = self.network(Line(), version)
        pings = Pings(network["h1"], network["h2"], 0.01)
        time.sleep(0.5)
        self.assertEqual(controller.stop(how), 0, f"exit status after {how.name}")
        self.assertGreater(len(pings.finish()), 10, "answers before the end")

    @on_both_versions
    def by_sigint(self, version):
        """Ctrl-C."""
        self.stop_by(signal.SIGINT, version)

    @on_both_versions
    def by_sigterm(self, version):
        """SIGTERM, as service managers send it."""
        self.stop_by(signal.SIGTERM, version)

    @on_both_versions
    def over_ipv6(self, version):
        """Switches that connect to [::1]."""
        self.controller(listen=IPV6_PORT)
        network = self.network(Line(), version, controller_ip="[::1]")
        self.assertEqual(network.ping_all(), 0, "percent lost")
