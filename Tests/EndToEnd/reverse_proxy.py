"""nginx and Caddy in front of a Router, set up as docs/security.md tells."""

import datetime
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from processes import PATIENCE_SECONDS, ROOT, free_port

#: The name in the guide.
NAME = "music.example"
GUIDE = ROOT / "docs" / "security.md"


def settings_in_guide(language: str) -> str:
    """The one block of that language."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1, f"{GUIDE} has {len(blocks)} blocks of {language}"
    return blocks[0]


def replaced(text: str, **replacements: str) -> str:
    """Every one has to be there."""
    for old, new in replacements.values():
        assert old in text, f"{old!r} is not in the guide's text:\n{text}"
        text = text.replace(old, new)
    return text


class ReverseProxy:
    """One of the two, on a port of its own, with a certificate of its own."""

    def __init__(self, kind: str, folder: Path, router: str) -> None:
        self._folder = folder
        self._router = router
        self.port = free_port()
        make_certificate(folder)
        self._command = self._nginx() if kind == "nginx" else self._caddy()
        self._process: subprocess.Popen | None = None

    @property
    def url(self) -> str:
        return f"https://{NAME}:{self.port}"

    @property
    def tls(self) -> ssl.SSLContext:
        """Trusts its certificate and no other."""
        return ssl.create_default_context(cafile=self._folder / "certificate.pem")

    def _nginx(self) -> list[str]:
        servers = replaced(
            settings_in_guide("nginx"),
            port=("listen 443", f"listen 127.0.0.1:{self.port}"),
            certificate=("/etc/letsencrypt/live/music.example/fullchain.pem", f"{self._folder}/certificate.pem"),
            key=("/etc/letsencrypt/live/music.example/privkey.pem", f"{self._folder}/key.pem"),
            router=("127.0.0.1:8080", self._router),
        )
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        folders = "\n".join(f"{kind}_temp_path {self._folder}/{kind};" for kind in kinds)
        # As root its workers would be nobody, who cannot write into pytest's folders.
        user = "user root;" if os.geteuid() == 0 else ""
        (self._folder / "nginx.conf").write_text(
            f"daemon off; pid {self._folder}/pid; {user}\nevents {{}}\n"
            f"http {{ access_log off;\n{folders}\n{servers} }}\n"
        )
        return [
            shutil.which("nginx"),
            "-e",
            f"{self._folder}/log",
            "-p",
            str(self._folder),
            "-c",
            f"{self._folder}/nginx.conf",
        ]

    def _caddy(self) -> list[str]:
        sites = replaced(
            settings_in_guide("caddy"),
            site=(f"{NAME} {{", f"{self.url} {{\n  tls {self._folder}/certificate.pem {self._folder}/key.pem"),
            router=("127.0.0.1:8080", self._router),
        )
        # It would wait for streams that never end.
        options = "admin off\nauto_https disable_redirects\ngrace_period 1s"
        (self._folder / "Caddyfile").write_text(f"{{\n{options}\n}}\n{sites}")
        return [shutil.which("caddy"), "run", "--adapter", "caddyfile", "--config", f"{self._folder}/Caddyfile"]

    def __enter__(self) -> "ReverseProxy":
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self._folder)},
            )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._is_open():
            ended = self._process.poll() is not None
            assert not ended and time.monotonic() < deadline, (self._folder / "log").read_text()
            time.sleep(0.02)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process
        self._process.terminate()
        self._process.wait(PATIENCE_SECONDS)

    def _is_open(self) -> bool:
        with socket.socket() as trial:
            return trial.connect_ex(("127.0.0.1", self.port)) == 0


def is_there(kind: str) -> bool:
    return shutil.which(kind) is not None


def make_certificate(folder: Path) -> None:
    """For the name, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
