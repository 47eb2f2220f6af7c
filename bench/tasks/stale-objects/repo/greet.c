#include "greet.h"

#include <stdio.h>

void greet(const char *name)
{
    printf("hello %s, from version %d\n", name, VERSION);
}
