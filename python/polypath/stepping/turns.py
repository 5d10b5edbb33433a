"""Two threads of which one runs at a time: a call that its callees may suspend, from beneath Rust too."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Asked:
    """The call is suspended until its owner answers this."""

    question: Any


class Turns:
    """A call at a time on a thread of its own. Its owner waits until it returns or asks."""

    def __init__(self) -> None:
        self._mine, self._theirs = _thread.allocate_lock(), _thread.allocate_lock()
        self._mine.acquire()
        self._theirs.acquire()
        self._message: Any = None
        self._error: BaseException | None = None
        self._open = True
        self._thread = threading.Thread(target=self._work, name="polypath-run", daemon=True)
        self._thread.start()

    def call(self, work: Callable[[], Any]) -> Any:
        """What the work returns, or Asked. Raises what the work raises."""
        return self._hand_over(work)

    def answer(self, answer: Any) -> Any:
        """Goes on with the call that asked: what the work returns, or Asked."""
        return self._hand_over(answer)

    def ask(self, question: Any) -> Any:
        """On the thread: suspends the call, and returns its owner's answer."""
        self._message = Asked(question)
        self._mine.release()
        self._theirs.acquire()
        if not self._open:
            raise GeneratorExit
        return self._message

    def close(self) -> None:
        """Ends the thread: Python's end must not find it within Rust. A call that is suspended gets GeneratorExit."""
        if self._open:
            self._open = False
            self._theirs.release()
            if threading.current_thread() is not self._thread:
                self._thread.join()

    def wait(self) -> Any:
        """Waits for the call that Ctrl-C did not let its owner wait for."""
        self._mine.acquire()
        message, error = self._message, self._error
        self._message = self._error = None
        if error is not None:
            raise error
        return message

    def _hand_over(self, message: Any) -> Any:
        self._message = message
        self._theirs.release()
        return self.wait()

    def _work(self) -> None:
        while True:
            self._theirs.acquire()
            if not self._open:
                return
            try:
                self._message = self._message()
            except GeneratorExit:
                return
            except BaseException as error:
                self._error = error
            if not self._open:
                return
            self._mine.release()
