#include "stet/keras/categories.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/keras/adapting.h"
#include "stet/keras/bin_summary.h"
#include "stet/keras/category_codes.h"
#include "stet/keras/layer_fields.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/library_layer.h"
#include "stet/keras/spatial.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

constexpr Takes any_values{.layout = "[batch, …]", .cast = false};

class DiscretizationBody final : public LibraryLayer {
 public:
  explicit DiscretizationBody(DiscretizationOptions options)
      : LibraryLayer("Discretization", options.name, any_values, options.dtype), options_(std::move(options)) {
    if (!options_.num_bins) set(options_.bin_boundaries);
  }

  bool adapts() const { return options_.num_bins.has_value(); }
  /// Those that adapt() found, from a file.
  void set_found(std::vector<double> boundaries) { set(std::move(boundaries)); }
  std::optional<std::vector<double>> boundaries_if_any() const {
    std::lock_guard lock(guard_);
    return bins_ ? std::optional(bins_->boundaries) : std::nullopt;
  }
  BinSummary new_summary() const { return BinSummary(options_.epsilon); }
  void adapt(const BinSummary& summary) {
    set(summary.boundaries(*options_.num_bins));
    note_new_table(*this);
  }
  struct Bins {
    std::vector<double> boundaries;
    Tensor edges;
  };
  std::shared_ptr<const Bins> bins(Where where) const {
    std::lock_guard lock(guard_);
    if (bins_) return bins_;
    throw UserError(
        error_text(text(description(), " has no bins yet"), where, "call adapt(data), or give it bin_boundaries"));
  }

 private:
  void set(std::vector<double> boundaries) {
    std::vector<float> edges(boundaries.begin(), boundaries.end());
    auto bins = std::make_shared<const Bins>(Bins{std::move(boundaries), tensor(edges)});
    std::lock_guard lock(guard_);
    bins_ = std::move(bins);
  }
  Tensor run(const Tensor& x, const Context& context) override {
    const auto now = bins(context.where);
    const Tensor bin =
        now->boundaries.empty() ? zeros(x.shape(), DType::i64) : digitize(cast(x, DType::f32), now->edges);
    const auto count = static_cast<std::int64_t>(now->boundaries.size()) + 1;
    const Tensor out = coded(bin, {"Discretization", options_.output_mode, count, compute_dtype()}, {}, context.where);
    return options_.output_mode == "int" ? cast(out, DType::i32) : out;
  }

  const DiscretizationOptions options_;
  mutable Lock guard_;
  std::shared_ptr<const Bins> bins_;
};

void require_ascending(const std::vector<double>& edges, Where where) {
  for (std::size_t i = 0; i < edges.size(); ++i)
    if (std::isnan(edges[i]) || (i > 0 && edges[i] < edges[i - 1]))
      throw UserError(error_text(text("Discretization: bin_boundaries[", i, "] is ", edges[i], i > 0 ? " after " : "",
                                      i > 0 ? text(edges[i - 1]) : ""),
                                 where, "they ascend"));
}

struct DiscretizationRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "Discretization";
  DiscretizationOptions options = {};
  std::optional<std::vector<double>> boundaries = {};  // with num_bins: what adapt() found

  void fields(Fields& f) {
    f.layer_without_trainable(options);
    if (const auto* body = dynamic_cast<const DiscretizationBody*>(f.written_layer()))
      boundaries = body->boundaries_if_any();
    f("bin_boundaries", boundaries);
    f("num_bins", options.num_bins);
    f("epsilon", options.epsilon);
    f("output_mode", options.output_mode);
    f.only("sparse", false);
  }
  Layer make(Where where) const {
    DiscretizationOptions given = options;
    if (boundaries && !options.num_bins) given.bin_boundaries = *boundaries;
    Discretization made(given, where);
    if (boundaries && options.num_bins) {
      require_ascending(*boundaries, where);
      static_cast<DiscretizationBody&>(*made.body()).set_found(*boundaries);
    }
    return made;
  }
};
struct CategoryEncodingRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "CategoryEncoding";
  std::int64_t num_tokens = 0;
  CategoryEncodingOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("num_tokens", num_tokens);
    f("output_mode", options.output_mode);
  }
  Layer make(Where where) const { return CategoryEncoding(num_tokens, options, where); }
};
const Savable<DiscretizationRecipe> savable_discretization;
const Savable<CategoryEncodingRecipe> savable_category_encoding;

DiscretizationBody& adapting(CustomLayer& layer, Where where) {
  auto& own = static_cast<DiscretizationBody&>(layer);
  if (!own.adapts())
    throw UserError(error_text(text("adapt: ", own.description(), " was given its bin_boundaries"), where,
                               "make it with num_bins instead"));
  return own;
}
void add_to(BinSummary& summary, const Tensor& data, const std::string& layer, Where where) {
  std::vector<float> values = cast(In(data, where), DType::f32).to_vector<float>();
  if (std::any_of(values.begin(), values.end(), [](float value) { return std::isnan(value); }))
    throw UserError(error_text(text("adapt: ", layer, ": the data ", described(data), " has NaN in it"), where,
                               "bins are found by the order of values: leave NaN out"));
  if (!values.empty()) summary.add(std::move(values));
}
void finish(DiscretizationBody& own, const BinSummary& summary, Where where) {
  if (summary.empty())
    throw UserError(error_text(text("adapt: ", own.description(), ": there is no data"), where, "give it some"));
  own.adapt(summary);
}

