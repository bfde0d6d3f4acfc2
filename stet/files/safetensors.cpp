#include "stet/files/safetensors.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/files/json.h"
#include "stet/files/utf8.h"

namespace stet::files {
namespace {

constexpr std::uint64_t length_bytes = 8, most_header_bytes = 100'000'000;
constexpr std::string_view metadata_name = "__metadata__";

/// In the order of the format's library, by which it sorts: types of larger elements are behind.
struct NamedType {
  const char* name;
  DType dtype;
};
constexpr NamedType types[] = {{"BOOL", DType::bool_}, {"U8", DType::u8},     {"I8", DType::i8},   {"I16", DType::i16},
                               {"F16", DType::f16},    {"BF16", DType::bf16}, {"I32", DType::i32}, {"F32", DType::f32},
                               {"F64", DType::f64},    {"I64", DType::i64}};
static_assert(std::size(types) == dtype_count);

std::optional<DType> type_named(std::string_view name) {
  for (const NamedType& type : types)
    if (type.name == name) return type.dtype;
  return std::nullopt;
}
std::ptrdiff_t place_of(DType dtype) {
  return std::find_if(std::begin(types), std::end(types), [&](const NamedType& type) { return type.dtype == dtype; }) -
         std::begin(types);
}

/// One tensor of the header, its offsets still relative.
class EntryReader {
 public:
  EntryReader(const Reading& reading, const Json::Member& member)
      : reading_(reading), member_(member), name_(quoted_name(member.first)) {}

  SafetensorsEntry read() const {
    if (!member_.second.if_object()) fail(text("is ", member_.second.kind(), " in the header, not an object"));
    SafetensorsEntry entry{member_.first, dtype(), {}, 0, 0};
    for (const Json& size : list("shape")) entry.sizes.push_back(size_of_axis(size));
    const Json::List& offsets = list("data_offsets");
    if (offsets.size() != 2) fail(text("has ", offsets.size(), " data_offsets, not two"));
    auto begin = static_cast<std::uint64_t>(offset(offsets[0])), end = static_cast<std::uint64_t>(offset(offsets[1]));
    if (begin > end) fail(text("ends at ", end, ", before it begins at ", begin));
    std::uint64_t bytes;
    if (!bytes_of(entry.sizes, static_cast<std::uint64_t>(stet::size_of(entry.dtype)), bytes))
      fail(text("has sizes ", sizes_text(entry.sizes), ", whose product is too large"));
    if (bytes != end - begin)
      fail(text("is ", name(entry.dtype), " of sizes ", sizes_text(entry.sizes), ", which is ", bytes,
                " bytes; its data_offsets have ", end - begin));
    entry.offset = begin;
    entry.bytes = bytes;
    return entry;
  }

 private:
  [[noreturn]] void fail(const std::string& reason,
                         const std::string& advice = "the file is damaged: fetch or write it again") const {
    reading_.fail(text("the tensor ", name_, " ", reason), advice);
  }
  const Json& field(const char* field_name) const {
    const Json* found = member_.second.find(field_name);
    if (!found) fail(text("has no ", field_name));
    return *found;
  }
  DType dtype() const {
    const Json& type = field("dtype");
    const std::string* type_name = type.if_string();
    if (!type_name) fail(text("has a dtype that is ", type.kind(), ", not a string"));
    std::optional<DType> known = type_named(*type_name);
    if (!known)
      fail(text("has the dtype ", quoted_name(*type_name), ", which stet does not have"),
           "write it as one of BOOL, U8, I8, I16, I32, I64, F16, BF16, F32, F64");
    return *known;
  }
  const Json::List& list(const char* field_name) const {
    const Json& value = field(field_name);
    if (!value.if_list()) fail(text("has a ", field_name, " that is ", value.kind(), ", not a list"));
    return *value.if_list();
  }
  std::int64_t size_of_axis(const Json& value) const { return natural(value, "shape"); }
  std::int64_t offset(const Json& value) const { return natural(value, "data_offsets"); }
  std::int64_t natural(const Json& value, const char* field_name) const {
    const std::int64_t* integer = value.if_integer();
    if (!integer || *integer < 0)
      fail(text("has ", integer ? "a negative number" : value.kind(), " in its ", field_name));
    return *integer;
  }
  const Reading& reading_;
  const Json::Member& member_;
  std::string name_;
};

SafetensorsMetadata read_metadata(const Reading& reading, const Json& value) {
  SafetensorsMetadata metadata;
  const char* advice = "metadata is an object of strings";
  if (!value.if_object()) reading.fail(text("its __metadata__ is ", value.kind()), advice);
  for (const Json::Member& member : *value.if_object()) {
    const std::string* words = member.second.if_string();
    if (!words)
      reading.fail(text("its __metadata__ has ", member.second.kind(), " at ", quoted_name(member.first)), advice);
    metadata.emplace_back(member.first, *words);
  }
  return metadata;
}

}  // namespace

SafetensorsReader::SafetensorsReader(Source source) : source_(std::move(source)) {
  const Reading& reading = source_.reading();
  const char* advice = "it is no safetensors file, or is damaged";
  if (source_.size() < length_bytes) reading.fail("is too short for a safetensors file", advice);
  std::uint64_t length;
  source_.read(0, &length, sizeof length, "header");
  if (length > most_header_bytes)
    reading.fail(text("declares a header of ", length, " bytes; at most ", most_header_bytes, " are allowed"), 0,
                 advice);
  if (length > source_.size() - length_bytes)
    reading.fail(
        text("declares a header of ", length, " bytes, but has ", source_.size() - length_bytes, " behind its first 8"),
        0, advice);
  const std::uint64_t data = length_bytes + length, data_size = source_.size() - data;
  Json header;
  {
    Bytes bytes = source_.read(length_bytes, length, "header");
    std::string_view words(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!words.starts_with('{')) reading.fail("its header does not begin with '{'", length_bytes, advice);
    header = parse_json(words, reading, length_bytes);
  }
  for (const Json::Member& member : *header.if_object()) {
    if (member.first == metadata_name)
      metadata_ = read_metadata(reading, member.second);
    else
      tensors_.push_back(EntryReader(reading, member).read());
  }
  // Tensors without elements before that which begins at the same byte.
  std::stable_sort(tensors_.begin(), tensors_.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  });
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    SafetensorsEntry& entry = tensors_[i];
    if (entry.offset != at)
      reading.fail(text("the tensor ", quoted_name(entry.name), " begins at ", entry.offset, " of the data, ",
                        entry.offset < at ? "inside of" : "not where", " the one before it",
                        entry.offset < at ? "" : text(" ends, at ", at)),
                   data + std::min(entry.offset, data_size));
    if (entry.bytes > data_size - at)
      reading.fail(text("the tensor ", quoted_name(entry.name), " of ", entry.bytes, " bytes goes beyond the end by ",
                        entry.bytes - (data_size - at)),
                   data + at);
    at += entry.bytes;
    entry.offset += data;
    by_name_.emplace(entry.name, i);
  }
  if (at != data_size) reading.fail(text(data_size - at, " bytes at its end belong to no tensor"), data + at);
}

