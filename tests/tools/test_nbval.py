"""nbval as it is published accepts every cell of the book.

In fresh kernels, in a folder that holds the notebooks and nothing else of this
repository, so that no settings and no plugin of the book are in force.
"""

import os
import re
import shutil
import subprocess
import sys

from tools.notebooks import Notebook, paths
from tools.run.compare import ENVIRONMENT
from tools.settings import need_model, without_model

COMMAND = [
    *(sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env"),
    *("--numprocesses=2", "--dist=loadscope", "--color=no"),
]


def test_nbval_as_published_accepts_every_cell_of_the_book(tmp_path):
    left_out = need_model() if without_model() else {}
    chosen = [path for path in paths() if path.stem not in left_out]
    for path in chosen:
        shutil.copy(path, tmp_path)
    ours = {*ENVIRONMENT, *(n for n in os.environ if n.startswith("PYTEST"))}
    others = {n: v for n, v in os.environ.items() if n not in ours}
    # A progress bar is never twice the same, and two kernels share the cores.
    others |= {k: ENVIRONMENT[k] for k in ("TQDM_DISABLE", "OMP_WAIT_POLICY")}
    run = subprocess.run(
        COMMAND, cwd=tmp_path, env=others, capture_output=True, text=True
    )
    cells = sum(len(Notebook.read(path).code) for path in chosen)
    counted = re.search(r"=+ (.+) in [\d.]+s", run.stdout)
    assert counted and counted[1] == f"{cells} passed", run.stdout[-4000:]
