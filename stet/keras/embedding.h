// Embedding and Masking: what a sequence of tokens, or of padded steps, begins with.
#pragma once
#include <cstdint>
#include <string>

#include "stet/keras/layer.h"
#include "stet/keras/policy.h"

namespace stet::keras {

struct EmbeddingOptions {
  Initializer embeddings_initializer = {};  // none: "uniform"
  Regularizer embeddings_regularizer = {};
  Constraint embeddings_constraint = {};
  bool mask_zero = false;                 // 0 is padding: what comes out has a mask that leaves such places out
  Regularizer activity_regularizer = {};  // of the output, divided by the number of samples
  std::string name = {};
  DTypePolicy dtype = {};
};
/// The rows of a matrix [input_dim, output_dim] with these numbers: integers of any shape [batch, …] give
/// [batch, …, output_dim]. Floating inputs are cut to integers. A number that is not in 0 … input_dim - 1 is a
/// UserError.
class STET_API Embedding : public Layer {
 public:
  Embedding(std::int64_t input_dim, std::int64_t output_dim, EmbeddingOptions options = {},
            Where where = Where::here());
  STET_HANDLE(Embedding, Layer)
};

struct MaskingOptions {
  double mask_value = 0;
  std::string name = {};
  DTypePolicy dtype = {};
};
/// Leaves out steps whose values all equal mask_value: x [batch, steps, …, features] stays as it is but for such steps,
/// which become 0, and gets the mask [batch, steps, …] of the others.
class STET_API Masking : public Layer {
 public:
  explicit Masking(MaskingOptions options = {});
  STET_HANDLE(Masking, Layer)
};

}  // namespace stet::keras
