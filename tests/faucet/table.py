"""Writes the results into the manual's page about Faucet, between its marks."""

import re

import attacks
import hostile
import rate
import results
from environment import ENGINES, OSKEN, ROOT
from integration import FAILED, PASSED, SKIPPED, TIMED_OUT

# What a cell of the table takes of a reason.
MAX_WHY = 90
# What Faucet's assertions mean.
MEANINGS = {
    r"([\d.]+) not greater than 100$": "{:.0f} Mbit/s, Faucet wants 100",
    r"iperf: [\d.]+mbps, of: [\d.]+mbps": "the switch counts over 20% more bytes than iperf",
    r"0 packets captured": "tcpdump has captured nothing in its time",
}
PAGE = ROOT / "docs" / "book" / "src" / "guide" / "faucet.md"


def write():
    found = results.read()
    text = PAGE.read_text()
    for name, rows in (("classes", classes(found)), ("hostile", attacked(found)), ("rate", rates(found))):
        begin, end = f"<!-- {name}: made by tests/faucet/run table -->\n", f"<!-- end of {name} -->\n"
        before, rest = text.split(begin)
        text = before + begin + rows + end + rest.split(end)[1]
    PAGE.write_text(text)
    return 0


def classes(found):
    ran, lacking, missing = {}, {}, []
    for name, ran_on in found[results.CLASSES].items():
        what = ran_on.get(OSKEN, {}).get("lacks")
        if what:
            # It cannot pass on either engine.
            lacking.setdefault(what, []).append(name)
        elif all(engine in ran_on for engine in ENGINES):
            ran[name] = ran_on
        else:
            missing.append(name)
    passed = sum(all(ran_on[engine]["status"] == PASSED for engine in ENGINES) for ran_on in ran.values())
    lines = [f"Of Faucet's {len(found[results.CLASSES])} classes, {len(ran)} have run on both engines; {passed} pass on both.\n",
             "| Class | Tests | os-ken | Bellrock | s on os-ken | s on Bellrock |", "|---|---|---|---|---|---|"]
    for name, ran_on in ran.items():
        cells = [described(ran_on[engine]) for engine in ENGINES]
        seconds = [str(ran_on[engine]["seconds"]) for engine in ENGINES]
        lines.append(f"| {short(name)} | {ran_on['tests']} | {' | '.join(cells)} | {' | '.join(seconds)} |")
    lines.append("")
    for what, names in sorted(lacking.items()):
        lines.append(f"Not possible on this machine, which lacks {what}: {', '.join(map(short, names))}.\n")
    if missing:
        lines.append(f"Not run: {', '.join(map(short, missing))}.\n")
    return "\n".join(lines)


def described(result):
    """The result of a class, with the reason of the first test that has failed."""
    status = result["status"]
    if status == FAILED:
        test, why = next(iter(result["failed"].items()))
        return f"`{test}` fails: {meaning(why)}"
    attempt = f" (attempt {result['attempt']})" if result["attempt"] > 1 else ""
    return {PASSED: "passes", SKIPPED: "Faucet skips it", TIMED_OUT: "not finished in time"}[status] + attempt


def meaning(why):
    for sign, text in MEANINGS.items():
        found = re.search(sign, why)
        if found:
            return text.format(*map(float, found.groups()))
    return why.partition(": ")[2][:MAX_WHY].replace("|", "/")


def short(name):
    return name.removeprefix("Faucet").removesuffix("Test")


def attacked(found):
    lines = ["| Attack | Faucet on os-ken | Faucet on Bellrock |", "|---|---|---|"]
    for name, attack in attacks.ATTACKS.items():
        ran_on = found[results.HOSTILE].get(name, {})
        cells = [hostile.verdict(ran_on[engine])[0] if engine in ran_on else "not run" for engine in ENGINES]
        lines.append(f"| {attack.__doc__} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def rates(found):
    lines = ["| What | os-ken | Bellrock |", "|---|---|---|"]
    for what, unit in rate.MEASURED.items():
        ran_on = found[results.RATE].get(what, {})
        cells = [f"{ran_on[engine]:,.{rate.DIGITS[what]}f}" if engine in ran_on else "not run" for engine in ENGINES]
        lines.append(f"| {unit} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
