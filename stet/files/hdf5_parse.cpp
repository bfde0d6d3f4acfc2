#include "stet/files/hdf5_parse.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/files/inflate.h"
#include "stet/files/utf8.h"

namespace stet::files {

using namespace hdf5;

namespace {

const char* const no_hdf5 = "it is no HDF5 file, or is damaged";

bool begins_with(std::span<const std::byte> bytes, const char* word) { return std::memcmp(bytes.data(), word, 4) == 0; }

std::string named(const Hdf5Node& node) { return node.path().empty() ? "the root" : quoted_name(node.path()); }

/// Places of old blocks are multiples of eight.
std::uint64_t to_eight(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace

Hdf5Parser::Hdf5Parser(const Source& source, const Hdf5Limits& limits)
    : source_(source), reading_(source.reading()), limits_(limits), string_bytes_left_(source.size()) {}

void Hdf5Parser::unsupported(const std::string& what, std::uint64_t offset, const std::string& advice) const {
  reading_.fail(what + ", which is not supported", offset, advice);
}

void Hdf5Parser::claim(std::uint64_t address, std::uint64_t bytes, const char* what) {
  if (address > source_.size() || bytes > source_.size() - address)
    reading_.fail(text("a ", what, " of ", bytes, " bytes at byte ", address, " would be outside of the file"),
                  source_.size());
  if (bytes == 0) return;
  auto after = claimed_.lower_bound(address);
  auto overlaps = [&](const char* other, std::uint64_t at) {
    reading_.fail(text("a ", what, " overlaps with a ", other, " at byte ", at), address);
  };
  if (after != claimed_.end() && after->first < address + bytes) overlaps(after->second.second, after->first);
  if (after != claimed_.begin()) {
    auto before = std::prev(after);
    if (before->second.first > address) overlaps(before->second.second, before->first);
  }
  claimed_.emplace_hint(after, address, std::pair(address + bytes, what));
}

Bytes Hdf5Parser::block(std::uint64_t address, std::uint64_t bytes, const char* what) {
  claim(address, bytes, what);
  return source_.read(address, bytes, what);
}

// --- superblock

Hdf5Node Hdf5Parser::whole() {
  Hdf5Node root;
  object(root, root_address(), 0);
  return root;
}

std::uint64_t Hdf5Parser::root_address() {
  const char* what = "superblock";
  unsigned char begin[9];
  if (source_.size() < sizeof begin) reading_.fail("is too short for an HDF5 file", no_hdf5);
  source_.read(0, begin, sizeof begin, what);
  if (std::memcmp(begin, signature, sizeof signature) != 0) {
    // Bytes of the user's own may come before: 512 of them, or twice as many, and so on.
    for (std::uint64_t at = 512; at <= source_.size() / 2 && source_.size() - at >= sizeof begin; at *= 2) {
      source_.read(at, begin, sizeof begin, what);
      if (std::memcmp(begin, signature, sizeof signature) == 0)
        unsupported("a block of the user's own before the HDF5 file", 0, "write it without userblock_size");
    }
    reading_.fail("is no HDF5 file", no_hdf5);
  }
  const unsigned version = begin[8];
  if (version > 3) unsupported(text("version ", version, " of HDF5's superblock"), 8);
  const bool old = version < 2;
  Bytes bytes = block(0, old ? (version == 0 ? 96 : 100) : 48, what);
  Walk at = walk(bytes, 0);
  at.go_to(old ? 13 : 9, what);
  unsigned address_bytes = at.number<std::uint8_t>(what), length_bytes = at.number<std::uint8_t>(what);
  if (address_bytes != 8 || length_bytes != 8)
    unsupported(text("addresses of ", address_bytes, " and lengths of ", length_bytes, " bytes"), old ? 13 : 9);
  at.go_to(old ? (version == 0 ? 24 : 28) : 12, what);
  if (at.number<std::uint64_t>(what) != 0)
    unsupported("a file whose addresses do not count from its begin", at.at() - 8);
  at.take(8, what);  // free space, or an extension
  auto end = at.number<std::uint64_t>(what);
  if (end > source_.size())
    reading_.fail(text("is cut off: it has ", source_.size(), " bytes and says that it has ", end), at.at() - 8);
  if (old) {
    if (at.number<std::uint64_t>(what) != undefined) unsupported("an HDF5 driver's own form", at.at() - 8);
    at.take(8, what);  // the root's name
    return at.number<std::uint64_t>(what);
  }
  auto address = at.number<std::uint64_t>(what);
  if (at.number<std::uint32_t>(what) != lookup3(std::span(bytes).first(44)))
    reading_.fail("the checksum of its superblock is wrong", 44);
  return address;
}

// --- object headers

Hdf5Parser::Header Hdf5Parser::header(std::uint64_t address) {
  const char* what = "header";
  Header header;
  if (address > source_.size() || source_.size() - address < 16)
    reading_.fail(text("an object header at byte ", address, " would be outside of the file"), source_.size());
  std::byte begin[16];
  source_.read(address, begin, sizeof begin, what);
  if (!begins_with(begin, "OHDR")) {
    Walk at = walk(begin, address);
    if (at.number<std::uint8_t>(what) != 1) reading_.fail("an object header is missing", address);
    at.go_to(8, what);
    auto bytes = at.number<std::uint32_t>(what);
    header.blocks.push_back(block(address, std::uint64_t{16} + bytes, what));
    old_messages(header, 0, 16, address);
    return header;
  }
  Walk at = walk(begin, address);
  at.go_to(4, what);
  if (at.number<std::uint8_t>(what) != 2) unsupported("this version of an object header", address + 4);
  unsigned flags = at.number<std::uint8_t>(what);
  std::size_t start = 6 + (flags & 32 ? 16u : 0u) + (flags & 16 ? 4u : 0u);
  const unsigned size_bytes = 1u << (flags & 3);
  Bytes sizes = source_.read(address + start, size_bytes, what);
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, sizes.data(), size_bytes);
  start += size_bytes;
  if (bytes > source_.size()) reading_.fail(text("an object header of ", bytes, " bytes"), address);
  header.blocks.push_back(block(address, start + bytes + 4, what));
  new_messages(header, 0, start, start + static_cast<std::size_t>(bytes), address, flags & 4);
  return header;
}

void Hdf5Parser::add_message(Header& header, unsigned type, unsigned flags, std::span<const std::byte> data,
                             std::uint64_t offset) {
  if (type == nil) return;
  if (flags & 2)
    unsupported(type == MessageType::datatype ? "a committed type" : "a header message that is shared between objects",
                offset);
  if (type > last_known) {
    if (flags & 128) unsupported(text("header message ", type), offset);
    return;
  }
  header.messages.push_back({static_cast<std::uint16_t>(type), data, offset});
}

void Hdf5Parser::old_messages(Header& header, std::size_t index, std::size_t begin, std::uint64_t address) {
  const char* what = "header";
  // Blocks are found one after another rather than one inside of another: a long chain is no deep one.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> more;
  auto one = [&](std::size_t number, std::size_t first, std::uint64_t where) {
    std::span<const std::byte> bytes = header.blocks[number];
    Walk at = walk(bytes, where);
    at.go_to(first, what);
    while (at.left() >= 8) {
      auto type = at.number<std::uint16_t>(what);
      auto size = at.number<std::uint16_t>(what);
      auto flags = at.number<std::uint8_t>(what);
      at.take(3, what);
      const std::uint64_t offset = where + at.at();
      std::span<const std::byte> data = at.take(size, what);
      if (type == continuation) {
        Walk place = walk(data, offset);
        auto to = place.number<std::uint64_t>(what);
        more.emplace_back(to, place.number<std::uint64_t>(what));
      } else {
        add_message(header, type, flags, data, offset);
      }
    }
  };
  one(index, begin, address);
  for (std::size_t i = 0; i < more.size(); ++i) {
    header.blocks.push_back(block(more[i].first, more[i].second, what));
    one(header.blocks.size() - 1, 0, more[i].first);
  }
}

void Hdf5Parser::new_messages(Header& header, std::size_t index, std::size_t begin, std::size_t end,
                              std::uint64_t address, bool ordered) {
  const char* what = "header";
  std::vector<std::pair<std::uint64_t, std::uint64_t>> more;
  auto one = [&](std::size_t number, std::size_t first, std::size_t last, std::uint64_t where) {
    std::span<const std::byte> bytes = header.blocks[number];
    std::uint32_t checksum;
    std::memcpy(&checksum, bytes.data() + last, 4);
    if (checksum != lookup3(bytes.first(last)))
      reading_.fail("the checksum of an object header is wrong", where + last);
    Walk at = walk(bytes.first(last), where);
    at.go_to(first, what);
    while (at.left() >= (ordered ? 6u : 4u)) {
      auto type = at.number<std::uint8_t>(what);
      auto size = at.number<std::uint16_t>(what);
      auto flags = at.number<std::uint8_t>(what);
      if (ordered) at.take(2, what);
      const std::uint64_t offset = where + at.at();
      std::span<const std::byte> data = at.take(size, what);
      if (type == continuation) {
        Walk place = walk(data, offset);
        auto to = place.number<std::uint64_t>(what);
        more.emplace_back(to, place.number<std::uint64_t>(what));
      } else {
        add_message(header, type, flags, data, offset);
      }
    }
  };
  one(index, begin, end, address);
  for (std::size_t i = 0; i < more.size(); ++i) {
    if (more[i].second < 8) reading_.fail(text("a part of an object header of ", more[i].second, " bytes"), address);
    header.blocks.push_back(block(more[i].first, more[i].second, what));
    if (!begins_with(header.blocks.back(), "OCHK"))
      reading_.fail("a part of an object header is missing", more[i].first);
    one(header.blocks.size() - 1, 4, header.blocks.back().size() - 4, more[i].first);
  }
}

// --- groups

void Hdf5Parser::object(Hdf5Node& node, std::uint64_t address, int depth) {
  if (depth > limits_.depth)
    reading_.fail(text("its groups are nested deeper than ", limits_.depth), address, "do not trust it");
  if (!objects_.insert(address).second)
    unsupported(text("a second name, ", named(node), ", for the same object"), address, "write a copy instead");
  node.offset_ = address;
  Header header = this->header(address);
  bool is_group = false, has_type = false;
  std::set<std::string>
      names;  // of attributes: looking through all of them for each would take long where there are many
  for (const Message& message : header.messages) {
    is_group |= message.type == symbol_table || message.type == MessageType::link || message.type == link_info ||
                message.type == group_info;
    node.dataset_ |= message.type == MessageType::layout;
    has_type |= message.type == MessageType::datatype;
    if (message.type == external_files)
      unsupported(text("external storage of ", named(node)), message.offset, "write its data into the file");
    if (message.type == attribute_info) check_dense(message, false);
    if (message.type == MessageType::attribute) {
      Hdf5Attribute value = attribute(message);
      if (!names.insert(value.name).second)
        reading_.fail(text("the attribute ", quoted_name(value.name), " comes twice"), message.offset);
      node.attributes_.push_back(std::move(value));
    }
  }
  if (is_group == node.dataset_) {
    if (!is_group && has_type) unsupported(text("a committed type, ", named(node)), address);
    reading_.fail(text(named(node), " is neither a group nor a dataset"), address);
  }
  if (is_group)
    group(node, header, depth);
  else
    dataset(node, header);
}

void Hdf5Parser::check_dense(const Message& message, bool of_links) {
  const char* what = of_links ? "link information" : "attribute information";
  Walk at = walk(message.data, message.offset);
  if (at.number<std::uint8_t>(what) != 0) unsupported(text("this version of ", what), message.offset);
  unsigned flags = at.number<std::uint8_t>(what);
  if (flags & 1) at.take(of_links ? 8 : 2, what);
  if (at.number<std::uint64_t>(what) != undefined)
    unsupported(of_links ? "a dense group (of many links, in HDF5's new form)"
                         : "dense attributes (many of one object, in HDF5's new form)",
                message.offset,
                "write it with h5py's defaults: without libver='latest' and track_order, and with names of ASCII "
                "characters, which the old form has");
}

void Hdf5Parser::group(Hdf5Node& node, const Header& header, int depth) {
  std::vector<Link> links;
  bool has_symbols = false;
  for (const Message& message : header.messages) {
    if (message.type == symbol_table) {
      if (has_symbols) reading_.fail(text(named(node), " has two symbol tables"), message.offset);
      has_symbols = true;
      for (Link& one : symbols(message)) links.push_back(std::move(one));
    } else if (message.type == MessageType::link) {
      links.push_back(link(message));
    } else if (message.type == link_info) {
      check_dense(message, true);
    }
  }
  // Children do not move once there are addresses of them.
  node.children_.reserve(links.size());
  for (Link& one : links) {
    if (one.name.empty() || one.name == "." || one.name.find('/') != std::string::npos || !is_utf8(one.name))
      reading_.fail(text("the name ", quoted_name(one.name), " in ", named(node), " is none"), one.offset);
    if (!node.by_name_.emplace(one.name, node.children_.size()).second)
      reading_.fail(text("the name ", quoted_name(one.name), " comes twice in ", named(node)), one.offset);
    Hdf5Node& child = node.children_.emplace_back();
    child.path_ = node.path_.empty() ? one.name : text(node.path_, "/", one.name);
    child.name_ = std::move(one.name);
    // Every object keeps its path, so a long one would be kept often.
    if (child.path_.size() > longest_path)
      reading_.fail(text("the path ", named(child), " is longer than ", longest_path, " bytes"), one.offset);
    object(child, one.address, depth + 1);
  }
}

std::vector<Hdf5Parser::Link> Hdf5Parser::symbols(const Message& message) {
  Walk at = walk(message.data, message.offset);
  auto tree = at.number<std::uint64_t>("symbol table"), heap = at.number<std::uint64_t>("symbol table");
  Bytes head = block(heap, 32, "heap of names");
  if (!begins_with(head, "HEAP")) reading_.fail("a heap of names is missing", heap);
  Walk in_head = walk(head, heap);
  in_head.go_to(4, "heap of names");
  if (in_head.number<std::uint8_t>("heap of names") != 0) unsupported("this version of a heap of names", heap + 4);
  in_head.go_to(8, "heap of names");
  auto bytes = in_head.number<std::uint64_t>("heap of names");
  in_head.take(8, "heap of names");  // free room
  auto address = in_head.number<std::uint64_t>("heap of names");
  Bytes names = block(address, bytes, "heap of names");
  std::vector<Link> links;
  symbol_tree(tree, -1, names, address, links);
  return links;
}

void Hdf5Parser::symbol_tree(std::uint64_t address, int level, std::span<const std::byte> names,
                             std::uint64_t names_offset, std::vector<Link>& links) {
  const char* what = "tree of names";
  std::byte begin[24];
  source_.read(address, begin, sizeof begin, what);
  Walk at = walk(begin, address);
  if (!begins_with(begin, "TREE")) reading_.fail("a tree of names is missing", address);
  at.go_to(4, what);
  int kind = at.number<std::uint8_t>(what), its_level = at.number<std::uint8_t>(what);
  auto count = at.number<std::uint16_t>(what);
  if (kind != 0) reading_.fail("a tree of something else where one of names should be", address);
  if (level >= 0 && its_level != level) reading_.fail("a tree of names has a node of a wrong level", address);
  Bytes bytes = block(address, 24 + std::uint64_t{count} * 16 + 8, what);
  Walk entries = walk(bytes, address);
  entries.go_to(24, what);
  for (unsigned i = 0; i < count; ++i) {
    entries.take(8, what);  // the last name before it: only for those who search
    auto child = entries.number<std::uint64_t>(what);
    if (its_level > 0)
      symbol_tree(child, its_level - 1, names, names_offset, links);
    else
      symbol_node(child, names, names_offset, links);
  }
}

void Hdf5Parser::symbol_node(std::uint64_t address, std::span<const std::byte> names, std::uint64_t names_offset,
                             std::vector<Link>& links) {
  const char* what = "node of names";
  std::byte begin[8];
  source_.read(address, begin, sizeof begin, what);
  if (!begins_with(begin, "SNOD")) reading_.fail("a node of names is missing", address);
  std::uint16_t count;
  std::memcpy(&count, begin + 6, 2);
  Bytes bytes = block(address, 8 + std::uint64_t{count} * 40, what);
  Walk at = walk(bytes, address);
  at.go_to(8, what);
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t offset = address + at.at();
    auto name_at = at.number<std::uint64_t>(what);
    auto object_at = at.number<std::uint64_t>(what);
    auto cached = at.number<std::uint32_t>(what);
    at.take(20, what);
    if (name_at >= names.size())
      reading_.fail(text("a name would be at ", name_at, " of a heap of ", names.size(), " bytes"), offset);
    std::span<const std::byte> rest = names.subspan(static_cast<std::size_t>(name_at));
    auto end = std::find(rest.begin(), rest.end(), std::byte{0});
    if (end == rest.end()) reading_.fail("a name has no end", names_offset + name_at);
    std::string name(reinterpret_cast<const char*>(rest.data()), static_cast<std::size_t>(end - rest.begin()));
    // Names in the heap may not be used by many.
    if (name.size() > string_bytes_left_) reading_.fail("its names have more bytes than the file", offset);
    string_bytes_left_ -= name.size();
    if (cached == 2) unsupported(text("a soft link, ", quoted_name(name)), offset, "write a copy of what it leads to");
    links.push_back({std::move(name), object_at, offset});
  }
}

Hdf5Parser::Link Hdf5Parser::link(const Message& message) {
  const char* what = "link";
  Walk at = walk(message.data, message.offset);
  if (at.number<std::uint8_t>(what) != 1) unsupported("this version of a link", message.offset);
  unsigned flags = at.number<std::uint8_t>(what);
  unsigned kind = flags & 8 ? at.number<std::uint8_t>(what) : 0u;
  if (flags & 4) at.take(8, what);   // when it was made
  if (flags & 16) at.take(1, what);  // characters of its name: UTF-8 holds ASCII
  std::uint64_t length = 0;
  std::span<const std::byte> bytes = at.take(1u << (flags & 3), what);
  std::memcpy(&length, bytes.data(), bytes.size());
  std::string name(at.characters(length, what));
  const char* advice = "write a copy of what it leads to";
  if (kind == 1) unsupported(text("a soft link, ", quoted_name(name)), message.offset, advice);
  if (kind == 64) unsupported(text("a link to another file, ", quoted_name(name)), message.offset, advice);
  if (kind != 0) unsupported(text("a link of kind ", kind, ", ", quoted_name(name)), message.offset, advice);
  return {std::move(name), at.number<std::uint64_t>(what), message.offset};
}

// --- datasets

Hdf5Parser::Space Hdf5Parser::space(const Message& message) {
  const char* what = "dataspace";
  Walk at = walk(message.data, message.offset);
  unsigned version = at.number<std::uint8_t>(what), rank = at.number<std::uint8_t>(what);
  at.take(1, what);
  if (version != 1 && version != 2) unsupported(text("version ", version, " of a dataspace"), message.offset);
  if (rank > most_axes) reading_.fail(text("a dataspace of ", rank, " axes"), message.offset);
  Space space;
  if (version == 1) {
    at.take(5, what);
  } else {
    unsigned kind = at.number<std::uint8_t>(what);
    if (kind > 2) reading_.fail(text("a dataspace of kind ", kind), message.offset);
    if (kind == 2) {  // of nothing at all: h5py's Empty
      space.sizes = {0};
      space.elements = 0;
      return space;
    }
  }
  for (unsigned axis = 0; axis < rank; ++axis) {
    auto size = at.number<std::uint64_t>(what);
    if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      reading_.fail(text("a dataspace with a size of ", size), message.offset);
    space.sizes.push_back(static_cast<std::int64_t>(size));
  }
  if (!bytes_of(space.sizes, 1, space.elements))
    reading_.fail(text("a dataspace of sizes ", sizes_text(space.sizes), ", whose product is too large"),
                  message.offset);
  return space;
}

Hdf5Type Hdf5Parser::type(Walk& at, int depth) {
  const char* what = "type";
  auto head = at.number<std::uint32_t>(what);
  const unsigned kind = head & 15, version = head >> 4 & 15, bits = head >> 8;
  Hdf5Type type;
  type.bytes = at.number<std::uint32_t>(what);
  if (version < 1 || version > 5) at.fail(text("version ", version, " of a type"));
  if (type.bytes == 0) at.fail("a type of no bytes");
  auto refuse = [&](const std::string& name) {
    at.fail(text("values of type ", name, ", which is not supported"), "write numbers, bools or strings");
  };
  switch (kind) {
    case fixed_point: {
      type.kind = bits & 8 ? Hdf5Kind::signed_integer : Hdf5Kind::unsigned_integer;
      type.highest_first = bits & 1;
      unsigned offset = at.number<std::uint16_t>(what), precision = at.number<std::uint16_t>(what);
      if ((type.bytes != 1 && type.bytes != 2 && type.bytes != 4 && type.bytes != 8) || offset != 0 ||
          precision != type.bytes * 8)
        refuse(text("integer of ", precision, " bits in ", type.bytes, " bytes"));
      return type;
    }
    case floating_point: {
      type.highest_first = bits & 1;
      unsigned offset = at.number<std::uint16_t>(what), precision = at.number<std::uint16_t>(what);
      unsigned exponent_at = at.number<std::uint8_t>(what), exponent_bits = at.number<std::uint8_t>(what);
      unsigned mantissa_at = at.number<std::uint8_t>(what), mantissa_bits = at.number<std::uint8_t>(what);
      auto bias = at.number<std::uint32_t>(what);
      struct Form {
        std::uint32_t bytes, exponent, mantissa;
        Hdf5Kind kind;
      };
      // Sign, exponent and mantissa follow on each other, the leading one is not written.
      for (const Form& form : {Form{2, 5, 10, Hdf5Kind::floating}, Form{2, 8, 7, Hdf5Kind::bfloat},
                               Form{4, 8, 23, Hdf5Kind::floating}, Form{8, 11, 52, Hdf5Kind::floating}})
        if (type.bytes == form.bytes && offset == 0 && precision == form.bytes * 8 && exponent_at == form.mantissa &&
            exponent_bits == form.exponent && mantissa_at == 0 && mantissa_bits == form.mantissa &&
            bias == (1u << (form.exponent - 1)) - 1 && (bits >> 8 & 255) == precision - 1 && (bits >> 4 & 3) == 2 &&
            (bits & 64) == 0) {
          type.kind = form.kind;
          return type;
        }
      refuse(text("floating number of ", precision, " bits, ", exponent_bits, " of them exponent"));
      return type;
    }
    case characters:
      type.kind = Hdf5Kind::fixed_string;
      type.space_padded = (bits & 15) == 2;
      return type;
    case hdf5::opaque:
      type.kind = Hdf5Kind::opaque;
      at.take(to_eight(bits & 255), what);  // what somebody calls it
      return type;
    case enumeration: {
      if (depth > 0) refuse("enumeration of enumerations");
      Hdf5Type base = this->type(at, depth + 1);
      if ((base.kind != Hdf5Kind::signed_integer && base.kind != Hdf5Kind::unsigned_integer) ||
          base.bytes != type.bytes)
        refuse("enumeration of what is no integer");
      std::vector<std::string_view> names;
      for (unsigned i = 0; i < (bits & 0xFFFF); ++i) {
        std::size_t begin = at.at();
        while (at.number<char>(what) != '\0') {
        }
        std::size_t length = at.at() - begin;
        if (version < 3) at.take(to_eight(length) - length, what);
        const std::size_t end = at.at();
        at.go_to(begin, what);
        names.push_back(at.characters(length - 1, what));
        at.go_to(end, what);
      }
      std::span<const std::byte> values = at.take(std::uint64_t{names.size()} * base.bytes, what);
      // h5py's bool; another enumeration is read as its integers.
      const bool is_bool = base.bytes == 1 && names.size() == 2 && names[0] == "FALSE" && names[1] == "TRUE" &&
                           values[0] == std::byte{0} && values[1] == std::byte{1};
      if (is_bool) base.kind = Hdf5Kind::boolean;
      return base;
    }
    case variable_length: {
      if ((bits & 15) != 1) refuse("list of variable length");
      if (depth > 0) refuse("string inside of another type");
      this->type(at, depth + 1);  // of its characters
      if (type.bytes != 16) at.fail(text("a string whose place takes ", type.bytes, " bytes"));
      type.kind = Hdf5Kind::string;
      return type;
    }
    case hdf5::time:
      refuse("time");
      break;
    case bit_field:
      refuse("bit field");
      break;
    case compound:
      refuse("compound");
      break;
    case reference:
      refuse("reference");
      break;
    case array:
      refuse("array");
      break;
    case complex:
      refuse("complex");
      break;
    default:
      break;
  }
  refuse(text("of class ", kind));
  return type;
}

void Hdf5Parser::dataset(Hdf5Node& node, const Header& header) {
  const Message *space_message = nullptr, *type_message = nullptr, *layout_message = nullptr;
  for (const Message& message : header.messages) {
    const Message** place = message.type == MessageType::dataspace  ? &space_message
                            : message.type == MessageType::datatype ? &type_message
                            : message.type == MessageType::layout   ? &layout_message
                                                                    : nullptr;
    if (place && *place) reading_.fail(text("the dataset ", named(node), " is described twice"), message.offset);
    if (place) *place = &message;
    if (message.type == MessageType::filters) {
      if (!node.filters_.empty())
        reading_.fail(text("the dataset ", named(node), " has two lists of filters"), message.offset);
      filters(node, message);
    }
  }
  if (!space_message) reading_.fail(text("the dataset ", named(node), " has no dataspace"), node.offset_);
  if (!type_message) reading_.fail(text("the dataset ", named(node), " has no type"), node.offset_);
  Walk at = walk(type_message->data, type_message->offset);
  node.type_ = type(at);
  Space space = this->space(*space_message);
  std::uint64_t bytes;
  if (!bytes_of(space.sizes, node.type_.bytes, bytes))
    reading_.fail(text("the dataset ", named(node), " of sizes ", sizes_text(space.sizes), " is too large"),
                  space_message->offset);
  node.sizes_ = std::move(space.sizes);
  node.elements_ = space.elements;
  layout(node, *layout_message);
}

void Hdf5Parser::layout(Hdf5Node& node, const Message& message) {
  const char* what = "data layout";
  Walk at = walk(message.data, message.offset);
  unsigned version = at.number<std::uint8_t>(what), kind = at.number<std::uint8_t>(what);
  if (version < 3 || version > 5) unsupported(text("version ", version, " of a data layout"), message.offset);
  auto wrong_bytes = [&](std::uint64_t bytes) {
    reading_.fail(text("the dataset ", named(node), " of ", node.type_.str(), node.type_.is_string() ? ", " : " and ",
                       "sizes ", sizes_text(node.sizes_), " needs ", node.bytes(), " bytes and has ", bytes),
                  message.offset);
  };
  auto never_written = [&] {
    reading_.fail(text("the dataset ", named(node), " of sizes ", sizes_text(node.sizes_), " has no data"),
                  message.offset, "write its data: none of it is in the file");
  };
  switch (kind) {
    case 0: {  // compact: here
      auto bytes = at.number<std::uint16_t>(what);
      if (bytes != node.bytes()) wrong_bytes(bytes);
      node.layout_ = Hdf5Node::Layout::contiguous;
      node.address_ = message.offset + at.at();
      at.take(bytes, what);
      return;
    }
    case 1: {
      auto address = at.number<std::uint64_t>(what), bytes = at.number<std::uint64_t>(what);
      if (node.elements_ == 0) return;
      if (address == undefined) never_written();
      if (bytes != node.bytes()) wrong_bytes(bytes);
      claim(address, bytes, "dataset");
      node.layout_ = Hdf5Node::Layout::contiguous;
      node.address_ = address;
      return;
    }
    case 2: {
      if (version > 3)
        unsupported(text("the chunk index of the dataset ", named(node), ", in HDF5's new form"), message.offset,
                    "write it with h5py's defaults: without libver='latest'");
      unsigned axes = at.number<std::uint8_t>(what);
      auto address = at.number<std::uint64_t>(what);
      if (axes != node.sizes_.size() + 1)
        reading_.fail(text("the dataset ", named(node), " of ", node.sizes_.size(), " axes has chunks of ", axes),
                      message.offset);
      std::uint64_t chunk_bytes = 1, expected = 1;
      for (unsigned axis = 0; axis < axes; ++axis) {
        std::uint64_t size = at.number<std::uint32_t>(what);
        const bool elements = axis + 1 == axes;
        if (size == 0 || (elements && size != node.type_.bytes))
          reading_.fail(text("the dataset ", named(node), " has chunks of size ", size), message.offset);
        if (__builtin_mul_overflow(chunk_bytes, size, &chunk_bytes) ||
            chunk_bytes > std::numeric_limits<std::uint32_t>::max())
          reading_.fail(text("the dataset ", named(node), " has chunks of 4 GiB and more"), message.offset);
        if (elements) break;
        node.chunk_sizes_.push_back(size);
        // At most as many as elements: no overflow.
        expected *= (static_cast<std::uint64_t>(node.sizes_[axis]) + size - 1) / size;
      }
      node.layout_ = Hdf5Node::Layout::chunked;
      if (node.elements_ == 0) return;
      if (address == undefined) never_written();
      chunk_tree(node, address, -1, chunk_bytes, expected);
      if (node.chunks_.size() != expected)
        reading_.fail(text("the dataset ", named(node), " has ", node.chunks_.size(), " of its ", expected, " chunks"),
                      message.offset, "write all of its data: none is made up");
      return;
    }
    case 3:
      unsupported(text("a virtual dataset, ", named(node)), message.offset, "write its data into the file");
    default:
      unsupported(text("a data layout of kind ", kind), message.offset);
  }
}

void Hdf5Parser::filters(Hdf5Node& node, const Message& message) {
  const char* what = "list of filters";
  Walk at = walk(message.data, message.offset);
  unsigned version = at.number<std::uint8_t>(what), count = at.number<std::uint8_t>(what);
  if (version != 1 && version != 2) unsupported(text("version ", version, " of a list of filters"), message.offset);
  if (count > 32) reading_.fail(text(count, " filters"), message.offset);
  if (version == 1) at.take(6, what);
  for (unsigned i = 0; i < count; ++i) {
    Hdf5Node::Filter filter{at.number<std::uint16_t>(what), 1};
    unsigned name_bytes = version == 1 || filter.id >= 256 ? at.number<std::uint16_t>(what) : 0u;
    at.take(2, what);  // whether it could be left out when it was written
    unsigned values = at.number<std::uint16_t>(what);
    std::string_view name = at.characters(version == 1 ? to_eight(name_bytes) : name_bytes, what);
    if (filter.id != deflate && filter.id != shuffle && filter.id != fletcher32) {
      name = name.substr(0, name.find('\0'));
      unsupported(text("the filter ", filter.id, name.empty() ? std::string() : " " + quoted_name(name),
                       " of the dataset ", named(node)),
                  message.offset, "write it with compression='gzip', or without");
    }
    for (unsigned k = 0; k < values; ++k) {
      auto value = at.number<std::uint32_t>(what);
      if (filter.id == shuffle && k == 0) filter.element = value;
    }
    if (version == 1 && values % 2 == 1) at.take(4, what);
    if (filter.element == 0) reading_.fail("a shuffle of elements of no bytes", message.offset);
    node.filters_.push_back(filter);
  }
}

void Hdf5Parser::chunk_tree(Hdf5Node& node, std::uint64_t address, int level, std::uint64_t chunk_bytes,
                            std::uint64_t expected) {
  const char* what = "tree of chunks";
  std::byte begin[24];
  source_.read(address, begin, sizeof begin, what);
  if (!begins_with(begin, "TREE")) reading_.fail("a tree of chunks is missing", address);
  Walk head = walk(begin, address);
  head.go_to(4, what);
  int kind = head.number<std::uint8_t>(what), its_level = head.number<std::uint8_t>(what);
  auto count = head.number<std::uint16_t>(what);
  if (kind != 1) reading_.fail("a tree of something else where one of chunks should be", address);
  if (level >= 0 && its_level != level) reading_.fail("a tree of chunks has a node of a wrong level", address);
  const std::size_t rank = node.sizes_.size();
  const std::uint64_t key_bytes = 8 + 8 * (rank + 1);
  Bytes bytes = block(address, 24 + count * (key_bytes + 8) + key_bytes, what);
  Walk at = walk(bytes, address);
  at.go_to(24, what);
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t offset = address + at.at();
    Hdf5Node::Chunk chunk;
    chunk.bytes = at.number<std::uint32_t>(what);
    chunk.skipped_filters = at.number<std::uint32_t>(what);
    for (std::size_t axis = 0; axis < rank; ++axis) chunk.begin.push_back(at.number<std::uint64_t>(what));
    if (at.number<std::uint64_t>(what) != 0) reading_.fail("a chunk begins inside of an element", offset);
    chunk.address = at.number<std::uint64_t>(what);
    if (its_level > 0) {
      chunk_tree(node, chunk.address, its_level - 1, chunk_bytes, expected);
    } else {
      if (node.chunks_.size() == expected)
        reading_.fail(text("the dataset ", named(node), " has more than its ", expected, " chunks"), offset);
      add_chunk(node, std::move(chunk), chunk_bytes, offset);
    }
  }
}

