"""The pages around the chapters: one with the fault is rejected."""

from tools.rules.pages import unknown_names

NOTATION = "| in code | in formulas |\n|---|---|\n| `d_model`, `wide` | $x$ |"


def test_name_on_a_page_that_no_code_has_is_rejected(notebook, page_of):
    (message,) = unknown_names(page_of(NOTATION), [notebook])
    assert "section 2" in message and "has wide, which no code" in message
