"""The web page in Chromium, on real switches: it follows the network, gives orders, and runs nothing of others."""

import base64
import hashlib
import json
import os
import subprocess
import time

from harness.browser import Browser
from harness.case import on_both_versions
from harness.controller import without_own_variables
from harness.openvswitch import command
from harness.pagetest import HTTP, LIMIT_S, PageTest
from harness.waiting import until

# A name that would run as a program if it became markup.
HOSTILE = "<img src=x onerror=document.title='run'>"
HOSTILE_PORT = "<b>port"
HOSTILE_CIRCUIT = "<img/src=x/onerror=document.title='run'>"
FRAMES = 60
# Of common screens, in pixels.
SCREEN_WIDTHS = (1280, 1440, 1920)
# What is wider than what is shown of it.
CUT_OFF = """
    const parts = [...document.querySelectorAll("body, main, #list-view, #detail, .scroll, th, td, dd")].filter((part) => part.checkVisibility());
    return parts.filter((part) => part.scrollWidth > part.clientWidth + 1).map((part) => `${part.tagName} ${part.id}: ${part.textContent.slice(0, 60)}`);
"""
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


# No answer with counters of ports comes, as from a switch that hangs, and the page does not look at all again by its
# clock: the shortest time of it that counts is far above the page's other times, which are a second at most.
# Requests that wait for switches are counted: those that are open now, and the maximum.
ONLY_EVENTS = """
    window.stuck = 0;
    window.stopped = 0;
    const [fetchNow, setTimeoutNow] = [window.fetch, window.setTimeout];
    window.fetch = (path, init) => {
        if (!/\\/ports|\\/flows|\\/groups|\\/meters/.test(path)) return fetchNow(path, init);
        window.stuck += 1;
        return new Promise((_, reject) => init.signal?.addEventListener("abort", () => { window.stuck -= 1; reject(init.signal.reason); }));
    };
    window.setTimeout = (work, ms, ...rest) => {
        if (ms < 2000) return setTimeoutNow(work, ms, ...rest);
        window.stopped += 1;
    };
"""
# The stream of events is refused, for want of a token, only after the user has signed in.
LATE_REFUSAL = """
    window.late = 0;
    const fetchNow = window.fetch, isSignedIn = () => sessionStorage.getItem("bellrock-token") && !document.getElementById("dialog").open;
    window.fetch = async (path, init) => {
        const reply = await fetchNow(path, init);
        if (reply.status !== 401 || !path.startsWith("/v1/events")) return reply;
        while (!isSignedIn()) await new Promise((resolve) => setTimeout(resolve, 10));
        window.late += 1;
        return reply;
    };
"""
# Records by the browser's clock when the map was first drawn with a lost link, and the details with another path.
RECORD = """
    window.drawn = {};
    const map = document.getElementById("map"), detail = document.getElementById("detail"), path = () => document.getElementById("path")?.textContent;
    const before = path(), note = (what) => requestAnimationFrame(() => { window.drawn[what] ??= Date.now(); });
    new MutationObserver(() => map.dataset.lost === "1" && note("lost")).observe(map, { attributes: true });
    new MutationObserver(() => path() !== before && path() !== "none" && note("path")).observe(detail, { childList: true, subtree: true });
"""


class PageByTls(PageTest):
    """Switches that connect by TLS."""

    secure = True

    def test_the_certificate_of_a_switch_is_in_its_details_openflow13(self):
        controller, _ = self.start("OpenFlow13", ["routing"])
        identity = controller.ask("switches")[0]["identity"]
        browser = self.browser()
        until(lambda: browser.map().get("links") == 4, LIMIT_S, "the ring is drawn")
        browser.go("switch/0000000000000001")
        until(lambda: f"{identity['protocol']}, {identity['cipher']}" in browser.text("#detail"), LIMIT_S, "the session")
        ends = time.strftime("%Y-%m-%d", time.gmtime(identity["expiry"]))
        for text in (identity["name"], identity["key"], ends):
            until(lambda text=text: text in browser.text("#detail"), LIMIT_S, text)
        self.assert_clean(browser)


