#include "version.h"

void greet(const char *name);
