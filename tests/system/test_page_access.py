"""The web page in Chromium, by keyboard and for screen readers, in dark and light."""

from selenium.webdriver.common.keys import Keys

from harness.pagetest import LIMIT_S, PageTest
from harness.waiting import until

# Contrast of text that everybody can read (WCAG 2.2, 1.4.3).
CONTRAST = 4.5
# The lowest contrast of the texts that are shown with what is behind them, and whose it is.
LOWEST_CONTRAST = """
    const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
        .reduce((sum, c, index) => sum + c * [0.2126, 0.7152, 0.0722][index], 0);
    const behind = (element) => {
        const colour = parts(getComputedStyle(element).backgroundColor);
        return colour.length === 3 || colour[3] === 1 ? colour : behind(element.parentElement);
    };
    const own = (element) => [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    return [...document.querySelectorAll("body *")].filter((element) => own(element) && element.checkVisibility()).map((element) => {
        const [a, b] = [light(parts(getComputedStyle(element).color)), light(behind(element))];
        return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), element.textContent.slice(0, 40)];
    }).sort(([a], [b]) => a - b)[0];
"""
# The colour of the map in the middle of a switch, and that of the page behind.
COLOURS = """
    const map = document.getElementById("map"), box = map.getBoundingClientRect(), at = window.placeOf("switch", arguments[0]);
    const pixel = map.getContext("2d").getImageData((at.x - box.left) * devicePixelRatio, (at.y - box.top) * devicePixelRatio, 1, 1).data;
    return [[...pixel].slice(0, 3), getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)];
"""
# Counts how often the list and the details are drawn.
COUNT = """
    window.draws = { "list-view": 0, detail: 0 };
    for (const id of Object.keys(window.draws)) new MutationObserver(() => { window.draws[id] += 1; }).observe(document.getElementById(id), { childList: true });
"""
NORTH = "0000000000000001"
VIEWS = ["map", "switches", "links", "hosts", "events", "apps", "circuits", "reservations", "quarantine", "static"]


