#include "stet/core/tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "stet/base/dim_inside.h"
#include "stet/base/text.h"
#include "stet/base/thread_end.h"
#include "stet/core/call.h"
#include "stet/core/dim_host.h"
#include "stet/core/gradient.h"
#include "stet/core/tensor_node.h"
#include "stet/ir/expr.h"
#include "stet/runtime/parallel.h"

namespace stet {

// --- nodes

namespace {

/// Free nodes of this thread: making a result must not cost a trip to malloc.
struct NodeList {
  std::vector<TensorNode*> free;
  ~NodeList() {
    for (TensorNode* node : free) delete node;
  }
};
// initial-exec: one load instead of a call. It is small, which fits the room kept for opened libraries.
[[gnu::tls_model("initial-exec")]] constinit thread_local NodeList* this_thread_nodes = nullptr;
constexpr std::size_t most_free_nodes = 256;

void release_node(const TensorNode* node) {
  auto* own = const_cast<TensorNode*>(node);
  own->buffer = Buffer();
  own->traced.reset();
  own->companion = Tensor();
  NodeList& list = this_thread_nodes ? *this_thread_nodes : make_for_this_thread(this_thread_nodes);
  if (list.free.size() < most_free_nodes)
    list.free.push_back(own);
  else
    delete own;
}

bool is_dense_layout(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
  std::int64_t expected = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

}  // namespace

TensorNode* new_node() {
  if (NodeList* list = this_thread_nodes; list && !list->free.empty()) {
    TensorNode* node = list->free.back();
    list->free.pop_back();
    node->holders.store(1, std::memory_order_relaxed);
    node->weak = false;
    node->made_in_trace = false;
    node->identity.store(0, std::memory_order_relaxed);
    return node;
  }
  return new TensorNode;
}

std::uint64_t identity_of(const TensorNode& node) {
  static std::atomic<std::uint64_t> last{0};
  std::uint64_t known = node.identity.load(std::memory_order_relaxed);
  if (known != 0) return known;
  // Of two threads that name a tensor at once, one is asked: the number that lost is nobody's.
  std::uint64_t fresh = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return node.identity.compare_exchange_strong(known, fresh, std::memory_order_relaxed) ? fresh : known;
}

Tensor dense_tensor(DType dtype, std::span<const std::int64_t> sizes, Buffer buffer) {
  TensorNode* node = new_node();
  node->dtype = dtype;
  node->rank = static_cast<std::uint8_t>(sizes.size());
  node->dense = true;
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    node->sizes[i] = sizes[i];
    node->strides[i] = stride;
    stride *= sizes[i];
  }
  node->data = buffer.data();
  node->buffer = std::move(buffer);
  return Tensor(node);
}

Tensor view_tensor(const TensorNode& of, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides,
                   std::int64_t offset) {
  TensorNode* node = new_node();
  node->dtype = of.dtype;
  node->rank = static_cast<std::uint8_t>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), node->sizes);
  std::copy(strides.begin(), strides.end(), node->strides);
  node->dense = is_dense_layout(sizes, strides);
  bool empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
  node->data = empty ? of.data : of.data + offset * size_of(of.dtype);
  node->buffer = of.buffer;
  return Tensor(node);
}

std::string advice_for_undefined(const Tensor& tensor) {
  return tensor.is_no_gradient()
             ? "it came from gradient(), whose target does not depend on that source: leave the source out, or take "
               "zeros_like(source) for it"
             : "a default-made Tensor holds nothing; assign a value to it first";
}

Device& device_of(std::span<const Tensor> tensors) {
  for (const Tensor& tensor : tensors)
    if (tensor.defined() && tensor.node()->device()) return *tensor.node()->device();
  return Device::host();
}

Tensor on_host(const Tensor& tensor) { return on_device(tensor, Device::host()); }

