"""opening_time.py <make_page> [spans]: how long a page with so many spans (a million) takes to open in a headless browser.

Prints what each of some openings took: until the page was loaded, and until its parts were drawn.
"""

import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import recordings  # noqa: E402
from browser import Browser, browser_program  # noqa: E402


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    if not browser_program():
        sys.exit("opening_time.py: no chromium here: install Debian's package chromium, or name one by STET_CHROMIUM")
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        path = os.path.join(folder, "page.html")
        with open(path, "wb") as page:
            data = json.dumps(recordings.many_spans(count)).encode()
            subprocess.run([sys.argv[1]], input=data, stdout=page, check=True)
        print(f"{count} spans, {os.path.getsize(path) / 1e6:.0f} MB")
        for _ in range(5):
            browser.open(path)
            loaded, drawn = browser.ask(
                "[performance.timing.loadEventEnd - performance.timing.navigationStart, "
                "performance.getEntriesByName('first-contentful-paint').map(entry => entry.startTime)[0] ?? null]"
            )
            shown = browser.ask(
                "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"
            )
            print(
                f"loaded after {loaded / 1e3:.2f} s, first words after {(drawn or 0) / 1e3:.2f} s, all drawn before {shown / 1e3:.2f} s"
            )
        print("complaints:", browser.complaints() or "none")


main()
