/* What it costs to fetch anew what a step has pushed out of the caches: a few lines of memory are touched once a step.
 *
 * What is left of a step runs faster once other work has gone from between, by what it then need not fetch; how much
 * that is depends on who else uses the machine's caches (unstall.benchmark.warm_caches). Each line lies on a page of its
 * own, and holds the address of the next one: the processor cannot ask for two at once.
 */
#include "recorder.h"

#include <stdlib.h>
#include <string.h>

#define LINES 32
#define APART 4160 /* bytes: a page and a line, so that the lines do not meet in one set of a cache */
#define STRIDE 13  /* lines from one to the next: no prefetcher follows, and as 32 has no such factor, all are met */
/* Of so many steps the first are looked at, one after another. The first of these only begin: a cache that keeps what
 * is used again and again must have learned that the lines are, as those are that a program uses in each step. */
#define ROUND 128
#define LOOKS 24
#define BEGINNING 8
#define LEAST_STEP_NS 2000000u /* a shorter step leaves most of them in the caches, and has no time to spare */

static void **ring = NULL; /* where the next walk begins */
static uint32_t steps = 0;
static uint64_t last = 0;

static void **make_ring(void) {
    char *lines = malloc(LINES * APART);
    if (!lines) return NULL;
    memset(lines, 0, LINES * APART); /* the kernel gives the pages now, not in the first walk */
    for (int i = 0; i < LINES; i++) *(void **)(lines + i * APART) = lines + (i + STRIDE) % LINES * APART;
    return (void **)lines;
}

static void walk(void) {
    void **line = ring;
    for (int i = 0; i < LINES; i++) line = *(void *volatile *)line;
    ring = line;
}

void rec_refetch_anew(void) { last = 0; }

void rec_refetch(void) {
    const uint64_t began = rec_now();
    const int follows = last && began - last >= LEAST_STEP_NS;
    const uint32_t look = steps % ROUND;
    last = began;
    if (!follows) {
        steps = 0; /* the next look begins anew */
        return;
    }
    steps++;
    if (look >= LOOKS || (!ring && !(ring = make_ring()))) return;
    const uint64_t before = rec_now();
    walk();
    const uint64_t took = rec_now() - before;
    walk(); /* what a program uses, it uses more than once a step */
    if (look < BEGINNING) return;
    rec_header->refetch_ns[rec_header->refetches % REFETCHES] = (uint32_t)(took / LINES);
    rec_header->refetches++;
}
