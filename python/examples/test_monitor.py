from learning import Learning
from monitor import EVERY, Monitor

from bellrock.lab import Lab, single


def test_the_rates_are_those_of_the_traffic() -> None:
    monitor = Monitor()
    lab = Lab(single(2), monitor, Learning)
    assert lab.ping("h1", "h2")
    lab.run_for(2 * EVERY)
    lab.udp("h1", "h2", count=100, interval=EVERY / 100)
    lab.run_for(EVERY)
    assert {(1, 1), (1, 2)} <= set(monitor.rates)
    assert monitor.rates[1, 1] > monitor.rates[1, 2] == 0
    assert lab.exceptions == []