void Hdf5Parser::add_chunk(Hdf5Node& node, Hdf5Node::Chunk chunk, std::uint64_t chunk_bytes, std::uint64_t offset) {
  for (std::size_t axis = 0; axis < chunk.begin.size(); ++axis)
    if (chunk.begin[axis] >= static_cast<std::uint64_t>(node.sizes_[axis]) ||
        chunk.begin[axis] % node.chunk_sizes_[axis] != 0)
      reading_.fail(text("the dataset ", named(node), " of sizes ", sizes_text(node.sizes_), " has a chunk at ",
                         chunk.begin[axis], " of axis ", axis),
                    offset);
  // In the order of the tree, which is that of their places: so each comes once.
  if (!node.chunks_.empty() && !(node.chunks_.back().begin < chunk.begin))
    reading_.fail(text("the chunks of the dataset ", named(node), " are not in order"), offset);
  bool packed = false;
  std::uint64_t plain = chunk_bytes;
  for (std::size_t i = 0; i < node.filters_.size(); ++i) {
    if (chunk.skipped_filters >> i & 1) continue;
    packed |= node.filters_[i].id == deflate;
    plain += node.filters_[i].id == fletcher32 ? 4 : 0;
  }
  if (packed ? chunk_bytes / best_deflate > chunk.bytes : chunk.bytes != plain)
    reading_.fail(text("a chunk of the dataset ", named(node), " of ", chunk_bytes, " bytes cannot come from the ",
                       chunk.bytes, " bytes in the file"),
                  offset);
  claim(chunk.address, chunk.bytes, "chunk");
  unpacked_ += chunk_bytes;
  if (unpacked_ > limits_.floor && unpacked_ / std::max<std::uint64_t>(limits_.ratio, 1) > source_.size())
    reading_.fail(
        text("its chunks would unpack to ", unpacked_, " bytes and more, beyond ", limits_.ratio, " times the file"),
        offset, "do not trust it: files like this are made to fill memory");
  node.chunks_.push_back(std::move(chunk));
}

