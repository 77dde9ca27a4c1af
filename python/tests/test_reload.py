"""`bellrock run --reload`: a changed file is loaded again, and switches stay connected."""

import textwrap
from pathlib import Path

from switch import FLOW_MOD, PACKET_OUT, SwitchEnd
from test_command import FRAME, Run

APP = """
    import asyncio
    import logging
    import bellrock

    log = logging.getLogger("of.mine")

    class Mine(bellrock.App):
        def start(self, network):
            log.info("version {port} starts")
            self.spawn(self.rounds())

        async def rounds(self):
            try:
                await asyncio.sleep(1e6)
            finally:
                log.info("version {port} ends")

        def switch_up(self, network, switch):
            switch.install(bellrock.Flow(bellrock.Match(in_port={port}), bellrock.Action.output({port})))

        def packet_in(self, switch, packet):
            {body}
            switch.packet_out(packet, {port})
"""


def _app(port: int, body: str = "pass") -> str:
    return textwrap.dedent(APP.format(port=port, body=body))


def _change(file: Path, text: str) -> None:
    # Under another name first: half a file is no version of it.
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


def _until_flow(switch: SwitchEnd, port: int) -> None:
    """Waits until the app has installed the flow of this port: it has the switch then."""
    while int.from_bytes(switch.receive(FLOW_MOD)[4:6], "big") != port:
        pass


def _port(switch: SwitchEnd) -> int:
    """The port to which the answer to a packet goes: the last action of its packet_out."""
    switch.packet_in(FRAME)
    body = switch.receive(PACKET_OUT)
    return int.from_bytes(body[12:14], "big")


def test_a_changed_file_is_loaded_and_the_switch_stays(tmp_path: Path) -> None:
    with Run(tmp_path, _app(2), reload=True) as run:
        with SwitchEnd(run.address()) as switch:
            run.until("version 2 starts")
            _until_flow(switch, 2)
            assert _port(switch) == 2
            _change(run.app, _app(3))
            run.until("version 3 starts")
            run.until("my_app.py is loaded again: apps: Mine")
            run.until("version 2 ends")
            _until_flow(switch, 3)
            assert _port(switch) == 3
        assert run.end() == 0


def test_a_file_with_an_error_changes_nothing_and_the_log_has_the_line(tmp_path: Path) -> None:
    with Run(tmp_path, _app(2), reload=True) as run, SwitchEnd(run.address()) as switch:
        assert _port(switch) == 2
        _change(run.app, "import bellrock\n\nclass Mine(bellrock.App:\n")
        line = run.until("cannot be loaded")
        assert "my_app.py:3 cannot be loaded: SyntaxError" in line and "the last version goes on" in line
        assert _port(switch) == 2
        _change(run.app, "import bellrock\nimport no_such_module\n")
        assert "my_app.py:2 cannot be loaded: ModuleNotFoundError" in run.until("cannot be loaded")
        _change(run.app, _app(2).replace("class Mine", "class Other"))
        assert "its apps were Mine, and are Other: that needs a restart" in run.until("needs a restart")
        _change(run.app, _app(2).replace("def start", "forwards = 'nothing'\n    def start"))
        assert "`forwards` of the app Mine has changed: that needs a restart" in run.until("needs a restart")
        _change(run.app, "")
        assert "my_app.py: it has no app" in run.until("it has no app")
        assert _port(switch) == 2
        _change(run.app, _app(4))
        run.until("is loaded again")
        _until_flow(switch, 4)
        assert _port(switch) == 4
        assert run.end() == 0


def test_a_module_beside_the_file_is_followed_too(tmp_path: Path) -> None:
    helper = tmp_path / "helper_of_mine.py"
    helper.write_text("PORT = 5\n")
    app = "import helper_of_mine\n" + _app(2).replace("packet_out(packet, 2)", "packet_out(packet, helper_of_mine.PORT)")
    with Run(tmp_path, app, reload=True) as run, SwitchEnd(run.address()) as switch:
        assert _port(switch) == 5
        _change(helper, "PORT = 6\n")
        run.until("is loaded again")
        _until_flow(switch, 2)
        assert _port(switch) == 6
        assert run.end() == 0


def test_an_app_that_was_disabled_gets_its_events_again(tmp_path: Path) -> None:
    with Run(tmp_path, _app(2, "1 / 0"), reload=True) as run, SwitchEnd(run.address()) as switch:
        for _ in range(20):
            switch.packet_in(FRAME)
        run.until("APP DISABLED")
        _change(run.app, _app(7))
        run.until("is loaded again")
        _until_flow(switch, 7)
        assert _port(switch) == 7
        assert run.end() == 0
