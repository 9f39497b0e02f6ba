"""What is written before its platform is known fits there all the same."""

from __future__ import annotations

import pytest

from hermes.core.messages import Capabilities
from hermes.core.text import length, split
from hermes.platforms.discord.wire import CAPABILITIES as DISCORD
from hermes.platforms.qq.adapter import QQAdapter
from hermes.platforms.slack.wire import CAPABILITIES as SLACK
from hermes.platforms.telegram.adapter import TelegramAdapter
from hermes.platforms.weixin.adapter import WeixinAdapter
from hermes.platforms.whatsapp.adapter import WhatsAppAdapter
from hermes.services.outbound.rows import UNKNOWN_PLATFORM

OURS = (TelegramAdapter.capabilities, DISCORD, SLACK, QQAdapter.capabilities, WeixinAdapter.capabilities)


@pytest.mark.parametrize("can", [*OURS, WhatsAppAdapter.capabilities])
@pytest.mark.parametrize("letter", ["a", "字", "🙂"])
def test_a_part_for_a_platform_that_is_not_up_yet_fits_each_of_them(can: Capabilities, letter: str) -> None:
    for part in split(letter * 5000, UNKNOWN_PLATFORM.text_limit, UNKNOWN_PLATFORM.text_unit):
        assert length(part, can.text_unit) <= can.text_limit
