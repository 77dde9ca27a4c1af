"""What the tests of Faucet need, below `target/faucet`: its source archive, an environment with it and with Bellrock's wheel, and
a folder for PATH that puts Bellrock under it.

The archive comes from the Python registry when it is missing. Nothing of it is in this repository.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
FOLDER = TARGET / "faucet"

VERSION = "1.10.12"
ARCHIVE = FOLDER / f"faucet-{VERSION}.tar.gz"
SHA256 = "794401e852f9aa05c614728bf34775c1f51d01efc9a4a2a137d5102221d65eb9"
SOURCE = FOLDER / f"faucet-{VERSION}"
VENV = FOLDER / "venv"
BIN = VENV / "bin"
PYTHON = BIN / "python"
# In front of PATH, as the manual says it, Faucet finds Bellrock's osken-manager there.
ON_BELLROCK = FOLDER / "on-bellrock"

# Faucet's setup needs pbr, which it does not name as a requirement of its build. It still imports pkg_resources.
BUILD_TOOLS = ("setuptools<81", "wheel", "pbr<8")
# bitstring: os-ken 3.1.0 does not run with 5. The others are what Faucet's tests import and start.
TOOLS = ("os-ken==3.1.0", "bitstring<5", "exabgp==4.2.25", "scapy==2.7.0", "psutil==7.2.2", "netifaces", "concurrencytest", "webob",
         "tinyrpc<1.1.6", "requests", "packaging", "requirements-parser", "debian-inspector", "importlab", "chardet<6", "pytest==9.2.0")

# That of scripts/python. Debian's Python often has none.
PIP = TARGET / "python" / "tools" / "bin" / "pip"

BELLROCK, OSKEN = "Bellrock", "os-ken"
ENGINES = (OSKEN, BELLROCK)


def run(*words, **options):
    subprocess.run([str(word) for word in words], check=True, stdin=subprocess.DEVNULL, **options)


def pip(command, *words):
    run(PIP, "--python", PYTHON, command, "--quiet", "--disable-pip-version-check", *words)


def prepare(wheel=None):
    """Makes the environment, or brings it up to date with this wheel (default: the one that scripts/python test makes)."""
    wheel = Path(wheel) if wheel else newest_wheel()
    if not PIP.exists():
        sys.exit(f"{PIP} is missing: `scripts/python test` makes it")
    FOLDER.mkdir(parents=True, exist_ok=True)
    made_for = FOLDER / "made-for"
    wanted = repr((sys.version, VERSION, BUILD_TOOLS, TOOLS))
    if not made_for.exists() or made_for.read_text() != wanted:
        shutil.rmtree(VENV, ignore_errors=True)
        run(sys.executable, "-m", "venv", "--without-pip", VENV)
        pip("install", *BUILD_TOOLS)
        fetch()
        pip("install", "--no-compile", "--no-build-isolation", ARCHIVE, *TOOLS)
        # Mininet is a package of Debian. The rest of Debian's packages stays outside.
        import mininet
        (FOLDER / "wheel").unlink(missing_ok=True)
        (next(VENV.glob("lib/python3*")) / "site-packages" / "mininet").symlink_to(Path(mininet.__file__).parent)
        made_for.write_text(wanted)
    install(wheel)


def install(wheel):
    """Installs this wheel, unless it is the one that is there."""
    installed = FOLDER / "wheel"
    wanted = f"{wheel} {wheel.stat().st_mtime_ns}"
    if not installed.exists() or installed.read_text() != wanted:
        installed.unlink(missing_ok=True)
        pip("install", "--no-compile", "--force-reinstall", "--no-deps", wheel)
        ON_BELLROCK.mkdir(exist_ok=True)
        manager = ON_BELLROCK / "osken-manager"
        manager.unlink(missing_ok=True)
        manager.symlink_to(BIN / "bellrock-osken-manager")
        installed.write_text(wanted)


def newest_wheel():
    wheels = sorted((TARGET / "wheels" / "dev").glob("*.whl"), key=lambda wheel: wheel.stat().st_mtime)
    if not wheels:
        sys.exit("no wheel of Bellrock: `scripts/python test` makes one, or name one with --wheel")
    return wheels[-1]


def fetch():
    """Gets Faucet's source archive, and unpacks it."""
    if not ARCHIVE.exists():
        pip("download", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", "--dest", FOLDER, f"faucet=={VERSION}")
    found = hashlib.sha256(ARCHIVE.read_bytes()).hexdigest()
    if found != SHA256:
        sys.exit(f"{ARCHIVE} has the SHA-256 {found}, not {SHA256}; remove it")
    shutil.rmtree(SOURCE, ignore_errors=True)
    # Its content is known, so its paths are safe.
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(FOLDER)


def variables(engine):
    """The environment of a process that runs Faucet on this engine."""
    folders = [BIN] if engine == OSKEN else [ON_BELLROCK, BIN]
    path = os.pathsep.join([*map(str, folders), os.environ["PATH"], "/usr/sbin", "/sbin"])
    manager = shutil.which("osken-manager", path=path)
    if manager is None or (engine == BELLROCK) != (Path(manager).resolve().name == "bellrock-osken-manager"):
        sys.exit(f"osken-manager of {engine} is {manager}: run `tests/faucet/run prepare` again")
    # A class starts Python a dozen times: each start would compile all modules again.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    # eventlet reports at each start that it has no future.
    return inherited | {"PATH": path, "PYTHONWARNINGS": "ignore", "FAUCET_DIR": str(SOURCE / "faucet")}