constexpr const char* about_tokens = "tokens are integers from 0 to num_tokens less one; IntegerLookup numbers others";
constexpr IndexWords token_of_sample{"token", "of sample", "tokens", about_tokens},
    token_of_many{"token", "at flat position", "tokens", about_tokens};

Tensor encoded(const Tensors& inputs, std::int64_t num_tokens, const std::string& mode, DType dtype, Where where) {
  if (inputs.size() > 2 || (inputs.size() == 2 && mode != "count"))
    throw UserError(error_text(text("CategoryEncoding: ", inputs.size(), " tensors with output_mode \"", mode, "\""),
                               where, "it takes one; with \"count\", weights may come after it: layer({x, weights})"));
  Tensor weights = inputs.size() == 2 ? inputs[1] : Tensor();
  const Tensor x = integers("CategoryEncoding", inputs[0], where);
  if (weights.defined()) {
    bool same = weights.rank() == x.rank();
    for (int axis = 0; same && axis < x.rank(); ++axis)
      same = inside::require(weights.dim(axis), Relation::equal, x.dim(axis), {"CategoryEncoding", "weights", where});
    if (!same)
      throw UserError(error_text(text("CategoryEncoding: weights ", described(weights), " for tokens ", described(x)),
                                 where, "give each token a weight"));
    weights = cast(weights, dtype);
  }
  // By a gather, so that what is no token is an error, not left out.
  Frame words("CategoryEncoding", where, x.rank() <= 1 ? &token_of_sample : &token_of_many);
  const Tensor checked = reshape(gather(arange(num_tokens), reshape(x, {x.size()})), x.shape());
  return coded(checked, {"CategoryEncoding", mode, num_tokens, dtype}, weights, where);
}

}  // namespace

void for_each_batch(const data::Dataset<Tensor>& batches, const std::function<void(const Tensor&)>& use, Where where) {
  if (batches.cardinality() == data::infinite)
    throw UserError(error_text("adapt: the dataset has no end", where, "take a part of it: batches.take(100)"));
  for (data::Iteration batch = batches.iterate(where); batch.next();) use(batch.tensors()[0]);
}

Discretization::Discretization(DiscretizationOptions options, Where where) {
  constexpr const char* layer = "Discretization";
  require_output_mode(layer, options.output_mode, true, false, where);
  if (options.num_bins) require_at_least(layer, "num_bins", *options.num_bins, 1, where);
  if (options.bin_boundaries.empty() == !options.num_bins)
    throw UserError(error_text(text(layer, options.num_bins ? ": bin_boundaries and num_bins" : ": no bins"), where,
                               "give it bin_boundaries, or num_bins and call adapt()"));
  if (!(options.epsilon > 0 && options.epsilon <= 1))
    throw UserError(
        error_text(text(layer, ": an epsilon of ", options.epsilon), where, "it is a part: more than 0, up to 1"));
  require_ascending(options.bin_boundaries, where);
  Layer::operator=(Layer(std::make_shared<DiscretizationBody>(options)));
  note_recipe(*this, DiscretizationRecipe{std::move(options)});
}
void Discretization::adapt(const Tensor& data, Where where) const {
  DiscretizationBody& own = adapting(layer_body("adapt", where), where);
  BinSummary summary = own.new_summary();
  add_to(summary, data, own.description(), where);
  finish(own, summary, where);
}
void Discretization::adapt(const data::Dataset<Tensor>& batches, Where where) const {
  DiscretizationBody& own = adapting(layer_body("adapt", where), where);
  BinSummary summary = own.new_summary();
  for_each_batch(
      batches, [&](const Tensor& batch) { add_to(summary, batch, own.description(), where); }, where);
  finish(own, summary, where);
}
std::vector<double> Discretization::bin_boundaries(Where where) const {
  return static_cast<DiscretizationBody&>(layer_body("bin_boundaries", where)).bins(where)->boundaries;
}

CategoryEncoding::CategoryEncoding(std::int64_t num_tokens, CategoryEncodingOptions options, Where where) {
  require_at_least("CategoryEncoding", "num_tokens", num_tokens, 1, where);
  require_output_mode("CategoryEncoding", options.output_mode, false, false, where);
  const DType dtype = options.dtype.compute_dtype();
  Layer::operator=(plain_layer({.class_name = "CategoryEncoding",
                                .name = options.name,
                                .takes = {.layout = "[batch, …]", .inputs = 0, .cast = false},
                                .call_many =
                                    [=, mode = options.output_mode](const Tensors& inputs, const Context& context) {
                                      return encoded(inputs, num_tokens, mode, dtype, context.where);
                                    },
                                .policy = options.dtype}));
  note_recipe(*this, CategoryEncodingRecipe{num_tokens, std::move(options)});
}

}  // namespace stet::keras
