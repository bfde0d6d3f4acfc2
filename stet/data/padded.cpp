// Batches of elements that differ in sizes: padded, ragged, and by buckets of similar lengths.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/data/stack.h"
#include "stet/data/stage.h"

namespace stet::data {
namespace {

using Sizes = std::vector<std::int64_t>;
constexpr std::int64_t longest = -1;

[[noreturn]] void refuse(const std::string& what, Where where, const std::string& advice) {
  throw UserError(error_text(what, where, advice));
}

/// How elements become the rows of a batch.
struct PaddingPlan {
  const char* stage;  // what errors call it
  std::vector<Sizes> shapes;
  std::vector<double> values;
  Where where;
};

/// The padding of a tensor: the bytes of one element.
std::array<std::byte, 8> padding_of(const PaddingPlan& plan, std::size_t component, DType dtype) {
  std::array<std::byte, 8> bytes{};
  if (plan.values.empty()) return bytes;
  const double value = plan.values.size() == 1 ? plan.values[0] : plan.values[component];
  convert_element(DType::f64, &value, dtype, bytes.data());
  double back;
  convert_element(dtype, bytes.data(), DType::f64, &back);
  if (!is_floating(dtype) && back != value)
    refuse(text(plan.stage, ": the padding value ", value, " of component ", component, " is none of ", dtype),
           plan.where, "give a value that the component's dtype has");
  return bytes;
}

/// Copies a dense tensor into the first corner of one with larger sizes.
void copy_corner(std::byte* to, std::span<const std::int64_t> to_sizes, const std::byte* from,
                 std::span<const std::int64_t> from_sizes, std::int64_t element_bytes) {
  if (from_sizes.empty()) {
    std::memcpy(to, from, static_cast<std::size_t>(element_bytes));
    return;
  }
  auto bytes_of = [&](std::span<const std::int64_t> sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), element_bytes, std::multiplies<>());
  };
  if (std::ranges::equal(to_sizes.subspan(1), from_sizes.subspan(1))) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes_of(from_sizes)));
    return;
  }
  const std::int64_t to_row = bytes_of(to_sizes.subspan(1)), from_row = bytes_of(from_sizes.subspan(1));
  if (from_row == 0) return;
  for (std::int64_t row = 0; row < from_sizes[0]; ++row)
    copy_corner(to + row * to_row, to_sizes.subspan(1), from + row * from_row, from_sizes.subspan(1), element_bytes);
}

Tensor dense_on_host(const Tensor& tensor, Where where) {
  return on_host(tensor.node()->dense ? tensor : tensor.contiguous(where));
}

/// The sizes of a padded row: those that are given, or the largest.
Sizes padded_sizes(const std::vector<Tensors>& elements, std::size_t component, const PaddingPlan& plan,
                   std::int64_t before) {
  const Tensor& first = elements[0][component];
  const TensorNode& node = concrete_node(first, plan.stage, plan.where);
  Sizes sizes(node.rank, longest);
  if (!plan.shapes.empty()) {
    sizes = plan.shapes[component];
    if (sizes.size() != node.rank)
      refuse(text(plan.stage, ": component ", component, " of element ", before, " is ", node.dtype, node.shape(),
                  ", its padded shape has ", sizes.size(), " sizes"),
             plan.where, "give one size for each axis of an element, without the batch; -1 is the longest");
  }
  const Sizes given = sizes;
  for (std::int64_t& size : sizes) size = std::max<std::int64_t>(size, 0);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const TensorNode& one = concrete_node(elements[i][component], plan.stage, plan.where);
    if (one.dtype != node.dtype || one.rank != node.rank)
      refuse(
          text(plan.stage, ": component ", component, " of element ", before + static_cast<std::int64_t>(i), " is ",
               one.dtype, one.shape(), ", of element ", before, ", the first of the batch, ", node.dtype, node.shape()),
          plan.where,
          one.dtype == node.dtype ? "elements of one batch have the same number of axes"
                                  : "elements of one batch have one dtype: cast them before");
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (given[axis] == longest) {
        sizes[axis] = std::max(sizes[axis], one.sizes[axis]);
      } else if (one.sizes[axis] > given[axis]) {
        refuse(text(plan.stage, ": component ", component, " of element ", before + static_cast<std::int64_t>(i),
                    " is ", one.dtype, one.shape(), ", longer than its padded size ", given[axis], " of axis ", axis),
               plan.where, "cut it in map, give a larger padded size, or -1 for the longest of the batch");
      }
    }
  }
  return sizes;
}

