"""torch's loader without a limit of cores, as recurrences: an independent statement of what the simulation must give.

W workers, prefetch factor F, in order. Task i goes to worker i mod W and is handed out when batch i − WF is taken:
R_i = G_{i−WF}; it starts when its worker is done with its last: S_i = max(R_i, D_{i−W}); D_i = S_i + s_i; taken
G_i = max(D_i, E_{i−1}); the body ends E_i = G_i + u_i; with a device that the step waits for, E_i = max(G_i + u_i, K_i) with K_i = max(K_{i−1}, G_i) + g_i.
"""

import numpy as np


def ends(s, u, *, workers, prefetch, g=None, syncs=False, run_ahead=3):
    """End of the body of each batch, seconds; all arguments are arrays of the same length, or numbers."""
    count = len(s)
    g = np.zeros(count) if g is None else g
    done, got, end, device = (np.zeros(count) for _ in range(4))
    for i in range(count):
        released = got[i - workers * prefetch] if i >= workers * prefetch else 0.0
        started = max(released, done[i - workers] if i >= workers else 0.0)
        done[i] = started + s[i]
        got[i] = max(done[i], end[i - 1] if i else 0.0)
        device[i] = max(device[i - 1] if i else 0.0, got[i]) + g[i]
        end[i] = got[i] + u[i]
        if syncs:
            end[i] = max(end[i], device[i])
        elif i >= run_ahead:
            end[i] = max(end[i], device[i - run_ahead])
    return end


def ends_alone(s, u):
    """Without workers: each batch is made, then used."""
    return np.cumsum(s + u)
