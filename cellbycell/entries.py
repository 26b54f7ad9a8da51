"""Tables of what a config.json may say, which refuse what they do not know.

A loader that ignores an entry may make another model, which runs and is
wrong. So each entry is checked, and unknown ones are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "COMPARE",
    "Entry",
    "checked_config",
    "count",
    "flag",
    "number",
    "only",
    "several",
    "table",
    "text",
]


_REQUIRED = object()  # the default of a required entry
COMPARE = "compare config.json with that of the original model"


@dataclass(frozen=True)
class Entry:
    """The rule for one entry of a config.

    Parameters
    ----------
    words
        What is allowed, for the message.
    fits
        Takes a value, returns whether it is allowed.
    default
        The value of a missing entry. Without a default, the entry is
        required; null is allowed if the default is None.
    entries
        The rules for the entries of a nested table.
    advice
        What to do about another value.
    """

    words: str
    fits: Callable[[Any], bool]
    default: Any = _REQUIRED
    entries: Mapping[str, Entry] | None = None
    advice: str = COMPARE

    def allows(self, value: Any) -> bool:
        """Return whether a config may have this value."""
        return value is None and self.default is None or self.fits(value)


def count(default: Any = _REQUIRED, most: int = 2**24) -> Entry:
    """Return a rule for a whole number from 1 on.

    Parameters
    ----------
    default
        The value of a missing entry.
    most
        The largest number that is allowed.

    Returns
    -------
    Entry
    """
    words = f"a whole number from 1 to {most:,}"
    return Entry(words, lambda x: type(x) is int and 1 <= x <= most, default)


def number(default: Any = _REQUIRED, above: float = -1e30) -> Entry:
    """Return a rule for a finite number, whole or not.

    Parameters
    ----------
    default
        The value of a missing entry.
    above
        The number must be larger than this.

    Returns
    -------
    Entry
    """

    def fits(x):
        return type(x) in (int, float) and above < x < 1e30

    return Entry(f"a number above {above:g}, below 1e+30", fits, default)


def flag(default: Any = _REQUIRED) -> Entry:
    """Return a rule for true or false.

    Parameters
    ----------
    default
        The value of a missing entry.

    Returns
    -------
    Entry
    """
    return Entry("true or false", lambda x: type(x) is bool, default)


def text(default: Any = _REQUIRED) -> Entry:
    """Return a rule for a string.

    Parameters
    ----------
    default
        The value of a missing entry.

    Returns
    -------
    Entry
    """
    return Entry("a string", lambda x: type(x) is str, default)


def only(
    *values: Any, default: Any = _REQUIRED, advice: str = COMPARE
) -> Entry:
    """Return a rule for one of these values.

    Parameters
    ----------
    values
        The allowed values; types count, so false is not 0.
    default
        The value of a missing entry.
    advice
        What to do about another value.

    Returns
    -------
    Entry
    """

    def fits(x):
        return any(type(x) is type(value) and x == value for value in values)

    words = " or ".join(map(repr, values))
    return Entry(words, fits, default, advice=advice)


def several(entry: Entry, default: Any = _REQUIRED) -> Entry:
    """Return a rule for a list.

    Parameters
    ----------
    entry
        The rule for each item.
    default
        The value of a missing entry.

    Returns
    -------
    Entry
    """

    def fits(x):
        return type(x) is list and all(map(entry.allows, x))

    return Entry(f"a list, each item {entry.words}", fits, default)


def table(entries: Mapping[str, Entry], default: Any = _REQUIRED) -> Entry:
    """Return a rule for a table inside the config.

    Parameters
    ----------
    entries
        The rules for its entries.
    default
        The value of a missing table.

    Returns
    -------
    Entry
    """
    return Entry("a table", lambda x: type(x) is dict, default, entries)


def checked_config(
    config: Mapping[str, Any],
    entries: Mapping[str, Entry],
    place: str = "config.json",
    source: str = "folder",
) -> dict[str, Any]:
    """Return the entries of a config, checked by a table of rules.

    Parameters
    ----------
    config
        The parsed JSON.
    entries
        The table: a rule for each allowed name, in the order of the checks.
    place
        The name of the config, for the message.
    source
        What it comes from, for the message.

    Returns
    -------
    dict
        A value for each name in the table, or its default. Nested tables
        are checked in the same way.

    Raises
    ------
    ValueError
        An entry is missing, has another type or value, or is not null and
        not in the table. The message names the entry, its value, and what to
        do.
    """
    inside = "" if place == "config.json" else f"{place}."
    found = {}
    for name, entry in entries.items():
        value = config.get(name, entry.default)
        if value is _REQUIRED:
            raise ValueError(
                f"{place} has no {name}: give the {source} of a complete "
                "model."
            )
        if name in config and not entry.allows(value):
            null = ", or null" if entry.default is None else ""
            raise ValueError(
                f"{inside}{name} is {_short(value)}, and has to be "
                f"{entry.words}{null}: {entry.advice}."
            )
        if entry.entries is not None and value is not None:
            value = checked_config(
                value, entry.entries, f"{inside}{name}", source
            )
        found[name] = value
    for name, value in config.items():
        if name not in entries and value is not None:
            raise ValueError(
                f"{inside}{name} is {_short(value)}, but this loader does "
                f"not know the entry: load the {source} with Transformers, or "
                "remove the entry if it does not change the logits."
            )
    return found


def _short(value: Any) -> str:
    """Return a value as text, cut to a line."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