Tensor padded_component(const std::vector<Tensors>& elements, std::size_t component, const PaddingPlan& plan,
                        std::int64_t before) {
  const Sizes sizes = padded_sizes(elements, component, plan, before);
  const DType dtype = elements[0][component].node()->dtype;
  const std::int64_t element_bytes = size_of(dtype);
  std::int64_t row_bytes = element_bytes;
  for (std::int64_t size : sizes)
    if (__builtin_mul_overflow(row_bytes, size, &row_bytes))
      refuse(text(plan.stage, ": a row of ", dtype, Shape(sizes), " is too large"), plan.where, "pad to smaller sizes");
  const auto rows = static_cast<std::int64_t>(elements.size());
  Buffer buffer = memory_for_rows(rows, row_bytes, dtype, sizes, plan.where, plan.stage);
  const std::array<std::byte, 8> padding = padding_of(plan, component, dtype);
  const bool zeros = std::all_of(padding.begin(), padding.end(), [](std::byte b) { return b == std::byte{}; });
  for (std::int64_t row = 0; row < rows; ++row) {
    Tensor one = dense_on_host(elements[static_cast<std::size_t>(row)][component], plan.where);
    std::byte* to = buffer.data() + row * row_bytes;
    if (row_bytes == 0) break;
    const bool fills = std::ranges::equal(one.node()->size_span(), sizes);
    if (!fills && zeros) std::memset(to, 0, static_cast<std::size_t>(row_bytes));
    if (!fills && !zeros)
      for (std::int64_t at = 0; at < row_bytes; at += element_bytes)
        std::memcpy(to + at, padding.data(), static_cast<std::size_t>(element_bytes));
    if (one.node()->element_count() > 0)
      copy_corner(to, sizes, one.node()->data, one.node()->size_span(), element_bytes);
  }
  return stacked(rows, dtype, sizes, std::move(buffer), plan.where, plan.stage);
}

/// A batch of elements, each component padded; `before` elements came earlier, for errors.
void pad(const std::vector<Tensors>& elements, const PaddingPlan& plan, std::int64_t before, Tensors& out) {
  const std::size_t components = elements[0].size();
  auto check = [&](std::size_t given, const char* option, bool one_for_all) {
    if (given != 0 && given != components && !(one_for_all && given == 1))
      refuse(text(plan.stage, ": ", option, " has ", given, " entries, an element has ", components, " tensors"),
             plan.where, "give one for each tensor of an element, in order");
  };
  check(plan.shapes.size(), "padded_shapes", false);
  check(plan.values.size(), "padding_values", true);
  Tensors batch;
  for (std::size_t i = 0; i < components; ++i) batch.push_back(padded_component(elements, i, plan, before));
  out = std::move(batch);
}

std::string described_shapes(const std::vector<Sizes>& shapes, const std::vector<double>& values) {
  std::string out;
  if (!shapes.empty()) {
    out += ", .padded_shapes = {";
    for (const Sizes& one : shapes) out += text(&one == &shapes[0] ? "{" : ", {", joined(one, ", "), "}");
    out += "}";
  }
  if (!values.empty()) out += text(", .padding_values = {", joined(values, ", "), "}");
  return out;
}

// --- batches of all kinds that collect their elements first

/// `Form` makes a batch: form(elements, before, out).
template <class Form>
class CollectedBatches : public Elements {
 public:
  CollectedBatches(std::unique_ptr<Elements> upstream, std::int64_t size, bool drop_remainder, const Form& form)
      : upstream_(std::move(upstream)), size_(size), drop_remainder_(drop_remainder), form_(form) {}
  bool next(Tensors& out) override {
    if (!upstream_) return false;
    std::vector<Tensors> elements;
    while (static_cast<std::int64_t>(elements.size()) < size_) {
      Tensors element;
      if (!upstream_->next(element)) {
        upstream_.reset();
        if (elements.empty() || drop_remainder_) return false;
        break;
      }
      elements.push_back(std::move(element));
    }
    form_(elements, before_, out);
    before_ += static_cast<std::int64_t>(elements.size());
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    if (!upstream_) return 0;
    std::int64_t elements;
    if (__builtin_mul_overflow(count, size_, &elements)) elements = INT64_MAX;
    const std::int64_t there = upstream_->skip(elements);
    if (there < elements) upstream_.reset();
    before_ += there;
    return there / size_ + (!drop_remainder_ && there % size_ != 0);
  }

