"""Chromium with the web page, as an operator has it."""

import json
import os

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

from .waiting import until

WINDOW = (1440, 900)
LIMIT_S = 60


class Browser:
    """A headless Chromium at the page of the controller at `base`. It accepts the certificates whose public keys have
    one of these hashes (SHA-256, in Base64), and no other. The script `before` runs before those of the page."""

    def __init__(self, run_dir, base, key_hashes=(), before=None):
        options = webdriver.ChromeOptions()
        # Root has no sandbox; the namespace of the test is one.
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     f"--window-size={WINDOW[0]},{WINDOW[1]}", f"--user-data-dir={run_dir / 'chromium'}"):
            options.add_argument(flag)
        if key_hashes:
            options.add_argument(f"--ignore-certificate-errors-spki-list={','.join(key_hashes)}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        os.environ.setdefault("HOME", str(run_dir))
        self.driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        self.driver.set_script_timeout(LIMIT_S)
        self.base = base
        if before:
            self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": before})
        self.driver.get(f"{base}/")

    def close(self):
        self.driver.quit()

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector):
        """The text of an element, or nothing without it. In one step: the page may draw it anew meanwhile."""
        return self.run("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def resize(self, width):
        self.driver.set_window_size(width, WINDOW[1])

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def go(self, place):
        """Opens a view, or selects something: "hosts", "switch/0000000000000001"."""
        self.run("location.hash = arguments[0]", f"#/{place}")

    def press(self, label, within="body"):
        """Clicks on the button with this label, as soon as there is one."""
        click = """
            const all = [...document.querySelectorAll(arguments[0] + ' button')];
            const found = all.find((button) => button.textContent === arguments[1] && !button.disabled);
            found?.click();
            return Boolean(found);
        """
        until(lambda: self.run(click, within, label), LIMIT_S, f"a button {label}")

    def fill(self, **fields):
        for name, value in fields.items():
            field = self.one(f"dialog [name={name}]")
            if field.tag_name != "select":
                field.clear()
            field.send_keys(str(value))

    def submit(self):
        """Sends the form. Waits until it is closed."""
        self.one("dialog [type=submit]").click()
        until(lambda: not self.run("return document.getElementById('dialog').open"), LIMIT_S,
              "the order is carried out")

    def keys(self, *keys):
        """Presses keys, at what has the focus."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def focus(self):
        """What has the focus: its id, or its address, or its text."""
        return self.run("const at = document.activeElement; return at.id || at.getAttribute('href') || at.name || at.textContent")

    def sign_in(self, token):
        self.press("Sign in", "header")
        self.fill(token=token)
        self.submit()

    def map(self):
        """What the map shows, as numbers."""
        data = self.run("return {...document.getElementById('map').dataset}")
        return {name: float(value) for name, value in data.items()}

    def click_on_map(self, kind, identity):
        """Clicks on a switch or a host where it is drawn."""
        place = self.run("return window.placeOf(arguments[0], arguments[1])", kind, identity)
        actions = ActionChains(self.driver)
        actions.w3c_actions.pointer_action.move_to_location(round(place["x"]), round(place["y"]))
        actions.w3c_actions.pointer_action.click()
        actions.perform()

    def console_errors(self):
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def foreign_requests(self):
        """Addresses that the page asked for, other than those of the controller. Chromium's own pages do not count."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        requests = [message["params"] for message in messages if message["method"] == "Network.requestWillBeSent"]
        sent = [request["request"]["url"] for request in requests if request["documentURL"].startswith(self.base)]
        if not sent:
            raise AssertionError("no request was seen: this would prove nothing")
        return [url for url in sent if not url.startswith(f"{self.base}/")]
