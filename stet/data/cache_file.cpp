#include "stet/data/cache_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/tensor_node.h"
#include "stet/data/random_order.h"

namespace stet::data {
namespace {

constexpr char magic[] = "stet cache 1\n\0\0\0";  // 16 bytes
constexpr std::size_t magic_bytes = 16;
constexpr std::uint64_t most_description = 1 << 16;

/// Of the head of a file, of which the description follows.
struct Head {
  char magic[magic_bytes];
  std::uint64_t fingerprint, description_bytes, description_checksum, checksum;
};
/// The last bytes of a file.
struct Tail {
  std::uint64_t table_offset, count, table_checksum, checksum;
};
/// Before the bytes of a tensor: 8 sizes, of which `rank` count.
struct TensorHead {
  std::uint32_t dtype, rank;
  std::int64_t sizes[max_rank];
};
/// Before the tensors of an element.
struct RecordHead {
  std::uint64_t tensors, body_bytes, body_checksum, checksum;
};

/// Spreads every bit of the data over all of the result; for damage, not for attacks.
std::uint64_t checksum_of(const void* data, std::size_t bytes, std::uint64_t seed = 0x73746574) {
  const auto* at = static_cast<const std::byte*>(data);
  std::uint64_t lanes[4] = {seed, ~seed, seed << 1, bytes};
  for (; bytes >= 32; bytes -= 32, at += 32)
    for (int lane = 0; lane < 4; ++lane) {
      std::uint64_t word;
      std::memcpy(&word, at + 8 * lane, 8);
      lanes[lane] = std::rotl((lanes[lane] ^ word) * 0x9E3779B97F4A7C15, 29);
    }
  std::uint64_t sum = combined(combined(lanes[0], lanes[1]), combined(lanes[2], lanes[3]));
  for (; bytes > 0; bytes -= std::min<std::size_t>(bytes, 8), at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, std::min<std::size_t>(bytes, 8));
    sum = combined(sum, word);
    if (bytes <= 8) break;
  }
  return sum;
}
/// Of all but its last field, which is this.
template <class Part>
std::uint64_t own_checksum(const Part& part, std::uint64_t offset) {
  return checksum_of(&part, sizeof part - sizeof part.checksum, combined(offset, sizeof part));
}

[[noreturn]] void refuse(const std::string& what, Where where, const std::string& advice) {
  throw UserError(error_text(what, where, advice));
}

}  // namespace

// --- reading

void CacheReader::damaged(std::uint64_t offset, const std::string& what) const {
  refuse(text("cache: the file '", path_, "' is damaged at byte ", offset, ": ", what), where_,
         "delete it: the next iteration makes it again");
}

void CacheReader::read_bytes(std::uint64_t offset, void* to, std::size_t bytes) const {
  auto* at = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(file_, at, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      refuse(text("cache: the file '", path_, "' cannot be read at byte ", offset, ": ", std::strerror(errno)), where_,
             "see to the disk, or delete the file: the next iteration makes it again");
    if (got == 0) damaged(offset, text("it ends, ", bytes, " bytes too early"));
    at += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
}

std::shared_ptr<const CacheReader> CacheReader::open(const std::string& path, const CacheIdentity& identity,
                                                     Where where) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    if (errno == ENOENT) return nullptr;
    refuse(text("cache: the file '", path, "' cannot be opened: ", std::strerror(errno)), where,
           "give a file that can be read and written");
  }
  std::shared_ptr<CacheReader> reader(new CacheReader(path, file, where));
  struct stat status;
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
    refuse(text("cache: '", path, "' is no ordinary file"), where, "give the name of a file");
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  Head head;
  if (bytes < sizeof head.magic)
    refuse(text("cache: the file '", path, "' is none of a cache: it has ", bytes, " bytes"), where,
           "give the name of another file, or delete this one");
  reader->read_bytes(0, head.magic, sizeof head.magic);
  if (std::memcmp(head.magic, magic, magic_bytes) != 0)
    refuse(text("cache: the file '", path, "' is none of a cache: it does not begin with \"stet cache 1\""), where,
           "give the name of another file, or delete this one");
  reader->read_bytes(0, &head, sizeof head);
  if (head.checksum != own_checksum(head, 0)) reader->damaged(0, "the checksum of the head is another");
  if (head.description_bytes > std::min(most_description, bytes))
    reader->damaged(0, text("a description of ", head.description_bytes, " bytes"));
  std::string description(head.description_bytes, '\0');
  reader->read_bytes(sizeof head, description.data(), description.size());
  if (head.description_checksum != checksum_of(description.data(), description.size()))
    reader->damaged(sizeof head, "the checksum of the description is another");
  if (head.fingerprint != identity.fingerprint)
    refuse(text("cache: the file '", path, "' holds the elements of another pipeline, ", description, "; this one is ",
                identity.description),
           where, "give the name of another file, or delete this one");

  Tail tail;
  const std::uint64_t first = sizeof head + description.size();
  if (bytes < first + sizeof tail) reader->damaged(bytes, "it ends too early");
  const std::uint64_t tail_offset = bytes - sizeof tail;
  reader->read_bytes(tail_offset, &tail, sizeof tail);
  if (tail.checksum != own_checksum(tail, tail_offset))
    reader->damaged(tail_offset, "the checksum of the tail is another");
  // The table lies between the records and the tail, and is as long as it says.
  if (tail.table_offset < first || tail.table_offset > tail_offset || (tail_offset - tail.table_offset) % 8 != 0 ||
      (tail_offset - tail.table_offset) / 8 != tail.count)
    reader->damaged(tail_offset, text("a table of ", tail.count, " elements at byte ", tail.table_offset));
  std::vector<std::uint64_t>& offsets = reader->offsets_;
  offsets.resize(tail.count);
  reader->read_bytes(tail.table_offset, offsets.data(), offsets.size() * 8);
  if (tail.table_checksum != checksum_of(offsets.data(), offsets.size() * 8))
    reader->damaged(tail.table_offset, "the checksum of the table is another");
  offsets.push_back(tail.table_offset);
  if (!std::is_sorted(offsets.begin(), offsets.end()) || offsets[0] < first)
    reader->damaged(tail.table_offset, "elements do not follow each other");
  return reader;
}

