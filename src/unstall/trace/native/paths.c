/* The longest path through a replay's graph. */
#include "scan.h"

#include <math.h>

bool longest_paths(size_t nodes, size_t edges, const int64_t *pointer, const int64_t *src, const double *lag,
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
