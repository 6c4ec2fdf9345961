"""The data layer of a real node: objects in shared memory and on disk, over HTTP, by mapping, and inside sandboxes."""

import base64
import hashlib
import json
import mmap
import pathlib
import socket
import subprocess
import sys
import threading

import numpy
import pytest

from conftest import BUILD, ROOT, eventually

sys.path.append(str(ROOT / "python"))
import fairlead  # noqa: E402

MIB = 1 << 20


def body(index, size):
    """Bytes that differ for every index."""
    seed = hashlib.blake2b(str(index).encode()).digest()
    return (seed * (size // len(seed) + 1))[:size]


def put(node, key, data, query="", tenant=None):
    headers = {"X-Fairlead-Tenant": tenant} if tenant else {}
    status, _, answer = node.call("PUT", f"/v1/objects/{key}{query}", data, headers)
    return status, json.loads(answer)


def get(node, key, query="", tenant=None):
    headers = {"X-Fairlead-Tenant": tenant} if tenant else {}
    status, _, answer = node.call("GET", f"/v1/objects/{key}{query}", headers=headers)
    return status, answer


def info(node, key):
    return json.loads(get(node, key, "?info")[1])


def test_put_get_list_delete(start_node):
    node = start_node()
    status, put_answer = put(node, "models/bert/v1", b"weights")
    assert status == 201
    assert put_answer["content"] == hashlib.blake2b(b"weights", digest_size=32).hexdigest()
    assert get(node, "models/bert/v1") == (200, b"weights")
    assert get(node, "models%2Fbert%2Fv1") == (200, b"weights")
    status, headers, answer = node.call("HEAD", "/v1/objects/models/bert/v1")
    assert (status, headers["X-Fairlead-Object-Bytes"], answer) == (200, "7", b"")
    put(node, "models/bert/v2", b"other")
    put(node, "else", b"")
    listed = json.loads(node.call("GET", "/v1/objects?prefix=models/&limit=1")[2])
    assert [entry["key"] for entry in listed["objects"]] == ["models/bert/v1"]
    after = json.loads(node.call("GET", f"/v1/objects?prefix=models/&after={listed['next_after']}")[2])
    assert [entry["key"] for entry in after["objects"]] == ["models/bert/v2"]
    assert node.call("DELETE", "/v1/objects/models/bert/v1")[0] == 204
    assert get(node, "models/bert/v1")[0] == 404
    assert node.status()["objects"]["count"] == 2
    assert 'fairlead_objects 2' in node.call("GET", "/metrics")[2].decode()


def test_objects_do_not_change_and_tenants_do_not_see_each_other(start_node):
    node = start_node()
    assert put(node, "a", b"first")[0] == 201
    status, answer = put(node, "a", b"second")
    assert status == 409 and "objects do not change" in answer["Message"]
    assert get(node, "a", tenant="acme")[0] == 404
    assert put(node, "a", b"acme's", tenant="acme")[0] == 201
    assert get(node, "a") == (200, b"first")


@pytest.mark.parametrize("key", ["..%2Fescape", "a//b", "a%20b", "%2e%2e/x", "x" * 257, "a%0Ab"])
def test_bad_keys_are_refused(shared_node, key):
    status, answer = put(shared_node, key, b"x")
    assert status == 400 and "key" in answer["Message"], answer


@pytest.mark.parametrize("path, word", [
    ("/v1/objects/a?wait=soon", "wait"), ("/v1/objects/a?wait=-1", "wait"), ("/v1/objects?limit=0", "limit"),
])
def test_bad_numbers_are_named(shared_node, path, word):
    status, _, answer = shared_node.call("GET", path)
    assert status == 400 and word in json.loads(answer)["Message"]


def test_bad_tenants_and_oversize_are_refused(shared_node):
    assert put(shared_node, "a", b"x", tenant="../etc")[0] == 400
    status, answer = put(shared_node, "large", bytes(64 * MIB + 1))
    assert status == 413 and "?create=BYTES" in answer["Message"]


def test_a_large_object_is_pending_until_all_of_it_has_come(start_node):
    node = start_node()
    content = body("large", 8 * MIB)
    head = f"PUT /v1/objects/large HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n\r\n".encode()

    def state():
        return json.loads(node.call("GET", "/v1/objects/large?info")[2]).get("state")

    with socket.create_connection((node.host, node.port)) as leaves:
        leaves.sendall(head + content[:5 * MIB])
        eventually(lambda: state() == "pending")
    eventually(lambda: state() == "failed")
    assert node.status()["objects"]["memory_bytes"] == 0
    with socket.create_connection((node.host, node.port)) as stays:
        stays.sendall(head + content + b"GET /v1/objects/large HTTP/1.1\r\nConnection: close\r\n\r\n")  # the next behind the body
        answers = b"".join(iter(lambda: stays.recv(1 << 20), b""))
    assert answers.startswith(b"HTTP/1.1 201")
    assert get(node, "large") == (200, content)


def test_written_by_mapping(start_node):
    node = start_node()
    size = 80 * MIB  # more than a body may have
    status, _, answer = node.call("POST", f"/v1/objects/mapped?create={size}")
    assert status == 201, answer
    with open(json.loads(answer)["path"], "r+b") as file, mmap.mmap(file.fileno(), size) as memory:
        memory[:4] = b"head"
        memory[-4:] = b"tail"
    waiting = []
    reader = threading.Thread(target=lambda: waiting.append(get(node, "mapped", "?wait=30")))
    reader.start()
    assert node.call("POST", "/v1/objects/mapped?seal")[0] == 200
    reader.join()
    assert waiting[0][0] == 413 and b"map the file" in waiting[0][1]
    path = pathlib.Path(info(node, "mapped")["path"])
    assert path.stat().st_mode & 0o777 == 0o444
    sealed = path.read_bytes()
    assert (len(sealed), sealed[:4], sealed[-4:]) == (size, b"head", b"tail")


def part(node, key, asked):
    status, headers, answer = node.call("GET", f"/v1/objects/{key}", headers={"Range": asked})
    return status, headers.get("Content-Range"), answer


def make_large(node, key, size):
    """By mapping, of bytes that say where they are."""
    made = json.loads(node.call("POST", f"/v1/objects/{key}?create={size}")[2])
    contents = numpy.arange(size // 8, dtype="u8").tobytes()
    with open(made["path"], "r+b") as file:
        file.write(contents)
    assert node.call("POST", f"/v1/objects/{key}?seal")[0] == 200
    return contents


def read_in_parts(node, key, tmp_path):
    """By the command and by Python, neither of them by mapping."""
    file = tmp_path / "read"
    subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, "object", "get", key, "-o", file], check=True, timeout=120)
    with fairlead.Client(node.endpoint) as client:
        by_python = fairlead.objects.Objects(client, mapped_from=1 << 50).get(key)
    assert file.read_bytes() == by_python
    return by_python


def test_what_is_larger_than_a_body_is_read_in_parts(start_node, tmp_path):
    node = start_node()
    size = 80 * MIB
    contents = make_large(node, "large", size)
    assert part(node, "large", "bytes=8-15") == (206, f"bytes 8-15/{size}", contents[8:16])
    status, where, answer = part(node, "large", "bytes=100-")  # no more than 64 MiB at once
    assert (status, where) == (206, f"bytes 100-{64 * MIB + 99}/{size}") and answer == contents[100:64 * MIB + 100]
    assert part(node, "large", "bytes=-5")[1:] == (f"bytes {size - 5}-{size - 1}/{size}", contents[-5:])
    assert part(node, "large", f"bytes={size}-")[0] == 416
    status, _, answer = part(node, "large", "pages=1-2")
    assert status == 413 and b"header Range" in answer
    assert read_in_parts(node, "large", tmp_path) == contents
    put(node, "none", b"")
    assert read_in_parts(node, "none", tmp_path) == b""


def test_large_objects_on_disk_and_on_a_device_are_read_in_parts(start_node, tmp_path):
    node = start_node("--object-memory", "100MiB")
    contents = make_large(node, "spilled", 72 * MIB)
    assert put(node, "other", body(0, 50 * MIB))[0] == 201
    eventually(lambda: info(node, "spilled")["state"] == "spilled")
    assert read_in_parts(node, "spilled", tmp_path) == contents
    size = 70 * MIB
    task = {"buffers": {"y": {"role": "output", "bytes": size, "zeroed": True}, "x": {"role": "input", "type": "f32", "shape": [256]}},
            "kernels": [{"module": "k.ptx", "kernel": "scale", "grid": [1], "block": [256],
                         "arguments": [{"buffer": "x"}, {"buffer": "y", "offset": size - 1024}, {"f32": 2.0}]}]}
    kernels = base64.b64encode((ROOT / "src/runtime/device_server/testing/kernels.ptx").read_bytes()).decode()
    document = {"task": task, "files": {"k.ptx": kernels},
                "call": {"inputs": {"x": list(range(256))}, "outputs": {"y": {"key": "made"}}}}
    status, _, answer = node.call("POST", "/v1/ktasks", json.dumps(document))
    assert status == 200 and info(node, "made")["state"] == "on-device", answer
    made = read_in_parts(node, "made", tmp_path)
    assert made == bytes(size - 1024) + (2 * numpy.arange(256, dtype="f")).tobytes()


def test_a_reader_waits_for_a_future(start_node):
    node = start_node()
    _, _, answer = node.call("POST", "/v1/objects/future?create=6")
    assert get(node, "future")[0] == 504
    assert get(node, "future", "?wait=0.05")[0] == 504
    got = []
    readers = [threading.Thread(target=lambda: got.append(get(node, "future", "?wait=60"))) for _ in range(3)]
    for reader in readers:
        reader.start()
    pathlib.Path(json.loads(answer)["path"]).write_bytes(b"now it")
    assert node.call("POST", "/v1/objects/future?seal")[0] == 200
    for reader in readers:
        reader.join()
    assert got == [(200, b"now it")] * 3


def test_memory_pressure_spills_and_reads_back(start_node):
    node = start_node("--object-memory", "4MiB")
    for index in range(12):
        assert put(node, f"o/{index}", body(index, MIB))[0] == 201
    usage = node.status()["objects"]
    assert usage["spilled_bytes"] >= 8 * MIB and usage["memory_bytes"] <= 4 * MIB
    for _ in range(2):
        for index in range(12):
            assert get(node, f"o/{index}") == (200, body(index, MIB))
    usage = node.status()["objects"]
    assert usage["reads_back"] >= 8 and usage["memory_bytes"] <= 4 * MIB


def test_limits_are_named(start_node):
    node = start_node("--object-memory", "4MiB", "--object-spill", "2MiB", "--object-quota", "5MiB")
    status, answer = put(node, "large", bytes(5 * MIB))
    assert status == 413 and "--object-memory" in answer["Message"]
    for index in range(5):
        assert put(node, f"o/{index}", body(index, MIB))[0] == 201
    status, answer = put(node, "more", body(9, MIB))
    assert status == 429 and "quota of 5242880" in answer["Message"]
    assert put(node, "other", body(8, MIB), tenant="other")[0] == 201
    status, answer = put(node, "full", body(7, MIB), tenant="other")
    assert status == 429 and "--object-spill" in answer["Message"]
    for index in range(5):
        assert get(node, f"o/{index}") == (200, body(index, MIB))


def test_every_acknowledged_object_survives_kill_9(start_node):
    for round_number in range(3):
        node = start_node("--object-memory", "8MiB", keep_state=round_number > 0)
        acknowledged = []

        def writer(name):
            try:
                for index in range(10_000):
                    key = f"r{round_number}/{name}/{index}"
                    if put(node, key, body(key, 64 * 1024 + index))[0] == 201:
                        acknowledged.append((key, 64 * 1024 + index))
            except OSError:
                pass  # the node was killed

        threads = [threading.Thread(target=writer, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        eventually(lambda: len(acknowledged) >= 150)  # 10 MB: some are spilled
        node.kill()
        for thread in threads:
            thread.join()
        node = start_node("--object-memory", "8MiB", keep_state=True)
        for key, size in acknowledged:
            assert get(node, key) == (200, body(key, size)), key
        for entry in json.loads(node.call("GET", "/v1/objects?limit=10000")[2])["objects"]:
            assert entry["state"] in ("sealed", "spilled"), entry
        assert not [path for path in (node.object_memory() / "pending").iterdir()]
        node.kill()


def test_a_full_disk_refuses_and_loses_nothing(start_node, tmp_path):
    spill = tmp_path / "small"
    spill.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", spill], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"needs the right to mount: {mounted.stderr.strip()}")
    try:
        node = start_node("--object-memory", "4MiB", "--object-spill-dir", str(spill / "objects"), keep_state=True)
        stored = []
        for index in range(12):
            status, answer = put(node, f"o/{index}", body(index, MIB))
            if status == 201:
                stored.append(index)
            else:
                assert status == 429 and "No space left on device" in answer["Message"], answer
        assert 4 <= len(stored) < 12
        for index in stored:
            assert get(node, f"o/{index}") == (200, body(index, MIB))
        node.kill()
    finally:
        subprocess.run(["umount", "-l", spill], check=True)


def test_full_shared_memory_refuses_and_loses_nothing(start_node, tmp_path):
    memory = tmp_path / "small"
    memory.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", memory], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"needs the right to mount: {mounted.stderr.strip()}")
    try:
        node = start_node("--object-memory-dir", str(memory / "objects"), keep_state=True)
        assert node.status()["objects"]["memory_limit_bytes"] <= 4 * MIB
        (memory / "hog").write_bytes(bytes(2 * MIB))  # somebody else's
        refused = []
        for index in range(3):
            status, answer = put(node, f"o/{index}", body(index, MIB))
            if status != 201:
                assert status == 429 and "No space left on device" in answer["Message"], answer
                refused.append(index)
        assert refused
        (memory / "hog").unlink()
        for index in range(3):
            if index in refused:
                assert put(node, f"o/{index}", body(index, MIB))[0] == 201
            assert get(node, f"o/{index}") == (200, body(index, MIB))
        node.kill()
    finally:
        subprocess.run(["umount", "-l", memory], check=True)


def test_a_damaged_file_is_found_and_named(start_node):
    node = start_node("--object-memory", "2MiB")
    put(node, "a", body("a", 3 * MIB // 2))
    put(node, "b", body("b", 3 * MIB // 2))
    assert info(node, "a")["state"] == "spilled"
    file = next((node.state / "objects/default").iterdir())
    file.chmod(0o600)
    with file.open("r+b") as damaged:
        damaged.seek(12345)
        damaged.write(b"X!")
    status, answer = get(node, "a")
    assert status == 500 and str(file) in json.loads(answer)["Message"]
    assert get(node, "b") == (200, body("b", 3 * MIB // 2))


def test_lifetimes_end(start_node):
    node = start_node()
    assert put(node, "short", b"x", "?lifetime=0.2")[0] == 201
    eventually(lambda: get(node, "short")[0] == 404)
    assert node.status()["objects"]["count"] == 0


def test_a_graceful_end_keeps_objects_and_an_empty_store_leaves_no_memory(start_node):
    node = start_node()
    put(node, "kept", b"over a restart")
    node.stop()
    node = start_node(keep_state=True)
    assert get(node, "kept") == (200, b"over a restart")
    node.call("DELETE", "/v1/objects/kept")
    node.stop()
    assert not node.object_memory().exists()


def test_the_command_line(start_node, tmp_path):
    node = start_node()

    def fairlead(*arguments, stdin=b""):
        return subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, *arguments], input=stdin,
                              capture_output=True, timeout=60)

    data = tmp_path / "data"
    data.write_bytes(bytes(range(256)))
    assert fairlead("object", "put", "in/file", data).returncode == 0
    assert fairlead("object", "put", "in/stdin", stdin=b"piped").returncode == 0
    assert fairlead("object", "get", "in/file").stdout == data.read_bytes()
    assert fairlead("object", "get", "in/stdin", "-o", tmp_path / "out").returncode == 0
    assert (tmp_path / "out").read_bytes() == b"piped"
    assert b"in/file" in fairlead("object", "list", "in/").stdout
    assert json.loads(fairlead("object", "info", "in/file", "--json").stdout)["bytes"] == 256
    assert fairlead("object", "delete", "in/file", "in/stdin").returncode == 0
    missing = fairlead("object", "get", "in/file")
    assert missing.returncode != 0 and b"there is no object 'in/file'" in missing.stderr
    assert b"delete" in fairlead("completion", "bash").stdout


OBJECTS = ROOT / "tests/functions/objects"


def test_a_function_reads_and_writes_the_objects_of_its_tenant_only(start_node):
    node = start_node()
    node.deploy("shout", OBJECTS)
    node.deploy("stranger", OBJECTS, Tags={"gpu:tenant": "acme"})
    put(node, "in", b"quiet")
    put(node, "secret", b"acme's", tenant="acme")

    def ask(name, **event):
        status, headers, answer = node.invoke(name, json.dumps(event))
        assert status == 200 and "X-Amz-Function-Error" not in headers, answer
        return json.loads(answer)

    assert ask("shout", read="in", write="out") == {"status": 201, "mapped": "quiet", "contents": 2, "create": 400}
    assert get(node, "out") == (200, b"QUIET")
    assert ask("stranger", read="in") == {"status": 404}
    assert ask("shout", read="secret", tenant="acme") == {"status": 404}  # the header is not believed
    assert ask("stranger", read="secret", write="out")["contents"] == 2
    assert get(node, "out", tenant="acme") == (200, b"ACME'S")
