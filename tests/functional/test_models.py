"""One copy of a model on the GPU: stored by one program, read by others, in real sandboxes."""

import json
import os
import shutil
import signal
import struct
import threading

import pytest
from conftest import eventually
from models import deploy, run, try_run, use

MIB = 1 << 20
HASH_OF_GET = """
memory = the_store().get({name!r})
answer = hashlib.sha256(memory.gpu.download(memory.address, memory.bytes)).hexdigest()
"""
# Speaks to the node without the library.
RAW = """
import array, socket, struct
def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(os.environ["FAIRLEAD_MODELS"])
    return s
def send(s, kind, number=1, tensor=0, size=0, flags=0, digest=b"", name=b"", version=1, reserved=0):
    s.send(struct.pack("=IIQQQII32s256s", version, kind, number, tensor, size, flags, reserved, digest, name))
def receive(s):
    data, ancillary, _, _ = s.recvmsg(344, 4096)
    fds = array.array("i")
    for _, _, content in ancillary:
        fds.frombytes(content)
    if not data:
        return None
    version, kind, number, tensor, size, blocks, error, digest, text = struct.unpack("=IIQQQII32s256s", data)
    return dict(kind=kind, number=number, tensor=tensor, size=size, error=error, fds=list(fds),
                text=text.split(b"\\0")[0].decode())
def ask(s, *arguments, **fields):
    send(s, *arguments, **fields)
    return receive(s)
"""


@pytest.fixture
def node(start_node):
    return start_node("--slots", "8")


def test_a_second_program_reads_what_the_first_stored(node, tmp_path):
    deploy(node, tmp_path, "first")
    deploy(node, tmp_path, "second")
    how, digest, _ = run(node, "first", f"answer = store('vit', 1, {100 * MIB} + 5)")
    assert how == "filled"
    assert run(node, "first", HASH_OF_GET.format(name="vit")) == digest
    # The other function's id is its own; the content is the same, so the memory is.
    assert run(node, "second", f"answer = store('base', 1, {100 * MIB} + 5)")[1] == digest
    models = use(node)
    assert models["models"] == 1 and models["by_content"] == 1 and models["holders"] == 2, models
    assert models["bytes"] - models["lingering_bytes"] == 102 * MIB
    assert models["saved_bytes"] == 102 * MIB
    metrics = node.call("GET", "/metrics")[2].decode()
    assert f'fairlead_model_saved_bytes{{gpu="1"}} {102 * MIB}' in metrics
    assert 'fairlead_model_holders{gpu="1"} 2' in metrics


def test_an_import_is_not_the_programs_own_memory(node, tmp_path):
    deploy(node, tmp_path, "alone", **{"memory-mib": "64"})
    run(node, "alone", f"answer = store('vit', 1, {100 * MIB})")  # above the cap of the instance
    run(node, "alone", f"gpu = the_store().gpu\naddress = gpu.allocate({32 * MIB})")
    assert "GpuError" in try_run(node, "alone", f"gpu.allocate({48 * MIB})")["error"]
    function = next(entry for entry in node.status()["functions"] if entry["name"] == "alone")
    assert function["memory"]["held_bytes"] == 32 * MIB, function["memory"]


def test_the_memory_goes_with_the_last_version(node, tmp_path):
    deploy(node, tmp_path, "one")
    run(node, "one", f"answer = store('vit', 1, {4 * MIB})")
    server = use(node)["server_pid"]
    assert server > 0
    status = node.call("DELETE", "/2015-03-31/functions/one")[0]
    assert status == 204
    eventually(lambda: use(node)["bytes"] == 0)
    eventually(lambda: use(node)["server_pid"] == 0)  # its context takes memory, too


def test_tenants_share_where_both_agreed(node, tmp_path):
    deploy(node, tmp_path, "lender", tenant="vision", lends_models_to="shop")
    deploy(node, tmp_path, "taker", tenant="shop", takes_models_of="vision")
    deploy(node, tmp_path, "other", tenant="spy", takes_models_of="vision")
    deploy(node, tmp_path, "shy", tenant="shop")
    size = 4 * MIB
    digest = f"hashlib.blake2b(pattern(1, {size}), digest_size=32).digest()"
    run(node, "lender", f"answer = store('base', 1, {size})")
    take = f"memory = the_store().store('mine', {size}, None, {digest})\nanswer = memory.bytes"
    assert run(node, "taker", take) == size
    for name in ("other", "shy"):
        answer = run(node, name, RAW + f"answer = ask(connect(), 1, flags=1, digest={digest}, name=b'mine')")
        assert (answer["kind"], answer["error"], answer["fds"]) == (4, 1, [])  # absent, as if nobody had it
    assert use(node)["tenants"] == {"vision": size}


