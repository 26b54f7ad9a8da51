"""The rules of a chapter that can be read off the file, one function each.

A rule takes a Notebook and yields one message for each fault; those of book.py
and pages.py take several. No rule imports a framework or runs a cell. RULES
lists them; tests/tools shows for each that a chapter with the fault
is rejected.
"""

from tools.rules import (  # noqa: F401, each adds its rules to RULES
    code,
    exercises,
    figures,
    links,
    masks,
    reading,
    stored,
    tables,
    text,
    twins,
)
from tools.rules.common import RULES

__all__ = ["RULES"]
