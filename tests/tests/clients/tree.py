"""Moves trees and files by ftplib.

usage: tree.py HOST PORT USER PASSWORD upload DIR | download DIR | list DIR | rename FROM TO
                                     | put FILE PATH RATE | get PATH FILE RATE

Latin-1 maps every byte to one character, so names travel byte for byte. RATE is bytes per second; 0 goes on with
what is there, at full speed. With FTPS_CERTIFICATE, all of it is under TLS, by a client that trusts this certificate and
insists on resuming its session on every data connection.
"""

import ftplib
import os
import ssl
import sys
import time

BLOCK = 65536


class Resuming(ftplib.FTP_TLS):
    """ftplib has no word for resumption, so programs do this."""

    def ntransfercmd(self, cmd, rest=None):
        conn, size = ftplib.FTP.ntransfercmd(self, cmd, rest)
        if self._prot_p:
            conn = self.context.wrap_socket(conn, server_hostname=self.host, session=self.sock.session)
            if not conn.session_reused:
                raise ssl.SSLError("the data connection is not resumed")
        return conn, size


def connect(host, port, user, password):
    certificate = os.environ.get("FTPS_CERTIFICATE")
    if certificate:
        context = ssl.create_default_context(cafile=certificate)
        ftp = Resuming(encoding="latin-1", timeout=20, context=context)
    else:
        ftp = ftplib.FTP(encoding="latin-1", timeout=20)
    ftp.connect(host, int(port))
    ftp.login(user, password)
    if certificate:
        ftp.prot_p()
    return ftp


def latin(path):
    """A local name as the string ftplib sends."""
    return os.fsencode(path).decode("latin-1")


def upload(ftp, top):
    for folder, _, names in os.walk(os.fsencode(top)):
        below = os.path.relpath(folder, os.fsencode(top)).decode("latin-1")
        remote = "/" if below == "." else "/" + below
        if remote != "/":
            ftp.mkd(remote)
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                ftp.storbinary("STOR " + remote.rstrip("/") + "/" + name.decode("latin-1"), file, BLOCK)


def download(ftp, top, remote="/"):
    local = os.path.join(os.fsencode(top), remote.strip("/").encode("latin-1")) if remote != "/" else os.fsencode(top)
    os.makedirs(local, exist_ok=True)
    for name, facts in list(ftp.mlsd(remote)):
        path = remote.rstrip("/") + "/" + name
        if facts["type"] == "dir":
            download(ftp, top, path)
        elif facts["type"] == "file":
            with open(os.path.join(local, name.encode("latin-1")), "wb") as file:
                ftp.retrbinary("RETR " + path, file.write, BLOCK)


def paced(rate):
    """Returns a callback that keeps the pace."""

    def wait(block):
        if rate:
            time.sleep(len(block) / rate)

    return wait


def put(ftp, local, remote, rate):
    with open(local, "rb") as file:
        start = None
        if not rate:
            start = ftp.size(remote)
            file.seek(start)
        ftp.storbinary("STOR " + remote, file, BLOCK, callback=paced(rate), rest=start)


def get(ftp, remote, local, rate):
    pace = paced(rate)
    start = None if rate else os.path.getsize(local)
    with open(local, "wb" if rate else "ab") as file:

        def keep(block):
            file.write(block)
            file.flush()
            pace(block)

        ftp.retrbinary("RETR " + remote, keep, BLOCK, rest=start)


def main():
    host, port, user, password, task, *words = sys.argv[1:]
    ftp = connect(host, port, user, password)
    if task == "upload":
        upload(ftp, words[0])
    elif task == "download":
        ftp.voidcmd("TYPE I")
        download(ftp, words[0])
    elif task == "list":
        ftp.cwd(words[0])
        for name in ftp.nlst():
            sys.stdout.buffer.write(name.encode("latin-1") + b"\n")
    elif task == "rename":
        ftp.rename(words[0], words[1])
    elif task == "put":
        ftp.voidcmd("TYPE I")
        put(ftp, words[0], words[1], int(words[2]))
    elif task == "get":
        get(ftp, words[0], words[1], int(words[2]))
    ftp.quit()


main()
