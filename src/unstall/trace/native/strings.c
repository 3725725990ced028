/* Interned strings, and tables of columns that grow. */
#include "scan.h"

#include <stdlib.h>
#include <string.h>

static bool grow(void **data, size_t *room, size_t needed, size_t width) {
    if (needed <= *room) return true;
    size_t wanted = *room + *room / 2 + 64;
    if (wanted < needed) wanted = needed;
    if (wanted > SIZE_MAX / width) return false;
    void *bigger = realloc(*data, wanted * width);
    if (!bigger) return false;
    *data = bigger;
    *room = wanted;
    return true;
}

static uint64_t mix(uint64_t value) {
    value *= UINT64_C(0x9e3779b97f4a7c15);
    return value ^ value >> 29;
}

static uint64_t hash_bytes(const char *data, size_t size) {
    uint64_t hash = mix(size + 1), word;
    for (; size >= 8; data += 8, size -= 8) {
        memcpy(&word, data, 8);
        hash = mix(hash ^ word);
    }
    word = 0;
    memcpy(&word, data, size);
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

int32_t strings_intern(Strings *strings, const char *data, size_t size) {
    if (strings->count * 2 >= strings->slot_count && !rehash(strings)) return -1;
    const uint64_t hash = hash_bytes(data, size);
    size_t at = hash & (strings->slot_count - 1);
    for (; strings->slots[at] >= 0; at = (at + 1) & (strings->slot_count - 1)) {
        const StringEntry *entry = &strings->entries[strings->slots[at]];
        if (entry->hash == hash && entry->size == size && !memcmp(strings->bytes + entry->offset, data, size))
            return strings->slots[at];
    }
    if (strings->count == INT32_MAX ||
        !grow((void **)&strings->bytes, &strings->room, strings->used + size + 1, 1) ||
        !grow((void **)&strings->entries, &strings->entry_room, strings->count + 1, sizeof *strings->entries))
        return -1;
    memcpy(strings->bytes + strings->used, data, size);
    strings->entries[strings->count] = (StringEntry){hash, strings->used, size};
    strings->used += size;
    return strings->slots[at] = (int32_t)strings->count++;
}

void strings_free(Strings *strings) {
    free(strings->bytes);
    free(strings->entries);
    free(strings->slots);
    memset(strings, 0, sizeof *strings);
}

bool table_reserve(Table *table) {
    if (table->count < table->room) return true;
    size_t room = table->room;
    for (int i = 0; i < table->columns; i++) {
        room = table->room;
        if (!grow(&table->data[i], &room, table->count + 1, table->width[i])) return false;
    }
    table->room = room;
    return true;
}

void table_free(Table *table) {
    for (int i = 0; i < MAX_COLUMNS; i++) {
        free(table->data[i]);
        table->data[i] = NULL;
    }
    table->count = table->room = 0;
}
