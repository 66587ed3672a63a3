"""A headless Chromium, driven over a pipe by the DevTools protocol, with the Python standard library only."""
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class Chromium:
    """Messages are JSON that ends with a NUL: Chromium reads them from descriptor 3 and writes them to 4."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="shardrec_browser_")
        to_read, self.to = os.pipe()
        self.from_, to_write = os.pipe()
        # The shell gives the pipes the numbers that Chromium expects. It gets no network: all names lead nowhere.
        arguments = [program, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.folder}",
                     "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
                     "--disable-component-update", "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # it refuses to run as root with one
        arguments.append("about:blank")
        self.errors = open(os.path.join(self.folder, "stderr"), "w+b")
        # Above 9, so that neither is closed or overwritten before it was copied.
        high_read, high_write = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_read, to_write))
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", f'exec 3<&{high_read} 4>&{high_write} && exec "$@"', "chromium", *arguments],
            pass_fds=(high_read, high_write), stdin=subprocess.DEVNULL, stdout=self.errors, stderr=self.errors)
        for end in (to_read, to_write, high_read, high_write):
            os.close(end)
        self.buffer = b""
        self.number = 0
        self.events = []
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for end in (self.to, self.from_):
            os.close(end)
        self.errors.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def receive(self, deadline):
        while b"\0" not in self.buffer:
            if not select.select([self.from_], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer: " + self.said())
            more = os.read(self.from_, 1 << 16)
            if not more:
                raise EOFError("the browser has ended: " + self.said())
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")[-500:]

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 120
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def load(self, address):
        """Returns the events until the page is there."""
        self.events = []
        self.call("Page.navigate", url=address)
        deadline = time.monotonic() + 120
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive(deadline))
        return self.events

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["text"] + ": " + expression[:200])
        return answer["result"].get("value")
