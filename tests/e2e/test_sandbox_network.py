"""What an experiment would send reaches no other machine, whatever sends it; what it reads, it still gets.

Root lays out two machines, network namespaces joined by a cable; the experiment runs in one of them, as root or as an
ordinary user, and the other one writes down what arrives.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import unstall

_SOURCE = Path(unstall.__file__).parents[1]
_NOBODY = 65534
_HERE, _ELSEWHERE, _NAME_SERVER = "10.99.0.1", "10.99.0.2", "10.99.0.3"

# A machine's servers: HTTP on port 8000, a name server that knows one name, any other UDP on port 9000; and what they
# were asked, a line each, in a file. The first line says that they listen.
_SERVERS = """
import http.server, socket, struct, sys, threading
log = open(sys.argv[1], "a", buffering=1)
host, name_server, named = sys.argv[2:]
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        log.write(f"{self.command} {self.path} {body.decode()}".strip() + "\\n")
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"data")
    do_GET = do_POST = do_PUT = answer
    def log_message(self, *arguments):
        pass
def datagrams(sock):
    while True:
        log.write("datagram " + repr(sock.recv(9999)) + "\\n")
def names(sock):
    while True:
        query, asker = sock.recvfrom(9999)
        question = query[12:query.index(b"\\0", 12) + 5]
        found = question[-4:-2] == b"\\0\\1"
        answer = b"\\xc0\\x0c\\0\\1\\0\\1" + struct.pack("!IH", 1, 4) + socket.inet_aton(named) if found else b""
        sock.sendto(query[:2] + b"\\x81\\x80\\0\\1" + bytes([0, int(found)]) + b"\\0" * 4 + question + answer, asker)
for address, serve in (((host, 9000), datagrams), ((name_server, 53), names)):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(address)
    threading.Thread(target=serve, args=(sock,), daemon=True).start()
server = http.server.ThreadingHTTPServer((host, 8000), Handler)
print("listening", flush=True)
server.serve_forever()
"""

# Root's part: joins the machines, starts their servers, and runs the experimenter.
_STAGE = """
import json, os, subprocess, sys
asked = json.loads(sys.argv[1])
run = lambda line: subprocess.run(line.split(), check=True)
run("ip link set lo up")
run(f"mount --bind {asked['resolv']} /etc/resolv.conf")
python, servers, here, elsewhere = asked["python"], asked["servers"], asked["here"], asked["elsewhere"]
other = subprocess.Popen(["unshare", "--net", "sleep", "1000"])
own = os.readlink("/proc/self/ns/net")
while os.readlink(f"/proc/{other.pid}/ns/net") == own:
    pass
started = [other]
try:
    run(f"ip link add cable type veth peer name end netns {other.pid}")
    run(f"ip addr add {here}/24 dev cable")
    run("ip link set cable up")
    run(f"nsenter -t {other.pid} -n ip addr add {elsewhere}/24 dev end")
    run(f"nsenter -t {other.pid} -n ip addr add {asked['name_server']}/24 dev end")
    run(f"nsenter -t {other.pid} -n ip link set end up")
    run(f"nsenter -t {other.pid} -n ip link set lo up")
    entering = ["nsenter", "-t", str(other.pid), "-n"]
    for prefix, log, hosts in (
        (entering, asked["log"], (elsewhere, asked["name_server"])), ([], asked["local_log"], ("127.0.0.1", "127.0.0.1")),
    ):
        words = [*prefix, python, "-c", servers, log, *hosts, elsewhere]
        server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        started.append(server)
        assert server.stdout.readline() == "listening\\n"
    done = subprocess.run(asked["driver"], capture_output=True, text=True, cwd=asked["work"])
    print(json.dumps({"output": done.stdout, "errors": done.stderr, "status": done.returncode}))
finally:
    for process in started:
        process.kill()
        process.wait()
"""

_DRIVER = """
import json, os, subprocess, sys
from pathlib import Path
source, program, sabotage, options = sys.argv[1:]
sys.path.insert(0, source)
from unstall.sandbox import open_sandbox
exec(sabotage)
with open_sandbox(Path.cwd(), [], **json.loads(options)) as sandbox:
    words = [sys.executable, "-c", program]
    done = subprocess.run(
        sandbox.command(words), env=sandbox.environment(dict(os.environ)), capture_output=True, text=True, timeout=60
    )
    facts = {"note": sandbox.note, "refused": sandbox.refused(), "reached": sandbox.reached()}
    print(json.dumps({**facts, "status": done.returncode, "output": done.stdout, "errors": done.stderr}))
