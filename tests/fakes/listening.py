"""Ears for tests, real ones: `python listening.py voice.wav` prints the words that pocketsphinx hears.

It knows one grammar, and with that is exact. Its English model is inside its package; nothing is fetched.
"""

from __future__ import annotations

import io
import sys
import wave
from pathlib import Path

GRAMMAR = """#JSGF V1.0;
grammar orders;
public <order> = (go | turn | look) (forward | backward | left | right) [(one | two | ten) meters];
"""


def heard(wav: bytes) -> str:
    """The words in a WAV file of 16 kHz."""
    from pocketsphinx import Decoder

    decoder = Decoder(samprate=16000, lm=None, loglevel="FATAL")
    decoder.add_jsgf_string("orders", GRAMMAR)
    decoder.activate_search("orders")
    with wave.open(io.BytesIO(wav)) as file:
        frames = file.readframes(file.getnframes())
    decoder.start_utt()
    decoder.process_raw(frames, full_utt=True)
    decoder.end_utt()
    found = decoder.hyp()
    return str(found.hypstr) if found is not None else ""


if __name__ == "__main__":
    print(heard(Path(sys.argv[1]).read_bytes()))
