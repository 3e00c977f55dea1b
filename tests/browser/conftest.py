"""A browser and the built book, served on this machine only.

Both may be missing, and then these tests are skipped with the reason, unless
``BOOK_BROWSER=required`` says that they must run.
"""

import importlib.util
import os
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tools import notebooks

BUILT = notebooks.ROOT / "_build/html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# For a closed network, and for an administrator, who gets no sandbox.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def missing(what: str) -> None:
    """Skip, or fail where the browser tests are required."""
    if os.environ.get("BOOK_BROWSER") == "required":
        pytest.fail(what)
    pytest.skip(what)


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files without a line per request."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address():
    """Address of the built book."""
    if not (BUILT / "index.html").is_file():
        missing("the book is not built: make book")
    handler = partial(QuietHandler, directory=str(BUILT))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser(address):
    """A headless Chromium or Chrome of this machine; started for a built book only.

    It ends with the module: its driver is a child process, and other tests
    look for children that were left behind.
    """
    if importlib.util.find_spec("playwright") is None:
        missing("playwright is not installed")
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        missing(f"no browser here (looked for {', '.join(BROWSERS)})")
    with sync_playwright() as engine:
        running = engine.chromium.launch(executable_path=path, args=FLAGS)
        yield running
        running.close()
