#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/attention_body.h"
#include "stet/keras/einsum_dense.h"
#include "stet/keras/layer_fields.h"
#include "stet/keras/layer_state.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

/// What both layers of heads are made of.
struct Heads {
  const char* class_name;
  std::int64_t queries, keys;  // heads of queries, and of keys and values, which divide them
  std::int64_t key_dim, value_dim;
  double dropout;
  bool use_bias;
  std::vector<std::int64_t> output_shape = {};
  std::vector<int> attention_axes = {};
  std::optional<std::int64_t> sliding_window;
  EinsumDenseOptions products;            // what all of them are made with
  Regularizer activity_regularizer = {};  // of the result
  bool use_gate;
  NoiseSource source;  // that dropout draws from
  int most = 7;        // axes of a query
};

/// `count` letters, the first of which has this number.
std::string letters(int begin, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += static_cast<char>('a' + begin + i);
  return out;
}

class HeadsBody : public LibraryLayer {
 public:
  HeadsBody(Heads heads, std::string name, DTypePolicy policy)
      : LibraryLayer(heads.class_name, std::move(name),
                     {.least = 3,
                      .most = heads.most,
                      .layout = "query, value and key [batch, steps, features]",
                      .inputs = 2,
                      .checked = 3},
                     policy, {.activity_regularizer = heads.activity_regularizer}),
        heads_(std::move(heads)) {
    draws_from(heads_.source.generator());
  }

  bool supports_masking() const override { return true; }
  void visit_members(MemberVisitor& visitor) override {
    for (const Layer* layer : {&query_, &key_, &gate_, &value_, &output_})
      if (layer->defined()) visitor(layer->name(), *layer);
  }

 protected:
  void make_weights_for(const std::vector<Shape>& inputs) override {
    const Shape &query = inputs[0], &value = inputs[1], &key = inputs.size() > 2 ? inputs[2] : value;
    query_ = projection("query", query.rank(), heads_.queries, heads_.key_dim);
    key_ = projection("key", key.rank(), heads_.keys, heads_.key_dim);
    if (heads_.use_gate) gate_ = projection("gate", query.rank(), heads_.queries, heads_.value_dim, "sigmoid");
    value_ = projection("value", value.rank(), heads_.keys, heads_.value_dim);
    output_ = merge(query);
    build_member(query_, {query}, {});
    build_member(key_, {key}, {});
    if (heads_.use_gate) build_member(gate_, {query}, {});
    build_member(value_, {value}, {});
    Shape merged;
    for (int axis = 0; axis + 1 < query.rank(); ++axis) merged.push_back(query[axis]);
    merged.push_back(heads_.queries);
    merged.push_back(heads_.value_dim);
    build_member(output_, {merged}, {});
  }

  Tensors run_many(const Tensors& inputs, const Context& context) override {
    const Tensor &query = inputs[0], &value = inputs[1], &key = inputs.size() > 2 ? inputs[2] : value;
    if (value.rank() != query.rank() || key.rank() != query.rank())
      throw UserError(error_text(text(description(), ": query ", described(query), ", value ", described(value),
                                      " and key ", described(key), " have different numbers of axes"),
                                 context.where, "give them all as [batch, steps, features]"));
    for (int axis = 1; axis + 1 < value.rank(); ++axis) require_lengths(*this, value, key, axis, context.where);
    const AttentionArguments told = attention_arguments(context);
    const Tensor allowed = allowed_of(inputs, told, context);
    auto project = [&](const Layer& layer, const Tensor& x) { return layer(x, {}, context.where); };
    Tensor q = project(query_, query) * (1 / std::sqrt(static_cast<double>(heads_.key_dim)));
    Tensor k = shared(project(key_, key)), v = shared(project(value_, value));
    const Equations how = equations(q.rank());
    Tensor scores = normalised(einsum(how.scores, {k, q}), allowed, how);
    Tensor out = einsum(how.combined, {dropped(scores, heads_.dropout, heads_.source, context), v});
    if (heads_.use_gate) out = out * project(gate_, query);
    out = with_mask(project(output_, out), {});
    return told.return_attention_scores ? Tensors{out, scores} : Tensors{out};
  }

 private:
  struct Equations {
    std::string scores, combined;
    int attended;  // axes over which a query's scores go
  };

