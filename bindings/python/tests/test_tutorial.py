"""The tutorial is executed as a reader would."""

import os
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).resolve().parents[1] / "tutorial.ipynb"


def execute(notebook, folder):
    nbclient = pytest.importorskip("nbclient")
    return nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()


def read():
    nbformat = pytest.importorskip("nbformat")
    return nbformat.read(TUTORIAL, as_version=4)


def test_every_cell_of_the_tutorial_runs():
    notebook = read()
    assert all(not cell.get("outputs") for cell in notebook.cells), "results are not part of the source"
    done = execute(notebook, os.fspath(TUTORIAL.parent))
    outputs = [output for cell in done.cells for output in cell.get("outputs", [])]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert {"text/html", "image/svg+xml"} <= kinds, kinds


def test_a_wrong_cell_is_noticed():
    notebook = read()
    notebook.cells = notebook.cells[:1] + [cell for cell in notebook.cells if "import lockwright" in cell.source][:1]
    notebook.cells[-1].source += "\nlw.no_such_name"
    with pytest.raises(Exception, match="no_such_name"):
        execute(notebook, os.fspath(TUTORIAL.parent))
