/* Which event is inside which. */
#include "scan.h"

#include <stdlib.h>
#include <string.h>

bool nest(size_t count, const int64_t *start, const int64_t *duration, const int32_t *thread, size_t threads,
          int64_t slack, int depth, int32_t *parent) {
    int32_t *top = malloc((threads ? threads : 1) * sizeof *top); /* innermost open event, by thread */
    int32_t *below = malloc((count ? count : 1) * sizeof *below); /* the one it was opened inside */
    if (!top || !below) {
        free(top);
        free(below);
        return false;
    }
    memset(top, 0xff, threads * sizeof *top);
    for (size_t i = 0; i < count; i++) {
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
    return true;
}
