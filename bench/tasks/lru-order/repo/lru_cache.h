#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>

// Holds at most `capacity` entries. When it is full, the entry that was used longest ago goes.
template <typename Key, typename Value>
class LruCache {
public:
    explicit LruCache(std::size_t capacity) : capacity_(capacity) {}

    std::optional<Value> get(const Key &key)
    {
        auto found = places_.find(key);
        if (found == places_.end())
            return std::nullopt;
        hits_++;
        return found->second->second;
    }

    void put(const Key &key, Value value)
    {
        entries_.emplace_front(key, std::move(value));
        places_[key] = entries_.begin();
        if (entries_.size() > capacity_) {
            places_.erase(entries_.front().first);
            entries_.pop_back();
        }
    }

    std::size_t size() const { return places_.size(); }
    std::size_t hits() const { return hits_; }
    std::size_t misses() const { return misses_; }

private:
    using Entries = std::list<std::pair<Key, Value>>;

    std::size_t capacity_;
    std::size_t hits_ = 0;
    std::size_t misses_ = 0;
    Entries entries_; // the one that was used last is the first
    std::unordered_map<Key, typename Entries::iterator> places_;
};
