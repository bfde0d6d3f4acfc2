// Layers that number the words of a vocabulary, and give the words of numbers.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stet/data/dataset.h"
#include "stet/keras/categories.h"
#include "stet/keras/layer.h"
#include "stet/keras/policy.h"
#include "stet/keras/strings.h"

namespace stet::keras {

/// The tokens of a lookup in the order of their numbers: a list, or the path of a file with one token a line. The mask
/// and out-of-vocabulary tokens may stand before them.
template <class Token>
class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(std::vector<Token> list) : list(std::move(list)), given(true) {}
  Vocabulary(std::initializer_list<Token> list) : list(list), given(true) {}
  Vocabulary(const char* path) : path(path), given(true) {}
  Vocabulary(std::string path) : path(std::move(path)), given(true) {}
  std::vector<Token> list;
  std::string path;
  bool given = false;
};

struct GetVocabularyOptions {
  bool include_special_tokens = true;  // the mask and out-of-vocabulary tokens, so that positions are numbers
};

struct IntegerLookupOptions {
  std::optional<std::int64_t> max_tokens = {};  // adapt() keeps as many, the special ones counted
  /// How many numbers there are for what is not in the vocabulary, by a hash; 0: that is a UserError.
  std::int64_t num_oov_indices = 1;
  std::optional<std::int64_t> mask_token = {};  // is 0 in mode "int", and left out in others
  std::int64_t oov_token = -1;                  // what `invert` gives for numbers that no token has
  Vocabulary<std::int64_t> vocabulary = {};     // none: adapt() finds it
  std::vector<double> idf_weights = {};         // with "tf_idf": one for each of the vocabulary
  bool invert = false;                          // numbers to tokens
  std::string output_mode = "int";              // categories.h says which there are
  bool pad_to_max_tokens = false;               // other modes than "int": as wide as max_tokens
  std::string oov_method = "floormod";          // token % num_oov_indices; or "farmhash"
  std::optional<Salt> salt = {};                // with "farmhash": SipHash with this key
  std::string name = {};
  DTypePolicy dtype = {};
};
/// The number of each integer, i64: mask, what is not in the vocabulary, then the tokens in order. A layer of models,
/// traced functions and Dataset::map.
class STET_API IntegerLookup : public Layer {
 public:
  explicit IntegerLookup(IntegerLookupOptions options = {}, Where where = Where::here());
  /// The vocabulary becomes what the data has, the most frequent first, of equals the largest. A vector is a list of
  /// documents of one token.
  void adapt(const Tensor& data, Where where = Where::here()) const;
  void adapt(const data::Dataset<Tensor>& batches, Where where = Where::here()) const;
  void set_vocabulary(const Vocabulary<std::int64_t>& vocabulary, const std::vector<double>& idf_weights = {},
                      Where where = Where::here()) const;
  std::vector<std::int64_t> get_vocabulary(GetVocabularyOptions options = {}, Where where = Where::here()) const;
  std::int64_t vocabulary_size(Where where = Where::here()) const;
  STET_HANDLE(IntegerLookup, Layer)
};

struct StringLookupOptions {
  std::optional<std::int64_t> max_tokens = {};  // all as IntegerLookup's
  std::int64_t num_oov_indices = 1;
  std::optional<std::string> mask_token = {};
  std::string oov_token = "[UNK]";
  Vocabulary<std::string> vocabulary = {};
  std::vector<double> idf_weights = {};
  bool invert = false;
  std::string output_mode = "int";
  bool pad_to_max_tokens = false;
  std::string encoding = "utf-8";  // there is no other
  std::optional<Salt> salt = {};
  std::string name = {};
  DTypePolicy dtype = {};
};
/// The same of strings. They are host data: it is called before a model, or a Dataset, gets what it gives. Copies share
/// the vocabulary.
class STET_API StringLookup {
 public:
  explicit StringLookup(StringLookupOptions options = {}, Where where = Where::here());
  /// i64 in the shape of the strings, or what output_mode says. In modes that take the last axis together, rows may
  /// have any lengths.
  Tensor operator()(const Strings& strings, Where where = Where::here()) const;
  /// With `invert`: the strings of numbers, [] [n] or [n, m].
  Strings operator()(const Tensor& numbers, Where where = Where::here()) const;
  void adapt(const Strings& data, Where where = Where::here()) const;
  void set_vocabulary(const Vocabulary<std::string>& vocabulary, const std::vector<double>& idf_weights = {},
                      Where where = Where::here()) const;
  std::vector<std::string> get_vocabulary(GetVocabularyOptions options = {}, Where where = Where::here()) const;
  std::int64_t vocabulary_size(Where where = Where::here()) const;
  const std::string& name() const;

 private:
  friend class TextVectorization;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace stet::keras