 private:
  std::unique_ptr<Elements> upstream_;  // null when it has ended
  const std::int64_t size_;
  const bool drop_remainder_;
  const Form& form_;
  std::int64_t before_ = 0;
};

template <class Form>
class CollectedStage : public LaterStage {
 public:
  CollectedStage(StagePointer before, std::string name, std::int64_t size, bool drop_remainder, std::string arguments,
                 Form form, Where where)
      : LaterStage(before, {.name = std::move(name),
                            .arguments = std::move(arguments),
                            .where = where,
                            .count = count_of(before->count(), size, drop_remainder)}),
        size_(size),
        drop_remainder_(drop_remainder),
        form_(std::move(form)) {}
  std::optional<std::vector<TensorSpec>> spec() const override {
    const std::int64_t elements = upstream.count();
    const bool full = drop_remainder_ || elements == infinite || (elements >= 0 && elements % size_ == 0);
    return form_.spec(upstream.spec(), full ? DimSpec(size_) : DimSpec(dyn));
  }

 private:
  static std::int64_t count_of(std::int64_t elements, std::int64_t size, bool drop_remainder) {
    if (elements == unknown_count || elements == infinite) return elements;
    return elements / size + (!drop_remainder && elements % size != 0);
  }
  std::unique_ptr<Elements> open(const Pass& pass) const override {
    return std::make_unique<CollectedBatches<Form>>(upstream.elements(pass), size_, drop_remainder_, form_);
  }
  std::int64_t size_;
  bool drop_remainder_;
  Form form_;
};

struct PaddedForm {
  PaddingPlan plan;
  void operator()(const std::vector<Tensors>& elements, std::int64_t before, Tensors& out) const {
    pad(elements, plan, before, out);
  }
  /// Sizes that are padded to the longest are not known, unless all elements have them.
  std::optional<std::vector<TensorSpec>> spec(std::optional<std::vector<TensorSpec>> specs, DimSpec rows) const {
    if (specs && plan.shapes.size() == specs->size())
      for (std::size_t i = 0; i < specs->size(); ++i)
        for (std::size_t axis = 0; axis < plan.shapes[i].size() && axis < (*specs)[i].shape.dims.size(); ++axis)
          if (plan.shapes[i][axis] != longest) (*specs)[i].shape.dims[axis] = plan.shapes[i][axis];
    return with_first_axis(std::move(specs), std::move(rows));
  }
};

// --- ragged

struct RaggedForm {
  std::vector<bool> which;
  Where where;

  void operator()(const std::vector<Tensors>& elements, std::int64_t before, Tensors& out) const {
    Tensors batch;
    for (std::size_t i = 0; i < which.size(); ++i) {
      if (which[i]) {
        rows_of(elements, i, before, batch);
        continue;
      }
      Stack stack(static_cast<std::int64_t>(elements.size()), before, where, "ragged_batch");
      Tensors one;
      for (const Tensors& element : elements) stack.add({element[i]});
      stack.finish(one);
      batch.push_back(std::move(one[0]));
    }
    out = std::move(batch);
  }
  std::optional<std::vector<TensorSpec>> spec(std::optional<std::vector<TensorSpec>> specs, DimSpec rows) const {
    if (!specs) return specs;
    std::vector<TensorSpec> out;
    for (std::size_t i = 0; i < specs->size(); ++i) {
      TensorSpec one = (*specs)[i];
      if (which[i]) {
        if (!one.shape.dims.empty()) one.shape.dims[0] = dyn;
        out.push_back(one);
        out.push_back({i64, ShapeSpec({rows})});
      } else {
        one.shape.dims.insert(one.shape.dims.begin(), rows);
        out.push_back(one);
      }
    }
    return out;
  }