  EinsumDenseOptions common(const char* name, const std::string& bias) const {
    EinsumDenseOptions out = heads_.products;
    out.bias_axes = heads_.use_bias ? bias : "";
    out.name = name;
    return out;
  }
  /// [batch, steps…, features] to [batch, steps…, heads, size].
  Layer projection(const char* name, int rank, std::int64_t heads, std::int64_t size,
                   ActivationFunction activation = {}) const {
    const std::string free = letters(0, rank - 1), bound = letters(rank - 1, 1), made = letters(rank, 2);
    ShapeSpec output(std::vector<DimSpec>(static_cast<std::size_t>(rank - 2), dyn));
    output.dims.insert(output.dims.end(), {heads, size});
    EinsumDenseOptions options = common(name, made);
    options.activation = std::move(activation);
    return EinsumDense(free + bound + "," + bound + made + "->" + free + made, output, std::move(options));
  }
  /// [batch, steps…, heads, size] to what is given.
  Layer merge(const Shape& query) const {
    const int rank = query.rank();
    std::vector<std::int64_t> sizes = heads_.output_shape;
    if (sizes.empty()) sizes = {query[-1].value()};
    const std::string free = letters(0, rank - 1), bound = letters(rank - 1, 2),
                      made = letters(rank + 1, static_cast<int>(sizes.size()));
    ShapeSpec output(std::vector<DimSpec>(static_cast<std::size_t>(rank - 2), dyn));
    for (std::int64_t size : sizes) output.dims.emplace_back(size);
    return EinsumDense(free + bound + "," + bound + made + "->" + free + made, output,
                       common("attention_output", made));
  }
  /// A head of keys serves several of queries: [batch, steps, keys, size] to [batch, steps, queries, size].
  Tensor shared(const Tensor& x) const {
    return heads_.keys == heads_.queries ? x : repeat(x, heads_.queries / heads_.keys, -2);
  }

  /// Of tensors [batch, others…, attended…, heads, size] with so many axes.
  Equations equations(int rank) const {
    std::vector<int> axes = heads_.attention_axes;
    if (axes.empty()) {
      axes.resize(static_cast<std::size_t>(rank - 3));
      std::iota(axes.begin(), axes.end(), 1);
    }
    const std::string target = letters(0, rank);
    std::string source = target, batch, asked, answered;
    int next = rank;
    for (int& axis : axes) {
      const int given = axis;
      if (axis < 0) axis += rank - 1;
      const auto at = static_cast<std::size_t>(axis);
      if (axis < 1 || axis > rank - 3 || source[at] != target[at])
        throw UserError(error_text(
            text(description(), ": attention_axes name axis ", given, " of a query with ", rank - 1, " axes"),
            calling_line(), text("name each axis of steps once, from 1 to ", rank - 3)));
      source[static_cast<std::size_t>(axis)] = letters(next++, 1)[0];
    }
    for (int axis = 0; axis + 1 < rank; ++axis)
      if (source[static_cast<std::size_t>(axis)] == target[static_cast<std::size_t>(axis)])
        batch += target[static_cast<std::size_t>(axis)];
    for (int axis : axes) {
      asked += target[static_cast<std::size_t>(axis)];
      answered += source[static_cast<std::size_t>(axis)];
    }
    const std::string product = batch + asked + answered;
    return {source + "," + target + "->" + product, product + "," + source + "->" + target,
            static_cast<int>(axes.size())};
  }

  /// Which scores count: [batch, queries, keys], or nothing.
  Tensor allowed_of(const Tensors& inputs, const AttentionArguments& told, const Context& context) const {
    Tensor allowed = inputs.size() > 3 ? not_equal(inputs[3], 0) : Tensor();
    if (context.mask(0).defined()) allowed = both(allowed, expand_dims(context.mask(0), -1));
    if (context.mask(1).defined()) allowed = both(allowed, expand_dims(context.mask(1), -2));
    if (context.mask(2).defined()) allowed = both(allowed, expand_dims(context.mask(2), -2));
    const Dim queries = inputs[0].dim(1), keys = inputs[1].dim(1);
    if (told.use_causal_mask) allowed = both(allowed, causal_mask(queries, keys));
    if (heads_.sliding_window) allowed = both(allowed, window_mask(queries, keys, *heads_.sliding_window));
    return allowed;
  }

  /// softmax over the attended axes, which are the last.
  Tensor normalised(const Tensor& scores, Tensor allowed, const Equations& how) const {
    if (allowed.defined())
      while (allowed.rank() < scores.rank()) allowed = expand_dims(allowed, -2 * how.attended - 1);
    auto lines = [&](const Tensor& x) {
      if (how.attended == 1) return x;
      Shape shape;
      Dim keys = 1;
      for (int axis = 0; axis < x.rank(); ++axis) {
        if (axis < x.rank() - how.attended)
          shape.push_back(x.dim(axis));
        else
          keys = keys * x.dim(axis);
      }
      shape.push_back(keys);
      return reshape(x, shape);
    };
    Tensor out = allowed.defined() ? masked_softmax(lines(scores), lines(broadcast_to(allowed, scores.shape())))
                                   : softmax(lines(scores), -1);
    return how.attended == 1 ? out : reshape(out, scores.shape());
  }

  const Heads heads_;
  Layer query_, key_, gate_, value_, output_;
};

void require_sizes(const char* layer, std::initializer_list<std::int64_t> sizes, const char* what, Where where) {
  for (std::int64_t size : sizes)
    if (size <= 0) throw UserError(error_text(text(layer, ": ", what, " of ", size), where, "it is positive"));
}

template <class Options>
EinsumDenseOptions products_of(const Options& options) {
  return {.kernel_initializer = options.kernel_initializer,
          .bias_initializer = options.bias_initializer,
          .kernel_regularizer = options.kernel_regularizer,
          .bias_regularizer = options.bias_regularizer,
          .kernel_constraint = options.kernel_constraint,
          .bias_constraint = options.bias_constraint,
          .activity_regularizer = options.activity_regularizer,
          .dtype = options.dtype};
}

