# SPDX-License-Identifier: Apache-2.0
"""scripts/sync_requests.py against a stand-in for GitHub, in this process, which has loaded PyTorch already."""

import importlib.util
import json
import sys
import time

import pytest
import yaml

SYNC = "--issues 77764 141287 --out ops/targets.yaml"


@pytest.fixture
def sync(folder, github, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("sync_requests", folder / "scripts" / "sync_requests.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(script.time, "sleep", lambda seconds: None)

    def start(options=SYNC, ok=True, token="secret"):
        monkeypatch.setenv("GITHUB_API_URL", github.url)
        monkeypatch.setenv("GH_TOKEN", token)
        monkeypatch.setattr(sys, "argv", ["sync_requests.py", *options.split()])
        if ok:
            script.main()
        else:
            with pytest.raises(SystemExit) as ended:
                script.main()
            print(ended.value)
        said = capsys.readouterr()
        return said.out + said.err, folder / "ops" / "targets.yaml"

    return start


def ops_of(path):
    return {entry["op"]: entry for entry in yaml.safe_load(path.read_text())["ops"]}


def test_what_is_asked_for(sync, github):
    said, made = sync()
    ops = ops_of(made)
    assert list(ops) == ["isin", "index_copy", "angle", "linalg_qr"]  # by demand, then by name
    # Two comments, nine reactions that agree; neither what a bot says nor what is quoted.
    assert ops["isin"]["demand"] == 11 and ops["angle"]["demand"] == 1 and ops["index_copy"]["demand"] == 2
    assert ops["isin"]["links"] == [f"https://github.com/pytorch/pytorch/issues/77764#issuecomment-{n}" for n in (1, 2)]
    assert ops["isin"]["shapes"] == [[4, 256]] and ops["isin"]["dtypes"] == ["float32", "int64"]
    assert ops["index_copy"]["shapes"] == [[64, 32]] and ops["index_copy"]["dtypes"] == ["float16"]
    assert ops["linalg_qr"]["shapes"] == [[32, 32]]
    version = yaml.safe_load(made.read_text())["made"]
    assert version["torch"] and version["os"] and version["issues"] == [77764, 141287] and version["problems"] == []
    # An issue, three pages of two comments; an issue, one page.
    assert len(github.requests) == 6
    assert all(headers["Authorization"] == "Bearer secret" for _, headers in github.requests)
    assert "secret" not in said + made.read_text()


def test_unchanged_pages_are_not_sent_again(sync, github):
    _, made = sync()
    first = ops_of(made)
    github.requests.clear()
    sync()
    assert ops_of(made) == first
    assert len(github.requests) == 6 and all("If-None-Match" in headers for _, headers in github.requests)


def test_no_token(sync, github):
    said, made = sync(token="")
    assert "GH_TOKEN is not set" in said and "isin" in ops_of(made)
    assert all("Authorization" not in headers for _, headers in github.requests)


@pytest.mark.parametrize("answers", [
    [(502, {})],
    [(429, {"Retry-After": "0"})],
    [(403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "0"}), (500, {})],
])  # fmt: skip
def test_what_passes_is_tried_again(sync, github, answers):
    github.scripted += answers
    said, made = sync()
    assert "again in" in said and ops_of(made)["isin"]["demand"] == 11


def test_a_limit_that_lasts(sync, github):
    later = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 5000)}
    github.scripted.append((403, later))
    said, made = sync()
    assert "403" in said and "limit of requests" in said
    assert set(ops_of(made)) == {"index_copy"}  # of the other issue
    (problem,) = yaml.safe_load(made.read_text())["made"]["problems"]
    assert "77764" in problem


def test_an_issue_that_is_not_there(sync):
    said, made = sync(SYNC.replace("141287", "1"))
    assert "HTTP 404" in said and "issues/1" in said and "isin" in ops_of(made)


def test_nobody_answers(sync, github, folder):
    (folder / "ops" / "targets.yaml").write_text("as it was")
    github.close()
    said, made = sync(SYNC + " --tries 1", ok=False)
    assert "nothing was read" in said and "ConnectionError" in said and made.read_text() == "as it was"


def test_saved_comments(sync, folder, github):
    sync(SYNC + " --save saved.json")
    online = ops_of(folder / "ops" / "targets.yaml")
    github.close()
    sync("--from-file saved.json --out again.yaml")
    assert ops_of(folder / "again.yaml") == online
    (folder / "broken.json").write_text("{")
    said, _ = sync("--from-file broken.json saved.json --out again.yaml")
    assert "broken.json" in said and ops_of(folder / "again.yaml") == online
    assert json.loads((folder / "saved.json").read_text())[1]["body"]
