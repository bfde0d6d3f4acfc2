// HDF5: the part of the format that h5py and Keras write. Not a public header.
//
// Our own reader, because a file from a stranger is believed in nothing: every block lies inside of the file and is
// part of one thing only, so what a file can cost is bounded by its size, and nothing in it can name another file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "stet/base/dtype.h"
#include "stet/files/source.h"

namespace stet::files {

enum class Hdf5Kind : std::uint8_t {
  boolean,           // h5py's enumeration of FALSE and TRUE, a byte
  signed_integer,    // of 1, 2, 4 or 8 bytes
  unsigned_integer,  // also those that stet has no DType for: Keras's states of generators are of 4 bytes
  floating,          // IEEE, of 2, 4 or 8 bytes
  bfloat,            // bfloat16 as a number of its own; Keras writes opaque bytes instead
  opaque,            // bytes
  fixed_string,      // of the same length for all elements
  string,            // of any length
};

struct Hdf5Type {
  Hdf5Kind kind = Hdf5Kind::opaque;
  std::uint32_t bytes = 0;          // of an element in the file
  bool highest_first = false;       // order of bytes in the file
  bool space_padded = false;        // fixed strings
  static Hdf5Type of(DType dtype);  // bf16 is opaque, as Keras writes it
  /// None for what stet has no type for.
  std::optional<DType> dtype() const;
  bool is_string() const { return kind == Hdf5Kind::fixed_string || kind == Hdf5Kind::string; }
  /// "u32", "f64", "a string": for errors.
  std::string str() const;
};

struct Hdf5Attribute {
  std::string name;
  Hdf5Type type;
  std::vector<std::int64_t> sizes;   // none: one value
  Bytes data;                        // of what is no string: elements in this machine's order of bytes
  std::vector<std::string> strings;  // of strings
  std::uint64_t offset = 0;          // in the file, for errors

  /// The only string; null if it is not one.
  const std::string* if_string() const { return type.is_string() && strings.size() == 1 ? &strings[0] : nullptr; }
  /// The only integer or bool; none if it is not one, or does not fit.
  std::optional<std::int64_t> if_integer() const;
  std::optional<double> if_real() const;
};

/// A group or a dataset.
class Hdf5Node {
 public:
  const std::string& name() const { return name_; }  // the last part of the path; empty for the root
  const std::string& path() const { return path_; }  // "layers/dense/vars/0"
  bool is_dataset() const { return dataset_; }
  std::uint64_t offset() const { return offset_; }  // of its header in the file, for errors

  /// Of a group, in the order of the file: sorted by name, or as they were made where the file keeps that.
  const std::vector<Hdf5Node>& children() const { return children_; }
  /// "vars/0", from here; null if there is none.
  const Hdf5Node* find(std::string_view path) const;

  const std::vector<Hdf5Attribute>& attributes() const { return attributes_; }
  const Hdf5Attribute* attribute(std::string_view name) const;

  /// Of a dataset.
  const Hdf5Type& type() const { return type_; }
  /// bf16 too where an attribute `dtype` says that opaque bytes are, as Keras does. None for strings and for types that
  /// stet has not.
  std::optional<DType> dtype() const;
  const std::vector<std::int64_t>& sizes() const { return sizes_; }
  std::uint64_t elements() const { return elements_; }
  /// Of all elements; the file has the data for so many.
  std::uint64_t bytes() const { return elements_ * type_.bytes; }

 private:
  friend class Hdf5Parser;
  friend class Hdf5Reader;
  struct Chunk {
    std::vector<std::uint64_t> begin;
    std::uint64_t address;
    std::uint32_t bytes, skipped_filters;
  };
  enum class Layout : std::uint8_t { none, contiguous, chunked };
  struct Filter {
    unsigned id;
    std::uint32_t element;  // of shuffle
  };

  std::string name_, path_;
  std::uint64_t offset_ = 0;
  bool dataset_ = false;
  std::vector<Hdf5Node> children_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::vector<Hdf5Attribute> attributes_;
  Hdf5Type type_;
  std::vector<std::int64_t> sizes_;
  std::uint64_t elements_ = 0;
  Layout layout_ = Layout::none;
  std::uint64_t address_ = 0;  // also of compact data, which stands in the header
  std::vector<std::uint64_t> chunk_sizes_;
  std::vector<Chunk> chunks_;
  std::vector<Filter> filters_;
};

struct Hdf5Limits {
  int depth = 64;  // of groups in groups
  /// What packed datasets may unpack to, all together: `floor` bytes, or `ratio` times the file.
  std::uint64_t floor = std::uint64_t{4} << 30;
  std::uint64_t ratio = 100;
};

/// Reads all that describes the data; data itself by read(). UserError, with the byte, for whatever is damaged, and by
/// name for what is not supported: soft and external links, external storage, virtual datasets, other filters than
/// deflate, shuffle and fletcher32, committed types, objects with two names, dense groups and attributes, new chunk
/// indices, and types that are not in Hdf5Kind.
class Hdf5Reader {
 public:
  explicit Hdf5Reader(Source source, Hdf5Limits limits = {});

  const Reading& reading() const { return source_.reading(); }
  const Hdf5Node& root() const { return root_; }
  const Hdf5Node* find(std::string_view path) const { return root_.find(path); }

  /// `to` has dataset.bytes(): elements in row order, in this machine's order of bytes. UserError for a bool that is
  /// neither 0 nor 1. Not for strings.
  void read(const Hdf5Node& dataset, std::span<std::byte> to) const;
  /// Of a dataset of strings.
  std::vector<std::string> strings(const Hdf5Node& dataset) const;

 private:
  void read_raw(const Hdf5Node& dataset, std::span<std::byte> to) const;
  void read_chunk(const Hdf5Node& dataset, const Hdf5Node::Chunk& chunk, std::span<std::byte> to) const;
  Source source_;
  Hdf5Node root_;
};

/// Builds a tree and writes it in the form that all versions of HDF5 read. Paths are "layers/dense/vars/0"; groups on
/// the way are made. InternalError for names that are not UTF-8, empty or come twice.
class Hdf5Writer {
 public:
  using Value = std::variant<std::string, std::vector<std::string>, std::int64_t, double>;

  Hdf5Writer();
  ~Hdf5Writer();
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  void group(std::string_view path);
  /// `data` gives all bytes, in any number of parts, in row order and this machine's order of bytes, when the file is
  /// written. Numbers, bools and opaque bytes; no strings.
  void dataset(std::string_view path, Hdf5Type type, std::vector<std::int64_t> sizes,
               std::function<void(const Sink&)> data);
  /// As Keras does: bf16 is opaque, with an attribute that says so.
  void dataset(std::string_view path, DType dtype, std::vector<std::int64_t> sizes,
               std::function<void(const Sink&)> data);
  /// Of a group or dataset that exists ("" is the root).
  void attribute(std::string_view path, std::string name, Value value);

  /// Lays it out; nothing can be added after. The bytes of the whole file.
  std::uint64_t size();
  /// Once. InternalError if a dataset gives more or fewer bytes than its sizes say.
  void write(const Sink& sink);

 private:
  struct Node;
  class Layouter;
  Node& at(std::string_view path, bool make);
  std::unique_ptr<Node> root_;
  std::vector<Node*> datasets_;  // in the order of their data
  Bytes head_;                   // all but the data
  bool laid_out_ = false;
  std::uint64_t size_ = 0;
};

}  // namespace stet::files
