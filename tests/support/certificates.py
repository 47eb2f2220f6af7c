"""Certificates of servers on loopback, for tests that speak TLS."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

from tests.conftest import require
from tests.support.patience import PATIENCE_SECONDS


def own_certificate(folder: Path) -> Path:
    """One that is signed by itself, with its key beside it (`.key`)."""
    openssl = shutil.which("openssl")
    require("openssl", openssl is not None, "install `openssl`")
    place = folder / "server.pem"
    name = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(place.with_suffix(".key")), "-out", str(place)]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    subprocess.run(
        [str(openssl), "req", "-x509", *kind, *name, *files], check=True, timeout=PATIENCE_SECONDS, capture_output=True
    )
    return place


def showing(certificate: Path) -> ssl.SSLContext:
    """What a server protects its connections with that shows this one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    return context
