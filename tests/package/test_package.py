"""Each part of the package stands alone, and says what each name does."""

import re
import subprocess
import sys
from importlib import import_module
from inspect import getdoc, signature
from pathlib import Path

import pytest

import cellbycell

# A part -> what it needs, and what it does not import.
PARTS = {
    "common": ("numpy", "torch tensorflow keras"),
    "exercises": ("numpy", "torch tensorflow keras"),
    "figures": ("numpy", "torch tensorflow keras matplotlib IPython"),
    "pytorch": ("torch", "tensorflow keras"),
    "tensorflow": ("tensorflow", "torch"),
}


@pytest.mark.parametrize("part", ["common", "pytorch", "tensorflow"])
def test_a_name_with_an_underscore_stays_in_its_module(part):
    """The reference page lists what `__all__` does."""
    pytest.importorskip(PARTS[part][0])
    known = vars(import_module(f"cellbycell.{part}"))
    assert {*known["__all__"]} == {
        name for name, value in known.items() if callable(value)
    }
    for name in known["__all__"]:
        assert not name.startswith("_") and known[name].__doc__, name


@pytest.mark.parametrize("part", PARTS)
def test_a_part_imports_no_other_framework(part):
    needs, without = PARTS[part]
    pytest.importorskip(needs)
    code = f"import sys, cellbycell.{part}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(cellbycell.__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {*without.split()} & {*done.stdout.split()}


FOLDER = Path(cellbycell.__file__).parent
BY_HAND = [
    "checks",
    "exercises",
    "figures",
    *sorted(path.stem for path in FOLDER.glob("[a-z]*.py")),
]


@pytest.mark.parametrize("part", BY_HAND)
def test_what_is_written_by_hand_says_what_it_takes_and_returns(part):
    """In the sections of numpydoc, of which the reference makes tables."""
    module = pytest.importorskip(f"cellbycell.{part}")
    public = getattr(module, "__all__", vars(module))
    for name, thing in vars(module).items():
        own = getattr(thing, "__module__", "").startswith("cellbycell.")
        if name not in public or name.startswith("_") or not own:
            continue
        if isinstance(thing, type) and issubclass(thing, Exception):
            continue
        doc = getdoc(thing)
        found = re.findall(r"(?ms)^(\w+)\n-+\n(.*?)(?=\n\n|\Z)", doc)
        sections = dict(found)
        told = re.findall(r"(?m)^\S[^:\n]*\b", sections.get("Parameters", ""))
        told = ", ".join(told).replace("*", "").split(", ") if told else []
        assert told == [*signature(thing).parameters], name
        for verb, section in [("Return", "Returns"), ("Raise", "Raises")]:
            assert not doc.startswith(f"{verb} ") or section in sections, name
