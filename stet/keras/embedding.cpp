#include "stet/keras/embedding.h"

#include <memory>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/layer_fields.h"
#include "stet/keras/library_layer.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

class EmbeddingBody : public LibraryLayer {
 public:
  EmbeddingBody(std::int64_t input_dim, std::int64_t output_dim, EmbeddingOptions options)
      : LibraryLayer("Embedding", options.name, {.layout = "[batch, …]", .cast = false}, options.dtype,
                     {.activity_regularizer = options.activity_regularizer}),
        input_dim_(input_dim),
        output_dim_(output_dim),
        options_(std::move(options)) {}

  bool supports_masking() const override { return options_.mask_zero; }
  Tensors compute_mask(const Tensors& inputs, const Tensors&) override {
    return options_.mask_zero ? Tensors{numbers(inputs[0]) != 0} : Tensors{};
  }

 protected:
  void make_weights(const Shape&) override {
    embeddings_ = weight(
        "embeddings", {input_dim_, output_dim_},
        {options_.embeddings_initializer, "uniform", options_.embeddings_regularizer, options_.embeddings_constraint});
  }
  Tensor run(const Tensor& x, const Context&) override {
    // Rows are cast, of which there are often fewer than in the matrix.
    Tensor rows = gather(embeddings_, numbers(x), 0);
    return rows.dtype() == compute_dtype() ? rows : cast(rows, compute_dtype());
  }

 private:
  static Tensor numbers(const Tensor& x) {
    return x.dtype() == DType::i32 || x.dtype() == DType::i64 ? x : cast(x, DType::i32);
  }

  const std::int64_t input_dim_, output_dim_;
  const EmbeddingOptions options_;
  Variable embeddings_;
};

struct EmbeddingRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "Embedding";
  std::int64_t input_dim = 0, output_dim = 0;
  EmbeddingOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("input_dim", input_dim);
    f.required("output_dim", output_dim);
    f("embeddings_initializer", options.embeddings_initializer, "uniform");
    f("embeddings_regularizer", options.embeddings_regularizer);
    f("embeddings_constraint", options.embeddings_constraint);
    f("activity_regularizer", options.activity_regularizer);
    f("mask_zero", options.mask_zero);
  }
  Layer make(Where where) const { return Embedding(input_dim, output_dim, options, where); }
};
struct MaskingRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "Masking";
  MaskingOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f("mask_value", options.mask_value);
  }
  Layer make(Where) const { return Masking(options); }
};
const Savable<EmbeddingRecipe> savable_embedding;
const Savable<MaskingRecipe> savable_masking;

}  // namespace

Embedding::Embedding(std::int64_t input_dim, std::int64_t output_dim, EmbeddingOptions options, Where where)
    : Layer(std::make_shared<EmbeddingBody>(input_dim, output_dim, options)) {
  if (input_dim <= 0 || output_dim <= 0)
    throw UserError(error_text(text("Embedding: ", input_dim, " rows of ", output_dim, " values"), where,
                               "input_dim is the largest number plus one, output_dim the length of a row; both are "
                               "positive"));
  note_recipe(*this, EmbeddingRecipe{input_dim, output_dim, std::move(options)});
}

Masking::Masking(MaskingOptions options)
    : Layer(plain_layer(
          {.class_name = "Masking",
           .name = options.name,
           .takes = {.least = 2, .layout = "[batch, steps, …, features]"},
           .call = [value = options.mask_value](
                       const Tensor& x,
                       const Context&) { return where(any(x != value, -1, {.keepdims = true}), x, 0); },
           .supports_masking = true,
           .compute_mask = [value = options.mask_value](
                               const Tensors& inputs, const Tensors&) { return Tensors{any(inputs[0] != value, -1)}; },
           .policy = options.dtype})) {
  note_recipe(*this, MaskingRecipe{options});
}

}  // namespace stet::keras
