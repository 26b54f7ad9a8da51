"""What holds between chapters: a book with the fault is rejected."""

import pytest

from tools.rules.book import one_name_one_body


@pytest.fixture
def books(small_notebook):
    return [small_notebook(f"{name}.ipynb") for name in "ab"]


def test_name_with_two_bodies_is_rejected(books):
    cell = books[1].code[2]
    right = cell.source
    assert not list(one_name_one_body(books))
    cell.source = right.replace("2 *", "3 *")
    (message,) = one_name_one_body(books)
    assert "b.ipynb [3]: twice differs from the one in" in message
    assert "a.ipynb [3]" in message and "name of its own" in message
    cell.source = right + "  # (T,)"
    assert list(one_name_one_body(books))  # comments belong to it


def test_constant_text_with_two_values_is_rejected(books):
    for book in books:
        book.code[1].source = 'SCRIPT = """draw()"""\nscript = "free"'
    assert not list(one_name_one_body(books))
    books[1].code[1].source = 'SCRIPT = """erase()"""\nscript = "other"'
    (message,) = one_name_one_body(books)
    assert "b.ipynb [2]: SCRIPT differs from the one in" in message
