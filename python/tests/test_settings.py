"""What an app says of itself, and what the lab is asked for: mistakes are named at once."""

from __future__ import annotations

from typing import Any

import pytest

from bellrock import App, PacketIn, Switch
from bellrock.lab import Lab, single


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"needs": "topology"}, TypeError, r"with a comma: needs = \('topology',\)"),
        ({"keeps_flows": "yes"}, TypeError, "keeps_flows is True or False, not 'yes'"),
        ({"wants_packet_ins": 1}, TypeError, "wants_packet_ins is True or False, not 1"),
        ({"name": ""}, ValueError, "name is empty"),
        ({"name": 7}, TypeError, "name is text, not 7"),
    ],
)
def test_a_setting_of_the_wrong_type_says_what_is_right(
    settings: dict[str, Any], error: type[Exception], text: str
) -> None:
    def packet_in(self: App, switch: Switch, packet: PacketIn) -> None:
        pass

    kind = type("Mistaken", (App,), {"packet_in": packet_in, **settings})
    with pytest.raises(error, match=text):
        Lab(single(1), kind())


def test_a_name_that_the_lab_does_not_have_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    lab = Lab(single(2), lambda switch, packet: None)
    with pytest.raises(ValueError, match="h9"):
        lab.ping("h1", "h9")
    assert "panicked" not in capfd.readouterr().err
