"""What the tests of the pages share: how a page is held to its numbers."""

import pytest

from tools.notebooks import label
from tools.run import claims
from tools.settings import BOOK

NUMBERED = [BOOK / f"{n}.md" for n in ("notation", "libraries", "symptoms")]


def names(text):
    """Return the names that the comments behind a text's numbers have."""
    return {expression for _, expression in claims.find(text)}


@pytest.fixture(scope="session")
def numbered_pages():
    """Return a dict: the name of a page with computed numbers -> its text."""
    return {label(path): path.read_text("utf-8") for path in NUMBERED}


@pytest.fixture(scope="session")
def names_of():
    """Return a function: text -> the names behind its numbers."""
    return names


@pytest.fixture(scope="session")
def check_numbers(numbered_pages):
    """Return a function: name=number, ... -> it fails if a page says another.

    It reads each line that has one of the names.
    """

    def check(**numbers):
        numbers = {name: float(number) for name, number in numbers.items()}
        said, messages = set(), []
        for page, text in numbered_pages.items():
            for line in text.split("\n"):
                if found := names(line) & numbers.keys():
                    said |= found
                    wrong = claims.check_claims(line, numbers)
                    messages += [f"{page}: {message}" for message in wrong]
        assert not messages, "\n".join(messages)
        assert said == numbers.keys(), f"no page says {numbers.keys() - said}"

    return check


@pytest.fixture(scope="session")
def check_says(numbered_pages):
    """Return a function: text -> it fails unless libraries.md has the text."""

    def check(text):
        page = numbered_pages["book/libraries.md"]
        assert text in page, f"book/libraries.md should say: {text}"

    return check
