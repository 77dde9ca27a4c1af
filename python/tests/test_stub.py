"""The stub of the native half has the documentation that the classes have at run time, for editors that read
only stubs. `BLESS=1` writes it:

    BLESS=1 target/python/tests/bin/pytest -p no:cacheprovider python/tests/test_stub.py
"""

from __future__ import annotations

import ast
import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bellrock
import bellrock.lab
from bellrock import _native

STUB = Path(__file__).parent.parent / "bellrock" / "_native.pyi"

# Parts of the package's own, which programs do not name.
INTERNAL = {
    "CommandRun",
    "LogLines",
    "NativeController",
    "NativeLab",
    "OsKenCodec",
    "log",
    "log_level",
    "log_to_stderr",
}

Item = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def items(body: list[ast.stmt], at: Any, inside: str = "") -> Iterator[tuple[str, Item, Any]]:
    """The public items, with their names and what they are at run time."""
    for node in body:
        if not isinstance(node, Item) or node.name.startswith("_") or node.name in INTERNAL:
            continue
        name, found = inside + node.name, inspect.getattr_static(at, node.name)
        # A static method has the text of `staticmethod` in its place.
        found = found.__func__ if isinstance(found, (staticmethod, classmethod)) else found
        yield name, node, found
        if isinstance(node, ast.ClassDef):
            yield from items(node.body, found, name + ".")


def wanted(found: Any) -> str:
    return inspect.cleandoc(getattr(found, "__doc__", None) or "")


def text(documentation: str, indent: str) -> list[str]:
    lines = documentation.replace("\\", "\\\\").splitlines()
    if len(lines) == 1:
        return [f'{indent}"""{lines[0]}"""']
    return [f'{indent}"""{lines[0]}', *(f"{indent}{line}".rstrip() for line in lines[1:]), f'{indent}"""']


def written(stub: str) -> str:
    """The stub with the documentation of today."""
    lines = stub.splitlines()
    found = list(items(ast.parse(stub).body, _native))
    for _, node, at in sorted(found, key=lambda item: item[1].lineno, reverse=True):
        first = node.body[0]
        indent = " " * (node.col_offset + 4)
        documentation = text(wanted(at), indent)
        start = min([first.lineno, *(each.lineno for each in getattr(first, "decorator_list", []))])
        if ast.get_docstring(node) is not None:
            lines[start - 1 : first.end_lineno] = documentation
        elif isinstance(node, ast.ClassDef) and not isinstance(first, ast.Expr):
            lines[start - 1 : start - 1] = documentation
        else:
            # It ends with `: ...`.
            head = lines[start - 1][: first.col_offset].rstrip()
            lines[start - 1 : first.end_lineno] = [head, *documentation]
    return "\n".join(lines) + "\n"


def test_the_stub_has_the_documentation_of_the_classes() -> None:
    stub = STUB.read_text()
    fresh = written(stub)
    if os.environ.get("BLESS") and fresh != stub:
        STUB.write_text(fresh)
        return
    assert fresh == stub, f"write it: {__doc__}"


def test_every_public_item_of_the_native_half_has_documentation() -> None:
    found = list(items(ast.parse(STUB.read_text()).body, _native))
    assert len(found) > 300, "the stub is read"
    assert [name for name, _, at in found if not wanted(at)] == []


def test_every_public_item_of_the_package_has_documentation() -> None:
    missing = []
    for module in (bellrock, bellrock.lab):
        for name in module.__all__:
            item = getattr(module, name)
            if not (inspect.isclass(item) or inspect.isfunction(item)):
                continue
            if not inspect.getdoc(item):
                missing.append(name)
            if not inspect.isclass(item) or item.__module__.startswith("builtins"):
                continue
            for member, at in vars(item).items():
                if not member.startswith("_") and (inspect.isfunction(at) or isinstance(at, property)):
                    if not inspect.getdoc(at):
                        missing.append(f"{name}.{member}")
    assert missing == []
