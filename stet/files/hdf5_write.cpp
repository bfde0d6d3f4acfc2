// Writing HDF5: superblock 0, object headers 1, groups as symbol tables, contiguous data. All that describes data comes
// first, then the data of one dataset after another, so that nothing has to be kept and nothing is gone back to.
#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <type_traits>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/files/hdf5.h"
#include "stet/files/hdf5_inside.h"
#include "stet/files/utf8.h"

namespace stet::files {

using namespace hdf5;

struct Hdf5Writer::Node {
  bool dataset = false;
  std::map<std::string, std::unique_ptr<Node>> children;  // in the order in which readers search
  std::vector<std::pair<std::string, Value>> attributes;
  std::string path;
  Hdf5Type type;
  std::vector<std::int64_t> sizes;
  std::function<void(const Sink&)> data;
  std::uint64_t bytes = 0, address = 0;
};

namespace {

// What h5py writes: so many names in a node, and so many nodes in a node of a tree.
constexpr std::uint16_t leaf_half = 4, tree_half = 16;
constexpr std::size_t in_leaf = 2 * leaf_half, in_tree = 2 * tree_half;
constexpr std::size_t leaf_bytes = 8 + in_leaf * 40, tree_bytes = 24 + (in_tree + 1) * 8 + in_tree * 8;
constexpr std::size_t superblock_bytes = 96, most_message_bytes = 65528, least_heap_bytes = 4096;

class Record {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void put(T value) { put(std::as_bytes(std::span(&value, 1))); }
  void put(std::span<const std::byte> more) { bytes_.insert(bytes_.end(), more.begin(), more.end()); }
  void put_text(std::string_view value) { put(std::as_bytes(std::span(value))); }
  template <class... Numbers>
  void put_bytes(Numbers... numbers) {
    (bytes_.push_back(static_cast<std::byte>(numbers)), ...);
  }
  void fill_to(std::size_t size) { bytes_.resize(std::max(size, bytes_.size())); }
  void fill_to_eight() { bytes_.resize((bytes_.size() + 7) / 8 * 8); }
  const Bytes& bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }

 private:
  Bytes bytes_;
};

Record type_record(const Hdf5Type& type) {
  Record record;
  const auto bits = static_cast<std::uint16_t>(type.bytes * 8);
  switch (type.kind) {
    case Hdf5Kind::signed_integer:
    case Hdf5Kind::unsigned_integer:
      record.put_bytes(0x10 | fixed_point, type.kind == Hdf5Kind::signed_integer ? 8 : 0, 0, 0);
      record.put(type.bytes);
      record.put(std::uint16_t{0});
      record.put(bits);
      break;
    case Hdf5Kind::floating:
    case Hdf5Kind::bfloat: {
      unsigned exponent = type.kind == Hdf5Kind::bfloat ? 8 : type.bytes == 2 ? 5 : type.bytes == 4 ? 8 : 11;
      unsigned mantissa = bits - 1 - exponent;
      record.put_bytes(0x10 | floating_point, 0x20, bits - 1, 0);
      record.put(type.bytes);
      record.put(std::uint16_t{0});
      record.put(bits);
      record.put_bytes(mantissa, exponent, 0, mantissa);
      record.put(static_cast<std::uint32_t>((1u << (exponent - 1)) - 1));
      break;
    }
    case Hdf5Kind::boolean: {
      record.put_bytes(0x10 | enumeration, 2, 0, 0);
      record.put(type.bytes);
      record.put(type_record({Hdf5Kind::signed_integer, 1}).bytes());
      using namespace std::string_view_literals;
      record.put_text("FALSE\0\0\0TRUE\0\0\0\0"sv);
      record.put_bytes(0, 1);
      break;
    }
    case Hdf5Kind::opaque:
      record.put_bytes(0x10 | hdf5::opaque, 0, 0, 0);
      record.put(type.bytes);
      break;
    case Hdf5Kind::string:
      record.put_bytes(0x10 | variable_length, 1, 1, 0);  // a string, of UTF-8
      record.put(type.bytes);
      record.put(type_record({Hdf5Kind::unsigned_integer, 1}).bytes());
      break;
    case Hdf5Kind::fixed_string:
      throw InternalError("strings of fixed length are not written");
  }
  return record;
}

Record space_record(std::span<const std::int64_t> sizes) {
  Record record;
  record.put_bytes(1, sizes.size(), 0, 0, 0, 0, 0, 0);
  for (std::int64_t size : sizes) record.put(static_cast<std::uint64_t>(size));
  return record;
}

/// The messages of an object.
class ObjectHeader {
 public:
  void add(MessageType type, const Record& data, std::uint8_t flags = 0) {
    if (++count_ == std::numeric_limits<std::uint16_t>::max())
      throw InternalError("an object of an HDF5 file has more attributes than it can");
    const std::size_t size = (data.size() + 7) / 8 * 8;
    messages_.put(static_cast<std::uint16_t>(type));
    messages_.put(static_cast<std::uint16_t>(size));
    messages_.put_bytes(flags, 0, 0, 0);
    messages_.put(data.bytes());
    messages_.fill_to_eight();
  }
  Record whole() const {
    Record record;
    record.put_bytes(1, 0);
    record.put(count_);
    record.put(std::uint32_t{1});  // as many links to it
    record.put(static_cast<std::uint32_t>(messages_.size()));
    record.put(std::uint32_t{0});
    record.put(messages_.bytes());
    return record;
  }

