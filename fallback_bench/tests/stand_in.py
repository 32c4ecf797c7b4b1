# SPDX-License-Identifier: Apache-2.0
"""A stand-in for GitHub's API on a local port: pages of comments with ETags, and whatever answers a test puts before them."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse


def comment(number, body, issue=77764, kind="User", **reactions):
    return {
        "html_url": f"https://github.com/pytorch/pytorch/issues/{issue}#issuecomment-{number}",
        "body": body,
        "user": {"login": f"user{number}", "type": kind},
        "reactions": {"total_count": sum(reactions.values()), "+1": 0, **{"+1" if k == "plus" else k: v for k, v in reactions.items()}},
    }


class GitHub:
    """issues: number -> comments. `scripted` answers, (status, headers), come first; `requests` is what was asked, in order."""

    def __init__(self, issues, per_page=2):
        self.issues, self.per_page, self.scripted, self.requests = issues, per_page, [], []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.answer(self)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request):
        url = urlparse(request.path)
        self.requests.append((request.path, dict(request.headers)))
        if self.scripted:
            return self.send(request, *self.scripted.pop(0))
        words = url.path.strip("/").split("/")  # repos OWNER NAME issues N [comments]
        issue = int(words[4])
        if issue not in self.issues:
            return self.send(request, 404)
        headers = {"ETag": f'"{abs(hash(json.dumps(self.issues[issue])))}"'}
        if request.headers.get("If-None-Match") == headers["ETag"]:
            return self.send(request, 304, headers)
        if words[-1] != "comments":
            body = {"number": issue, "html_url": f"https://github.com/pytorch/pytorch/issues/{issue}", "body": "aten::isin", "comments_url": ""}
            return self.send(request, 200, headers, body)
        page = int(parse_qs(url.query).get("page", ["1"])[0])
        start = (page - 1) * self.per_page
        if start + self.per_page < len(self.issues[issue]):
            headers["Link"] = f'<{self.url}{url.path}?per_page=100&page={page + 1}>; rel="next"'
        return self.send(request, 200, headers, self.issues[issue][start : start + self.per_page])

    @staticmethod
    def send(request, status, headers=None, body=None):
        content = b"" if status == 304 else json.dumps(body).encode()
        request.send_response(status)
        for name, value in (headers or {}).items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)
