"""A shape such as (B, T, S) stays on one line, however narrow its place."""

import pytest

BROKEN = """all => all.filter(e => e.getClientRects().length &&
    new Set([...e.getClientRects()].map(box => box.top)).size > 1
).map(e => e.textContent)"""


@pytest.mark.parametrize("name", ["book/notation", "book/symptoms"])
def test_shapes_are_whole_on_a_phone(visit, name):
    shapes = visit(name, width=360).locator(".shape")
    assert shapes.count() > 5
    assert shapes.evaluate_all(BROKEN) == []


def test_shapes_in_tables_are_marked_in_code_and_in_text(visit):
    texts = visit("book/notation").locator("td .shape").all_text_contents()
    assert "(B, T, S)" in texts and "(…, T, S)" in texts