class Page(PageTest):
    """What an operator sees and does."""

    @on_both_versions
    def a_lost_link_is_seen_with_the_new_path(self, version):
        """A circuit lies around the lost link, and the page shows both: by the events alone, and although no switch
        answers for its counters."""
        circuit = {"blue": ["north:1", "south:2"]}
        controller, network = self.start(version, [{"provisioning": {"circuits": circuit}}, "routing"])
        browser = self.browser(before=ONLY_EVENTS)
        until(lambda: browser.map().get("links") == 4, LIMIT_S, "the ring is drawn")
        self.assertEqual((browser.map()["switches"], browser.map()["lost"]), (4, 0))
        until(lambda: browser.run("return window.stuck") == 1, LIMIT_S, "the counters are asked for")
        browser.go("switch/0000000000000002")
        # More would take the connections that the map needs: a browser has six.
        until(lambda: browser.run("return window.stuck") == 2, LIMIT_S, "the switch is asked for one thing at a time")
        browser.go("circuit/blue")
        until(lambda: browser.run("return window.stuck") == 1, LIMIT_S, "what nobody waits for is given up")

        def path():
            return browser.text("#path")

        until(lambda: path().startswith("north:"), LIMIT_S, "the path is shown")
        before = path()
        browser.run(RECORD)
        middle = "s2" if "0000000000000002" in before else "s4"
        network.net.configLinkStatus("s1", middle, "down")
        until(lambda: browser.map()["lost"] == 1, LIMIT_S, "the link is lost on the map")
        until(lambda: path().startswith("north:") and path() != before, LIMIT_S, "the path has changed")
        drawn = until(lambda: len(browser.run("return window.drawn")) == 2 and browser.run("return window.drawn"), LIMIT_S, "both are drawn")
        self.assertGreater(browser.run("return window.stopped"), 0, "the page has no clock that was stopped: this would prove nothing")
        lost = min(event["unix_ms"] for event in controller.ask("events") if event["event"] == "link_down")
        print(f"drawn after the event of the lost link: the link {drawn['lost'] - lost} ms, the new path {drawn['path'] - lost} ms")
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
        until(lambda: "token operator ordered block" in controller.text(), LIMIT_S, "the log has the order")
        browser.go("hosts")
        rows = lambda: browser.run("return [...document.querySelectorAll('#list-view tbody tr')].map((row) => row.textContent)")
        until(lambda: len(rows()) == 4, LIMIT_S, "all hosts are listed")
        browser.one("#search").send_keys(host)
        until(lambda: len(rows()) == 1 and host in rows()[0], LIMIT_S, "the search leaves one")
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
        until(lambda: "nonsense" in browser.text("dialog .bad"), LIMIT_S, "the problem is named")
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

    def test_a_changed_static_flow_keeps_its_owner_and_its_end_openflow13(self):
        """It is another one's, from the command."""
        controller, network = self.start("OpenFlow13", ["static", "routing"])
        controller.ask("static", "add", "web", "north", "--match", "in_port=9", "--actions", "output:2", "--ttl", "60min", "--owner", "planner")
        browser = self.browser()
        browser.sign_in(self.token)
        browser.go("static")
        browser.press("Change", "#list-view")
        until(lambda: "planner" in browser.text("dialog"), LIMIT_S, "the dialog names the owner")
        browser.fill(actions="output:3")
        browser.submit()
        [entry] = controller.ask("static", "list")
        self.assertEqual((entry["owner"], entry["flow"]["actions"]), ("planner", "output:3"))
        self.assertTrue(0 < entry["ttl_seconds"] <= 3600, entry)
        until(lambda: [flow for flow in network.flows("s1") if "in_port=9" in flow and "output:3" in flow], LIMIT_S, "the flow is in the switch")
        # Its end is changed, then taken away.
        for wrong, ends, is_right in (("28 hours", "28h", lambda ttl: 100000 < ttl <= 100800), ("-1", "", lambda ttl: ttl is None)):
            browser.go("switch/0000000000000001")
            browser.press("Change", "#detail")
            browser.fill(ttl_seconds=wrong)
            browser.one("dialog [type=submit]").click()
            until(lambda wrong=wrong: f"{wrong} is no time" in browser.text("dialog .bad"), LIMIT_S, "it is refused")
            browser.fill(ttl_seconds=ends)
            browser.submit()
            [entry] = controller.ask("static", "list")
            self.assertEqual((entry["owner"], is_right(entry["ttl_seconds"])), ("planner", True), entry)
            browser.go("static")
            until(lambda: f'{"27 h" if ends else "never"}' in browser.text("#list-view"), LIMIT_S, "the list has the new end")
        self.assert_clean(browser)

    def test_a_reload_is_shown_before_it_is_done_openflow13(self):
        """Each setting with its values; what needs a restart cannot be sent."""
        controller, _ = self.start("OpenFlow13", ["routing"], packet_ins_per_second=5000)
        browser = self.browser()
        browser.sign_in(self.token)
        browser.go("apps")
        rate = "packet_ins_per_second"

        def shown(limit, **more):
            """The rows of the dialog for this limit, and its buttons."""
            controller.write_config({**self.config, rate: limit, **more})
            browser.press("Reload the configuration", "#list-view")
            until(lambda: browser.run("return document.getElementById('dialog').open"), LIMIT_S, "the dialog opens")
            text = "return [...document.querySelectorAll(arguments[0])].map((element) => element.textContent)"
            rows = browser.run("return [...document.querySelectorAll('dialog tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
            return rows, browser.run(text, "dialog button")

        self.assertEqual(shown(7000), ([[rate, "5000", "7000", "at once"]], ["Cancel", "Reload"]))
        browser.submit()
        until(lambda: f"configuration: {rate}" in controller.text(), LIMIT_S, "the log has the change")
        rows, buttons = shown(7000, workers=1)
        self.assertEqual([row[0::3] for row in rows], [["workers", "needs a restart"]])
        self.assertEqual(buttons, ["Close"])
        self.assertIn("needs a restart of the controller", browser.text("dialog"))
        browser.press("Close", "dialog")
        # A file without a change is read again, with what it names.
        self.assertEqual(shown(7000), ([], ["Cancel", "Reload"]))
        self.assertIn("Nothing has changed.", browser.text("dialog"))
        browser.submit()
        tokens = self.config["http"]["tokens"]
        with open(tokens, "a", encoding="utf-8") as file:
            file.write("# another\n")
        self.assertEqual(shown(7000), ([["http.tokens", tokens]], ["Cancel", "Reload"]))
        browser.submit()
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

    def test_no_column_is_cut_off_openflow13(self):
        """At the widths of common screens, in each view and in the details of each kind."""
        circuits = {"blue": ["north:1", "south:2"]}
        controller, network = self.start("OpenFlow13", ["quarantine", "static", "bandwidth", {"provisioning": {"circuits": circuits}}, "routing"])
        # The other two are at the ends of the circuit.
        until(lambda: not network.unreachable([("h2", "h4"), ("h4", "h2")]), LIMIT_S, "the hosts are found")
        host = network["h2"]
        match = "in_port=9,eth_type=0x0800,ip_proto=6,ipv4_src=10.1.0.0/16,ipv4_dst=10.2.0.0/16,tcp_dst=443"
        actions = "set_field:02:00:00:00:00:01->eth_dst,set_field:10.2.0.1->ipv4_dst,output:2"
        controller.ask("static", "add", "from-the-offices-to-the-web-servers", "north", "--match", match, "--actions", actions)
        controller.ask("quarantine", "add", "2001:db8:1234:5678::/64")
        controller.ask("reserve", host.IP(), network["h4"].IP(), "1M")
        browser = self.browser()
        browser.sign_in(self.token)
        places = ("switches", "links", "hosts", "events", "apps", "circuits", "reservations", "quarantine", "static",
                  "switch/0000000000000001", f"host/{host.MAC()}", "circuit/blue", "reservation/1")
        for width in SCREEN_WIDTHS:
            browser.resize(width)
            for place in places:
                browser.go(place)
                shown = "#detail" if "/" in place else "#list-view"
                until(lambda: browser.run("return document.querySelector(arguments[0])?.checkVisibility()", f"{shown} :is(td, dd)"), LIMIT_S, place)
                if place.startswith("switch/"):
                    until(lambda: "in_port=9" in browser.text("#detail"), LIMIT_S, "its flows")
                self.assertEqual(browser.run(CUT_OFF), [], f"{place}, {width} px wide")
                browser.driver.save_screenshot(str(self.logs / f"{width}-{place.replace('/', '-')}.png"))
        self.assert_clean(browser)

    @on_both_versions
    def hostile_names_are_only_text(self, version):
        """What a switch says of itself, and of its ports, is shown as it is, and so is a circuit's name of the
        configuration. Names of switches and hosts there can have no such signs."""
        controller, network = self.start(version, [{"provisioning": {"circuits": {HOSTILE_CIRCUIT: ["north:1", "south:2"]}}}, "routing"])
        for setting, value in (("switches", {HOSTILE: "0000000000000001"}), ("hosts", {HOSTILE: "02:00:00:00:00:01"})):
            wrong = self.run_dir / "wrong.yaml"
            wrong.write_text(json.dumps({setting: value}))
            checked = subprocess.run([os.environ["BELLROCK_BIN"], "check", str(wrong)], capture_output=True, text=True,
                                     check=False, env=without_own_variables(), timeout=LIMIT_S)
            self.assertNotEqual(checked.returncode, 0)
            self.assertIn("is no name", checked.stderr)
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
        browser.go("circuits")
        until(lambda: HOSTILE_CIRCUIT in browser.text("#list-view"), LIMIT_S, "the circuit is shown")
        browser.run("document.querySelector('#list-view a').click()")
        until(lambda: HOSTILE_CIRCUIT in browser.text("#detail h2"), LIMIT_S, "the circuit's details")
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
        browser = Browser(self.run_dir, "https://127.0.0.1:8443", [key_hash], before=LATE_REFUSAL)
        self.addCleanup(browser.close)
        until(lambda: browser.run("return document.getElementById('dialog').open"), LIMIT_S, "the page asks for a token")
        self.assertEqual((browser.map()["switches"], browser.map()["hosts"]), (0, 0))
        browser.fill(token=self.token)
        browser.submit()
        until(lambda: browser.run("return window.late") == 1, LIMIT_S, "the stream is refused")
        until(lambda: browser.map().get("hosts") == 4, LIMIT_S, "the hosts are drawn")
        self.assertIn("sign out", browser.text("#account"), "a late refusal signs nobody out")
        browser.go(f"host/{network['h2'].MAC()}")
        browser.press("Quarantine", "#detail")
        browser.submit()
        pair = [("h1", "h2")]
        until(lambda: network.unreachable(pair) == pair, LIMIT_S, "its ping stops")
        until(lambda: "token operator ordered block" in controller.text(), LIMIT_S, "the log has the order")
        self.assertEqual(browser.foreign_requests(), [])

    def test_a_thousand_switches_stay_usable(self):
        """Each move of the map is drawn. The time of a frame is printed."""
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
