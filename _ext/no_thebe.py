"""Take Thebe out of the book: it would load its scripts from another host.

jupyter-book 1.x always loads the extension, and its two copies of one
declaration are an error in the console of every page.
"""

from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

_THEBE = "sphinx_thebe"
_STYLE = "sphinx-thebe.css"


def remove(app: Sphinx, config: Config) -> None:
    """Disconnect what Thebe listens to, and its style sheet."""
    listeners = [item for items in app.events.listeners.values() for item in items]
    for listener in listeners:
        if listener.handler.__module__ == _THEBE:
            app.disconnect(listener.id)
    files = app.registry.css_files
    files[:] = [file for file in files if file[0] != _STYLE]


def setup(app: Sphinx) -> dict[str, Any]:
    """Remove it when every extension is loaded."""
    app.connect("config-inited", remove)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
