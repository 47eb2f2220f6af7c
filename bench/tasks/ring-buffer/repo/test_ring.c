#include <stdio.h>
#include <string.h>

#include "ring.h"

static int failures;

static void check(int is_so, const char *what)
{
    if (!is_so) {
        printf("FAIL: %s\n", what);
        failures++;
    }
}

int main(void)
{
    unsigned char data[5] = {0, 0, 0, 0, '#'}, out[8] = {0};
    struct ring ring;

    /* One byte is not the ring's. */
    ring_init(&ring, data, 4);
    check(ring_write(&ring, (const unsigned char *)"abcd", 4) == 4, "a ring of four bytes takes four");
    check(ring_write(&ring, (const unsigned char *)"e", 1) == 0, "a full ring takes none");
    check(ring_read(&ring, out, 8) == 4 && memcmp(out, "abcd", 4) == 0, "what was written is read");

    for (int round = 0; round < 9; round++) {
        check(ring_write(&ring, (const unsigned char *)"xyz", 3) == 3, "three bytes fit, wherever it starts");
        check(ring_read(&ring, out, 3) == 3 && memcmp(out, "xyz", 3) == 0, "three bytes come back");
    }
    check(data[4] == '#', "nothing is written beyond its end");

    ring_init(&ring, data, 0);
    check(ring_write(&ring, (const unsigned char *)"a", 1) == 0, "a ring without room takes none");
    if (failures == 0)
        printf("all is well\n");
    return failures > 0;
}
