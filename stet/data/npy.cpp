#include "stet/data/npy.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "stet/base/text.h"
#include "stet/core/tensor_node.h"
#include "stet/data/npy_format.h"
#include "stet/data/stream.h"
#include "stet/files/source.h"
#include "stet/files/utf8.h"

namespace stet::data {
namespace {

/// A Python literal of the few kinds that headers consist of, read from its text.
class HeaderText {
 public:
  HeaderText(std::string_view text, const files::Reading& reading, std::uint64_t base)
      : text_(text), reading_(reading), base_(base) {}

  [[noreturn]] void fail(const std::string& reason) const { reading_.fail(reason, base_ + at_); }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void require(char c) {
    if (!take(c)) fail(text("its header is not as NumPy writes it: '", c, "' is missing"));
  }
  bool at_end() {
    skip_spaces();
    return at_ == text_.size();
  }
  bool next_is(char c) {
    skip_spaces();
    return at_ < text_.size() && text_[at_] == c;
  }
  std::string string() {
    skip_spaces();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '\'' && quote != '"') fail("its header is not as NumPy writes it: a string is missing");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("its header is not as NumPy writes it: a string does not end");
    std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return out;
  }
  bool boolean() {
    skip_spaces();
    for (bool value : {false, true})
      if (std::string_view word = value ? "True" : "False"; text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    fail("its header is not as NumPy writes it: fortran_order is neither True nor False");
  }
  std::int64_t size() {
    skip_spaces();
    std::int64_t value = 0;
    const std::size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value))
        fail("its header declares a size that is too large");
    if (at_ == begin) fail("its header is not as NumPy writes it: a size is missing");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // as Python 2 wrote it
    return value;
  }

 private:
  std::string_view text_;
  const files::Reading& reading_;
  std::uint64_t base_;
  std::size_t at_ = 0;
};

struct Header {
  std::string type;
  bool fortran = false;
  std::vector<std::int64_t> sizes;
};

Header parse_header(std::string_view characters, const files::Reading& reading, std::uint64_t base) {
  HeaderText in(characters, reading, base);
  Header header;
  bool seen[3] = {};
  auto once = [&](int which, const std::string& key) {
    if (std::exchange(seen[which], true)) in.fail(text("its header has '", key, "' twice"));
  };
  in.require('{');
  while (!in.take('}')) {
    const std::string key = in.string();
    in.require(':');
    if (key == "descr") {
      once(0, key);
      if (in.next_is('['))
        reading.fail("is an array of records (a structured dtype)",
                     "save its fields as arrays of their own: np.savez(path, **{n: a[n] for n in a.dtype.names})");
      header.type = in.string();
    } else if (key == "fortran_order") {
      once(1, key);
      header.fortran = in.boolean();
    } else if (key == "shape") {
      once(2, key);
      in.require('(');
      while (!in.take(')')) {
        header.sizes.push_back(in.size());
        if (header.sizes.size() > max_rank)
          reading.fail(text("has more than ", max_rank, " axes"), "reshape it before it is saved");
        if (!in.take(',') && !in.next_is(')')) in.fail("its header is not as NumPy writes it: ')' is missing");
      }
    } else {
      in.fail(text("its header has ", files::quoted_name(key), ", which NPY headers do not have"));
    }
    if (!in.take(',') && !in.next_is('}')) in.fail("its header is not as NumPy writes it: '}' is missing");
  }
  if (!in.at_end()) in.fail("its header is not as NumPy writes it: something follows it");
  for (int i = 0; i < 3; ++i)
    if (!seen[i]) in.fail(text("its header has no '", i == 0 ? "descr" : i == 1 ? "fortran_order" : "shape", "'"));
  return header;
}

/// An element as it is stored, and what it becomes.
struct Element {
  DType dtype;
  std::uint64_t stored;      // bytes
  bool is_unsigned = false;  // wider than u8: it becomes the next larger type
  bool swapped = false;
};

