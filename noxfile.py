"""Compare the notebooks on other versions: `nox --session colab`, for one.

`pip install nox` brings the command; without a name it runs all sessions. The
first two run in .venv. The others make environments of their own in .nox, of
some gigabytes each; with uv installed,

    UV_TORCH_BACKEND=cpu nox --default-venv-backend uv

spares PyTorch's CUDA build and fetches Python 3.13 where there is none.
"""

from pathlib import Path

import nox

nox.options.error_on_missing_interpreters = True
nox.options.reuse_venv = "yes"

# What needs the frameworks, and neither the site nor a browser.
TESTS = [
    "book",
    "tests/chapters/test_claims.py",
    "tests/chapters/test_exercises.py",
    "tests/proof/net/test_figures.py",
]

# Fewer threads and narrower vectors add up in another order: a number that
# is printed too precisely shows.
AVX2 = {
    "OMP_NUM_THREADS": "1",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_CBWR": "AVX2",
}

# Of August 2026.
COLAB = [
    "torch==2.11.*",
    "tensorflow==2.20.*",
    "keras==3.13.*",
    "numpy==2.1.*",
    "matplotlib==3.10.*",
    "ipython==7.34.*",
    "ipykernel==6.17.*",
]


def compare(session, *packages):
    """Install packages with the pinned test tools; run the comparison."""
    tools = ("nbval", "pytest", "pytest-xdist")
    lines = Path("requirements.txt").read_text().splitlines()
    pins = [line.split()[0] for line in lines if line.split("==")[0] in tools]
    session.install(*packages, *pins)
    session.run("python", "-m", "pytest", *TESTS)


@nox.session(venv_backend="none")
def pinned(session):
    """The pinned versions, as in `make test`."""
    session.run("make", ".venv/installed")
    session.run(".venv/bin/python", "-m", "pytest", *TESTS)


@nox.session(venv_backend="none")
def avx2(session):
    """The pinned versions, on one thread and with AVX2 alone."""
    session.run("make", ".venv/installed")
    session.run(".venv/bin/python", "-m", "pytest", *TESTS, env=AVX2)


@nox.session(python="3.13")
def colab(session):
    """The versions that Colab has."""
    compare(session, *COLAB)


@nox.session
def newest(session):
    """The newest versions of what the chapters import."""
    compare(session, "torch", "tensorflow", "numpy", "matplotlib")
