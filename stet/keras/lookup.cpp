#include "stet/keras/lookup.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/host_call.h"
#include "stet/keras/adapting.h"
#include "stet/keras/category_codes.h"
#include "stet/keras/layer_fields.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/library_layer.h"
#include "stet/keras/names.h"
#include "stet/keras/spatial.h"
#include "stet/keras/string_lookup_state.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

constexpr const char* about_oov = "give it num_oov_indices of 1 or more, or a vocabulary that has it";

/// What the configs of lookups have in common; the vocabulary is written as it is now. It is a list: a file that names
/// another is not followed.
template <class Options, class Token>
void index_fields(Fields& f, Options& options, const TokenIndex<Token>* now) {
  f("max_tokens", options.max_tokens);
  f("num_oov_indices", options.num_oov_indices);
  // There are tables as long as they say.
  constexpr std::int64_t most = 1 << 22;
  f.at_most("num_oov_indices", options.num_oov_indices, most);
  if (options.output_mode == "tf_idf") f.at_most("max_tokens", options.max_tokens.value_or(0), most);
  f("mask_token", options.mask_token);
  f("oov_token", options.oov_token);
  f("invert", options.invert);
  f.only("sparse", false);
  f("pad_to_max_tokens", options.pad_to_max_tokens);
  std::optional<std::vector<Token>> tokens;
  std::optional<std::vector<double>> weights;
  if (const auto table = now ? now->table_if_any() : nullptr) {
    tokens = table->tokens;
    if (options.output_mode == "tf_idf") {
      const auto first = table->idf_weights.begin() + now->settings().token_start();
      weights.emplace(first, first + static_cast<std::ptrdiff_t>(table->tokens.size()));
    }
  }
  f("vocabulary", tokens);
  f("idf_weights", weights);
  if (!f.reading()) return;
  f.take("vocabulary_size");  // the vocabulary tells
  if (tokens) options.vocabulary = std::move(*tokens);
  if (weights) options.idf_weights = std::move(*weights);
}

/// UserError naming the first of the values that is not found; in traced code when it runs.
void require_found(const Tensor& found, const Tensor& x, const std::string& layer, Where where) {
  auto check = [layer, where](const Tensor& found, const Tensor& values) {
    const std::vector<bool> all = found.to_vector<bool>();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!all[i])
        throw UserError(error_text(text(layer, ": ", values.to_vector<std::int64_t>()[i], " at flat position ", i,
                                        " is not in the vocabulary, and num_oov_indices is 0"),
                                   where, about_oov));
  };
  host_call(check, ResultSpecs(std::vector<ResultSpec>{}, where), found, x);
}

class IntegerLookupBody final : public LibraryLayer {
 public:
  IntegerLookupBody(IntegerLookupOptions options, Where where)
      : LibraryLayer("IntegerLookup", options.name, {.layout = "[batch, …]", .cast = false}, options.dtype),
        index_({"IntegerLookup", options.max_tokens, options.num_oov_indices, options.mask_token, options.oov_token,
                options.invert, options.output_mode, options.pad_to_max_tokens},
               options.vocabulary, options.idf_weights, where),
        hashes_(options.oov_method == "farmhash") {
    binning_.bins = options.num_oov_indices;
    if (options.salt) binning_.salt = options.salt->key;
  }

  TokenIndex<std::int64_t>& index() { return index_; }
  const TokenIndex<std::int64_t>& index() const { return index_; }
  void add(TokenCounts<std::int64_t>& counts, const Tensor& data, bool lists_documents, Where where) const {
    const std::vector<std::int64_t> values = integers(description(), data, where).to_vector<std::int64_t>();
    const std::vector<std::int64_t> sizes = data.shape().sizes();
    // Keras: a vector given whole is a list of documents, a batch that is a vector one document.
    const std::size_t documents = sizes.empty()                           ? 1
                                  : sizes.size() == 1 && !lists_documents ? 1
                                                                          : static_cast<std::size_t>(sizes[0]);
    const std::size_t length = documents == 0 ? 0 : values.size() / documents;
    for (std::size_t i = 0; i < documents; ++i) counts.add_document(values.data() + i * length, length);
  }

