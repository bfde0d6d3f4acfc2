#include "stet/keras/token_index.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <mutex>
#include <numeric>
#include <type_traits>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/category_codes.h"
#include "stet/keras/spatial.h"
#include "stet/keras/utf8.h"

namespace stet::keras {
namespace {

std::string shown(std::int64_t token) { return text(token); }
std::string shown(const std::string& token) { return text("\"", token, "\""); }
template <class Token>
std::string shown(const std::vector<Token>& tokens) {
  std::string out;
  for (const Token& token : tokens) out += text(out.empty() ? "" : ", ", shown(token));
  return out;
}

[[noreturn]] void fail(const char* layer, const std::string& problem, const std::string& advice, Where where) {
  throw UserError(error_text(text(layer, ": ", problem), where, advice));
}

std::vector<std::string> lines_of(const char* layer, const std::string& path, Where where) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(layer, text("there is no vocabulary file '", path, "' that can be read"), "check its path", where);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
  }
  if (file.bad())
    fail(layer, text("the vocabulary file '", path, "' cannot be read"), "check that it is a file", where);
  return lines;
}

std::optional<std::string> token_from(const std::string& line, std::string) {
  return first_invalid_byte(line) ? std::nullopt : std::optional(line);
}
std::optional<std::int64_t> token_from(const std::string& line, std::int64_t) {
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (problem != std::errc{} || end != line.data() + line.size()) return std::nullopt;
  return number;
}

/// The tokens of a vocabulary, special ones and all, and how messages say where one stands.
template <class Token>
struct Listed {
  std::vector<Token> tokens;
  std::string path;
  std::string place(std::size_t i) const {
    return path.empty() ? text("at position ", i) : text("in line ", i + 1, " of '", path, "'");
  }
};

template <class Token>
Listed<Token> listed(const char* layer, const Vocabulary<Token>& vocabulary, Where where) {
  Listed<Token> out{vocabulary.list, vocabulary.path};
  if (vocabulary.path.empty()) {
    if constexpr (std::is_same_v<Token, std::string>) require_utf8(vocabulary.list, layer, where);
    return out;
  }
  const std::vector<std::string> lines = lines_of(layer, vocabulary.path, where);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto token = token_from(lines[i], Token());
    if (!token)
      fail(layer, text("line ", i + 1, " of '", vocabulary.path, "' is no token: \"", lines[i], "\""),
           std::is_same_v<Token, std::string> ? "the file is UTF-8, with one token a line"
                                              : "the file has one integer a line",
           where);
    out.tokens.push_back(*token);
  }
  return out;
}

/// UserError for tokens that are there twice, and special ones that are not in front.
template <class Token>
void require_distinct(const IndexSettings<Token>& settings, const Listed<Token>& all, std::size_t first, Where where) {
  std::unordered_map<Token, std::size_t> seen;
  for (std::size_t i = first; i < all.tokens.size(); ++i) {
    const Token& token = all.tokens[i];
    const auto [before, is_new] = seen.emplace(token, i);
    if (!is_new)
      fail(settings.layer,
           text("the vocabulary has ", shown(token), " twice, ", all.place(before->second), " and ", all.place(i)),
           "every token has one number: leave one of them out", where);
    const bool mask = settings.mask_token == token, oov = settings.invert && token == settings.oov_token;
    if (mask || oov)
      fail(settings.layer,
           text("the ", mask ? "mask" : "out-of-vocabulary", " token ", shown(token), " stands ", all.place(i),
                " of the vocabulary"),
           settings.special_tokens().empty() ? "leave it out"
                                             : text("leave it out, or begin with ", shown(settings.special_tokens())),
           where);
    if constexpr (std::is_same_v<Token, std::string>)
      if (token.empty() && !all.path.empty())
        fail(settings.layer, text("line ", i + 1, " of '", all.path, "' is empty"), "the file has one token a line",
             where);
  }
}

}  // namespace

