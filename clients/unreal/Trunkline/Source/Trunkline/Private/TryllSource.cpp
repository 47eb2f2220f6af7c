// The client itself. The engine hides the types of Windows, which it needs.

#if defined(_WIN32)
#include "Windows/AllowWindowsPlatformTypes.h"
#endif

#include "tryll.cpp"

#if defined(_WIN32)
#include "Windows/HideWindowsPlatformTypes.h"
#endif
