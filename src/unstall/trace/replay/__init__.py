"""Replay: a trace as a graph of who waited for whom, and what its step would take if something were faster.

After Daydream (Zhu et al., USENIX ATC 2020), dPRO (Hu et al., MLSys 2022) and Lumos (Liang et al., MLSys 2025): host
program order, launch → kernel, stream order, waits between streams and of the host, collectives across ranks.
"""
