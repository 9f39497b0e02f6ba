"""Declare WhatsApp as a linked device: our Node bridge speaks WhatsApp Web."""

from __future__ import annotations

from hermes.core.manifest import AdapterParts, Manifest, Setting, SettingKind, SignedIn, SignInScreen
from hermes.core.ports import Adapter
from hermes.platforms.whatsapp.config import DEFAULT_INSTALL_SECONDS, DEFAULT_PREFIX, LINK, Mode, person_id


def _build(parts: AdapterParts) -> Adapter:
    from hermes.platforms.whatsapp.adapter import WhatsAppAdapter
    from hermes.platforms.whatsapp.config import WhatsAppConfig

    return WhatsAppAdapter(WhatsAppConfig.of(parts), parts)


async def _sign_in(parts: AdapterParts, screen: SignInScreen) -> SignedIn:
    from hermes.platforms.whatsapp.linking import sign_in

    return await sign_in(parts, screen)


async def _prepare(parts: AdapterParts, screen: SignInScreen) -> None:
    from hermes.platforms.whatsapp.config import WhatsAppConfig
    from hermes.platforms.whatsapp.linking import install

    await install(WhatsAppConfig.of(parts), screen)


def _lapsed(parts: AdapterParts) -> str:
    from hermes.platforms.whatsapp.config import Places
    from hermes.platforms.whatsapp.session_files import has_link

    if has_link(Places.of(parts)):
        return ""
    return "This device is no longer linked to WhatsApp: the phone ended it, or its keys are gone. Link it again:"


MANIFEST = Manifest(
    id="whatsapp",
    title="WhatsApp",
    settings=(
        Setting(
            "enabled",
            "WHATSAPP_ENABLED",
            SettingKind.FLAG,
            default=False,
            help=f"true switches it on; `{LINK}` writes it when the phone is linked.",
        ),
        Setting(
            "mode",
            "WHATSAPP_MODE",
            default=Mode.SELF_CHAT.value,
            help="self-chat: you write in the chat with yourself. bot: people write to a separate number.",
            label="Mode, self-chat or bot",
            asked=True,
        ),
        Setting(
            "reply_prefix",
            "WHATSAPP_REPLY_PREFIX",
            default=DEFAULT_PREFIX,
            help="Text before every message of the bot; \\n is a new line, none is no text.",
        ),
        Setting(
            "free_response_chats",
            "WHATSAPP_FREE_RESPONSE_CHATS",
            SettingKind.LIST,
            default=(),
            help="Groups (…@g.us) in which the bot answers every message.",
        ),
        Setting(
            "mention_patterns",
            "WHATSAPP_MENTION_PATTERNS",
            SettingKind.LIST,
            default=(),
            help="Regular expressions; a group message that matches one counts as a mention.",
        ),
        Setting(
            "npm_install_timeout",
            "WHATSAPP_NPM_INSTALL_TIMEOUT",
            SettingKind.NUMBER,
            default=DEFAULT_INSTALL_SECONDS,
            help="Seconds that npm may take to install the bridge.",
        ),
        Setting(
            "bridge_folder",
            "WHATSAPP_BRIDGE_FOLDER",
            default="",
            help="Folder of the bridge, in place of whatsapp/bridge in the home.",
        ),
        Setting(
            "linked_at",
            "WHATSAPP_LINKED_AT",
            default="",
            help=f"When the phone was linked; written by `{LINK}`, so that a running gateway reconnects.",
        ),
    ),
    build=_build,
    extra="whatsapp",
    ids="A phone number with its country code, digits alone, such as 15551234567.",
    sign_in=_sign_in,
    prepare=_prepare,
    lapsed=_lapsed,
    tidy_id=person_id,
)
