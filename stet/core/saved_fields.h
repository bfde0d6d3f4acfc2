// What exported functions are written in: numbers, texts, sizes and the fields of attributes, as bytes of a file. Not a
// public header.
//
// A field of attributes stands with its name and its kind, so that a file which was made for other attributes is
// refused by name. What is read is believed in nothing: lengths are held against the bytes that are left, numbers
// against what code does with them, and every error names the file and the byte.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "stet/base/dim.h"
#include "stet/base/dtype.h"
#include "stet/base/inside.h"
#include "stet/base/shape.h"
#include "stet/files/file.h"
#include "stet/ir/attributes.h"
#include "stet/ir/op.h"

namespace stet {

class SavedWriter {
 public:
  void u8(std::uint8_t value) { bytes.push_back(static_cast<char>(value)); }
  void u32(std::uint64_t value);  // InternalError if it does not fit
  void u64(std::uint64_t value) { number(value); }
  void i64(std::int64_t value) { number(value); }
  void f64(double value) { number(value); }
  void text(std::string_view value);
  void dtype(DType value) { text(name(value)); }
  void size(const Dim& value);
  void shape(const Shape& value);

  std::string bytes;

 private:
  template <class T>
  void number(T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
};

class SavedReader {
 public:
  SavedReader(std::span<const std::byte> bytes, const files::Reading& reading, std::uint64_t base)
      : walk_(bytes, reading, base) {}

  std::uint8_t u8(const char* what) { return walk_.number<std::uint8_t>(what); }
  std::uint32_t u32(const char* what) { return walk_.number<std::uint32_t>(what); }
  std::uint64_t u64(const char* what) { return walk_.number<std::uint64_t>(what); }
  std::int64_t i64(const char* what) { return walk_.number<std::int64_t>(what); }
  double f64(const char* what) { return walk_.number<double>(what); }
  bool boolean(const char* what);
  std::string text(const char* what);
  /// How many things follow, each of which takes at least `least` bytes: more than there can be is an error.
  std::size_t count(std::size_t least, const char* what);
  /// A number below `end`.
  std::size_t below(std::size_t end, const char* what);
  DType dtype(const char* what);
  Dim size(const char* what);
  Shape shape(const char* what);
  bool at_end() const { return walk_.at_end(); }
  [[noreturn]] void fail(const std::string& reason, const std::string& advice = advice_for_damaged) const {
    walk_.fail(reason, advice);
  }
  const files::Reading& reading() const { return walk_.reading(); }

  /// What stands for the symbols of sizes.
  std::vector<Dim> symbols;

 private:
  static constexpr const char* advice_for_damaged = "the file is damaged: export the function again";
  files::Walk walk_;
};

// --- What a field of attributes can be.

namespace saved {

/// Integers in lists are strides, windows, axes: code adds and multiplies them.
constexpr std::int64_t largest_in_list = std::int64_t{1} << 40;

inline void put(SavedWriter& to, bool value) { to.u8(value); }
inline void put(SavedWriter& to, int value) { to.i64(value); }
inline void put(SavedWriter& to, std::int64_t value) { to.i64(value); }
inline void put(SavedWriter& to, double value) { to.f64(value); }
inline void put(SavedWriter& to, DType value) { to.dtype(value); }
inline void put(SavedWriter& to, Combine value) { to.text(name(value)); }
inline void put(SavedWriter& to, const std::string& value) { to.text(value); }
inline void put(SavedWriter& to, const Dim& value) { to.size(value); }
template <class T>
void put(SavedWriter& to, const std::vector<T>& values) {
  to.u32(values.size());
  for (const T& value : values) put(to, value);
}

inline void get(SavedReader& from, bool& value, const char* what) { value = from.boolean(what); }
void get(SavedReader& from, int& value, const char* what);
inline void get(SavedReader& from, std::int64_t& value, const char* what) { value = from.i64(what); }
inline void get(SavedReader& from, double& value, const char* what) { value = from.f64(what); }
inline void get(SavedReader& from, DType& value, const char* what) { value = from.dtype(what); }
void get(SavedReader& from, Combine& value, const char* what);
inline void get(SavedReader& from, std::string& value, const char* what) { value = from.text(what); }
inline void get(SavedReader& from, Dim& value, const char* what) { value = from.size(what); }
template <class T>
void get(SavedReader& from, std::vector<T>& values, const char* what) {
  // Attributes have an entry per axis, or a few.
  const std::size_t count = from.count(1, what);
  if (count > 64) from.fail(text("'", what, "' has ", count, " entries"));
  for (std::size_t i = 0; i < count; ++i) {
    T value = T{};
    get(from, value, what);
    if constexpr (std::is_same_v<T, std::int64_t>)
      if (value > largest_in_list || value < -largest_in_list)
        from.fail(text("'", what, "' has ", value, ", which is too large"));
    values.push_back(std::move(value));
  }
}
template <>
inline void get(SavedReader& from, std::vector<Dim>& values, const char* what) {
  const std::size_t count = from.count(1, what);
  if (count > 64) from.fail(text("'", what, "' has ", count, " entries"));
  for (std::size_t i = 0; i < count; ++i) values.push_back(from.size(what));
}

/// The letter of a kind of field: what a file says that it has must be what the row's attributes have.
template <class T>
struct Letter;
#define STET_LETTER(type, letter)         \
  template <>                             \
  struct Letter<type> {                   \
    static constexpr char value = letter; \
  };
STET_LETTER(bool, 'b')
STET_LETTER(int, 'i')
STET_LETTER(std::int64_t, 'l')
STET_LETTER(double, 'd')
STET_LETTER(DType, 't')
STET_LETTER(Combine, 'c')
STET_LETTER(std::string, 's')
STET_LETTER(Dim, 'n')
STET_LETTER(std::vector<int>, 'I')
STET_LETTER(std::vector<std::int64_t>, 'L')
STET_LETTER(std::vector<Dim>, 'N')
STET_LETTER(std::vector<std::string>, 'S')
#undef STET_LETTER

/// The next field is this one, or UserError.
void expect_field(SavedReader& from, const char* name, char letter);

}  // namespace saved

/// How the attributes of a row are written and read again.
struct AttributeCodec {
  const AttributeType* type = nullptr;  // null: the row has none
  void (*write)(SavedWriter&, const void*) = nullptr;
  Attributes (*read)(SavedReader&) = nullptr;
};

/// Of a struct with STET_ATTRIBUTES whose fields are all of the kinds above.
template <class T>
inline constexpr AttributeCodec attribute_codec = {
    .type = &attribute_type<T>,
    .write =
        [](SavedWriter& to, const void* data) {
          const T& v = *static_cast<const T*>(data);
          auto one = [&](const auto& f) {
            to.text(f.name);
            to.u8(static_cast<std::uint8_t>(saved::Letter<std::remove_cvref_t<decltype(v.*f.member)>>::value));
            saved::put(to, v.*f.member);
          };
          std::apply([&](const auto&... f) { (one(f), ...); }, T::template fields<T>());
        },
    .read =
        [](SavedReader& from) {
          T v{};
          auto one = [&](const auto& f) {
            saved::expect_field(from, f.name, saved::Letter<std::remove_cvref_t<decltype(v.*f.member)>>::value);
            saved::get(from, v.*f.member, f.name);
          };
          std::apply([&](const auto&... f) { (one(f), ...); }, T::template fields<T>());
          return Attributes(view_of(v));
        },
};

}  // namespace stet
