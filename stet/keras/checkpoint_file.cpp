#include "stet/keras/checkpoint_file.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>

#include "stet/base/error.h"
#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/keras/tensor_bytes.h"
#include "stet/runtime/log.h"

namespace stet::keras {
namespace {

using files::Bytes;
using files::Json;

constexpr char magic[] = {'s', 't', 'e', 't', 'c', 'k', 'p', 't'};
constexpr std::uint32_t version = 1;
constexpr std::size_t fixed_bytes = 24;  // before the head
constexpr std::size_t alignment = 64;
constexpr std::uint64_t most_head_bytes = std::uint64_t{100} << 20;

std::uint64_t aligned(std::uint64_t at) { return (at + alignment - 1) / alignment * alignment; }

template <class T>
void put(Bytes& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

std::uint32_t head_checksum(std::span<const std::byte> beginning) {
  return files::crc32c(beginning.subspan(16), files::crc32c(beginning.first(12)));
}

}  // namespace

// --- writing

void write_checkpoint(const std::string& path, const CheckpointContents& contents, const std::string& call,
                      Where where) {
  std::vector<Tensor> dense;
  Json parts = Json::List();
  std::vector<std::uint64_t> sizes;
  for (const CheckpointContents::Part& part : contents.parts) {
    dense.push_back(part.value.contiguous(where));
    std::span<const std::byte> bytes = bytes_of(dense.back(), where);
    sizes.push_back(bytes.size());
    Json shape = Json::List();
    for (const Dim& dim : part.value.shape()) shape.push_back(dim.value(where));
    Json one;
    one["name"] = part.name;
    one["dtype"] = std::string(name(part.value.dtype()));
    one["shape"] = std::move(shape);
    one["at"] = std::int64_t{0};
    one["bytes"] = static_cast<std::int64_t>(bytes.size());
    one["crc32c"] = static_cast<std::int64_t>(files::crc32c(bytes));
    parts.push_back(std::move(one));
  }
  // Where the parts lie depends on how long the head is, which depends on where they lie: it only grows with that.
  std::string head;
  for (std::uint64_t guess = 0;;) {
    std::uint64_t at = aligned(fixed_bytes + guess);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      (*parts.if_list())[i]["at"] = static_cast<std::int64_t>(at);
      at = aligned(at + sizes[i]);
    }
    Json all;
    all["parts"] = parts;
    all["state"] = contents.state;
    head = files::to_text(all);
    if (head.size() <= guess) {
      head.append(guess - head.size(), ' ');
      break;
    }
    guess = head.size();
  }
  if (head.size() > most_head_bytes)
    throw UserError(error_text(text(call, ": what is no tensor takes ", head.size(), " bytes in '", path, "', at most ",
                                    most_head_bytes, " are read again"),
                               where, "keep large texts as tensors of bytes: data::from_string"));
  Bytes beginning(fixed_bytes + head.size());
  std::memcpy(beginning.data(), magic, sizeof magic);
  put(beginning, 8, version);
  put(beginning, 16, static_cast<std::uint64_t>(head.size()));
  std::memcpy(beginning.data() + fixed_bytes, head.data(), head.size());
  put(beginning, 12, head_checksum(beginning));

