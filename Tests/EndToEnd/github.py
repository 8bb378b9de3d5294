"""GitHub's webhooks: payloads of the shapes its documentation gives, trimmed, and deliveries of them.

https://docs.github.com/en/webhooks/webhook-events-and-payloads
"""

import hashlib
import hmac
import json
import urllib.parse
import uuid
from typing import Any

from client import Answer, request

API = "https://api.github.com"
SITE = "https://github.com"


def user(login: str, kind: str = "User") -> dict[str, Any]:
    return {
        "login": login,
        "id": 583231,
        "node_id": "MDQ6VXNlcjU4MzIzMQ==",
        "avatar_url": "https://avatars.githubusercontent.com/u/583231?v=4",
        "gravatar_id": "",
        "url": f"{API}/users/{login}",
        "html_url": f"{SITE}/{login}",
        "type": kind,
        "site_admin": False,
    }


def repository(number: int, name: str = "octocat/Hello-World", language: str | None = "Ruby") -> dict[str, Any]:
    owner, _, short = name.partition("/")
    return {
        "id": number,
        "node_id": "MDEwOlJlcG9zaXRvcnkxMjk2MjY5",
        "name": short,
        "full_name": name,
        "private": False,
        "owner": user(owner),
        "html_url": f"{SITE}/{name}",
        "description": "This your first repo!",
        "fork": False,
        "url": f"{API}/repos/{name}",
        "created_at": "2011-01-26T19:01:12Z",
        "updated_at": "2026-11-20T10:00:00Z",
        "pushed_at": "2026-11-20T10:00:00Z",
        "homepage": None,
        "size": 180,
        "stargazers_count": 80,
        "watchers_count": 80,
        "language": language,
        "has_issues": True,
        "forks_count": 9,
        "archived": False,
        "open_issues_count": 2,
        "license": None,
        "topics": ["octocat", "atom"],
        "visibility": "public",
        "default_branch": "master",
    }


def commit(message: str, **files: list[str]) -> dict[str, Any]:
    identifier = hashlib.sha1(message.encode()).hexdigest()
    person = {"name": "Monalisa Octocat", "email": "mona@github.com", "username": "octocat"}
    return {
        "id": identifier,
        "tree_id": identifier,
        "distinct": True,
        "message": message,
        "timestamp": "2026-11-20T11:00:00+01:00",
        "url": f"{SITE}/octocat/Hello-World/commit/{identifier}",
        "author": person,
        "committer": person,
        "added": files.get("added", []),
        "removed": files.get("removed", []),
        "modified": files.get("modified", ["README.md"]),
    }


def push(
    number: int, *messages: str, ref: str = "refs/heads/main", forced: bool = False, **more: Any
) -> dict[str, Any]:
    commits = [commit(message) for message in messages]
    return {
        "ref": ref,
        "before": "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
        "after": commits[-1]["id"] if commits else "0" * 40,
        "repository": repository(number, **more),
        "pusher": {"name": "octocat", "email": "octocat@github.com"},
        "sender": user("octocat"),
        "created": False,
        "deleted": not commits,
        "forced": forced,
        "base_ref": None,
        "compare": f"{SITE}/octocat/Hello-World/compare/6113728f27ae...0d1a26e67d8f",
        "commits": commits,
        "head_commit": commits[-1] if commits else None,
    }


def _pull_request(title: str, *, merged: bool = False) -> dict[str, Any]:
    return {
        "url": f"{API}/repos/octocat/Hello-World/pulls/2",
        "id": 279147437,
        "number": 2,
        "html_url": f"{SITE}/octocat/Hello-World/pull/2",
        "state": "closed" if merged else "open",
        "locked": False,
        "title": title,
        "user": user("octocat"),
        "body": "This is a pretty simple change that we need to pull into master.",
        "created_at": "2026-11-20T10:00:00Z",
        "merged_at": "2026-11-20T10:00:00Z" if merged else None,
        "labels": [],
        "draft": False,
        "head": {"label": "octocat:changes", "ref": "changes", "sha": "ec26c3e5", "user": user("octocat")},
        "base": {"label": "octocat:master", "ref": "master", "sha": "f95f852b", "user": user("octocat")},
        "merged": merged,
        "mergeable": None,
        "commits": 3,
        "additions": 40,
        "deletions": 12,
        "changed_files": 5,
    }


