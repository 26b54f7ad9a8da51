"""The lines of the README that ask a model of Transformers."""

import contextlib
import io
import os
import re

import pytest

from tools.settings import ROOT

LINES = re.search(
    r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S
)[1]


@pytest.fixture
def llama(monkeypatch):
    monkeypatch.setitem(os.environ, "HF_HUB_OFFLINE", "1")
    from transformers.models.llama import modeling_llama

    return modeling_llama


def says():
    """Return what the README's lines print."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(LINES, {})
    return said.getvalue()


def test_a_new_llama_is_correct(llama):
    report = says()
    assert "future" in report and " failed" not in report


def test_a_llama_that_looks_both_ways_is_found(llama, monkeypatch):
    both_ways = llama.create_causal_mask.__globals__
    monkeypatch.setattr(
        llama, "create_causal_mask", both_ways["create_bidirectional_mask"]
    )
    assert re.search(r"future +failed", says())
