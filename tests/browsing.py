"""A server of `undermargin review` in a process of its own, and a real browser in front of it."""

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

BROWSER = os.environ.get("UNDERMARGIN_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


class Server:
    """`undermargin review`, as a user starts it."""

    def __init__(self, folder, *words):
        command = [sys.executable, "-m", "undermargin", "review", str(folder), "--no-open", "--port", "0", *words]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        said = []
        for line in self.process.stderr:
            said.append(line)
            if found := re.search(r"http://([^:]+):(\d+)/\?token=(\S+)", line):
                self.address, self.host, self.port, self.token = found[0], found[1], int(found[2]), found[3]
                return
        self.stop()
        raise AssertionError("".join(said))

    def pause(self):
        """Answer nothing from now on."""
        self.process.send_signal(signal.SIGSTOP)

    def kill(self):
        self.process.kill()
        self.close()

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.close()

    def close(self):
        said = self.process.communicate(timeout=120)[0]
        return self.process.returncode, said


@contextmanager
def serving(folder, *words):
    server = Server(folder, *words)
    try:
        yield server
    finally:
        if server.process.returncode is None:
            server.stop()
