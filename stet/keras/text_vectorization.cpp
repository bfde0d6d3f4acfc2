#include "stet/keras/text_vectorization.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/category_codes.h"
#include "stet/keras/spatial.h"
#include "stet/keras/string_lookup_state.h"
#include "stet/keras/utf8.h"
#include "stet/ops/ops.h"

namespace stet::keras {

Ngrams::Ngrams(int up_to) : widths(static_cast<std::size_t>(std::max(up_to, 0))) {
  std::iota(widths.begin(), widths.end(), 1);
  if (widths.empty()) widths.push_back(up_to);  // for the message
}

struct TextVectorization::State {
  State(TextVectorizationOptions given, Where where)
      : options(std::move(given)),
        lookup("TextVectorization", options.name,
               {.max_tokens = options.max_tokens,
                .mask_token = "",
                .vocabulary = options.vocabulary,
                .idf_weights = options.idf_weights,
                .output_mode = options.output_mode,
                .pad_to_max_tokens = options.pad_to_max_tokens,
                .encoding = options.encoding,
                .dtype = options.dtype},
               where) {}

  bool splits() const { return options.split.call || !options.split.name.empty(); }

  std::string standardized(const std::string& text) const {
    const Standardize& how = options.standardize;
    if (how.call) return how.call(text);
    std::string out = text;
    if (how.name.starts_with("lower")) out = ascii_lower_case(std::move(out));
    if (how.name.ends_with("strip_punctuation")) out = without_punctuation(std::move(out));
    return out;
  }
  std::vector<std::string> split(const std::string& text) const {
    const Split& how = options.split;
    if (how.call) return how.call(text);
    return how.name == "whitespace" ? words(text) : characters(text);
  }

  /// The tokens of each text, or row.
  std::vector<std::vector<std::string>> tokens(const Strings& texts, Where where) const {
    require_utf8(texts, lookup.description, where);
    std::vector<std::string> standard;
    for (const std::string& text : texts.values()) standard.push_back(standardized(text));
    if (options.standardize.call) require_utf8(standard, text(lookup.description, ": after standardize"), where);
    std::vector<std::vector<std::string>> rows;
    if (splits()) {
      for (std::size_t i = 0; texts.rank() == 2 && i < texts.lengths().size(); ++i)
        if (texts.lengths()[i] != 1)
          throw UserError(error_text(text(lookup.description, ": row ", i, " has ", texts.lengths()[i], " texts"),
                                     where,
                                     "it splits texts, [n] or [n, 1]; tokens that are split already need {.split = "
                                     "nullptr}"));
      for (const std::string& one : standard) rows.push_back(split(one));
    } else {
      auto at = standard.begin();
      for (std::size_t length : texts.lengths()) {
        rows.emplace_back(at, at + static_cast<std::ptrdiff_t>(length));
        at += static_cast<std::ptrdiff_t>(length);
      }
    }
    if (options.ngrams.given())
      for (auto& row : rows) row = ngrams(row, options.ngrams.widths);
    return rows;
  }

  /// With "int": of one length.
  static Strings filled(std::vector<std::vector<std::string>> rows, std::optional<std::int64_t> wanted) {
    std::size_t length = 0;
    for (const auto& row : rows) length = std::max(length, row.size());
    if (wanted) length = static_cast<std::size_t>(*wanted);
    for (auto& row : rows) row.resize(length);  // "" is the mask, and 0
    return rows;
  }

  Tensor call(const Strings& texts, Where where) const {
    std::vector<std::vector<std::string>> rows = tokens(texts, where);
    if (rows.empty() && options.output_mode == "int")
      return zeros({0, options.output_sequence_length.value_or(0)}, DType::i64, where);
    // One text, and tokens that are not to be split, have no rows.
    const bool one_row = texts.rank() == 0 || (texts.rank() == 1 && !splits());
    Strings shaped(rows);
    if (one_row)
      shaped = rows[0];
    else if (options.output_mode == "int")
      shaped = filled(std::move(rows), options.output_sequence_length);
    if (texts.rank() == 0 && options.output_mode == "int" && options.output_sequence_length)
      shaped = filled({rows[0]}, options.output_sequence_length).values();
    const std::vector<std::int64_t> numbers = lookup.numbers(shaped.values(), where);
    return lookup.finished(in_shape_of(shaped, numbers, lookup.takes_rows(), lookup.description, where), where);
  }

  const TextVectorizationOptions options;
  StringLookup::State lookup;
};

TextVectorization::TextVectorization(TextVectorizationOptions options, Where where) {
  constexpr const char* layer = "TextVectorization";
  if (!options.standardize.name.empty())
    require_name(layer, "standardize", options.standardize.name,
                 {"lower_and_strip_punctuation", "lower", "strip_punctuation"}, where);
  if (!options.split.name.empty()) require_name(layer, "split", options.split.name, {"whitespace", "character"}, where);
  for (int width : options.ngrams.widths) require_at_least(layer, "ngrams", width, 1, where);
  if (options.output_sequence_length) {
    require_at_least(layer, "output_sequence_length", *options.output_sequence_length, 0, where);
    if (options.output_mode != "int")
      throw UserError(error_text(text(layer, ": output_sequence_length with output_mode \"", options.output_mode, "\""),
                                 where, "it is for \"int\": codes have the size of the vocabulary"));
  }
  state_ = std::make_shared<State>(std::move(options), where);
}

Tensor TextVectorization::operator()(const Strings& texts, Where where) const {
  const bool whole = texts.rank() == 1 && !state_->splits();
  if (whole && (state_->options.ngrams.given() || state_->options.output_sequence_length))
    throw UserError(error_text(text(state_->lookup.description, ": a list of tokens without rows"), where,
                               "ngrams and output_sequence_length are of rows: {{\"a\", \"b\"}, {\"c\", \"d\"}}"));
  return state_->call(texts, where);
}
void TextVectorization::adapt(const Strings& texts, Where where) const {
  if (texts.rank() == 1 && !state_->splits()) {  // every token is a document
    std::vector<std::vector<std::string>> documents;
    for (const std::string& token : texts.values()) documents.push_back({token});
    return state_->lookup.adapt(state_->tokens(documents, where), where);
  }
  state_->lookup.adapt(state_->tokens(texts, where), where);
}
void TextVectorization::set_vocabulary(const Vocabulary<std::string>& vocabulary,
                                       const std::vector<double>& idf_weights, Where where) const {
  state_->lookup.set_vocabulary(vocabulary, idf_weights, where);
}
std::vector<std::string> TextVectorization::get_vocabulary(GetVocabularyOptions options, Where where) const {
  return state_->lookup.get_vocabulary(options.include_special_tokens, where);
}
std::int64_t TextVectorization::vocabulary_size(Where where) const { return state_->lookup.vocabulary_size(where); }
const std::string& TextVectorization::name() const { return state_->lookup.name; }

}  // namespace stet::keras