 private:
  /// The vocabulary as tensors.
  struct Tables {
    std::shared_ptr<const TokenTable<std::int64_t>> of;
    Tensor sorted, numbers;  // the tokens in ascending order, and their numbers
    Tensor tokens, idf_weights;
  };
  std::shared_ptr<const Tables> tables(Where where) {
    auto now = index_.table(description(), where);
    std::lock_guard lock(guard_);
    if (tables_ && tables_->of == now) return tables_;
    std::vector<std::pair<std::int64_t, std::int64_t>> order(now->positions.begin(), now->positions.end());
    std::sort(order.begin(), order.end());
    std::vector<std::int64_t> sorted, numbers;
    for (const auto& [token, number] : order) {
      sorted.push_back(token);
      numbers.push_back(number);
    }
    tables_ = std::make_shared<const Tables>(
        Tables{now, tensor(sorted), tensor(numbers), tensor(now->tokens), tensor(now->idf_weights)});
    return tables_;
  }

  Tensor run(const Tensor& given, const Context& context) override {
    const Tensor x = integers(description(), given, context.where);
    const auto now = tables(context.where);
    const IndexSettings<std::int64_t>& settings = index_.settings();
    if (settings.invert) return inverted(x, *now);
    const auto count = static_cast<std::int64_t>(now->of->tokens.size());
    Tensor found = zeros(x.shape(), DType::bool_), numbers = zeros(x.shape(), DType::i64);
    if (count > 0) {
      const Tensor at = minimum(searchsorted(now->sorted, x), count - 1);
      found = gather(now->sorted, at) == x;
      numbers = gather(now->numbers, at);
    }
    const bool masks = settings.mask_token.has_value();
    if (settings.num_oov_indices == 0)
      require_found(masks ? logical_or(found, x == *settings.mask_token) : found, x, description(), context.where);
    else
      numbers = stet::where(found, numbers, out_of_vocabulary(x, context.where) + settings.oov_start());
    if (masks) numbers = stet::where(x == *settings.mask_token, settings.output_mode == "int" ? 0 : -1, numbers);
    const Tensor out = coded(numbers, {"IntegerLookup", settings.output_mode, index_.depth(*now->of), compute_dtype()},
                             {}, context.where);
    return settings.output_mode == "tf_idf" ? out * cast(now->idf_weights, compute_dtype()) : out;
  }
  Tensor inverted(const Tensor& x, const Tables& now) const {
    const IndexSettings<std::int64_t>& settings = index_.settings();
    const auto count = static_cast<std::int64_t>(now.of->tokens.size());
    const std::int64_t start = settings.token_start();
    Tensor tokens = full_like(x, settings.oov_token);
    if (count > 0)
      tokens = stet::where(logical_and(x >= start, x < start + count),
                           gather(now.tokens, clip(x - start, 0, count - 1)), tokens);
    return settings.mask_token ? stet::where(x == 0, *settings.mask_token, tokens) : tokens;
  }
  /// Which of the numbers for unknown tokens each has.
  Tensor out_of_vocabulary(const Tensor& x, Where where) const {
    if (binning_.bins == 1) return zeros(x.shape(), DType::i64);
    if (!hashes_) return x % binning_.bins;
    auto hash = [binning = binning_](const Tensor& values) {
      std::vector<std::int64_t> bins;
      for (std::int64_t value : values.to_vector<std::int64_t>()) bins.push_back(binning(text(value)));
      return reshape(tensor(bins), values.shape());
    };
    return host_call(hash, ResultSpecs(DType::i64, x.shape(), where), x);
  }

  TokenIndex<std::int64_t> index_;
  const bool hashes_;
  Binning binning_;
  Lock guard_;
  std::shared_ptr<const Tables> tables_;
};

struct IntegerLookupRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "IntegerLookup";
  IntegerLookupOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f("output_mode", options.output_mode);
    f.only("vocabulary_dtype", "int64");
    const auto* body = dynamic_cast<const IntegerLookupBody*>(f.written_layer());
    index_fields(f, options, body ? &body->index() : nullptr);
    f("oov_method", options.oov_method);
    salt_field(f, options.salt);
  }
  Layer make(Where where) const { return IntegerLookup(options, where); }
};
const Savable<IntegerLookupRecipe> savable_integer_lookup;

const Savable<RefusedRecipe<"StringLookup", "it takes strings, which are no tensors here",
                            "make a keras::StringLookup with the vocabulary of the file, and call it before the model">>
    refused_string_lookup;
const Savable<
    RefusedRecipe<"TextVectorization", "it takes strings, which are no tensors here",
                  "make a keras::TextVectorization with the vocabulary of the file, and call it before the model">>
    refused_text_vectorization;