Tensor on_device(const Tensor& tensor, Device& device) {
  Device& now = device_of(tensor.node()->buffer);
  if (&now == &device) return tensor;
  Tensor dense = tensor.contiguous();
  const TensorNode& node = *dense.node();
  auto bytes = static_cast<std::size_t>(node.element_count() * size_of(node.dtype));
  Buffer buffer = device.allocate(bytes);
  if (device.is_host()) {
    now.copy_out(buffer.data(), node.data, bytes);
  } else {
    Tensor through = on_host(dense);
    device.copy_in(buffer.data(), through.node()->data, bytes);
  }
  Tensor out = dense_tensor(node.dtype, node.size_span(), std::move(buffer));
  return tensor.node()->weak ? creation::as_number(std::move(out)) : out;
}

bool same_elements(const Tensor& a, const Tensor& b) {
  if (a.node()->device() || b.node()->device()) return same_elements(on_host(a), on_host(b));
  const TensorNode &first = *a.node(), &second = *b.node();
  if (first.dtype != second.dtype || !std::ranges::equal(first.size_span(), second.size_span())) return false;
  auto bytes = static_cast<std::size_t>(first.element_count() * size_of(first.dtype));
  return bytes == 0 || first.data == second.data || std::memcmp(first.data, second.data, bytes) == 0;
}

const TensorNode& defined_node(const Tensor& tensor, const char* what, Where where) {
  if (!tensor.defined())
    throw UserError(error_text(text(what, ": the tensor is undefined"), where, advice_for_undefined(tensor)));
  return *tensor.node();
}

void Tensor::retain(const TensorNode* node) { node->holders.fetch_add(1, std::memory_order_relaxed); }

void Tensor::release(const TensorNode* node) {
  if (node->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) release_node(node);
}

const TensorNode& concrete_node(const Tensor& tensor, const char* what, Where where) {
  const TensorNode& node = defined_node(tensor, what, where);
  if (!node.traced) return node;
  if (!node.traced->life->trace)
    throw TraceError(error_text(text(what, ": the tensor ", type_text(tensor), " has leaked out of the trace of '",
                                     node.traced->life->function, "'"),
                                where, "return it from the function, or assign it to a Variable"));
  throw TraceError(error_text(text(what, ": the value of ", type_text(tensor), " does not exist while '",
                                   node.traced->life->function, "' is being traced"),
                              where, "return the tensor and read it outside, or compute with ops such as where()"));
}

// --- what it is

DType Tensor::dtype(Where where) const { return defined_node(*this, "dtype", where).dtype; }
Shape Tensor::shape(Where where) const {
  const TensorNode& node = defined_node(*this, "shape", where);
  Shape out = node.shape();
  if (node.traced)
    for (int axis = 0; axis < node.rank; ++axis) out.set(axis, taken_at(out[axis], where));
  return out;
}
int Tensor::rank(Where where) const { return defined_node(*this, "rank", where).rank; }
Dim Tensor::size(Where where) const {
  return taken_at(defined_node(*this, "size", where).shape().element_count(), where);
}
bool Tensor::is_dense() const { return defined() && node_->dense && !node_->traced; }

Dim Tensor::dim(int axis, Where where) const {
  const TensorNode& node = defined_node(*this, "dim", where);
  int at = axis < 0 ? axis + node.rank : axis;
  if (at < 0 || at >= node.rank)
    throw UserError(error_text(
        text("dim: axis ", axis, " is out of range for ", type_text(*this)), where,
        node.rank ? text("allowed are ", -node.rank, " to ", node.rank - 1) : std::string("a scalar has no axes")));
  return node.traced ? taken_at(node.traced->shape[at], where) : Dim(node.sizes[at]);
}

// --- reading

void convert_element(DType from, const void* source, DType to, void* target) {
  ScalarBits bits = 0;
  std::memcpy(&bits, source, static_cast<std::size_t>(size_of(from)));
  bits = bits_of(convert(value_of(bits, from), from, to), to);
  std::memcpy(target, &bits, static_cast<std::size_t>(size_of(to)));
}

