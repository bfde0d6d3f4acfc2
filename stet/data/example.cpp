#include "stet/data/example.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/tensor_node.h"
#include "stet/files/proto.h"
#include "stet/files/source.h"
#include "stet/files/utf8.h"
#include "stet/ops/ops.h"

// The messages, as protocol buffers:
//
//   Example   { Features features = 1; }
//   Features  { map<string, Feature> feature = 1; }      an entry is a message { string key = 1; Feature value = 2; }
//   Feature   { oneof { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; } }
//   BytesList { repeated bytes value = 1; }  FloatList { repeated float value = 1; }  Int64List { repeated int64 … }

namespace stet::data {
namespace {

using files::Proto;

enum WireType : unsigned { varint = 0, fixed64 = 1, delimited = 2, fixed32 = 5 };

/// Walks over a message in memory.
class Wire {
 public:
  Wire(std::string_view bytes, std::size_t base, Where where) : bytes_(bytes), base_(base), where_(where) {}

  [[noreturn]] void fail(const std::string& reason) const {
    throw UserError(error_text(text("Example: the record is no tf.train.Example: ", reason, ", at byte ", base_ + at_),
                               where_, "check what was written; Example reads records of serialized Examples"));
  }
  bool at_end() const { return at_ == bytes_.size(); }
  std::size_t left() const { return bytes_.size() - at_; }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (at_end()) fail("it ends in a number");
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= shift < 63 ? std::uint64_t{byte & 127u} << shift : std::uint64_t{byte & 1u} << 63;
      if (byte < 128) return value;
    }
    fail("a number has more than 10 bytes");
  }
  /// The field, and how it is stored.
  std::pair<std::uint64_t, unsigned> key() {
    const std::uint64_t key = number();
    if (key >> 3 == 0) fail("a field has number 0");
    return {key >> 3, static_cast<unsigned>(key & 7)};
  }
  std::string_view take(std::uint64_t count) {
    if (count > left()) fail(text("it ends in a field of ", count, " bytes"));
    std::string_view taken = bytes_.substr(at_, static_cast<std::size_t>(count));
    at_ += static_cast<std::size_t>(count);
    return taken;
  }
  std::string_view string() { return take(number()); }
  Wire message() {
    const std::uint64_t size = number();
    const std::size_t begin = base_ + at_;
    return {take(size), begin, where_};
  }
  /// A field that nobody here knows.
  void skip(unsigned type) {
    if (type == varint)
      number();
    else if (type == fixed64)
      take(8);
    else if (type == delimited)
      string();
    else if (type == fixed32)
      take(4);
    else
      fail(text("a field is stored in way ", type));
  }
  void expect(unsigned type, unsigned expected, const char* what) const {
    if (type != expected) fail(text(what, " is stored in way ", type, ", not ", expected));
  }

 private:
  std::string_view bytes_;
  std::size_t base_;
  Where where_;
  std::size_t at_ = 0;
};

/// The list that the feature has, made one of this kind if it is another: the last kind counts.
template <class List>
List& list_of(Example::Feature& feature) {
  if (!std::holds_alternative<List>(feature)) feature.emplace<List>();
  return std::get<List>(feature);
}

void read_strings(Wire in, Example::Strings& out) {
  while (!in.at_end()) {
    auto [field, type] = in.key();
    if (field != 1) {
      in.skip(type);
      continue;
    }
    in.expect(type, delimited, "a string");
    out.emplace_back(in.string());
  }
}

void read_floats(Wire in, Example::Floats& out) {
  while (!in.at_end()) {
    auto [field, type] = in.key();
    if (field != 1) {
      in.skip(type);
      continue;
    }
    std::string_view bytes;
    if (type == fixed32) {
      bytes = in.take(4);
    } else {
      in.expect(type, delimited, "a list of floating numbers");
      bytes = in.string();
      if (bytes.size() % 4 != 0) in.fail(text("a list of floating numbers has ", bytes.size(), " bytes"));
    }
    const std::size_t before = out.size();
    out.resize(before + bytes.size() / 4);
    if (!bytes.empty()) std::memcpy(out.data() + before, bytes.data(), bytes.size());
  }
}

void read_integers(Wire in, Example::Integers& out) {
  while (!in.at_end()) {
    auto [field, type] = in.key();
    if (field != 1) {
      in.skip(type);
    } else if (type == varint) {
      out.push_back(static_cast<std::int64_t>(in.number()));
    } else {
      in.expect(type, delimited, "a list of integers");
      for (Wire list = in.message(); !list.at_end();) out.push_back(static_cast<std::int64_t>(list.number()));
    }
  }
}

void read_feature(Wire in, Example::Feature& out) {
  while (!in.at_end()) {
    auto [field, type] = in.key();
    if (field < 1 || field > 3) {
      in.skip(type);
      continue;
    }
    in.expect(type, delimited, "a list");
    Wire list = in.message();
    if (field == 1) read_strings(list, list_of<Example::Strings>(out));
    if (field == 2) read_floats(list, list_of<Example::Floats>(out));
    if (field == 3) read_integers(list, list_of<Example::Integers>(out));
  }
}

