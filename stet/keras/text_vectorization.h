// TextVectorization: texts to numbers of their words.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/keras/lookup.h"

namespace stet::keras {

/// What is done to a text before it is split: one of Keras's names, a function of it, or nothing.
class STET_API Standardize {
 public:
  Standardize(const char* name) : name(name) {}
  Standardize(std::string name) : name(std::move(name)) {}
  Standardize(std::nullptr_t) {}
  template <class F>
  requires std::is_invocable_r_v<std::string, F&, const std::string&> Standardize(F f) : call(std::move(f)) {}
  std::string name;  // empty, and no function: nothing
  std::function<std::string(const std::string&)> call;
};
/// How it becomes tokens: one of Keras's names, a function of it, or not at all.
class STET_API Split {
 public:
  Split(const char* name) : name(name) {}
  Split(std::string name) : name(std::move(name)) {}
  Split(std::nullptr_t) {}
  template <class F>
  requires std::is_invocable_r_v<std::vector<std::string>, F&, const std::string&> Split(F f) : call(std::move(f)) {}
  std::string name;
  std::function<std::vector<std::string>(const std::string&)> call;
};
/// Widths of what tokens are joined to: 2 is 1 and 2, {2} is 2 alone.
class STET_API Ngrams {
 public:
  Ngrams() = default;
  Ngrams(int up_to);
  Ngrams(std::initializer_list<int> widths) : widths(widths) {}
  Ngrams(std::vector<int> widths) : widths(std::move(widths)) {}
  std::vector<int> widths = {};
  bool given() const { return !widths.empty(); }
};

struct TextVectorizationOptions {
  std::optional<std::int64_t> max_tokens = {};  // as StringLookup's
  /// "lower_and_strip_punctuation", "lower" (both know ASCII only, as Keras), "strip_punctuation", a function, nullptr.
  Standardize standardize = "lower_and_strip_punctuation";
  /// "whitespace" (of ASCII), "character" (code points), a function, or nullptr: every string is a token.
  Split split = "whitespace";
  Ngrams ngrams = {};
  std::string output_mode = "int";
  std::optional<std::int64_t> output_sequence_length = {};  // with "int": cut, or filled up with 0, to so many
  bool pad_to_max_tokens = false;
  Vocabulary<std::string> vocabulary = {};
  std::vector<double> idf_weights = {};
  std::string encoding = "utf-8";
  std::string name = {};
  DTypePolicy dtype = {};
};
/// Numbers of the words of texts: 0 is what fills up short ones, 1 what is not in the vocabulary. Texts are host data:
/// it is called before a model, or a Dataset, gets what it gives. Copies share the vocabulary. Ragged results are not
/// there: they are filled up.
class STET_API TextVectorization {
 public:
  explicit TextVectorization(TextVectorizationOptions options = {}, Where where = Where::here());
  /// Of texts [n] or [n, 1]: i64 [n, longest], or what output_mode says. Without a split, of tokens [n] or rows of
  /// them.
  Tensor operator()(const Strings& texts, Where where = Where::here()) const;
  /// The vocabulary becomes the words of the texts, the most frequent first; every text is a document.
  void adapt(const Strings& texts, Where where = Where::here()) const;
  void set_vocabulary(const Vocabulary<std::string>& vocabulary, const std::vector<double>& idf_weights = {},
                      Where where = Where::here()) const;
  std::vector<std::string> get_vocabulary(GetVocabularyOptions options = {}, Where where = Where::here()) const;
  std::int64_t vocabulary_size(Where where = Where::here()) const;
  const std::string& name() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace stet::keras