 private:
  void rows_of(const std::vector<Tensors>& elements, std::size_t component, std::int64_t before, Tensors& out) const {
    const TensorNode& first = concrete_node(elements[0][component], "ragged_batch", where);
    if (first.rank == 0)
      refuse(text("ragged_batch: component ", component, " of element ", before, " is ", first.dtype,
                  "[], a scalar: it ", "has no length"),
             where, "name the components that have one: ragged_batch<0>(n)");
    const std::span<const std::int64_t> row_sizes = first.size_span().subspan(1);
    std::vector<std::int64_t> lengths;
    std::int64_t total = 0;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const TensorNode& one = concrete_node(elements[i][component], "ragged_batch", where);
      if (one.dtype != first.dtype || one.rank != first.rank ||
          !std::ranges::equal(one.size_span().subspan(1), row_sizes))
        refuse(text("ragged_batch: component ", component, " of element ", before + static_cast<std::int64_t>(i),
                    " is ", one.dtype, one.shape(), ", of element ", before, ", the first of the batch, ", first.dtype,
                    first.shape()),
               where, "elements of one batch have one dtype, and differ in their first size only");
      lengths.push_back(one.sizes[0]);
      total += one.sizes[0];
    }
    const std::int64_t row_bytes =
        std::accumulate(row_sizes.begin(), row_sizes.end(), std::int64_t{size_of(first.dtype)}, std::multiplies<>());
    Buffer buffer = memory_for_rows(total, row_bytes, first.dtype, row_sizes, where, "ragged_batch");
    std::byte* to = buffer.data();
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const std::int64_t bytes = lengths[i] * row_bytes;
      if (bytes == 0) continue;
      Tensor one = dense_on_host(elements[i][component], where);
      std::memcpy(to, one.node()->data, static_cast<std::size_t>(bytes));
      to += bytes;
    }
    out.push_back(stacked(total, first.dtype, row_sizes, std::move(buffer), where, "ragged_batch"));
    out.push_back(tensor(lengths));
  }
};

// --- buckets

class BucketCursor : public Elements {
 public:
  BucketCursor(std::unique_ptr<Elements> upstream, const NumberFunction& length, const BucketOptions& options,
               const Pass& pass, Where where)
      : upstream_(std::move(upstream)),
        length_(length),
        options_(options),
        draws_(pass),
        buckets_(options.batch_sizes.size()),
        where_(where) {}

  bool next(Tensors& out) override {
    while (upstream_) {
      Tensors element;
      if (!upstream_->next(element)) {
        upstream_.reset();
        break;
      }
      const std::int64_t length = length_of(element);
      const std::vector<std::int64_t>& boundaries = options_.boundaries;
      const auto bucket =
          static_cast<std::size_t>(std::upper_bound(boundaries.begin(), boundaries.end(), length) - boundaries.begin());
      Bucket& there = buckets_[bucket];
      there.elements.push_back(std::move(element));
      there.lengths.push_back(length);
      if (static_cast<std::int64_t>(there.elements.size()) < options_.batch_sizes[bucket]) continue;
      form(bucket, out);
      return true;
    }
    if (options_.drop_remainder) return false;
    for (; rest_ < buckets_.size(); ++rest_)
      if (!buckets_[rest_].elements.empty()) {
        form(rest_, out);
        return true;
      }
    return false;
  }