def _event(repository_id: int, /, **fields: Any) -> dict[str, Any]:
    return fields | {"repository": repository(repository_id), "sender": user("octocat")}


def pull_request(number: int, action: str = "opened", *, merged: bool = False) -> dict[str, Any]:
    details = _pull_request("Update the README with new information.", merged=merged)
    return _event(number, action=action, number=2, pull_request=details)


def pull_request_review(number: int, state: str = "approved") -> dict[str, Any]:
    review = {
        "id": 237895671,
        "node_id": "MDE3OlB1bGxSZXF1ZXN0UmV2aWV3MjM3ODk1Njcx",
        "user": user("octocat"),
        "body": None,
        "commit_id": "ec26c3e57ca3a959ca5aad62de7213c562f8c821",
        "submitted_at": "2026-11-20T10:00:00Z",
        "state": state,
        "html_url": f"{SITE}/octocat/Hello-World/pull/2#pullrequestreview-237895671",
        "pull_request_url": f"{API}/repos/octocat/Hello-World/pulls/2",
        "author_association": "COLLABORATOR",
    }
    details = _pull_request("Update the README with new information.")
    # As GitHub has it: the review's pull request has no counts.
    for name in ("merged", "commits", "additions", "deletions", "changed_files"):
        del details[name]
    return _event(number, action="submitted", review=review, pull_request=details)


def check_run(number: int, action: str = "completed", conclusion: str | None = "success") -> dict[str, Any]:
    run = {
        "id": 128620228,
        "head_sha": "ec26c3e57ca3a959ca5aad62de7213c562f8c821",
        "external_id": "",
        "url": f"{API}/repos/octocat/Hello-World/check-runs/128620228",
        "html_url": f"{SITE}/octocat/Hello-World/runs/128620228",
        "details_url": "https://example.com",
        "status": "completed" if conclusion else "queued",
        "conclusion": conclusion,
        "started_at": "2026-11-20T10:00:00Z",
        "completed_at": None,
        "output": {"title": None, "summary": None, "text": None, "annotations_count": 0},
        "name": "Octocoders-linter",
        "check_suite": {"id": 118578147, "head_branch": "changes", "status": "queued", "conclusion": None},
        "app": {"id": 29310, "slug": "octocoders-linter", "name": "octocoders-linter"},
        "pull_requests": [],
    }
    return _event(number, action=action, check_run=run)


def workflow_run(number: int, action: str = "completed", conclusion: str | None = "failure") -> dict[str, Any]:
    run = {
        "id": 30433642,
        "name": "Build",
        "node_id": "MDEyOldvcmtmbG93IFJ1bjI2OTI4OQ==",
        "head_branch": "main",
        "head_sha": "acb5820ced9479c074f688cc328bf03f341a511d",
        "path": ".github/workflows/build.yml",
        "display_title": "Update README.md",
        "run_number": 562,
        "event": "push",
        "status": "completed" if conclusion else "requested",
        "conclusion": conclusion,
        "workflow_id": 159038,
        "html_url": f"{SITE}/octocat/Hello-World/actions/runs/30433642",
        "actor": user("octocat"),
        "head_commit": {"id": "acb5820ced9479c074f688cc328bf03f341a511d", "message": "Update README.md"},
    }
    return _event(number, action=action, workflow=None, workflow_run=run)


def deployment_status(number: int, state: str = "success") -> dict[str, Any]:
    return _event(
        number,
        action="created",
        deployment_status={
            "id": 1,
            "state": state,
            "creator": user("octocat"),
            "description": "Deployed",
            "environment": "production",
            "target_url": "https://example.com/deployment/42/output",
            "log_url": "https://example.com/deployment/42/output",
        },
        deployment={
            "id": 42,
            "sha": "a84d88e7",
            "ref": "main",
            "task": "deploy",
            "payload": {},
            "environment": "production",
        },
        workflow_run=None,
        check_run=None,
    )


def _issue() -> dict[str, Any]:
    return {
        "url": f"{API}/repos/octocat/Hello-World/issues/1",
        "html_url": f"{SITE}/octocat/Hello-World/issues/1",
        "id": 444500041,
        "number": 1,
        "title": "Spelling error in the README file",
        "user": user("octocat"),
        "labels": [{"id": 1362934389, "name": "bug", "color": "d73a4a", "default": True}],
        "state": "open",
        "locked": False,
        "comments": 0,
        "author_association": "OWNER",
        "body": "It looks like you accidentally spelled 'commit' with two 't's.",
        "state_reason": None,
    }