  files::Output file(path, call, where);
  file.write(beginning);
  constexpr std::byte zeros[alignment] = {};
  for (const Tensor& tensor : dense) {
    file.write(zeros, static_cast<std::size_t>(aligned(file.written()) - file.written()));
    file.write(bytes_of(tensor, where));
  }
  file.commit();
}

// --- reading

const Json& HeadReader::member(const Json& object, std::string_view name) const {
  const Json* found = object.find(name);
  if (!found) fail(text("its head has no \"", name, "\" where there must be one"));
  return *found;
}
const Json::List& HeadReader::list(const Json& value) const {
  if (const Json::List* found = value.if_list()) return *found;
  fail(text("its head has ", value.kind(), " where there must be a list"));
}
const Json::Object& HeadReader::object(const Json& value) const {
  if (const Json::Object* found = value.if_object()) return *found;
  fail(text("its head has ", value.kind(), " where there must be an object"));
}
const std::string& HeadReader::string(const Json& value) const {
  if (const std::string* found = value.if_string()) return *found;
  fail(text("its head has ", value.kind(), " where there must be a string"));
}
bool HeadReader::boolean(const Json& value) const {
  if (const bool* found = value.if_bool()) return *found;
  fail(text("its head has ", value.kind(), " where there must be true or false"));
}
std::uint64_t HeadReader::count(const Json& value) const {
  const std::int64_t* found = value.if_integer();
  if (!found || *found < 0) fail(text("its head has ", value.kind(), " where there must be a count"));
  return static_cast<std::uint64_t>(*found);
}
double HeadReader::real(const Json& value) const {
  if (const double* found = value.if_real()) return *found;
  fail(text("its head has ", value.kind(), " where there must be a floating number"));
}
DType HeadReader::dtype(const Json& value) const {
  const std::string& wanted = string(value);
  for (const DTypeRow& row : dtype_table)
    if (wanted == row.name) return row.dtype;
  fail(text("its head has an unknown type '", wanted, "'"));
}
const CheckpointContents::Part& HeadReader::part(const Json& value, const CheckpointContents& contents) const {
  const std::uint64_t number = count(value);
  if (number >= contents.parts.size()) fail(text("its head speaks of part ", number, " of ", contents.parts.size()));
  return contents.parts[static_cast<std::size_t>(number)];
}
void HeadReader::fail(const std::string& reason) const { reading_.fail(reason, fixed_bytes); }

namespace {

Tensor read_part(const files::Input& file, const HeadReader& head, const Json& one, std::uint64_t& end) {
  const files::Reading& reading = file.reading();
  const std::string& name = head.string(head.member(one, "name"));
  const DType dtype = head.dtype(head.member(one, "dtype"));
  const std::uint64_t at = head.count(head.member(one, "at")), bytes = head.count(head.member(one, "bytes"));
  std::vector<std::int64_t> sizes;
  auto expected = static_cast<std::uint64_t>(size_of(dtype));
  bool fits = true;
  for (const Json& size : head.list(head.member(one, "shape"))) {
    sizes.push_back(static_cast<std::int64_t>(head.count(size)));
    fits = fits && !__builtin_mul_overflow(expected, static_cast<std::uint64_t>(sizes.back()), &expected);
  }
  if (sizes.size() > max_rank) head.fail(text("part '", name, "' has ", sizes.size(), " axes"));
  if (!fits || expected != bytes) head.fail(text("part '", name, "' does not have the bytes of its shape"));
  if (at != aligned(end)) head.fail(text("part '", name, "' lies at byte ", at, ", not at ", aligned(end)));
  const Bytes between = file.read(end, static_cast<std::size_t>(at - end), "padding");
  if (std::any_of(between.begin(), between.end(), [](std::byte b) { return b != std::byte{0}; }))
    reading.fail(text("is not zero before part '", name, "'"), end);
  const Bytes data = file.read(at, static_cast<std::size_t>(bytes), "parts");
  if (files::crc32c(data) != head.count(head.member(one, "crc32c")))
    reading.fail(text("part '", name, "' does not have its checksum"), at);
  if (dtype == DType::bool_ && std::any_of(data.begin(), data.end(), [](std::byte b) { return b > std::byte{1}; }))
    reading.fail(text("part '", name, "' has a bool that is neither 0 nor 1"), at);
  end = at + bytes;
  return creation::copied(dtype, data.data(), data.size() / static_cast<std::size_t>(size_of(dtype)), Shape(sizes),
                          reading.where);
}

}  // namespace

CheckpointContents read_checkpoint(const std::string& path, const std::string& call, Where where) {
  const files::Input file(path, call, where);
  const files::Reading& reading = file.reading();
  Bytes beginning = file.read(0, fixed_bytes, "first bytes");
  files::Walk walk(beginning, reading);
  if (walk.characters(sizeof magic, "first bytes") != std::string_view(magic, sizeof magic))
    reading.fail("is not a checkpoint", 0, "checkpoints of stet begin with \"stetckpt\"");
  if (const auto found = walk.number<std::uint32_t>("version"); found != version)
    reading.fail(text("is a checkpoint of version ", found, ", known is ", version), 8,
                 "read it with the stet that wrote it, or a newer one");
  const auto checksum = walk.number<std::uint32_t>("checksum");
  const auto head_bytes = walk.number<std::uint64_t>("head's size");
  if (head_bytes > most_head_bytes || head_bytes > file.size() - fixed_bytes)
    reading.fail(text("has a head of ", head_bytes, " bytes, and is ", file.size(), " bytes long"), 16);
  const Bytes rest = file.read(fixed_bytes, static_cast<std::size_t>(head_bytes), "head");
  beginning.insert(beginning.end(), rest.begin(), rest.end());
  if (head_checksum(beginning) != checksum) reading.fail("its head does not have its checksum", 12);

  const Json all = files::parse_json({reinterpret_cast<const char*>(rest.data()), rest.size()}, reading, fixed_bytes);
  const HeadReader head(reading);
  CheckpointContents contents;
  std::uint64_t end = fixed_bytes + head_bytes;
  for (const Json& one : head.list(head.member(all, "parts")))
    contents.parts.push_back({head.string(head.member(one, "name")), read_part(file, head, one, end)});
  if (end != file.size()) reading.fail("has more behind its last part", end);
  contents.state = head.member(all, "state");
  return contents;
}

// --- the folder

namespace {

constexpr std::string_view prefix = "ckpt-";

/// All of it is a number without leading zeros.
std::optional<std::uint64_t> number_in(std::string_view digits) {
  std::uint64_t number = 0;
  if (digits.empty() || digits.size() > 18 || (digits[0] == '0' && digits.size() > 1)) return std::nullopt;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size() ? std::optional(number) : std::nullopt;
}

/// The process that writes, or wrote, "ckpt-7.1234-0.part".
std::optional<pid_t> writer_of(std::string_view name) {
  if (!name.starts_with(prefix) || !name.ends_with(".part")) return std::nullopt;
  name.remove_prefix(prefix.size());
  name.remove_suffix(5);
  const std::size_t point = name.find('.'), dash = name.find('-');
  if (point == std::string_view::npos || dash == std::string_view::npos || dash < point) return std::nullopt;
  const auto process = number_in(name.substr(point + 1, dash - point - 1));
  if (!number_in(name.substr(0, point)) || !number_in(name.substr(dash + 1)) || !process) return std::nullopt;
  return static_cast<pid_t>(*process);
}

/// The names in a folder; the error of the system if it cannot be read.
int names_in(const std::string& folder, std::vector<std::string>& names) {
  std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  if (!open) return errno;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(open.get());
    if (!entry) return errno;
    names.emplace_back(entry->d_name);
  }
}

}  // namespace

