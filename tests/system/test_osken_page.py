"""The manual's page of Ryu's applications is that of the tests. `BLESS=1 tests/system/run test_osken_page` writes it."""

import os
import unittest

import test_osken
import test_osken_apps
import test_osken_rest
from harness.osken_page import NOT_RUN, PAGE, applications, modules, page


def tests():
    """All tests that may run applications."""
    for module in (test_osken, test_osken_rest, test_osken_apps):
        for suite in unittest.defaultTestLoader.loadTestsFromModule(module):
            yield from suite


class Page(unittest.TestCase):
    """It needs neither a controller nor a switch."""

    time_limit_s = 60
    alone = False
    maxDiff = None

    def test_the_page_is_that_of_the_tests(self):
        """Word for word."""
        text = page(tests())
        if os.environ.get("BLESS"):
            PAGE.write_text(text)
        self.assertEqual(PAGE.read_text(), text, "BLESS=1 writes it")

    def test_each_application_is_on_the_page(self):
        """Those that run, and those that do not."""
        run = set(applications(tests()))
        self.assertEqual(sorted(run & set(NOT_RUN)), [], "an application cannot be in both tables")
        self.assertEqual(sorted(run | set(NOT_RUN)), sorted(modules()))