void Tensor::read_item(DType as, void* out, std::initializer_list<std::int64_t> position, Where where) const {
  const TensorNode& node = concrete_node(*this, "item", where);
  if (node.device()) return on_host(*this).read_item(as, out, position, where);
  std::int64_t offset = 0;
  if (position.size() == 0) {
    if (node.element_count() != 1)
      throw UserError(error_text(text("item: ", type_text(*this), " has ", node.element_count(), " elements, not one"),
                                 where, "name a position, item<float>({0, 1}), or use to_vector()"));
  } else {
    if (position.size() != node.rank)
      throw UserError(error_text(text("item: ", position.size(), " positions for ", type_text(*this)), where,
                                 text("give one position per axis: ", int{node.rank})));
    int axis = 0;
    for (std::int64_t p : position) {
      std::int64_t size = node.sizes[axis], at = p < 0 ? p + size : p;
      if (at < 0 || at >= size)
        throw UserError(
            error_text(text("item: position ", p, " of axis ", axis, " is out of range for ", type_text(*this)), where,
                       size ? text("allowed are ", -size, " to ", size - 1) : std::string("the axis is empty")));
      offset += at * node.strides[axis++];
    }
  }
  convert_element(node.dtype, node.data + offset * size_of(node.dtype), as, out);
}

std::int64_t Tensor::element_count(Where where) const {
  return concrete_node(*this, "to_vector", where).element_count();
}

namespace {

template <class To, class From>
To converted(From value) {
  if constexpr (std::is_same_v<To, bool>)
    return value != From{};
  else if constexpr (std::is_floating_point_v<From>)
    return narrowed<To>(static_cast<double>(value));
  else
    return static_cast<To>(value);
}

/// Calls f with a value of the C++ type that has this element type; f16 and bf16, which are no C++ numbers, aside.
template <class F>
void with_number_type(DType dtype, F f) {
  switch (dtype) {
    case DType::bool_:
      return f(bool{});
    case DType::u8:
      return f(std::uint8_t{});
    case DType::i8:
      return f(std::int8_t{});
    case DType::i16:
      return f(std::int16_t{});
    case DType::i32:
      return f(std::int32_t{});
    case DType::i64:
      return f(std::int64_t{});
    case DType::f32:
      return f(float{});
    default:
      return f(double{});
  }
}

/// `count` elements that lie `stride` elements apart, to dense ones of any type, as cast does.
void convert_elements(DType from, const std::byte* source, std::int64_t stride, DType to, std::byte* target,
                      std::int64_t count) {
  const std::int64_t step = stride * size_of(from), width = size_of(to);
  // Elements that are stored as `stored` is, read as the number that `number` makes of them.
  auto convert_from = [&](auto stored, auto number) {
    with_number_type(to, [&](auto out) {
      for (std::int64_t i = 0; i < count; ++i) {
        std::memcpy(&stored, source + i * step, sizeof stored);
        out = converted<decltype(out)>(number(stored));
        std::memcpy(target + i * width, &out, sizeof out);
      }
    });
  };
  if (from == to) {
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(target + i * width, source + i * step, static_cast<std::size_t>(width));
  } else if (size_of(to) == 2 && is_floating(to)) {
    // From f64 and wide integers they are rounded once, not by way of f32.
    for (std::int64_t i = 0; i < count; ++i) convert_element(from, source + i * step, to, target + i * width);
  } else if (from == DType::f16) {
    convert_from(Half{}, [](Half value) { return static_cast<float>(value); });
  } else if (from == DType::bf16) {
    convert_from(BFloat16{}, [](BFloat16 value) { return static_cast<float>(value); });
  } else {
    with_number_type(from, [&](auto value) { convert_from(value, [](auto same) { return same; }); });
  }
}

}  // namespace

void Tensor::copy_elements(DType dtype, void* out, Where where) const {
  const TensorNode& node = concrete_node(*this, "to_vector", where);
  if (node.device()) return on_host(*this).copy_elements(dtype, out, where);
  std::int64_t count = node.element_count(), width = size_of(dtype);
  if (count == 0) return;
  if (node.dense && node.dtype == dtype) {
    std::memcpy(out, node.data, static_cast<std::size_t>(count * width));
    return;
  }
  auto* to = static_cast<std::byte*>(out);
  if (node.dense) return convert_elements(node.dtype, node.data, 1, dtype, to, count);
  const int last = node.rank - 1;
  const std::int64_t row = node.sizes[last];
  std::int64_t index[max_rank] = {};
  for (std::int64_t k = 0; k < count; k += row, to += row * width) {
    std::int64_t offset = 0;
    for (int axis = 0; axis < last; ++axis) offset += index[axis] * node.strides[axis];
    convert_elements(node.dtype, node.data + offset * size_of(node.dtype), node.strides[last], dtype, to, row);
    for (int axis = last - 1; axis >= 0 && ++index[axis] == node.sizes[axis]; --axis) index[axis] = 0;
  }
}