std::string CheckpointFolder::file(std::uint64_t number) const { return text(path_, "/", prefix, number); }

std::vector<std::uint64_t> CheckpointFolder::numbers(Where where) const {
  std::vector<std::string> names;
  const int error = names_in(path_, names);
  if (error != 0 && error != ENOENT)
    throw UserError(error_text(text(call_, ": '", path_, "' cannot be read: ", files::system_error_text(error)), where,
                               "give the path of a folder that is yours"));
  std::vector<std::uint64_t> out;
  for (const std::string& name : names)
    if (name.starts_with(prefix))
      if (const auto number = number_in(std::string_view(name).substr(prefix.size()))) out.push_back(*number);
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<CheckpointFolder::Found> CheckpointFolder::newest(Where where) {
  std::vector<std::uint64_t> all = numbers(where);
  std::string reasons;
  std::vector<std::string> skipped;
  for (auto number = all.rbegin(); number != all.rend(); ++number) {
    try {
      Found found{*number, file(*number), read_checkpoint(file(*number), call_, where)};
      for (const std::string& reason : skipped)
        inform("keras", text("stet: ", reason, "; '", found.path, "' is used instead\n"));
      return found;
    } catch (const UserError& error) {
      const std::string_view what = error.what();
      skipped.emplace_back(what.substr(0, what.find('\n')));  // without the line and the advice
      damaged_.insert(*number);
    }
  }
  if (skipped.empty()) return std::nullopt;
  for (const std::string& reason : skipped) reasons += text("\n  ", reason);
  throw UserError(
      error_text(text(call_, ": none of the ", skipped.size(), " checkpoints in '", path_, "' is whole", reasons),
                 where, "bring back a copy of one; to begin anew, take them away"));
}

void CheckpointFolder::make_folder(Where where) const {
  for (std::size_t slash = path_.find('/', 1);; slash = path_.find('/', slash + 1)) {
    const std::string part = path_.substr(0, slash);
    if (::mkdir(part.c_str(), 0777) != 0 && errno != EEXIST && slash == std::string::npos)
      throw UserError(
          error_text(text(call_, ": the folder '", path_, "' cannot be made: ", files::system_error_text(errno)), where,
                     "give a path below a folder that you may write to"));
    if (slash == std::string::npos) return;
  }
}

void CheckpointFolder::remove_leftovers() const {
  std::vector<std::string> names;
  names_in(path_, names);
  for (const std::string& name : names)
    // One of this process is from an earlier one that had its number, as in containers: this one writes nothing now.
    if (const auto process = writer_of(name))
      if (*process == ::getpid() || (::kill(*process, 0) != 0 && errno == ESRCH))
        ::unlink(text(path_, "/", name).c_str());
}

std::string CheckpointFolder::write(const CheckpointContents& contents, std::size_t keep, Where where) {
  // Of one process, one at a time: another object may write to the folder, too, and two would choose one number.
  static Lock guard;
  std::lock_guard lock(guard);
  if (!std::exchange(tidied_, true)) {
    make_folder(where);
    remove_leftovers();
  }
  std::vector<std::uint64_t> before = numbers(where);
  const std::string path = file(before.empty() ? 1 : before.back() + 1);
  write_checkpoint(path, contents, call_, where);
  // The new one is on the disk: others may go. One that is damaged counts for nothing.
  std::size_t kept = 1;
  for (auto number = before.rbegin(); number != before.rend(); ++number)
    if (damaged_.contains(*number) || ++kept > keep) ::unlink(file(*number).c_str());
  return path;
}

void CheckpointFolder::clear(Where where) {
  remove_leftovers();
  for (const std::uint64_t number : numbers(where)) ::unlink(file(number).c_str());
  ::rmdir(path_.c_str());  // unless there is something else in it
  damaged_.clear();
  tidied_ = false;
}

}  // namespace stet::keras
