/* Interned strings: each distinct one once, with a number. */
#include "scan.h"

#include <stdlib.h>
#include <string.h>

bool grow(void **data, size_t *room, size_t needed, size_t width) {
    if (needed <= *room) return true;
    size_t wanted = *room + *room / 2 + 64;
    if (wanted < needed) wanted = needed;
    void *bigger = wanted > SIZE_MAX / width ? NULL : realloc(*data, wanted * width);
    if (!bigger) return false;
    *data = bigger;
    *room = wanted;
    return true;
}

static uint64_t mix(uint64_t value) {
    value *= UINT64_C(0x9e3779b97f4a7c15);
    return value ^ value >> 29;
}

static uint64_t hash_of(Text text) {
    uint64_t hash = mix(text.size + 1), word;
    for (; text.size >= 8; text.data += 8, text.size -= 8) {
        memcpy(&word, text.data, 8);
        hash = mix(hash ^ word);
    }
    word = 0;
    memcpy(&word, text.data, text.size);
    return mix(hash ^ mix(word));
}

static bool rehash(Strings *strings) {
    const size_t count = strings->slot_count ? strings->slot_count * 2 : 256;
    int32_t *slots = malloc(count * sizeof *slots);
    if (!slots) return false;
    memset(slots, 0xff, count * sizeof *slots);
    for (size_t i = 0; i < strings->count; i++) {
        size_t at = strings->entries[i].hash & (count - 1);
        while (slots[at] >= 0) at = (at + 1) & (count - 1);
        slots[at] = (int32_t)i;
    }
    free(strings->slots);
    strings->slots = slots;
    strings->slot_count = count;
    return true;
}

static bool is(const Strings *strings, int32_t number, Text text) {
    const StringEntry *entry = &strings->entries[number];
    return entry->size == text.size && !memcmp(strings->bytes + entry->offset, text.data, text.size);
}

int32_t strings_intern(Strings *strings, Text text) {
    if (strings->count && is(strings, strings->last, text)) return strings->last; /* threads and phases come in runs */
    if (strings->count * 2 >= strings->slot_count && !rehash(strings)) return -1;
    const uint64_t hash = hash_of(text);
    size_t at = hash & (strings->slot_count - 1);
    for (; strings->slots[at] >= 0; at = (at + 1) & (strings->slot_count - 1)) {
        const int32_t number = strings->slots[at];
        if (strings->entries[number].hash == hash && is(strings, number, text)) return strings->last = number;
    }
    if (strings->count == INT32_MAX ||
        !grow((void **)&strings->bytes, &strings->room, strings->used + text.size + 1, 1) ||
        !grow((void **)&strings->entries, &strings->entry_room, strings->count + 1, sizeof *strings->entries))
        return -1;
    memcpy(strings->bytes + strings->used, text.data, text.size);
    strings->entries[strings->count] = (StringEntry){hash, strings->used, text.size};
    strings->used += text.size;
    return strings->last = strings->slots[at] = (int32_t)strings->count++;
}

void strings_free(Strings *strings) {
    free(strings->bytes);
    free(strings->entries);
    free(strings->slots);
}
