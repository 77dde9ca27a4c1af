"""The fixture that the package brings for pytest."""

from collections.abc import Callable

import pytest

import bellrock
from bellrock.lab import Lab, single

pytest_plugins = "pytester"


def hub(switch: bellrock.Switch, packet: bellrock.PacketIn) -> None:
    switch.packet_out(packet, bellrock.Port.FLOOD)


def test_the_fixture_makes_labs(make_lab: Callable[..., Lab]) -> None:
    first, second = make_lab(single(2), hub), make_lab(single(3), hub, version="1.0")
    assert first.ping("h1", "h2") and second.ping("h1", "h3")


def test_a_test_fails_if_an_app_raises(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from bellrock.lab import single

        def broken(switch, packet):
            raise KeyError("it is broken")

        def test_ping(make_lab):
            assert not make_lab(single(2), broken).ping("h1", "h2")
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*KeyError: 'it is broken'", "*AssertionError: exceptions of apps: *"])
