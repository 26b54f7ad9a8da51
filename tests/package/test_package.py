"""The package is what the chapters say, and each framework stands alone."""

import ast
import subprocess
import sys
from importlib import import_module

import pytest

from tools.commands import package
from tools.notebooks import Notebook
from tools.settings import ROOT, chapters

WITHOUT = {
    "common": ("torch", "tensorflow", "keras"),
    "exercises": ("torch", "tensorflow", "keras"),
    "show": ("torch", "tensorflow", "keras", "matplotlib", "IPython"),
    "pytorch": ("tensorflow", "keras"),
    "tensorflow": ("torch",),
}


def test_the_package_is_what_the_chapters_say():
    notebooks = [Notebook.read(ROOT / f"{name}.ipynb") for name in chapters()]
    wanted = {
        path: package.formatted(text)
        for path, text in package.modules(notebooks).items()
    }
    stored = {
        str(path.relative_to(package.PACKAGE)): path.read_text("utf-8")
        for part in package.PARTS
        for path in (package.PACKAGE / part).glob("*.py")
    }
    other = [path for path in wanted if stored.get(path) != wanted[path]]
    other += stored.keys() - wanted.keys()
    if other:
        pytest.fail(
            f"cellbycell/ is not what the chapters say, in {sorted(other)}. "
            "If the chapters are right, run: make package",
            pytrace=False,
        )


@pytest.mark.parametrize(
    "path",
    [
        path
        for part in package.PARTS
        for path in sorted((package.PACKAGE / part).glob("[!_]*.py"))
    ],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_every_import_is_used(path):
    """`import torch.onnx.ops` too, which ruff takes for one of `torch`."""
    source = path.read_text("utf-8")
    imported = {
        alias.asname or alias.name
        for node in ast.parse(source).body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    assert imported <= package.names_in(source)


@pytest.mark.parametrize("part", package.PARTS)
def test_a_name_with_an_underscore_stays_in_its_module(part):
    """The reference page lists what `__all__` does."""
    known = vars(import_module(f"cellbycell.{part}"))
    assert {*known["__all__"]} == {
        name for name, value in known.items() if callable(value)
    }
    for name in known["__all__"]:
        assert not name.startswith("_") and known[name].__doc__, name


@pytest.mark.parametrize("part", WITHOUT)
def test_a_part_imports_no_other_framework(part):
    code = f"import sys, cellbycell.{part}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {*WITHOUT[part]} & {*done.stdout.split()}
