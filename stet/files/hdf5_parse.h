// Reads what describes the data of an HDF5 file. Not a public header.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stet/files/hdf5.h"
#include "stet/files/hdf5_inside.h"

namespace stet::files {

/// Goes through a file once. Every block that it reads is claimed: no two may overlap. So nothing is read twice, which
/// bounds time and memory by the size of the file, and no way through it can be a circle.
class Hdf5Parser {
 public:
  Hdf5Parser(const Source& source, const Hdf5Limits& limits);

  Hdf5Node whole();
  /// `count` strings, whose places or characters are `data`. All together may have as many bytes as the file.
  std::vector<std::string> strings(std::span<const std::byte> data, std::uint64_t count, const Hdf5Type& type,
                                   std::uint64_t offset);

 private:
  struct Message {
    std::uint16_t type;
    std::span<const std::byte> data;
    std::uint64_t offset;
  };
  struct Header {
    std::vector<Bytes> blocks;
    std::vector<Message> messages;
  };
  struct Link {
    std::string name;
    std::uint64_t address;
    std::uint64_t offset;  // where it stands, for errors
  };
  struct Space {
    std::vector<std::int64_t> sizes;
    std::uint64_t elements = 1;
  };
  struct Collection {
    Bytes bytes;
    std::map<unsigned, std::pair<std::size_t, std::uint64_t>> objects;  // where and how long
  };

  [[noreturn]] void unsupported(const std::string& what, std::uint64_t offset,
                                const std::string& advice = "write it with h5py's defaults") const;
  /// Read, and claimed.
  Bytes block(std::uint64_t address, std::uint64_t bytes, const char* what);
  void claim(std::uint64_t address, std::uint64_t bytes, const char* what);
  Walk walk(std::span<const std::byte> bytes, std::uint64_t offset) const { return {bytes, reading_, offset}; }

  std::uint64_t root_address();
  Header header(std::uint64_t address);
  void old_messages(Header& header, std::size_t block, std::size_t begin, std::uint64_t address);
  void new_messages(Header& header, std::size_t block, std::size_t begin, std::size_t end, std::uint64_t address,
                    bool ordered);
  void add_message(Header& header, unsigned type, unsigned flags, std::span<const std::byte> data,
                   std::uint64_t offset);

  void object(Hdf5Node& node, std::uint64_t address, int depth);
  void group(Hdf5Node& node, const Header& header, int depth);
  void dataset(Hdf5Node& node, const Header& header);
  std::vector<Link> symbols(const Message& message);
  void symbol_tree(std::uint64_t address, int level, std::span<const std::byte> names, std::uint64_t names_offset,
                   std::vector<Link>& links);
  void symbol_node(std::uint64_t address, std::span<const std::byte> names, std::uint64_t names_offset,
                   std::vector<Link>& links);
  Link link(const Message& message);
  void check_dense(const Message& message, bool of_links);

  Space space(const Message& message);
  Hdf5Type type(Walk& walk, int depth = 0);
  void layout(Hdf5Node& node, const Message& message);
  void filters(Hdf5Node& node, const Message& message);
  void chunk_tree(Hdf5Node& node, std::uint64_t address, int level, std::uint64_t chunk_bytes, std::uint64_t expected);
  void add_chunk(Hdf5Node& node, Hdf5Node::Chunk chunk, std::uint64_t chunk_bytes, std::uint64_t offset);
  Hdf5Attribute attribute(const Message& message);
  const Collection& collection(std::uint64_t address);

  const Source& source_;
  const Reading& reading_;
  Hdf5Limits limits_;
  std::map<std::uint64_t, std::pair<std::uint64_t, const char*>> claimed_;  // by begin: end, and what it is
  std::set<std::uint64_t> objects_;                                         // headers
  std::map<std::uint64_t, Collection> collections_;
  std::uint64_t string_bytes_left_;
  std::uint64_t unpacked_ = 0;
};

/// Turns numbers into this machine's order of bytes. UserError for bools that are none; `offset` is for that.
void make_native(const Hdf5Type& type, std::span<std::byte> data, const Reading& reading, std::uint64_t offset);

}  // namespace stet::files
