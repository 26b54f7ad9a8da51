"""The package is what the chapters say, and imports no more than it uses."""

import ast

import pytest

from tools.commands import package
from tools.notebooks import Notebook
from tools.settings import ROOT, chapters


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
