"""A headless Chromium, spoken to through pipes: pages are opened, clicked, asked and photographed."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def browser_program():
    """The path of a browser, or None. STET_CHROMIUM names one."""
    named = os.environ.get("STET_CHROMIUM")
    return shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)


class PageError(Exception):
    """A script that the test ran in the page threw."""


class Browser:
    """with Browser() as browser: …; one tab, in which one page after the other is opened."""

    def __enter__(self):
        self.profile = tempfile.mkdtemp(prefix="stet-browser-")
        to_read, self.to = os.pipe()
        self.come, from_write = os.pipe()
        # The browser reads from 3 and writes to 4, where a shell moves ours to: from above, so that neither is in the way.
        reads, writes = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_read, from_write))
        os.close(to_read)
        os.close(from_write)
        command = [
            browser_program(),
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--hide-scrollbars",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--remote-debugging-pipe",
            "--user-data-dir=" + self.profile,
            "about:blank",
        ]
        self.log = open(os.path.join(self.profile, "log"), "wb")
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", f'exec 3<&{reads} 4>&{writes} {reads}<&- {writes}>&-; exec "$@"', "bash"] + command,
            pass_fds=(reads, writes),
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
        )
        os.close(reads)
        os.close(writes)
        self.number, self.rest, self.events = 0, b"", []
        target = self.call("Target.createTarget", url="about:blank", session=None)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True, session=None)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        return self

    def __exit__(self, *_):
        os.close(self.to)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.come)
        self.log.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def _message(self, seconds):
        """The next message of the browser; None when there is none for so long."""
        end = time.monotonic() + seconds
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.come], [], [], max(0, end - time.monotonic()))
            if not ready:
                return None
            piece = os.read(self.come, 1 << 20)
            if not piece:
                self.log.flush()
                with open(self.log.name, errors="replace") as log:
                    raise RuntimeError("the browser has ended:\n" + log.read()[-2000:])
            self.rest += piece
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session="this", seconds=120, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session == "this":
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data) :]
        while True:
            answer = self._message(seconds)
            if answer is None:
                raise RuntimeError(f"no answer to {method} within {seconds} s")
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def wait_for(self, method, seconds=120):
        """The next event of that kind, or one that has come since the page was opened."""
        while True:
            for event in self.events:
                if event["method"] == method:
                    return event["params"]
            event = self._message(seconds)
            if event is None:
                raise RuntimeError(f"no {method} within {seconds} s")
            self.events.append(event)

    def open(self, path, width=1280, height=900, dark=False, phone=False, dense=1, hash=""):
        self.window = {"width": width, "height": height, "deviceScaleFactor": dense, "mobile": phone}
        self.call("Emulation.setDeviceMetricsOverride", **self.window)
        self.call("Emulation.setTouchEmulationEnabled", enabled=phone)
        self.call(
            "Emulation.setEmulatedMedia",
            media="",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        self.events.clear()
        self.call("Page.navigate", url="about:blank")
        self.wait_for("Page.loadEventFired")
        self.events.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path) + hash)
        self.wait_for("Page.loadEventFired")
        self.settle()

    def settle(self):
        """Two frames later: what was asked to be drawn is drawn."""
        self.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def ask(self, script):
        """The value of an expression, or of the promise that it is."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise PageError(
                answer["exceptionDetails"].get("exception", {}).get("description", str(answer["exceptionDetails"]))
            )
        return answer["result"].get("value")

    def complaints(self):
        """What the page wrote to the console, and what went wrong in it."""
        self.settle()
        found = []
        for event in self.events:
            if event["method"] == "Runtime.exceptionThrown":
                details = event["params"]["exceptionDetails"]
                found.append(details.get("exception", {}).get("description") or details["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and event["params"]["type"] in (
                "error",
                "warning",
                "assert",
            ):
                found.append(json.dumps(event["params"]["args"]))
            elif event["method"] == "Log.entryAdded":
                found.append(event["params"]["entry"]["text"])
        return found

    def requests(self):
        """Addresses that the page asked for, itself included."""
        return [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"
        ]

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click_at(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.settle()

    def place(self, selector):
        """Brings it into view; its box on the screen as (left, top, width, height)."""
        box = self.ask(
            f"(() => {{ const node = document.querySelector({json.dumps(selector)}); if (!node) return null;"
            "node.scrollIntoView({block: 'center', behavior: 'instant'}); const box = node.getBoundingClientRect();"
            "return [box.left, box.top, box.width, box.height]; })()"
        )
        if box is None:
            raise PageError("nothing matches " + selector)
        self.settle()
        return box

    def click(self, selector):
        left, top, width, height = self.place(selector)
        self.click_at(left + width / 2, top + height / 2)

    def key(self, key, shift=False):
        # Those that the browser itself does something at have numbers, and some a text.
        number, text = {"Tab": (9, None), "Enter": (13, "\r"), "Escape": (27, None), " ": (32, " ")}.get(key, (0, None))
        about = {"key": key, "code": key, "windowsVirtualKeyCode": number, "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown", **about, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)
        self.settle()

    def picture(self, path, selector="html"):
        """A part of the page, or all of it, in a window that is high enough for all."""
        high = self.ask("document.documentElement.scrollHeight")
        self.call("Emulation.setDeviceMetricsOverride", **(self.window | {"height": max(high, self.window["height"])}))
        left, top, width, height = self.place(selector)
        clip = {"x": left, "y": top, "width": width, "height": height, "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", clip=clip)["data"]
        self.call("Emulation.setDeviceMetricsOverride", **self.window)
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def paper(self, path):
        data = self.call(
            "Page.printToPDF", printBackground=True, preferCSSPageSize=True, paperWidth=8.27, paperHeight=11.69
        )["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
