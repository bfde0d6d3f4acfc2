// Event files, read by rules of their own: what a SummaryWriter wrote, as a reader that has never seen its code takes
// it.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "data_files.h"

namespace event_files {

/// A protocol buffer, taken apart: what stands in it under each number, in order.
class Message {
 public:
  struct Field {
    unsigned number = 0, wire = 0;
    std::uint64_t value = 0;  // varint, or the bits of 4 or 8 bytes
    std::string bytes = {};
  };
  explicit Message(std::string_view in) {
    while (!in.empty()) {
      const std::uint64_t key = varint(in);
      Field field{static_cast<unsigned>(key >> 3), static_cast<unsigned>(key & 7)};
      if (field.number == 0) throw std::runtime_error("a field with the number 0");
      if (field.wire == 0)
        field.value = varint(in);
      else if (field.wire == 1 || field.wire == 5)
        std::memcpy(&field.value, taken(in, field.wire == 1 ? 8 : 4).data(), field.wire == 1 ? 8 : 4);
      else if (field.wire == 2)
        field.bytes = taken(in, varint(in));
      else
        throw std::runtime_error("a wire type that there is not");
      fields.push_back(std::move(field));
    }
  }
  std::vector<Field> all(unsigned number) const {
    std::vector<Field> out;
    for (const Field& field : fields)
      if (field.number == number) out.push_back(field);
    return out;
  }
  bool has(unsigned number) const { return !all(number).empty(); }
  /// What is not there is zero.
  std::uint64_t integer(unsigned number) const { return has(number) ? all(number).back().value : 0; }
  double real(unsigned number) const {
    const std::uint64_t bits = integer(number);
    double out;
    std::memcpy(&out, &bits, sizeof out);
    return out;
  }
  std::string bytes(unsigned number) const { return has(number) ? all(number).back().bytes : std::string(); }
  Message message(unsigned number) const { return Message(bytes(number)); }
  std::vector<Message> messages(unsigned number) const {
    std::vector<Message> out;
    for (const Field& field : all(number)) out.emplace_back(field.bytes);
    return out;
  }
  std::vector<Field> fields;

 private:
  static std::string taken(std::string_view& in, std::uint64_t count) {
    if (count > in.size()) throw std::runtime_error("a field that ends after its message");
    std::string out(in.substr(0, count));
    in.remove_prefix(count);
    return out;
  }
  static std::uint64_t varint(std::string_view& in) {
    std::uint64_t out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(taken(in, 1)[0]);
      out |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 128) return out;
    }
    throw std::runtime_error("a number of more than ten bytes");
  }
};

/// CRC-32C, bit by bit.
inline std::uint32_t checksum(std::string_view bytes) {
  std::uint32_t sum = ~0u;
  for (char c : bytes) {
    sum ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) sum = (sum & 1) != 0 ? (sum >> 1) ^ 0x82F63B78u : sum >> 1;
  }
  sum = ~sum;
  return (sum >> 15 | sum << 17) + 0xA282EAD8u;
}

