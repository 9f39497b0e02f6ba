"""``python -m hermes`` is the same as ``hermes``."""

from __future__ import annotations

import sys

from hermes.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
