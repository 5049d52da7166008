"""Chromium without a window, driven over the DevTools protocol through a pipe: one JSON message after the other, with zeros between."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"]
KEYS = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowUp": 38, "ArrowDown": 40, "End": 35}


def find():
    return next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)


class Browser:
    def __init__(self, program, patience=60):
        self.patience, self.number, self.events, self.rest = patience, 0, [], b""
        self.profile = tempfile.mkdtemp(prefix="rawbpf-page-")
        theirs_in, self.out = os.pipe()
        self.into, theirs_out = os.pipe()

        def wire():  # the browser reads from 3 and writes to 4
            os.dup2(theirs_in, 30), os.dup2(theirs_out, 31)
            os.dup2(30, 3), os.dup2(31, 4)

        self.process = subprocess.Popen([program, *FLAGS, f"--user-data-dir={self.profile}"], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=wire, close_fds=False)
        os.close(theirs_in)
        os.close(theirs_out)
        self.session = None

    def close(self):
        try:
            self.call("Browser.close", session=False)
        except (OSError, AssertionError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def read(self, deadline):
        while b"\0" not in self.rest:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.into], [], [], left)[0], "the browser doesn't answer"
            part = os.read(self.into, 1 << 16)
            assert part, "the browser has ended"
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=True, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session and self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self.patience
        while True:
            answer = self.read(deadline)
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    # ---- a page

    def new_page(self):
        target = self.call("Target.createTarget", session=False, url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", session=False, targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")

    def go(self, address):
        self.call("Page.navigate", url="about:blank")  # else only the part behind # may change, and nothing is loaded
        self.events.clear()
        self.call("Page.navigate", url=address)

    def js(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, f"{expression}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def wait(self, expression, seconds=30):
        """Until it is true; its value."""
        deadline = time.monotonic() + seconds
        while True:
            value = self.js(f"(() => {{ try {{ const v = {expression}; return v instanceof Node ? true : v; }} catch (e) {{ return null; }} }})()")
            if value:
                return value
            assert time.monotonic() < deadline, f"this didn't come true in {seconds} s: {expression}"
            time.sleep(0.02)

    def key(self, name, ctrl=False, shift=False):
        modifiers = (2 if ctrl else 0) | (8 if shift else 0)
        code = KEYS.get(name, ord(name.upper()[0]))
        parameters = {"key": name, "modifiers": modifiers, "windowsVirtualKeyCode": code, "code": name if name in KEYS else f"Key{name.upper()}"}
        typed = {} if name in ("Escape", "Tab") or name in KEYS and name != "Enter" else {"text": "\r" if name == "Enter" else name}
        self.call("Input.dispatchKeyEvent", type="keyDown", **parameters, **({} if ctrl else typed))
        self.call("Input.dispatchKeyEvent", type="keyUp", **parameters)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def click(self, selector):
        """Where a mouse would hit it; so it has to be visible and not covered."""
        box = self.js(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});"
                      " const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2;"
                      " const hit = document.elementFromPoint(x, y); return [x, y, e === hit || e.contains(hit)]; })()")
        assert box[2], f"{selector} can't be clicked: something lies on it"
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
