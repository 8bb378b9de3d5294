"""The Python packages that are shipped: their types are checked strictly, and their imports form no circle."""

import ast
import gc
import os
import subprocess
import sys
from contextlib import contextmanager
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from processes import ROOT

PACKAGES = [
    ROOT / "deploy" / "clients" / "python" / "antiphon_client",
    ROOT / "deploy" / "discord-bot" / "antiphon_bot",
]


def test_types_are_strict():
    """As mypy of someone who uses the packages sees them."""
    for package in PACKAGES:
        assert (package / "py.typed").exists(), package
    options = ["--strict", "--cache-dir", str(ROOT / ".build" / "mypy")]
    environment = os.environ | {"MYPYPATH": str(PACKAGES[0].parent)}
    command = [sys.executable, "-m", "mypy", *options, *PACKAGES]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_imports_form_no_circle(package):
    """Imports for type checking alone count too: each module can be read before those that use it."""
    files = {module_name(file, package): file for file in package.rglob("*.py")}
    imports = {name: imported(name, file) & files.keys() - {name} for name, file in files.items()}
    assert any(imports.values()), "no import was found"
    # Raises CycleError, which names the circle.
    TopologicalSorter(imports).prepare()


@contextmanager
def uncollected():
    """Collects no garbage: a task that is collected may log its traceback, for which Python 3.11 parses too, and it
    cannot parse within parsing."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def module_name(file: Path, package: Path) -> str:
    return ".".join(file.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")


def imported(module: str, file: Path) -> set[str]:
    """The modules, and names that may be modules, that a module imports with a relative import."""
    found = set()
    parents = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    with uncollected():
        tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*parents[: len(parents) + 1 - node.level], *([node.module] if node.module else [])]
            names = {".".join([*base, alias.name]) for alias in node.names}
            found |= names | ({".".join(base)} if node.module else set())
    return found