"""

_PRELUDE = f"HERE, ELSEWHERE = {_HERE!r}, {_ELSEWHERE!r}\n"

_ATTACKS = """
import asyncio, http.client, socket, subprocess, sys
def connected_datagram():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect((ELSEWHERE, 9000))
    sock.send(b"metrics")
def datagram_without_a_word():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.sendto(b"metrics", (ELSEWHERE, 9000))
def asyncio_stream():
    async def post():
        _, writer = await asyncio.open_connection(ELSEWHERE, 8000)
        writer.write(b"POST /asyncio HTTP/1.1\\r\\nContent-Length: 0\\r\\n\\r\\n")
        await writer.drain()
    asyncio.run(post())
def asyncio_datagram():
    async def send():
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            asyncio.DatagramProtocol, remote_addr=(ELSEWHERE, 9000))
        transport.sendto(b"metrics")
        await asyncio.sleep(0.1)
    asyncio.run(send())
def written_by_hand():
    connection = http.client.HTTPConnection(ELSEWHERE, 8000, timeout=5)
    connection.connect()
    connection.send(b"POST /by-hand HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 0\\r\\n\\r\\n")
    connection.sock.recv(1)
def put_by_hand_here():
    connection = http.client.HTTPConnection("127.0.0.1", 8000, timeout=5)
    connection.connect()
    connection.send(b"PUT /by-hand HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 0\\r\\n\\r\\n")
    connection.sock.recv(1)
_CHILD = '''
import sys, urllib.request
urllib.request.urlopen("http://" + sys.argv[1] + ":8000/child", data=b"x", timeout=5).read()
'''
def child_without_environment():
    subprocess.run([sys.executable, "-c", _CHILD, ELSEWHERE], env={}, check=True, stderr=subprocess.DEVNULL)
def child_posts_here():
    subprocess.run([sys.executable, "-c", _CHILD, "127.0.0.1"], env={}, check=True, stderr=subprocess.DEVNULL)
def curl():
    subprocess.run(["curl", "-sS", "-m", "5", "-d", "x=1", "http://" + ELSEWHERE + ":8000/curl"], check=True)
def curl_here():
    subprocess.run(["curl", "-sS", "-m", "5", "-d", "x=1", "http://127.0.0.1:8000/curl"], check=True)
def raw_socket():
    sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    sock.connect((ELSEWHERE, 0))
    sock.send(b"\\x23\\x28\\x23\\x28\\x00\\x0c\\x00\\x00raw!")
for attack in (connected_datagram, datagram_without_a_word, asyncio_stream, asyncio_datagram, written_by_hand,
               put_by_hand_here, child_without_environment, child_posts_here, curl, curl_here, raw_socket):
    try:
        attack()
        print("sent:", attack.__name__)
    except (OSError, subprocess.CalledProcessError) as error:
        print("held back:", attack.__name__, type(error).__name__, error)
"""

_READING = """
import socket, subprocess, sys, urllib.request
def read(url):
    return urllib.request.urlopen(url, timeout=5).read().decode()
print("elsewhere", read(f"http://{ELSEWHERE}:8000/read"))
print("by name", read("http://data.example:8000/named"))
print("loopback", read("http://127.0.0.1:8000/read"))
print("curl", subprocess.run(["curl", "-sS", "-m", "5", "http://127.0.0.1:8000/curl"], capture_output=True).stdout)
sock = socket.create_connection(("127.0.0.1", 8000), timeout=5)
sock.sendall(b"GET /plain HTTP/1.0\\r\\n\\r\\n")
print("plain socket", sock.makefile("rb").read()[-4:])
"""

_OWN_SERVER = """
import http.server, socket, threading, urllib.request
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"mine")
    def log_message(self, *arguments):
        pass
