"""Sign in: show a QR code, wait for the phone, return the token."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import field
from urllib.parse import urlsplit

from hermes.core.dataclasses import dataclass
from hermes.core.errors import CredentialsError, UnreachableError
from hermes.core.manifest import AdapterParts, SignedIn, SignInScreen
from hermes.core.messages import Json
from hermes.core.secret import Secret
from hermes.platforms.weixin.client import QrClient
from hermes.platforms.weixin.config import DEFAULT_BASE_URL, root

LOGIN_SECONDS = 480.0
STALE_SECONDS = 300.0
POLL_SECONDS = 35.0
PAUSE_SECONDS = 1.0
MAX_CODES = 3


@dataclass(frozen=True, slots=True)
class Pace:
    """Tests shorten it."""

    pause_seconds: float = PAUSE_SECONDS
    poll_seconds: float = POLL_SECONDS
    stale_seconds: float = STALE_SECONDS
    login_seconds: float = LOGIN_SECONDS


@dataclass(slots=True)
class _Code:
    """The code on the screen and what is known of it."""

    key: str
    link: str
    shown_at: float
    verify: str = ""
    root: str = ""
    is_scanned: bool = False


@dataclass(slots=True)
class Login:
    client: QrClient
    screen: SignInScreen
    known_token: str
    scheme: str
    clock: Callable[[], float]
    pace: Pace = field(default_factory=Pace)
    _codes: int = 0

    async def run(self) -> SignedIn:
        """Raises CredentialsError in words when it came to nothing, UnreachableError when Weixin is."""
        try:
            async with asyncio.timeout(self.pace.login_seconds):
                return await self._signed_in()
        except TimeoutError:
            raise CredentialsError("Nobody scanned the code in time. Run it again when the phone is at hand.") from None

    async def _signed_in(self) -> SignedIn:
        code = await self._fresh()
        while True:
            answer = await self._status(code)
            match answer.get("status"):
                case "confirmed":
                    token, bot_id = str(answer.get("bot_token") or ""), str(answer.get("ilink_bot_id") or "")
                    if not token or not bot_id:
                        raise CredentialsError("Weixin confirmed it and gave no token. Run it again.")
                    base = root(str(answer.get("baseurl") or DEFAULT_BASE_URL), "baseurl")
                    owner = str(answer.get("ilink_user_id") or "")
                    values = {"token": token, "account_id": bot_id, "base_url": base}
                    return SignedIn({**values, **({"user_id": owner} if owner else {})}, owner=owner)
                case "binded_redirect":
                    self.screen.say("This bot is bound here already; its sign-in stays as it is.")
                    return SignedIn({})
                case "expired":
                    code = await self._fresh("The code has expired.")
                case "verify_code_blocked":
                    code = await self._fresh("Too many wrong numbers.")
                case "need_verifycode":
                    wrong = "That number was wrong. " if code.verify else ""
                    code.verify = (await self.screen.ask(f"{wrong}The number that the phone shows: ")).strip()
                    if not code.verify:
                        raise CredentialsError(
                            "The phone shows a number that has to be typed here. Run it again in a terminal."
                        )
                    continue
                case "scaned":
                    self._scanned(code)
                case "scaned_but_redirect":
                    self._scanned(code)
                    host = str(answer.get("redirect_host") or "")
                    if host and not set(host) & set("/?#@\\ "):
                        code.root = f"{self.scheme}://{host}"
                case _ if self.clock() - code.shown_at > self.pace.stale_seconds:
                    code = await self._fresh("The code has expired.")
                case _:
                    pass  # "wait", or a word of a later day
            await asyncio.sleep(self.pace.pause_seconds)

    async def _fresh(self, why: str = "") -> _Code:
        if self._codes == MAX_CODES:
            raise CredentialsError(f"{why} That was the {MAX_CODES}rd code, so it ends here. Run it again.")
        self._codes += 1
        answer = await self.client.fetch([self.known_token] if self.known_token else [])
        key, link = str(answer.get("qrcode") or ""), str(answer.get("qrcode_img_content") or "")
        if not key or not link:
            raise UnreachableError("Weixin gave no code. Check WEIXIN_QR_URL and the proxy.")
        if why:
            self.screen.say(f"{why} Here is a new one:")
        self.screen.show_code(link)
        return _Code(key, link, self.clock())

    async def _status(self, code: _Code) -> Json:
        """A poll that ended without an answer says as much as "wait"."""
        try:
            return await self.client.status(code.root, code.key, code.verify, self.pace.poll_seconds)
        except UnreachableError:
            return {}

    def _scanned(self, code: _Code) -> None:
        code.verify = ""  # it was accepted
        if not code.is_scanned:
            code.is_scanned = True
            self.screen.say("Scanned. Confirm it on the phone.")


async def sign_in(parts: AdapterParts, screen: SignInScreen, pace: Pace | None = None) -> SignedIn:
    """Show codes until one is scanned and confirmed; what to write then."""
    fixed = root(parts.values.get("qr_url") or DEFAULT_BASE_URL, "WEIXIN_QR_URL")
    token = parts.values.get("token")
    known = token.reveal() if isinstance(token, Secret) else str(token or "")
    clock = asyncio.get_running_loop().time
    login = Login(QrClient(parts.http, fixed), screen, known, urlsplit(fixed).scheme, clock, pace or Pace())
    return await login.run()
