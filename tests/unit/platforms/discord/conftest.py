from __future__ import annotations

import pytest

from tests.contract.adapters.conftest import Inbox


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()
