"""The report, what the kit imports, and what it prints in a shell."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cellbycell
from cellbycell.checks import CHECKS, CheckFailed, Report, Result
from cellbycell.checks.__main__ import main
from cellbycell.checks.report import section

WHERE = Path(cellbycell.__file__).parents[1]


def report(*statuses):
    names = [
        "causality",
        "padding_invariance",
        "batch_invariance",
        "determinism",
    ]
    results = [
        Result(name, status, f"What {name} saw.", CHECKS[name][1])
        for name, status in zip(names, statuses, strict=False)
    ]
    return Report(results, ["The kit tests a float32 copy."])


def test_a_report_is_a_table_with_failures_first():
    lines = str(report("passed", "failed", "error", "warning")).split("\n")
    assert lines == [
        "padding_invariance failed    What padding_invariance saw.",
        "batch_invariance   error     What batch_invariance saw.",
        "determinism        warning   What determinism saw.",
        "causality          passed    What causality saw.",
        "* The kit tests a float32 copy.",
        '* Causes: report.explain("padding_invariance").',
    ]


def test_checks_that_were_not_run_for_one_reason_share_a_row():
    results = [
        Result("causality", "not run", "give targets=", "x", needs="targets="),
        Result("determinism", "not run", "give loss=", "x", needs="loss="),
        Result("padding_invariance", "not run", "no mask", "x"),
    ]
    assert str(Report(results, [])).split("\n") == [
        "           not run   causality (targets=), determinism (loss=): need "
        "other",
        "                     arguments",
        "           not run   padding_invariance: no mask",
    ]


@pytest.mark.parametrize(("columns", "longest"), [("200", 110), ("70", 70)])
def test_a_report_is_as_wide_as_the_terminal(monkeypatch, columns, longest):
    monkeypatch.setitem(os.environ, "COLUMNS", columns)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    said = str(
        Report([Result("padding_invariance", "failed", "word " * 99, "x")], [])
    )
    assert longest - 5 <= max(map(len, said.split("\n"))) <= longest


def test_a_notebook_shows_a_table():
    shown = report("passed", "failed")._repr_html_()
    assert shown.index("padding_invariance") < shown.index("causality")
    assert shown.count("<tr>") == 2 and "#c0392b" in shown
    wrong = Report([Result("padding_invariance", "failed", "<b>", "x")], [])
    assert "&lt;b&gt;" in wrong._repr_html_()


def test_a_report_can_be_written():
    found = report("passed", "failed")
    told = json.loads(json.dumps(found.to_dict()))
    assert told["ok"] is False and told["notes"] == [*found.notes]
    assert told["checks"][1]["name"] == "padding_invariance"
    assert told["checks"][1]["status"] == "failed"
    lines = found.to_markdown().split("\n")
    assert lines[2].startswith(r"| padding\_invariance | failed |")
    odd = Report([Result("causality", "failed", "a|b", "x")], [])
    assert r"a\|b |" in odd.to_markdown()
    page = found.to_html()
    assert page.startswith("<!doctype html>") and found._repr_html_() in page


def test_names_by_status():
    found = report("passed", "failed", "error", "warning")
    assert found["padding_invariance"].status == "failed"
    assert (found.passed, found.failed) == (
        ["causality"],
        ["padding_invariance"],
    )
    assert (found.errors, found.warnings) == (
        ["batch_invariance"],
        ["determinism"],
    )
    assert len(found) == 4


@pytest.mark.parametrize("status", ["failed", "error"])
def test_a_test_fails(status):
    found = report("passed", status)
    with pytest.raises(
        CheckFailed,
        match=f"padding_invariance .{status}.: What padding_invariance saw.",
    ):
        found.raise_if_failed()
    with pytest.raises(
        CheckFailed, match="checks --explain padding_invariance"
    ):
        found["padding_invariance"].raise_if_failed()
    assert found.ok is False


def test_what_is_raised_comes_from_the_models_own_error():
    cause = IndexError("out of range")
    found = Report(
        [Result("output_shape", "error", "IndexError", "x", cause)], []
    )
    with pytest.raises(CheckFailed) as raised:
        found.raise_if_failed()
    assert raised.value.__cause__ is cause


@pytest.mark.parametrize("status", ["not run", "warning"])
def test_a_test_passes(status):
    found = report("passed", status)
    found.raise_if_failed()
    assert found.ok is True


@pytest.mark.parametrize("status", ["passed", "failed"])
def test_a_report_alone_is_no_verdict(status):
    with pytest.raises(TypeError, match="`assert report.ok`, or"):
        assert report(status)


@pytest.mark.parametrize("name", CHECKS)
def test_each_check_is_explained_by_a_section_of_the_page(name):
    text = section(CHECKS[name][1])
    assert re.search(r"(?m)^(- |\| )", text) and "](" not in text


def test_a_report_explains(capsys):
    report("failed").explain("causality")
    said = capsys.readouterr().out
    assert said.startswith("The loss is too good\n")
    assert "Checks: `causality`" in said
    with pytest.raises(ValueError, match="report has no check 'x'"):
        report("failed").explain("x")


def test_a_shell_explains(monkeypatch, capsys):
    monkeypatch.setattr(
        sys, "argv", ["kit", "--explain", "padding_invariance"]
    )
    assert main() == 0
    assert capsys.readouterr().out.startswith("Padding changes the output\n")


@pytest.mark.parametrize(
    ("weights", "broken"),
    [([], True), (["--weights"], False), (["--weights"], True)],
)
def test_a_shell_checks_a_folder(
    tmp_path, monkeypatch, capsys, weights, broken
):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=60,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        pad_token_id=59,
        architectures=["LlamaForCausalLM"],
    )
    model = transformers.LlamaForCausalLM(config)
    if broken:
        model.model.layers[0].mlp.up_proj.weight.data[0, 0] = torch.nan
    model.save_pretrained(tmp_path)
    monkeypatch.setattr(sys, "argv", ["kit", str(tmp_path), *weights])
    wrong = bool(broken and weights)
    assert main() == wrong
    said = capsys.readouterr().out
    assert ("NaN or infinity" in said) is wrong
    assert f"pad_id={59 if weights else 0}" in said
    assert "The model is transformers.LlamaForCausalLM" in said


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (None, "has no config.json: give a model's folder"),
        ('{"model_type": "llama"}', "name none, which is no class"),
        (
            '{"model_type": "llama", "architectures": ["OurLlama"]}',
            "name OurLlama, which is no class",
        ),
    ],
)
def test_a_folder_that_cannot_be_checked(
    tmp_path, monkeypatch, capsys, config, says
):
    pytest.importorskip("transformers")
    pytest.importorskip("torch")
    if config:
        (tmp_path / "config.json").write_text(config)
    monkeypatch.setattr(sys, "argv", ["kit", str(tmp_path)])
    with pytest.raises(SystemExit):
        main()
    assert says in capsys.readouterr().err.replace("\n", " ")


MODULE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.last = nn.Embedding(50, 8), nn.Linear(8, 50)

    def forward(self, ids):
        return self.last(self.embed(ids))


def make():
    return Net()


def given():
    return dict(model=Net(), token_ids=[[5, 6, 7], [8, 9, 0]], pad_id=0)
"""


