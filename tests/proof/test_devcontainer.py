"""The container of an editor installs the book as the README says."""

import json
import re

from tools.settings import ROOT


def test_the_container_installs_as_the_readme_says():
    path = ROOT / ".devcontainer" / "devcontainer.json"
    container = json.loads(path.read_text("utf-8"))
    readme = (ROOT / "README.md").read_text("utf-8")
    uv, install = container["postCreateCommand"].split(" && ")
    assert f"\n{install}\n" in readme and "--torch-backend cpu" in install
    workflow = (ROOT / ".github/workflows/book.yml").read_text("utf-8")
    assert uv.removeprefix("pip install ") in workflow
    (version,) = re.findall(r"python:(3\.\d+)", container["image"])
    installer = (ROOT / "tools" / "install.sh").read_text("utf-8")
    assert version in re.search("supported='(.*)'", installer)[1].split()