 private:
  struct Bucket {
    std::vector<Tensors> elements;
    std::vector<std::int64_t> lengths;
  };
  std::int64_t length_of(const Tensors& element) {
    std::int64_t length;
    {
      RandomStream::Use draws = draws_.next();
      length = length_(element);
    }
    const std::vector<std::int64_t>& boundaries = options_.boundaries;
    if (length < 0 || (options_.pad_to_bucket_boundary && length >= boundaries.back()))
      refuse(text("bucket_by_sequence_length: element ", number_, " has length ", length,
                  length < 0 ? "" : text(", the last boundary is ", boundaries.back())),
             where_,
             length < 0 ? "a length is at least 0"
                        : "with pad_to_bucket_boundary all are shorter: add a boundary, or cut elements");
    ++number_;
    return length;
  }
  /// Whether this tensor's first axis is what the bucket goes by.
  static bool is_sequence(const Bucket& bucket, std::size_t component) {
    for (std::size_t i = 0; i < bucket.elements.size(); ++i) {
      const TensorNode& node = *bucket.elements[i][component].node();
      if (node.rank == 0 || node.sizes[0] != bucket.lengths[i]) return false;
    }
    return true;
  }
  /// Empties the bucket.
  void form(std::size_t number, Tensors& out) {
    const Bucket bucket = std::exchange(buckets_[number], {});
    const std::vector<Tensors>& elements = bucket.elements;
    if (options_.no_padding) {
      Stack stack(static_cast<std::int64_t>(elements.size()), 0, where_, "bucket_by_sequence_length");
      for (const Tensors& element : elements) stack.add(element);
      stack.finish(out);
      return;
    }
    PaddingPlan plan{"bucket_by_sequence_length", options_.padded_shapes, options_.padding_values, where_};
    if (options_.pad_to_bucket_boundary) {
      const std::int64_t size = options_.boundaries[number] - 1;
      for (Sizes& shape : plan.shapes) std::replace(shape.begin(), shape.end(), longest, size);
      if (plan.shapes.empty())
        for (std::size_t i = 0; i < elements[0].size(); ++i) {
          plan.shapes.emplace_back(concrete_node(elements[0][i], plan.stage, where_).rank, longest);
          if (is_sequence(bucket, i)) plan.shapes[i][0] = size;
        }
    }
    pad(elements, plan, 0, out);
  }

  std::unique_ptr<Elements> upstream_;  // null when it has ended
  const NumberFunction& length_;
  const BucketOptions& options_;
  ElementDraws draws_;
  std::vector<Bucket> buckets_;
  std::size_t rest_ = 0;  // the first bucket that may have some at the end
  std::int64_t number_ = 0;
  Where where_;
};

class BucketStage : public LaterStage {
 public:
  BucketStage(StagePointer before, NumberFunction length, BucketOptions options, Where where)
      : LaterStage(before,
                   {.name = "bucket_by_sequence_length",
                    .arguments = described_options(options),
                    .where = where,
                    .count = before->count() == 0 || before->count() == infinite ? before->count() : unknown_count,
                    .draws = true}),
        length_(std::move(length)),
        options_(std::move(options)) {}

 private:
  static std::string described_options(const BucketOptions& options) {
    return text("{.boundaries = {", joined(options.boundaries, ", "), "}, .batch_sizes = {",
                joined(options.batch_sizes, ", "), "}", described_shapes(options.padded_shapes, options.padding_values),
                options.pad_to_bucket_boundary ? ", .pad_to_bucket_boundary = true" : "",
                options.no_padding ? ", .no_padding = true" : "",
                options.drop_remainder ? ", .drop_remainder = true" : "", "}");
  }
  std::unique_ptr<Elements> open(const Pass& pass) const override {
    return std::make_unique<BucketCursor>(upstream.elements(pass.before_map()), length_, options_, pass, facts().where);
  }
  NumberFunction length_;
  BucketOptions options_;
};

// --- unbatch

class UnbatchCursor : public Elements {
 public:
  UnbatchCursor(std::unique_ptr<Elements> upstream, Where where) : upstream_(std::move(upstream)), where_(where) {}
  bool next(Tensors& out) override {
    if (!to_row()) return false;
    out.clear();
    for (const Tensor& tensor : batch_) {
      const TensorNode& node = *tensor.node();
      out.push_back(
          view_tensor(node, node.size_span().subspan(1), node.stride_span().subspan(1), row_ * node.strides[0]));
    }
    if (++row_ == rows_) batch_.clear();
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    std::int64_t skipped = 0;
    while (skipped < count && to_row()) {
      const std::int64_t here = std::min(count - skipped, rows_ - row_);
      row_ += here;
      skipped += here;
    }
    return skipped;
  }

 private:
  /// Goes to a batch that has a row left. False at the end.
  bool to_row() {
    while (row_ == rows_) {
      if (!upstream_->next(batch_)) return false;
      const TensorNode& first = concrete_node(batch_.at(0), "unbatch", where_);
      for (std::size_t i = 0; i < batch_.size(); ++i) {
        const TensorNode& node = concrete_node(batch_[i], "unbatch", where_);
        if (node.rank == 0)
          refuse(text("unbatch: component ", i, " of element ", number_, " is ", node.dtype,
                      "[], a scalar: it has no first axis"),
                 where_, "unbatch takes apart what has an axis of elements");
        if (node.sizes[0] != first.sizes[0])
          refuse(text("unbatch: component ", i, " of element ", number_, " is ", node.dtype, node.shape(),
                      ", component 0 ", first.dtype, first.shape()),
                 where_, "all components need the same size of axis 0");
      }
      ++number_;
      row_ = 0;
      rows_ = first.sizes[0];
    }
    return true;
  }