def test_what_is_not_sealed_is_not_read(node, tmp_path):
    deploy(node, tmp_path, "one")
    code = RAW + """
a, b = connect(), connect()
fill = ask(a, 1, size=4 << 20, name=b"x")
early = ask(b, 1, name=b"x")
foreign = ask(b, 2, tensor=fill["tensor"], number=7)
send(b, 3, tensor=fill["tensor"])
mine = ask(a, 2, tensor=fill["tensor"])
again = ask(a, 2, tensor=fill["tensor"])
unknown = ask(a, 2, tensor=1 << 63)
answer = [[r["kind"], r["error"], len(r["fds"])] for r in (fill, early, foreign, mine, again, unknown)]
"""
    assert run(node, "one", code) == [[2, 0, 1], [4, 2, 0], [4, 4, 0], [1, 0, 1], [4, 4, 0], [4, 4, 0]]


def test_sizes_ids_and_packets_that_make_no_sense(node, tmp_path):
    deploy(node, tmp_path, "one")
    code = RAW + """
s = connect()
answer = [ask(s, 1, size=size, name=b"x")["error"] for size in (0, 1 << 63, (1 << 64) - 1, 1 << 62, 1 << 45)]
answer += [ask(s, 1, size=1, name=name)["error"] for name in (b"", b"a\\nb", b"\\x7f")]
closed = []
for bad in (b"", b"x", b"x" * 345, struct.pack("=IIQQQII32s256s", 2, 1, 1, 0, 1, 0, 0, b"", b"x"),
            struct.pack("=IIQQQII32s256s", 1, 9, 1, 0, 1, 0, 0, b"", b"x"),
            struct.pack("=IIQQQII32s256s", 1, 1, 1, 0, 1, 64, 0, b"", b"x"),
            struct.pack("=IIQQQII32s256s", 1, 1, 1, 0, 1, 0, 0, b"", b"x" * 256)):
    s = connect()
    s.send(bad)
    closed.append(receive(s) is None)
answer.append(closed)
"""
    assert run(node, "one", code) == [1, 4, 4, 5, 5, 4, 4, 4, [True] * 7]
    assert use(node)["bytes"] == 0
    assert run(node, "one", f"answer = store('vit', 1, {MIB})")[0] == "filled"


def test_a_flood_stops_at_the_budget_and_ten_thousand_handles_at_a_count(node, tmp_path):
    deploy(node, tmp_path, "flood", tenant="greedy")
    deploy(node, tmp_path, "calm", tenant="calm")
    code = RAW + """
s = connect()
big = ask(s, 1, size=1 << 40, name=b"big")["text"]
kinds = {}
for i in range(10_000):
    r = ask(s, 1, size=1, name=b"t%d" % i)
    for fd in r["fds"]:
        os.close(fd)
    kinds[r["kind"]] = kinds.get(r["kind"], 0) + 1
last = r["text"]
answer = kinds, last, big
"""
    kinds, last, big = run(node, "flood", code)
    assert kinds["2"] == 256 and kinds["4"] == 10_000 - 256
    assert "at most 256" in last and "--model-quota" in big
    assert run(node, "calm", f"answer = store('vit', 1, {MIB})")[0] == "filled"
    # It ends: all that it had not sealed is gone with it.
    node.call("DELETE", "/2015-03-31/functions/flood")
    eventually(lambda: "greedy" not in use(node)["tenants"])


def test_closing_and_keeping_the_mapping_does_not_get_past_the_budget(start_node, tmp_path):
    node = start_node("--model-memory", "10", gpu_environment={"SOFTGPU_MEMORY_SCALE": "40"})  # 1 GiB
    deploy(node, tmp_path, "one")
    code = RAW + """
stored, kept = 0, []
for i in range(100):
    s = connect()
    r = ask(s, 1, size=8 << 20, name=b"t%d" % i)
    kept += r["fds"]  # as good as a mapping
    s.close()
    stored += r["kind"] == 2
answer = stored
"""
    assert 1 <= run(node, "one", code) * 8 * MIB <= use(node)["limit_bytes"] // 2
    assert use(node)["lingering_bytes"] > 0


def test_who_dies_while_filling_or_opening_leaves_nothing(node, tmp_path):
    deploy(node, tmp_path, "dies")
    deploy(node, tmp_path, "lives")
    dies = RAW + "s = connect()\nr = ask(s, 1, size=16 << 20, name=b'x')\nassert r['kind'] == 2\nos.kill(os.getpid(), 9)"
    assert "X-Amz-Function-Error" in node.invoke("dies", json.dumps({"run": dies}))[1]
    eventually(lambda: use(node)["bytes"] == 0)
    # A consumer that goes away between its request and the answer.
    run(node, "lives", f"answer = store('vit', 1, {4 * MIB})")
    run(node, "lives", RAW + "for i in range(200):\n    s = connect()\n    send(s, 1, name=b'vit')\n    s.close()\nanswer = 1")
    assert run(node, "lives", HASH_OF_GET.format(name="vit"))
    assert use(node)["holders"] == 1