const void* Tensor::dense_data(DType dtype, Where where) const {
  const TensorNode& node = concrete_node(*this, "data", where);
  if (node.dtype != dtype)
    throw UserError(error_text(text("data: the tensor is ", type_text(*this), ", not ", dtype), where,
                               text("cast(x, ", dtype, ") first, or ask for the tensor's own type")));
  if (node.device())
    throw UserError(error_text(text("data: ", type_text(*this), " lies on ", node.device()->name(), ", not in memory"),
                               where, "use to_vector() or item(), which copy"));
  if (!node.dense)
    throw UserError(error_text(text("data: ", type_text(*this), " is a view that is not dense in memory"), where,
                               "take contiguous() first and keep it while you use its data"));
  return node.data;
}

Tensor Tensor::contiguous(Where where) const {
  const TensorNode& node = defined_node(*this, "contiguous", where);
  if (node.dense || node.traced) return *this;
  In operands[] = {In(*this, where)};
  return call_map(operand(0, node.dtype), operands);
}

Tensor::operator bool() const {
  bool out = false;
  Trace* trace = current_trace();
  if (trace && defined() && node_->traced && node_->traced->life->trace == trace) return trace->decide(*this);
  if (defined() && !node_->traced && node_->element_count() != 1)
    throw UserError(error_text(text("bool: the truth of ", node_->dtype, node_->shape(), " with ",
                                    node_->element_count(), " elements is not defined"),
                               {}, "reduce it to one element first, for example any(x) or all(x)"));
  read_item(DType::bool_, &out, {}, {});
  return out;
}

// --- creation

Tensor Tensor::number(DType dtype, const void* value) {
  return creation::as_number(creation::copied(dtype, value, 1, Shape(), {}));
}

void inside::refuse_beyond_i64(std::uint64_t number, Where where) {
  throw UserError(
      error_text(text("tensor: the number ", number, " is out of range for i64"), where, "use a number below 2^63"));
}

namespace creation {

namespace {
std::vector<std::int64_t> sizes_of(const Shape& shape, const char* what, Where where) {
  if (!shape.is_constant())
    throw TraceError(error_text(text(what, ": the shape ", shape, " is not known yet"), where,
                                "use an op such as zeros_like or broadcast_to inside traced code"));
  return shape.sizes();
}

std::int64_t count_of(const std::vector<std::int64_t>& sizes, DType dtype, const char* what, Where where) {
  std::int64_t count = 1;
  bool overflow = false;
  for (std::int64_t size : sizes) overflow |= __builtin_mul_overflow(count, size, &count);
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  if (overflow || count > (std::int64_t{1} << 62) / size_of(dtype))
    throw UserError(error_text(text(what, ": ", dtype, Shape(sizes), " is too large"), where, ""));
  return count;
}

Buffer memory_for(std::int64_t count, const Shape& shape, DType dtype, const char* what, Where where) {
  try {
    return Buffer::allocate(static_cast<std::size_t>(count * size_of(dtype)));
  } catch (const Problem& problem) {
    throw UserError(error_text(text(what, ": ", problem.text(), ", for ", dtype, shape), where, problem.advice()));
  }
}
}  // namespace

/// Of code that is being traced, which hands the tensor to nobody outside before the trace has seen it.
Tensor made_here(DType dtype, std::span<const std::int64_t> sizes, Buffer buffer) {
  Tensor made = dense_tensor(dtype, sizes, std::move(buffer));
  const_cast<TensorNode*>(made.node())->made_in_trace = current_trace() != nullptr;
  return made;
}

Tensor copied(DType dtype, const void* data, std::size_t count, const Shape& shape, Where where) {
  std::vector<std::int64_t> sizes = sizes_of(shape, "tensor", where);
  std::int64_t wanted = count_of(sizes, dtype, "tensor", where);
  if (wanted != static_cast<std::int64_t>(count))
    throw UserError(
        error_text(text("tensor: ", count, " values do not fill ", dtype, shape, ", which has ", wanted, " elements"),
                   where, "give as many values as the product of the sizes"));
  Buffer buffer = memory_for(wanted, shape, dtype, "tensor", where);
  if (count) std::memcpy(buffer.data(), data, count * static_cast<std::size_t>(size_of(dtype)));
  return made_here(dtype, sizes, std::move(buffer));
}

Tensor as_number(Tensor tensor) {
  // bool gives way to every type anyway.
  if (tensor.defined() && tensor.node()->dtype != DType::bool_) const_cast<TensorNode*>(tensor.node())->weak = true;
  return tensor;
}

Tensor of_numbers(const std::vector<AnyNumber>& numbers, const Shape& shape, Where where) {
  DType dtype = numbers.empty() ? DType::f32 : numbers[0].dtype;
  for (const AnyNumber& number : numbers) {
    dtype = promote(dtype, number.dtype);
    if (number.beyond_i64) inside::refuse_beyond_i64(static_cast<std::uint64_t>(number.integer), where);
  }
  auto width = static_cast<std::size_t>(size_of(dtype));
  std::vector<unsigned char> bytes(numbers.size() * width);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (is_floating(numbers[i].dtype))
      convert_element(DType::f64, &numbers[i].real, dtype, bytes.data() + i * width);
    else
      convert_element(DType::i64, &numbers[i].integer, dtype, bytes.data() + i * width);
  }
  return copied(dtype, bytes.data(), numbers.size(), shape, where);
}

