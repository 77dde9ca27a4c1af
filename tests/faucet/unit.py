"""Faucet's unit tests, in processes in which Bellrock is under os-ken."""

import subprocess

from environment import BELLROCK, PYTHON, SOURCE, variables

# Loaded by pytest before Faucet's tests are: `install` replaces os-ken's engine, and lets `ryu...` be imported. The standard library
# stays as it is, since Faucet's tests have servers in threads.
PLUGIN = "bellrock_under_osken"
PLUGIN_TEXT = """\
import bellrock.osken
bellrock.osken.install()
"""


def run(tests):
    folder = SOURCE.parent / "plugin"
    folder.mkdir(exist_ok=True)
    (folder / f"{PLUGIN}.py").write_text(PLUGIN_TEXT)
    environment = variables(BELLROCK) | {"PYTHONPATH": f"{folder}:{SOURCE}:{SOURCE / 'clib'}"}
    # A process for each file, as Faucet's own script has it: some of them leave threads behind.
    files = tests or sorted((SOURCE / "tests" / "unit").glob("*/test_*.py"))
    failed = []
    for file in files:
        words = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", PLUGIN, file]
        if subprocess.run(words, cwd=SOURCE, env=environment, check=False).returncode != 0:
            failed.append(str(file))
    for file in failed:
        print(f"failed: {file}")
    return 1 if failed else 0
