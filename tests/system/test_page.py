"""The web page in Chromium, on real switches: it follows the network, gives orders, and runs nothing of others."""

import base64
import hashlib
import os
import subprocess
import time

from harness.browser import Browser
from harness.case import SystemTest, on_both_versions
from harness.controller import without_own_variables
from harness.openvswitch import command
from harness.topologies import Ring
from harness.waiting import until

HTTP = "127.0.0.1:8080"
LIMIT_S = 60
# A name that would run as a program if it became markup.
HOSTILE = "<img src=x onerror=document.title='run'>"
HOSTILE_PORT = "<b>port"
FRAMES = 60
# Moves the map by the wheel, once in each frame.
MOVE = """
    const [frames, done] = arguments, map = document.getElementById("map"), began = performance.now();
    let n = 0;
    const step = () => {
        map.dispatchEvent(new WheelEvent("wheel", { deltaY: n % 2 ? 60 : -60, offsetX: 600, offsetY: 300 }));
        n += 1;
        n <= frames ? requestAnimationFrame(step) : done((performance.now() - began) / frames);
    };
    step();
"""


class Page(SystemTest):
    """A ring of four switches, with a circuit, and an operator at the page."""

    time_limit_s = 240

    def start(self, version, apps, tls=None):
        tokens = self.logs / "tokens"
        make = (os.environ["BELLROCK_BIN"], "token", "operator", "--scope", "write", "--file", str(tokens))
        self.token = command(*make).strip()
        names = {"north": "0000000000000001", "south": "0000000000000003"}
        controller = self.controller(config={
            "apps": apps, "switches": names, "http": {"listen": HTTP, "tokens": str(tokens), **(tls or {})},
        })
        network = self.network(Ring(), version)
        until(lambda: len(controller.ask("links")) == 8, LIMIT_S, "the links are found")
        return controller, network

    def browser(self):
        browser = Browser(self.run_dir, f"http://{HTTP}")
        self.addCleanup(browser.close)
        return browser

    def assert_clean(self, browser):
        self.assertEqual(browser.console_errors(), [])
        self.assertEqual(browser.foreign_requests(), [])

    @on_both_versions
    def a_lost_link_is_seen_with_the_new_path(self, version):
        """A circuit lies around the lost link, and the page shows both without a click."""
        circuit = {"blue": ["north:1", "south:2"]}
        _, network = self.start(version, [{"provisioning": {"circuits": circuit}}, "routing"])
        browser = self.browser()
        until(lambda: browser.map().get("links") == 4, LIMIT_S, "the ring is drawn")
        self.assertEqual((browser.map()["switches"], browser.map()["lost"]), (4, 0))
        browser.go("circuit/blue")

        def path():
            return browser.text("#path")

        until(lambda: path().startswith("north:"), LIMIT_S, "the path is shown")
        before = path()
        middle = "s2" if "0000000000000002" in before else "s4"
        network.net.configLinkStatus("s1", middle, "down")
        cut = time.monotonic()
        until(lambda: browser.map()["lost"] == 1, LIMIT_S, "the link is lost on the map")
        seen = time.monotonic()
        until(lambda: path().startswith("north:") and path() != before, LIMIT_S, "the path has changed")
        print(f"seen on the map after {seen - cut:.2f} s, the new path after {time.monotonic() - cut:.2f} s")
        network.net.configLinkStatus("s1", middle, "up")
        until(lambda: browser.map()["lost"] == 0, LIMIT_S, "the link is back")
        self.assert_clean(browser)

    @on_both_versions
    def a_host_is_quarantined_by_click(self, version):
        """Only after the operator signed in. Its ping stops, and comes back."""
        controller, network = self.start(version, ["quarantine", "static", "routing"])
        until(lambda: not network.unreachable(), LIMIT_S, "all hosts are found")
        browser = self.browser()
        host, pair = network["h2"].MAC(), [("h1", "h2")]
        until(lambda: browser.map().get("hosts") == 4, LIMIT_S, "the hosts are drawn")
        browser.click_on_map("host", host)
        until(lambda: host in browser.text("#detail"), LIMIT_S, "the host's details")
        self.assertNotIn("Quarantine", browser.text("#detail"))
        browser.sign_in(self.token)
        browser.press("Quarantine", "#detail")
        browser.submit()
        until(lambda: network.unreachable(pair) == pair, LIMIT_S, "its ping stops")
        browser.press("Let back", "#detail")
        browser.submit()
        until(lambda: not network.unreachable(pair), LIMIT_S, "its ping comes back")
        self.assertIn("token operator ordered block", controller.text())
        self.assert_clean(browser)

    @on_both_versions
    def a_static_flow_is_set_and_removed(self, version):
        """A wrong match is refused at its field; a right one is in the switch."""
        _, network = self.start(version, ["static", "routing"])
        browser = self.browser()
        browser.sign_in(self.token)
        browser.go("static")
        browser.press("Set a flow")
        browser.fill(name="web", switch="north", match="nonsense=1", actions="output:2")
        browser.one("dialog [type=submit]").click()
        wrong = "return document.querySelector('dialog [aria-invalid=true]')?.name"
        until(lambda: browser.run(wrong) == "match", LIMIT_S, "the wrong field is marked")
        self.assertIn("nonsense", browser.text("dialog .bad"))
        # The refusal is a line of the console; nothing else may be.
        self.assertEqual(len(browser.console_errors()), 1)
        browser.fill(match="in_port=9")
        browser.submit()

        def installed():
            return [flow for flow in network.flows("s1") if "in_port=9" in flow]

        until(installed, LIMIT_S, "the flow is in the switch")
        until(lambda: "in_port=9" in browser.text("#list-view"), LIMIT_S, "the flow is listed")
        browser.press("Remove", "#list-view")
        browser.submit()
        until(lambda: not installed(), LIMIT_S, "the flow is gone")
        self.assert_clean(browser)

    def test_a_reservation_is_made_and_released_openflow13(self):
        """With its path."""
        controller, network = self.start("OpenFlow13", ["bandwidth", "routing"])
        until(lambda: not network.unreachable(), LIMIT_S, "all hosts are found")
        browser = self.browser()
        browser.sign_in(self.token)
        browser.go("reservations")
        browser.press("Reserve", "#list-view")
        browser.fill(**{"from": network["h1"].IP(), "to": network["h2"].IP(), "rate_kbps": 1000})
        browser.submit()
        browser.go("reservation/1")
        until(lambda: browser.text("#path").startswith("north:"), LIMIT_S, "its path")
        browser.press("Release", "#detail")
        browser.submit()
        until(lambda: controller.ask("reservations") == [], LIMIT_S, "it is released")
        self.assert_clean(browser)

    @on_both_versions
    def hostile_names_are_only_text(self, version):
        """What a switch says of itself, and of its ports, is shown as it is."""
        controller, network = self.start(version, ["routing"])
        command("ovs-vsctl", "set", "bridge", "s1", f'other_config:dp-desc="{HOSTILE}"')
        command("ovs-vsctl", "add-port", "s1", HOSTILE_PORT, "--", "set", "interface", HOSTILE_PORT, "type=internal")
        # A switch describes itself when it connects.
        self.assertEqual(controller.stop(), 0)
        controller.start()
        network.await_connected()
        browser = self.browser()
        browser.go("switch/0000000000000001")
        until(lambda: HOSTILE in browser.text("#detail"), LIMIT_S, "the description is shown")
        until(lambda: HOSTILE_PORT in browser.text("#detail"), LIMIT_S, "the port is shown")
        browser.go("switches")
        until(lambda: "north" in browser.text("#list-view"), LIMIT_S, "the list is shown")
        self.assertEqual(browser.run("return document.querySelectorAll('main img, main b').length"), 0)
        self.assertEqual(browser.driver.title, "Bellrock")
        self.assert_clean(browser)

    def test_by_tls_nothing_is_shown_without_a_token(self):
        """The page comes, and asks to sign in; then it shows the network and takes orders, by TLS alone."""
        certificate, key = self.logs / "http.pem", self.logs / "http-key.pem"
        command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-subj", "/CN=controller", "-addext", "subjectAltName=IP:127.0.0.1", "-out", str(certificate), "-keyout", str(key))
        tls = {"listen": "0.0.0.0:8443", "certificate": str(certificate), "key": str(key)}
        controller, network = self.start("OpenFlow13", ["quarantine", "routing"], tls)
        until(lambda: not network.unreachable(), LIMIT_S, "all hosts are found")
        public = subprocess.run(["openssl", "x509", "-in", str(certificate), "-noout", "-pubkey"], capture_output=True, check=True).stdout
        public = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=public, capture_output=True, check=True).stdout
        key_hash = base64.b64encode(hashlib.sha256(public).digest()).decode()
        browser = Browser(self.run_dir, "https://127.0.0.1:8443", [key_hash])
        self.addCleanup(browser.close)
        until(lambda: browser.run("return document.getElementById('dialog').open"), LIMIT_S, "the page asks for a token")
        self.assertEqual((browser.map()["switches"], browser.map()["hosts"]), (0, 0))
        browser.fill(token=self.token)
        browser.submit()
        until(lambda: browser.map().get("hosts") == 4, LIMIT_S, "the hosts are drawn")
        browser.go(f"host/{network['h2'].MAC()}")
        browser.press("Quarantine", "#detail")
        browser.submit()
        pair = [("h1", "h2")]
        until(lambda: network.unreachable(pair) == pair, LIMIT_S, "its ping stops")
        self.assertIn("token operator ordered block", controller.text())
        self.assertEqual(browser.foreign_requests(), [])

    def test_a_thousand_switches_stay_usable(self):
        """The map moves, and its frame times are measured."""
        self.controller(config={"apps": ["routing"], "log_level": "error", "http": {"listen": HTTP}})
        with open(self.logs / "emulator.log", "wb") as log:
            emulator = subprocess.Popen(
                [os.environ["BELLROCK_BIN"], "emulate", "-t", "tree:4,10", "--version", "1.3"],
                stdin=subprocess.PIPE, stdout=log, stderr=log, env=without_own_variables())
        self.addCleanup(emulator.wait)
        self.addCleanup(emulator.kill)
        browser = self.browser()
        until(lambda: browser.map().get("links") == 1110, LIMIT_S, "the network is drawn")
        mean = browser.driver.execute_async_script(MOVE, FRAMES)
        print(f"{browser.map()['switches']:.0f} switches: {mean:.0f} ms a frame, drawn in at most {browser.map()['frameMs']:.0f} ms")
        self.assertGreaterEqual(browser.map()["frames"], FRAMES)
        browser.go("switches")
        until(lambda: "500 of 1,111" in browser.text("#list-view"), LIMIT_S, "the list")
        self.assert_clean(browser)
