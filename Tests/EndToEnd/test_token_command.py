"""`Router token`, and what the Router does not start with."""

import re
import subprocess
import time

import jwt
import pytest

from client import bearer, request
from inbox import PATIENCE_SECONDS
from processes import BINARIES, Antiphon


def router(*arguments: str) -> subprocess.CompletedProcess:
    """Runs the program to its end."""
    return subprocess.run([BINARIES / "Router", *arguments], capture_output=True, text=True, timeout=60)


def test_the_program_makes_tokens_and_keys(tmp_path):
    files = {name: str(tmp_path / name) for name in ("secret", "key", "public")}
    assert router("token", "secret", files["secret"]).returncode == 0
    assert router("token", "keys", files["key"], files["public"]).returncode == 0
    modes = {name: oct((tmp_path / name).stat().st_mode & 0o777) for name in files}
    assert modes == {"secret": "0o600", "key": "0o600", "public": "0o644"}
    before = (tmp_path / "secret").read_bytes()
    again = router("token", "secret", files["secret"])
    assert again.returncode != 0 and files["secret"] in again.stderr and (tmp_path / "secret").read_bytes() == before

    claims = ["--session", "guild-*", "--session", "b", "--scope", "control", "--expires", "15m", "--subject", "Ann"]
    for key, verifier, algorithm in (
        (["--token-secret-file", files["secret"]], before.decode().strip(), "HS256"),
        (["--token-private-key-file", files["key"]], (tmp_path / "public").read_text(), "EdDSA"),
    ):
        made = router("token", "create", *claims, *key)
        assert made.returncode == 0 and made.stderr == "" and made.stdout.count("\n") == 1
        read = jwt.decode(made.stdout.strip(), verifier, [algorithm], options={"require": ["exp", "iat", "sub"]})
        assert read["session"] == ["guild-*", "b"] and read["scope"] == ["control"] and read["sub"] == "Ann"
        assert read["exp"] - read["iat"] == 900 and abs(read["iat"] - time.time()) < 60


async def test_the_programs_tokens_are_taken(guarded, mint, new_session):
    session = new_session()
    url = f"{guarded.router.url}/api/v1/sessions/{session}/queue"
    for key in (
        ("--token-secret-file", mint.secret_file),
        ("--token-private-key-file", mint.private_key_file),
    ):
        made = router("token", "create", "--session", session, "--scope", "listen", "--expires", "1h", *map(str, key))
        token = mint.keep(made.stdout.strip())
        assert (await request("GET", url, headers=bearer(token))).status == 200
        assert (await request("DELETE", url, headers=bearer(token))).status == 403


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--session", "a b"], "no session pattern"),
        (["--scope", "dance"], "dance"),
        (["--expires", "30"], "no duration"),
        (["--expires", "0d"], "no duration"),
        (["--expires", "4000d"], "no duration"),
        (["--expires", "-1h"], "--expires"),
        (["--token-private-key-file", "KEY"], "give one of"),
        (["--subject", "x" * 5_000], "has"),
    ],
    ids=str,
)
def test_the_program_says_what_is_wrong_with_a_token(mint, change, words):
    base = {"--session": "a", "--scope": "listen", "--expires": "1h", "--token-secret-file": str(mint.secret_file)}
    base |= dict([change])
    made = router("token", "create", *(part for pair in base.items() for part in pair))
    assert made.returncode != 0 and made.stdout == "" and words in made.stderr, made


def test_the_program_does_not_start_with_what_protects_nothing(tmp_path, mint):
    """It says which file or address, and what to do."""
    listening = ["--engine-socket", str(tmp_path / "none.sock"), "--listen"]
    short, open_to_all, pem = tmp_path / "short", tmp_path / "open", tmp_path / "pem"
    for path, text, mode in ((short, "k" * 31, 0o600), (open_to_all, mint.secret, 0o644)):
        path.write_text(text)
        path.chmod(mode)
    pem.write_bytes(mint.public_pem)
    pem.chmod(0o600)
    for arguments, words in (
        ([*listening, "0.0.0.0:0"], ["0.0.0.0", "--token-secret-file", "--anonymous"]),
        ([*listening, "127.0.0.1:0", "--token-secret-file", str(short)], [str(short), "31 bytes", "32"]),
        ([*listening, "127.0.0.1:0", "--token-secret-file", str(open_to_all)], [f"chmod 600 {open_to_all}"]),
        ([*listening, "127.0.0.1:0", "--token-secret-file", str(pem)], [str(pem), "--token-public-key-file"]),
        ([*listening, "127.0.0.1:0", "--token-secret-file", str(tmp_path / "no")], [str(tmp_path / "no")]),
        ([*listening, "127.0.0.1:0", "--token-public-key-file", str(mint.secret_file)], [str(mint.secret_file)]),
        ([*listening, "127.0.0.1:0", "--token-public-key-file", str(mint.private_key_file)], ["-pubout"]),
    ):
        ended = router(*arguments)
        assert ended.returncode != 0 and all(word in ended.stderr for word in words), ended
        assert mint.secret not in ended.stderr


async def test_a_router_beyond_loopback_starts_with_a_secret(tmp_path, media, mint):
    with Antiphon(tmp_path, media.root) as antiphon:
        options = ["--engine-socket", antiphon.socket, *mint.options, "--listen", "0.0.0.0:0"]
        process = subprocess.Popen(
            [BINARIES / "Router", *options], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        try:
            address = next(
                found for line in process.stderr if (found := re.search(r"listening on http://([^/]+)", line))
            )
            port = address.group(1).rpartition(":")[2]
            url = f"http://127.0.0.1:{port}/api/v1/me"
            assert (await request("GET", url)).status == 401
            assert (await request("GET", url, headers=bearer(mint.token()))).status == 200
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE_SECONDS)
