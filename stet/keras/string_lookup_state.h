// What stands behind a StringLookup, and inside of a TextVectorization. Not a public header.
#pragma once
#include <string>
#include <vector>

#include "stet/keras/hash.h"
#include "stet/keras/lookup.h"
#include "stet/keras/token_index.h"

namespace stet::keras {

struct StringLookup::State {
  State(const char* layer, std::string name, const StringLookupOptions& options, Where where);

  /// The number of each, -1 for those that codes leave out.
  std::vector<std::int64_t> numbers(const std::vector<std::string>& tokens, Where where) const;
  /// Numbers in the form that output_mode says.
  Tensor finished(const Tensor& numbers, Where where) const;
  /// Modes that take the tokens of a row together.
  bool takes_rows() const;
  Strings inverted(const Tensor& numbers, Where where) const;
  void adapt(const std::vector<std::vector<std::string>>& documents, Where where);
  void set_vocabulary(const Vocabulary<std::string>& vocabulary, const std::vector<double>& idf_weights, Where where);
  std::vector<std::string> get_vocabulary(bool with_special, Where where) const;
  std::int64_t vocabulary_size(Where where) const;

  const std::string name, description;
  TokenIndex<std::string> index;
  const DType dtype;
  Binning binning;
};

}  // namespace stet::keras
