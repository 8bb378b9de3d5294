"""A certificate for 127.0.0.1 of the tests' own: discord.py speaks to voice servers over TLS alone."""

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Certificate:
    """Signs itself. `path` is what a client must trust, for example as SSL_CERT_FILE."""

    def __init__(self, folder: Path) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fake Discord")])
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
            )
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(key, hashes.SHA256())
        )
        self.path = folder / "fake-discord.pem"
        self.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        key_path = folder / "fake-discord.key"
        key_path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        self.server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server_context.load_cert_chain(self.path, key_path)

    def client_context(self) -> ssl.SSLContext:
        """Trusts this certificate and no other."""
        return ssl.create_default_context(cafile=str(self.path))