template <class Token>
std::vector<Token> IndexSettings<Token>::special_tokens() const {
  std::vector<Token> out;
  if (oov_start() == 1) out.push_back(*mask_token);
  out.insert(out.end(), static_cast<std::size_t>(num_oov_indices), oov_token);
  return out;
}

template <class Token>
void IndexSettings<Token>::check(const Vocabulary<Token>& vocabulary, const std::vector<double>& idf_weights,
                                 Where where) const {
  require_output_mode(layer, output_mode, true, true, where);
  require_at_least(layer, "num_oov_indices", num_oov_indices, 0, where);
  if (max_tokens) require_at_least(layer, "max_tokens", *max_tokens, 2, where);
  if (max_tokens && *max_tokens <= token_start())
    fail(layer, text("max_tokens is ", *max_tokens, ", and there are ", token_start(), " special tokens"),
         "max_tokens counts them: give it more", where);
  if (pad_to_max_tokens && !max_tokens) fail(layer, "pad_to_max_tokens without max_tokens", "give max_tokens", where);
  if (invert && output_mode != "int")
    fail(layer, text("invert with output_mode \"", output_mode, "\""), "inverted, it gives tokens: leave \"int\"",
         where);
  const bool tf_idf = output_mode == "tf_idf";
  if (!idf_weights.empty() && !tf_idf)
    fail(layer, text("idf_weights with output_mode \"", output_mode, "\""), "they are for \"tf_idf\"", where);
  if (tf_idf && vocabulary.given && idf_weights.empty())
    fail(layer, "a vocabulary for \"tf_idf\" without idf_weights", "give each token a weight, or call adapt()", where);
  if (!vocabulary.given && !idf_weights.empty())
    fail(layer, "idf_weights without a vocabulary", "give both, or none and call adapt()", where);
}

template <class Token>
void TokenCounts<Token>::add_document(const Token* tokens, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    Count& of = counts[tokens[i]];
    ++of.times;
    if (std::exchange(of.last_document, documents) != documents) ++of.documents;
  }
  ++documents;
}

template <class Token>
TokenIndex<Token>::TokenIndex(IndexSettings<Token> settings, const Vocabulary<Token>& vocabulary,
                              const std::vector<double>& idf_weights, Where where)
    : settings_(std::move(settings)), given_(vocabulary.given) {
  settings_.check(vocabulary, idf_weights, where);
  if (vocabulary.given) set(vocabulary, idf_weights, where);
}

template <class Token>
void TokenIndex<Token>::set(const Vocabulary<Token>& vocabulary, const std::vector<double>& idf_weights, Where where) {
  settings_.check(vocabulary, idf_weights, where);
  const Listed<Token> all = listed(settings_.layer, vocabulary, where);
  if (all.tokens.empty())
    fail(settings_.layer, all.path.empty() ? "an empty vocabulary" : text("'", all.path, "' is empty"),
         "give it a token, or call adapt()", where);
  const std::vector<Token> special = settings_.special_tokens();
  const bool has_special =
      all.tokens.size() >= special.size() && std::equal(special.begin(), special.end(), all.tokens.begin());
  const std::size_t first = has_special ? special.size() : 0;
  require_distinct(settings_, all, first, where);
  Table table;
  table.tokens.assign(all.tokens.begin() + static_cast<std::ptrdiff_t>(first), all.tokens.end());
  if (settings_.max_tokens && size(table) > *settings_.max_tokens)
    fail(settings_.layer, text("a vocabulary of ", size(table), " tokens, and max_tokens is ", *settings_.max_tokens),
         "the mask and out-of-vocabulary tokens count: give max_tokens more, or fewer tokens", where);
  if (settings_.output_mode == "tf_idf") {
    if (idf_weights.size() != all.tokens.size())
      fail(settings_.layer, text(idf_weights.size(), " idf_weights for ", all.tokens.size(), " tokens"),
           "give each token one", where);
    const double average =
        std::accumulate(idf_weights.begin(), idf_weights.end(), 0.0) / static_cast<double>(idf_weights.size());
    if (!has_special) table.idf_weights.assign(special.size(), static_cast<float>(average));
    for (double weight : idf_weights) table.idf_weights.push_back(static_cast<float>(weight));
  }
  replace(std::move(table));
}