void read_entry(Wire in, Example& out) {
  std::string name;
  Example::Feature feature;
  while (!in.at_end()) {
    auto [field, type] = in.key();
    if (field == 1) {
      in.expect(type, delimited, "a feature's name");
      name = in.string();
    } else if (field == 2) {
      in.expect(type, delimited, "a feature");
      read_feature(in.message(), feature);
    } else {
      in.skip(type);
    }
  }
  out.features[std::move(name)] = std::move(feature);  // of two with one name the last counts
}

// --- writing

struct PutFeature {
  Proto operator()(std::monostate) const { return {}; }
  Proto operator()(const Example::Strings& list) const {
    Proto values;
    for (const std::string& value : list) values.bytes(1, value);
    return Proto().message(1, values);
  }
  Proto operator()(const Example::Floats& list) const {
    Proto values;
    if (!list.empty()) values.bytes(1, {reinterpret_cast<const char*>(list.data()), list.size() * sizeof(float)});
    return Proto().message(2, values);
  }
  Proto operator()(const Example::Integers& list) const {
    Proto numbers, values;
    for (std::int64_t value : list) numbers.number(static_cast<std::uint64_t>(value));
    if (!list.empty()) values.message(1, numbers);
    return Proto().message(3, values);
  }
};

const char* kind_name(const Example::Feature& feature) {
  static constexpr const char* names[] = {"nothing", "strings of bytes", "floating numbers", "integers"};
  return names[feature.index()];
}

template <class List>
const List& require_list(const Example& example, const std::string& name, const char* call, Where where) {
  static const List none;
  auto at = example.features.find(name);
  if (at == example.features.end()) {
    std::vector<std::string> names;
    for (const auto& [known, feature] : example.features) names.push_back(files::quoted_name(known));
    throw UserError(error_text(text(call, ": there is no feature '", name, "'"), where,
                               names.empty() ? "the example has no features" : text("it has ", joined(names, ", "))));
  }
  if (at->second.index() == 0) return none;
  if (!std::holds_alternative<List>(at->second))
    throw UserError(error_text(text(call, ": feature '", name, "' holds ", kind_name(at->second), ", not ",
                                    kind_name(Example::Feature(List{}))),
                               where, "ask for what it holds"));
  return std::get<List>(at->second);
}

}  // namespace

namespace {

Example parsed(const BytesView& record, Where where) {
  Example out;
  for (Wire in(record.characters(), 0, where); !in.at_end();) {
    auto [field, type] = in.key();
    if (field != 1) {
      in.skip(type);
      continue;
    }
    in.expect(type, delimited, "the list of features");
    for (Wire features = in.message(); !features.at_end();) {
      auto [entry, entry_type] = features.key();
      if (entry != 1) {
        features.skip(entry_type);
        continue;
      }
      features.expect(entry_type, delimited, "a feature");
      read_entry(features.message(), out);
    }
  }
  return out;
}

}  // namespace

void Example::refuse(const std::string& name, std::uint64_t number, Where where) {
  throw UserError(error_text(text("Example: feature '", name, "' cannot hold ", number, ": integers are i64, at most ",
                                  std::numeric_limits<std::int64_t>::max()),
                             where, "store it as text, or as two numbers"));
}

Example Example::parse(const BytesView& record, Where where) {
  // A list takes more memory than its bytes: an empty string takes two of them.
  try {
    return parsed(record, where);
  } catch (const std::bad_alloc&) {
    throw UserError(error_text(text("Example: there is no memory for what is in a record of ", record.size(), " bytes"),
                               where, "free memory, or read it on a larger machine"));
  }
}

std::string Example::serialize(Where) const {
  Proto entries;
  for (const auto& [name, feature] : features)
    entries.message(1, Proto().bytes(1, name).message(2, std::visit(PutFeature{}, feature)));
  return Proto().message(1, entries).str();
}

Example& Example::set(const std::string& name, const Tensor& tensor, Where where) {
  const TensorNode& node = concrete_node(tensor, "Example::set", where);
  if (node.dtype == DType::u8 && node.rank == 1) return set(name, std::string(BytesView(tensor, where).characters()));
  if (is_floating(node.dtype)) return set(name, Feature(tensor.to_vector<float>(where)));
  return set(name, Feature(tensor.to_vector<std::int64_t>(where)));
}

Example::Strings Example::strings(const std::string& name, Where where) const {
  return require_list<Strings>(*this, name, "Example::strings", where);
}
Example::Floats Example::floats(const std::string& name, Where where) const {
  return require_list<Floats>(*this, name, "Example::floats", where);
}
Example::Integers Example::integers(const std::string& name, Where where) const {
  return require_list<Integers>(*this, name, "Example::integers", where);
}

