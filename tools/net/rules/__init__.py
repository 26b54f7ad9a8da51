"""The rules of a chapter that can be read off the file, one function each.

A rule takes a Notebook and yields one message for each fault; those of book.py
take all notebooks. No rule imports a framework or runs a cell. RULES lists
them; tests/proof/net shows for each that a chapter with the fault is rejected.
"""

# Each file adds its rules to the register.
from tools.net.rules import (
    citations,
    code,
    exercises,
    figures,
    links,
    numbers,
    reading,
    stored,
    tables,
    text,
)
from tools.net.rules.common import RULES

__all__ = [
    "RULES",
    "citations",
    "code",
    "exercises",
    "figures",
    "links",
    "numbers",
    "reading",
    "stored",
    "tables",
    "text",
]
