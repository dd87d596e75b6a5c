"""The parent of the node's processes: starts them, reads their logs and readiness, restarts them, ends them in order.

One thread, no event loop, no connection: it must stay safe to fork for as long as it lives.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from cli.child import HANDLED, fork, read_some, send_signal, why_ended
from cli.log_files import RotatingFile, last_lines
from cli.program import Process, Program

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_LATE = 2
"""A process didn't end by itself in its time."""

START_SECONDS = 90.0
"""All must be ready within this time, else the start has failed."""
START_TRIES = 3
"""So often may a process end before it was ever ready."""
HEALTHY_SECONDS = 60.0
"""After so long the next restart waits the shortest time again."""
CHORE_SECONDS = 86400.0
_POLL_SECONDS = 0.05
_SAME_ASK_SECONDS = 1.0
"""A second signal within this time is the same wish: `timeout` and terminals signal the process and its group."""


class Supervisor:
    """`run()` returns the exit code after SIGTERM or SIGINT, or when the start has failed."""

    def __init__(
        self,
        programs: Sequence[Program],
        *,
        logs: Path,
        say: Callable[[str], None],
        echo: Callable[[bytes], None] | None = None,
        all_ready: Callable[[], None] = lambda: None,
        stopping: Callable[[], None] = lambda: None,
        start_seconds: float = START_SECONDS,
        in_child: Callable[[], None] = lambda: None,
        chore: Callable[[], int] | None = None,
        chore_seconds: float = CHORE_SECONDS,
    ) -> None:
        """`say`: lines for people. `echo`: gets every log line too. `all_ready`: called once. `in_child`: lets go, in
        each child, of what only this process may hold. `chore`: run every `chore_seconds` in a short process of its
        own."""
        self._processes = [Process.of(program, RotatingFile(logs / f"{program.name}.log")) for program in programs]
        self._say = say
        self._echo = echo
        self._all_ready = all_ready
        self._stopping = stopping
        self._start_seconds = start_seconds
        self._in_child = in_child
        self._chore = chore
        self._chore_seconds = chore_seconds
        self._selector = selectors.DefaultSelector()
        self._asked = 0
        self._asked_at = 0.0
        self._announced = False
        self._stage: int | None = None
        self._code = EXIT_OK

    def run(self) -> int:
        wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._wake = (wake_read, wake_write)
        before = [(number, signal.getsignal(number)) for number in HANDLED]
        for number in HANDLED:
            # under nohup a hang-up stays ignored
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        self._selector.register(wake_read, selectors.EVENT_READ, self._drain_wake)
        self._began = time.monotonic()
        self._chore_at = self._began + self._chore_seconds
        try:
            while not self._step():
                pass
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in before:
                signal.signal(number, handler)
            self._selector.close()
            os.close(wake_read)
            os.close(wake_write)
            for process in self._processes:
                process.log.close()
        return self._code

    # -- one turn ---------------------------------------------------------------------------------------------

    def _step(self) -> bool:
        """True when all is over."""
        for key, _ in self._selector.select(self._wait_seconds()):
            key.data()
        self._reap()
        now = time.monotonic()
        if self._stage is None:
            self._start_due(now)
            self._ask_answers()
            self._look_at_start(now)
            self._do_chore(now)
            self._ask_liveness(now)
        if self._asked and self._stage is None:
            self._begin_stop()
        if self._stage is not None:
            return self._stop_on(now)
        return False

    def _wait_seconds(self) -> float | None:
        now = time.monotonic()
        times: list[float] = []
        if self._stage is not None:
            for process in self._processes:
                if process.pid and process.signalled_at is not None and not process.killed:
                    times.append(process.signalled_at + process.program.stop_seconds - now)
        else:
            times += [p.start_at - now for p in self._processes if p.start_at is not None]
            times += [p.liveness.due - now for p in self._processes if p.liveness.due is not None]
            if any(p.pid and not p.is_ready and p.program.answers for p in self._processes):
                times.append(_POLL_SECONDS)
            if self._chore is not None:
                times.append(self._chore_at - now)
            if not self._announced:
                times.append(self._began + self._start_seconds - now)
        return max(0.0, min(times)) if times else None

    def _on_signal(self, number: int, _frame: object) -> None:
        if number == signal.SIGCHLD:
            return
        now = time.monotonic()
        if not self._asked or now >= self._asked_at + _SAME_ASK_SECONDS:
            self._asked += 1
            self._asked_at = now

    def _drain_wake(self) -> None:
        try:
            while os.read(self._wake[0], 512):
                pass
        except BlockingIOError:
            return

    # -- start and restart ------------------------------------------------------------------------------------

    def _start_due(self, now: float) -> None:
        for process in self._processes:
            if process.start_at is not None and process.start_at <= now:
                self._start(process)

    def _start(self, process: Process) -> None:
        output_read, output_write = os.pipe2(os.O_CLOEXEC)
        ready_read, ready_write = os.pipe2(os.O_CLOEXEC)
        close = [*self._descriptors(), output_read, ready_read]

        def body() -> int:
            for other in self._processes:
                other.log.close()
            self._in_child()
            return process.program.body(ready_write, process.reason)

        try:
            process.pid = fork(body, output=output_write, close=close)
        except OSError as error:
            process.start_at = time.monotonic() + process.delays.next()
            self._say(f"{process.program.name}: can't be started: {error}")
            for fd in (output_read, ready_read):
                os.close(fd)
            return
        finally:
            os.close(output_write)
            os.close(ready_write)
        process.start_at, process.started_at = None, time.monotonic()
        process.is_ready, process.signalled_at, process.killed = False, None, False
        process.output, process.ready = output_read, ready_read
        os.set_blocking(output_read, False)
        os.set_blocking(ready_read, False)
        self._selector.register(output_read, selectors.EVENT_READ, partial(self._read_output, process))
        self._selector.register(ready_read, selectors.EVENT_READ, partial(self._read_ready, process))

    def _ask_answers(self) -> None:
        for process in self._processes:
            answers = process.program.answers
            if process.pid and not process.is_ready and answers is not None and answers():
                self._is_ready(process)

    def _read_ready(self, process: Process) -> None:
        assert process.ready is not None
        line = read_some(process.ready)
        if line is None:
            return
        self._close_ready(process)
        if line:
            self._is_ready(process)

    def _is_ready(self, process: Process) -> None:
        process.is_ready = process.was_ready = True
        process.liveness.begin(time.monotonic())
        took = time.monotonic() - process.started_at
        if not process.outage.is_on:
            self._say(f"{process.program.name} ready" + (f" again after {took:.1f} s" if process.reason else ""))

    def _look_at_start(self, now: float) -> None:
        if self._announced:
            return
        if all(process.is_ready for process in self._processes):
            self._announced = True
            self._all_ready()
        elif tired := [p for p in self._processes if not p.was_ready and p.ends_before_ready >= START_TRIES]:
            self._fail(f"{tired[0].program.name} {tired[0].reason}, {START_TRIES} times before it was ready", tired[0])
        elif now > self._began + self._start_seconds:
            late = [p for p in self._processes if not p.is_ready]
            names = ", ".join(p.program.name for p in late)
            self._fail(f"not ready after {self._start_seconds:.0f} s: {names}", late[0])

    def _fail(self, why: str, process: Process) -> None:
        self._announced = True
        self._code = EXIT_FAILED
        self._say(f"the start has failed: {why}")
        self._say(f"the end of {process.log.path}:")
        for line in last_lines(process.log.path, 15):
            self._say(f"  {line}")
        self._begin_stop()

    def _do_chore(self, now: float) -> None:
        if self._chore is None or now < self._chore_at:
            return
        self._chore_at = now + self._chore_seconds
        try:
            fork(self._chore, output=None, close=self._descriptors())
        except OSError as error:
            self._say(f"the daily chore can't be started: {error}")

    def _ask_liveness(self, now: float) -> None:
        for process in self._processes:
            try:
                process.liveness.ask(now, self._descriptors())
            except OSError as error:
                self._say(f"{process.program.name} can't be asked whether it works: {error}")

    def _descriptors(self) -> list[int]:
        """What a short process of ours must not hold."""
        ours = [fd for p in self._processes for fd in (p.output, p.ready) if fd is not None]
        return [*self._wake, self._selector.fileno(), *ours]

    # -- children that end ------------------------------------------------------------------------------------

    def _reap(self) -> None:
        while True:
            try:
                # any child: as the first process of a container we inherit others' too
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for process in self._processes:
                if process.pid == pid:
                    self._ended(process, os.waitstatus_to_exitcode(status))
                elif process.liveness.pid == pid:
                    self._answered(process, status, time.monotonic())

    def _answered(self, process: Process, status: int, now: float) -> None:
        """Of its liveness."""
        does_hang = process.liveness.answered(status, now)
        is_killed, said = process.outage.hangs(now) if does_hang else (False, "")
        if status == 0:
            said = process.outage.works(now)
        if said:
            self._say(f"{process.program.name} {said}")
        if is_killed:
            process.liveness.end()
            send_signal(process.pid, signal.SIGKILL)

    def _ended(self, process: Process, code: int) -> None:
        while process.output is not None and self._read_output(process):
            pass
        self._close_output(process)  # a grandchild may hold the other end
        self._close_ready(process)
        now = time.monotonic()
        lived = now - process.started_at
        process.pid, process.exit_code = 0, code
        process.liveness.end()
        process.reason = why_ended(code)
        if self._stage is not None:
            return
        if not process.is_ready:
            process.ends_before_ready += 1
        if process.is_ready and lived >= HEALTHY_SECONDS:
            process.delays.reset()
        process.is_ready = False
        delay = process.delays.next()
        process.start_at = now + delay
        if said := process.outage.ended(now, process.reason):
            self._say(f"{process.program.name} {said}")
        elif not process.outage.is_on:
            again = f"starting it again in {delay:.1f} s"
            self._say(f"{process.program.name} {process.reason} after {lived:.1f} s, {again}")

    def _read_output(self, process: Process) -> bool:
        """Hand on what it wrote, a bufferful at a time; False when there is no more now."""
        assert process.output is not None
        data = read_some(process.output)
        if data is None:
            return False
        if not data:
            self._close_output(process)
            return False
        process.log.write(data)
        if self._echo is not None and process.program.is_echoed:
            self._echo(data)
        return True

    def _close_output(self, process: Process) -> None:
        if process.output is not None:
            self._selector.unregister(process.output)
            os.close(process.output)
            process.output = None

    def _close_ready(self, process: Process) -> None:
        if process.ready is not None:
            self._selector.unregister(process.ready)
            os.close(process.ready)
            process.ready = None

    # -- the end ----------------------------------------------------------------------------------------------

    def _begin_stop(self) -> None:
        self._stage = min(process.program.stage for process in self._processes)
        for process in self._processes:
            process.start_at = None
            process.liveness.end()
        self._stopping()

    def _stop_on(self, now: float) -> bool:
        """Tell the stage's processes to end; go to the next when they have. True when none is left."""
        assert self._stage is not None
        while not (alive := [p for p in self._processes if p.pid and p.program.stage == self._stage]):
            later = [p.program.stage for p in self._processes if p.program.stage > self._stage]
            if not later:
                return True
            self._stage = min(later)
        for process in alive:
            if process.signalled_at is None:
                process.signalled_at = now
                send_signal(process.pid, signal.SIGTERM)
            elif not process.killed and (now >= process.signalled_at + process.program.stop_seconds or self._asked > 1):
                process.killed = True
                late = f"didn't end within {process.program.stop_seconds:.0f} s"
                self._say(f"{process.program.name} {late if self._asked < 2 else 'has to end at once'}: killed")
                send_signal(process.pid, signal.SIGKILL)
                self._code = self._code or EXIT_LATE
        return False