 private:
  Record messages_;
  std::uint16_t count_ = 0;
};

}  // namespace

/// Puts all that describes data into the head, children before their groups, so that addresses are known.
class Hdf5Writer::Layouter {
 public:
  explicit Layouter(Bytes& head, std::vector<Node*>& datasets) : head_(head), datasets_(datasets) {}

  /// The size of the file.
  std::uint64_t whole(Node& root) {
    head_.resize(superblock_bytes);
    string_heaps(root);
    close_heap();
    Placed at = node(root);
    std::uint64_t end = head_.size();
    for (std::size_t i = 0; i < datasets_.size(); ++i) {
      Node& dataset = *datasets_[i];
      if (dataset.bytes == 0) continue;
      dataset.address = end;
      std::memcpy(head_.data() + data_addresses_[i], &end, 8);
      if (dataset.bytes > std::numeric_limits<std::int64_t>::max() - end - 8)
        throw InternalError("an HDF5 file of more than 8 EiB");
      end = (end + dataset.bytes + 7) / 8 * 8;
    }
    superblock(at, end);
    return end;
  }

 private:
  struct Placed {
    std::uint64_t header, tree = 0, heap = 0;  // trees and heaps of groups
  };
  struct Place {
    std::uint64_t heap;
    std::uint32_t index;
  };

  std::uint64_t append(const Record& record) {
    std::uint64_t address = head_.size();
    head_.insert(head_.end(), record.bytes().begin(), record.bytes().end());
    head_.resize((head_.size() + 7) / 8 * 8);
    return address;
  }

  void superblock(const Placed& root, std::uint64_t end) {
    Record record;
    record.put(std::as_bytes(std::span(signature)));
    record.put_bytes(0, 0, 0, 0, 0, 8, 8, 0);
    record.put(leaf_half);
    record.put(tree_half);
    record.put(std::uint32_t{0});
    record.put(std::uint64_t{0});
    record.put(undefined);
    record.put(end);
    record.put(undefined);
    put_symbol(record, 0, root, true);
    std::copy(record.bytes().begin(), record.bytes().end(), head_.begin());
  }

  static void put_symbol(Record& record, std::uint64_t name_at, const Placed& object, bool is_group) {
    record.put(name_at);
    record.put(object.header);
    record.put(std::uint32_t{is_group});  // a group's tree and heap follow
    record.put(std::uint32_t{0});
    record.put(is_group ? object.tree : 0);
    record.put(is_group ? object.heap : 0);
  }

  // --- strings

  void string_heaps(const Node& node) {
    for (const auto& [name, value] : node.attributes) {
      if (const auto* one = std::get_if<std::string>(&value)) add_string(*one);
      if (const auto* list = std::get_if<std::vector<std::string>>(&value))
        for (const std::string& one : *list) add_string(one);
    }
    for (const auto& [name, child] : node.children) string_heaps(*child);
  }
  void add_string(const std::string& value) {
    constexpr std::size_t full = 60'000;
    if (heap_.size() > 0 && heap_.size() + value.size() > full) close_heap();
    if (heap_.size() == 0) {
      heap_.put_text("GCOL");
      heap_.put_bytes(1, 0, 0, 0);
      heap_.put(std::uint64_t{0});  // its size comes here
      in_heap_ = 0;
    }
    places_[&value] = {head_.size(), ++in_heap_};
    heap_.put(static_cast<std::uint16_t>(in_heap_));
    heap_.put_bytes(0, 0, 0, 0, 0, 0);
    heap_.put(std::uint64_t{value.size()});
    heap_.put_text(value);
    heap_.fill_to_eight();
  }
  void close_heap() {
    if (heap_.size() == 0) return;
    const std::size_t used = heap_.size();
    std::uint64_t size = used;
    // The room behind, with a head of its own.
    if (used + 16 <= least_heap_bytes) {
      size = least_heap_bytes;
      heap_.put(std::uint64_t{0});
      heap_.put(std::uint64_t{least_heap_bytes - used});
      heap_.fill_to(least_heap_bytes);
    } else if (used < least_heap_bytes) {
      size = least_heap_bytes;
      heap_.fill_to(least_heap_bytes);
    }
    std::uint64_t address = append(heap_);
    std::memcpy(head_.data() + address + 8, &size, 8);
    heap_ = Record();
  }