// --- attributes and strings

Hdf5Attribute Hdf5Parser::attribute(const Message& message) {
  const char* what = "attribute";
  Walk at = walk(message.data, message.offset);
  unsigned version = at.number<std::uint8_t>(what), flags = at.number<std::uint8_t>(what);
  if (version < 1 || version > 3) unsupported(text("version ", version, " of an attribute"), message.offset);
  std::uint64_t name_bytes = at.number<std::uint16_t>(what), type_bytes = at.number<std::uint16_t>(what),
                space_bytes = at.number<std::uint16_t>(what);
  if (version == 3) at.take(1, what);  // characters of its name
  auto padded = [&](std::uint64_t bytes) { return version == 1 ? to_eight(bytes) : bytes; };
  Hdf5Attribute attribute;
  attribute.offset = message.offset;
  std::string_view name = at.characters(padded(name_bytes), what).substr(0, name_bytes);
  attribute.name = name.substr(0, name.find('\0'));
  if (attribute.name.empty() || !is_utf8(attribute.name))
    reading_.fail(text("the name ", quoted_name(attribute.name), " of an attribute is none"), message.offset);
  if (version > 1 && flags & 3)
    unsupported(text("a committed type, of the attribute ", quoted_name(attribute.name)), message.offset);
  std::uint64_t type_at = message.offset + at.at();
  Walk in_type = walk(at.take(padded(type_bytes), what).first(type_bytes), type_at);
  attribute.type = type(in_type);
  std::uint64_t space_at = message.offset + at.at();
  Space space = this->space({MessageType::dataspace, at.take(padded(space_bytes), what).first(space_bytes), space_at});
  std::uint64_t bytes;
  if (!bytes_of(space.sizes, attribute.type.bytes, bytes) || bytes > at.left())
    reading_.fail(text("the attribute ", quoted_name(attribute.name), " of sizes ", sizes_text(space.sizes),
                       " has only ", at.left(), " bytes"),
                  message.offset);
  attribute.sizes = std::move(space.sizes);
  const std::uint64_t data_at = message.offset + at.at();
  std::span<const std::byte> data = at.take(bytes, what);
  if (attribute.type.is_string()) {
    attribute.strings = strings(data, space.elements, attribute.type, data_at);
  } else {
    attribute.data.assign(data.begin(), data.end());
    make_native(attribute.type, attribute.data, reading_, data_at);
  }
  return attribute;
}