template <class T>
std::vector<T> numbers(const std::string& bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

/// A value of a summary.
struct Value {
  std::int64_t step = 0;
  std::string tag, plugin, content, display_name, description;
  int data_class = 0, dtype = 0;
  std::vector<std::int64_t> sizes;
  std::string elements;
  std::vector<std::string> strings;

  float number() const { return numbers<float>(elements).at(0); }
};

struct EventFile {
  std::string version, writer;
  std::vector<double> times;
  std::vector<Value> values;
  std::vector<std::string> graphs;
  std::string rest;  // half an event, or nothing

  /// Of a tag, in order.
  std::vector<Value> of(const std::string& tag) const {
    std::vector<Value> out;
    for (const Value& value : values)
      if (value.tag == tag) out.push_back(value);
    return out;
  }
  std::set<std::string> tags() const {
    std::set<std::string> out;
    for (const Value& value : values) out.insert(value.tag);
    return out;
  }
};

inline Value value_of(const Message& in, std::int64_t step) {
  const Message metadata = in.message(9), plugin = metadata.message(1), tensor = in.message(8);
  Value out{.step = step,
            .tag = in.bytes(1),
            .plugin = plugin.bytes(1),
            .content = plugin.bytes(2),
            .display_name = metadata.bytes(2),
            .description = metadata.bytes(3),
            .data_class = static_cast<int>(metadata.integer(4)),
            .dtype = static_cast<int>(tensor.integer(1)),
            .sizes = {},
            .elements = tensor.bytes(4),
            .strings = {}};
  for (const Message& dim : tensor.message(2).messages(2))
    out.sizes.push_back(static_cast<std::int64_t>(dim.integer(1)));
  for (const Message::Field& field : tensor.all(8)) out.strings.push_back(field.bytes);
  return out;
}

/// Throws for damage; half an event at the end is none.
inline EventFile read(const std::string& path) {
  std::string bytes = data_files::bytes_of(path);
  EventFile out;
  std::string_view in = bytes;
  while (in.size() >= 12) {
    std::uint64_t length;
    std::uint32_t sum;
    std::memcpy(&length, in.data(), 8);
    std::memcpy(&sum, in.data() + 8, 4);
    if (checksum(in.substr(0, 8)) != sum) throw std::runtime_error("a length has a wrong checksum");
    if (length > in.size() || in.size() < 16 + length) break;
    const std::string_view record = in.substr(12, length);
    std::memcpy(&sum, in.data() + 12 + length, 4);
    if (checksum(record) != sum) throw std::runtime_error("an event has a wrong checksum");
    in.remove_prefix(16 + length);

    const Message event(record);
    out.times.push_back(event.real(1));
    if (event.has(3)) {
      out.version = event.bytes(3);
      out.writer = event.message(10).bytes(1);
    }
    if (event.has(4)) out.graphs.push_back(event.bytes(4));
    for (const Message& value : event.message(5).messages(1))
      out.values.push_back(value_of(value, static_cast<std::int64_t>(event.integer(2))));
  }
  out.rest = in;
  return out;
}

inline std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_regular_file()) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}
/// The only file of a folder.
inline EventFile read_folder(const std::string& folder) {
  const std::vector<std::string> files = files_in(folder);
  EXPECT_EQ(files.size(), 1u) << folder;
  return read(files.at(0));
}

/// A node of a GraphDef.
struct GraphNode {
  std::string op;
  std::vector<std::string> inputs;
  std::map<std::string, std::string> texts;  // attributes that are strings
  std::vector<std::vector<std::int64_t>> shapes;
};

/// By name. Every input is the name of a node, with a number behind it perhaps; names are those that TensorFlow allows.
inline std::map<std::string, GraphNode> nodes_of(const std::string& graph) {
  std::map<std::string, GraphNode> out;
  for (const Message& in : Message(graph).messages(1)) {
    GraphNode node{.op = in.bytes(2), .inputs = {}, .texts = {}, .shapes = {}};
    for (const Message::Field& field : in.all(3)) node.inputs.push_back(field.bytes);
    for (const Message& attribute : in.messages(5)) {
      const Message value = attribute.message(2);
      if (value.has(2)) node.texts[attribute.bytes(1)] = value.bytes(2);
      if (attribute.bytes(1) == "_output_shapes")
        for (const Message& shape : value.message(1).messages(7)) {
          node.shapes.emplace_back();
          for (const Message& dim : shape.messages(2))
            node.shapes.back().push_back(static_cast<std::int64_t>(dim.integer(1)));
        }
    }
    const std::string name = in.bytes(1);
    EXPECT_TRUE(!name.empty() && std::isalnum(static_cast<unsigned char>(name[0]))) << name;
    EXPECT_EQ(name.find("//"), std::string::npos) << name;
    for (char c : name)
      EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_./-", c) != nullptr) << name;
    EXPECT_TRUE(out.emplace(name, std::move(node)).second) << "two nodes are called " << name;
  }
  for (const auto& [name, node] : out)
    for (const std::string& input : node.inputs)
      EXPECT_TRUE(out.contains(input.substr(0, input.find(':')))) << name << " has the input " << input;
  return out;
}

}  // namespace event_files
