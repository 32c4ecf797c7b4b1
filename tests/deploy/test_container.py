# SPDX-License-Identifier: Apache-2.0
"""deploy/Containerfile: what it copies is there and is sent, its images have versions, and its stages fit."""
import re
import subprocess

import pytest

from .container import IMAGE, ROOT, ignore_rules, instructions, is_sent

KNOWN = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "ENTRYPOINT", "CMD"}


def version():
    return re.search(r"project\(anymps VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def test_instructions_and_stages():
    stages = []
    for stage, name, rest in instructions():
        assert name in KNOWN, name
        if name == "FROM":
            source = rest.split(" AS ")[0]
            assert source in stages or IMAGE.fullmatch(source), f"{source}: an image has a registry, a name and a tag"
            assert not source.endswith(":latest"), source
            stages.append(stage)
        if name == "COPY":
            words = rest.split()
            if words[0].startswith("--from="):
                assert words[0].removeprefix("--from=") in stages
            else:
                assert all((ROOT / w).exists() and (w == "." or is_sent(w)) for w in words[:-1]), rest
    assert {"server", "triton"} <= set(stages)


def test_what_is_copied_from_a_stage_is_made_there():
    """Prefixes that the build stage installs into, and those that the others take from it."""
    made = {p for stage, name, rest in instructions() if (stage, name) == ("build", "RUN") for p in re.findall(r"--prefix (\S+)", rest)}
    taken = {rest.split()[1] for _, name, rest in instructions() if name == "COPY" and rest.startswith("--from=build")}
    assert made and taken
    assert all(any(path == prefix or path.startswith(prefix + "/") for prefix in made) for path in taken), (made, taken)


@pytest.mark.parametrize("stage", ["server", "triton"])
def test_an_image_runs_as_nobody_special(stage):
    mine = [(name, rest) for s, name, rest in instructions() if s == stage]
    users = [rest for name, rest in mine if name == "USER"]
    assert users and users[-1].isdigit() and int(users[-1]) > 0, "a number: Kubernetes checks runAsNonRoot by it"
    after = [name for name, _ in mine[max(i for i, (name, _) in enumerate(mine) if name == "USER"):]]
    assert "RUN" not in after and "COPY" not in after


def test_images_of_ours_have_the_projects_version():
    text = "".join((ROOT / name).read_text() for name in ("deploy/Containerfile", "docs/guides/scale_out.md"))
    tags = re.findall(r"\banymps-(?:server|triton)(:[\w.]+)?(?=[\s`]|$)(?<!\.)", text)
    built = re.findall(r"-t (\S*anymps-\w+\S*)", text)
    assert len(built) >= 4 and all(name.endswith(f":{version()}") for name in built), built
    assert f":{version()}" in tags


# --- what is sent ---


def test_both_lists_are_the_same():
    """Podman reads .containerignore first, Docker .dockerignore alone."""
    assert (ROOT / ".containerignore").read_text() == (ROOT / ".dockerignore").read_text()


@pytest.mark.parametrize("path", [".git/HEAD", ".venvs/engine/pyvenv.cfg", ".models/mobilenet_v2.onnx", "build/bin/anymps", "build-asan/x", ".cache/x",
                                  "backends/metal_mps/build/CMakeCache.txt", "doors/executorch/mv2.pte", "doors/executorch/cmake-out/x",
                                  "doors/python/__pycache__/a.pyc", "tests/fuzz/corpus/x", "docs/x.md", "core.123", "repository/m/1/model.onnx",
                                  "tls/tls.key"])
def test_is_not_sent(path):
    assert not is_sent(path)


@pytest.mark.parametrize("rules, path, sent", [(["*", "!src"], "src/a.cc", True), (["*", "!src"], "srcs/a.cc", False),
                                               (["*", "!src", "**/build"], "src/build/x", False), (["**/*.pte"], "a.pte", False),
                                               (["build"], "src/build/x", True)])
def test_how_rules_are_read(rules, path, sent):
    assert is_sent(path, rules) == sent


@pytest.mark.skipif(not (ROOT / "build" / "build.ninja").exists(), reason="build/ is not made with Ninja")
def test_what_the_build_reads_is_sent():
    """Every file of the repository that the installed programs are made from, as the build has noted them."""
    def ninja(*words):
        return subprocess.run(["ninja", "-C", ROOT / "build", *words], capture_output=True, text=True, check=True).stdout

    read = set(re.findall(r"^    (?:\| )?(\S+)$", ninja("-t", "query", "build.ninja"), re.M))  # CMake's own files
    outputs = {}
    for line in ninja("-t", "deps").splitlines():
        if line and line[0] != " ":
            target = line.split(": #deps")[0]
        elif line:
            outputs.setdefault(target, set()).add(line.strip())
    for target, files in outputs.items():
        if not target.startswith(("tests/", "bench/", "examples/", "doors/python", "doors/executorch")):
            read |= files
    inside = {str((ROOT / "build" / name).resolve().relative_to(ROOT)) for name in read if (ROOT / "build" / name).resolve().is_relative_to(ROOT)}
    inside = {name for name in inside if not name.startswith(("build/", ".venvs/", "tests/", "bench/", "examples/", "docs/"))}  # pages: for tests
    assert {"CMakeLists.txt", "include/anymps/anymps.h", "doors/triton/backend.cc"} <= inside and len(inside) > 300
    assert not {name for name in inside if not is_sent(name)}


def test_every_rule_names_something():
    for rule in ignore_rules():
        if rule.startswith("!"):
            assert (ROOT / rule[1:]).exists(), rule
