"""The doctor: what is wrong with a loader, and what happens in the loop.

``lint`` looks at the loader, ``watch`` at your own loop while it runs, and
``diagnose`` runs a loop and says where its time goes.
"""

from helpers.advise.diagnose import diagnose
from helpers.advise.lint.linter import lint
from helpers.advise.lint.watching import watch

__all__ = ["diagnose", "lint", "watch"]
