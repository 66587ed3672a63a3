"""A program that measures in rounds: it prints "ready", then for each line of its input, a number of steps,
a line of JSON. While another one measures it can be stopped: threads that poll do not sleep by themselves."""

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager


class Failed(Exception):
    """A program ended, or said nothing in time; the sentence holds what it printed last."""


class Served:
    def __init__(self, words, environment=None, patience=600):
        self.words = [str(word) for word in words]
        self._patience = patience
        self._errors = tempfile.TemporaryFile("w+")
        # A session of its own: its processes are found, and ended, together.
        self._process = subprocess.Popen(
            self.words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def wait_ready(self):
        self._read(lambda line: line == "ready")

    def round(self, steps):
        try:
            self._process.stdin.write(f"{steps}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # told by the read
        return json.loads(self._read(lambda line: line.startswith("{")))

    @contextmanager
    def stopped(self):
        """None of its processes runs inside the scope."""
        try:
            while any(fields[0] not in "TZ" for _, fields in self._processes()):
                self._signal(signal.SIGSTOP)  # again: one may have started another meanwhile
                time.sleep(0.001)
            yield
        finally:
            self._signal(signal.SIGCONT)

    def cpu_seconds(self):
        """Processor time of all its processes so far."""
        ticks = sum(int(fields[11]) + int(fields[12]) for _, fields in self._processes())
        return ticks / os.sysconf("SC_CLK_TCK")

    def _processes(self):
        """Number and fields of /proc/PID/stat behind the name, of each of its processes."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:  # ended meanwhile
                continue
            if int(fields[3]) == self._process.pid:  # session
                yield int(pid), fields

    def _signal(self, number):
        for pid, _ in self._processes():
            try:
                os.kill(pid, number)
            except ProcessLookupError:  # ended meanwhile
                pass

    def close(self):
        """Ends it: by the end of its input, by force when that is not enough."""
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._kill()
        self._process.stdout.close()
        self._errors.close()

    def _kill(self):
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()

    def _read(self, wanted):
        timer = threading.Timer(self._patience, self._kill)
        timer.start()
        try:
            for line in self._process.stdout:
                if wanted(line.strip()):
                    return line.strip()
        finally:
            timer.cancel()
        self._kill()
        self._errors.seek(0)
        tail = self._errors.read()[-2000:].strip()
        raise Failed(
            f"'{' '.join(self.words)}' ended with status {self._process.returncode}, or was ended after "
            f"{self._patience} s of silence. It said: {tail or 'nothing'}"
        )