  // --- objects

  void add_attributes(ObjectHeader& header, const Node& node) {
    for (const auto& [name, value] : node.attributes) {
      Hdf5Type type{Hdf5Kind::string, 16};
      std::vector<std::int64_t> sizes;
      Record data;
      auto put_string = [&](const std::string& text) {
        data.put(static_cast<std::uint32_t>(text.size()));
        const Place& place = places_.at(&text);
        data.put(place.heap);
        data.put(place.index);
      };
      if (const auto* text = std::get_if<std::string>(&value)) {
        put_string(*text);
      } else if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
        sizes = {static_cast<std::int64_t>(list->size())};
        for (const std::string& text : *list) put_string(text);
      } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
        type = Hdf5Type::of(DType::i64);
        data.put(*integer);
      } else {
        type = Hdf5Type::of(DType::f64);
        data.put(std::get<double>(value));
      }
      Record type_of = type_record(type), space = space_record(sizes), message;
      message.put_bytes(1, 0);
      message.put(static_cast<std::uint16_t>(name.size() + 1));
      message.put(static_cast<std::uint16_t>(type_of.size()));
      message.put(static_cast<std::uint16_t>(space.size()));
      message.put_text(name);
      message.put_bytes(0);
      message.fill_to_eight();
      message.put(type_of.bytes());
      message.fill_to_eight();
      message.put(space.bytes());
      message.put(data.bytes());
      if (message.size() > most_message_bytes)
        throw InternalError(text("the attribute ", quoted_name(name), " is longer than the 64 KiB that HDF5 allows"));
      header.add(MessageType::attribute, message);
    }
  }

  Placed node(Node& node) {
    if (!node.dataset) return group(node);
    ObjectHeader header;
    header.add(dataspace, space_record(node.sizes));
    header.add(datatype, type_record(node.type), 1);  // that it does not change
    Record fill, layout;
    fill.put_bytes(2, 2, 2, 1, 0, 0, 0, 0);  // zeros
    header.add(fill_value, fill, 1);
    const std::size_t before = header.whole().size() + 8;
    layout.put_bytes(3, 1);
    layout.put(undefined);
    layout.put(node.bytes);
    header.add(MessageType::layout, layout);
    add_attributes(header, node);
    std::uint64_t address = append(header.whole());
    datasets_.push_back(&node);
    data_addresses_.push_back(static_cast<std::size_t>(address) + before + 2);
    return {address};
  }

  Placed group(Node& node) {
    struct Child {
      Placed at;
      std::uint64_t name;
      bool is_group;
    };
    std::vector<Child> children;
    Record names;
    names.put(std::uint64_t{0});  // the empty name, before all others
    for (auto& [name, child] : node.children) {
      children.push_back({this->node(*child), names.size(), !child->dataset});
      names.put_text(name);
      names.put_bytes(0);
      names.fill_to_eight();
    }
    Placed placed;
    Record heap;
    heap.put_text("HEAP");
    heap.put(std::uint32_t{0});
    heap.put(std::uint64_t{names.size()});
    heap.put(std::uint64_t{1});  // no free room
    heap.put(std::uint64_t{head_.size() + 32});
    heap.put(names.bytes());
    placed.heap = append(heap);

    // What a level consists of: where each is, and the last name in it.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> level;
    for (std::size_t begin = 0; begin < children.size(); begin += in_leaf) {
      std::size_t end = std::min(begin + in_leaf, children.size());
      Record leaf;
      leaf.put_text("SNOD");
      leaf.put_bytes(1, 0);
      leaf.put(static_cast<std::uint16_t>(end - begin));
      for (std::size_t i = begin; i < end; ++i)
        put_symbol(leaf, children[i].name, children[i].at, children[i].is_group);
      leaf.fill_to(leaf_bytes);
      level.emplace_back(append(leaf), children[end - 1].name);
    }
    for (unsigned depth = 0; depth == 0 || level.size() > 1; ++depth) {
      std::vector<std::pair<std::uint64_t, std::uint64_t>> above;
      const std::uint64_t first = head_.size();
      const std::size_t count = std::max<std::size_t>(1, (level.size() + in_tree - 1) / in_tree);
      std::uint64_t last_name = 0;
      for (std::size_t k = 0; k < count; ++k) {
        std::size_t begin = k * in_tree, end = std::min(begin + in_tree, level.size());
        Record tree;
        tree.put_text("TREE");
        tree.put_bytes(0, depth);
        tree.put(static_cast<std::uint16_t>(end - begin));
        tree.put(k == 0 ? undefined : first + (k - 1) * tree_bytes);
        tree.put(k + 1 == count ? undefined : first + (k + 1) * tree_bytes);
        tree.put(last_name);
        for (std::size_t i = begin; i < end; ++i) {
          tree.put(level[i].first);
          tree.put(last_name = level[i].second);
        }
        tree.fill_to(tree_bytes);
        above.emplace_back(append(tree), last_name);
      }
      level = std::move(above);
    }
    placed.tree = level[0].first;

    ObjectHeader header;
    Record table;
    table.put(placed.tree);
    table.put(placed.heap);
    header.add(symbol_table, table);
    add_attributes(header, node);
    placed.header = append(header.whole());
    return placed;
  }

  Bytes& head_;
  std::vector<Node*>& datasets_;
  std::vector<std::size_t> data_addresses_;  // where in the head each dataset's is
  Record heap_;
  std::uint32_t in_heap_ = 0;
  std::map<const std::string*, Place> places_;
};

