"""Describe exceptions in words for people; the only place that does.

An exception's own text may repeat an address with a token in it, and its class is a word of the program, so neither is
shown: a person reads what is said here, and the log has the rest.
"""

from __future__ import annotations

import os

_BY_CLASS = {
    # By name, since core knows no library: the class of an exception or any of its bases.
    "ClientConnectorDNSError": "its host name is unknown",
    "gaierror": "its host name is unknown",
    "ClientConnectorCertificateError": "its certificate is not trusted",
    "ClientConnectorSSLError": "its certificate is not trusted",
    "SSLCertVerificationError": "its certificate is not trusted",
    "ServerFingerprintMismatch": "its certificate is not trusted",
    "SSLError": "the encrypted connection failed",
    "ProxyError": "the proxy did not let us through",
    "ProxyConnectionError": "the proxy did not let us through",
    "ProxyTimeoutError": "the proxy did not answer in time",
    "ClientProxyConnectionError": "the proxy did not let us through",
    "ClientHttpProxyError": "the proxy did not let us through",
    "NonHttpUrlClientError": "its address is not an http address",
    "InvalidURL": "its address is not valid",
    "TooManyRedirects": "it redirects without end",
    "WSServerHandshakeError": "it refused the connection",
    "ConnectionTimeoutError": "no connection in time",
    "TimeoutError": "no answer in time",
    "TimeoutExpired": "no answer in time",
    "ServerDisconnectedError": "the connection was closed",
    "ClientPayloadError": "the connection was closed",
    "IncompleteReadError": "the connection was closed",
    "ConnectionClosed": "the connection was closed",
    "ConnectionResetError": "the connection was closed",
    "ConnectionAbortedError": "the connection was closed",
    "BrokenPipeError": "the connection was closed",
    "EOFError": "it ended too early",
    "ContentTypeError": "its answer cannot be read",
    "ClientResponseError": "its answer cannot be read",
    "UnicodeError": "it is not valid text",
    "BadZipFile": "it is damaged",
    "TarError": "it is damaged",
    "ImportError": "a package is missing",
    "SystemExit": "it ended its own process",
    "MemoryError": "there was not enough memory",
    "NotImplementedError": "it is of a kind that cannot be read",
}
_BY_BASE = {
    "ClientError": "the connection failed",
    "ValueError": "its answer cannot be read",
    "LookupError": "its answer cannot be read",
    "TypeError": "its answer cannot be read",
}
UNEXPECTED = "an unexpected error; the log has the details"


def describe_failure(error: BaseException) -> str:
    """Say what a call to the outside came to, as a clause without a full stop. It repeats no text of the error."""
    names = [kind.__name__ for kind in type(error).__mro__]
    if reason := next((_BY_CLASS[name] for name in names if name in _BY_CLASS), ""):
        return reason
    if isinstance(error, OSError) and error.errno is not None:
        reason = os.strerror(error.errno)
        return reason[:1].lower() + reason[1:]
    return next((_BY_BASE[name] for name in names if name in _BY_BASE), UNEXPECTED)


def sentence(text: str) -> str:
    """Return the text with one full stop at its end, whatever it ends with."""
    kept = text.rstrip()
    return kept if kept.endswith(("!", "?", "…", "。", "！", "？")) else f"{kept.rstrip('.')}."