def issues(number: int, action: str = "opened", reason: str | None = None) -> dict[str, Any]:
    return _event(number, action=action, issue=_issue() | {"state_reason": reason})


def issue_comment(number: int) -> dict[str, Any]:
    comment = {
        "url": f"{API}/repos/octocat/Hello-World/issues/comments/492700400",
        "html_url": f"{SITE}/octocat/Hello-World/issues/1#issuecomment-492700400",
        "id": 492700400,
        "user": user("octocat"),
        "author_association": "OWNER",
        "body": "You are totally right! I'll get this fixed right away.",
    }
    return _event(number, action="created", issue=_issue(), comment=comment)


def release(number: int) -> dict[str, Any]:
    details = {
        "url": f"{API}/repos/octocat/Hello-World/releases/1",
        "html_url": f"{SITE}/octocat/Hello-World/releases/tag/v1.0.0",
        "id": 1,
        "tag_name": "v1.0.0",
        "target_commitish": "master",
        "name": "v1.0.0 Overture",
        "draft": False,
        "prerelease": False,
        "author": user("octocat"),
        "assets": [],
        "body": None,
    }
    return _event(number, action="published", release=details)


def star(number: int, action: str = "created") -> dict[str, Any]:
    return _event(number, action=action, starred_at="2026-11-20T10:00:00Z" if action == "created" else None)


def fork(number: int) -> dict[str, Any]:
    return _event(number, forkee=repository(number + 1, "hubot/Hello-World") | {"fork": True})


def ping(number: int) -> dict[str, Any]:
    hook = {
        "type": "Repository",
        "id": 109948940,
        "name": "web",
        "active": True,
        "events": ["*"],
        "config": {"content_type": "json", "url": "https://example.com/webhooks/github", "insecure_ssl": "0"},
    }
    return _event(number, zen="Speak like a human.", hook_id=109948940, hook=hook)


#: Every kind that makes music, by GitHub's name of it.
EVENTS = {
    "push": lambda number: push(number, "Fix the chorus", "Tune the strings\n\nThey were flat."),
    "pull_request": pull_request,
    "pull_request_review": pull_request_review,
    "check_run": check_run,
    "workflow_run": workflow_run,
    "deployment_status": deployment_status,
    "issues": issues,
    "issue_comment": issue_comment,
    "release": release,
    "star": star,
    "fork": fork,
}

SECRET = "It's a Secret to Everybody".replace(" ", "-")


def signature(body: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def headers(event: str, body: bytes, *, delivery: str | None = None, secret: str = SECRET) -> dict[str, str]:
    """As GitHub sends them."""
    return {
        "User-Agent": "GitHub-Hookshot/044aadd",
        "Accept": "*/*",
        "Content-Type": "application/json",
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": delivery or str(uuid.uuid4()),
        "X-GitHub-Hook-ID": "109948940",
        "X-GitHub-Hook-Installation-Target-ID": "1296269",
        "X-GitHub-Hook-Installation-Target-Type": "repository",
        "X-Hub-Signature": "sha1=" + hmac.new(secret.encode(), body, hashlib.sha1).hexdigest(),
        "X-Hub-Signature-256": signature(body, secret),
    }


async def deliver(
    router: str,
    event: str,
    payload: Any,
    *,
    delivery: str | None = None,
    secret: str = SECRET,
    form: bool = False,
    changed: dict[str, str | None] | None = None,
) -> Answer:
    """One delivery; `changed` headers are others than GitHub sends, or absent."""
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    if form:
        body = urllib.parse.urlencode({"payload": body.decode()}).encode()
    sent = headers(event, body, delivery=delivery, secret=secret)
    if form:
        sent["Content-Type"] = "application/x-www-form-urlencoded"
    for name, value in (changed or {}).items():
        sent.pop(name)
        if value is not None:
            sent[name] = value
    return await request("POST", f"{router}/webhooks/github", raw=body, headers=sent)


def accepted(answer: Answer) -> Answer:
    assert answer.status == 202 and answer.body["status"] == "queued", answer
    return answer
