"""Hold the workflows to a linter and to the rules it leaves open."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tools.settings import ROOT

WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))

MAY_BE_WRITTEN = {"pages", "id-token", "issues", "contents"}


def jobs(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]


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
def test_each_job_has_the_least_rights_and_a_time_limit(path):
    for job in jobs(path).values():
        assert "permissions" in job and "timeout-minutes" in job, job["name"]
        written = {k for k, v in job["permissions"].items() if v == "write"}
        assert written <= MAY_BE_WRITTEN, job["name"]
        # A job that may write runs no code of the book.
        checkouts = str(job).count("actions/checkout")
        assert not (written and checkouts), job["name"]
        assert str(job).count("'persist-credentials': False") == checkouts


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_a_job_installs_is_pinned(path):
    text = path.read_text(encoding="utf-8")
    calls = re.findall(r"(?:pip install|pipx run) ((?!--python)[^\n]*)", text)
    packages = [
        word
        for call in calls
        for word in re.split(" --(?!quiet)| &&", call)[0].split()
        if word != "--quiet"
    ]
    pinned = re.compile(r".*==[\d.]+|/tmp/book")  # the book's own package
    loose = [name for name in packages if not pinned.fullmatch(name)]
    assert packages and not loose, f"pin {', '.join(loose)} to a version"


def test_what_is_published_is_tested_and_built_by_packages_with_hashes():
    all_jobs = jobs(ROOT / ".github/workflows/book.yml")
    kept = [n for n, job in all_jobs.items() if "actions/upload" in str(job)]
    assert kept == ["build"] and all_jobs["test"]["needs"] == "build"
    for name in ("publish", "colab"):
        assert {"build", "test"} <= set(all_jobs[name]["needs"])
    [take] = (s for s in all_jobs["test"]["steps"] if "gh run" in str(s))
    assert "touch _build/site" in take["run"]
    build = all_jobs["build"]
    assert build["env"] == {"REQUIREMENTS": ".ci/site.txt"}
    for run in (step["run"] for step in build["steps"] if "run" in step):
        assert re.fullmatch(
            r'make \w+ .*REQUIREMENTS="\$REQUIREMENTS"', run
        ), f"{run}: would install something without a hash"


def test_the_package_goes_to_pypi_last_and_where_an_owner_says_so():
    all_jobs = jobs(ROOT / ".github/workflows/release.yml")
    [name] = (n for n, j in all_jobs.items() if "id-token" in j["permissions"])
    job = all_jobs.pop(name)
    assert job["if"] == "vars.PYPI == 'true'"
    assert job["environment"]["name"] == "pypi"
    assert name not in str(all_jobs) and job["needs"] == [*all_jobs][-1]
    *_, fetch, publish = job["steps"]
    assert fetch["run"].splitlines()[1:] == [
        "mkdir dist",
        "mv edition/cellbycell-*.whl dist",
    ]
    # By trusted publishing: there is no password, and no other index.
    assert publish.keys() == {"uses"}


def test_make_targets_and_nox_sessions_in_workflows_exist():
    makefile, noxfile = (
        (ROOT / name).read_text("utf-8") for name in ("Makefile", "noxfile.py")
    )
    for path in [*WORKFLOWS, ROOT / ".ci/run"]:
        text = path.read_text("utf-8")
        for target in re.findall(r"\bmake ([a-z./]+)", text):
            assert f"\n{target}:" in makefile, f"{path.name}: make {target}"
        for sessions in re.findall(r"session: \[(.*)\]", text):
            for session in sessions.split(", "):
                assert f"\ndef {session}(session):" in noxfile, session
