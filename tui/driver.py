"""The terminal as Textual has it, with two things mended: a paste is one text, whatever is in it, and a program that is
told to end by a signal leaves the terminal as it was."""

import asyncio
import os
import signal
import termios
from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Callable, Iterable
from functools import partial

from textual._xterm_parser import XTermParser
from textual.drivers import linux_driver
from textual.events import Paste
from textual.message import Message

START, END = "\x1b[200~", "\x1b[201~"  # around a paste
ESCAPE, STAND_IN = "\x1b", "\ufffe"  # the second is no character and never in a text
ENDINGS = (signal.SIGTERM, signal.SIGHUP)


class PasteParser(XTermParser):
    """Textual's parser takes an escape character within a paste, and what follows it, for keys: a paste could quit the
    program or send half of itself. Here another character stands in for it on the way through that parser."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._pasting = False
        self._before = ""  # the last characters outside of a paste, with which one may begin
        self._kept = ""  # the last characters of a paste, with which its end may begin

    def feed(self, data: str) -> Iterable[Message]:
        """The events in `data`; no data is the end of all input."""
        given = self._through(data) if data else ""
        if data and not given:
            return
        for event in super().feed(given):
            if isinstance(event, Paste):
                event.text = event.text.replace(STAND_IN, ESCAPE)
            yield event

    def _through(self, data: str) -> str:
        """`data` without what is kept for the next time."""
        given = ""
        while data:
            if self._pasting:
                body, end, data = (self._kept + data).partition(END)
                self._kept = "" if end else _beginning_of(END, body)
                body = body.removesuffix(self._kept)
                given += body.replace(ESCAPE, STAND_IN) + end
                self._pasting = not end
            else:
                known = self._before + data
                body, start, data = known.partition(START)
                given += (body + start)[len(self._before) :]
                self._before = "" if start else _beginning_of(START, body)
                self._pasting = bool(start)
        return given


def _beginning_of(sign: str, text: str) -> str:
    """The end of `text` with which `sign` may begin."""
    return next((sign[:count] for count in range(len(sign) - 1, 0, -1) if text.endswith(sign[:count])), "")


class Terminal(linux_driver.LinuxDriver):
    """The driver on Linux and macOS."""

    def start_application_mode(self) -> None:
        super().start_application_mode()  # type: ignore[no-untyped-call]
        loop = asyncio.get_running_loop()

        def leave(ending: int, frame: object) -> None:
            if ending == signal.SIGHUP and self._is_gone():  # nothing can be written there, and so nothing restored
                signal.signal(ending, signal.SIG_DFL)
                os.kill(os.getpid(), ending)
            loop.call_soon_threadsafe(partial(self._app.exit, return_code=128 + ending))

        for ending in ENDINGS:
            signal.signal(ending, leave)

    def _is_gone(self) -> bool:
        """Whether the terminal is there no more."""
        try:
            termios.tcgetattr(self.fileno)
        except termios.error:
            return True
        return False

    def run_input_thread(self) -> None:
        """Read what is typed; bytes that are no UTF-8 are characters that are not known, and end nothing."""
        # By these names Textual's method makes its parser and its decoder.
        vars(linux_driver).update(XTermParser=PasteParser, getincrementaldecoder=_forgiving)
        super().run_input_thread()


def _forgiving(encoding: str) -> Callable[[], IncrementalDecoder]:
    return partial(getincrementaldecoder(encoding), errors="replace")
