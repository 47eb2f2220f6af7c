#include <cstdio>
#include <memory>
#include <string>

#include "lru_cache.h"

static int failures;

static void check(bool is_so, const char *what)
{
    if (!is_so) {
        std::printf("FAIL: %s\n", what);
        failures++;
    }
}

int main()
{
    LruCache<std::string, int> cache(2);
    check(!cache.get("a"), "an empty cache has nothing");
    cache.put("a", 1);
    cache.put("b", 2);
    check(cache.get("a") == 1 && cache.get("b") == 2, "what was put is there");
    check(cache.get("a") == 1, "and stays there");
    cache.put("c", 3);
    check(!cache.get("b"), "the one used longest ago goes");
    check(cache.get("a") == 1 && cache.get("c") == 3, "the others stay");
    cache.put("a", 10);
    check(cache.size() == 2 && cache.get("a") == 10, "a value is replaced");
    cache.put("d", 4);
    check(cache.get("a") == 10 && !cache.get("c"), "replacing counts as use");
    check(cache.hits() == 7 && cache.misses() == 3, "hits and misses are counted");

    LruCache<int, std::shared_ptr<int>> shared(1);
    auto value = std::make_shared<int>(1);
    shared.put(1, value);
    shared.put(2, nullptr);
    check(value.use_count() == 1, "what has gone is let go");

    LruCache<int, int> none(0);
    none.put(1, 1);
    check(none.size() == 0 && !none.get(1), "a cache without room keeps nothing");
    if (failures == 0)
        std::printf("all is well\n");
    return failures > 0;
}
