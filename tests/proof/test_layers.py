"""Each layer of the tools imports only what is below it.

CONTRIBUTING.md draws the layers; no test imports another.
"""

import ast

import pytest

from tools.settings import ROOT

# From the ground up; a module belongs to the longest name that begins its own.
LAYERS = [
    "tools",
    "tools.run",
    "tools.rules",
    "tools.sheets",
    "tools.commands",
]
FILES = [
    *ROOT.glob("tools/**/*.py"),
    *ROOT.glob("tests/**/*.py"),
    ROOT / "conftest.py",
]


def module(path):
    """Return the dotted name of a file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def layer(name):
    """Return the height of a module, or None outside of the tools."""
    inside = [
        height
        for height, prefix in enumerate(LAYERS)
        if f"{name}.".startswith(f"{prefix}.")
    ]
    return max(inside, default=None)


def imported(source):
    """Return the modules of the book that a text imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "write the whole name: from tools.run ..."
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                is_module = any(
                    (ROOT / whole.replace(".", "/")).with_suffix(end).exists()
                    for end in ("", ".py")
                )
                names.add(whole if is_module else node.module)
    return {n for n in names if n.split(".")[0] in ("tools", "tests")}


def too_high(name, source):
    """Return what a module imports and may not."""
    below = layer(name)
    return {
        other
        for other in imported(source)
        if layer(other) is None or below is not None and layer(other) > below
    }


@pytest.mark.parametrize("path", FILES, ids=module)
def test_a_module_imports_only_what_stands_below_it(path):
    wrong = too_high(module(path), path.read_text("utf-8"))
    assert not wrong, (
        f"{module(path)} imports {sorted(wrong)}: a layer uses those below "
        f"it, {' < '.join(LAYERS)}, and nobody imports a test. Move what is "
        "shared down, or into a conftest.py."
    )


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("tools.run.chapter", "def late():\n    import tools.commands.pdf"),
        ("tools.run.shapes", "from tests.chapters import test_masks"),
    ],
)
def test_an_import_from_above_is_seen(name, line):
    assert too_high(name, line)
