"""GitHub's events API on loopback: its headers, limits and payloads, as its documentation and github.com have them.

https://docs.github.com/en/rest/activity/events, https://docs.github.com/en/rest/using-the-rest-api/github-event-types
"""

import datetime
import hashlib
import json
import time
import urllib.parse
from typing import Any

import github
from local_server import LocalHandler, LocalServer

HEAD = "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c"


def event(identifier: int, kind: str, payload: dict[str, Any], *, repository: int, name: str, age: float = 0) -> dict:
    """One of the list; `age` is in seconds."""
    created = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=age)
    return {
        "id": str(identifier),
        "type": kind,
        "actor": {
            "id": 583231,
            "login": "octocat",
            "display_login": "octocat",
            "gravatar_id": "",
            "url": f"{github.API}/users/octocat",
            "avatar_url": "https://avatars.githubusercontent.com/u/583231?",
        },
        "repo": {"id": repository, "name": name, "url": f"{github.API}/repos/{name}"},
        "payload": payload,
        "public": True,
        "created_at": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def push(branch: str = "main") -> dict[str, Any]:
    """Without commits, as github.com has it since October 2025."""
    return {
        "repository_id": 1,
        "push_id": 24043559875,
        "ref": f"refs/heads/{branch}",
        "head": HEAD,
        "before": "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
    }


class GitHubAPI(LocalServer):
    """Serves what tests put in; a failure is told instead while there is one."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        #: By path: `/repos/octocat/Hello-World/events`.
        self.feeds: dict[str, list[dict]] = {}
        #: Answered to everything: status, headers, body.
        self.failure: tuple[int, dict[str, str], bytes] | None = None
        #: Answered instead by path, once each.
        self.redirects: dict[str, str] = {}
        self.interval = 1
        #: The token that private repositories ask for.
        self.token: str | None = None
        self.remaining = 5_000
        self.asked: list[dict[str, Any]] = []

    def add(self, path: str, *events: dict) -> None:
        """Newer than what is there."""
        for each in events:
            self.feeds[path] = [each, *self.feeds.get(path, [])]

    def answers(self, path: str) -> list[int]:
        return [each["status"] for each in self.asked if each["path"] == path]


class _Handler(LocalHandler):
    site: GitHubAPI

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        headers = {
            "X-Poll-Interval": str(self.site.interval),
            "X-RateLimit-Limit": "5000",
            "X-RateLimit-Remaining": str(self.site.remaining),
            "X-RateLimit-Reset": str(int(time.time()) + 3_600),
        }
        status, body = self._answer(url.path, headers)
        self.site.asked.append(
            {
                "path": url.path,
                "query": url.query,
                "status": status,
                "at": time.time(),
                "headers": {name.lower(): value for name, value in self.headers.items()},
            }
        )
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status != 304:
            self.wfile.write(body)

    def _answer(self, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
        if self.site.failure:
            status, more, body = self.site.failure
            headers |= more
            return status, body
        if target := self.site.redirects.get(path):
            headers["Location"] = target
            return 301, b'{"message": "Moved Permanently"}'
        is_known = self.site.token is None or self.headers["Authorization"] == f"Bearer {self.site.token}"
        if path not in self.site.feeds or not is_known:
            return 404, json.dumps({"message": "Not Found", "status": "404"}).encode()
        body = json.dumps(self.site.feeds[path][:100]).encode()
        headers["ETag"] = f'W/"{hashlib.sha256(body).hexdigest()}"'
        if self.headers["If-None-Match"] == headers["ETag"]:
            return 304, b""
        return 200, body
