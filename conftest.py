"""Tests and notebooks run in quick mode, unless the environment says otherwise."""

import os

os.environ.setdefault("BOOK_MODE", "quick")
