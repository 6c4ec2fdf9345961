"""One device server for several tenants: kernels that reach for a neighbour's memory, that fault, that never end.

The attacker knows the victim's address, which the victim's own kernel tells the test. What counts as an attack is tried in a
server without fences too, where both belong to one tenant: there each of them must succeed.
"""

import base64
import json
import re
import struct
import threading

import pytest

from conftest import BUILD, ROOT, Node, eventually
from test_kernel_tasks import KERNELS, RAMP, affine, call, error, floats, metric, result, server_pids, values

SECRET = 0x5E5E5E5E
BYTES = 1024
CONTENT = struct.pack("<I", SECRET) * (BYTES // 4)

HEAD = ".version 7.1\n.target sm_70\n.address_size 64\n"

# where(w, y): y[0] = address of w. peek(w, y): y = w.
VICTIM = HEAD + """
.visible .entry where(.param .u64 w, .param .u64 y)
{
  .reg .b64 %w, %y;
  ld.param.u64 %w, [w]; ld.param.u64 %y, [y]; st.global.u64 [%y], %w;
  ret;
}
.visible .entry peek(.param .u64 w, .param .u64 y)
{
  .reg .b32 %r, %v; .reg .b64 %w, %y, %o;
  ld.param.u64 %w, [w]; ld.param.u64 %y, [y]; mov.u32 %r, %tid.x; mul.wide.u32 %o, %r, 4;
  add.s64 %w, %w, %o; add.s64 %y, %y, %o; ld.global.u32 %v, [%w]; st.global.u32 [%y], %v;
  ret;
}
"""

# %target: an address in the victim's memory; %own: the attacker's output, zeros; %x: 1094795585.
REACHES = {
    "load": "ld.global.u32 %x, [%target]; st.global.u32 [%own], %x;",
    "load_beyond": "ld.global.u32 %x, [%target+512]; st.global.u32 [%own], %x;",
    "generic_load": "ld.u32 %x, [%target]; st.u32 [%own], %x;",
    "read_only_load": "ld.global.nc.u32 %x, [%target]; st.global.u32 [%own], %x;",
    "vector_load": "ld.global.v2.u32 {%x, %y}, [%target+8]; st.global.v2.u32 [%own], {%x, %y};",
    "store": "st.global.u32 [%target], %x;",
    "byte_store": "st.global.u8 [%target+3], %x;",
    "generic_store": "st.u32 [%target], %x;",
    "vector_store": "st.global.v4.u32 [%target], {%x, %x, %x, %x};",
    "atomic": "atom.global.add.u32 %y, [%target], %x;",
    "generic_atomic": "atom.exch.b32 %y, [%target], %x;",
    "atomic_read": "atom.global.or.b32 %x, [%target], 0; st.global.u32 [%own], %x;",
    "reduction": "red.global.add.u32 [%target], %x;",
    "compare_and_swap": "mov.u32 %y, 0x5e5e5e5e; atom.global.cas.b32 %z, [%target], %y, %x;",
    "beyond_its_buffer": "sub.s64 %a, %target, %own; add.s64 %b, %own, %a; ld.global.u32 %x, [%b]; st.global.u32 [%own], %x;",
    "forged_from_halves": "mov.b64 {%y, %z}, %target; mov.b64 %a, {%y, %z}; ld.u32 %x, [%a]; st.u32 [%own], %x;",
    "through_memory": "st.global.u64 [%own+8], %target; ld.global.u64 %a, [%own+8]; st.global.u32 [%a], %x;",
    "through_shared": "st.shared.u64 [tile], %target; ld.shared.u64 %a, [tile]; st.global.u32 [%a], %x;",
    "from_shared_window": "mov.u64 %a, tile; cvta.shared.u64 %a, %a; sub.s64 %b, %target, %a; add.s64 %a, %a, %b;"
                          "ld.u32 %x, [%a]; st.global.u32 [%own], %x;",
    "from_local_window": "mov.u64 %a, frame; cvta.local.u64 %a, %a; sub.s64 %b, %target, %a; add.s64 %a, %a, %b;"
                         "st.u32 [%a], %x;",
    "from_constant": "mov.u64 %a, table; cvta.const.u64 %a, %a; sub.s64 %b, %target, %a; add.s64 %a, %a, %b;"
                     "ld.u32 %x, [%a]; st.global.u32 [%own], %x;",
    "from_variable": "mov.u64 %a, count; sub.s64 %b, %target, %a; add.s64 %a, %a, %b; st.global.u32 [%a], %x;",
    "in_function": "{ .param .b64 p; st.param.b64 [p], %target; call.uni poke, (p); }",
    "by_function_pointer": "mov.u64 %a, poke; { .param .b64 p; st.param.b64 [p], %target;"
                           "PROTO: .callprototype _ (.param .b64 _); call %a, (p), PROTO; }",
    "in_loop": "mov.u32 %y, 0; L: st.global.u32 [%target], %x; add.s64 %target, %target, 4; add.u32 %y, %y, 1;"
               "setp.lt.u32 %p, %y, 8; @%p bra L;",
}

# Bounded by the hardware, or never to be reached by anybody: these must do no harm, whatever becomes of the attacker.
HARMLESS = {
    "shared_out_of_bounds": "mov.u32 %y, tile; add.u32 %y, %y, 0x1000000; st.shared.u32 [%y], %x;",
    "shared_read_out_of_bounds": "mov.u32 %y, tile; add.u32 %y, %y, 4096; ld.shared.u32 %x, [%y]; st.global.u32 [%own], %x;",
    "local_store_out_of_bounds": "cvt.u32.u64 %y, %target; mov.u32 %z, frame; add.u32 %z, %z, %y; st.local.u32 [%z], %x;",
    "local_load_out_of_bounds": "mov.u32 %z, frame; add.u32 %z, %z, 0x4000000; ld.local.u32 %x, [%z]; st.global.u32 [%own], %x;",
    "constant_out_of_bounds": "mov.u64 %a, table; add.s64 %a, %a, 0x10000; ld.const.u32 %x, [%a]; st.global.u32 [%own], %x;",
    "jump_to_an_address": "{ .param .b64 p; st.param.b64 [p], %target;"
                          "PROTO: .callprototype _ (.param .b64 _); call %target, (p), PROTO; }",
    "misaligned": "st.global.u32 [%own+1], %x;",
    "trap": "trap;",
}

# What a kernel may find that others left, if it reads what it has not written. %own: 16 bytes of this thread, zeros.
LEFTOVERS = {
    "found_registers": "st.global.v4.u32 [%own], {%u0, %u1, %u2, %u3};",
    "found_registers_of_64_bits": ".reg .b64 %w<2>; st.global.v2.u64 [%own], {%w0, %w1};",
    "found_on_one_way": "setp.eq.u32 %p, %zero, 0; @%p bra ON; mov.u32 %u0, 1; ON: st.global.v4.u32 [%own], {%u0, %zero, %u0, %u0};",
    "found_in_a_function": "{ .param .b64 p; st.param.b64 [p], %own; call peek, (p); }",
    "found_in_shared": "mov.u32 %y, tile; shl.b32 %x, %x, 4; add.u32 %y, %y, %x; ld.shared.v4.u32 {%u0, %u1, %u2, %u3}, [%y];"
                       "st.global.v4.u32 [%own], {%u0, %u1, %u2, %u3};",
    "found_in_shared_by_a_generic_address": "mov.u64 %a, tile; cvta.shared.u64 %a, %a; ld.u32 %y, [%a+512]; st.u32 [%own], %y;",
    "found_in_local": ".local .align 16 .b8 frame[256]; ld.local.v4.u32 {%u0, %u1, %u2, %u3}, [frame+128];"
                      "st.global.v4.u32 [%own], {%u0, %u1, %u2, %u3};",
}

# fill(w, y): registers, shared and local memory hold the number that w begins with, from 64 threads.
FILL = HEAD + """
.visible .entry fill(.param .u64 w, .param .u64 y)
{
  .reg .b64 %s<100>, %w, %y, %at; .reg .b32 %a, %b; .reg .pred %p;
  .shared .align 16 .b8 all[32768];
  .local .align 16 .b8 frame[1024];
  ld.param.u64 %w, [w]; ld.param.u64 %y, [y]; ld.global.u64 %s0, [%w];
""" + "\n".join(f"add.u64 %s{i}, %s0, 0;" for i in range(1, 100)) + """
  mov.u32 %a, all; add.u32 %b, %a, 32768;
SHARED: st.shared.u64 [%a], %s0; add.u32 %a, %a, 8; setp.lt.u32 %p, %a, %b; @%p bra SHARED;
  mov.u64 %at, frame; mov.u32 %b, 0;
LOCAL: st.local.u64 [%at], %s0; add.u64 %at, %at, 8; add.u32 %b, %b, 8; setp.lt.u32 %p, %b, 1024; @%p bra LOCAL;
  mov.u64 %at, 0;
""" + "\n".join(f"add.u64 %at, %at, %s{i};" for i in range(100)) + """
  st.global.u64 [%y], %at;
  ret;
}
"""


def finder(name):
    """It has the attacker's parameters, and writes 64 times 16 bytes; what it does not find stays zero."""
    return HEAD + f"""
.func peek(.param .b64 p)
{{
  .reg .b64 %q; .reg .b32 %v<4>;
  ld.param.b64 %q, [p]; st.global.v4.u32 [%q], {{%v0, %v1, %v2, %v3}};
  ret;
}}
.visible .entry {name}(.param .u64 x, .param .u64 y)
{{
  .reg .b64 %own, %a; .reg .b32 %x, %y, %zero, %u<4>; .reg .pred %p;
  .shared .align 16 .b8 tile[1024];
  mov.u32 %y, 0; ld.param.u64 %own, [y]; mov.u32 %x, %tid.x; mul.wide.u32 %a, %x, 16; add.s64 %own, %own, %a; mov.u32 %zero, %ctaid.y;
  {LEFTOVERS[name]}
  setp.ne.u32 %p, %zero, 0; @%p st.global.v2.u64 [%own], {{%own, %a}};  // they live to the end, so that what is not written
  @%p st.global.v4.u32 [%own], {{%x, %y, %zero, %zero}};               // has places of its own
  ret;
}}
"""


def attacker(name, body):
    """One module with everything that a body may name."""
    return HEAD + f"""
.global .align 4 .u32 count = 7;
.const .align 4 .u32 table[4] = {{1, 2, 3, 4}};
.func poke(.param .b64 p)
{{
  .reg .b64 %q; .reg .b32 %v;
  ld.param.b64 %q, [p]; mov.u32 %v, 7; st.u32 [%q], %v;
  ret;
}}
.visible .entry {name}(.param .u64 x, .param .u64 y)
{{
  .reg .b64 %own, %target, %a, %b, %input; .reg .b32 %x, %y, %z; .reg .pred %p;
  .shared .align 16 .b8 tile[256];
  .local .align 16 .b8 frame[64];
  mov.u32 %x, 1094795585;
  ld.param.u64 %input, [x]; ld.param.u64 %own, [y]; ld.global.u64 %target, [%input];
  {body}
  ret;
}}
"""


def victim_task(kernel, size):
    return {"buffers": {"w": {"role": "constant", "file": "w.bin", "bytes": BYTES}, "y": {"role": "output", "bytes": size}},
            "kernels": [{"module": "victim.ptx", "kernel": kernel, "grid": [1], "block": [1 if kernel == "where" else BYTES // 4],
                         "arguments": [{"buffer": "w"}, {"buffer": "y", "access": "write"}]}]}


def attack_task(kernel, threads=1):
    return {"buffers": {"x": {"role": "input", "bytes": 8}, "y": {"role": "output", "bytes": BYTES, "zeroed": True}},
            "kernels": [{"module": "attacker.ptx", "kernel": kernel, "grid": [1], "block": [threads],
                         "arguments": [{"buffer": "x"}, {"buffer": "y"}]}]}


def write(folder, task, **files):
    folder.mkdir(parents=True)
    (folder / "task.json").write_text(json.dumps(task))
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def output(reply):
    return base64.b64decode(result(reply)["outputs"]["y"]["base64"])


class Neighbours:
    """A victim with a secret, and an attacker, on one node."""

    def __init__(self, node, folder, victim, attacker):
        self.node, self.folder, self.tenant, self.attacker = node, folder, victim, attacker
        for kernel, size in {"where": 8, "peek": BYTES}.items():
            node.deploy(kernel, write(folder / kernel, victim_task(kernel, size), victim_ptx=VICTIM, w_bin=CONTENT),
                        Tags={"gpu:tenant": victim})

    def deploy(self, kernel, ptx=None, threads=1, **settings):
        ptx = ptx or attacker(kernel, {**REACHES, **HARMLESS}[kernel])
        self.node.deploy(kernel, write(self.folder / kernel, attack_task(kernel, threads), attacker_ptx=ptx),
                         Tags={"gpu:tenant": self.attacker}, **settings)

    def deploy_finders(self):
        task = victim_task("fill", 8)
        task["kernels"][0]["block"] = [64]
        self.node.deploy("fill", write(self.folder / "fill", task, victim_ptx=FILL, w_bin=CONTENT),
                         Tags={"gpu:tenant": self.tenant})
        for kernel in LEFTOVERS:
            self.deploy(kernel, finder(kernel), threads=64)

    def leftovers(self, kernel):
        """What a kernel finds behind some of the victim's that have filled everything, on each of the server's four lanes."""
        for _ in range(4):
            assert output(self.node.invoke("fill", "{}")) == struct.pack("<Q", 100 * (SECRET << 32 | SECRET) & (1 << 64) - 1)
        return output(self.node.invoke(kernel, json.dumps({"inputs": {"x": {"base64": base64.b64encode(bytes(8)).decode()}}})))

    def attack(self, kernel):
        target = output(self.node.invoke("where", "{}"))
        return self.node.invoke(kernel, json.dumps({"inputs": {"x": {"base64": base64.b64encode(target).decode()}}}))

    def secret(self):
        return output(self.node.invoke("peek", "{}"))


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """The two in one device server; nothing that an attack does may outlast it."""
    folder = tmp_path_factory.mktemp("fenced")
    with Node(BUILD, folder / "node", options=("--task-isolation", "fence", "--task-memory", "64MiB")) as node:
        neighbours = Neighbours(node, folder, "victim", "mallory")
        for kernel in {**REACHES, **HARMLESS}:
            neighbours.deploy(kernel)
        yield neighbours


def test_without_fences_every_attack_succeeds(start_node, tmp_path):
    """A node for each attack, since a device server that was ended often starts again only after seconds."""
    harmless = []
    for kernel in REACHES:
        node = start_node("--task-memory", "64MiB")
        neighbours = Neighbours(node, tmp_path / kernel, "one", "one")
        neighbours.deploy(kernel)
        assert neighbours.secret() == CONTENT
        reply = neighbours.attack(kernel)
        if struct.pack("<I", SECRET) not in output(reply) and neighbours.secret() == CONTENT:
            harmless.append(kernel)
        node.stop()
    assert not harmless


@pytest.mark.parametrize("kernel", REACHES)
def test_no_attack_reaches_another_tenant(shared, kernel):
    key = f"results/{kernel}"
    assert result(shared.node.invoke("peek", json.dumps({"outputs": {"y": {"key": key}}})))
    assert len(server_pids(shared.node)) == 1
    answer = output(shared.attack(kernel))  # it runs to its end: an address out of range is one in range
    assert bytes([SECRET & 255]) * 2 not in answer
    assert shared.secret() == CONTENT
    assert shared.node.call("GET", f"/v1/objects/{key}", b"", {"X-Fairlead-Tenant": "victim"})[2] == CONTENT


@pytest.mark.parametrize("kernel", HARMLESS)
def test_what_hardware_bounds_or_ends_does_no_harm(shared, kernel):
    reply = shared.attack(kernel)
    if "X-Amz-Function-Error" not in reply[1]:
        assert bytes([SECRET & 255]) * 2 not in output(reply)
    assert shared.secret() == CONTENT
    assert kernel != "trap" or "KernelTask.Fault" in reply[2].decode()


def test_without_fences_leftovers_are_seen(start_node, tmp_path):
    """The software GPU runs kernels on several threads of the host: what one left another does not see, so it may take a few."""
    neighbours = Neighbours(start_node("--task-memory", "64MiB"), tmp_path, "one", "one")
    neighbours.deploy_finders()
    for kernel in LEFTOVERS:
        assert any(bytes([SECRET & 255]) * 4 in neighbours.leftovers(kernel) for _ in range(50)), kernel


def test_what_a_kernel_leaves_another_tenant_finds_as_zeros(start_node, tmp_path):
    node = start_node("--task-isolation", "fence", "--task-memory", "64MiB")
    neighbours = Neighbours(node, tmp_path, "victim", "mallory")
    neighbours.deploy_finders()
    for kernel in LEFTOVERS:
        for _ in range(10):
            assert neighbours.leftovers(kernel) == bytes(BYTES), kernel
    assert len(server_pids(node)) == 1


def test_a_kernel_that_faults_fails_alone_among_tenants(start_node, tmp_path):
    node = start_node("--task-isolation", "fence")
    neighbours = Neighbours(node, tmp_path, "victim", "mallory")
    neighbours.deploy("trap")
    wrong, stop = [], threading.Event()

    def use():
        while not stop.is_set():
            reply = node.invoke("peek", "{}")
            if "X-Amz-Function-Error" in reply[1] or output(reply) != CONTENT:
                wrong.append(reply)

    users = [threading.Thread(target=use) for _ in range(2)]
    for user in users:
        user.start()
    for _ in range(3):
        assert "KernelTask.Fault" in neighbours.attack("trap")[2].decode()
    stop.set()
    for user in users:
        user.join()
    assert not wrong
    assert metric(node, "fairlead_device_server_restarts_total") >= 3


def test_an_endless_kernel_ends_at_its_deadline_with_the_server(start_node, tmp_path):
    node = start_node("--task-isolation", "fence")
    neighbours = Neighbours(node, tmp_path, "victim", "mallory")
    neighbours.deploy("spin", HEAD + """
.visible .entry spin(.param .u64 x, .param .u64 y)
{
  .reg .b32 %r; .reg .pred %p; .reg .b64 %y;
  ld.param.u64 %y, [y];
L: ld.volatile.global.u32 %r, [%y]; setp.eq.u32 %p, %r, 0; @%p bra L;
  ret;
}
""", Timeout=1)
    assert "timed out" in error(neighbours.attack("spin"))
    assert neighbours.secret() == CONTENT
    assert "timed out" in error(neighbours.attack("spin"))
    assert neighbours.secret() == CONTENT


@pytest.mark.parametrize("what, line", {
    "malloc": ".extern .func (.param .b64 r) malloc (.param .b64 size);",
    "texref": ".global .texref picture;",
    "no_such_instruction": "",
}.items())
def test_what_cannot_be_fenced_is_refused(shared, what, line):
    body = {"malloc": "{ .param .b64 r; .param .b64 n; st.param.b64 [n], %a; call.uni (r), malloc, (n); }",
            "texref": "", "no_such_instruction": "alloca.u64 %a, 64;"}[what]
    name = f"refused_{what}"
    shared.deploy(name, HEAD + line + f"""
.visible .entry {name}(.param .u64 x, .param .u64 y) {{ .reg .b64 %a; mov.u64 %a, 64; {body} ret; }}
""")
    reply = shared.attack(name)[2].decode()
    assert "cannot be fenced" in reply and ("alloca" if what == "no_such_instruction" else what) in reply
    assert shared.secret() == CONTENT


def test_tenants_are_served_beside_each_other_from_little_memory(start_node, tmp_path):
    """Constants of 20 MiB for each of three tenants, 32 MiB for all: memory moves from one to the next and back."""
    node = start_node("--task-isolation", "fence", "--task-memory", "32MiB")
    size = 20 << 20
    for index, tenant in enumerate("abc"):
        task = victim_task("peek", BYTES)
        task["buffers"]["w"]["bytes"] = size
        node.deploy(tenant, write(tmp_path / tenant, task, victim_ptx=VICTIM, w_bin=bytes([index + 1]) * size),
                    Tags={"gpu:tenant": tenant})
    for _ in range(3):
        for index, tenant in enumerate("abc"):
            assert output(node.invoke(tenant, "{}")) == bytes([index + 1]) * BYTES
    assert len(server_pids(node)) == 1
    mapped = re.search(r'object_bytes\{gpu="\d+",tenant="\*",place="device"\} (\d+)', node.call("GET", "/metrics")[2].decode())
    assert 0 < int(mapped[1]) <= 32 << 20


def test_the_builtin_library_is_fenced_too(start_node, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "python"))
    numpy = pytest.importorskip("numpy")
    from fairlead import Client, ktask
    task = ktask.Task()
    x = task.input("x", "f32", (50, 70))
    w = task.constant("w", numpy.arange(2100, dtype="f").reshape(70, 30) % 7)
    task.output("y", task.relu(x @ w))
    given = numpy.arange(3500, dtype="f").reshape(50, 70) % 5 - 2
    node = start_node("--task-isolation", "fence")
    with Client(f"http://127.0.0.1:{node.port}") as client:
        task.deploy(client, "product")
        answer = client.call("product", x=given)["y"]
    assert numpy.array_equal(answer, numpy.maximum(given @ (numpy.arange(2100, dtype="f").reshape(70, 30) % 7), 0))


def test_tenants_of_one_server_do_not_share_a_constant_or_a_module(start_node, tmp_path):
    node = start_node("--task-isolation", "fence")
    for tenant, k in {"a": 2, "b": 3}.items():
        node.deploy(tenant, write(tmp_path / tenant, affine(k, {"file": "w.bin"}), kernels_ptx=KERNELS, w_bin=floats([1] * 256)),
                    Tags={"gpu:tenant": tenant})
    for _ in range(2):
        for tenant, k in {"a": 2, "b": 3}.items():
            assert values(node.invoke(tenant, call(RAMP))) == [k * x + 1 for x in RAMP]
    assert metric(node, "fairlead_device_server_sessions") == 2
    assert metric(node, "fairlead_device_server_modules") == 2
    assert metric(node, "fairlead_object_lookups_total") == 6  # each tenant's constant: loaded at deploy, then two hits
    assert len(server_pids(node)) == 1
