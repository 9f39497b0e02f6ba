"""Run the built-in model: `python embedded_child.py ENGINE_FOLDER WEIGHTS`.

It runs beside the gateway so that the 200 MB and the CPU time are its own, and it ends with whoever started
it: when its standard input closes it is gone at once. Standard library only, apart from the engine, so that
it starts without the rest of Hermes.

One JSON object per line.
In:   ``{"ask": 1, "messages": [{"role": ..., "content": ...}], "soft_tokens": 100, "max_tokens": 160}``,
      ``{"stop": 1}``
Out:  ``{"ready": true}`` once; ``{"ask": 1, "text": "..."}`` per token; then one of
      ``{"ask": 1, "done": "stop", "prompt_tokens": 40, "completion_tokens": 12}`` and ``{"ask": 1, "error": "..."}``;
      ``{"failed": "..."}`` when the engine or the weights cannot be loaded.
"""

from __future__ import annotations

import json
import os
import queue
import secrets
import sys
import threading
from typing import IO, Any

CONTEXT_TOKENS = 2048
SENTENCE_ENDS = (".", "!", "?", "\n")
# Greedy, so that the small model stays with what it knows best; DRY keeps it from going round in circles.
SAMPLING = {"temperature": 0.0, "dry_multiplier": 0.8}


class Voice:
    """Writes our lines to what was standard output; whatever the engine prints goes to standard error."""

    def __init__(self) -> None:
        self._lines = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
        os.dup2(2, 1)

    def say(self, **line: Any) -> None:
        self._lines.write(json.dumps(line) + "\n")


class TokenStream:
    """Passes tokens on until the model ends, the parent says stop, or enough whole sentences are out."""

    def __init__(self, voice: Voice, request: dict[str, Any], stopped: set[int]) -> None:
        self._voice = voice
        self._ask: int = request["ask"]
        self._soft_tokens: int = request["soft_tokens"]
        self._stopped = stopped
        self._tokens = 0
        self._finish = "stop"
        self._prompt_tokens = 0
        self._error = ""

    def take(self, chunk: dict[str, Any]) -> bool:
        """The engine calls this for every token; True ends the generation."""
        if "error" in chunk:
            self._error = str(chunk["error"].get("message", chunk["error"]))
            return True
        self._prompt_tokens = chunk.get("usage", {}).get("prompt_tokens", self._prompt_tokens)
        for choice in chunk.get("choices", ()):
            self._finish = choice.get("finish_reason") or self._finish
            text = choice["delta"].get("content")
            if text:
                self._tokens += 1
                self._voice.say(ask=self._ask, text=text)
                if self._tokens >= self._soft_tokens and text.rstrip(" ").endswith(SENTENCE_ENDS):
                    return True
        return self._ask in self._stopped

    def close(self) -> None:
        if self._error:
            self._voice.say(ask=self._ask, error=self._error)
        else:
            self._voice.say(
                ask=self._ask,
                done=self._finish,
                prompt_tokens=self._prompt_tokens,
                completion_tokens=self._tokens,
            )


def load(engine_folder: str, weights: str) -> Any:
    sys.path.insert(0, engine_folder)
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    # With as many threads as cores generation collapses on a busy host; one thread gives 45 tokens/s anywhere.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.n_gpu_layers = 0
    params.warmup = False
    params.cache_ram_mib = 0
    params.verbosity = -1
    # The engine also listens on a loopback port of its own choice, and that cannot be switched off: a key
    # nobody knows closes it to the other users of the machine.
    params.api_keys = [secrets.token_urlsafe(32)]
    params.ui = False
    params.n_threads_http = 1
    return xllamacpp.Server(params)


def listen(lines: IO[str], asks: queue.Queue[dict[str, Any]], stopped: set[int]) -> None:
    """Sort what the parent says; when it says no more, it is gone, and so are we, in mid-word if need be."""
    for line in lines:
        request = json.loads(line)
        if "stop" in request:
            stopped.add(request["stop"])
        else:
            asks.put(request)
    os._exit(0)


def answer_forever(engine: Any, voice: Voice, asks: queue.Queue[dict[str, Any]], stopped: set[int]) -> None:
    while True:
        request = asks.get()
        answer = TokenStream(voice, request, stopped)
        if request["ask"] not in stopped:
            engine.handle_chat_completions(
                {
                    "messages": request["messages"],
                    "max_tokens": request["max_tokens"],
                    "stream": True,
                    "stream_options": {"include_usage": True},
                    **SAMPLING,
                },
                answer.take,
            )
        answer.close()
        stopped.discard(request["ask"])


def main() -> None:
    os.nice(10)
    voice = Voice()
    asks: queue.Queue[dict[str, Any]] = queue.Queue()
    stopped: set[int] = set()
    threading.Thread(target=listen, args=(sys.stdin, asks, stopped), daemon=True).start()
    try:
        engine = load(*sys.argv[1:3])
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        voice.say(failed=str(error) or type(error).__name__)
        sys.exit(1)
    voice.say(ready=True)
    answer_forever(engine, voice, asks, stopped)


if __name__ == "__main__":
    main()
