#include "stet/keras/einsum_dense.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/size_words.h"
#include "stet/keras/layer_fields.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/library_layer.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

/// "...ab,bc->...ac" in its parts.
struct Equation {
  std::string input, kernel, output;
  enum { nothing, front, back } elided = nothing;  // where an ellipsis stands
};

bool letters(const std::string& part) {
  return !part.empty() &&
         std::all_of(part.begin(), part.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
}

Equation parsed(const std::string& written, Where where) {
  std::string equation;
  for (char c : written)
    if (c != ' ') equation += c;
  const std::size_t comma = equation.find(','), arrow = equation.find("->");
  Equation out;
  if (comma != std::string::npos && arrow != std::string::npos && comma < arrow) {
    out.input = equation.substr(0, comma);
    out.kernel = equation.substr(comma + 1, arrow - comma - 1);
    out.output = equation.substr(arrow + 2);
    if (out.input.starts_with("...") && out.output.starts_with("...")) {
      out.elided = Equation::front;
      out.input.erase(0, 3);
      out.output.erase(0, 3);
    } else if (out.input.ends_with("...") && out.output.ends_with("...")) {
      out.elided = Equation::back;
      out.input.resize(out.input.size() - 3);
      out.output.resize(out.output.size() - 3);
    }
  }
  if (!letters(out.input) || !letters(out.kernel) || !letters(out.output))
    throw UserError(error_text(text("EinsumDense: the equation '", written, "'"), where,
                               "it is of the form ab,bc->ac, ...ab,bc->...ac or ab...,bc->ac..."));
  for (char c : out.output)
    if (out.input.find(c) == std::string::npos && out.kernel.find(c) == std::string::npos)
      throw UserError(error_text(
          text("EinsumDense: '", c, "' of the result of '", written, "' is neither in the input nor in the kernel"),
          where, "every letter of the result comes from one of them"));
  for (char c : out.kernel)
    if (out.input.find(c) == std::string::npos && out.output.find(c) == std::string::npos)
      throw UserError(error_text(
          text("EinsumDense: '", c, "' of the kernel of '", written, "' is neither in the input nor in the result"),
          where, "the sizes of the kernel come from them"));
  return out;
}

/// Files name the default as they name any other rule.
bool is_default(const Initializer& rule) {
  if (!rule.recipe()) return false;
  Fields::Place place{.call = "EinsumDense", .where = {}};
  return to_config(rule.recipe(), "", place) == to_config(Initializer("glorot_uniform").recipe(), "", place);
}

class EinsumDenseBody : public LibraryLayer {
 public:
  EinsumDenseBody(std::string written, Equation equation, ShapeSpec output_shape, EinsumDenseOptions options)
      : LibraryLayer("EinsumDense", options.name, {.least = 1, .layout = "[batch, …]"}, options.dtype,
                     {options.activation, options.activity_regularizer}),
        written_(std::move(written)),
        equation_(std::move(equation)),
        output_shape_(std::move(output_shape)),
        options_(std::move(options)) {}

  bool supports_masking() const override { return true; }

 protected:
  void make_weights(const Shape& input) override {
    require_rank(input, {});
    std::map<char, Dim> sizes = letter_sizes(input);
    Shape kernel, bias;
    for (char c : equation_.kernel) kernel.push_back(sizes.at(c));
    kernel_ =
        weight("kernel", kernel, {kernel_rule(kernel), "", options_.kernel_regularizer, options_.kernel_constraint});
    if (options_.bias_axes.empty()) return;
    const std::string& axes = options_.bias_axes;
    for (std::size_t i = equation_.output.find_first_of(axes); i < equation_.output.size(); ++i) {
      const char c = equation_.output[i];
      bias.push_back(axes.find(c) != std::string::npos ? sizes.at(c) : Dim(1));
    }
    for (int i = 0; equation_.elided == Equation::back && i < elided(input.rank()); ++i) bias.push_back(1);
    bias_ = weight("bias", bias, bias_rule_of(options_));
  }

  Tensor run(const Tensor& x, const Context& context) override {
    require_rank(x.shape(), context.where);
    for (std::size_t i = 0; i < equation_.kernel.size(); ++i) {
      const std::size_t axis = equation_.input.find(equation_.kernel[i]);
      if (axis != std::string::npos)
        require_size(x, input_axis(axis, x.rank()), kernel_.shape()[static_cast<int>(i)], "inputs", context.where);
    }
    Tensor out = einsum(written_, {x, in_compute_type(kernel_)});
    return bias_.defined() ? out + in_compute_type(bias_) : out;
  }

 private:
  int elided(int rank) const { return rank - static_cast<int>(equation_.input.size()); }
  void require_rank(const Shape& input, Where where) const {
    const int others = elided(input.rank());
    if (others == 0 || (others > 0 && equation_.elided != Equation::nothing)) return;
    throw UserError(
        error_text(text(description(), ": its input ", described(input), " does not fit the equation '", written_, "'"),
                   where, "each letter stands for one axis; ... for any number of others"));
  }
  int input_axis(std::size_t letter, int rank) const {
    return static_cast<int>(letter) + (equation_.elided == Equation::front ? elided(rank) : 0);
  }

  /// What every letter stands for: sizes of the input, then those of the result that were given.
  std::map<char, Dim> letter_sizes(const Shape& input) const {
    std::map<char, Dim> out;
    for (std::size_t i = 0; i < equation_.input.size(); ++i)
      out.emplace(equation_.input[i], input[input_axis(i, input.rank())]);
    // Of the given sizes the first axis is left out: it is the first letter, or the first that the ellipsis stands for.
    const bool in_front = equation_.elided == Equation::front && elided(input.rank()) > 0;
    const std::size_t begin = in_front ? 0 : 1, count = equation_.output.size() - begin;
    for (std::size_t i = 0; i < count; ++i) {
      // Where an ellipsis is in front the sizes may have its axes, too; the letters' are the last.
      const std::size_t more = output_shape_.dims.size() > count ? output_shape_.dims.size() - count : 0;
      const std::size_t given = equation_.elided == Equation::front ? i + more : i;
      if (given >= output_shape_.dims.size()) break;
      const std::optional<std::int64_t>& size = output_shape_.dims[given].size;
      if (!size) continue;
      const char c = equation_.output[begin + i];
      auto [known, is_new] = out.try_emplace(c, *size);
      if (!is_new &&
          !inside::require(known->second, Relation::equal, *size, {"EinsumDense", text("size of '", c, "'"), {}}))
        throw UserError(error_text(text(description(), ": '", c, "' of '", written_, "' is ", size_now(known->second),
                                        " in the input and ", *size, " in output_shape"),
                                   {}, "write dyn for sizes that the input tells"));
    }
    for (char c : equation_.output + equation_.kernel)
      if (!out.contains(c))
        throw UserError(error_text(text(description(), ": nothing tells the size of '", c, "' of '", written_, "'"), {},
                                   "give it in output_shape, which has all axes of the result but the first"));
    return out;
  }

  /// Without one of the user's: as of a matrix of what is summed over, and what is left.
  Initializer kernel_rule(const Shape& kernel) const {
    if (options_.kernel_initializer.defined() && !is_default(options_.kernel_initializer))
      return options_.kernel_initializer;
    Dim summed = 1, left = 1;
    std::vector<int> order, back(equation_.kernel.size());
    for (bool wanted : {true, false})
      for (std::size_t i = 0; i < equation_.kernel.size(); ++i) {
        const bool is_summed = equation_.output.find(equation_.kernel[i]) == std::string::npos;
        if (is_summed != wanted) continue;
        (is_summed ? summed : left) = (is_summed ? summed : left) * kernel[static_cast<int>(i)];
        back[i] = static_cast<int>(order.size());
        order.push_back(static_cast<int>(i));
      }
    return [summed, left, order, back](const Shape& shape, DType dtype) {
      Shape moved;
      for (int axis : order) moved.push_back(shape[axis]);
      Tensor drawn = Initializer("glorot_uniform")(Shape({summed.value(), left.value()}), dtype);
      return transpose(reshape(drawn, moved), back);
    };
  }

  const std::string written_;
  const Equation equation_;
  const ShapeSpec output_shape_;
  const EinsumDenseOptions options_;
  Variable kernel_, bias_;
};

struct EinsumDenseRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "EinsumDense";
  std::string equation = {};
  ShapeSpec output_shape = {};
  EinsumDenseOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("equation", equation);
    f.required("output_shape");
    shape_field(f, "output_shape", output_shape);
    f("activation", options.activation);
    if (f.reading() || options.bias_axes.empty()) {
      std::optional<std::string> given;
      f("bias_axes", given);
      options.bias_axes = given.value_or("");
    } else {
      f("bias_axes", options.bias_axes);
    }
    weight_fields(f, options);
    f("activity_regularizer", options.activity_regularizer);
  }
  Layer make(Where where) const { return EinsumDense(equation, output_shape, options, where); }
};
const Savable<EinsumDenseRecipe> savable_einsum_dense;

}  // namespace

EinsumDense::EinsumDense(const std::string& equation, const ShapeSpec& output_shape, EinsumDenseOptions options,
                         Where where)
    : Layer([&] {
        Equation parts = parsed(equation, where);
        for (char c : options.bias_axes)
          if (parts.output.find(c) == std::string::npos)
            throw UserError(
                error_text(text("EinsumDense: the bias has '", c, "', which the result of '", equation, "' has not"),
                           where, "bias_axes are letters of the result"));
        return std::make_shared<EinsumDenseBody>(equation, std::move(parts), output_shape, options);
      }()) {
  note_recipe(*this, EinsumDenseRecipe{equation, output_shape, std::move(options)});
}

}  // namespace stet::keras