Element element_of(const std::string& type, const files::Reading& reading) {
  const char order = type.empty() ? ' ' : type[0];
  const bool ordered = order == '<' || order == '>' || order == '|' || order == '=';
  const std::string kind = ordered ? type.substr(1) : type;
  struct Known {
    const char* kind;
    Element element;
  };
  static constexpr Known known[] = {
      {"b1", {DType::bool_, 1}},     {"?", {DType::bool_, 1}},      {"u1", {DType::u8, 1}},
      {"i1", {DType::i8, 1}},        {"i2", {DType::i16, 2}},       {"i4", {DType::i32, 4}},
      {"i8", {DType::i64, 8}},       {"f2", {DType::f16, 2}},       {"f4", {DType::f32, 4}},
      {"f8", {DType::f64, 8}},       {"u2", {DType::i32, 2, true}}, {"u4", {DType::i64, 4, true}},
      {"u8", {DType::i64, 8, true}}, {"V2", {DType::bf16, 2}},
  };
  for (const Known& one : known)
    if (kind == one.kind) {
      Element element = one.element;
      element.swapped = order == '>' && element.stored > 1;
      return element;
    }
  const char letter = kind.empty() ? ' ' : kind[0];
  if (letter == 'O')
    reading.fail("is an array of Python objects (dtype object, stored by pickle)",
                 "convert it before it is saved: np.save(path, a.astype('float32')); reading pickle runs code");
  const char* what = letter == 'c'                    ? "complex numbers"
                     : letter == 'U'                  ? "strings"
                     : letter == 'S' || letter == 'a' ? "byte strings"
                     : letter == 'M' || letter == 'm' ? "dates or times"
                                                      : "a type that there is none for";
  reading.fail(text("is an array of ", what, ", dtype ", files::quoted_name(type)),
               "there are bool, integers, f16, bf16, f32 and f64: convert it before it is saved");
}

template <class From, class To>
void widen(std::byte* data, std::uint64_t count) {
  // In place, from the end: what is written was read before.
  for (std::uint64_t i = count; i-- > 0;) {
    From value;
    std::memcpy(&value, data + i * sizeof(From), sizeof value);
    const auto wide = static_cast<To>(value);
    std::memcpy(data + i * sizeof(To), &wide, sizeof wide);
  }
}

/// From the order in which the first axis runs fastest. By hand, and not by an op, which a trace would record.
void make_row_major(const std::byte* from, std::byte* to, const std::vector<std::int64_t>& sizes, std::size_t width) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return;
  std::vector<std::int64_t> strides(sizes.size()), at(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t axis = 0; axis < sizes.size(); stride *= sizes[axis++]) strides[axis] = stride;
  const std::size_t last = sizes.size() - 1;
  for (std::int64_t begin = 0;;) {
    for (std::int64_t i = 0; i < sizes[last]; ++i, to += width)
      std::memcpy(to, from + static_cast<std::size_t>(begin + i * strides[last]) * width, width);
    std::size_t axis = last;
    for (; axis > 0; --axis) {
      begin += strides[axis - 1];
      if (++at[axis - 1] < sizes[axis - 1]) break;
      begin -= at[axis - 1] * strides[axis - 1];
      at[axis - 1] = 0;
    }
    if (axis == 0) return;
  }
}

constexpr std::uint64_t most_header = std::uint64_t{1} << 20;

}  // namespace

