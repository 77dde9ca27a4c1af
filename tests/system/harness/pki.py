"""Certificates as Open vSwitch's own ovs-pki makes them, and unusual ones of OpenSSL."""

import fcntl
import subprocess
import tempfile
from pathlib import Path

LIMIT_S = 60
LOCK = Path(tempfile.gettempdir()) / "bellrock-ovs-pki.lock"


def run(*words, cwd):
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=cwd)
    if done.returncode != 0:
        raise AssertionError(f"`{' '.join(map(str, words))}` failed with {done.returncode}: {done.stderr}")
    return done.stdout


class Pki:
    """An authority of controllers and one of switches, in a directory of the test."""

    def __init__(self, directory):
        self.directory = directory / "pki"
        self.directory.mkdir()
        self._ovs_pki("init")
        self.controller_authority = self.directory / "pki/controllerca/cacert.pem"
        self.switch_authority = self.directory / "pki/switchca/cacert.pem"
        certificate, self.controller_key = self.make("controller", "controller")
        # With its self-signed authority, as switches need it that take their authority from there (--bootstrap).
        self.controller_certificate = self.directory / "controller-chain.pem"
        self.controller_certificate.write_text(certificate.read_text() + self.controller_authority.read_text())

    def _ovs_pki(self, *words):
        log = self.directory / "ovs-pki.log"
        try:
            # ovs-pki names its temporary files by its process id, and tests in namespaces of their own have the same.
            with open(LOCK, "w", encoding="ascii") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                return run("ovs-pki", f"--dir={self.directory}/pki", f"--log={log}", *words, cwd=self.directory)
        except AssertionError as error:
            # What OpenSSL says goes to the log.
            raise AssertionError(f"{error}\n{log.read_text()[-2000:]}") from None

    def make(self, name, kind="switch", unique=True):
        """The certificate and the key of a new pair. With `unique`, ovs-pki adds an id to the name."""
        self._ovs_pki(*([] if unique else ["-u"]), "req+sign", name, kind)
        return self.directory / f"{name}-cert.pem", self.directory / f"{name}-privkey.pem"

    def flags(self):
        """The flags of a controller."""
        return ["--tls-certificate", str(self.controller_certificate), "--tls-key", str(self.controller_key),
                "--tls-ca", str(self.switch_authority)]

    def settings(self, **more):
        """The section `tls` of a configuration file."""
        return {"certificate": str(self.controller_certificate), "key": str(self.controller_key),
                "ca": str(self.switch_authority), **more}

    def openssl(self, *words):
        return run("openssl", *words, cwd=self.directory)

    def request(self, name, *key, subject=None):
        """A key of this kind (options of `openssl req -newkey`), and a request to sign it."""
        key_file, request = self.directory / f"{name}-key.pem", self.directory / f"{name}-req.pem"
        self.openssl("req", "-new", "-nodes", "-newkey", *key, "-keyout", str(key_file), "-out", str(request),
                     "-subj", subject or f"/CN={name}", "-sha256")
        return request, key_file

    def sign(self, name, *key, authority=None, extensions="basicConstraints=CA:FALSE", digest="-sha256", days="30",
             subject=None, period=None):
        """A certificate that OpenSSL signs with the authority of switches, and its key. Without extensions it is of
        version 1. `period`: its first and last second, as `YYYYMMDDhhmmssZ`."""
        request, key_file = self.request(name, *(key or ("rsa:2048",)), subject=subject)
        authority = authority or self.directory / "pki/switchca"
        certificate = self.directory / f"{name}-signed.pem"
        words = ["x509", "-req", "-in", str(request), "-CA", str(authority / "cacert.pem"),
                 "-CAkey", str(authority / "private/cakey.pem"), "-CAcreateserial", "-out", str(certificate), digest]
        if extensions:
            (self.directory / "extensions").write_text(extensions + "\n")
            words += ["-extfile", str(self.directory / "extensions")]
        if period is None:
            self.openssl(*words, "-days", days)
        else:
            self._sign_for(authority, request, certificate, period)
        return certificate, key_file

    def _sign_for(self, authority, request, certificate, period):
        first, last = period
        place = self.directory / f"{certificate.stem}-ca"
        place.mkdir()
        (place / "index.txt").touch()
        (place / "serial").write_text("10\n")
        (place / "ca.cnf").write_text(
            f"[ca]\ndefault_ca=it\n[it]\ndatabase={place}/index.txt\nserial={place}/serial\nnew_certs_dir={place}\n"
            "default_md=sha256\npolicy=any\nunique_subject=no\n[any]\ncommonName=supplied\n")
        self.openssl("ca", "-batch", "-config", str(place / "ca.cnf"), "-in", str(request), "-out", str(certificate),
                     "-cert", str(authority / "cacert.pem"), "-keyfile", str(authority / "private/cakey.pem"),
                     "-startdate", first, "-enddate", last, "-notext", "-extfile", str(self._leaf_extensions()))

    def _leaf_extensions(self):
        path = self.directory / "leaf.cnf"
        path.write_text("basicConstraints=CA:FALSE\n")
        return path

    def revoke(self, *certificates):
        """A list that revokes these certificates of the authority of switches."""
        place = self.directory / "crl"
        place.mkdir(exist_ok=True)
        (place / "index.txt").touch()
        (place / "crlnumber").write_text("01\n")
        (place / "ca.cnf").write_text(
            f"[ca]\ndefault_ca=it\n[it]\ndatabase={place}/index.txt\ncrlnumber={place}/crlnumber\ndefault_md=sha256\n")
        authority = self.directory / "pki/switchca"
        key = ("-cert", str(authority / "cacert.pem"), "-keyfile", str(authority / "private/cakey.pem"))
        for certificate in certificates:
            self.openssl("ca", "-config", str(place / "ca.cnf"), *key, "-revoke", str(certificate))
        path = self.directory / "revoked.pem"
        self.openssl("ca", "-config", str(place / "ca.cnf"), *key, "-gencrl", "-crldays", "30", "-out", str(path))
        return path
