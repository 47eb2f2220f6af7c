#ifndef RING_H
#define RING_H

#include <stddef.h>

/* A queue of bytes that never grows. */
struct ring {
    unsigned char *data;
    size_t capacity; /* how many bytes it holds at most */
    size_t start;    /* where the oldest byte is */
    size_t length;   /* how many bytes it holds now */
};

void ring_init(struct ring *ring, unsigned char *data, size_t capacity);

/* How many of the bytes were taken: fewer when it is full. */
size_t ring_write(struct ring *ring, const unsigned char *bytes, size_t count);

/* How many bytes were given: fewer when it is empty. */
size_t ring_read(struct ring *ring, unsigned char *bytes, size_t count);

#endif
