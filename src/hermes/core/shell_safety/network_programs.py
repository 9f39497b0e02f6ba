"""Judge ``curl``, ``wget`` and ``ssh``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from hermes.core.shell_safety import reading, running
from hermes.core.shell_safety.classes import Danger
from hermes.core.shell_safety.places import names
from hermes.core.shell_safety.simple_command import SimpleCommand
from hermes.core.shell_safety.words import Word


class NetworkPrograms(SimpleCommand):
    """Rules for programs that reach other machines."""

    def _fetch(self, program: str, words: Sequence[Word], level: int) -> None:
        texts = [word.text for word in words]
        urls = [text for text in texts if re.match(r"[a-z]+://|[\w.-]+\.\w+/|localhost|127\.|\[?::1", text)]
        is_local = bool(urls) and all(
            re.match(r"(https?://)?(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?(/|\?|$)", url) for url in urls
        )
        sends = _CURL_SENDS if program == "curl" else _WGET_SENDS
        is_sending = any(re.match(sends, text) for text in texts)
        has_file = any(
            "@" in text or text.startswith(("-T", "--upload-file", "--post-file", "--body-file"))
            for text in texts
            if not re.match(r"https?://", text)
        )
        if is_sending and (not is_local or has_file):
            self._ask(Danger.SENDS)
        if any(re.match(_FETCH_ODD, text) or reading.shortens(text, _FETCH_ODD_LONG) for text in texts):
            self._ask(Danger.UNJUDGED)
        if any(text.startswith("file:") for text in texts):
            self._ask(Danger.SECRETS)
        skip: set[int] = set()
        for number, (option, value) in enumerate(pairwise(words)):
            if option.text in _FETCH_TAKES_TEXT and value.is_tame:
                skip.add(number + 1)
            if (
                (
                    option.text in ("-o", "--output", "-O", "--output-document", "-D", "--dump-header")
                    and program in ("curl", "wget")
                    and not (program == "curl" and option.text == "-O")
                )
                and value.is_tame
                and not value.globs
            ):
                skip.add(number + 1)
                if value.text != "-":
                    for path in self._judging.paths(value.text, self._folders):
                        self._judging.written(path, may_be_temporary=True)
        self._generic(program, [word for number, word in enumerate(words) if number not in skip], level)

    def _ssh(self, words: Sequence[Word]) -> None:
        """Judge ``ssh``: it reaches another machine, or this one as another login."""
        self._ask(Danger.REMOTE)
        rest = running.skip_options(words, _SSH_TAKES_VALUE)
        if rest is None or any(
            re.search(r"(?i)proxycommand|localcommand|knownhostscommand|include", word.text) for word in words
        ):
            self._ask(Danger.UNJUDGED)
            return
        if rest[1:]:
            self._text_of(rest[1:])


_FETCH_TAKES_TEXT = names(
    "-d -H --header --data --data-raw --json -A --user-agent -X -w --write-out -u -e --referer --post-data -b --cookie"
)
_CURL_SENDS = r"-[a-zA-Z#]*[dFTb]|--cookie(=|$)|--(data|form|upload-file|json|url-query|mail-|ftp-|quote|post)"
_WGET_SENDS = r"--(post|body|method|header=.*\bCookie)"
_FETCH_ODD = (
    r"-[a-zA-Z0-9#]*K|--config|--unix-socket|--abstract-unix-socket|--use-askpass|--execute|-e$|--libcurl|--trace|"
    r"--engine|--plugin|"
    r"--netrc-file|--cert|--key|--proxy|-x$|--preproxy|--socks|--resolve|--connect-to|--interface|--load-cookies|"
    r"-i$|--input-file|"
    r"--output-dir|-P|--directory-prefix|--warc|--save-cookies|--cookie-jar|-c$"
)
_FETCH_ODD_LONG = (
    "--config", "--upload-file", "--data-binary", "--form", "--execute", "--use-askpass", "--input-file", "--post-file",
    "--body-file", "--output-dir", "--directory-prefix", "--unix-socket", "--trace-ascii", "--dump-header",
    "--cookie-jar", "--stderr", "--etag-save", "--hsts", "--alt-svc", "--libcurl", "--append-output", "--output-file",
    "--hsts-file", "--rejected-log",
)  # fmt: skip
_SSH_TAKES_VALUE = names("-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w -B")