const Hdf5Parser::Collection& Hdf5Parser::collection(std::uint64_t address) {
  auto known = collections_.find(address);
  if (known != collections_.end()) return known->second;
  const char* what = "heap of strings";
  std::byte begin[16];
  source_.read(address, begin, sizeof begin, what);
  if (!begins_with(begin, "GCOL") || begin[4] != std::byte{1}) reading_.fail("a heap of strings is missing", address);
  std::uint64_t bytes;
  std::memcpy(&bytes, begin + 8, 8);
  if (bytes < 16) reading_.fail(text("a heap of strings of ", bytes, " bytes"), address);
  Collection collection;
  collection.bytes = block(address, bytes, what);
  Walk at = walk(collection.bytes, address);
  at.go_to(16, what);
  while (at.left() >= 16) {
    auto index = at.number<std::uint16_t>(what);
    at.take(6, what);
    auto size = at.number<std::uint64_t>(what);
    if (index == 0) break;  // free room
    if (size > at.left()) at.fail(text("a string of ", size, " bytes in a heap that has ", at.left(), " left"));
    if (!collection.objects.emplace(index, std::pair(at.at(), size)).second)
      at.fail(text("string ", index, " comes twice in a heap"));
    at.take(std::min<std::uint64_t>(to_eight(size), at.left()), what);
  }
  return collections_.emplace(address, std::move(collection)).first->second;
}