/// What both have.
template <class Options>
void heads_fields(Fields& f, Options& options) {
  f("dropout", options.dropout);
  f("use_bias", options.use_bias);
  f.besides("use_gate", options.use_gate, false);
  f.besides("sliding_window", options.sliding_window, std::nullopt);
  weight_fields(f, options);
  f("activity_regularizer", options.activity_regularizer);
  f("seed", options.seed);
}
struct MultiHeadAttentionRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "MultiHeadAttention";
  std::int64_t num_heads = 0, key_dim = 0;
  MultiHeadAttentionOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("num_heads", num_heads);
    f.required("key_dim", key_dim);
    if (!f.reading() && !options.value_dim) options.value_dim = key_dim;
    f("value_dim", options.value_dim);
    list_or_null_field(f, "output_shape", options.output_shape);
    list_or_null_field(f, "attention_axes", options.attention_axes);
    heads_fields(f, options);
  }
  Layer make(Where where) const { return MultiHeadAttention(num_heads, key_dim, options, where); }
};
struct GroupQueryAttentionRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "GroupQueryAttention";
  std::int64_t head_dim = 0, num_query_heads = 0, num_key_value_heads = 0;
  GroupQueryAttentionOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("head_dim", head_dim);
    f.required("num_query_heads", num_query_heads);
    f.required("num_key_value_heads", num_key_value_heads);
    heads_fields(f, options);
  }
  Layer make(Where where) const {
    return GroupQueryAttention(head_dim, num_query_heads, num_key_value_heads, options, where);
  }
};
const Savable<MultiHeadAttentionRecipe> savable_multi_head_attention;
const Savable<GroupQueryAttentionRecipe> savable_group_query_attention;

}  // namespace

MultiHeadAttention::MultiHeadAttention(std::int64_t num_heads, std::int64_t key_dim, MultiHeadAttentionOptions options,
                                       Where where)
    : AttentionLayer([&] {
        constexpr const char* layer = "MultiHeadAttention";
        require_sizes(layer, {num_heads}, "num_heads", where);
        require_sizes(layer, {key_dim}, "key_dim", where);
        require_sizes(layer, {options.value_dim.value_or(key_dim)}, "value_dim", where);
        require_sizes(layer, {options.sliding_window.value_or(1)}, "sliding_window", where);
        require_dropout(layer, options.dropout, where);
        return std::make_shared<HeadsBody>(Heads{.class_name = layer,
                                                 .queries = num_heads,
                                                 .keys = num_heads,
                                                 .key_dim = key_dim,
                                                 .value_dim = options.value_dim.value_or(key_dim),
                                                 .dropout = options.dropout,
                                                 .use_bias = options.use_bias,
                                                 .output_shape = options.output_shape,
                                                 .attention_axes = options.attention_axes,
                                                 .sliding_window = options.sliding_window,
                                                 .products = products_of(options),
                                                 .use_gate = options.use_gate,
                                                 .source = NoiseSource(options.seed, where)},
                                           options.name, options.dtype);
      }()) {
  note_recipe(*this, MultiHeadAttentionRecipe{num_heads, key_dim, options});
}

GroupQueryAttention::GroupQueryAttention(std::int64_t head_dim, std::int64_t num_query_heads,
                                         std::int64_t num_key_value_heads, GroupQueryAttentionOptions options,
                                         Where where)
    : AttentionLayer([&] {
        constexpr const char* layer = "GroupQueryAttention";
        require_sizes(layer, {head_dim}, "head_dim", where);
        require_sizes(layer, {num_query_heads}, "num_query_heads", where);
        require_sizes(layer, {num_key_value_heads}, "num_key_value_heads", where);
        require_sizes(layer, {options.sliding_window.value_or(1)}, "sliding_window", where);
        require_dropout(layer, options.dropout, where);
        if (num_query_heads % num_key_value_heads != 0)
          throw UserError(error_text(
              text(layer, ": ", num_query_heads, " heads of queries share ", num_key_value_heads, " of keys"), where,
              "num_query_heads is a multiple of num_key_value_heads"));
        return std::make_shared<HeadsBody>(Heads{.class_name = layer,
                                                 .queries = num_query_heads,
                                                 .keys = num_key_value_heads,
                                                 .key_dim = head_dim,
                                                 .value_dim = head_dim,
                                                 .dropout = options.dropout,
                                                 .use_bias = options.use_bias,
                                                 .sliding_window = options.sliding_window,
                                                 .products = products_of(options),
                                                 .activity_regularizer = options.activity_regularizer,
                                                 .use_gate = options.use_gate,
                                                 .source = NoiseSource(options.seed, where),
                                                 .most = 3},
                                           options.name, options.dtype);
      }()) {
  note_recipe(*this, GroupQueryAttentionRecipe{head_dim, num_query_heads, num_key_value_heads, options});
}

}  // namespace stet::keras
