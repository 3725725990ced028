"""A real Ray cluster of two nodes on this machine, in a process of its own: Ray changes the process that imports it."""

import contextlib
import json
import subprocess
import sys


class TwoNodes:
    """Its node ``stronger`` has two cores, the node ``head`` one, so that the stronger one is taken first."""

    def __init__(self, process):
        self._process = process
        facts = json.loads(process.stdout.readline())
        self.address, self.stronger, self.head = facts["address"], facts["stronger"], facts["head"]

    def lose(self):
        """Kill the stronger node."""
        self._process.stdin.write("lose\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "lost\n"


@contextlib.contextmanager
def two_nodes():
    """Yields a cluster, which ends with the context."""
    with subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        yield TwoNodes(process)
        process.stdin.close()


def main():
    """Start the nodes; lose one when told so; end with standard input."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    stronger = cluster.add_node(num_cpus=2)
    names = {"stronger": stronger.node_id, "head": cluster.head_node.node_id}
    print(json.dumps({"address": cluster.address, **names}), flush=True)
    for _ in sys.stdin:
        cluster.remove_node(stronger, allow_graceful=False)
        print("lost", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
