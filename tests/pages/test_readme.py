"""The lines of the README that ask a model of Transformers."""

import contextlib
import io
import os
import re

import pytest
import torch

from tools.settings import ROOT

README = (ROOT / "README.md").read_text("utf-8")
LINES, REPORT = (
    re.search(rf"```{kind}\n(.*?)```", README, re.S)[1]
    for kind in ("python", "text")
)


@pytest.fixture
def llama(monkeypatch):
    monkeypatch.setitem(os.environ, "HF_HUB_OFFLINE", "1")
    from transformers.models.llama import modeling_llama

    return modeling_llama


def says():
    """Return what the README's lines print."""
    said = io.StringIO()
    torch.manual_seed(0)
    with contextlib.redirect_stdout(said):
        exec(LINES, {})
    return said.getvalue()


def test_a_new_llama_is_correct(llama):
    report = says()
    assert "causality" in report and " failed" not in report


def test_a_llama_that_looks_both_ways_is_found(llama, monkeypatch):
    both_ways = llama.create_causal_mask.__globals__
    monkeypatch.setattr(
        llama, "create_causal_mask", both_ways["create_bidirectional_mask"]
    )
    assert REPORT in says()
