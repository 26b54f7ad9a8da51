"""The report, and what the kit imports."""

import subprocess
import sys
from pathlib import Path

import pytest

import cellbycell
from cellbycell.kit import CheckFailed, Report, Result


def report(*statuses):
    names = ["future", "pads", "alone", "calls"]
    results = [
        Result(name, status, f"What {name} saw.", "symptoms.html#x")
        for name, status in zip(names, statuses, strict=False)
    ]
    return Report(results, ["A float32 copy is asked."])


def test_a_report_is_a_table():
    lines = str(report("passed", "failed", "error", "not asked")).split("\n")
    assert lines == [
        "pads       failed    What pads saw.",
        "alone      error     What alone saw.",
        "future     passed    What future saw.",
        "           not asked calls: What calls saw.",
        "* A float32 copy is asked.",
        '* Causes: report.explain("pads").',
    ]


def test_names_by_status():
    found = report("passed", "failed", "error", "not asked")
    assert found["pads"].status == "failed"
    assert (found.passed, found.failed) == (["future"], ["pads"])
    assert found.errors == ["alone"] and len(found) == 4


@pytest.mark.parametrize("status", ["failed", "error"])
def test_a_test_fails(status):
    found = report("passed", status)
    with pytest.raises(CheckFailed, match=f"pads .{status}.: What pads saw."):
        found.raise_if_failed()
    assert found.ok is False


def test_a_test_passes():
    found = report("passed", "not asked")
    found.raise_if_failed()
    assert found.ok is True


@pytest.mark.parametrize("status", ["passed", "failed"])
def test_a_report_alone_is_no_verdict(status):
    with pytest.raises(TypeError, match="`assert report.ok`, or"):
        assert report(status)


@pytest.mark.parametrize("framework", ["torch", "tensorflow", "keras"])
def test_no_framework_is_imported(framework):
    code = "import sys, cellbycell.kit; assert sys.argv[1] not in sys.modules"
    where = Path(cellbycell.__file__).parents[1]
    python = [sys.executable, "-c", code, framework]
    subprocess.run(python, cwd=where, check=True)


@pytest.mark.parametrize("seed", range(8))
def test_correct_models_of_random_design(seed):
    """`python -m research.correct` asks many more, of Keras, too."""
    pytest.importorskip("torch")
    correct = pytest.importorskip("research.correct")  # of the checkout
    found = correct.report_on(correct.draw(seed), correct.make_torch)
    assert found.failed == found.errors == []