CacheReader::~CacheReader() { ::close(file_); }

void CacheReader::read(std::int64_t number, Tensors& out) const {
  const std::uint64_t offset = offsets_[static_cast<std::size_t>(number)];
  const std::uint64_t end = offsets_[static_cast<std::size_t>(number) + 1];
  RecordHead head;
  if (end - offset < sizeof head) damaged(offset, text("element ", number, " has ", end - offset, " bytes"));
  read_bytes(offset, &head, sizeof head);
  if (head.checksum != own_checksum(head, offset))
    damaged(offset, text("the checksum of element ", number, "'s head is another"));
  if (head.body_bytes != end - offset - sizeof head || head.tensors > head.body_bytes / sizeof(TensorHead))
    damaged(offset, text("element ", number, " has ", head.tensors, " tensors in ", head.body_bytes, " bytes"));

  std::uint64_t at = offset + sizeof head, checksum = 0;
  Tensors element;
  for (std::uint64_t i = 0; i < head.tensors; ++i) {
    TensorHead one;
    if (end - at < sizeof one) damaged(at, text("tensor ", i, " of element ", number, " goes beyond it"));
    read_bytes(at, &one, sizeof one);
    bool fits = one.rank <= max_rank && one.dtype < dtype_count;
    std::int64_t bytes = fits ? size_of(static_cast<DType>(one.dtype)) : 0;
    for (std::uint32_t axis = 0; fits && axis < one.rank; ++axis)
      fits = one.sizes[axis] >= 0 && !__builtin_mul_overflow(bytes, one.sizes[axis], &bytes);
    if (!fits || static_cast<std::uint64_t>(bytes) > end - at - sizeof one)
      damaged(at, text("tensor ", i, " of element ", number, " goes beyond it"));
    Buffer buffer = Buffer::allocate(static_cast<std::size_t>(bytes));
    if (bytes > 0) read_bytes(at + sizeof one, buffer.data(), static_cast<std::size_t>(bytes));
    checksum = combined(checksum, checksum_of(&one, sizeof one));
    checksum = combined(checksum, checksum_of(buffer.data(), static_cast<std::size_t>(bytes)));
    element.push_back(dense_tensor(static_cast<DType>(one.dtype), {one.sizes, one.rank}, std::move(buffer)));
    at += sizeof one + static_cast<std::uint64_t>(bytes);
  }
  if (at != end) damaged(at, text("element ", number, " has ", end - at, " bytes too many"));
  if (checksum != head.body_checksum) damaged(offset, text("the checksum of element ", number, " is another"));
  out = std::move(element);
}

// --- writing

CacheWriter::CacheWriter(std::string path, const CacheIdentity& identity, Where where)
    : output_(std::move(path), "cache", where), where_(where) {
  std::string description = identity.description.substr(0, most_description);
  Head head{};
  std::memcpy(head.magic, magic, magic_bytes);
  head.fingerprint = identity.fingerprint;
  head.description_bytes = description.size();
  head.description_checksum = checksum_of(description.data(), description.size());
  head.checksum = own_checksum(head, 0);
  output_.write(&head, sizeof head);
  output_.write(description);
}

void CacheWriter::add(const Tensors& element) {
  RecordHead head{.tensors = element.size(), .body_bytes = 0, .body_checksum = 0, .checksum = 0};
  std::vector<std::pair<TensorHead, Tensor>> parts;
  for (const Tensor& tensor : element) {
    concrete_node(tensor, "cache", where_);
    Tensor dense = on_host(tensor.node()->dense ? tensor : tensor.contiguous(where_));
    const TensorNode& node = *dense.node();
    TensorHead one{};
    one.dtype = static_cast<std::uint32_t>(node.dtype);
    one.rank = node.rank;
    std::copy(node.sizes, node.sizes + node.rank, one.sizes);
    const auto bytes = static_cast<std::size_t>(node.element_count() * size_of(node.dtype));
    head.body_bytes += sizeof one + bytes;
    head.body_checksum = combined(head.body_checksum, checksum_of(&one, sizeof one));
    head.body_checksum = combined(head.body_checksum, checksum_of(node.data, bytes));
    parts.emplace_back(one, std::move(dense));
  }
  offsets_.push_back(output_.written());
  head.checksum = own_checksum(head, output_.written());
  output_.write(&head, sizeof head);
  for (const auto& [one, tensor] : parts) {
    output_.write(&one, sizeof one);
    const TensorNode& node = *tensor.node();
    const auto bytes = static_cast<std::size_t>(node.element_count() * size_of(node.dtype));
    if (bytes > 0) output_.write(node.data, bytes);
  }
}

void CacheWriter::finish() {
  Tail tail{.table_offset = output_.written(),
            .count = offsets_.size(),
            .table_checksum = checksum_of(offsets_.data(), offsets_.size() * 8),
            .checksum = 0};
  output_.write(offsets_.data(), offsets_.size() * 8);
  tail.checksum = own_checksum(tail, output_.written());
  output_.write(&tail, sizeof tail);
  output_.commit();
}

}  // namespace stet::data
