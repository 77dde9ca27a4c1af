"""Apps that run once in a cluster, on a controller that is alone. `tests/system/test_cluster_once_python.py` has the cluster."""

import asyncio
from typing import Any

import pytest

from bellrock import App, Network
from bellrock._app import begin, end
from bellrock.lab import Lab, linear


def test_it_starts_and_its_tasks_run_where_the_controller_is_alone() -> None:
    rounds = []

    class Once(App):
        scope = "once"

        def start(self, network: Network) -> None:
            assert network.term is None and not network.is_term_over
            self.spawn(self.rounds(network))

        async def rounds(self, network: Network) -> None:
            while True:
                await asyncio.sleep(1.0)
                rounds.append(network.now())

    lab = Lab(linear(2), Once(), "learning")
    assert lab.ping("h1", "h2")
    lab.run_for(3.5)
    assert len(rounds) >= 3


def test_a_scope_that_does_not_exist_is_refused() -> None:
    class Wrong(App):
        scope = "twice"  # type: ignore[assignment]

    with pytest.raises(ValueError, match='scope: "twice" is not "per_switch" or "once"'):
        Lab(linear(2), Wrong())


class Term:
    """The network of a term, which ends at once."""

    term = 7
    is_term_over = False


def test_no_task_goes_on_after_the_term_and_the_end_cancels_those_that_wait() -> None:
    steps: list[str] = []

    class Once(App):
        async def rounds(self) -> None:
            try:
                while True:
                    steps.append("step")
                    await asyncio.sleep(0)
            finally:
                steps.append("closed")

        async def waits(self) -> None:
            try:
                await asyncio.sleep(1e6)
            finally:
                steps.append("cancelled")

    async def main() -> None:
        app, network = Once(), Term()
        given: Any = network
        begin(app, given)
        rounds, waits = app.spawn(app.rounds()), app.spawn(app.waits())
        while len(steps) < 3:
            await asyncio.sleep(0)
        network.is_term_over = True
        await rounds
        assert steps[-1] == "closed" and not waits.done()
        end(app)
        with pytest.raises(asyncio.CancelledError):
            await waits
        assert steps[-1] == "cancelled"

    asyncio.run(main())
