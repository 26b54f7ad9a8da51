"""Hold the workflows to a linter and to the rules it leaves open."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tools.settings import ROOT

WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def jobs(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()


def test_linter_finds_nothing():
    result = subprocess.run(
        [
            Path(sys.executable).with_name("zizmor"),
            *("--offline", "--pedantic", "--strict-collection", "--quiet"),
            ROOT / ".github",
        ],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, f"\n{result.stdout}{result.stderr}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_to_a_commit_with_its_version(path):
    used = re.findall(r"uses: *(.*)", path.read_text(encoding="utf-8"))
    loose = [action for action in used if not PINNED.fullmatch(action)]
    assert used and not loose, (
        f"{path.name}: write owner/action@40-digit-commit # v1.2.3, "
        f"not: {', '.join(loose)}"
    )


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_each_job_has_its_own_least_rights_and_a_time_limit(path):
    text = path.read_text(encoding="utf-8")
    assert "\npermissions: {}\n" in text
    for job in jobs(path):
        assert "permissions" in job and "timeout-minutes" in job, job["name"]
        written = {k for k, v in job["permissions"].items() if v == "write"}
        assert written <= {"pages", "id-token", "issues"}, job["name"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_a_job_installs_is_pinned(path):
    text = path.read_text(encoding="utf-8")
    calls = re.findall(r"(?:pip install|pipx run) ((?!--python)[^\n]*)", text)
    packages = [
        word for call in calls for word in call.partition(" --")[0].split()
    ]
    loose = [name for name in packages if not re.search(r"==[\d.]+$", name)]
    assert packages and not loose, f"pin {', '.join(loose)} to a version"


def test_what_is_published_is_built_by_packages_with_hashes():
    book = ROOT / ".github/workflows/book.yml"
    all_jobs = yaml.safe_load(book.read_text("utf-8"))["jobs"]
    (build,) = (
        name
        for name, job in all_jobs.items()
        if "upload-pages-artifact" in str(job)
    )
    assert {build, "test"} <= set(all_jobs["publish"]["needs"])
    runs = [step["run"] for step in all_jobs[build]["steps"] if "run" in step]
    assert all_jobs[build]["env"] == {"REQUIREMENTS": ".ci/site.txt"}
    for run in runs:
        assert re.fullmatch(
            r'make \w+ .*REQUIREMENTS="\$REQUIREMENTS"', run
        ), f"{run}: would install something without a hash"


def test_nox_sessions_in_workflows_exist():
    noxfile = (ROOT / "noxfile.py").read_text("utf-8")
    weekly = (ROOT / ".github/workflows/weekly.yml").read_text("utf-8")
    sessions = re.findall(r"session: \[(.*)\]", weekly)
    for session in ", ".join(sessions).split(", "):
        assert f"\ndef {session}(session):" in noxfile, session


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_job_that_may_write_runs_no_code_of_the_book(path):
    for job in jobs(path):
        if "write" in job["permissions"].values():
            used = [step.get("uses", "") for step in job["steps"]]
            assert not any("checkout" in action for action in used)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_checkout_leaves_no_credentials_behind(path):
    for job in jobs(path):
        for step in job["steps"]:
            if "checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False


def test_weekly_report_waits_for_every_job_and_tells_its_result():
    weekly = ROOT / ".github/workflows/weekly.yml"
    *others, last = yaml.safe_load(weekly.read_text("utf-8"))["jobs"].items()
    names = [name for name, _ in others]
    report = last[1]
    assert report["needs"] == names and report["if"] == "failure()"
    (step,) = report["steps"]
    for name in names:
        (variable,) = (
            key
            for key, value in report["env"].items()
            if value == f"${{{{ needs.{name}.result }}}}"
        )
        assert f"${variable}" in step["run"], name


def test_make_targets_in_workflows_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for path in [*WORKFLOWS, ROOT / ".ci/run"]:
        for target in re.findall(
            r"\bmake ([a-z./]+)", path.read_text("utf-8")
        ):
            assert f"\n{target}:" in makefile, f"{path.name}: make {target}"