// --- features as tensors

namespace {

constexpr const char* call_name = "parse_example";

void check_spec(const std::string& name, const FeatureSpec& spec, Where where) {
  auto refuse = [&](const std::string& what, const char* advice) {
    throw UserError(error_text(text(call_name, ": feature '", name, "' ", what), where, advice));
  };
  if (spec.dtype != DType::f32 && spec.dtype != DType::i64 && spec.dtype != DType::u8)
    refuse(text("is to be ", spec.dtype), "f32, i64 or, for strings of bytes, u8; cast it then");
  if (spec.dtype == DType::u8 && !spec.shape.empty())
    refuse("is a string of bytes with a shape", "a string is u8[n], as long as it is; Example::strings gives several");
  if (spec.variable && (!spec.shape.empty() || spec.default_value.defined()))
    refuse("is variable, and has a shape or a default value",
           "a variable feature is [n], and empty where there is none");
  for (std::int64_t size : spec.shape)
    if (size < 0) refuse(text("has size ", size), "sizes are 0 or more; a variable feature is [n]");
  std::uint64_t bytes;
  if (!files::bytes_of(spec.shape, static_cast<std::uint64_t>(size_of(spec.dtype)), bytes))
    refuse(text("has the shape ", files::sizes_text(spec.shape), ", which is too large"), "mend the shape");
  if (!spec.default_value.defined()) return;
  const TensorNode& given = concrete_node(spec.default_value, call_name, where);
  const bool string = spec.dtype == DType::u8;
  const bool same_kind = string                     ? given.dtype == DType::u8
                         : spec.dtype == DType::i64 ? !is_floating(given.dtype)
                                                    : true;
  std::span<const std::int64_t> sizes = given.size_span();
  const bool same_shape = string ? given.rank == 1 : given.rank == 0 || std::ranges::equal(sizes, spec.shape);
  if (!same_kind || !same_shape)
    refuse(text("is ", spec.dtype, string ? "[n]" : files::sizes_text(spec.shape), ", its default_value ", given.dtype,
                files::sizes_text(sizes)),
           string      ? "give a string of bytes as u8[n]"
           : same_kind ? "give it in the shape of the feature, or one number for all"
                       : "give integers");
}

Tensor default_of(const std::string& name, const FeatureSpec& spec, Where where) {
  if (!spec.default_value.defined())
    throw UserError(error_text(text(call_name, ": there is no feature '", name, "' in the record"), where,
                               "give it a default_value, or make it variable"));
  if (spec.dtype == DType::u8) return spec.default_value;
  return broadcast_to(cast(spec.default_value, spec.dtype), Shape(spec.shape)).contiguous(where);
}

template <class T>
Tensor numbers_of(const std::string& name, const std::vector<T>& list, const FeatureSpec& spec, Where where) {
  const auto have = static_cast<std::int64_t>(list.size());
  if (spec.variable) return tensor(list, {have}, where);
  std::int64_t want = 1;
  for (std::int64_t size : spec.shape) want *= size;
  if (have != want)
    throw UserError(error_text(text(call_name, ": feature '", name, "' has ", have,
                                    have == 1 ? " element" : " elements", ", its shape is ", Shape(spec.shape)),
                               where, "mend the shape, or make the feature variable"));
  return tensor(list, Shape(spec.shape), where);
}

Tensor string_of(const std::string& name, const Example::Strings& list, Where where) {
  if (list.size() != 1)
    throw UserError(
        error_text(text(call_name, ": feature '", name, "' has ", list.size(), " strings of bytes, not one"), where,
                   "Example::parse(record).strings(name) gives all of them"));
  const std::string& bytes = list[0];
  return tensor(std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()),
                {static_cast<std::int64_t>(bytes.size())}, where);
}

}  // namespace

std::map<std::string, Tensor> parse_example(const BytesView& record, const FeatureSpecs& specs, Where where) {
  for (const auto& [name, spec] : specs) check_spec(name, spec, where);
  const Example example = Example::parse(record, where);
  std::map<std::string, Tensor> out;
  for (const auto& [name, spec] : specs) {
    auto at = example.features.find(name);
    // A feature without a kind is none, as in TensorFlow; an empty list is one.
    bool absent = at == example.features.end() || at->second.index() == 0;
    Tensor& result = out[name];
    if (absent && spec.variable)
      result = zeros({0}, spec.dtype, where);
    else if (absent)
      result = default_of(name, spec, where);
    else if (spec.dtype == DType::f32)
      result = numbers_of(name, require_list<Example::Floats>(example, name, call_name, where), spec, where);
    else if (spec.dtype == DType::i64)
      result = numbers_of(name, require_list<Example::Integers>(example, name, call_name, where), spec, where);
    else
      result = string_of(name, require_list<Example::Strings>(example, name, call_name, where), where);
  }
  return out;
}

}  // namespace stet::data
