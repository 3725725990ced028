/* Two passes over what was read, each in one loop: which event is inside which, and the longest path through a graph. */
#include "scan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* parent[i]: the innermost event around i on its thread, or -1. Threads are 0 to threads - 1. False: no memory. */
EXPORT bool nest(size_t count, const int64_t *start, const int64_t *duration, const int32_t *thread, size_t threads,
                 int64_t slack, int depth, int32_t *parent) {
    int32_t *top = malloc((threads + 1) * sizeof *top);   /* innermost open event, by thread */
    int32_t *below = malloc((count + 1) * sizeof *below); /* the one it was opened inside */
    const bool enough = top && below;
    if (enough) memset(top, 0xff, threads * sizeof *top);
    for (size_t i = 0; enough && i < count; i++) {
        int32_t open = top[thread[i]];
        while (open >= 0 && start[open] + duration[open] <= start[i]) open = below[open];
        below[i] = open;
        top[thread[i]] = (int32_t)i;
        const int64_t end = start[i] + duration[i] - slack;
        int looked = 0;
        while (open >= 0 && start[open] + duration[open] < end) open = ++looked < depth ? below[open] : -1;
        parent[i] = open;
    }
    free(top);
    free(below);
    return enough;
}

/* time[i]: when node i of a graph comes at the earliest, binding[i]: the edge it waits for, or -1. In-edges of node i
 * are pointer[i] to pointer[i + 1]; lag is how long after its source each one ends. False: an edge goes backward, or is
 * none of the graph's. */
EXPORT bool longest_paths(size_t nodes, size_t edges, const int64_t *pointer, const int64_t *src, const double *lag,
                          double *time, int64_t *binding) {
    for (size_t node = 0; node < nodes; node++) {
        time[node] = 0;
        binding[node] = -1;
        const int64_t first = pointer[node], last = pointer[node + 1];
        if (first < 0 || last < first || (size_t)last > edges) return false;
        for (int64_t edge = node ? first : last; edge < last; edge++) {
            if (src[edge] < 0 || (size_t)src[edge] >= node) return false;
            const double at = time[src[edge]] + lag[edge];
            if (at < time[node] || isnan(at)) continue;
            time[node] = at;
            binding[node] = edge;
        }
    }
    return true;
}
