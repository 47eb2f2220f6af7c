#include "ring.h"

void ring_init(struct ring *ring, unsigned char *data, size_t capacity)
{
    ring->data = data;
    ring->capacity = capacity;
    ring->start = 0;
    ring->length = 0;
}

size_t ring_write(struct ring *ring, const unsigned char *bytes, size_t count)
{
    size_t written = 0;
    while (written < count && ring->length < ring->capacity - 1) {
        size_t end = ring->start + ring->length;
        if (end > ring->capacity)
            end -= ring->capacity;
        ring->data[end] = bytes[written++];
        ring->length++;
    }
    return written;
}

size_t ring_read(struct ring *ring, unsigned char *bytes, size_t count)
{
    size_t given = 0;
    while (given < count && ring->length > 0) {
        bytes[given++] = ring->data[ring->start];
        ring->start = (ring->start + 1) % ring->capacity;
        ring->length--;
    }
    return given;
}
