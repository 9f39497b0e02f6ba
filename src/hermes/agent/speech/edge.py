"""Synthesize speech with Microsoft Edge's free voices over a WebSocket.

The service is not documented; what is spoken here is what the browser says. Two text frames go out, the form of the
sound and the text as SSML; back come text frames that tell how far it is and binary ones, each with a two-byte length
of its header, the header, and a piece of MP3. The browser shows itself by a token made of the time (rounded to five
minutes), so a clock that is wrong is set by the server's own ``Date`` and asked once more.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from xml.sax.saxutils import escape

import aiohttp
from yarl import URL

from hermes.agent.speech.http import MAX_BYTES, UNREACHED, OpenSession
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError
from hermes.core.i18n.failures import describe_failure
from hermes.core.messages import TextUnit
from hermes.core.text import split

ROOT = "https://speech.platform.bing.com"
PATH = "/consumer/speech/synthesize/readaloud/edge/v1"
VOICE = "en-US-AriaNeural"
CLIENT = "6A5AA1D4EAFF4E9FB37E23D68491D6F4"  # every Edge browser shows this one; it is no secret
CHROMIUM = "143.0.3650.75"
FORM = "audio-24khz-48kbitrate-mono-mp3"
MAX_TEXT_BYTES = 4000  # bytes in one request
_SINCE_1601 = 11_644_473_600
_ROUNDED_SECONDS = 300
_VOICE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,40}){1,3}")
_UNSPEAKABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


@dataclass(frozen=True, slots=True)
class Edge:
    voice: str
    root: str
    seconds: float
    open_session: OpenSession
    now: Callable[[], float] = time.time
    name = "Edge"

    async def speak(self, text: str) -> bytes:
        voice = self.voice or VOICE
        if not _VOICE.fullmatch(voice):
            raise ToolError(f"tts.voice {voice!r} is no voice of Edge; they are called like {VOICE}.")
        sound = bytearray()
        try:
            async with asyncio.timeout(self.seconds), self.open_session() as http:
                for part in split(_UNSPEAKABLE.sub(" ", text), MAX_TEXT_BYTES, TextUnit.BYTES):
                    sound += await self._part(http, part, voice)
        except TimeoutError:
            raise ToolError(f"Edge did not answer within {self.seconds:g} s. Try again later.") from None
        except UNREACHED as error:
            raise ToolError(f"Edge could not be reached ({describe_failure(error)}).") from None
        return bytes(sound)

    async def _part(self, http: aiohttp.ClientSession, text: str, voice: str) -> bytes:
        try:
            return await self._spoken(http, text, voice, self.now())
        except aiohttp.WSServerHandshakeError as error:
            theirs = _date(error)
            if error.status != 403 or theirs is None:
                raise ToolError(f"Edge refused (HTTP {error.status}). Another tts.provider may help.") from None
        return await self._spoken(http, text, voice, theirs)

    async def _spoken(self, http: aiohttp.ClientSession, text: str, voice: str, now: float) -> bytes:
        url = URL((self.root or ROOT).rstrip("/") + PATH).with_query(
            {
                "TrustedClientToken": CLIENT,
                "Sec-MS-GEC": token(now),
                "Sec-MS-GEC-Version": f"1-{CHROMIUM}",
                "ConnectionId": secrets.token_hex(16),
            }
        )
        async with http.ws_connect(url, headers=_headers(), max_msg_size=1 << 20) as socket:
            stamp = time.strftime("%a %b %d %Y %H:%M:%S GMT+0000 (Coordinated Universal Time)", time.gmtime(now))
            options = '{"sentenceBoundaryEnabled":"false","wordBoundaryEnabled":"false"}'
            body = f'{{"context":{{"synthesis":{{"audio":{{"metadataoptions":{options},"outputFormat":"{FORM}"}}}}}}}}'
            head = f"X-Timestamp:{stamp}\r\nContent-Type:application/json; charset=utf-8\r\nPath:speech.config"
            await socket.send_str(f"{head}\r\n\r\n{body}\r\n")
            await socket.send_str(_ssml(text, voice, stamp))
            return await _sound_of(socket)


def token(now: float) -> str:
    """Windows' count of 100 ns since 1601, rounded down to five minutes, with the browser's own token; SHA-256."""
    seconds = int(now) + _SINCE_1601
    ticks = (seconds - seconds % _ROUNDED_SECONDS) * 10_000_000
    return hashlib.sha256(f"{ticks}{CLIENT}".encode("ascii")).hexdigest().upper()


def _headers() -> dict[str, str]:
    major = CHROMIUM.partition(".")[0]
    return {
        "Pragma": "no-cache",
        "Cache-Control": "no-cache",
        "Origin": "chrome-extension://jdiccldimpdaibmpdkjnbmckianbfold",
        "Accept-Language": "en-US,en;q=0.9",
        "User-Agent": f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
        f"Chrome/{major}.0.0.0 Safari/537.36 Edg/{major}.0.0.0",
        "Cookie": f"muid={secrets.token_hex(16).upper()};",
    }


def _ssml(text: str, voice: str, stamp: str) -> str:
    language = "-".join(voice.split("-")[:2])
    body = (
        f"<speak version='1.0' xmlns='http://www.w3.org/2001/10/synthesis' xml:lang='{language}'>"
        f"<voice name='{voice}'><prosody pitch='+0Hz' rate='+0%' volume='+0%'>{escape(text)}</prosody></voice></speak>"
    )
    # The browser writes a Z behind a time that has its zone already.
    head = (
        f"X-RequestId:{secrets.token_hex(16)}\r\nContent-Type:application/ssml+xml\r\nX-Timestamp:{stamp}Z\r\nPath:ssml"
    )
    return f"{head}\r\n\r\n{body}"


async def _sound_of(socket: aiohttp.ClientWebSocketResponse) -> bytes:
    sound = bytearray()
    async for frame in socket:
        if frame.type is aiohttp.WSMsgType.TEXT:
            if "Path:turn.end" in frame.data.partition("\r\n\r\n")[0]:
                break
        elif frame.type is aiohttp.WSMsgType.BINARY:
            length = int.from_bytes(frame.data[:2], "big")
            header = frame.data[2 : 2 + length]
            sound += frame.data[2 + length :] if b"Path:audio" in header else b""
            if len(sound) > MAX_BYTES:
                raise ToolError("Edge sent far more than an answer.")
    if not sound:
        raise ToolError("Edge said nothing. Check tts.voice: the voice must know the language of the text.")
    return bytes(sound)


def _date(error: aiohttp.WSServerHandshakeError) -> float | None:
    date = error.headers.get("Date", "") if error.headers else ""
    try:
        return parsedate_to_datetime(date).timestamp()
    except ValueError:
        return None
