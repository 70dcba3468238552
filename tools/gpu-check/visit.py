# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a visit to a rented machine leaves behind.

A machine may go away at any moment, and a command may be killed at its limit.
So every result is a line of one file, appended and flushed when it is known;
what the file has is not done again; a step that would not end before the
deadline is not begun; logs are members of one archive, appended too."""

import fcntl
import io
import json
import os
import pathlib
import signal
import subprocess
import tarfile
import threading
import time

try:
    import ctypes
    LIBC = ctypes.CDLL(None)
except (ImportError, OSError):
    LIBC = None
# Members of the archive are cut to this, so that it fits what comes back.
LOG_BYTES = 256 << 10
# The archive gets no more than times and locks once it is as large as this.
LOGS_BYTES = 12 << 20


class Done:
    """How a process ended, and what it printed."""

    def __init__(self, code, out, err, seconds, late):
        self.code, self.out, self.err, self.seconds, self.late = code, out, err, seconds, late

    def value(self, head):
        """The rest of the first line that begins so, or ""."""
        for line in self.out.splitlines():
            if line.startswith(head):
                return line[len(head):].strip()
        return ""

    def words(self):
        lines = [line for line in self.err.splitlines() if line.strip()]
        return " ".join(lines[:3]) or "exit code %d" % self.code


class Busy(OSError):
    """Another run writes to the state folder."""


def end_with_parent():
    """Lets a new process end with the one that started it, even one that is
    killed: what goes on would hold the device while the next visit measures."""
    if LIBC:
        LIBC.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def end(child):
    """Ends a process and its children."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        pass


class Visit:
    def __init__(self, state, deadline, limit):
        self.start = time.monotonic()
        self.lock = threading.Lock()  # of the archive and of what runs
        self.deadline, self.limit = deadline, limit
        self.state = pathlib.Path(state)
        self.state.mkdir(parents=True, exist_ok=True)
        self.path = self.state / "results.jsonl"
        self.logs = self.state / "logs.tar"
        self.children = set()
        self.file = open(str(self.path), "a", encoding="utf-8")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy("another run writes to %s" % self.state)
        except OSError:  # a file system without locks
            pass
        self.results = read_results(self.path)
        # A line that was cut when the last visit was killed ends here.
        if self.path.read_bytes()[-1:] not in (b"", b"\n"):
            self.file.write("\n")
        self.took = {}  # longest seconds of steps of one kind

    def left(self):
        """Seconds until the deadline."""
        return self.deadline - (time.monotonic() - self.start)

    def fits(self, kind, estimate):
        """Whether a step of that kind would end before the deadline: by what
        such a step took on this machine, and half as much again, where one ran;
        else by the estimate."""
        return (1.5 * self.took[kind] if kind in self.took else estimate) <= self.left()

    def add(self, result):
        self.results[result["id"]] = result
        self.file.write(json.dumps(result, sort_keys=True) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())

    def run(self, command, environment=None, limit=None):
        """Runs a process for at most `limit` seconds (--limit), and no longer
        than the deadline: `late` says that one of them ended it."""
        limit = min(limit or self.limit, max(self.left(), 1))
        start = time.monotonic()
        late = False
        try:
            # A session of its own, so that its children end with it.
            child = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, env=environment, start_new_session=True,
                                     preexec_fn=end_with_parent)
        except OSError as error:
            return Done(127, "", str(error), 0, False)
        with self.lock:
            self.children.add(child)
        try:
            out, err = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            late = True
            end(child)
            out, err = child.communicate()
        with self.lock:
            self.children.discard(child)
        err = err.decode("utf-8", "replace")
        if late:
            err = "not done after %.0f s\n" % limit + err
        return Done(child.returncode, out.decode("utf-8", "replace"), err, time.monotonic() - start, late)

    def stop(self):
        """Ends all processes that run. Takes no lock: a signal may have
        interrupted who holds it."""
        for child in list(self.children):
            end(child)

    def log(self, name, text):
        """Keeps a text in the archive."""
        with self.lock:
            self.append(name, text.encode("utf-8", "replace") if isinstance(text, str) else text)

    def append(self, name, data):
        if len(data) > LOG_BYTES and not name.endswith(".json"):
            data = data[:LOG_BYTES] + b"\n... cut\n"
        if self.logs.exists() and self.logs.stat().st_size > LOGS_BYTES and not name.startswith(("kernel-times/", "locks/")):
            return
        member = tarfile.TarInfo(name)
        member.size = len(data)
        try:
            with tarfile.open(str(self.logs), "a") as archive:
                archive.addfile(member, io.BytesIO(data))
        except tarfile.TarError:  # cut when a visit was killed: begin another
            self.logs.rename(self.logs.with_name("logs.cut.tar"))
            with tarfile.open(str(self.logs), "w") as archive:
                archive.addfile(member, io.BytesIO(data))


def read_results(path):
    """Results by id, the last line of an id counts; a cut line is none."""
    results = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                result = json.loads(line)
                if result["status"] in ("ok", "failed", "skipped"):
                    results[result["id"]] = dict({"why": ""}, **result)
            except (ValueError, KeyError, TypeError):
                continue
    return results