Tensor decode_npy(const NpyBytes& bytes, const files::Reading& reading) {
  auto read = [&](std::uint64_t offset, void* to, std::uint64_t count, const char* what) {
    if (offset > bytes.size || count > bytes.size - offset) reading.fail(text("ends in its ", what), bytes.size);
    bytes.read(offset, to, static_cast<std::size_t>(count));
  };
  unsigned char head[12];
  read(0, head, 10, "header");
  if (std::memcmp(head, "\x93NUMPY", 6) != 0)
    reading.fail("is not an NPY file", 0, "such files begin with \\x93NUMPY; numpy.save writes them");
  const int version = head[6];
  if (version < 1 || version > 3 || head[7] != 0)
    reading.fail(text("is of version ", version, ".", int{head[7]}, " of the format"), 6, "1.0, 2.0 and 3.0 are read");
  std::uint64_t length = std::uint64_t{head[8]} | std::uint64_t{head[9]} << 8, begin = 10;
  if (version > 1) {
    read(10, head + 10, 2, "header");
    length |= std::uint64_t{head[10]} << 16 | std::uint64_t{head[11]} << 24;
    begin = 12;
  }
  if (length > most_header) reading.fail(text("declares a header of ", length, " bytes"), 8);
  if (length > bytes.size - begin) reading.fail("ends in its header", bytes.size);
  std::string characters(static_cast<std::size_t>(length), ' ');
  read(begin, characters.data(), length, "header");
  const Header header = parse_header(characters, reading, begin);
  const Element element = element_of(header.type, reading);
  const std::uint64_t data_at = begin + length;

  // Memory is taken for what the file has; of a wide type that is at most twice as much.
  const auto width = static_cast<std::uint64_t>(size_of(element.dtype));
  std::uint64_t needed = 0;
  if (!files::bytes_of(header.sizes, width, needed)) reading.fail("declares sizes whose product is too large", begin);
  const std::uint64_t count = needed / width, stored = count * element.stored;
  const std::uint64_t have = bytes.size - data_at;
  if (stored > have) reading.fail(text("ends in its data, of which ", stored - have, " bytes are missing"), bytes.size);
  if (stored < have)
    reading.fail(text("has ", have - stored, " bytes behind its data"), data_at + stored,
                 "a file holds one array; several are a .npz");
  Buffer buffer = memory_for_file(reading, needed);
  std::byte* data = buffer.data();
  if (stored > 0) bytes.read(data_at, data, static_cast<std::size_t>(stored));
  if (element.swapped)
    for (std::uint64_t at = 0; at < stored; at += element.stored) std::reverse(data + at, data + at + element.stored);
  if (element.dtype == DType::bool_)
    for (std::uint64_t i = 0; i < count; ++i) data[i] = std::byte{data[i] != std::byte{0}};
  if (element.is_unsigned && element.stored == 2) widen<std::uint16_t, std::int32_t>(data, count);
  if (element.is_unsigned && element.stored == 4) widen<std::uint32_t, std::int64_t>(data, count);
  if (element.is_unsigned && element.stored == 8)
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t value;
      std::memcpy(&value, data + i * 8, 8);
      if (value > INT64_MAX)
        reading.fail(text("has the number ", value, ", which i64 does not hold"), data_at + i * 8,
                     "convert it before it is saved: np.save(path, a.astype('float64'))");
    }
  std::vector<std::int64_t> sizes = header.sizes;
  if (!header.fortran || sizes.size() < 2) return dense_tensor(element.dtype, sizes, std::move(buffer));
  Buffer rows_first = memory_for_file(reading, needed);
  make_row_major(data, rows_first.data(), sizes, static_cast<std::size_t>(width));
  return dense_tensor(element.dtype, sizes, std::move(rows_first));
}

Tensor read_npy(const std::string& path, Where where) {
  files::Input input(path, "read_npy", where);
  return decode_npy(
      {input.size(), [&](std::uint64_t offset, void* to, std::size_t count) { input.read(offset, to, count, "data"); }},
      input.reading());
}

std::string npy_header(const Tensor& tensor) {
  const TensorNode& node = *tensor.node();
  const char* type = "";
  switch (node.dtype) {
    case DType::bool_:
      type = "|b1";
      break;
    case DType::u8:
      type = "|u1";
      break;
    case DType::i8:
      type = "|i1";
      break;
    case DType::i16:
      type = "<i2";
      break;
    case DType::i32:
      type = "<i4";
      break;
    case DType::i64:
      type = "<i8";
      break;
    case DType::f16:
      type = "<f2";
      break;
    case DType::bf16:
      type = "<V2";
      break;
    case DType::f32:
      type = "<f4";
      break;
    case DType::f64:
      type = "<f8";
      break;
  }
  std::vector<std::int64_t> sizes(node.sizes, node.sizes + node.rank);
  std::string head = text("{'descr': '", type, "', 'fortran_order': False, 'shape': (", joined(sizes, ", "),
                          sizes.size() == 1 ? ",), }" : "), }");
  // The elements begin at a multiple of 64.
  constexpr std::size_t before = 10;
  head.append(63 - (before + head.size()) % 64, ' ');
  head += '\n';
  const auto length = static_cast<std::uint16_t>(head.size());
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(length & 255);
  out += static_cast<char>(length >> 8);
  return out + head;
}

Tensor npy_tensor(const Tensor& tensor, const char* call, const std::string& path, Where where) {
  if (!tensor.defined())
    throw UserError(
        error_text(text(call, ": '", path, "': the tensor is undefined"), where, "assign a value to it first"));
  concrete_node(tensor, call, where);
  return on_host(tensor.contiguous(where));
}

void write_npy(const std::string& path, const Tensor& tensor, Where where) {
  Tensor dense = npy_tensor(tensor, "write_npy", path, where);
  files::Output out(path, "write_npy", where);
  out.write(npy_header(dense));
  const TensorNode& node = *dense.node();
  out.write(node.data, static_cast<std::size_t>(node.element_count() * size_of(node.dtype)));
  out.commit();
}

}  // namespace stet::data
