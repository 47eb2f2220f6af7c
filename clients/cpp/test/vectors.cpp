// Reads payloads in hexadecimal, one on each line, and answers each with a line: what it holds, or with --encode, how the
// client writes that. See clients/vectors/README.md.
//
// It includes the source, since how the fields of a table are shown to a visitor is not in the header.

#include "../tryll.cpp"

#include <iostream>

namespace tryll {
namespace detail {

std::string quoted(const std::string &text) {
  std::string out = "\"";
  for (const char each : text) {
    const auto code = static_cast<unsigned char>(each);
    if (each == '"' || each == '\\') {
      out += '\\';
      out += each;
    } else if (code < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", code);
      out += escape;
    } else {
      out += each;
    }
  }
  return out + '"';
}

std::string base64(const std::vector<std::int16_t> &samples) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<unsigned> bytes;
  for (const auto sample : samples) {
    bytes.push_back(static_cast<std::uint16_t>(sample) & 0xFF);
    bytes.push_back(static_cast<std::uint16_t>(sample) >> 8);
  }
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const auto left = bytes.size() - at;
    const unsigned three = bytes[at] << 16 | (left > 1 ? bytes[at + 1] << 8 : 0) | (left > 2 ? bytes[at + 2] : 0);
    out += digits[three >> 18];
    out += digits[three >> 12 & 63];
    out += left > 1 ? digits[three >> 6 & 63] : '=';
    out += left > 2 ? digits[three & 63] : '=';
  }
  return out;
}

/// Shows a table as a JSON object.
struct Shown {
  std::string out = "{";

  void operator()(int, const char *name, bool value) { member(name, value ? "true" : "false"); }
  void operator()(int, const char *name, float value) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.9g", static_cast<double>(value));
    member(name, digits);
  }
  template <class T> std::enable_if_t<std::is_integral<T>::value> operator()(int, const char *name, const T &value) {
    member(name, std::to_string(value));
  }
  void operator()(int, const char *name, const std::string &value) { member(name, quoted(value)); }
  void operator()(int, const char *name, const std::vector<std::int16_t> &value) {
    member(name, '"' + base64(value) + '"');
  }
  template <class T> void operator()(int position, const char *name, const std::optional<T> &value) {
    if (!value) {
      member(name, "null");
    } else if constexpr (is_scalar<T> || std::is_same<T, std::string>::value) {
      (*this)(position, name, *value);
    } else {
      member(name, table(*value));
    }
  }
  template <class T> void operator()(int, const char *name, const std::vector<T> &value) {
    std::string items;
    for (const auto &item : value) {
      if (!items.empty()) items += ',';
      if constexpr (std::is_same<T, std::string>::value) {
        items += quoted(item);
      } else {
        items += table(item);
      }
    }
    member(name, '[' + items + ']');
  }
  template <class... T> void operator()(int, const char *name, const std::variant<std::monostate, T...> &value) {
    member(name, one_of(value));
  }

  template <class T> static std::string table(const T &value, const char *type = nullptr) {
    Shown shown;
    if (type) shown.member("type", quoted(type));
    visit(shown, value, Of<T>{});
    return shown.out + '}';
  }
  template <class Variant> static std::string one_of(const Variant &value) {
    return std::visit(
        [](const auto &found) -> std::string {
          using T = std::decay_t<decltype(found)>;
          if constexpr (std::is_same<T, std::monostate>::value) {
            return "null";
          } else {
            return table(found, Traits<T>::name);
          }
        },
        value);
  }

private:
  void member(const char *name, const std::string &value) {
    if (out.size() > 1) out += ',';
    out += quoted(name) + ':' + value;
  }
};

}  // namespace detail
}  // namespace tryll

int main(int count, char **arguments) {
  const bool encodes = count > 1 && std::string_view(arguments[1]) == "--encode";
  std::string line;
  while (std::getline(std::cin, line)) {
    // Of exactly its size, so that a checker sees a byte read behind it.
    std::vector<std::uint8_t> payload;
    for (std::size_t at = 0; at + 1 < line.size(); at += 2)
      payload.push_back(static_cast<std::uint8_t>(std::strtoul(line.substr(at, 2).c_str(), nullptr, 16)));
    payload.shrink_to_fit();
    const auto message = tryll::decode(payload.data(), payload.size());
    std::string answer;
    if (!message) {
      answer = "{\"error\":" + std::to_string(message.error.code) + "}";
    } else if (!encodes) {
      answer = tryll::detail::Shown::one_of(*message);
    } else {
      const auto written = tryll::encode(*message);
      char digits[3];
      for (const char byte : *written) {
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
        answer += digits;
      }
    }
    std::cout << answer << '\n';
  }
  return 0;
}
