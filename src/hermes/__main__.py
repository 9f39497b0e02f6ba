"""``python -m hermes`` is the same as ``hermes``."""

from __future__ import annotations

import sys


def _as_typed(text: str) -> str:
    from hermes.cli.support.program_name import as_typed

    return as_typed(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["supervisor"]:
        # The process parent lives as long as the gateway: nothing of the CLI is loaded into it, but when it refuses.
        from hermes.hosting import parent

        sys.exit(parent.main(sys.argv[2:], _as_typed))
    if sys.argv[1:3] == ["gateway", "worker"]:
        from hermes.cli import worker

        sys.exit(worker.main(sys.argv[3:]))
    from hermes.cli.main import main

    sys.exit(main())