IntegerLookupBody& integer_body(CustomLayer& layer) { return static_cast<IntegerLookupBody&>(layer); }

template <class Use>
void adapt_integers(IntegerLookupBody& own, Use use, Where where) {
  own.index().require_adaptable(own.description(), where);
  TokenCounts<std::int64_t> counts;
  use(counts);
  own.index().adapt(counts);
  note_new_table(own);
}

}  // namespace

IntegerLookup::IntegerLookup(IntegerLookupOptions options, Where where) {
  require_name("IntegerLookup", "oov_method", options.oov_method, {"floormod", "farmhash"}, where);
  if (options.salt && options.oov_method != "farmhash")
    throw UserError(error_text(text("IntegerLookup: a salt with oov_method \"", options.oov_method, "\""), where,
                               "it is for {.oov_method = \"farmhash\"}"));
  Layer::operator=(Layer(std::make_shared<IntegerLookupBody>(options, where)));
  options.vocabulary = {};  // the layer knows it, also where it comes from a file or adapt()
  note_recipe(*this, IntegerLookupRecipe{std::move(options)});
}
void IntegerLookup::adapt(const Tensor& data, Where where) const {
  IntegerLookupBody& own = integer_body(layer_body("adapt", where));
  adapt_integers(
      own, [&](auto& counts) { own.add(counts, data, true, where); }, where);
}
void IntegerLookup::adapt(const data::Dataset<Tensor>& batches, Where where) const {
  IntegerLookupBody& own = integer_body(layer_body("adapt", where));
  auto use = [&](auto& counts) {
    for_each_batch(
        batches, [&](const Tensor& batch) { own.add(counts, batch, false, where); }, where);
  };
  adapt_integers(own, use, where);
}
void IntegerLookup::set_vocabulary(const Vocabulary<std::int64_t>& vocabulary, const std::vector<double>& idf_weights,
                                   Where where) const {
  IntegerLookupBody& own = integer_body(layer_body("set_vocabulary", where));
  own.index().set(vocabulary, idf_weights, where);
  note_new_table(own);
}
std::vector<std::int64_t> IntegerLookup::get_vocabulary(GetVocabularyOptions options, Where where) const {
  IntegerLookupBody& own = integer_body(layer_body("get_vocabulary", where));
  return own.index().tokens(*own.index().table(own.description(), where), options.include_special_tokens);
}
std::int64_t IntegerLookup::vocabulary_size(Where where) const {
  IntegerLookupBody& own = integer_body(layer_body("vocabulary_size", where));
  return own.index().size(*own.index().table(own.description(), where));
}

// --- strings

StringLookup::State::State(const char* layer, std::string given, const StringLookupOptions& options, Where where)
    : name(given.empty() ? next_name(layer) : std::move(given)),
      description(text(layer, " '", name, "'")),
      index({layer, options.max_tokens, options.num_oov_indices, options.mask_token, options.oov_token, options.invert,
             options.output_mode, options.pad_to_max_tokens},
            options.vocabulary, options.idf_weights, where),
      dtype(options.dtype.compute_dtype()),
      binning{options.num_oov_indices, {}} {
  require_name(layer, "encoding", options.encoding, {"utf-8"}, where);
  if (options.salt) binning.salt = options.salt->key;
}

std::vector<std::int64_t> StringLookup::State::numbers(const std::vector<std::string>& tokens, Where where) const {
  const auto table = index.table(description, where);
  const IndexSettings<std::string>& settings = index.settings();
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto found = table->positions.find(tokens[i]);
    if (settings.mask_token == tokens[i])
      out.push_back(settings.output_mode == "int" ? 0 : -1);
    else if (found != table->positions.end())
      out.push_back(found->second);
    else if (settings.num_oov_indices > 0)
      out.push_back(settings.oov_start() + (settings.num_oov_indices == 1 ? 0 : binning(tokens[i])));
    else
      throw UserError(error_text(text(description, ": \"", tokens[i], "\" at flat position ", i,
                                      " is not in the vocabulary, and num_oov_indices is 0"),
                                 where, about_oov));
  }
  return out;
}

bool StringLookup::State::takes_rows() const {
  const std::string& mode = index.settings().output_mode;
  return mode != "int" && mode != "one_hot";
}

