"""The review's server by plain HTTP: who gets in, what is given out, what is counted."""

import http.client
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from statistics import NormalDist

import numpy as np
import pytest
from PIL import Image

from tests.browsing import Server, serving
from tests.scan_folders import make_scan
from undermargin.review.gate import is_own_host
from undermargin.review.progress import interval, pace, progress
from undermargin.review.selection import Filters, neighbours, select
from undermargin.scans.decisions import Decision, Entry
from undermargin.storage import consent as roots

NASTY = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    root = tmp_path_factory.mktemp("photos")
    for number in range(12):
        name = f"{('cat', NASTY)[number % 2].replace('/', '')}/{number:02}.png"
        (root / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (20, 20), (number * 20, 0, 0)).save(root / "photos" / name)
    (root / "secret.png").write_bytes((root / "photos/cat/00.png").read_bytes())
    return make_scan(root / "photos", root / "scan", flagged=[0, 1, 6, 7, 8])


@pytest.fixture(scope="module")
def server(photos):
    with serving(photos.path) as one:
        yield one


class Client:
    def __init__(self, server, **headers):
        self.server = server
        self.headers = headers

    def ask(self, path, body=None, **headers):
        connection = http.client.HTTPConnection(self.server.host, self.server.port, timeout=60)
        data = None if body is None else json.dumps(body)
        given = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        connection.request("GET" if body is None else "POST", path, data, given)
        response = connection.getresponse()
        found = response.status, response.read(), response.headers
        connection.close()
        return found

    def json(self, path, body=None):
        status, data, _ = self.ask(path, body)
        assert status == 200, data
        return json.loads(data)


@pytest.fixture(scope="module")
def client(server):
    stranger = Client(server)
    _, _, headers = stranger.ask(f"/?token={server.token}")
    return Client(server, Cookie=headers["Set-Cookie"].split(";")[0])


def test_the_address_gives_a_cookie_that_scripts_and_other_sites_cannot_use(server):
    status, page, headers = Client(server).ask(f"/?token={server.token}")
    assert status == 200
    assert b"<main" in page
    assert {"HttpOnly", "SameSite=Strict"} <= {part.strip() for part in headers["Set-Cookie"].split(";")}
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy
    assert b"<script>" not in page  # nothing inline


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/api/samples", "/api/pictures/0/240", "/?token=wrong"])
def test_without_the_token_there_is_nothing_to_see(server, path):
    status, data, headers = Client(server).ask(path)
    assert status == 403
    assert b"Open the address" in data
    assert headers["Set-Cookie"] is None


def test_a_foreign_host_or_origin_is_refused_even_with_the_cookie(client):
    assert client.ask("/api/progress", Host="evil.example")[0] == 403
    assert client.ask("/api/progress", Host=f"evil.example:{client.server.port}")[0] == 403
    assert client.ask("/api/progress", Origin="http://evil.example")[0] == 403
    assert client.ask("/api/progress", Origin="null")[0] == 403
    assert client.ask("/api/progress", Origin="http://localhost:1")[0] == 403  # another page of this machine
    body = {"changes": [{"index": 0, "action": "drop", "seen": 0}]}
    assert client.ask("/api/decisions", body, Origin="http://evil.example")[0] == 403


@pytest.mark.parametrize("host", ["localhost:4711", "127.0.0.1:4711", "[::1]:4711", "localhost"])
def test_a_tunnel_from_any_local_port_works(client, host):
    assert client.ask("/api/progress", Host=host, Origin=f"http://{host}")[0] == 200


def test_hosts_by_what_the_server_was_told():
    assert is_own_host("lab7:8765", "lab7")
    assert not is_own_host("lab8:8765", "lab7")
    assert is_own_host("10.1.2.3:8765", "0.0.0.0")
    assert not is_own_host("evil.example", "0.0.0.0")
    assert not is_own_host("[::1", "127.0.0.1")
    assert not is_own_host("", "127.0.0.1")


@pytest.mark.parametrize(
    "path",
    [
        "/page/../app.py", "/page/..%2fapp.py", "/page/%2e%2e/app.py", "/page//etc/passwd", "/api/pictures/-1/240",
        "/api/pictures/99/240", "/api/pictures/0/99999", "/api/pictures/..%2f..%2fsecret.png/240", "/etc/passwd",
        "/api/samples/99", "/docs", "/openapi.json",
    ],
)  # fmt: skip
def test_nothing_else_is_served(client, path):
    assert client.ask(path)[0] in (400, 404, 422)


def test_a_scan_folder_from_somebody_else_does_not_show_files_outside_the_data(photos, tmp_path):
    for name, source in (("../secret.png", photos.read_json("config.json")["source"]["path"]), ("etc/hostname", "/")):
        other = make_scan_of_somebody(photos, tmp_path / name.replace("/", "_"), name, source)
        with serving(other.path, "--yes") as server:
            _, _, headers = Client(server).ask(f"/?token={server.token}")
            status, data, _ = Client(server, Cookie=headers["Set-Cookie"].split(";")[0]).ask("/api/pictures/0/240")
        assert status == 400
        assert b"not below" in data or b"etc/hostname is another image" in data