@pytest.mark.parametrize("name", ["make", "given"])
def test_a_shell_checks_what_a_function_makes(
    tmp_path, monkeypatch, capsys, name
):
    pytest.importorskip("torch")
    module = f"of_{name}"
    (tmp_path / f"{module}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    given = ["kit", f"{module}:{name}", "--targets", "--json", "report.json"]
    given += ["--only", "output_shape, context_dependence,target_alignment"]
    given += ["--skip", "output_shape", "--html", "r.html"]
    given += ["--markdown", "r.md"]
    monkeypatch.setattr(sys, "argv", given)
    assert main() == 1
    told = json.loads((tmp_path / "report.json").read_text())
    found = {check["name"]: check["status"] for check in told["checks"]}
    assert found == {
        "context_dependence": "failed",
        "target_alignment": "passed",
    }
    assert all(check["seconds"] > 0 for check in told["checks"])
    assert "context_dependence" in (tmp_path / "r.html").read_text()
    assert "| failed |" in (tmp_path / "r.md").read_text()
    assert "context_dependence failed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["no_such:make"], "no_such:make: No module named"),
        (["json:nothing"], "has no attribute 'nothing'"),
        (["json:nothing", "--only", "x"], "has no attribute"),
        ([], "give module:function, a folder, or --explain CHECK"),
        (["folder", "--targets"], "--targets is for module:function"),
    ],
)
def test_a_function_that_is_not_there(monkeypatch, capsys, given, says):
    monkeypatch.setattr(sys, "argv", ["kit", *given])
    with pytest.raises(SystemExit):
        main()
    assert says in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize("framework", ["torch", "tensorflow", "keras"])
def test_no_framework_is_imported(framework):
    code = (
        "import sys, cellbycell.checks; assert sys.argv[1] not in sys.modules"
    )
    python = [sys.executable, "-c", code, framework]
    subprocess.run(python, cwd=WHERE, check=True)


@pytest.mark.parametrize("seed", range(8))
def test_correct_models_of_random_design(seed):
    """`python -m benchmarks.correct` tests many more, also in Keras."""
    pytest.importorskip("torch")
    correct = pytest.importorskip("benchmarks.correct")  # of the checkout
    found = correct.report_on(correct.draw(seed), correct.make_torch)
    assert found.failed == found.errors == []
