// The vocabulary of a lookup: how it is checked, found and asked. Not a public header.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "stet/base/lock.h"
#include "stet/base/where.h"
#include "stet/keras/lookup.h"

namespace stet::keras {

/// What IntegerLookup and StringLookup are told alike.
template <class Token>
struct IndexSettings {
  const char* layer;  // "StringLookup": messages name the class before there is a layer
  std::optional<std::int64_t> max_tokens;
  std::int64_t num_oov_indices;
  std::optional<Token> mask_token;
  Token oov_token;
  bool invert;
  std::string output_mode;
  bool pad_to_max_tokens;

  void check(const Vocabulary<Token>& vocabulary, const std::vector<double>& idf_weights, Where where) const;
  /// The number of the first token that is none of the special ones.
  std::int64_t oov_start() const { return mask_token && output_mode == "int" ? 1 : 0; }
  std::int64_t token_start() const { return oov_start() + num_oov_indices; }
  std::vector<Token> special_tokens() const;
};

/// A vocabulary that is set; never changed.
template <class Token>
struct TokenTable {
  std::vector<Token> tokens;  // without the special ones
  std::unordered_map<Token, std::int64_t> positions;
  std::vector<float> idf_weights;  // of all numbers, with "tf_idf"
};

/// How often each token was seen, and in how many documents.
template <class Token>
struct TokenCounts {
  struct Count {
    std::int64_t times = 0, documents = 0, last_document = -1;
  };
  std::unordered_map<Token, Count> counts;
  std::int64_t documents = 0;
  void add_document(const Token* tokens, std::size_t count);
};

/// The vocabulary as it is now. Any number of threads may use it.
template <class Token>
class TokenIndex {
 public:
  using Table = TokenTable<Token>;
  TokenIndex(IndexSettings<Token> settings, const Vocabulary<Token>& vocabulary, const std::vector<double>& idf_weights,
             Where where);
  const IndexSettings<Token>& settings() const { return settings_; }

  void set(const Vocabulary<Token>& vocabulary, const std::vector<double>& idf_weights, Where where);
  /// UserError where the vocabulary was given; `description` is the layer's.
  void require_adaptable(const std::string& description, Where where) const;
  void adapt(const TokenCounts<Token>& seen);
  /// UserError where there is none yet.
  std::shared_ptr<const Table> table(const std::string& description, Where where) const;
  /// Null where there is none yet.
  std::shared_ptr<const Table> table_if_any() const;

  std::int64_t size(const Table& table) const;
  /// How wide codes are.
  std::int64_t depth(const Table& table) const;
  std::vector<Token> tokens(const Table& table, bool with_special) const;

 private:
  void replace(Table table);
  const IndexSettings<Token> settings_;
  const bool given_;
  mutable Lock guard_;
  std::shared_ptr<const Table> table_;
};

extern template struct IndexSettings<std::int64_t>;
extern template struct IndexSettings<std::string>;
extern template struct TokenCounts<std::int64_t>;
extern template struct TokenCounts<std::string>;
extern template class TokenIndex<std::int64_t>;
extern template class TokenIndex<std::string>;

}  // namespace stet::keras