  std::unique_ptr<Elements> upstream_;
  Tensors batch_;
  std::int64_t row_ = 0, rows_ = 0, number_ = 0;
  Where where_;
};

class NoElements : public Elements {
 public:
  bool next(Tensors&) override { return false; }
};

class UnbatchStage : public LaterStage {
 public:
  UnbatchStage(StagePointer before, Where where)
      : LaterStage(before, {.name = "unbatch", .where = where, .count = count_of(*before)}) {}
  std::optional<std::vector<TensorSpec>> spec() const override {
    std::optional<std::vector<TensorSpec>> specs = upstream.spec();
    if (specs)
      for (TensorSpec& spec : *specs)
        if (!spec.shape.dims.empty()) spec.shape.dims.erase(spec.shape.dims.begin());
    return specs;
  }

 private:
  /// Known if all batches have one known size.
  static std::int64_t count_of(const Stage& before) {
    if (before.count() == 0) return 0;
    const std::optional<std::vector<TensorSpec>> specs = before.spec();
    if (before.count() == unknown_count || !specs || specs->empty() || (*specs)[0].shape.dims.empty() ||
        !(*specs)[0].shape.dims[0].size)
      return unknown_count;
    const std::int64_t rows = *(*specs)[0].shape.dims[0].size;
    std::int64_t total;
    if (rows == 0) return 0;
    return before.count() == infinite || __builtin_mul_overflow(before.count(), rows, &total) ? infinite : total;
  }
  std::unique_ptr<Elements> open(const Pass& pass) const override {
    // Batches without rows that never end would be looked through for ever.
    if (count() == 0) return std::make_unique<NoElements>();
    return std::make_unique<UnbatchCursor>(upstream.elements(pass), facts().where);
  }
};

}  // namespace

StagePointer padded_batch_stage(StagePointer upstream, std::int64_t batch_size, PaddedBatchOptions options,
                                Where where) {
  std::string arguments = text(batch_size, described_shapes(options.padded_shapes, options.padding_values),
                               options.drop_remainder ? ", .drop_remainder = true" : "");
  PaddedForm form{{"padded_batch", std::move(options.padded_shapes), std::move(options.padding_values), where}};
  return std::make_shared<CollectedStage<PaddedForm>>(std::move(upstream), "padded_batch", batch_size,
                                                      options.drop_remainder, std::move(arguments), std::move(form),
                                                      where);
}
StagePointer ragged_batch_stage(StagePointer upstream, std::int64_t batch_size, std::vector<bool> which,
                                BatchOptions options, Where where) {
  std::string arguments = text(batch_size, options.drop_remainder ? ", {.drop_remainder = true}" : "");
  for (std::size_t i = 0; i < which.size(); ++i)
    if (which[i]) arguments += text(", component ", i);
  return std::make_shared<CollectedStage<RaggedForm>>(std::move(upstream), "ragged_batch", batch_size,
                                                      options.drop_remainder, std::move(arguments),
                                                      RaggedForm{std::move(which), where}, where);
}
StagePointer bucket_stage(StagePointer upstream, NumberFunction length, BucketOptions options, Where where) {
  return std::make_shared<BucketStage>(std::move(upstream), std::move(length), std::move(options), where);
}
StagePointer unbatch_stage(StagePointer upstream, Where where) {
  return std::make_shared<UnbatchStage>(std::move(upstream), where);
}

Tensor Ragged::row(std::int64_t number, Where where) const {
  const std::vector<std::int64_t> lengths = row_lengths.to_vector<std::int64_t>();
  if (number < 0 || number >= static_cast<std::int64_t>(lengths.size()))
    refuse(text("Ragged: row ", number, " of ", lengths.size()), where, "rows are numbered from 0");
  const std::int64_t first =
      std::accumulate(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(number), std::int64_t{0});
  return values[Range{first, first + lengths[static_cast<std::size_t>(number)]}];
}

}  // namespace stet::data
