// Stand-ins for what the plugin in clients/unreal uses of the engine: as much as a compiler needs to check its syntax and
// its use of the client. They do nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using int32 = std::int32_t;
using uint8 = std::uint8_t;

#define TRUNKLINE_API
#define TEXT(text) text
#define TCHAR_TO_UTF8(text) (text)
#define UTF8_TO_TCHAR(text) (text)
#define UCLASS(...)
#define UPROPERTY(...)
#define UFUNCTION(...)
#define GENERATED_BODY()
#define UE_LOG(category, level, ...) static_cast<void>(category)
#define DEFINE_LOG_CATEGORY_STATIC(name, ...) [[maybe_unused]] static int name = 0
#define RETURN_QUICK_DECLARE_CYCLE_STAT(...) return TStatId()
#define IMPLEMENT_MODULE(...)

class FString {
public:
  FString() = default;
  FString(const char *text) : text_(text) {}
  const char *operator*() const { return text_.c_str(); }
  bool IsEmpty() const { return text_.empty(); }

private:
  std::string text_;
};

template <class T> struct TArray {
  void Append(const T *items, int32 count) { all.insert(all.end(), items, items + count); }
  std::vector<T> all;
};

template <class K, class V> struct TPair {
  K Key;
  V Value;
};

template <class K, class V> struct TMap {
  const TPair<K, V> *begin() const { return all.data(); }
  const TPair<K, V> *end() const { return all.data() + all.size(); }
  std::vector<TPair<K, V>> all;
};

template <class T> using TUniquePtr = std::unique_ptr<T>;
template <class T> TUniquePtr<T> MakeUnique() { return std::make_unique<T>(); }

template <class T> class TWeakObjectPtr {
public:
  explicit TWeakObjectPtr(T *object) : object_(object) {}
  T *Get() const { return object_; }

private:
  T *object_;
};

template <class... A> struct TDelegate {
  void Broadcast(A...) {}
  template <class T> void AddDynamic(T *, void (T::*)(A...)) {}
  template <class T> void RemoveDynamic(T *, void (T::*)(A...)) {}
};
#define DECLARE_DYNAMIC_MULTICAST_DELEGATE_OneParam(name, a, an) using name = TDelegate<a>
#define DECLARE_DYNAMIC_MULTICAST_DELEGATE_TwoParams(name, a, an, b, bn) using name = TDelegate<a, b>
#define DECLARE_DYNAMIC_MULTICAST_DELEGATE_ThreeParams(name, a, an, b, bn, c, cn) using name = TDelegate<a, b, c>

struct TStatId {};
namespace EEndPlayReason {
enum Type { Quit };
}
