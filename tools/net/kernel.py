"""What a process that records or compares needs, and what is said of it."""

from pathlib import Path

from tools.settings import ROOT

ENVIRONMENT = {
    # A CUDA build of torch warns on stderr where there is no GPU, which is no
    # output of the book.
    "PYTHONWARNINGS": "ignore:CUDA initialization",
    # Each figure's PNG says what it shows, by figures.py beside this file.
    "MATPLOTLIBRC": str(Path(__file__).with_name("matplotlibrc")),
    "PYTHONPATH": str(ROOT),
}
DIED = "its process died. Memory ran out, or the code ended it: mend the cell."
HANGS = "still running after {:g} s. Mend an endless loop, or compute less."