Tensor ragged(Where where) {
  throw UserError(error_text("tensor: the rows of the nested list differ in length", where,
                             "make all rows equally long, or pad the short ones"));
}

}  // namespace creation

Tensor tensor(const Dim& size, Where where) {
  if (Trace* trace = current_trace(); trace && !size.is_constant()) return trace->size_value(size, DType::i64, where);
  std::int64_t value = size.value(where);
  return creation::copied(DType::i64, &value, 1, Shape(), where);
}

namespace {

/// Foreign memory as a tensor is to read it, before anybody has taken it over.
struct ForeignMemory {
  ForeignMemory(DType dtype, const void* data, const Shape& shape, const MemoryOptions& options, const char* what,
                Where where)
      : dtype(dtype),
        data(const_cast<void*>(data)),
        sizes(creation::sizes_of(shape, what, where)),
        strides(options.strides) {
    extent = creation::count_of(sizes, dtype, what, where);
    if (extent && !data)
      throw UserError(
          error_text(text(what, ": no memory for ", dtype, shape), where, "give the address of the first element"));
    if (reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(size_of(dtype)) != 0)
      throw UserError(error_text(text(what, ": the address is not a multiple of the size of ", dtype), where,
                                 "align the memory to its elements"));
    if (!strides.empty()) check_strides(shape, what, where);
  }

  void check_strides(const Shape& shape, const char* what, Where where) {
    if (strides.size() != sizes.size())
      throw UserError(error_text(text(what, ": ", strides.size(), " strides for ", dtype, shape), where,
                                 text("give one stride per axis, in elements: ", sizes.size())));
    bool overflow = false;
    std::int64_t last = 0;  // the position of the last element
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (strides[axis] < 0)
        throw UserError(error_text(text(what, ": the stride ", strides[axis], " of axis ", axis, " is negative"), where,
                                   "describe the memory from its lowest address upwards, and flip(x, axis) then"));
      std::int64_t reach = 0;
      overflow |= __builtin_mul_overflow(std::max<std::int64_t>(sizes[axis] - 1, 0), strides[axis], &reach);
      overflow |= __builtin_add_overflow(last, reach, &last);
    }
    if (overflow || last > (std::int64_t{1} << 62) / size_of(dtype))
      throw UserError(error_text(text(what, ": the strides of ", dtype, shape, " reach beyond all memory"), where,
                                 "strides are in elements"));
    if (extent) extent = last + 1;
  }

