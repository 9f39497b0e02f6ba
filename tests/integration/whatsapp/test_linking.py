"""`hermes whatsapp`: a code on the screen, a phone, a session in its place, and what is written then."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hermes.cli.main import main
from hermes.cli.wizard import platform
from hermes.config import AccountConfig, load
from hermes.core.errors import ConflictError, CredentialsError, UnreachableError
from hermes.core.manifest import AdapterParts, SignedIn
from hermes.platforms.whatsapp import MANIFEST, linking, session_files
from hermes.platforms.whatsapp.config import Places
from hermes.platforms.whatsapp.linking import Pace, sign_in
from hermes.platforms.whatsapp.process import SessionLock
from hermes.store.home import make_home
from tests.e2e.panes import HAS_TMUX, Pane
from tests.e2e.terminal import patched_environ
from tests.fakes.whatsapp import ME, FakeWhatsApp
from tests.fakes.whatsapp_account import bridges, free_port
from tests.integration.conftest import Start
from tests.unit.platforms.weixin.test_login import Screen

NUMBER = ME.partition("@")[0]
QUICK = Pace(link_seconds=60.0, reach_seconds=20.0, look_seconds=0.1, settle_seconds=0.1)

Ran = tuple[int, str]
Typed = Callable[..., Coroutine[Any, Any, Ran]]


class Phone(FakeWhatsApp):
    """Scans the first code it is shown, unless it is put away."""

    is_at_hand = True
    before_scan: Callable[[], None] = staticmethod(lambda: None)

    def _show_qr(self, line: Any) -> None:
        super()._show_qr(line)
        self.before_scan()
        if self.is_at_hand:
            asyncio.get_running_loop().call_later(0.1, self.scan)


@pytest_asyncio.fixture
async def phone() -> AsyncIterator[Phone]:
    bridges()  # skips where there can be none
    async with Phone(port=free_port(), is_linked=False) as fake:
        fake.devices.clear()
        yield fake


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / "whatsapp"


@pytest.fixture
def environ(phone: Phone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Of a command: a bridge that speaks to this phone, and no patience."""
    monkeypatch.setattr(linking, "Pace", lambda: QUICK)
    home = {"HERMES_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    return {**home, **phone.bridge_environ, "WHATSAPP_BRIDGE_FOLDER": str(bridges())}


async def linked(phone: Phone, folder: Path, screen: Screen, pace: Pace = QUICK, **values: str) -> SignedIn:
    parts = AdapterParts("main", {"bridge_folder": str(bridges()), **values}, None, lambda: None, {}, folder=folder)
    with patched_environ({"PATH": os.environ["PATH"], **phone.bridge_environ}):
        return await sign_in(parts, screen, pace)


def set_aside(folder: Path) -> list[Path]:
    return list(folder.glob("session.old-*"))


async def test_a_code_is_scanned_and_the_session_is_in_its_place(phone: Phone, folder: Path) -> None:
    screen = Screen()
    signed = await linked(phone, folder, screen)
    assert screen.codes == phone.qr_codes[:1]
    assert "Linked devices" in " ".join(screen.said)
    assert (signed.owner, signed.values["enabled"]) == (NUMBER, "true")
    assert signed.values["linked_at"]
    assert (folder / "session" / "creds.json").is_file()
    assert (folder / "session").stat().st_mode & 0o077 == 0
    assert not (folder / "linking").exists()
    await phone.wait_for(lambda: phone.open_connections == 0)


async def test_a_code_can_be_typed_on_the_phone_in_place_of_being_scanned(phone: Phone, folder: Path) -> None:
    phone.is_at_hand = False
    screen = Screen()
    linking_now = asyncio.create_task(linked(phone, folder, screen, pair_with="+49 1555 0000001"))
    await phone.wait_for(lambda: NUMBER in phone.pairing_codes, 50)
    phone.pairing_codes.clear()
    phone.close_with(408)  # nobody typed it in time: the next connection has a code of its own
    await phone.wait_for(lambda: NUMBER in phone.pairing_codes, 50)
    phone.scan()
    assert (await linking_now).owner == NUMBER
    assert "ABCD-EFGH" in " ".join(screen.said)
    assert screen.codes == []


@pytest.mark.one_python
async def test_a_link_that_comes_to_nothing_changes_nothing(phone: Phone, folder: Path) -> None:
    phone.is_at_hand = False
    phone.link_session(folder / "session")
    before = (folder / "session" / "creds.json").read_bytes()
    with pytest.raises(CredentialsError, match="Nobody scanned the code in time"):
        await linked(phone, folder, Screen(), Pace(link_seconds=1.0, look_seconds=0.1))
    assert (folder / "session" / "creds.json").read_bytes() == before
    assert set_aside(folder) == []


async def test_a_link_whose_keys_the_disk_does_not_take_is_none(phone: Phone, folder: Path) -> None:
    phone.before_scan = (folder / "linking" / "session" / "creds.json.new").mkdir
    with pytest.raises(UnreachableError, match="Is the disk full"):
        await linked(phone, folder, Screen())
    assert not (folder / "session").exists()


@pytest.mark.one_python
async def test_without_a_network_it_says_so(phone: Phone, folder: Path) -> None:
    await phone.stop()
    with pytest.raises(UnreachableError, match="WhatsApp cannot be reached"):
        # Long enough for a busy machine to make its first try: before that nobody knows why there is no code.
        await linked(phone, folder, Screen(), replace(QUICK, reach_seconds=5.0))


def test_a_link_counts_until_its_keys_are_gone_and_again_from_the_next_one_on(tmp_path: Path) -> None:
    parts = AdapterParts("work", {}, None, lambda: None, {}, folder=tmp_path)
    places = Places.of(parts)
    assert MANIFEST.lapsed is not None
    assert "no longer linked" in MANIFEST.lapsed(parts)
    places.session.mkdir(parents=True)
    (places.session / "creds.json").write_text("{}")
    assert MANIFEST.lapsed(parts) == ""
    places.session.rename(places.root / "session.old-1")
    assert "no longer linked" in MANIFEST.lapsed(parts)
    places.linking.mkdir()
    session_files.mark_linked(places)
    assert MANIFEST.lapsed(parts) == "", "the gateway puts it in place when it starts its bridge"


async def test_two_links_at_once_are_refused(phone: Phone, folder: Path) -> None:
    other = await SessionLock.take(folder / "linking.lock")
    assert other is not None
    try:
        with pytest.raises(ConflictError, match="another terminal"):
            await linked(phone, folder, Screen())
    finally:
        other.release()


def test_a_new_link_takes_the_place_of_the_session_even_if_it_is_killed_half_way(tmp_path: Path) -> None:
    places = Places(tmp_path, tmp_path / "bridge")
    for session, name in ((places.session, "old"), (places.linking / "session", "new")):
        session.mkdir(parents=True)
        (session / "creds.json").write_text(name)
    assert not session_files.adopt(places), "it is not whole yet"
    session_files.mark_linked(places)
    places.session.rename(tmp_path / "session.old-1")  # killed here
    assert session_files.adopt(places)
    assert (places.session / "creds.json").read_text() == "new"
    assert (tmp_path / "session.old-1" / "creds.json").read_text() == "old"
    assert not places.linking.exists()
    assert not session_files.adopt(places)


# The command


@pytest.fixture
def typed(environ: dict[str, str]) -> Typed:
    """``await typed("whatsapp")``: the exit code and all that was printed."""

    async def run(*words: str) -> Ran:
        out = io.StringIO()

        def act() -> int:
            with redirect_stdout(out), redirect_stderr(out):
                return main(list(words))

        with patched_environ(environ):
            return await asyncio.to_thread(act), out.getvalue()

    return run


def account(home: Path) -> AccountConfig:
    found = load(home, {}, home, platform.offered()).config.account("whatsapp")
    assert found is not None
    return found


async def test_the_command_links_enables_and_lets_the_numbers_in(typed: Typed, tmp_path: Path) -> None:
    code, told = await typed("whatsapp", "--mode", "bot", "--allow", "+1 555 123 4567")
    assert code == 0, told
    assert "✓ The bridge is installed" in told
    assert "▄▄▄▄▄" in told, "the code itself is drawn"
    assert f"✓ Linked as +{NUMBER}" in told
    found = account(tmp_path / "home")
    assert found.is_ready
    assert found.values["mode"] == "bot"
    assert found.access.allowed_users == {NUMBER, "15551234567"}


async def test_a_number_of_ones_own_that_was_mistyped_lets_nobody_in(typed: Typed, tmp_path: Path) -> None:
    code, told = await typed("whatsapp", "--mode", "self-chat", "--allow", "15551234567")
    assert (code, "! That is not 15551234567." in told) == (0, True), told
    assert account(tmp_path / "home").access.allowed_users == {NUMBER}


async def test_what_is_no_number_is_refused_before_anything_is_done(typed: Typed, phone: Phone, tmp_path: Path) -> None:
    code, told = await typed("whatsapp", "--allow", "Ana")
    assert (code, "'Ana' is no phone number" in told, phone.hellos) == (1, True, 0), told
    assert list((tmp_path / "home").glob("*")) == []


@pytest.mark.skipif(not HAS_TMUX, reason="tmux is not installed: apt-get install tmux")
async def test_whoever_leaves_after_the_link_is_not_told_that_nothing_was_written(
    environ: dict[str, str], tmp_path: Path
) -> None:
    with Pane(tmp_path, environ) as pane:
        pane.types(f"{sys.executable} -m hermes whatsapp; echo left with $?")
        await pane.shows("Whose number")
        pane.types("1")
        await pane.shows("Your phone number")
        pane.presses("Enter")
        await pane.shows("Start the gateway now?")
        pane.presses("C-c")
        assert "Setup ended. Set up: WhatsApp. Nothing else was written." in await pane.shows("left with 130")
    assert account(tmp_path / "home").is_ready


@pytest.mark.skipif(not HAS_TMUX, reason="tmux is not installed: apt-get install tmux")
@pytest.mark.parametrize("is_ended", [True, False])
async def test_a_link_that_the_phone_has_ended_is_not_called_linked(
    tmp_path: Path, folder: Path, is_ended: bool
) -> None:
    make_home(folder.parent)
    (folder.parent / "config.yaml").write_text("platforms: {whatsapp: {linked_at: '2026-05-01', enabled: true}}\n")
    session = folder / ("session.old-2026-05-02" if is_ended else "session")  # the bridge puts it aside
    session.mkdir(parents=True)
    (session / "creds.json").write_text("{}")
    with Pane(tmp_path, {"HERMES_HOME": str(folder.parent), "PATH": os.environ["PATH"]}) as pane:
        pane.types(f"{sys.executable} -m hermes whatsapp; echo left with $?")
        told = await pane.shows("Whose number" if is_ended else "Link it again?")
        assert ("This device is no longer linked to WhatsApp" in told) == is_ended
        assert ("It is linked already." in told) != is_ended
        pane.presses("C-c")
        await pane.shows("left with 130")


async def test_installing_alone_links_nothing(typed: Typed, phone: Phone, tmp_path: Path) -> None:
    code, told = await typed("whatsapp", "install")
    assert (code, phone.hellos) == (0, 0), told
    assert "✓ The bridge is installed" in told
    assert not (tmp_path / "home" / "config.yaml").exists()


@pytest.mark.one_python
async def test_a_running_gateway_goes_on_with_the_new_link_and_the_old_one_is_kept(
    start: Start, phone: Phone, folder: Path
) -> None:
    """The gateway keeps the session while the new link comes to be, and takes it over by itself."""
    make_home(folder.parent)
    phone.link_session(folder / "session")
    phone.devices.add("device-0")
    own: dict[str, Any] = {"user": ME, "key": {"fromMe": True}}
    wanted = {"WHATSAPP_ENABLED": "true", "WHATSAPP_BRIDGE_FOLDER": str(bridges()), "WHATSAPP_ALLOWED_USERS": NUMBER}
    with patched_environ({**os.environ, **phone.bridge_environ}):
        async with start(**wanted):
            phone.user_says("/status", **own)
            await phone.wait_for(lambda: len(phone.sent) >= 1, 50)
            assert phone.sent[0].text.startswith("⚕ *Hermes Agent*\n")
            signed = await linked(phone, folder, Screen())
            assert set_aside(folder) == [], "the gateway still uses it"
            stamp = signed.values["linked_at"]
            (folder.parent / "config.yaml").write_text(f"platforms: {{whatsapp: {{linked_at: '{stamp}'}}}}\n")
            await phone.wait_for(lambda: any(line.device == "device-1" for line in phone._lines), 50)
            phone.user_says("/status", **own)
            await phone.wait_for(lambda: len(phone.sent) >= 2, 50)
    assert len(set_aside(folder)) == 1
