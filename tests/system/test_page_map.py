"""The map of the web page in Chromium: empty networks, networks without discovery, lost switches, paths, search."""

from selenium.webdriver.common.keys import Keys

from harness.case import on_both_versions
from harness.network import Line
from harness.openvswitch import command
from harness.pagetest import HTTP, LIMIT_S, PageTest
from harness.waiting import until

EAST = "0000000000000002"


class PageMap(PageTest):
    """What an operator sees first, and when a switch is lost."""

    def hash(self, browser):
        return browser.run("return location.hash")

    @on_both_versions
    def the_default_app_has_a_map(self, version):
        """Before the first switch the page shows where switches connect; then switches and hosts, although nobody
        looks for links."""
        self.controller(config={"http": {"listen": HTTP}})
        browser = self.browser()
        until(lambda: "ovs-vsctl set-controller br0 tcp:127.0.0.1:6653" in browser.text("#welcome"), LIMIT_S, "the command to copy")
        self.assertIn("No switch is connected", browser.text("#welcome"))
        browser.press("Copy", "#welcome")
        until(lambda: "Copied" in browser.text("#welcome") or "Marked" in browser.text("#welcome"), LIMIT_S, "the command is copied")
        network = self.network(Line(switches=2, hosts=(1, 2)), version)
        until(lambda: browser.map().get("switches") == 2, LIMIT_S, "the switches are drawn")
        until(lambda: not network.unreachable(), LIMIT_S, "the hosts reach each other")
        until(lambda: browser.map().get("hosts") == 2, LIMIT_S, "the hosts are drawn")
        until(lambda: "Links are not looked for" in browser.text("#map-note"), LIMIT_S, "the page says why there are no links")
        self.assertTrue(browser.run("return document.getElementById('welcome').hidden"))
        self.assert_clean(browser)

    @on_both_versions
    def a_lost_switch_stays_on_the_map(self, version):
        """With its links, until it is back."""
        self.start(version, ["routing"])
        browser = self.browser()
        until(lambda: browser.map().get("links") == 4, LIMIT_S, "the ring is drawn")
        command("ovs-vsctl", "del-controller", "s2")
        until(lambda: browser.map()["away"] == 1, LIMIT_S, "the switch is drawn as lost")
        until(lambda: browser.map()["lost"] == 2, LIMIT_S, "its links are drawn as lost")
        self.assertEqual(browser.map()["switches"], 4)
        until(lambda: "1 not connected" in browser.text("#summary"), LIMIT_S, "the summary counts it")
        browser.click_on_map("switch", EAST)
        until(lambda: "It is not connected." in browser.text("#detail"), LIMIT_S, "its details")
        browser.go("switches")
        until(lambda: f"Not connected: {EAST}" in browser.text("#list-view"), LIMIT_S, "the list names it")
        browser.go("map")
        command("ovs-vsctl", "set-controller", "s2", "tcp:127.0.0.1:6653")
        until(lambda: browser.map()["away"] == 0 and browser.map()["links"] == 4, LIMIT_S, "the switch is back")
        self.assert_clean(browser)

    def test_a_path_is_reached_by_clicks_openflow13(self):
        """From the list of circuits to the map, where the circuit stays selected."""
        self.start("OpenFlow13", [{"provisioning": {"circuits": {"blue": ["north:1", "south:2"]}}}, "routing"])
        browser = self.browser()
        browser.go("circuits")
        click = "return [...document.querySelectorAll(arguments[0])].some((link) => link.textContent === arguments[1] && (link.click(), true))"
        until(lambda: browser.run(click, "#list-view a", "blue"), LIMIT_S, "the circuit in the list")
        until(lambda: browser.text("#path").startswith("north:"), LIMIT_S, "its path")
        until(lambda: browser.run(click, "#detail a", "Show on the map"), LIMIT_S, "the way to the map")
        until(lambda: self.hash(browser) == "#/map/circuit/blue", LIMIT_S, "the map, with the circuit")
        browser.run(click, "nav a", "Hosts")
        until(lambda: self.hash(browser) == "#/hosts/circuit/blue", LIMIT_S, "another view, with the circuit")
        browser.run(click, "nav a", "Map")
        until(lambda: self.hash(browser) == "#/map/circuit/blue", LIMIT_S, "the map again")
        until(lambda: browser.text("#path").startswith("north:"), LIMIT_S, "its path is there again")
        self.assert_clean(browser)

    def test_the_search_lists_what_it_finds_openflow13(self):
        """A host by its address, which Enter selects; and that there is nothing."""
        _, network = self.start("OpenFlow13", ["routing"])
        until(lambda: not network.unreachable(), LIMIT_S, "all hosts are found")
        browser = self.browser()
        until(lambda: browser.map().get("hosts") == 4, LIMIT_S, "the hosts are drawn")
        host, search = network["h2"], browser.one("#search")
        search.send_keys(host.IP())
        until(lambda: host.MAC() in browser.text("#results"), LIMIT_S, "the host is found")
        search.send_keys(Keys.ENTER)
        until(lambda: host.MAC() in browser.text("#detail"), LIMIT_S, "the host is selected")
        search.send_keys("zzz")
        until(lambda: "Nothing is found." in browser.text("#results"), LIMIT_S, "nothing is found")
        search.send_keys(Keys.CONTROL, "a")
        search.send_keys(Keys.BACKSPACE)
        until(lambda: browser.run("return document.getElementById('results').hidden"), LIMIT_S, "the list is closed")
        self.assert_clean(browser)
