"""What the package index shows of the package: its settings and its page."""

import os
import re
import tomllib

import pytest
import torch

from cellbycell import checks
from tools.markdown import links
from tools.settings import ROOT, slug

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
README = (ROOT / PROJECT["project"]["readme"]).read_text("utf-8")
LINES = re.findall(r"(?ms)^```python\n(.*?)^```", README)
HOME = f"https://github.com/{slug()}"


def test_each_link_leads_to_a_file_of_the_repository():
    """The index has no other files, so that each link is absolute."""
    found = [target for _, target in links(README)]
    found += PROJECT["project"]["urls"].values()
    assert found
    for target in found:
        if target not in (HOME, f"{HOME}/issues"):
            path = re.fullmatch(rf"{re.escape(HOME)}/blob/[^/]+/(.+)", target)
            assert path and (ROOT / path[1]).is_file(), target


def test_the_index_knows_what_the_package_is():
    project = PROJECT["project"]
    assert "Checks" in project["description"]
    wanted = ["Homepage", "Documentation", "Changelog", "Issues"]
    assert [*project["urls"]] == wanted
    # The page says that nothing else is brought.
    [needed] = project["dependencies"]
    assert needed.startswith("numpy>=")
    data = PROJECT["tool"]["setuptools"]["package-data"]
    assert data == {
        "cellbycell": ["data/*"],
        "cellbycell.figures": ["*.css", "*.js"],
        "cellbycell.checks": ["symptoms.md"],
        "cellbycell.checks.bugs": ["*.txt"],
    }


def test_the_lines_find_a_llama_that_looks_both_ways(monkeypatch, capsys):
    monkeypatch.setitem(os.environ, "HF_HUB_OFFLINE", "1")
    from transformers.models.llama import modeling_llama as llama

    config = llama.LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        intermediate_size=64,
        num_attention_heads=4,
    )
    torch.manual_seed(0)
    model = llama.LlamaForCausalLM(config)
    exec(LINES[0], {"model": model})
    assert " failed" not in capsys.readouterr().out
    both_ways = llama.create_causal_mask.__globals__
    monkeypatch.setattr(
        llama, "create_causal_mask", both_ways["create_bidirectional_mask"]
    )
    with pytest.raises(checks.CheckFailed, match="sees the future"):
        exec(LINES[0], {"model": model})
    [report] = re.findall(r"(?ms)^```text\n(.*?)^```", README)
    assert report in capsys.readouterr().out


def test_the_page_names_each_check_and_nothing_that_is_not_there():
    rows = re.findall(r"(?m)^\| .+\? \| (.+) \|$", README)
    named = re.findall(r"`(\w+)`", " ".join(rows))
    assert sorted(named) == sorted(checks.CHECKS)
    for name in re.findall(r"from cellbycell\.kit import (\w+)", README):
        assert name in checks.__all__