def make_scan_of_somebody(photos, out, name, source):
    from dataclasses import replace

    from undermargin.scans.folder import Folder

    folder = Folder(out)
    folder.path.mkdir()
    config = photos.read_json("config.json")
    folder.write_json("config.json", config | {"source": config["source"] | {"path": source}})
    verdicts = photos.verdicts()
    folder.save_verdicts(replace(verdicts, ids=[name, *verdicts.ids[1:]]))
    return folder


def test_data_that_were_not_scanned_here_are_shown_only_when_confirmed(photos, tmp_path):
    other = make_scan_of_somebody(photos, tmp_path / "other", "x", "/")
    words = [sys.executable, "-m", "undermargin", "review", str(other.path), "--no-open", "--port", "0"]
    refused = subprocess.run(words, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: / was not scanned here by this user")
    assert not roots.is_confirmed(other.path, "/")
    Server(other.path, "--yes").stop()
    assert roots.is_confirmed(other.path, "/")
    assert not roots.is_confirmed(photos.path, "/")


def test_images_are_encoded_anew(client):
    status, data, headers = client.ask("/api/pictures/3/240")
    assert (status, headers["Content-Type"], data[:2]) == (200, "image/jpeg", b"\xff\xd8")


def test_samples_come_in_pages_most_suspicious_first(client):
    first = client.json("/api/samples?verdict=flagged&count=2")
    assert (first["num_samples"], [one["index"] for one in first["samples"]]) == (5, [0, 1])
    rest = client.json("/api/samples?verdict=flagged&start=2&count=10")
    assert [one["index"] for one in rest["samples"]] == [6, 7, 8]
    assert client.ask("/api/samples?count=100000")[0] == 422
    sample = first["samples"][0]
    assert (sample["confidence"], sample["verdict"], sample["version"]) == (0.75, "flagged", 0)


def test_a_decision_is_checked_and_counted(client):
    wrong = [
        {"index": 99, "action": "drop", "seen": 0},
        {"index": 0, "action": "relabel", "label": "horse", "seen": 0},
        {"index": 0, "action": "relabel", "seen": 0},
        {"index": 0, "action": "burn", "seen": 0},
    ]
    for change in wrong:
        assert client.ask("/api/decisions", {"changes": [change]}, Content_Type="application/json")[0] in (400, 422)
    assert client.json("/api/progress")["num_decided"] == 0


def test_a_stopped_server_says_how_far_it_came(photos):
    code, said = Server(photos.path, "--json").stop()
    assert code == 0
    assert json.loads(said)["num_flagged"] == 5


@pytest.fixture(scope="module")
def verdicts(photos):
    return photos.verdicts()


def decided(**actions):
    return {int(name[1:]): Entry(1, Decision(action)) for name, action in actions.items()}


def test_filters(verdicts):
    assert select(verdicts, Filters(), {}).tolist() == [0, 1, 6, 7, 8]
    entries = decided(s1="keep", s7="drop", s3="drop") | {8: Entry(2, None)}
    assert select(verdicts, Filters(), entries).tolist() == [0, 6, 8]
    assert select(verdicts, Filters(standing="decided"), entries).tolist() == [1, 7]
    assert select(verdicts, Filters(standing="drop", verdict=None), entries).tolist() == [7, 3]
    assert select(verdicts, Filters(label="cat", standing="any"), {}).tolist() == [6, 7, 8]
    assert select(verdicts, Filters(suggested="cat", standing="any"), {}).tolist() == [0, 1]
    shuffled = select(verdicts, Filters(order="random", verdict=None, standing="any"), {})
    assert sorted(shuffled) == list(range(12))
    flagged = select(verdicts, Filters(order="random", standing="any"), {}).tolist()
    assert flagged == [index for index in shuffled if verdicts.is_flagged[index]]


def test_neighbours_are_kept_samples_of_the_class(verdicts):
    found = neighbours(verdicts, 1, of=6)
    assert len(found) == 3
    assert set(found) == {9, 10, 11}
    assert neighbours(verdicts, 1, of=6) == found


def test_progress_counts_the_flagged_samples(verdicts):
    latest = {0: Decision("keep"), 1: Decision("relabel", "cat"), 6: Decision("drop"), 3: Decision("drop")}
    found = progress(verdicts, latest, [])
    assert (found["num_flagged"], found["num_decided"], found["num_wrong"]) == (5, 3, 2)
    assert found["num_others_decided"] == 1
    assert found["precision"] == pytest.approx(2 / 3)


def test_the_interval_holds_in_nineteen_of_twenty_draws(rng):
    flags = rng.permutation(np.arange(1000) < 700)
    covered = 0
    for _ in range(400):
        drawn = rng.choice(flags, 150, replace=False)
        low, high = interval(int(drawn.sum()), 150, 1000)
        covered += low <= 0.7 <= high
    spread = NormalDist(0.95, (0.95 * 0.05 / 400) ** 0.5)
    assert spread.inv_cdf(0.001) < covered / 400 < spread.inv_cdf(0.999)


def test_the_pace_leaves_pauses_out():
    start = datetime(2026, 1, 1, tzinfo=UTC)
    before = [start + timedelta(seconds=second) for second in range(0, 20, 2)]
    after = [start + timedelta(hours=1, seconds=second) for second in range(0, 60, 5)]
    assert pace(before + after) == pytest.approx(12)
    assert pace(before[:3]) is None
    assert pace([]) is None