  Tensor taken_over(void (*release)(void*), void* context) const {
    Buffer buffer = Buffer::foreign(data, static_cast<std::size_t>(extent * size_of(dtype)), release, context);
    if (strides.empty()) return dense_tensor(dtype, sizes, std::move(buffer));
    Tensor whole = dense_tensor(dtype, {&extent, 1}, std::move(buffer));
    return view_tensor(*whole.node(), sizes, strides, 0);
  }

  DType dtype;
  void* data;
  std::vector<std::int64_t> sizes, strides;
  std::int64_t extent = 0;  // elements from the first to the last
};

}  // namespace

Tensor from_memory(DType dtype, const void* data, const Shape& shape, void (*release)(void*), void* context,
                   const MemoryOptions& options, Where where) {
  return creation::foreign(dtype, data, shape, release, context, options, "from_memory", where);
}

Tensor creation::foreign(DType dtype, const void* data, const Shape& shape, void (*release)(void*), void* context,
                         const MemoryOptions& options, const char* what, Where where) {
  return ForeignMemory(dtype, data, shape, options, what, where).taken_over(release, context);
}

Tensor from_memory(DType dtype, const void* data, const Shape& shape, std::shared_ptr<const void> owner,
                   const MemoryOptions& options, Where where) {
  ForeignMemory memory(dtype, data, shape, options, "from_memory", where);
  using Owner = std::shared_ptr<const void>;
  return memory.taken_over([](void* kept) { delete static_cast<Owner*>(kept); }, new Owner(std::move(owner)));
}

Tensor creation::released(DType dtype, const void* data, const Shape& shape, std::function<void()> release,
                          const MemoryOptions& options, Where where) {
  ForeignMemory memory(dtype, data, shape, options, "from_memory", where);
  using Release = std::function<void()>;
  auto call = [](void* kept) noexcept {
    std::unique_ptr<Release> own(static_cast<Release*>(kept));
    if (*own) (*own)();
  };
  return memory.taken_over(call, new Release(std::move(release)));
}

namespace {

/// `count` times the element. A block of it is made once and copied, on all threads: memory is the limit.
void fill_memory(char* to, const void* element, std::int64_t element_size, std::int64_t count) {
  constexpr std::int64_t block_bytes = 4096, piece_blocks = 64;
  alignas(64) char block[block_bytes];
  const std::int64_t bytes = count * element_size, made = std::min(bytes, block_bytes);
  std::memcpy(block, element, static_cast<std::size_t>(element_size));
  for (std::int64_t at = element_size; at < made; at *= 2)
    std::memcpy(block + at, block, static_cast<std::size_t>(std::min(at, made - at)));
  auto fill_piece = [&](std::int64_t piece) {
    const std::int64_t end = std::min(bytes, (piece + 1) * piece_blocks * block_bytes);
    for (std::int64_t at = piece * piece_blocks * block_bytes; at < end; at += block_bytes)
      std::memcpy(to + at, block, static_cast<std::size_t>(std::min(block_bytes, end - at)));
  };
  const std::int64_t pieces = (bytes + piece_blocks * block_bytes - 1) / (piece_blocks * block_bytes);
  parallel_for(pieces, fill_piece);
}

constexpr std::int64_t fewest_repeated_bytes = 4096;

Tensor filled(const Shape& shape, DType dtype, const void* element, const char* what, Where where) {
  // Sizes that are not known yet: one element, repeated by the program.
  if (!shape.is_constant())
    return core_ops.broadcast_to(In(creation::copied(dtype, element, 1, Shape(), where), where), shape);
  std::vector<std::int64_t> sizes = creation::sizes_of(shape, what, where);
  std::int64_t count = creation::count_of(sizes, dtype, what, where);
  // Nor has a program that is being traced use for many copies of it.
  if (current_trace() && count * size_of(dtype) > fewest_repeated_bytes) {
    static constexpr std::int64_t no_strides[max_rank] = {};
    Tensor one = creation::copied(dtype, element, 1, Shape(), where);
    Tensor repeated = view_tensor(*one.node(), sizes, {no_strides, sizes.size()}, 0);
    const_cast<TensorNode*>(repeated.node())->made_in_trace = true;
    return repeated;
  }
  Buffer buffer = creation::memory_for(count, shape, dtype, what, where);
  fill_memory(reinterpret_cast<char*>(buffer.data()), element, size_of(dtype), count);
  return creation::made_here(dtype, sizes, std::move(buffer));
}

}  // namespace