def test_the_server_dies_and_users_load_again(node, tmp_path):
    deploy(node, tmp_path, "one")
    how, digest, _ = run(node, "one", f"answer = store('vit', 1, {4 * MIB})")
    os.kill(use(node)["server_pid"], signal.SIGKILL)
    eventually(lambda: use(node)["server_restarts"] == 1)
    # What is open stays readable.
    assert run(node, "one", HASH_OF_GET.format(name="vit")) == digest
    # What is opened from now on is stored anew; whoever is too quick is told to wait.
    fresh = RAW + f"other = models.Store()\nhow = []\nanswer = other.store('vit', {4 * MIB}, lambda m: how.append(m.gpu.upload(m.address, pattern(1, {4 * MIB})))).bytes, len(how)"

    def stores():
        answer = try_run(node, "one", fresh)
        if answer.get("error"):
            assert answer["code"] == "unavailable" and "again in a second" in answer["message"], answer
        return answer.get("answer")

    assert eventually(stores) == [4 * MIB, 1]
    assert use(node)["models"] == 1


def test_the_server_dies_while_it_is_asked(node, tmp_path):
    deploy(node, tmp_path, "one")
    code = RAW + "s = connect()\nr = ask(s, 1, size=600 << 20, name=b'x')\nanswer = r['tensor']"
    tensor = run(node, "one", code)
    server = use(node)["server_pid"]
    os.kill(server, signal.SIGSTOP)
    killer = threading.Timer(0.3, os.kill, (server, signal.SIGKILL))
    killer.start()
    answer = run(node, "one", f"answer = ask(s, 2, tensor={tensor})")
    killer.join()
    assert (answer["kind"], answer["error"]) == (4, 3) and "stored anew" in answer["text"], answer
    eventually(lambda: use(node)["server_pid"] == 0)


def test_a_model_that_was_written_to_is_not_given_out_again(node, tmp_path):
    deploy(node, tmp_path, "one")
    deploy(node, tmp_path, "two")
    how, digest, read_only = run(node, "one", f"answer = store('vit', 1, {4 * MIB})")
    spoil = "memory = the_store().get('vit')\nmemory.gpu.upload(memory.address + 5, b'spoiled')\nanswer = 1"
    if read_only:
        assert try_run(node, "one", spoil)["error"] == "GpuError"
        return
    run(node, "one", spoil)
    run(node, "one", "the_store().close('vit')")
    how, again, _ = run(node, "two", f"answer = store('vit', 1, {4 * MIB})")
    assert (how, again) == ("filled", digest)  # its own: the other one was found out, or never asked for
    eventually(lambda: "wrote to tensor" in node.log_path.read_text())


def test_unused_models_make_room_for_an_allocation(start_node, tmp_path):
    node = start_node("--model-memory", "90", "--model-quota", "100", gpu_environment={"SOFTGPU_MEMORY_SCALE": "40"})
    deploy(node, tmp_path, "holds")
    deploy(node, tmp_path, "needs")
    total = node.status()["gpus"][0]["memory_total_bytes"]
    size = total * 7 // 10 // MIB * MIB
    run(node, "holds", f"answer = the_store().store('big', {size}, lambda memory: None).bytes")
    assert try_run(node, "needs", f"gpu = the_store().gpu\ngpu.allocate({total // 2})").get("error")  # in use: it stays
    run(node, "holds", "the_store().close('big')")
    eventually(lambda: use(node)["unused_bytes"] >= size)
    assert "error" not in try_run(node, "needs", f"gpu = the_store().gpu\ngpu.allocate({total // 2})")
    assert use(node)["evicted"] == 1


def test_the_loaders_read_one_file_into_one_copy(node, tmp_path):
    """Python's and C++'s, each in a function of its own."""
    data = bytes(range(256)) * 4096
    header = json.dumps({"a": {"dtype": "U8", "shape": [len(data) - 400], "data_offsets": [0, len(data) - 400]},
                         "b": {"dtype": "F32", "shape": [10, 10], "data_offsets": [len(data) - 400, len(data)]}}).encode()
    file = tmp_path / "model.safetensors"
    file.write_bytes(struct.pack("<Q", len(header)) + header + data)
    deploy(node, tmp_path, "python", files=[file])
    folder = tmp_path / "cpp"
    folder.mkdir()
    shutil.copy(node.sample("shared-model") / "bootstrap", folder)
    shutil.copy(file, folder)
    node.deploy("cpp", folder)
    load = "model = models.load('/var/task/model.safetensors')\nanswer = [sum(model['a'].download()), list(model['b'].shape), len(model)]"
    assert run(node, "python", load) == [sum(data[:-400]), [10, 10], 2]
    assert json.loads(node.invoke("cpp", "{}")[2]) == {"bytes": len(data) - 400, "sum": sum(data[:-400])}
    assert json.loads(node.invoke("cpp", '{"tensor": "b"}')[2])["sum"] == sum(data[-400:])
    models = use(node)
    assert models["models"] == 1 and models["bytes"] - models["lingering_bytes"] == 2 * MIB, models
    status, _, body = node.invoke("cpp", '{"file": "bootstrap"}')
    assert "Model.Format" in body.decode()
