"""The pages around the chapters: one with the fault is rejected."""

import pytest

from tools.rules.pages import checks_elsewhere, unknown_names

NOTATION = "| in code | in formulas |\n|---|---|\n| `d_model`, `wide` | $x$ |"
SYMPTOMS = """# Symptoms

## The loss is NaN

- [A query is blind](small.ipynb#against-the-libraries), and all is lost.
  Check: `{}`.
"""


def test_name_on_a_page_that_no_code_has_is_rejected(notebook, page_of):
    (message,) = unknown_names(page_of(NOTATION), [notebook])
    assert "section 2" in message and "has wide, which no code" in message


@pytest.mark.parametrize("check", ["twice_tf(x)", "assert", "The same"])
def test_check_in_the_section_that_a_symptom_links_passes(notebook, check):
    assert not list(checks_elsewhere(SYMPTOMS.format(check), [notebook]))


@pytest.mark.parametrize("check", ["len(x)", "import math", "assert x", "tw"])
def test_check_that_stands_in_another_section_is_rejected(notebook, check):
    (message,) = checks_elsewhere(SYMPTOMS.format(check), [notebook])
    assert f"symptoms.md has the check `{check}` for '- [A query" in message
    assert "and small.ipynb#against-the-libraries has it not" in message
    assert "One of the two is wrong" in message


def test_check_that_stands_only_above_the_section_s_own_is_rejected(notebook):
    cell = next(c for c in notebook.markdown if "The same." in c.source)
    cell.source += "\nBy `twice`.\n*Check*: the norm of x."
    assert not list(checks_elsewhere(SYMPTOMS.format("norm_of_x"), [notebook]))
    (message,) = checks_elsewhere(SYMPTOMS.format("By"), [notebook])
    assert "has the check `By`" in message


def test_symptom_without_a_check_is_rejected(notebook):
    page = SYMPTOMS.partition("  Check")[0]
    (message,) = checks_elsewhere(page, [notebook])
    assert "say by 'Check: ...' what finds '- [A query is blind]" in message
