"""The bridge with the library's own socket: it goes out through the proxy that it is given, and no other way."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.fakes.proxy import FakeHttpProxy, FakeProxy, FakeSocksProxy
from tests.fakes.server import Changes
from tests.fakes.whatsapp_bridge import RunningBridge

pytestmark = pytest.mark.one_python

WHATSAPP = "web.whatsapp.com"


class Server:
    """Where the proxy leads instead: somebody who hears the beginning of a TLS handshake, and hangs up."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self._changes = Changes()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard.append(await reader.read(4096))
        writer.close()
        self._changes.tell()

    async def was_greeted(self, times: int) -> None:
        await self._changes.wait_for(lambda: len(self.heard) >= times, deadline=10)


class OtherPort:
    """A proxy that leads every connection to one port of this machine."""

    port = 0

    async def _open(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        assert isinstance(self, FakeProxy)
        self.asked.append(f"{host}:{port}")
        return await asyncio.open_connection("127.0.0.1", self.port)


class HttpProxy(OtherPort, FakeHttpProxy):
    pass


class SocksProxy(OtherPort, FakeSocksProxy):
    pass


@pytest.mark.parametrize("kind", [HttpProxy, SocksProxy])
async def test_the_socket_goes_through_the_proxy_and_failures_leave_nothing_open(
    program: Path, tmp_path: Path, kind: type[HttpProxy | SocksProxy]
) -> None:
    server = Server()
    listening = await asyncio.start_server(server.accept, "127.0.0.1", 0)
    async with kind(login="user:secret") as proxy, listening:
        proxy.port = listening.sockets[0].getsockname()[1]
        environ = {"HERMES_BRIDGE_PROXY": proxy.url, "HERMES_BRIDGE_BACKOFF_MS": "1,2"}
        async with RunningBridge(program, tmp_path, environ) as bridge:
            await server.was_greeted(5)
            files = bridge.open_files()
            await server.was_greeted(25)
            assert bridge.open_files() <= files + 4  # of connections under way
            assert (await bridge.becomes("disconnected"))["code"] in (408, 428, 500)
    assert set(proxy.asked) == {f"{WHATSAPP}:443"}
    assert all(heard.startswith(b"\x16\x03") and WHATSAPP.encode() in heard for heard in server.heard[:25])
    assert "secret" not in (await bridge.printed()).decode()


FETCH = """
import { agentFor, fetchThrough, proxyOf } from "./proxy.mjs";
const fetch = fetchThrough(agentFor(proxyOf(process.argv[1])));
const { ok, status, body } = await fetch("https://mmg.whatsapp.net/v/file.enc");
let size = 0;
for await (const chunk of body) size += chunk.length;
console.log(JSON.stringify({ ok, status, size }));
"""


@pytest.mark.parametrize("kind", [HttpProxy, SocksProxy])
async def test_files_are_fetched_through_the_proxy(
    program: Path, tmp_path: Path, kind: type[HttpProxy | SocksProxy]
) -> None:
    async def answer(_: web.BaseRequest) -> web.Response:
        return web.Response(body=bytes(300_000))

    runner = web.ServerRunner(web.Server(answer), shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certified("mmg.whatsapp.net", tmp_path)).start()
    async with kind() as proxy:
        proxy.port = runner.addresses[0][1]
        process = await asyncio.create_subprocess_exec(
            *("node", "--input-type=module", "-e", FETCH, proxy.url),
            cwd=program,
            env={"PATH": os.environ["PATH"], "NODE_EXTRA_CA_CERTS": str(tmp_path / "both.pem")},
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(10):
            printed, _ = await process.communicate()
    await runner.cleanup()
    assert json.loads(printed) == {"ok": True, "status": 200, "size": 300_000}
    assert proxy.asked == ["mmg.whatsapp.net:443"]


def certified(host: str, folder: Path) -> ssl.SSLContext:
    """A server for this name, whose certificate and key lie in ``both.pem``."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, SHA256())
    )
    own = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "both.pem").write_bytes(certificate.public_bytes(Encoding.PEM) + own)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "both.pem")
    return context
