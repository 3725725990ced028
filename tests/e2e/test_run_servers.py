"""Servers that hold a model: what a request takes, and the time between requests, which is nobody's fault."""

import pytest

MODEL = """
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Linear(256, 4).eval()


    def featurize(text):
        counts = [0.0] * 256
        for letter in text:
            counts[ord(letter)] += 1
        return torch.tensor(counts)
"""

SERVER = f"""{MODEL}
    import json
    import socket
    import sys
    import threading
    import time
    import urllib.request

    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route


    async def score(request):
        features = featurize((await request.json())["text"])
        with torch.no_grad():
            scores = model(features[None])[0]
        return JSONResponse({{"scores": scores.tolist()}})


    def ask(port, requests, pause):
        content = json.dumps({{"text": "the quick brown fox " * 4000}}).encode()
        answers = set()
        for _ in range(requests):
            request = urllib.request.Request(f"http://127.0.0.1:{{port}}", content)
            with urllib.request.urlopen(request, timeout=60) as answer:
                answers.add(answer.read())
            time.sleep(pause)
        print(len(answers), json.loads(answers.pop())["scores"][0], flush=True)
        server.should_exit = True


    if __name__ == "__main__":
        listening = socket.create_server(("127.0.0.1", 0))
        app = Starlette(routes=[Route("/", score, methods=["POST"])])
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        requests, pause = int(sys.argv[1]), float(sys.argv[2])
        threading.Thread(target=ask, args=(listening.getsockname()[1], requests, pause)).start()
        server.run(sockets=[listening])
"""


@pytest.fixture
def server(workspace):
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    workspace.write("server.py", SERVER)
    return workspace


def shares(watched):
    return {phase["name"]: phase["share"] for phase in watched.report["phases"]}


@pytest.mark.long
def test_a_server_that_nobody_asks_much_of_is_idle(server):
    alone, watched = server.both("server.py", "40", "0.2")
    assert alone.out == watched.out and watched.status == 0
    verdict = watched.report["verdict"]
    assert (verdict["pattern"], verdict["cause"]) == ("idle", "requests")
    assert shares(watched)["idle"] > 0.6


def test_what_is_done_before_the_model_is_no_loading_of_data(server):
    alone, watched = server.both("server.py", "600", "0")
    assert alone.out == watched.out and watched.status == 0
    assert shares(watched)["other"] > shares(watched).get("data_wait", 0)
    assert "featurize" in [hotspot["function"] for hotspot in watched.report["hotspots"]]


THREADED = f"""{MODEL}
    import json
    import sys
    import threading
    import urllib.request
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            text = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with torch.no_grad():
                answer = json.dumps(model(featurize(text)[None])[0].tolist()).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *words):
            pass


    def ask(server, requests):
        host, port = server.server_address
        content = json.dumps("the quick brown fox " * 4000).encode()
        answers = set()
        for _ in range(requests):
            with urllib.request.urlopen(f"http://{{host}}:{{port}}", content, timeout=60) as answer:
                answers.add(answer.read())
        print(len(answers), json.loads(answers.pop())[0])
        server.shutdown()


    if __name__ == "__main__":
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=ask, args=(server, int(sys.argv[1]))).start()
        server.serve_forever()
"""


def test_a_server_with_a_thread_for_each_request_has_steps(workspace):
    workspace.write("server.py", THREADED)
    alone, watched = workspace.both("server.py", "500")
    assert alone.out == watched.out and watched.status == 0
    assert watched.steps > 100 and "idle" in shares(watched)
    assert "featurize" in [hotspot["function"] for hotspot in watched.report["hotspots"]]