Hdf5Writer::Hdf5Writer() : root_(std::make_unique<Node>()) {}
Hdf5Writer::~Hdf5Writer() = default;

Hdf5Writer::Node& Hdf5Writer::at(std::string_view path, bool make) {
  if (laid_out_) throw InternalError("an HDF5 file that is laid out is changed");
  Node* node = root_.get();
  std::string_view rest = path;
  while (!rest.empty()) {
    std::string_view name = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (name.empty() || name == "." || name.find('\0') != std::string_view::npos || !is_utf8(name) ||
        path.back() == '/' || path.size() > longest_path)
      throw InternalError(text("the path ", quoted_name(path), " in an HDF5 file is none"));
    if (node->dataset)
      throw InternalError(text("the path ", quoted_name(path), " in an HDF5 file goes through a dataset"));
    std::unique_ptr<Node>& child = node->children[std::string(name)];
    if (!child && !make) throw InternalError(text("the path ", quoted_name(path), " is not in an HDF5 file"));
    if (!child) child = std::make_unique<Node>();
    node = child.get();
  }
  return *node;
}

void Hdf5Writer::group(std::string_view path) {
  if (at(path, true).dataset) throw InternalError(text("the name ", quoted_name(path), " comes twice in an HDF5 file"));
}

void Hdf5Writer::dataset(std::string_view path, Hdf5Type type, std::vector<std::int64_t> sizes,
                         std::function<void(const Sink&)> data) {
  Node& node = at(path, true);
  if (node.dataset || !node.children.empty() || &node == root_.get())
    throw InternalError(text("the name ", quoted_name(path), " comes twice in an HDF5 file"));
  if (type.is_string() || type.highest_first || sizes.size() > most_axes || !bytes_of(sizes, type.bytes, node.bytes))
    throw InternalError(text("the dataset ", quoted_name(path), " of ", type.str(), " and sizes ", sizes_text(sizes)));
  node.dataset = true;
  node.path = path;
  node.type = type;
  node.sizes = std::move(sizes);
  node.data = std::move(data);
}

void Hdf5Writer::dataset(std::string_view path, DType dtype, std::vector<std::int64_t> sizes,
                         std::function<void(const Sink&)> data) {
  dataset(path, Hdf5Type::of(dtype), std::move(sizes), std::move(data));
  if (dtype == DType::bf16) attribute(path, "dtype", "bfloat16");
}

void Hdf5Writer::attribute(std::string_view path, std::string name, Value value) {
  if (name.empty() || !is_utf8(name) || name.find('\0') != std::string::npos)
    throw InternalError(text("the name ", quoted_name(name), " of an attribute in an HDF5 file is none"));
  Node& node = at(path, false);
  for (const auto& known : node.attributes)
    if (known.first == name)
      throw InternalError(text("the attribute ", quoted_name(name), " comes twice in an HDF5 file"));
  node.attributes.emplace_back(std::move(name), std::move(value));
}

std::uint64_t Hdf5Writer::size() {
  if (!laid_out_) {
    size_ = Layouter(head_, datasets_).whole(*root_);
    laid_out_ = true;
  }
  return size_;
}

void Hdf5Writer::write(const Sink& sink) {
  size();
  sink(head_);
  for (Node* node : datasets_) {
    std::uint64_t left = node->bytes;
    auto wrong = [&] {
      throw InternalError(text("the dataset ", quoted_name(node->path), " gives other bytes than its sizes say"));
    };
    if (node->bytes > 0)
      node->data([&](std::span<const std::byte> bytes) {
        if (bytes.size() > left) wrong();
        left -= bytes.size();
        sink(bytes);
      });
    if (left != 0) wrong();
    const std::byte zeros[8] = {};
    if (node->bytes % 8 != 0) sink(std::span(zeros).first(8 - node->bytes % 8));
  }
}

}  // namespace stet::files