template <class Token>
void TokenIndex<Token>::require_adaptable(const std::string& description, Where where) const {
  if (given_)
    throw UserError(error_text(text("adapt: ", description, " was given its vocabulary"), where,
                               "make it without one, or call set_vocabulary()"));
}

template <class Token>
void TokenIndex<Token>::adapt(const TokenCounts<Token>& seen) {
  using Entry = std::pair<Token, typename TokenCounts<Token>::Count>;
  std::vector<Entry> found(seen.counts.begin(), seen.counts.end());
  std::erase_if(found, [&](const Entry& entry) {
    return settings_.mask_token == entry.first || settings_.oov_token == entry.first;
  });
  std::sort(found.begin(), found.end(), [](const Entry& a, const Entry& b) {
    return a.second.times != b.second.times ? a.second.times > b.second.times : a.first > b.first;
  });
  if (settings_.max_tokens)
    found.resize(std::min(found.size(), static_cast<std::size_t>(*settings_.max_tokens - settings_.token_start())));
  Table table;
  std::vector<float> weights;
  float sum = 0;
  for (const auto& [token, count] : found) {
    table.tokens.push_back(token);
    weights.push_back(static_cast<float>(
        std::log(1 + static_cast<double>(seen.documents) / static_cast<double>(1 + count.documents))));
    sum += weights.back();
  }
  if (settings_.output_mode == "tf_idf") {
    const float average = weights.empty() ? 0.0f : sum / static_cast<float>(weights.size());
    table.idf_weights.assign(static_cast<std::size_t>(settings_.token_start()), average);
    table.idf_weights.insert(table.idf_weights.end(), weights.begin(), weights.end());
  }
  replace(std::move(table));
}

template <class Token>
void TokenIndex<Token>::replace(Table table) {
  for (std::size_t i = 0; i < table.tokens.size(); ++i)
    table.positions.emplace(table.tokens[i], settings_.token_start() + static_cast<std::int64_t>(i));
  if (settings_.output_mode == "tf_idf")
    table.idf_weights.resize(static_cast<std::size_t>(depth(table)));  // what max_tokens adds weighs nothing
  auto shared = std::make_shared<const Table>(std::move(table));
  std::lock_guard lock(guard_);
  table_ = std::move(shared);
}

template <class Token>
std::shared_ptr<const TokenTable<Token>> TokenIndex<Token>::table(const std::string& description, Where where) const {
  std::lock_guard lock(guard_);
  if (table_) return table_;
  throw UserError(
      error_text(text(description, " has no vocabulary yet"), where, "call adapt(data), or give it a vocabulary"));
}

template <class Token>
std::shared_ptr<const TokenTable<Token>> TokenIndex<Token>::table_if_any() const {
  std::lock_guard lock(guard_);
  return table_;
}

template <class Token>
std::int64_t TokenIndex<Token>::size(const Table& table) const {
  return settings_.token_start() + static_cast<std::int64_t>(table.tokens.size());
}
template <class Token>
std::int64_t TokenIndex<Token>::depth(const Table& table) const {
  return settings_.pad_to_max_tokens ? *settings_.max_tokens : size(table);
}
template <class Token>
std::vector<Token> TokenIndex<Token>::tokens(const Table& table, bool with_special) const {
  std::vector<Token> out;
  if (with_special) out = settings_.special_tokens();
  out.insert(out.end(), table.tokens.begin(), table.tokens.end());
  return out;
}

template struct IndexSettings<std::int64_t>;
template struct IndexSettings<std::string>;
template struct TokenCounts<std::int64_t>;
template struct TokenCounts<std::string>;
template class TokenIndex<std::int64_t>;
template class TokenIndex<std::string>;

}  // namespace stet::keras
