"""Tokens as an identity provider makes them (PyJWT and cryptography), and the files a Router has for them."""

import secrets
import time
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


class Mint:
    """A secret and a key pair in files, and tokens made with them, which are kept to be looked for in logs."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.secret = secrets.token_urlsafe(64)
        self.secret_file = folder / "token.secret"
        self.secret_file.touch(mode=0o600)
        self.secret_file.write_text(self.secret + "\n")
        self.private_key = Ed25519PrivateKey.generate()
        self.public_pem = self.private_key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.public_key_file = folder / "token.pub"
        self.public_key_file.write_bytes(self.public_pem)
        self.private_key_file = folder / "token.key"
        self.private_key_file.touch(mode=0o600)
        self.private_key_file.write_bytes(
            self.private_key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        self.made: list[str] = []

    @property
    def options(self) -> tuple[str, ...]:
        return ("--token-secret-file", str(self.secret_file), "--token-public-key-file", str(self.public_key_file))

    def token(
        self,
        session: str | list[str] = "*",
        scope: str | list[str] = "admin",
        *,
        seconds: float = 600,
        algorithm: str = "HS256",
        key: Any = None,
        **claims: Any,
    ) -> str:
        """A token; `key` in place of the mint's own."""
        if key is None:
            key = {"HS256": self.secret, "HS512": self.secret, "EdDSA": self.private_key, "none": None}[algorithm]
        claims = {"session": session, "scope": scope, "exp": time.time() + seconds} | claims
        return self.keep(jwt.encode(claims, key, algorithm))

    def keep(self, secret: str) -> str:
        self.made.append(secret)
        return secret
