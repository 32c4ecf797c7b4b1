# SPDX-License-Identifier: Apache-2.0
"""Drives a headless Chromium over its debugging pipe, so that a test can look at a page and use it.

    with Browser() as browser:
        page = browser.open("http://127.0.0.1:8000/")
        page.wait("document.title === 'x'")
"""
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def program():
    """The browser's path, or None."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class BrowserError(Exception):
    pass


class Browser(contextlib.AbstractContextManager):
    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self.commands = os.pipe()
        self.messages, from_browser = os.pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage", "--remote-debugging-pipe",
                 f"--user-data-dir={self.profile.name}", "about:blank"]
        # Chromium reads commands from descriptor 3 and writes messages to 4.
        self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "bash", program(), *flags],
                                        pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.last, self.rest, self.events = 0, b"", []

    def __exit__(self, *_):
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        os.close(self.commands)
        os.close(self.messages)
        self.profile.cleanup()

    def call(self, method, session=None, seconds=30, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + seconds
        while True:
            while b"\0" not in self.rest:
                if not select.select([self.messages], [], [], max(0, end - time.monotonic()))[0]:
                    raise BrowserError(f"{method}: no answer after {seconds} s")
                part = os.read(self.messages, 1 << 20)
                if not part:
                    raise BrowserError("the browser has ended")
                self.rest += part
            text, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, address, width=1200, height=900, dark=False):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        page = Page(self, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        page.call("Runtime.enable")
        page.call("Page.enable")
        page.call("Page.navigate", url=address)
        page.wait(f"location.href === {json.dumps(address)} && document.readyState === 'complete'")
        return page


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def run(self, script):
        """The value of an expression; promises are awaited."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise BrowserError(result["exceptionDetails"].get("exception", {}).get("description", "the script failed"))
        return result["result"].get("value")

    def wait(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not self.run(condition):
            if time.monotonic() > end:
                raise BrowserError(f"not true after {seconds} s: {condition}\n{self.run('document.body.innerText')}")
            time.sleep(0.05)

    def errors(self):
        """What scripts threw or wrote to the console as errors."""
        self.run("0")
        return [event["params"] for event in self.browser.events if event.get("sessionId") == self.session
                and (event["method"] == "Runtime.exceptionThrown" or event["method"] == "Runtime.consoleAPICalled" and event["params"]["type"] == "error")]
