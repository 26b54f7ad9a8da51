"""The package is what the book says, and imports no more than it uses."""

import ast

import pytest

from tools.commands import package


def test_the_package_is_what_the_book_says():
    """Its modules the chapters, and its page of symptoms the book's."""
    wanted, here = package.files(), package.PACKAGE
    paths = [*here.glob(package.SYMPTOMS)]
    paths += [
        path for part in package.PARTS for path in here.glob(f"{part}/*.py")
    ]
    stored = {
        str(path.relative_to(here)): path.read_text("utf-8") for path in paths
    }
    other = [path for path in wanted if stored.get(path) != wanted[path]]
    other += stored.keys() - wanted.keys()
    if other:
        pytest.fail(
            f"cellbycell/ is not what the book says, in {sorted(other)}. "
            "If the book is right, run: make package",
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