namespace {

/// The element of `dtype` that is `value` (of type `from`); UserError for a value outside of it.
std::uint64_t fill_value(DType from, const void* value, DType dtype, const std::string& written, Where where) {
  double real = 0;
  std::int64_t integer = 0;
  convert_element(from, value, DType::f64, &real);
  convert_element(from, value, DType::i64, &integer);
  std::uint64_t element = 0;
  convert_element(from, value, dtype, &element);
  bool fits = false;
  if (is_floating(dtype)) {
    double nearest = 0;
    convert_element(dtype, &element, DType::f64, &nearest);
    fits = !std::isfinite(real) || std::isfinite(nearest);
  } else if (is_floating(from)) {
    fits = real == std::floor(real) && real >= static_cast<double>(row(dtype).lowest) &&
           real <= static_cast<double>(row(dtype).highest);
  } else {
    fits = integer >= row(dtype).lowest && integer <= row(dtype).highest;
  }
  if (!fits)
    throw UserError(error_text(text("full: ", written, " is not a value of ", dtype), where,
                               "choose another dtype, or round the value"));
  return element;
}

}  // namespace

Tensor full(const Shape& shape, double value, DType dtype, Where where) {
  std::uint64_t element = fill_value(DType::f64, &value, dtype, text(value), where);
  return filled(shape, dtype, &element, "full", where);
}

Tensor creation::full_of_integer(const Shape& shape, std::int64_t value, DType dtype, Where where) {
  std::uint64_t element = fill_value(DType::i64, &value, dtype, text(value), where);
  return filled(shape, dtype, &element, "full", where);
}

Tensor zeros(const Shape& shape, DType dtype, Where where) {
  std::uint64_t element = 0;
  return filled(shape, dtype, &element, "zeros", where);
}

Tensor ones(const Shape& shape, DType dtype, Where where) {
  std::uint64_t element = 0;
  std::int64_t one = 1;
  convert_element(DType::i64, &one, dtype, &element);
  return filled(shape, dtype, &element, "ones", where);
}

Tensor zeros_like(const Tensor& like, Where where) {
  const TensorNode& node = defined_node(like, "zeros_like", where);
  Tensor out = zeros(node.shape(), node.dtype, where);
  return node.device() ? on_device(out, *node.device()) : out;
}

Tensor ones_like(const Tensor& like, Where where) {
  const TensorNode& node = defined_node(like, "ones_like", where);
  Tensor out = ones(node.shape(), node.dtype, where);
  return node.device() ? on_device(out, *node.device()) : out;
}

Tensor arange(const Dim& count, Where where) {
  if (!count.is_constant()) {
    Tensor zero = creation::copied(DType::i64, std::array<std::int64_t, 1>{0}.data(), 1, Shape(), where);
    Tensor axis = core_ops.broadcast_to(In(zero, where), {count});
    In operands[] = {In(axis, where)};
    return call_map(loop_index(0), operands);
  }
  std::int64_t n = count.value(where);
  if (n < 0) throw UserError(error_text(text("arange: the count ", n, " is negative"), where, ""));
  Buffer buffer =
      creation::memory_for(creation::count_of({n}, DType::i64, "arange", where), {n}, DType::i64, "arange", where);
  auto* to = reinterpret_cast<std::int64_t*>(buffer.data());
  for (std::int64_t i = 0; i < n; ++i) to[i] = i;
  std::int64_t sizes[] = {n};
  return creation::made_here(DType::i64, sizes, std::move(buffer));
}

std::string type_text(const Tensor& tensor) {
  return tensor.defined() ? text(tensor.node()->dtype, size_text(tensor.node()->shape())) : std::string("undefined");
}

// --- sizes and the host

bool inside::compare(const Dim& left, Relation relation, const Dim& right, Where where) {
  if (left.is_constant() && right.is_constant()) return holds(left.constant(), relation, right.constant());
  return decide(left, relation, right, {"host code", "comparison of sizes", where});
}

bool operator==(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i)
    if (!compare(a[i], Relation::equal, b[i], {})) return false;
  return true;
}

}  // namespace stet
