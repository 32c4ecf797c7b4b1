# SPDX-License-Identifier: Apache-2.0
"""Builds the images of deploy/Containerfile and runs what is in them. Buildah is podman's builder, so .containerignore is read
too. No registry is asked: a Debian that debootstrap unpacks stands for the base images.

Takes minutes, so it is for `scripts/test --full`, as root. The compiler's cache is this machine's."""
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.doors.server.make_repository import Repository, mlp, mlp_answer
from tests.doors.server.rooted import rooted
from tests.doors.server.servers import BUILD, launch, site_packages
from tests.doors.triton.calls import PROTOCOLS, floats, infer

from .container import ROOT, instructions
from .served import certificate, secure_infer, start, wait

TOOLS = ("buildah", "debootstrap", "ccache")
pytestmark = pytest.mark.skipif(not os.environ.get("ANYMPS_FULL_TESTS") or os.geteuid() != 0 or not all(map(shutil.which, TOOLS)),
                                reason=f"for scripts/test --full, as root, with {', '.join(TOOLS)}")
WORK = BUILD / "images"


def run(*command, **more):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-5000:]}"
    return done.stdout.strip()


def buildah(*words):
    driver = "overlay" if "overlay" in Path("/proc/filesystems").read_text() else "vfs"
    environment = {**os.environ, "STORAGE_DRIVER": driver, "BUILDAH_ISOLATION": "chroot", "TMPDIR": str(WORK / "tmp")}
    return run("buildah", "--root", WORK / "store", "--runroot", WORK / "run", *words, env=environment)


def settings_of_this_machine():
    """Options of a build: the way to the package index (a mirror, the certificate of a proxy), and the language of the compiler's
    messages, by which its cache tells entries apart."""
    options = [f"--env={name}={value}" for name, value in os.environ.items() if name == "LANG" or name.startswith("LC_")]
    for name, value in os.environ.items():
        if name.startswith("PIP_"):
            if Path(value).exists():
                options.append(f"--volume={value}:/pip/{name}:ro")
                value = f"/pip/{name}"
            options.append(f"--env={name}={value}")
    return options


def base_images():
    return {rest.split(" AS ")[0] for _, name, rest in instructions() if name == "FROM" and "/" in rest}


@pytest.fixture(scope="module")
def images():
    """{target: the folder that its image is unpacked in}."""
    cache = WORK / "tmp" / "buildah-cache" / "anymps-ccache"
    cache.parent.mkdir(parents=True, exist_ok=True)
    if not cache.exists():
        cache.symlink_to(run("ccache", "--get-config", "cache_dir"))
    debian = WORK / "debian"
    if not (debian / "ready").exists():
        shutil.rmtree(debian, ignore_errors=True)
        run("nice", "debootstrap", "--variant=minbase", "bookworm", debian)
        (debian / "ready").touch()
    try:
        container = buildah("from", "scratch")
        buildah("add", "--quiet", container, debian, "/")
        for name in base_images():
            buildah("commit", "--quiet", container, name)
        for target in ("server", "triton"):
            buildah("build", "--pull-never", "--network=host", "--layers", *settings_of_this_machine(), "-f", ROOT / "deploy" / "Containerfile", "--target", target,
                    "-t", target, ROOT)
        yield {target: Path(buildah("mount", buildah("from", "--pull-never", f"localhost/{target}"))) for target in ("server", "triton")}
    finally:
        buildah("umount", "--all")
        buildah("rm", "--all")
        buildah("rmi", "--all", "--force")


@pytest.fixture
def models(tmp_path):
    repository = Repository(tmp_path / "repository")
    mlp(repository, "m")
    return repository.folder


def test_the_image_serves(images, models, tmp_path):
    """With the arguments and the user that the image has, and files where they say."""
    settings = json.loads(buildah("inspect", "--type", "image", "localhost/server"))["OCIv1"]["config"]
    certificate(tmp_path / "tls")
    for path in (tmp_path, tmp_path / "tls", tmp_path / "tls" / "tls.key"):
        path.chmod(0o755)
    program = [*rooted(images["server"], {models: "/models", tmp_path / "tls": "/tls"}, settings["User"]), *settings["Entrypoint"]]
    server = start("anymps", program, settings["Cmd"], tmp_path / "log", environment={"ANYMPS_API_KEY": "secret"})
    try:
        trust = tmp_path / "tls" / "tls.crt"
        wait(server, trust=trust)
        x = floats(2, 16)
        for protocol in PROTOCOLS:
            y = secure_infer(server, protocol, trust, "m", {"x-api-key": "secret"}, x=x)["y"]
            np.testing.assert_allclose(y, mlp_answer(x), rtol=1e-4, atol=1e-6)
    finally:
        assert server.stop() == 0, server.tail()
    assert "self-test passed" in run(*rooted(images["server"], user=settings["User"]), "/opt/anymps/bin/anymps", "doctor")


def test_tritons_image_has_the_backend(images, models, tmp_path):
    program = [*rooted(images["triton"], {models: "/models", site_packages("triton"): "/wheel"}, "1000"), "/wheel/pytriton/tritonserver/bin/tritonserver",
               "--backend-directory=/opt/tritonserver/backends"]
    for path in (tmp_path, models):
        path.chmod(0o755)
    server = launch("triton", "/models", tmp_path / "log", wait="/v2/health/ready", program=program)
    try:
        x = floats(2, 16)
        np.testing.assert_allclose(infer(server, "m", x=x)["y"], mlp_answer(x), rtol=1e-4, atol=1e-6)
    finally:
        server.stop()
