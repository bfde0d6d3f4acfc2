#include "stet/files/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/files/inflate.h"
#include "stet/files/utf8.h"

namespace stet::files {
namespace {

constexpr std::uint32_t local_signature = 0x04034b50, central_signature = 0x02014b50, end_signature = 0x06054b50,
                        end64_signature = 0x06064b50, locator_signature = 0x07064b50;
constexpr std::uint64_t local_bytes = 30, central_bytes = 46, end_bytes = 22, end64_bytes = 56, locator_bytes = 20;
// A field that stands in the zip64 record instead.
constexpr std::uint32_t elsewhere32 = 0xFFFFFFFF;
constexpr std::uint16_t elsewhere16 = 0xFFFF, zip64_record = 1;
constexpr std::size_t block_bytes = std::size_t{1} << 18;

enum Flags : unsigned { encrypted = 1, sizes_follow = 1 << 3, patched = 1 << 5, strongly = 1 << 6, masked = 1 << 13 };

const char* const wrong_checksum = "has a wrong checksum";
const char* const not_a_zip = "the file is no ZIP archive, or was cut off: fetch or write it again";

/// Why a name is refused; nothing if it is good. Names without the '/' that marks folders.
const char* bad_name(std::string_view name) {
  if (name.empty()) return "is empty";
  if (!is_utf8(name)) return "is not UTF-8";
  for (char c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return "has a control character";
  if (name.find('\\') != std::string_view::npos) return "has a '\\'";
  if (name.front() == '/' || (name.size() > 2 && name[1] == ':' && name[2] == '/')) return "is absolute";
  for (std::size_t begin = 0; begin <= name.size();) {
    std::size_t end = std::min(name.find('/', begin), name.size());
    std::string_view part = name.substr(begin, end - begin);
    if (part == "..") return "leads out of the archive";
    if (part == "." || part.empty()) return "has an empty part";
    begin = end + 1;
  }
  return nullptr;
}

std::uint32_t checksum_of(std::span<const std::byte> bytes, std::uint32_t before = 0) {
  return static_cast<std::uint32_t>(
      crc32_z(before, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

struct Large {
  std::uint64_t size, stored_size, header;
};

/// Takes those fields that stand elsewhere from the zip64 record among the extra fields.
void read_zip64(Walk extra, Large& fields) {
  if (fields.size != elsewhere32 && fields.stored_size != elsewhere32 && fields.header != elsewhere32) return;
  while (extra.left() >= 4) {
    auto kind = extra.number<std::uint16_t>("extra field");
    auto length = extra.number<std::uint16_t>("extra field");
    if (kind != zip64_record) {
      extra.take(length, "extra field");
      continue;
    }
    for (std::uint64_t* field : {&fields.size, &fields.stored_size, &fields.header})
      if (*field == elsewhere32) *field = extra.number<std::uint64_t>("zip64 record");
    return;
  }
  extra.fail("an entry's zip64 record is missing");
}

}  // namespace

// --- reading

ZipReader::ZipReader(Source source, ZipLimits limits) : source_(std::move(source)), limits_(limits) {
  // The end record is the last thing in the file but for a comment of its own.
  const Reading& reading = source_.reading();
  if (source_.size() < end_bytes) reading.fail("is no ZIP archive", not_a_zip);
  std::uint64_t tail = std::min<std::uint64_t>(source_.size(), end_bytes + elsewhere16);
  std::uint64_t tail_begin = source_.size() - tail;
  Bytes bytes = source_.read(tail_begin, tail, "directory");
  std::uint64_t end = source_.size();
  for (std::size_t at = bytes.size() - end_bytes + 1; at-- > 0;) {
    std::uint32_t signature;
    std::uint16_t comment;
    std::memcpy(&signature, &bytes[at], 4);
    std::memcpy(&comment, &bytes[at + 20], 2);
    if (signature == end_signature && at + end_bytes + comment == bytes.size()) {
      end = tail_begin + at;
      break;
    }
  }
  if (end == source_.size()) reading.fail("is no ZIP archive", not_a_zip);

  Walk walk(bytes, reading, tail_begin);
  walk.go_to(end - tail_begin + 4, "end record");
  std::uint64_t disk = walk.number<std::uint16_t>("end record"), first_disk = walk.number<std::uint16_t>("end record");
  std::uint64_t here = walk.number<std::uint16_t>("end record"), count = walk.number<std::uint16_t>("end record");
  std::uint64_t size = walk.number<std::uint32_t>("end record"), offset = walk.number<std::uint32_t>("end record");
  std::uint64_t directory_end = end;
  if (count == elsewhere16 || here == elsewhere16 || size == elsewhere32 || offset == elsewhere32) {
    // A file of exactly 65535 entries needs no zip64 either.
    if (end >= locator_bytes) {
      Bytes locator = source_.read(end - locator_bytes, locator_bytes, "zip64 locator");
      Walk at(locator, reading, end - locator_bytes);
      if (at.number<std::uint32_t>("zip64 locator") == locator_signature) {
        auto on_disk = at.number<std::uint32_t>("zip64 locator");
        auto end64 = at.number<std::uint64_t>("zip64 locator");
        auto disks = at.number<std::uint32_t>("zip64 locator");
        if (on_disk != 0 || disks > 1) at.fail("an archive of several parts", "join its parts to one file");
        if (end64 > end - locator_bytes || end - locator_bytes - end64 < end64_bytes)
          at.fail("its zip64 end record is not before its end");
        Bytes record = source_.read(end64, end64_bytes, "zip64 end record");
        Walk large(record, reading, end64);
        if (large.number<std::uint32_t>("zip64 end record") != end64_signature)
          large.fail("its zip64 end record is missing");
        if (large.number<std::uint64_t>("zip64 end record") != end - locator_bytes - end64 - 12)
          large.fail("its zip64 end record has a wrong size");
        large.take(4, "zip64 end record");
        disk = large.number<std::uint32_t>("zip64 end record");
        first_disk = large.number<std::uint32_t>("zip64 end record");
        here = large.number<std::uint64_t>("zip64 end record");
        count = large.number<std::uint64_t>("zip64 end record");
        size = large.number<std::uint64_t>("zip64 end record");
        offset = large.number<std::uint64_t>("zip64 end record");
        directory_end = end64;
      }
    }
  }
  if (disk != 0 || first_disk != 0 || here != count)
    reading.fail("an archive of several parts", end, "join its parts to one file");
  if (size > directory_end || offset != directory_end - size)
    reading.fail(text("its directory of ", size, " bytes would begin at byte ", offset, ", and does not end where the ",
                      "end record begins"),
                 end);
  if (count > size / central_bytes)
    reading.fail(text("a directory of ", size, " bytes cannot have ", count, " entries"), end);
  read_directory(offset, size, count);
  check_overlaps(offset);
}

void ZipReader::read_directory(std::uint64_t offset, std::uint64_t size, std::uint64_t count) {
  const Reading& reading = source_.reading();
  Bytes directory = source_.read(offset, size, "directory");
  Walk walk(directory, reading, offset);
  entries_.reserve(static_cast<std::size_t>(count));
  headers_.reserve(static_cast<std::size_t>(count));
  std::uint64_t all = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t begin = offset + walk.at();
    if (walk.number<std::uint32_t>("directory") != central_signature)
      reading.fail(text("entry ", i, " of its directory is missing"), begin);
    auto made_by = walk.number<std::uint16_t>("directory");
    walk.take(2, "directory");  // the version needed: what an entry needs is seen from its fields
    unsigned flags = walk.number<std::uint16_t>("directory");
    unsigned method = walk.number<std::uint16_t>("directory");
    walk.take(4, "directory");  // time and date
    ZipEntry entry;
    entry.checksum = walk.number<std::uint32_t>("directory");
    Large large{};
    large.stored_size = walk.number<std::uint32_t>("directory");
    large.size = walk.number<std::uint32_t>("directory");
    auto name_length = walk.number<std::uint16_t>("directory");
    auto extra_length = walk.number<std::uint16_t>("directory");
    auto comment_length = walk.number<std::uint16_t>("directory");
    auto disk = walk.number<std::uint16_t>("directory");
    walk.take(2, "directory");
    auto attributes = walk.number<std::uint32_t>("directory");
    large.header = walk.number<std::uint32_t>("directory");
    std::string_view name = walk.characters(name_length, "directory");
    const std::uint64_t extra_at = offset + walk.at();
    read_zip64(Walk(walk.take(extra_length, "directory"), reading, extra_at), large);
    walk.take(comment_length, "directory");

    std::string shown = quoted_name(name);
    entry.folder = !name.empty() && name.back() == '/';
    entry.name = entry.folder ? name.substr(0, name.size() - 1) : name;
    if (const char* why = bad_name(entry.name)) reading.fail(text("the name ", shown, " of an entry ", why), begin);
    if (!by_name_.emplace(entry.name, entries_.size()).second)
      reading.fail(text("the entry ", shown, " comes twice"), begin);
    if (flags & (encrypted | strongly | masked))
      reading.fail(text("the entry ", shown, " is encrypted"), begin, "write it without a password");
    if (flags & patched) reading.fail(text("the entry ", shown, " is a patch"), begin, "write it whole");
    if (disk != 0) reading.fail("an archive of several parts", begin, "join its parts to one file");
    // Made by Unix: the mode is above. Nothing is ever unpacked to a disk, but a link says that somebody wished it.
    if (made_by >> 8 == 3 && (attributes >> 16 & 0170000) == 0120000)
      reading.fail(text("the entry ", shown, " is a link"), begin, "write the file that it names instead");
    if (method != 0 && method != 8)
      reading.fail(text("the entry ", shown, " is packed with method ", method, ", which is not supported"), begin,
                   "write it stored or deflated");
    entry.stored = method == 0;
    entry.size = large.size;
    entry.stored_size = large.stored_size;
    if (entry.stored ? entry.size != entry.stored_size : entry.size / best_deflate > entry.stored_size)
      reading.fail(text("the entry ", shown, " of ", entry.size, " bytes cannot come from the ", entry.stored_size,
                        " bytes in the file"),
                   begin);
    if (entry.folder && entry.size != 0) reading.fail(text("the folder ", shown, " has contents"), begin);
    // Each is less than 1032 times the file: these do not overflow before they are refused.
    if (entry.stored_size > source_.size())
      reading.fail(text("the entry ", shown, " of ", entry.stored_size, " bytes is larger than the file"), begin);
    all += entry.size;
    if (all > limits_.floor && all / std::max<std::uint64_t>(limits_.ratio, 1) > source_.size())
      reading.fail(
          text("its entries would unpack to ", all, " bytes and more, beyond ", limits_.ratio, " times the file"),
          begin, "do not trust it: archives like this are made to fill memory");
    check_local(entry, large.header, flags);
    headers_.push_back(large.header);
    entries_.push_back(std::move(entry));
  }
  if (!walk.at_end()) walk.fail("more bytes in its directory than its entries have");
}

void ZipReader::check_local(ZipEntry& entry, std::uint64_t header, unsigned flags) {
  const Reading& reading = source_.reading();
  if (header > source_.size() || source_.size() - header < local_bytes)
    reading.fail(text("the entry ", quoted_name(entry.name), " would begin at byte ", header, ", behind the end"),
                 source_.size());
  std::byte head[local_bytes];
  source_.read(header, head, local_bytes, "local header");
  Walk walk(head, reading, header);
  auto differs = [&](const char* what) {
    reading.fail(text("the local header of ", quoted_name(entry.name), " has another ", what, " than the directory"),
                 header);
  };
  if (walk.number<std::uint32_t>("local header") != local_signature)
    reading.fail(text("the local header of ", quoted_name(entry.name), " is missing"), header);
  walk.take(2, "local header");
  unsigned local_flags = walk.number<std::uint16_t>("local header");
  unsigned method = walk.number<std::uint16_t>("local header");
  walk.take(4, "local header");
  auto checksum = walk.number<std::uint32_t>("local header");
  Large large{};
  large.stored_size = walk.number<std::uint32_t>("local header");
  large.size = walk.number<std::uint32_t>("local header");
  auto name_length = walk.number<std::uint16_t>("local header");
  auto extra_length = walk.number<std::uint16_t>("local header");
  constexpr unsigned that_count = encrypted | sizes_follow | patched | strongly | masked;
  if ((local_flags & that_count) != (flags & that_count)) differs("kind");
  if (method != (entry.stored ? 0u : 8u)) differs("method");
  Bytes rest = source_.read(header + local_bytes, std::uint64_t{name_length} + extra_length, "local header");
  Walk after(rest, reading, header + local_bytes);
  std::string_view name = after.characters(name_length, "local header");
  if (entry.folder && name.ends_with('/')) name.remove_suffix(1);
  if (name != entry.name) differs("name");
  std::uint64_t extra_at = header + local_bytes + after.at();
  if (!(flags & sizes_follow)) {
    read_zip64(Walk(after.take(extra_length, "local header"), reading, extra_at), large);
    if (checksum != entry.checksum) differs("checksum");
    if (large.size != entry.size || large.stored_size != entry.stored_size) differs("size");
  }
  entry.offset = header + local_bytes + name_length + extra_length;
}

void ZipReader::check_overlaps(std::uint64_t directory) {
  std::vector<std::size_t> order(entries_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return headers_[a] < headers_[b]; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const ZipEntry& entry = entries_[order[i]];
    std::uint64_t limit = i + 1 < order.size() ? headers_[order[i + 1]] : directory;
    if (entry.offset > limit || entry.stored_size > limit - entry.offset)
      reading().fail(
          text("the entry ", quoted_name(entry.name), " overlaps with ",
               i + 1 < order.size() ? quoted_name(entries_[order[i + 1]].name) : std::string("the directory")),
          headers_[order[i]]);
  }
}

const ZipEntry* ZipReader::find(std::string_view name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

Bytes ZipReader::read(const ZipEntry& entry) const {
  auto fail = [&](const char* reason, std::uint64_t at) {
    reading().fail(text("the entry ", quoted_name(entry.name), " ", reason), entry.offset + at);
  };
  Bytes bytes;
  if (entry.stored) {
    bytes = source_.read(entry.offset, entry.stored_size, "entry");
  } else {
    try {
      bytes = inflated(source_.part(entry.offset, entry.stored_size, reading()), entry.size, Wrapped::not_at_all, fail);
    } catch (const std::bad_alloc&) {
      reading().fail(text("no memory for the ", entry.size, " bytes of the entry ", quoted_name(entry.name)),
                     "read it on a larger machine");
    }
  }
  if (checksum_of(bytes) != entry.checksum) fail(wrong_checksum, 0);
  return bytes;
}

Source ZipReader::open(const ZipEntry& entry) const {
  if (!entry.stored) return Source(read(entry), reading().inside(entry.name));
  Bytes block(static_cast<std::size_t>(std::min<std::uint64_t>(entry.size, block_bytes)));
  std::uint32_t checksum = 0;
  for (std::uint64_t done = 0; done < entry.size;) {
    auto part = static_cast<std::size_t>(std::min<std::uint64_t>(entry.size - done, block_bytes));
    source_.read(entry.offset + done, block.data(), part, "entry");
    checksum = checksum_of(std::span(block).first(part), checksum);
    done += part;
  }
  if (checksum != entry.checksum)
    reading().fail(text("the entry ", quoted_name(entry.name), " ", wrong_checksum), entry.offset);
  return source_.part(entry.offset, entry.size, reading().inside(entry.name));
}

// --- writing

namespace {

class Record {
 public:
  template <class T>
  Record& put(T value) {
    std::byte bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
    return *this;
  }
  Record& put_text(std::string_view value) {
    for (char c : value) bytes_.push_back(static_cast<std::byte>(c));
    return *this;
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

constexpr std::uint16_t plain_version = 20, zip64_version = 45, utf8_names = 1 << 11, first_day = 0x0021,
                        made_by_unix = 3 << 8;
constexpr std::uint32_t plain_file = 0100644u << 16;

std::uint32_t or_elsewhere(std::uint64_t value) {
  return value < elsewhere32 ? static_cast<std::uint32_t>(value) : elsewhere32;
}
/// Names that are not plain ASCII say so.
std::uint16_t flags_of(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; })
             ? 0
             : utf8_names;
}

Record local_header(std::string_view name, std::uint64_t size, std::uint32_t checksum) {
  const bool large = size >= elsewhere32;
  Record record;
  record.put(local_signature).put(large ? zip64_version : plain_version).put(flags_of(name));
  record.put(std::uint16_t{0}).put(std::uint16_t{0}).put(first_day).put(checksum);
  record.put(or_elsewhere(size)).put(or_elsewhere(size)).put(static_cast<std::uint16_t>(name.size()));
  record.put(static_cast<std::uint16_t>(large ? 20 : 0)).put_text(name);
  if (large) record.put(zip64_record).put(std::uint16_t{16}).put(size).put(size);
  return record;
}

}  // namespace

ZipWriter::ZipWriter(Output& output) : output_(output) {
  if (output.written() != 0) throw InternalError("a ZIP archive begins where its file begins");
}

void ZipWriter::begin(std::string_view name, std::uint64_t size) { begin(name, size, 0); }

void ZipWriter::begin(std::string_view name, std::uint64_t size, std::uint32_t checksum) {
  if (open_) throw InternalError("an entry of a ZIP archive begins before the one before it has ended");
  if (const char* why = bad_name(name))
    throw InternalError(text("the name ", quoted_name(name), " of an entry of a ZIP archive ", why));
  if (name.size() >= elsewhere16)
    throw InternalError(text("the name ", quoted_name(name), " of an entry of a ZIP archive is too long"));
  if (!names_.emplace(name).second)
    throw InternalError(text("the entry ", quoted_name(name), " comes twice in a ZIP archive"));
  entries_.push_back({std::string(name), output_.written(), size, 0});
  output_.write(local_header(name, size, checksum).bytes());
  written_checksum_ = checksum;
  open_ = true;
  left_ = size;
}

void ZipWriter::write(std::span<const std::byte> part) {
  if (!open_ || part.size() > left_) throw InternalError("more bytes of a ZIP entry than it was begun with");
  output_.write(part);
  left_ -= part.size();
  entries_.back().checksum = checksum_of(part, entries_.back().checksum);
}

void ZipWriter::end() {
  if (!open_ || left_ != 0) throw InternalError(text("a ZIP entry ends ", left_, " bytes too early"));
  open_ = false;
  const Entry& entry = entries_.back();
  if (entry.checksum == written_checksum_) return;
  Record header = local_header(entry.name, entry.size, entry.checksum);
  output_.write_at(entry.header, header.bytes().data(), header.bytes().size());
}

void ZipWriter::add(std::string_view name, std::span<const std::byte> contents) {
  begin(name, contents.size(), checksum_of(contents));
  write(contents);
  end();
}

void ZipWriter::finish() {
  if (open_) throw InternalError("a ZIP archive ends inside of an entry");
  const std::uint64_t begin = output_.written();
  for (const Entry& entry : entries_) {
    const bool large = entry.size >= elsewhere32, far = entry.header >= elsewhere32;
    const std::uint16_t version = large || far ? zip64_version : plain_version;
    Record record;
    record.put(central_signature).put(static_cast<std::uint16_t>(made_by_unix | version)).put(version);
    record.put(flags_of(entry.name)).put(std::uint16_t{0}).put(std::uint16_t{0}).put(first_day).put(entry.checksum);
    record.put(or_elsewhere(entry.size)).put(or_elsewhere(entry.size));
    record.put(static_cast<std::uint16_t>(entry.name.size()));
    std::uint16_t extra = static_cast<std::uint16_t>((large ? 16 : 0) + (far ? 8 : 0));
    record.put(static_cast<std::uint16_t>(extra ? extra + 4 : 0));
    record.put(std::uint16_t{0}).put(std::uint16_t{0}).put(std::uint16_t{0}).put(plain_file);
    record.put(or_elsewhere(entry.header)).put_text(entry.name);
    if (extra) record.put(zip64_record).put(extra);
    if (large) record.put(entry.size).put(entry.size);
    if (far) record.put(entry.header);
    output_.write(record.bytes());
  }
  const std::uint64_t end = output_.written(), size = end - begin, count = entries_.size();
  Record record;
  if (count >= elsewhere16 || size >= elsewhere32 || begin >= elsewhere32) {
    record.put(end64_signature).put(end64_bytes - 12);
    record.put(static_cast<std::uint16_t>(made_by_unix | zip64_version)).put(zip64_version);
    record.put(std::uint32_t{0}).put(std::uint32_t{0}).put(count).put(count).put(size).put(begin);
    record.put(locator_signature).put(std::uint32_t{0}).put(end).put(std::uint32_t{1});
  }
  auto count16 = static_cast<std::uint16_t>(std::min<std::uint64_t>(count, elsewhere16));
  record.put(end_signature).put(std::uint16_t{0}).put(std::uint16_t{0}).put(count16).put(count16);
  record.put(or_elsewhere(size)).put(or_elsewhere(begin)).put(std::uint16_t{0});
  output_.write(record.bytes());
}

}  // namespace stet::files