class PageAccess(PageTest):
    """An operator without a mouse, or with a screen reader."""

    def await_draws(self, browser, part):
        """Until a part of the page was drawn anew, from now on."""
        before = browser.run("return window.draws[arguments[0]]", part)
        until(lambda: browser.run("return window.draws[arguments[0]]", part) > before, LIMIT_S, f"{part} is drawn anew")

    def tab_to(self, browser, focus):
        """Presses Tab until this has the focus."""
        for _ in range(100):
            if browser.focus() == focus:
                return
            browser.keys(Keys.TAB)
        self.fail(f"Tab does not come to {focus}")

    def test_all_can_be_done_by_keyboard_openflow13(self):
        """Sign in, step through the map, quarantine a host and let it back; the focus is never lost."""
        _, network = self.start("OpenFlow13", ["quarantine", "routing"])
        until(lambda: not network.unreachable(), LIMIT_S, "all hosts are found")
        browser = self.browser()
        until(lambda: browser.map().get("hosts") == 4, LIMIT_S, "the hosts are drawn")
        order = []
        for _ in range(3 + len(VIEWS) + 1):
            browser.keys(Keys.TAB)
            order.append(browser.focus())
        self.assertEqual(order, ["#content", "search", "account", *(f"#/{view}" for view in VIEWS), "map"])

        # The map: the switches one after the other, each read aloud.
        said = []
        for key in "nnnnp":
            before = browser.text("#selected")
            browser.keys(key)
            until(lambda before=before: browser.text("#selected") != before, LIMIT_S, "the selection is read aloud")
            said.append(browser.text("#selected"))
        self.assertEqual(len(set(said[:4])), 4, said)
        self.assertEqual(said[4], said[2])
        self.assertTrue(any(text.startswith("Switch north, 4 ports") for text in said), said)
        self.assertEqual(browser.focus(), "map")
        browser.keys(Keys.ESCAPE)
        until(lambda: browser.text("#selected") == "", LIMIT_S, "nothing is selected")

        # Sign in. The focus is where it was.
        browser.run("document.getElementById('search').focus()")
        browser.keys(Keys.TAB, Keys.ENTER)
        until(lambda: browser.focus() == "token", LIMIT_S, "the field of the token")
        browser.keys(self.token, Keys.ENTER)
        until(lambda: browser.focus() == "account", LIMIT_S, "the form is closed")

        # A host from the list to its details, while both are drawn anew.
        browser.run(COUNT)
        host = network["h2"].MAC()
        self.tab_to(browser, "#/hosts")
        browser.keys(Keys.ENTER)
        address = "#/host/" + host.replace(":", "%3A")
        until(lambda: browser.run("return Boolean(document.querySelector(`#list-view a[href='${arguments[0]}']`))", address), LIMIT_S, "the host")
        self.tab_to(browser, address)
        browser.keys(Keys.ENTER)
        until(lambda: browser.text("#selected").startswith("Host "), LIMIT_S, "the host is read aloud")
        self.await_draws(browser, "list-view")
        self.assertEqual(browser.focus(), address)
        self.tab_to(browser, "Quarantine")
        self.await_draws(browser, "detail")
        self.assertEqual(browser.focus(), "Quarantine")
        browser.keys(Keys.ENTER)
        until(lambda: browser.focus() == "host", LIMIT_S, "the form, at its first field")
        self.await_draws(browser, "detail")
        browser.keys(Keys.ENTER)
        until(lambda: "in quarantine" in browser.text("#selected"), LIMIT_S, "the quarantine is read aloud")
        until(lambda: browser.focus() == "detail", LIMIT_S, "the button is gone, so the details have the focus")
        self.tab_to(browser, "Let back")
        browser.keys(Keys.ENTER)
        until(lambda: browser.focus() == "Cancel", LIMIT_S, "the form without fields")
        browser.keys(Keys.ESCAPE)
        until(lambda: browser.focus() == "Let back", LIMIT_S, "the button has the focus again")
        self.await_draws(browser, "detail")
        self.assertEqual(browser.focus(), "Let back")
        browser.keys(Keys.ESCAPE)
        until(lambda: browser.focus() == "list-view", LIMIT_S, "the details are closed")
        self.assert_clean(browser)

    def test_everything_has_a_role_and_a_name_openflow13(self):
        """Whatever can have the focus, in all views, in the details and in a form."""
        _, network = self.start("OpenFlow13", ["quarantine", "static", "bandwidth", "routing"])
        until(lambda: not network.unreachable(), LIMIT_S, "all hosts are found")
        browser = self.browser()
        browser.sign_in(self.token)
        roles, nodes = set(), 0
        for place in [*VIEWS, f"switch/{NORTH}", f"host/{network['h2'].MAC()}"]:
            browser.go(place)
            until(lambda: browser.run("return !document.body.textContent.includes('is asked…')"), LIMIT_S, "the answer of the controller")
            if place == "static":
                browser.press("Set a flow")
            for node in browser.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]:
                role, name = node.get("role", {}).get("value"), node.get("name", {}).get("value", "")
                roles.add(role)
                can_focus = any(a["name"] == "focusable" and a["value"]["value"] for a in node.get("properties", []))
                # What is only a target of the link "Skip to the content".
                if can_focus and not node.get("ignored") and role not in ("RootWebArea", "main"):
                    nodes += 1
                    self.assertTrue(name.strip(), f"{place}: {role} without a name: {node}")
            if place == "static":
                browser.press("Cancel", "dialog")
        self.assertGreater(nodes, 100)
        expected = {"banner", "navigation", "main", "region", "complementary", "application", "status", "table", "columnheader",
                    "link", "button", "searchbox", "textbox", "spinbutton", "dialog", "heading"}
        self.assertEqual(expected - roles, set())
        self.assert_clean(browser)

    def test_dark_and_light_can_be_read_openflow13(self):
        """The map has the colours of the page, and each text stands out from what is behind it."""
        controller, network = self.start("OpenFlow13", ["quarantine", "static", "routing"])
        until(lambda: not network.unreachable(), LIMIT_S, "all hosts are found")
        controller.ask("quarantine", "add", network["h2"].IP())
        # A link that was lost just now is an alarm at the head of the page.
        network.net.configLinkStatus("s1", "s2", "down")
        browser = self.browser()
        browser.sign_in(self.token)
        seen = {}
        for scheme in ("light", "dark"):
            browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
            browser.go("map")
            until(lambda: browser.map().get("switches") == 4, LIMIT_S, "the ring is drawn")
            until(lambda: browser.run(COLOURS, NORTH) != seen.get("light"), LIMIT_S, "other colours")
            seen[scheme] = browser.run(COLOURS, NORTH)
            for place in [*VIEWS, f"switch/{NORTH}", f"host/{network['h2'].MAC()}"]:
                browser.go(place)
                until(lambda: browser.run("return !document.body.textContent.includes('is asked…')"), LIMIT_S, "the answer of the controller")
                lowest, text = browser.run(LOWEST_CONTRAST)
                self.assertGreaterEqual(lowest, CONTRAST, f"{scheme}, {place}: {text!r}")
        (light_switch, light_page), (dark_switch, dark_page) = seen["light"], seen["dark"]
        self.assertGreater(sum(light_page), sum(light_switch), "a dark switch on a light page")
        self.assertGreater(sum(dark_switch), sum(dark_page), "a light switch on a dark page")
        self.assert_clean(browser)