for host in ("127.0.0.1", HERE):
    server = http.server.HTTPServer((host, 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(host, urllib.request.urlopen(f"http://{host}:{server.server_port}/", timeout=5).read().decode())
print(sorted(name for _, name in socket.if_nameindex()))
"""


@pytest.fixture(params=["root", "ordinary user"])
def machines(request):
    made = _Machines(request.param == "ordinary user")
    yield made
    made.close()


@pytest.fixture
def roots_machines():
    made = _Machines(ordinary=False)
    yield made
    made.close()


class _Machines:
    """Two machines, and experiments on one of them."""

    def __init__(self, ordinary):
        self.python, drop = sys.executable, []
        if os.geteuid() != 0 or not all(map(shutil.which, ("setpriv", "unshare", "nsenter", "ip", "curl"))):
            pytest.skip("only root can lay out machines")
        if subprocess.run(
            ["unshare", "--net", "ip", "link", "add", "cable", "type", "veth"], capture_output=True
        ).returncode:
            pytest.skip("no network namespaces here, or no cables between them")
        if ordinary:
            self.python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
            drop = ["setpriv", "--reuid", str(_NOBODY), "--regid", str(_NOBODY), "--clear-groups"]
            looks = "import sys; sys.path.insert(0, sys.argv[1]); import unstall; assert sys.version_info >= (3, 10)"
            words = [*drop, "unshare", "--user", "--net", str(self.python), "-c", looks, str(_SOURCE)]
            if self.python is None or subprocess.run(words, capture_output=True).returncode:
                pytest.skip("no interpreter here that another user can run, or no user namespaces")
        self.drop = drop
        self.base = Path(tempfile.mkdtemp())
        self.base.chmod(0o755)
        (self.base / "work").mkdir()
        if ordinary:
            os.chown(self.base / "work", _NOBODY, _NOBODY)
        (self.base / "resolv.conf").write_text(f"nameserver {_NAME_SERVER}\noptions attempts:1 timeout:2\n")

    def experiment(self, program, sabotage="", **options):
        """What became of a program: the driver's facts; ``elsewhere`` and ``here``: what arrived at the servers."""
        driver = [*self.drop, "env", f"HOME={self.base}/work", "PYTHONDONTWRITEBYTECODE=1"]
        driver += [self.python, "-c", _DRIVER, str(_SOURCE), _PRELUDE + program, sabotage, json.dumps(options)]
        asked = {
            "python": sys.executable,
            "servers": _SERVERS,
            "here": _HERE,
            "elsewhere": _ELSEWHERE,
            "name_server": _NAME_SERVER,
            "log": str(self.base / "elsewhere.log"),
            "local_log": str(self.base / "here.log"),
            "resolv": str(self.base / "resolv.conf"),
            "work": str(self.base / "work"),
            "driver": driver,
        }
        words = ["unshare", "--net", "--mount", "--propagation", "private", sys.executable, "-c", _STAGE]
        done = subprocess.run([*words, json.dumps(asked)], capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["status"] == 0, answer["errors"]
        facts = json.loads(answer["output"])
        for name in ("elsewhere", "here"):
            facts[name] = (self.base / f"{name}.log").read_text().splitlines()
            (self.base / f"{name}.log").unlink()
        return facts

    def close(self):
        shutil.rmtree(self.base, ignore_errors=True)


def test_nothing_is_sent_whatever_sends_it(machines):
    facts = machines.experiment(_ATTACKS)
    assert facts["status"] == 0, facts["errors"]
    assert facts["elsewhere"] == [] and facts["here"] == [], facts
    assert "sent:" not in facts["output"], facts["output"]
    assert "a connection to 10.99.0.2:8000" in facts["refused"]
    # Python's own and the relay's refusals are told alike.
    assert (
        "POST http://127.0.0.1:8000/child" in facts["refused"] and "POST http://127.0.0.1:8000/curl" in facts["refused"]
    )
    assert [line for line in facts["reached"] if line.startswith("no way out: ")], facts["reached"]


def test_what_is_read_is_read_and_counted(machines):
    facts = machines.experiment(_READING)
    assert facts["output"].splitlines() == [
        "elsewhere data",
        "by name data",
        "loopback data",
        "curl b'data'",
        "plain socket b'data'",
    ], facts
    assert facts["elsewhere"] == ["GET /read", "GET /named"]
    assert facts["here"] == ["GET /read", "GET /curl", "GET /plain"]
    counted = [line.partition(" from the experiments: ")[2] for line in facts["reached"]]
    assert "10.99.0.2:8000 (2 connections)" in counted, counted
    assert any(line.startswith("127.0.0.1:8000 (3 connections, ") for line in counted), counted
    assert facts["refused"] == []


def test_a_program_reaches_its_own_servers(machines):
    """On the loopback, and at the machine's address by the interface's name."""
    facts = machines.experiment(_OWN_SERVER)
    assert facts["output"].splitlines()[:2] == ["127.0.0.1 mine", f"{_HERE} mine"], facts
    assert facts["reached"] == []


# Each defines ``get`` and ``post``, by an asynchronous client where it has one.
_LIBRARIES = {
    "requests": """
import requests
async def get(url):
    return requests.get(url, timeout=5).text
async def post(url):
    requests.post(url, data=b"x", timeout=5)
""",
    "httpx": """
import httpx
async def get(url):
    return httpx.get(url, timeout=5).text
async def post(url):
    httpx.post(url, content=b"x", timeout=5)
""",
    "httpx.AsyncClient": """
import httpx
async def get(url):
    async with httpx.AsyncClient() as client:
        return (await client.get(url)).text
async def post(url):
    async with httpx.AsyncClient() as client:
        await client.post(url, content=b"x")
""",
    "aiohttp": """
import aiohttp
async def get(url):
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return await response.text()
async def post(url):
    async with aiohttp.ClientSession() as session, session.post(url, data=b"x"):
        pass
""",
}
_READ_AND_POST = """
import asyncio
async def main():
    print(*await asyncio.gather(
        get(f"http://{ELSEWHERE}:8000/address"), get("http://data.example:8000/name"),
        get(f"http://{ELSEWHERE}:8000/again"), get("http://127.0.0.1:8000/here")))
    for host in (ELSEWHERE, "127.0.0.1"):
        try:
            await post(f"http://{host}:8000/post")
            print("sent to", host)
        except Exception as error:
            print(type(error).__name__, isinstance(error, ERRORS))
asyncio.run(main())
"""


@pytest.mark.parametrize("library", _LIBRARIES)
def test_http_libraries_read_and_do_not_write(roots_machines, library):
    """Requests at the same time, to an address, a name and this machine; a refusal is the library's own error."""
    module = library.partition(".")[0]
    pytest.importorskip(module)
    errors = {"requests": "requests.ConnectionError", "httpx": "httpx.ConnectError"}
    known = f"ERRORS = {errors.get(module, 'aiohttp.ClientConnectionError')}\n"
    facts = roots_machines.experiment(_LIBRARIES[library] + known + _READ_AND_POST)
    assert sorted(facts["elsewhere"]) == ["GET /address", "GET /again", "GET /name"], facts
    assert facts["here"] == ["GET /here"]
    assert facts["status"] == 0, facts["errors"]
    reads, *posts = facts["output"].splitlines()
    assert reads.split() == ["data"] * 4
    assert len(posts) == 2 and all(line.endswith(" True") for line in posts), facts["output"]
    assert {f"POST http://{host}:8000/post" for host in (_ELSEWHERE, "127.0.0.1")} <= set(facts["refused"])
    assert any("10.99.0.2:8000 (3 connections)" in line for line in facts["reached"]), facts["reached"]


def test_anyio_sockets_are_held_back(roots_machines):
    pytest.importorskip("anyio")
    program = "import anyio\nasync def main():\n    await anyio.connect_tcp(ELSEWHERE, 8000)\nanyio.run(main)"
    facts = roots_machines.experiment(program)
    assert facts["status"] == 1 and "unstall does not repeat this" in facts["errors"]


def test_writes_that_are_allowed_arrive(machines):
    facts = machines.experiment(_ATTACKS, network_writes=True)
    assert "POST /child x" in facts["elsewhere"] and "POST /curl x=1" in facts["here"]
    assert "no network of its own" not in facts["note"]


# As where the limit of network namespaces is reached, or a filter forbids them.
_NO_NAMESPACE = """
from unstall.sandbox import overlay
old = Path("entrance.py").absolute()
old.write_text(f"import errno, os, sys; sys.path.insert(0, {str(overlay._ENTER.parent)!r})\\n"
    "import kernel\\nleave = kernel.unshare\\n"
    "def unshare(flags):\\n    if flags & kernel.CLONE_NEWNET: raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))\\n"
    "    leave(flags)\\n"
    "kernel.unshare = unshare\\n"
    "import enter; os._exit(enter.main(sys.argv[1], sys.argv[2:]))")
overlay._ENTER = old
"""


def test_without_a_namespace_it_is_said_what_is_not_held_back(machines):
    facts = machines.experiment(_READING, sabotage=_NO_NAMESPACE)
    assert "a separate network is not possible here: what Python sends is blocked" in facts["note"]
    assert "No space left on device" in facts["note"] and "\n" not in facts["note"]
    assert "elsewhere data" in facts["output"] and facts["reached"] == []