std::vector<std::string> Hdf5Parser::strings(std::span<const std::byte> data, std::uint64_t count, const Hdf5Type& type,
                                             std::uint64_t offset) {
  const char* what = "string";
  std::vector<std::string> strings;
  strings.reserve(static_cast<std::size_t>(count));
  Walk at = walk(data, offset);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string_view characters;
    if (type.kind == Hdf5Kind::fixed_string) {
      characters = at.characters(type.bytes, what);
    } else {
      const std::uint64_t here = offset + at.at();
      std::uint64_t length = at.number<std::uint32_t>(what), address = at.number<std::uint64_t>(what);
      auto index = at.number<std::uint32_t>(what);
      if (length > 0) {
        const Collection& heap = collection(address);
        auto found = heap.objects.find(index);
        if (found == heap.objects.end() || found->second.second < length)
          reading_.fail(text("a string of ", length, " bytes is not in the heap at byte ", address), here);
        // Many may lead to the same one.
        if (length > string_bytes_left_) reading_.fail("its strings have more bytes than the file", here);
        string_bytes_left_ -= length;
        characters = {reinterpret_cast<const char*>(heap.bytes.data()) + found->second.first,
                      static_cast<std::size_t>(length)};
      }
    }
    characters = characters.substr(0, characters.find('\0'));
    if (type.space_padded) characters = characters.substr(0, characters.find_last_not_of(' ') + 1);
    strings.emplace_back(characters);
  }
  return strings;
}

}  // namespace stet::files
