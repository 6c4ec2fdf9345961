"""Functions packaged as OCI images: what is accepted, what a container sees, what it may not do, what is left behind."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT, eventually
from harness.node import Node, NodeFailed

sys.path.insert(0, str(ROOT / "tests/images"))
import assemble  # noqa: E402
from registry import Registry  # noqa: E402

IMAGES = ROOT / "tests/images"
FUNCTIONS = "/2015-03-31/functions"

pytestmark = [
    pytest.mark.skipif(assemble.missing_tool() is not None, reason=f"{assemble.missing_tool()} is not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="assembling the images with their owners needs root"),
]


class Images:
    """A node and a layout of images for it."""

    def __init__(self, node, layout, probe_root):
        self.node = node
        self.layout = layout
        self.probe_root = probe_root

    def deploy(self, name, image, **document):
        self.node.deploy(name, "/", Handler=None, Runtime=None, PackageType="Image", Code={"ImageUri": image},
                         **document)

    def refused(self, image, **document):
        """The message with which a deployment is refused, and that nothing is left of it."""
        with pytest.raises(NodeFailed) as failure:
            self.deploy("refused", image, **document)
        assert list(self.node.state.glob("images/staging-*")) == []
        assert self.node.call("GET", f"{FUNCTIONS}/refused")[0] == 404
        return str(failure.value)

    def ask(self, name, command):
        """The answer of a probe."""
        status, headers, body = self.node.invoke(name, command)
        assert status == 200 and not headers.get("X-Amz-Function-Error"), (command, status, body)
        return body.decode()

    def error(self, name, command="echo"):
        """The error with which an invocation ends."""
        status, headers, body = self.node.invoke(name, command)
        assert status == 200 and headers.get("X-Amz-Function-Error") == "Unhandled", (command, status, body)
        return json.loads(body)


@pytest.fixture(scope="module")
def probe_root(tmp_path_factory):
    """The files of an image with nothing but the probe."""
    root = tmp_path_factory.mktemp("probe")
    (root / "bin").mkdir()
    (root / "etc").mkdir()
    (root / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\napp:x:1000:1001::/:/bin/sh\n")
    (root / "private").write_text("of another user")
    os.chown(root / "private", 33, 33)
    (root / "private").chmod(0o600)
    root.chmod(0o755)
    subprocess.run(["g++", "-std=c++20", "-O1", "-static", "-o", root / "bin/probe", IMAGES / "probe.cc"], check=True,
                   timeout=120)
    return root


@pytest.fixture(scope="module")
def images(tmp_path_factory, probe_root):
    folder = tmp_path_factory.mktemp("images")
    with Node(BUILD, folder / "node") as node:
        yield Images(node, assemble.Layout(folder / "layout"), probe_root)


@pytest.fixture(scope="module")
def probe(images):
    """(images, name) with a deployed probe."""
    reference = images.layout.image("probe", images.probe_root, ["/bin/probe", "one"], ["two"],
                                    {"COLOUR": "red", "PATH": "/bin"}, working_directory="/work/here")
    images.deploy("probe", reference, Environment={"Variables": {"SHAPE": "round"}})
    return images, "probe"


# ---- what a container sees


def test_an_http_container_answers_what_is_posted_to_its_port(probe):
    images, name = probe
    assert images.ask(name, "echo hello  world") == "hello  world"
    assert images.ask(name, "env PORT") == "8080"


def test_the_program_is_started_as_the_image_says(probe):
    images, name = probe
    assert images.ask(name, "arguments") == "/bin/probe|one|two"
    assert images.ask(name, "cwd") == "/work/here"
    assert images.ask(name, "env COLOUR") == "red"
    assert images.ask(name, "env SHAPE") == "round"
    assert images.ask(name, "env AWS_LAMBDA_FUNCTION_NAME") == "probe"
    assert images.ask(name, "ids") == "0:0"
    assert images.ask(name, "pid") == "1"


def test_overrides_replace_what_the_image_says(images, probe):
    reference = f"oci:{images.layout.folder}:probe"
    images.deploy("override", reference, ImageConfig={"Command": ["three"], "WorkingDirectory": "/tmp"},
                  Environment={"Variables": {"COLOUR": "blue", "PORT": "9090"}})
    assert images.ask("override", "arguments") == "/bin/probe|one|three"
    assert images.ask("override", "cwd") == "/tmp"
    assert images.ask("override", "env COLOUR") == "blue"
    status, _, body = images.node.call("PUT", f"{FUNCTIONS}/override/configuration",
                                       json.dumps({"ImageConfig": {"EntryPoint": ["/bin/probe", "x"]}}))
    assert status == 200, body
    assert json.loads(body)["ImageConfigResponse"]["ImageConfig"] == {"EntryPoint": ["/bin/probe", "x"]}
    assert images.ask("override", "arguments") == "/bin/probe|x|two"


@pytest.mark.parametrize("user, ids, private", [("app", "1000:1001", "Permission denied"),
                                                ("33:33", "33:33", "of another user")])
def test_a_program_runs_as_the_images_user(images, user, ids, private):
    name = f"user-{user.replace(':', '-')}"
    images.deploy(name, images.layout.image(name, images.probe_root, ["/bin/probe"], user=user))
    assert images.ask(name, "ids") == ids
    assert images.ask(name, "owner /private") == "33"
    assert images.ask(name, "owner /bin/probe") == "0"
    assert images.ask(name, "read /private") == private
    assert images.ask(name, "write /tmp/x") == "written"


def test_only_tmp_and_shared_memory_are_writable(probe):
    images, name = probe
    for path in ("/x", "/bin/probe", "/work/here/x", "/dev/x", "/run/fairlead/x"):
        assert images.ask(name, f"write {path}").startswith("refused"), path
    assert images.ask(name, "write /tmp/x") == "written"
    assert images.ask(name, "write /dev/shm/x") == "written"
    assert images.ask(name, "write /dev/null") == "written"


def test_a_container_sees_the_volumes_that_it_asked_for(tmp_path, probe_root, host_folder):
    (host_folder / "weights").write_text("seven")
    with Node(BUILD, tmp_path / "node", options=["--volume", f"weights={host_folder}"]) as node:
        images = Images(node, assemble.Layout(tmp_path / "layout"), probe_root)
        reference = images.layout.image("probe", probe_root, ["/bin/probe"])
        images.deploy("with", reference, Tags={"gpu:volumes": "weights"})
        images.deploy("without", reference)
        assert images.ask("with", f"read {host_folder}/weights") == "seven"
        assert "Read-only file system" in images.ask("with", f"write {host_folder}/weights")
        assert "No such file" in images.ask("without", f"read {host_folder}/weights")


def test_a_container_has_no_rights(probe):
    images, name = probe
    status = images.ask(name, "read /proc/self/status")
    for line in ("CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"):
        assert line in status
    assert images.ask(name, "setuid") == "Operation not permitted"
    assert images.ask(name, "unshare") == "Operation not permitted"
    assert images.ask(name, "write /proc/sys/kernel/hostname").startswith("refused")
    assert "uid_map" not in images.ask(name, "read /proc/1/cmdline")
    outside = images.ask(name, "read /proc/self/uid_map").split()
    assert outside[:3] == ["0", "65530", "1"] and "0" not in outside[4:5]


# ---- what becomes of one that misbehaves


def test_an_error_of_the_program_is_the_functions(probe):
    images, name = probe
    assert images.error(name, "status 503") == {"errorType": "HTTP.503",
                                                "errorMessage": "the container answered 503: as asked"}
    assert images.error(name, "hangup")["errorType"] == "HTTP.NoAnswer"
    assert images.ask(name, "echo still here") == "still here"


def test_one_that_ends_harms_only_its_own_invocation(probe):
    images, name = probe
    for command, reason in (("exit 3", "exit status 3"), ("fault", "SIGILL")):
        error = images.error(name, command)
        assert error["errorType"] == "Runtime.ExitError" and reason in error["errorMessage"]
        assert images.ask(name, "echo back") == "back"


def test_one_that_does_not_start_says_why(images):
    missing = images.layout.image("missing", images.probe_root, ["/bin/nothing"])
    images.deploy("missing", missing)
    error = images.error("missing")
    assert error["errorType"] == "Runtime.InitError" and "/bin/nothing" in error["errorMessage"]
    for arguments, reason in ((["exit", "7"], "exit status 7"), (["crash"], "SIGILL")):
        name = arguments[0]
        images.deploy(f"start-{name}", images.layout.image(f"start-{name}", images.probe_root,
                                                            ["/bin/probe", *arguments]))
        assert reason in images.error(f"start-{name}")["errorMessage"]


def processes_of(program):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "exe").endswith(program):
                found.append(entry.name)
        except OSError:
            pass  # it ended, or is a kernel thread
    return found


def test_a_timeout_kills_everything_in_the_container(images, probe):
    shutil.copy(images.probe_root / "bin/probe", images.probe_root / "bin/forker")
    images.deploy("forker", images.layout.image("forker", images.probe_root, ["/bin/forker"]), Timeout=1)
    assert images.ask("forker", "fork") == "forked"
    assert len(processes_of("/bin/forker")) == 2
    assert "timed out after" in images.error("forker", "sleep 60")["errorMessage"]
    eventually(lambda: not processes_of("/bin/forker"))


def test_memory_is_bounded(images, probe):
    images.deploy("hungry", f"oci:{images.layout.folder}:probe", MemorySize=128)
    assert images.ask("hungry", "allocate 16") == "allocated"
    assert images.error("hungry", "allocate 512")["errorType"].startswith("Runtime.")


def test_a_killed_node_leaves_no_container(tmp_path, probe_root):
    layout = assemble.Layout(tmp_path / "layout")
    shutil.copytree(probe_root, tmp_path / "root")
    (tmp_path / "root/bin/probe").rename(tmp_path / "root/bin/orphan")
    node = Node(BUILD, tmp_path / "node")
    Images(node, layout, None).deploy("orphan", layout.image("orphan", tmp_path / "root", ["/bin/orphan"]))
    node.invoke("orphan", "fork")
    assert processes_of("/bin/orphan")
    node.kill()
    eventually(lambda: not processes_of("/bin/orphan"))
    with Node(BUILD, tmp_path / "node", keep_state=True) as node:  # and the function is there again
        assert node.invoke("orphan", "echo back")[2] == b"back"


# ---- the store of unpacked images


def test_an_image_is_unpacked_once_and_removed_when_unused(tmp_path, probe_root):
    layout = assemble.Layout(tmp_path / "layout")
    reference = layout.image("one", probe_root, ["/bin/probe"])
    with Node(BUILD, tmp_path / "node") as node:
        images = Images(node, layout, probe_root)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda i: images.deploy(f"f{i}", reference), range(4)))
        (folder,) = (node.state / "images").iterdir()
        document = json.loads(node.call("GET", f"{FUNCTIONS}/f0")[2])
        assert document["Configuration"]["CodeSha256"] == folder.name
        assert document["Configuration"]["PackageType"] == "Image"
        assert document["Code"]["ImageUri"] == reference
        assert document["Code"]["ResolvedImageUri"] == f"oci:{layout.folder}@sha256:{folder.name}"
        # Another image under the same tag is another image.
        (tmp_path / "more").mkdir()
        (tmp_path / "more/file").write_text("new")
        assemble.run("umoci", "insert", "--image", f"{layout.folder}:one", tmp_path / "more/file", "/file")
        status, _, body = node.call("PUT", f"{FUNCTIONS}/f0/code", json.dumps({"ImageUri": reference}))
        assert status == 200 and json.loads(body)["CodeSha256"] != folder.name
        assert images.ask("f0", "read /file") == "new"
        assert images.ask("f1", "read /file") == "No such file or directory"
        for i in range(1, 4):
            node.call("DELETE", f"{FUNCTIONS}/f{i}")
    with Node(BUILD, tmp_path / "node", keep_state=True) as node:
        assert [entry.name for entry in (node.state / "images").iterdir()] == [json.loads(body)["CodeSha256"]]
        assert node.invoke("f0", "read /file")[2] == b"new"


def test_a_full_disk_leaves_nothing_behind(tmp_path, probe_root):
    state = tmp_path / "node/state"
    state.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", state], check=True)
    try:
        with Node(BUILD, tmp_path / "node", keep_state=True) as node:
            layout = assemble.Layout(tmp_path / "layout")
            (tmp_path / "root").mkdir()
            (tmp_path / "root/big").write_bytes(os.urandom(8 << 20))
            images = Images(node, layout, probe_root)
            message = images.refused(layout.image("big", tmp_path / "root", ["/x"]))
            assert "no space left on device" in message and " 429 " in message
            assert list((node.state / "images").iterdir()) == []
    finally:
        subprocess.run(["umount", "-l", state], check=True)


# ---- registries


def test_an_image_comes_from_a_registry_pinned_to_its_digest(tmp_path, probe_root, monkeypatch):
    layout = assemble.Layout(tmp_path / "layout")
    layout.image("v1", probe_root, ["/bin/probe", "from-registry"])
    with Registry(layout.folder) as registry:
        registry.configure(tmp_path / "home")
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        with Node(BUILD, tmp_path / "node", options=("--registries", registry.address)) as node:
            images = Images(node, layout, probe_root)
            reference = f"{registry.address}/team/app:v1"
            images.deploy("pulled", reference)
            assert images.ask("pulled", "arguments") == "/bin/probe|from-registry"
            document = json.loads(node.call("GET", f"{FUNCTIONS}/pulled")[2])
            digest = document["Configuration"]["CodeSha256"]
            assert document["Code"]["ImageUri"] == reference
            assert document["Code"]["ResolvedImageUri"] == f"{registry.address}/team/app@sha256:{digest}"
            assert f"/v2/team/app/manifests/sha256:{digest}" in registry.requests
            images.deploy("pinned", f"docker://{registry.address}/team/app@sha256:{digest}")
            assert len(list((node.state / "images").iterdir())) == 1
            assert " 400 " in images.refused(f"{registry.address}/team/app:absent")


def test_a_registry_that_hangs_does_not_hold_up_the_node(tmp_path, probe_root, monkeypatch):
    layout = assemble.Layout(tmp_path / "layout")
    layout.image("v1", probe_root, ["/bin/probe"])
    with Registry(layout.folder) as registry, concurrent.futures.ThreadPoolExecutor(1) as pool:
        registry.stall = True
        registry.configure(tmp_path / "home")
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        node = Node(BUILD, tmp_path / "node", options=("--registries", registry.address))
        waiting = pool.submit(Images(node, layout, None).deploy, "hanging", f"{registry.address}/app:v1")
        assert registry.stalled.wait(20)
        node.deploy("zip", node.sample("fft"))  # another thread unpacks zip files
        assert node.stop() == 0
        assert waiting.exception(20) is not None
        assert list(node.state.glob("images/staging-*")) == []


# ---- images that are none


def digest_of(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


def write_layout(folder, config, layer=b"", manifest=None, break_blob=False):
    """A layout written by hand, right or wrong."""
    blobs = folder / "blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(content):
        (blobs / digest_of(content).split(":")[1]).write_bytes(content)
        return {"digest": digest_of(content), "size": len(content)}

    config_blob = blob(config if isinstance(config, bytes) else json.dumps(config).encode())
    layer_blob = blob(layer)
    if break_blob:
        (blobs / layer_blob["digest"].split(":")[1]).write_bytes(b"broken")
    document = manifest or {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **config_blob},
        "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", **layer_blob}]}
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    (folder / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
    entry = {"mediaType": "application/vnd.oci.image.manifest.v1+json", **blob(text),
             "annotations": {"org.opencontainers.image.ref.name": "t"}}
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
    return f"oci:{folder}:t"


def tar(*members):
    """A layer of (name, content) files and (name, ("link", target)) links, names as they are."""
    import io
    import tarfile
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, tuple):
                info.type, info.linkname = tarfile.SYMTYPE, content[1]
                archive.addfile(info)
            else:
                info.size = len(content)
                info.mode = 0o755
                archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def config_for(layer, **config):
    return {"os": "linux", "architecture": "amd64", "config": {"Entrypoint": ["/x"], **config},
            "rootfs": {"type": "layers", "diff_ids": [digest_of(layer)]}}


@pytest.mark.parametrize("reference, words", [
    ("oci:/does/not/exist:t", "no index.json"),
    ("oci:relative:t", "the folder is not absolute"),
    ("http://host/app", "the transport is not known"),
    ("UPPER", "must be oci:DIR:TAG"),
    ("", "ImageUri is empty"),
    ("127.0.0.1:1/app:t", "127.0.0.1:1 is no registry of this node"),
])
def test_a_reference_to_nothing_is_refused(images, reference, words):
    assert words in images.refused(reference)


@pytest.mark.parametrize("case", ["tag", "not-json", "wrong-types", "environment", "architecture", "no-program", "blob",
                                  "layer", "user", "manifest", "unsized"])
def test_a_malformed_image_is_refused_and_named(images, tmp_path, case):
    layer = tar(("x", b"x"))
    plain = config_for(layer)
    layout = tmp_path / "layout"
    arguments, words = {
        "tag": ({"config": plain, "layer": layer}, "no descriptor found"),
        "not-json": ({"config": b"{", "layer": layer}, "image"),
        "wrong-types": ({"config": config_for(layer, WorkingDir="relative"), "layer": layer}, "must begin with '/'"),
        "environment": ({"config": config_for(layer, Env=["NOVALUE"]), "layer": layer}, "NOVALUE"),
        "architecture": ({"config": {**plain, "architecture": "s390x"}, "layer": layer}, "s390x"),
        "no-program": ({"config": config_for(layer, Entrypoint=None), "layer": layer}, "names no program"),
        "blob": ({"config": plain, "layer": layer, "break_blob": True}, "image"),
        "layer": ({"config": config_for(b"not a tar"), "layer": b"not a tar"}, "image"),
        "user": ({"config": config_for(layer, User="nobody-here"), "layer": layer}, "User is 'nobody-here'"),
        "manifest": ({"config": plain, "manifest": b"[]"}, "image"),
        "unsized": ({"config": plain, "manifest": {"schemaVersion": 2, "config": {}, "layers": {}}}, "image"),
    }[case]
    reference = write_layout(layout, **arguments)
    if case == "tag":
        reference = reference[:-1] + "absent"
        words = "absent"
    message = images.refused(reference)
    assert words in message and "InvalidParameterValueException" in message or words in message, message
    assert " 400 " in message, message


def test_a_layer_cannot_reach_out_of_its_image(images, tmp_path, probe_root):
    target = tmp_path / "outside"
    target.mkdir()
    layer = tar(("../../../../../.." + str(target / "dotdot"), b"x"), (str(target / "absolute"), b"x"),
                ("link", ("link", str(target))), ("link/through", b"x"),
                ("etc", ("link", "/etc")), ("bin/probe", (probe_root / "bin/probe").read_bytes()))
    reference = write_layout(tmp_path / "layout", config_for(layer, Entrypoint=["/bin/probe"], User="root"), layer)
    try:
        images.deploy("escape", reference)
    except NodeFailed as refused:
        assert " 400 " in str(refused)
    assert list(target.iterdir()) == []


# ---- packages of the two types


def test_package_types_do_not_mix(images, probe):
    reference = f"oci:{images.layout.folder}:probe"
    for document, words in (({"Handler": "a.b"}, "Handler is set"), ({"Runtime": "provided"}, "Runtime is set"),
                            ({"ImageConfig": {"Command": "x"}}, "ImageConfig.Command must be a list"),
                            ({"ImageConfig": {"WorkingDirectory": "w"}}, "WorkingDirectory is 'w'"),
                            ({"Tags": {"image:contract": "grpc"}}, "must be lambda, http or openfaas")):
        message = json.dumps({"FunctionName": "mixed", "Role": "", "PackageType": "Image",
                              "Code": {"ImageUri": reference}, **document})
        status, headers, body = images.node.call("POST", FUNCTIONS, message)
        assert (status, headers["x-amzn-ErrorType"]) == (400, "InvalidParameterValueException"), body
        assert words in json.loads(body)["Message"]


def test_the_command_line_deploys_and_describes_images(images, probe):
    def fairlead(*arguments):
        return subprocess.run([BUILD / "bin/fairlead", *arguments, "--endpoint", images.node.endpoint], text=True,
                              capture_output=True, timeout=60, cwd=images.layout.folder.parent)

    deployed = fairlead("deploy", "cli", "--image", f"oci:{images.layout.folder.name}:probe", "--entrypoint",
                        "/bin/probe", "--command", "a", "--command", "b", "--workdir", "/tmp", "--contract", "http")
    assert deployed.returncode == 0, deployed.stderr
    assert images.ask("cli", "arguments") == "/bin/probe|a|b"
    text = fairlead("describe", "cli").stdout
    for words in (f"oci:{images.layout.folder}:probe", "sha256:", "/bin/probe", "a b", "/tmp", "image:contract=http"):
        assert words in text
    for arguments, words in ((["x", ".", "--image", "a:b"], "excludes"), (["x"], "FOLDER or --image"),
                             (["x", "--image", "UP"], "--image is 'UP'"), (["x", ".", "--workdir", "/"], "--image")):
        refused = fairlead("deploy", *arguments)
        assert refused.returncode != 0 and words in refused.stderr + refused.stdout, (arguments, refused.stderr)


# ---- a GPU


def test_a_cuda_program_in_an_image_finds_the_gpu(images, tmp_path):
    root = tmp_path / "root"
    program = images.node.sample("fft") / "bootstrap"
    assemble.copy_with_libraries(root, program, "/var/task/bootstrap")
    for library in assemble.libraries(BUILD / "lib/softgpu/libcuda.so.1"):  # what an ordinary distribution has
        (root / str(library).lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / str(library).lstrip("/"))
    for found in root.rglob("libcuda.so*"):
        found.unlink()  # the driver is the platform's
    images.deploy("fft-image", images.layout.image("fft", root, ["/var/task/bootstrap"]))
    images.node.deploy("fft-zip", images.node.sample("fft"))
    payload = '{"n": 1024}'
    status, headers, body = images.node.invoke("fft-image", payload)
    assert status == 200 and not headers.get("X-Amz-Function-Error"), body
    assert set(json.loads(body)) == set(json.loads(images.node.invoke("fft-zip", payload)[2]))


# ---- images made for AWS Lambda


@pytest.fixture(scope="module")
def lambda_root(tmp_path_factory):
    """Debian's Python, its standard library, awslambdaric from PyPI and a handler: what AWS's image for Python holds."""
    python = pathlib.Path("/usr/bin/python3").resolve()
    if not python.exists():
        pytest.skip("Debian's python3 is not installed")
    root = tmp_path_factory.mktemp("lambda")
    version = python.name
    packages = root / "var/runtime"
    installed = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--target",
         packages, "--only-binary", ":all:", "--python-version", version.removeprefix("python"), "--implementation", "cp",
         "awslambdaric==3.1.1"],
        capture_output=True, text=True, timeout=300, check=False)
    if installed.returncode != 0:
        pytest.skip(f"awslambdaric cannot be had from PyPI: {installed.stderr.strip().splitlines()[-1:]}")
    assemble.copy_with_libraries(root, python, "/usr/bin/python3")
    library = pathlib.Path(f"/usr/lib/{version}")
    shutil.copytree(library, root / str(library).lstrip("/"), symlinks=True, ignore=shutil.ignore_patterns(
        "__pycache__", "test", "tests", "idlelib", "lib2to3", "ensurepip", "config-*", "pydoc_data", "sitecustomize.py",
        "tkinter"))
    for extension in [*library.glob("lib-dynload/*.so"), *packages.rglob("*.so")]:
        for dependency in assemble.libraries(extension):
            if not (root / str(dependency).lstrip("/")).exists() and packages not in dependency.parents:
                assemble.copy_with_libraries(root, dependency)
    (root / "var/task").mkdir()
    (root / "var/task/handler.py").write_text((IMAGES / "handler.py").read_text())
    (root / "lambda_entrypoint.sh").write_text("#!/bin/sh\nexec \"$@\"\n")
    return root


@pytest.fixture(scope="module")
def lambda_function(images, lambda_root):
    images.deploy("lambda", images.layout.image(
        "lambda", lambda_root, ["/usr/bin/python3", "-m", "awslambdaric"], ["handler.handler"],
        {"LAMBDA_TASK_ROOT": "/var/task", "LAMBDA_RUNTIME_DIR": "/var/runtime", "PYTHONPATH": "/var/runtime",
         "LANG": "en_US.UTF-8", "PATH": "/usr/bin:/bin"}, working_directory="/var/task"), MemorySize=256, Timeout=30)
    return "lambda"


def test_an_image_built_for_lambda_runs_unchanged(images, lambda_function):
    answer = json.loads(images.ask(lambda_function, '{"number": 20}'))
    assert answer["number"] == 21
    assert answer["function_name"] == "lambda" and answer["memory"] == "256" and answer["remaining_ms"] > 10_000
    assert json.loads(images.ask(lambda_function, '{"number": 1}'))["calls"] == 2  # the same process


def test_its_exceptions_are_reported_as_on_lambda(images, lambda_function):
    error = images.error(lambda_function, '{"raise": "out of ideas"}')
    assert error["errorType"] == "ValueError" and error["errorMessage"] == "out of ideas" and error["stackTrace"]
    assert json.loads(images.ask(lambda_function, '{"number": 5}'))["number"] == 6


def test_a_handler_that_is_not_there_fails_at_its_start(images, lambda_function):
    images.deploy("no-handler", f"oci:{images.layout.folder}:lambda", ImageConfig={"Command": ["nothing.handler"]})
    error = images.error("no-handler")
    assert "nothing" in error["errorMessage"]


def test_a_python_server_on_port_is_an_http_container(images, lambda_root, lambda_function):
    shutil.copy(IMAGES / "server.py", lambda_root / "var/task/server.py")
    images.deploy("server", images.layout.image("server", lambda_root, ["/usr/bin/python3", "/var/task/server.py"]),
                  Environment={"Variables": {"PORT": "8123"}})
    answer = json.loads(images.ask("server", '{"a": 1}'))
    assert answer["body"] == {"a": 1} and answer["path"] == "/" and answer["port"] == "8123"
    assert answer["request_id"]
