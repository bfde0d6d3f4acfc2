// safetensors: named tensors in one file, a JSON header before their bytes. Not a public header.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stet/base/dtype.h"
#include "stet/files/file.h"
#include "stet/files/source.h"

namespace stet::files {

/// Text that goes along with the tensors.
using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

struct SafetensorsEntry {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> sizes;
  std::uint64_t offset;  // of its first byte in the file
  std::uint64_t bytes;   // elements in row order, the lowest byte of each first
};

/// Reads and checks the header. UserError, and no memory beyond it, for whatever the format forbids: a header of more
/// than 100 MB, or that is not JSON; tensors that overlap, leave holes, or do not end where the file ends; sizes that
/// are not those of the bytes; names that come twice; types that stet does not have.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(Source source);

  const Reading& reading() const { return source_.reading(); }
  /// In the order of their bytes.
  const std::vector<SafetensorsEntry>& tensors() const { return tensors_; }
  /// Null if there is none.
  const SafetensorsEntry* find(std::string_view name) const;
  const SafetensorsMetadata& metadata() const { return metadata_; }
  /// `to` has entry.bytes. UserError for a bool that is neither 0 nor 1.
  void read(const SafetensorsEntry& entry, std::span<std::byte> to) const;

 private:
  Source source_;
  std::vector<SafetensorsEntry> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  SafetensorsMetadata metadata_;
};

/// A tensor to be written. Its bytes are asked for when their turn comes and not kept.
struct SafetensorsPart {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> sizes;
  std::function<void(const Sink&)> data;  // gives all bytes, in any number of parts, to the sink
};

/// A complete file: the same bytes as the format's own library writes for the same tensors. InternalError for names
/// that come twice, are "__metadata__" or not UTF-8, and for data that is not as long as its sizes say.
void write_safetensors(const Sink& sink, std::vector<SafetensorsPart> parts, const SafetensorsMetadata& metadata = {});
void write_safetensors(Output& output, std::vector<SafetensorsPart> parts, const SafetensorsMetadata& metadata = {});

}  // namespace stet::files