const SafetensorsEntry* SafetensorsReader::find(std::string_view name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

void SafetensorsReader::read(const SafetensorsEntry& entry, std::span<std::byte> to) const {
  if (to.size() != entry.bytes)
    throw InternalError("a tensor of a safetensors file is read into a place of another size");
  source_.read(entry.offset, to.data(), to.size(), "data");
  if (entry.dtype != DType::bool_) return;
  auto bad = std::find_if(to.begin(), to.end(), [](std::byte b) { return b > std::byte{1}; });
  if (bad != to.end())
    reading().fail(text("the tensor ", quoted_name(entry.name), " of bools has a ", std::to_integer<int>(*bad)),
                   entry.offset + static_cast<std::uint64_t>(bad - to.begin()));
}

void write_safetensors(const Sink& sink, std::vector<SafetensorsPart> parts, const SafetensorsMetadata& metadata) {
  std::sort(parts.begin(), parts.end(), [](const SafetensorsPart& a, const SafetensorsPart& b) {
    return a.dtype != b.dtype ? place_of(a.dtype) > place_of(b.dtype) : a.name < b.name;
  });
  std::set<std::string_view> names;
  std::string header = "{";
  auto add = [&](std::string_view name, const std::string& value) {
    if (!is_utf8(name))
      throw InternalError(text("the name ", quoted_name(name), " of a tensor to be saved is not UTF-8"));
    if (header.size() > 1) header += ',';
    header += text(to_text(Json(std::string(name))), ":", value);
  };
  if (!metadata.empty()) {
    std::string object = "{";
    for (const auto& [name, value] : metadata)
      object += text(object.size() > 1 ? "," : "", to_text(Json(name)), ":", to_text(Json(value)));
    add(metadata_name, object + "}");
  }
  std::uint64_t at = 0;
  std::vector<std::uint64_t> lengths;
  for (const SafetensorsPart& part : parts) {
    if (part.name == metadata_name || !names.insert(part.name).second)
      throw InternalError(text("a tensor to be saved has the name ", quoted_name(part.name), ", which is taken"));
    std::uint64_t bytes;
    if (!bytes_of(part.sizes, static_cast<std::uint64_t>(size_of(part.dtype)), bytes))
      throw InternalError(text("a tensor to be saved has the sizes ", sizes_text(part.sizes)));
    add(part.name, text("{\"dtype\":\"", types[place_of(part.dtype)].name, "\",\"shape\":", sizes_text(part.sizes),
                        ",\"data_offsets\":[", at, ",", at + bytes, "]}"));
    at += bytes;
    lengths.push_back(bytes);
  }
  header += '}';
  header.append((8 - header.size() % 8) % 8, ' ');
  if (header.size() > most_header_bytes)
    throw InternalError(text("a safetensors header of ", header.size(), " bytes is longer than readers allow"));

  std::uint64_t length = header.size();
  sink(std::as_bytes(std::span(&length, 1)));
  sink(std::as_bytes(std::span(header)));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::uint64_t left = lengths[i];
    auto wrong = [&] {
      throw InternalError(text("the tensor ", quoted_name(parts[i].name), " gives other bytes than its sizes say"));
    };
    parts[i].data([&](std::span<const std::byte> bytes) {
      if (bytes.size() > left) wrong();
      left -= bytes.size();
      sink(bytes);
    });
    if (left != 0) wrong();
  }
}

void write_safetensors(Output& output, std::vector<SafetensorsPart> parts, const SafetensorsMetadata& metadata) {
  write_safetensors([&](std::span<const std::byte> bytes) { output.write(bytes); }, std::move(parts), metadata);
}

}  // namespace stet::files
