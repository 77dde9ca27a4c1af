"""Which objects of a file are its apps, for `bellrock run --app FILE`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bellrock import AnyApp, App
from bellrock._load import LoadError, load


@pytest.fixture(autouse=True)
def _same_modules() -> Iterator[None]:
    """Forgets what a test has loaded."""
    modules, path = dict(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]
    sys.path[:] = path


def _load(folder: Path, text: str, name: str = "an_app.py") -> list[AnyApp]:
    (folder / name).write_text(text)
    return load(str(folder / name))


def _names(apps: list[AnyApp]) -> list[str]:
    return [
        app.name if isinstance(app, App) else app if isinstance(app, str) else app.__name__
        for app in apps
    ]


HANDLER = """
class Other:
    pass

class Learning:
    def packet_in(self, switch, packet): ...
"""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        # What the module names.
        ("import bellrock\nclass A(bellrock.App): ...\nclass B(A): ...\napp = B()", ["B"]),
        ("import bellrock\nclass A(bellrock.App): ...\nclass B(A): ...\napps = [B(), A()]", ["B", "A"]),
        ("def hub(switch, packet): ...\ndef other(switch, packet): ...\napp = hub", ["hub"]),
        ("class One:\n    def tick(self, switch): ...\n" + HANDLER + "apps = (Learning,)", ["Learning"]),
        ("import bellrock\nclass A(bellrock.App): ...\napp = A", ["A"]),
        ("import bellrock\nclass A(bellrock.App): ...\napps = [A(), 'learning']", ["A", "learning"]),
        # All classes of `App` in their order, and nothing else.
        (
            "import bellrock\nfrom bellrock import App\nclass B(App): ...\nclass A(App): name = 'a'\nAlias = A\n"
            "class _Base(App): ...\ndef function(switch, packet): ..." + HANDLER,
            ["B", "a"],
        ),
        ("from dataclasses import dataclass\nimport bellrock\n@dataclass\nclass A(bellrock.App):\n    n: int = 1", ["A"]),
        # The only handler, or the only function of packets.
        (HANDLER + "def helper(a, b): ...", ["Learning"]),
        ("def hub(switch, packet): ...\ndef helper(one): ...\nasync def later(a, b): ...", ["hub"]),
        ("def hub(switch, packet, flood=1): ...\ndef _helper(a, b): ...", ["hub"]),
    ],
)
def test_the_apps_of_a_file(tmp_path: Path, text: str, names: list[str]) -> None:
    assert _names(_load(tmp_path, text)) == names


@pytest.mark.parametrize("example", ["hub.py", "learning.py", "monitor.py", "firewall.py"])
def test_the_examples_are_files_with_an_app(
    example: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other tests import them.
    monkeypatch.delitem(sys.modules, Path(example).stem, raising=False)
    folder = Path(__file__).resolve().parent.parent / "examples"
    assert len(load(str(folder / example))) == 1


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "it has no app; write a class with `def packet_in"),
        ("import bellrock\nfrom bellrock import App", "it has no app"),
        ("class Other: ...", "it has no app"),
        (HANDLER + HANDLER.replace("Learning", "Hub"), "any of Learning, Hub could be its app"),
        ("def a(switch, packet): ...\ndef b(switch, packet): ...", "add a line such as `app = a`"),
        ("import bellrock\nclass A(bellrock.App):\n    def __init__(self, n): ...", "`app = A(…)`"),
        ("class A:\n    def __init__(self, n): ...\n    def packet_in(self, s, p): ...", "`app = A(…)`"),
        ("class A:\n    def __init__(self, n): ...\napp = A", "`app = A(…)`"),
        ("app = 'lerning'", "there is no app 'lerning' (did you mean learning?)"),
        ("apps = ['own']", "there is no app 'own'; there are hub, learning, routing"),
        ("app = 7", "`app`: 7 is no app"),
        ("apps = 7", "`apps` is a list of apps"),
        ("apps = []", "`apps` is empty"),
        ("app = apps = []", "it has both `app` and `apps`"),
    ],
)
def test_a_file_without_its_apps_is_an_error_that_says_what_is_right(
    tmp_path: Path, text: str, error: str
) -> None:
    with pytest.raises(LoadError) as raised:
        _load(tmp_path, text)
    assert error in str(raised.value)
    assert str(raised.value).startswith(f"{tmp_path / 'an_app.py'}: ")


def test_a_file_is_a_module_of_its_own_name_and_imports_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text("NUMBER = 7")
    text = (
        "from beside_it import NUMBER\nfrom bellrock import App\n"
        "if __name__ == '__main__':\n    raise SystemExit('it is not the program')\n"
        "class A(App):\n    number = NUMBER\n"
    )
    [app] = _load(tmp_path, text, "named_so.py")
    assert getattr(app, "number") == 7
    assert type(app).__module__ == "named_so" and sys.modules["named_so"].__name__ == "named_so"
    assert sys.path[0] == str(tmp_path)


def test_a_name_that_is_taken_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="there is a module 'signal' already"):
        _load(tmp_path, "", "signal.py")
    with pytest.raises(LoadError, match="there is a module 'bellrock' already"):
        _load(tmp_path, "", "bellrock.py")


def test_an_exception_of_a_file_comes_through_and_leaves_no_module(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        _load(tmp_path, "1 / 0")
    assert "an_app" not in sys.modules
    with pytest.raises(SyntaxError):
        _load(tmp_path, "def", "other.py")


def test_a_file_that_runs_its_apps_when_it_is_loaded_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="put the call below `if __name__"):
        _load(tmp_path, "import bellrock\nbellrock.run(lambda switch, packet: None)")