Tensor StringLookup::State::finished(const Tensor& numbers, Where where) const {
  const auto table = index.table(description, where);
  const IndexSettings<std::string>& settings = index.settings();
  const Tensor out = coded(numbers, {settings.layer, settings.output_mode, index.depth(*table), dtype}, {}, where);
  return settings.output_mode == "tf_idf" ? out * cast(tensor(table->idf_weights), dtype) : out;
}

Strings StringLookup::State::inverted(const Tensor& numbers, Where where) const {
  const auto table = index.table(description, where);
  const IndexSettings<std::string>& settings = index.settings();
  if (numbers.rank() > 2)
    throw UserError(error_text(text(description, ": numbers ", described(numbers), " have more than two axes"), where,
                               "it gives a list, or rows: reshape(x, {-1, n})"));
  std::vector<std::string> tokens;
  for (std::int64_t number : integers(description, numbers, where).to_vector<std::int64_t>()) {
    const std::int64_t at = number - settings.token_start();
    if (settings.mask_token && number == 0)
      tokens.push_back(*settings.mask_token);
    else if (at >= 0 && at < static_cast<std::int64_t>(table->tokens.size()))
      tokens.push_back(table->tokens[static_cast<std::size_t>(at)]);
    else
      tokens.push_back(settings.oov_token);
  }
  if (numbers.rank() == 0) return Strings(tokens[0]);
  if (numbers.rank() == 1) return Strings(tokens);
  const std::vector<std::int64_t> sizes = numbers.shape().sizes();
  std::vector<std::vector<std::string>> rows;
  for (std::int64_t row = 0; row < sizes[0]; ++row)
    rows.emplace_back(tokens.begin() + row * sizes[1], tokens.begin() + (row + 1) * sizes[1]);
  return rows;
}

void StringLookup::State::adapt(const std::vector<std::vector<std::string>>& documents, Where where) {
  index.require_adaptable(description, where);
  TokenCounts<std::string> counts;
  for (const auto& document : documents) counts.add_document(document.data(), document.size());
  index.adapt(counts);
}
void StringLookup::State::set_vocabulary(const Vocabulary<std::string>& vocabulary,
                                         const std::vector<double>& idf_weights, Where where) {
  index.set(vocabulary, idf_weights, where);
}
std::vector<std::string> StringLookup::State::get_vocabulary(bool with_special, Where where) const {
  return index.tokens(*index.table(description, where), with_special);
}
std::int64_t StringLookup::State::vocabulary_size(Where where) const {
  return index.size(*index.table(description, where));
}

StringLookup::StringLookup(StringLookupOptions options, Where where)
    : state_(std::make_shared<State>("StringLookup", options.name, options, where)) {}

Tensor StringLookup::operator()(const Strings& strings, Where where) const {
  if (state_->index.settings().invert)
    throw UserError(error_text(text(state_->description, " is inverted and was given strings"), where,
                               "it takes integers; make one without invert for strings"));
  require_utf8(strings, state_->description, where);
  const std::vector<std::int64_t> numbers = state_->numbers(strings.values(), where);
  return state_->finished(in_shape_of(strings, numbers, state_->takes_rows(), state_->description, where), where);
}
Strings StringLookup::operator()(const Tensor& numbers, Where where) const {
  if (!state_->index.settings().invert)
    throw UserError(error_text(text(state_->description, " takes strings and was given ", described(numbers)), where,
                               "make it with {.invert = true} for the strings of numbers"));
  return state_->inverted(numbers, where);
}
void StringLookup::adapt(const Strings& data, Where where) const {
  require_utf8(data, text("adapt: ", state_->description), where);
  std::vector<std::vector<std::string>> documents;
  if (data.rank() == 2)
    documents = data.rows();
  else
    for (const std::string& token : data.values()) documents.push_back({token});
  state_->adapt(documents, where);
}
void StringLookup::set_vocabulary(const Vocabulary<std::string>& vocabulary, const std::vector<double>& idf_weights,
                                  Where where) const {
  state_->set_vocabulary(vocabulary, idf_weights, where);
}
std::vector<std::string> StringLookup::get_vocabulary(GetVocabularyOptions options, Where where) const {
  return state_->get_vocabulary(options.include_special_tokens, where);
}
std::int64_t StringLookup::vocabulary_size(Where where) const { return state_->vocabulary_size(where); }
const std::string& StringLookup::name() const { return state_->name; }

}  // namespace stet::keras
