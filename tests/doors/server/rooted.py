# SPDX-License-Identifier: Apache-2.0
"""Runs a server with another folder as its root, so that it finds there what an image has, and nothing of this machine."""
import os
import shlex
import subprocess
from pathlib import Path

UNSHARE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]


def possible():
    return subprocess.run([*UNSHARE, "true"], capture_output=True).returncode == 0


def rooted(root, binds=None, user=None):
    """The words before a command that run it in `root`; binds: {folder here: folder there}. They become the command itself, so
    that signals reach it; the mounts end with it."""
    lines = ["set -e"]
    for source, target in {"/dev": "/dev", "/proc": "/proc", **(binds or {})}.items():
        place = Path(f"{root}{target}")
        place.mkdir(parents=True, exist_ok=True)
        lines.append(f"mount --rbind {shlex.quote(str(source))} {shlex.quote(str(place))}")
    who = f"--userspec={user}:{user} " if user else ""
    lines.append(f'exec chroot {who}{shlex.quote(str(root))} "$@"')
    return [*UNSHARE, "sh", "-c", "\n".join(lines), "rooted"]
