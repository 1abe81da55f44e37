from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from laboratory import NotebookPage, find_browser, serving, write_notebook  # found by the path above
from playwright.sync_api import Browser, sync_playwright

WIDTH = 1280  # pixels


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        yield running
        running.close()


class Desk:
    """A server with a directory of notebooks, and a browser to open them in."""

    def __init__(self, browser: Browser, address: str, directory: Path, front_end: str) -> None:
        self.browser = browser
        self.address = address
        self.directory = directory
        self.front_end = front_end
        self.context = browser.new_context(viewport={"width": WIDTH, "height": 900})

    def write(self, name: str, cells: list[str]) -> Path:
        """Write a notebook."""
        write_notebook(self.directory / name, cells)
        return self.directory / name

    def open(self, name: str) -> NotebookPage:
        """Open a notebook in a page of its own."""
        return NotebookPage(self.context, f"{self.address}/{self.front_end}/{name}")


@pytest.fixture(scope="module", params=["doc/tree", "notebooks"], ids=["JupyterLab", "Notebook"])
def desk(request, browser, tmp_path_factory) -> Iterator[Desk]:
    """JupyterLab, then Notebook."""
    directory = tmp_path_factory.mktemp("notebooks")
    with serving(directory) as address:
        opened = Desk(browser, address, directory, request.param)
        yield opened
        opened.context.close()


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Where pictures of pages go: to the README's if that is asked for."""
    return Path(os.environ.get("NBSHM_PICTURES", tmp_path))
