"""Writes what has run into the manual's page about Faucet, between its marks."""

import json
from collections import Counter

import attacks
import hostile
import integration
import rate
from environment import BELLROCK, ENGINES, OSKEN, ROOT
from integration import FAILED, PASSED, SKIPPED, TIMED_OUT

# What a cell of the table takes of a reason.
MAX_WHY = 90
PAGE = ROOT / "docs" / "book" / "src" / "guide" / "faucet.md"


def write():
    text = PAGE.read_text()
    for name, rows in (("classes", classes()), ("hostile", attacked()), ("rate", rates())):
        begin, end = f"<!-- {name}: made by tests/faucet/run table -->\n", f"<!-- end of {name} -->\n"
        before, rest = text.split(begin)
        text = before + begin + rows + end + rest.split(end)[1]
    PAGE.write_text(text)
    return 0


def read(name, engine):
    file = integration.file_of(name, engine)
    return json.loads(file.read_text()) if file.exists() else None


def classes():
    known = integration.listing()
    ran, lacking, missing = [], {}, []
    for name, description in known.items():
        if not description["methods"]:
            continue
        results = {engine: read(name, engine) for engine in ENGINES}
        if None in results.values():
            missing.append(name)
            continue
        what = {integration.lacks(result) for result in results.values()} - {""}
        if what and all(integration.lacks(result) for result in results.values()):
            lacking.setdefault(", ".join(sorted(what)), []).append(name)
        else:
            ran.append((name, results))
    both = Counter(tuple(results[engine]["status"] for engine in ENGINES) for _, results in ran)
    passed = sum(number for (one, other), number in both.items() if one == other == PASSED)
    number = sum(bool(it["methods"]) for it in known.values())
    lines = [f"Of Faucet's {number} classes, {len(ran)} have run on both engines; {passed} pass on both.\n",
             "| Class | Tests | os-ken | Bellrock | s on os-ken | s on Bellrock |", "|---|---|---|---|---|---|"]
    for name, results in ran:
        cells = [described(results[engine]) for engine in ENGINES]
        seconds = [str(results[engine]["seconds"]) for engine in ENGINES]
        lines.append(f"| {short(name)} | {len(known[name]['methods'])} | {' | '.join(cells)} | {' | '.join(seconds)} |")
    lines.append("")
    for what, names in sorted(lacking.items()):
        lines.append(f"Not possible on the machine of this table ({what}): {', '.join(map(short, names))}.\n")
    if missing:
        lines.append(f"Not run for this table: {', '.join(map(short, missing))}.\n")
    return "\n".join(lines)


def described(result):
    """The result of a class, with the tests that have failed."""
    status = result["status"]
    if status == FAILED:
        bad = [name for name, test in result["methods"].items() if test["status"] not in ("OK", "SKIPPED")]
        why = result["methods"][bad[0]]["why"] if bad else result["why"]
        return f"fails: {why[:MAX_WHY].replace('|', '/')}"
    return {PASSED: "passes", SKIPPED: "Faucet skips it", TIMED_OUT: "not finished in time"}[status] + \
        (f" (attempt {result['attempt']})" if result.get("attempt", 1) > 1 else "")


def short(name):
    return name.removeprefix("Faucet").removesuffix("Test")


def attacked():
    found = json.loads(hostile.RESULTS.read_text())
    lines = ["| Attack | Faucet on os-ken | Faucet on Bellrock |", "|---|---|---|"]
    for name, attack in attacks.ATTACKS.items():
        if name in found:
            cells = [hostile.verdict(found[name][engine])["verdict"] if engine in found[name] else "not run" for engine in ENGINES]
            lines.append(f"| {attack.__doc__} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def rates():
    if not rate.RESULTS.exists():
        return ""
    found = json.loads(rate.RESULTS.read_text())
    lines = ["| What | os-ken | Bellrock |", "|---|---|---|"]
    for what, unit in rate.MEASURED.items():
        cells = [f"{found[what][engine]:,.{rate.DIGITS[what]}f}" for engine in (OSKEN, BELLROCK)]
        lines.append(f"| {unit} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
