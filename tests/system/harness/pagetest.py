"""The base of the web page's tests: a ring of four switches with names, and an operator at the page."""

import os

from .browser import Browser
from .case import SystemTest
from .openvswitch import command
from .topologies import Ring
from .waiting import until

HTTP = "127.0.0.1:8080"
LIMIT_S = 60


class PageTest(SystemTest):
    time_limit_s = 240

    def start(self, version, apps, tls=None, **settings):
        """A controller with these apps, and the network."""
        tokens = self.logs / "tokens"
        make = (os.environ["BELLROCK_BIN"], "token", "operator", "--scope", "write", "--file", str(tokens))
        self.token = command(*make).strip()
        names = {"north": "0000000000000001", "south": "0000000000000003"}
        self.config = {
            "apps": apps, "switches": names, "http": {"listen": HTTP, "tokens": str(tokens), **(tls or {})}, **settings,
        }
        controller = self.controller(config=self.config)
        network = self.network(Ring(), version)
        until(lambda: len(controller.ask("links")) == 8, LIMIT_S, "the links are found")
        return controller, network

    def browser(self, **options):
        browser = Browser(self.run_dir, f"http://{HTTP}", **options)
        self.addCleanup(browser.close)
        return browser

    def assert_clean(self, browser):
        self.assertEqual(browser.console_errors(), [])
        self.assertEqual(browser.foreign_requests(), [])
