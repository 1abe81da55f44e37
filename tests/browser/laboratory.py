"""JupyterLab and Notebook in a real browser: one server, one page per notebook, for tests."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import nbformat
from playwright.sync_api import BrowserContext, Locator, Page, expect

LIMIT = 60_000  # milliseconds that anything may take before a test fails
_OWN_ERROR = "reading 'schema'"  # Notebook 7.6 looks for settings that only JupyterLab has
_KERNEL = "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel"


@contextmanager
def serving(directory: Path, *, theme: str = "JupyterLab Light") -> Iterator[str]:
    """Serve a directory's notebooks to this machine alone; give the address, end the server afterwards."""
    port = _free_port()
    settings = directory / ".jupyter"
    settings.mkdir()
    _write_settings(settings / "lab", theme)
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        f"--port={port}",
        "--ip=127.0.0.1",
    ]
    command += ["--IdentityProvider.token=", "--LabApp.news_url=None", "--ServerApp.disable_check_xsrf=True"]
    command += [f"--{app}.expose_app_in_browser=True" for app in ("LabApp", "JupyterNotebookApp")]
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(settings),
        "JUPYTER_RUNTIME_DIR": str(settings / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(settings / "lab"),
        "JUPYTERLAB_WORKSPACES_DIR": str(settings / "workspaces"),
        "IPYTHONDIR": str(settings / "ipython"),
    }
    with (settings / "log").open("w") as log:
        server = subprocess.Popen(command, cwd=directory, env=environment, stdout=log, stderr=log)
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_until_answered(f"{address}/api", server, settings / "log")
            yield address
        finally:
            server.terminate()
            server.wait(20)


def write_notebook(path: Path, cells: Sequence[str]) -> None:
    """Write a notebook with these cells, none of them run."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, path)


def find_browser() -> str:
    """Return the browser's path; a machine without one is told so, not passed over."""
    path = os.environ.get("NBSHM_TEST_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    assert path, (
        "there is no browser: install Debian's package chromium, or say where one is in NBSHM_TEST_BROWSER"
    )
    return path


class NotebookPage:
    """One notebook in one page, driven by the front end's own commands."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        context.set_default_timeout(LIMIT)
        self.page: Page = context.new_page()
        self.errors: list[str] = []
        self.page.on("pageerror", self._note)
        self.page.goto(url)
        self.page.wait_for_function(f"() => {_KERNEL}?.status === 'idle'")

    def run(self, number: int) -> None:
        """Run a cell by its place, to its end."""
        self.begin(number)
        self.wait(number)

    def begin(self, number: int) -> None:
        """Begin to run a cell."""
        self._notebook(f"content.activeCellIndex = {number}")
        self.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-cell') }")

    def wait(self, number: int) -> None:
        """Wait until a cell that was begun has run."""
        prompt = self.cell(number).locator(".jp-InputPrompt").first
        expect(prompt).to_have_text(re.compile(r"\[\d+\]:"), timeout=LIMIT)

    def cell(self, number: int) -> Locator:
        """Return a cell by its place."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number)

    def output(self, number: int) -> Locator:
        """Return what is below a cell."""
        return self.cell(number).locator(".jp-Cell-outputArea")

    def save(self) -> None:
        """Save the notebook and wait until it is on the disk."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")

    def close(self) -> None:
        """Close the page."""
        self.page.close()

    def _note(self, error: Exception) -> None:
        if _OWN_ERROR not in str(error):
            self.errors.append(str(error))

    def _notebook(self, expression: str) -> None:
        self.page.evaluate(f"() => {{ window.jupyterapp.shell.currentWidget.{expression} }}")


def widgets_of(path: Path) -> int:
    """Count the widget states that a notebook was saved with."""
    metadata = json.loads(path.read_text())["metadata"].get("widgets", {})
    return sum(len(state["state"]) for state in metadata.values())


def _write_settings(directory: Path, theme: str) -> None:
    """Have nothing asked and nothing shown beside the notebook."""
    folder = directory / "@jupyterlab" / "apputils-extension"
    folder.mkdir(parents=True)
    (folder / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
    (folder / "themes.jupyterlab-settings").write_text(json.dumps({"theme": theme}))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_until_answered(url: str, server: subprocess.Popen, log: Path) -> None:
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(url, timeout=1):  # noqa: S310  # this machine's own server
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)  # nothing to wait on: the server opens its port when it is ready
    raise AssertionError(log.read_text())
