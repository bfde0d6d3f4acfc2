#include "tests/ops/table_programs.h"

#include <numeric>

#include "stet/core/tape.h"

namespace stet::table_programs {
namespace {

std::int64_t count_of(const Form& form) { return std::max(op_test::count_of(form[0]), op_test::count_of(form[1])); }
bool is_empty(const Form& form) { return op_test::count_of(form[0]) == 0 || op_test::count_of(form[1]) == 0; }
int rank_of(const Form& form) { return static_cast<int>(form[0].size()); }

/// The sizes of one axis in both calls.
struct AxisSizes {
  std::int64_t first, second;
  bool operator==(const AxisSizes&) const = default;
};
AxisSizes axis_of(const Form& form, int axis) {
  return {form[0][static_cast<std::size_t>(axis)], form[1][static_cast<std::size_t>(axis)]};
}

/// Whether a size of 1 beside it is repeated in both calls or in none: otherwise two traces are right.
bool repeats_alike(const AxisSizes& sizes) { return (sizes.first == 1) == (sizes.second == 1); }

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {
    program_.seed = seed;
    program_.views = below(2) == 0;
    program_.larger_first = below(2) == 0;
    special_ = below(5) == 0;
    program_.large = below(12) == 0;
    most_ = program_.large ? 200000 : 4000;
    static constexpr DType mains[] = {DType::f32, DType::f32, DType::f32, DType::f64, DType::f16, DType::bf16};
    main_ = mains[below(6)];
  }

  Program grown(const std::vector<const OpDef*>& forced) {
    static const std::vector<const OpDef*> all = all_rows();
    std::vector<const OpDef*> rows = forced;
    std::size_t more = below(4) == 0 ? below(20) : 1 + below(6);
    for (std::size_t i = 0; i < more; ++i) {
      bool map = below(2) == 0;
      const OpDef* row = nullptr;
      do row = all[below(all.size())];
      while ((row->kind == Kind::map) != map);
      rows.push_back(row);
    }
    std::shuffle(rows.begin(), rows.end(), random_);
    for (const OpDef* row : rows) add(*row);
    choose_results();
    return std::move(program_);
  }

 private:
  std::uint64_t below(std::uint64_t count) { return random_() % count; }
  bool chance(double probability) { return static_cast<double>(below(1 << 20)) < probability * (1 << 20); }

  // --- a statement

  void add(const OpDef& row) {
    std::vector<DType> dtypes(std::begin(op_test::all_dtypes), std::end(op_test::all_dtypes));
    std::shuffle(dtypes.begin(), dtypes.end(), random_);
    if (chance(0.7)) {
      std::erase(dtypes, main_);
      dtypes.insert(dtypes.begin(), main_);
    }
    std::string refusals;
    for (DType dtype : dtypes) {
      if (row.kind != Kind::map && chance(0.5))
        if (std::optional<Statement> moved = moved_statement(row, dtype); moved && run(*moved, refusals)) return;
      Statement statement = row.kind == Kind::map ? map_statement(row, dtype) : sample_statement(row, dtype);
      if (run(statement, refusals)) return;
    }
    throw std::logic_error(text(row.name, " takes no type:\n", refusals));
  }

  Statement map_statement(const OpDef& row, DType dtype) {
    Statement out;
    out.row = &row;
    out.rounding = Rounding::functions;
    out.first = static_cast<int>(program_.values.size());
    int base = pick([&](const ValueInfo& value) { return count_of(value.form) <= most_; });
    if (program_.large && chance(0.15)) base = -1;
    Form form = base >= 0 ? value(base).form : random_form();
    bool late = base >= 0 && value(base).late;
    int large = static_cast<int>(below(row.arity));  // the operand that has the whole shape
    for (int k = 0; k < row.arity; ++k) {
      Operand operand;
      bool condition = row.dtypes.result == DTypeRule::selected && k == 0;
      operand.dtype = condition ? DType::bool_ : dtype;
      if (!condition && k > 0 && chance(0.1))
        operand.dtype = op_test::all_dtypes[below(std::size(op_test::all_dtypes))];
      operand.form = k == large ? form : late ? Form{} : broadcasting(form);
      operand.domain = row.domain;
      operand.stream = static_cast<int>(below(1 << 20));
      operand.special = special_ && chance(0.3);
      if (row.dtypes.result == DTypeRule::fixed) operand.domain = Domain{-10, 10};
      if (k == large && base >= 0)
        set_source(operand, base, Path::direct, row, out.rounding);
      else if (!late)
        find_source(operand, row, out.rounding);
      out.operands.push_back(operand);
    }
    return out;
  }

  Statement sample_statement(const OpDef& row, DType dtype) {
    std::vector<Sample> samples = op_test::samples_of(row);
    if (samples.empty()) throw std::logic_error(text(row.name, " has no samples"));
    Sample sample;
    for (int tries = 0; tries < 20; ++tries) {
      sample = samples[below(samples.size())];
      std::int64_t most = 0;
      Sample larger = op_test::grown(sample);
      for (const SampleInput& input : larger.inputs) most = std::max(most, op_test::count_of(input.sizes));
      if (most <= most_ && (most > 1 || chance(0.3))) break;
    }
    Sample larger = op_test::grown(sample);
    Statement out;
    out.row = &row;
    out.rounding = sample.rounding;
    out.attributes = {sample.attributes, larger.attributes};
    out.first = static_cast<int>(program_.values.size());
    for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
      Operand operand;
      operand.dtype = sample.inputs[k].below >= 0 ? DType::i64 : dtype;
      operand.form = {sample.inputs[k].sizes, larger.inputs[k].sizes};
      operand.sample = sample.inputs[k];
      operand.stream = static_cast<int>(below(1 << 20));
      // Convolutions may or may not multiply what stands beside the image, which is 0, by what is infinite.
      bool product = row.kind == Kind::window && sample.inputs.size() > 1;
      bool ordinary = operand.sample.below < 0 && operand.sample.draw == Draw::plain && !product;
      operand.special = special_ && ordinary && sample.rounding != Rounding::factorisation && chance(0.3);
      find_source(operand, row, sample.rounding);
      out.operands.push_back(operand);
    }
    choose_sizes(out);
    return out;
  }

  /// A row of one operand with a sample's attributes, of a value as it is.
  std::optional<Statement> moved_statement(const OpDef& row, DType dtype) {
    Statement out = sample_statement(row, dtype);
    if (out.operands.size() != 1 || out.rounding == Rounding::factorisation) return {};
    Operand& operand = out.operands[0];
    if (operand.sample.below >= 0 || operand.sample.draw != Draw::plain) return {};
    int number = pick([&](const ValueInfo& info) {
      return !info.late && rank_of(info.form) == rank_of(operand.form) && count_of(info.form) <= most_;
    });
    if (number < 0) return {};
    operand.form = value(number).form;
    operand.axes = {};
    operand.tame = false;
    operand.fit = Fit::none;
    set_source(operand, number, Path::direct, row, out.rounding);
    // Sizes that were the operand's are not any more.
    out.attributes[1] = out.attributes[0];
    for (AttributeSize& size : out.sizes) size = {};
    return out;
  }

  /// Sizes of attributes: as they are where they stay, those of an operand where they agree, arguments otherwise.
  void choose_sizes(Statement& out) {
    std::vector<std::int64_t> values[call_count];
    for (std::size_t call = 0; call < call_count; ++call)
      out.attributes[call].map_dims([&](const Dim& dim) {
        values[call].push_back(dim.constant());
        return dim;
      });
    for (std::size_t i = 0; i < values[0].size(); ++i) {
      AxisSizes both{values[0][i], values[1][i]};
      AttributeSize size;
      if (both.first == both.second && chance(0.4)) {
        out.sizes.push_back(size);
        continue;
      }
      size.from = AttributeSize::argument;
      for (std::size_t k = 0; k < out.operands.size() && chance(0.8); ++k)
        for (int axis = 0; axis < rank_of(out.operands[k].form); ++axis)
          if (axis_of(out.operands[k].form, axis) == both) size = {AttributeSize::operand, static_cast<int>(k), axis};
      out.sizes.push_back(size);
    }
  }

  /// Runs it at both sizes and takes its results in. False: the row does not take the type.
  bool run(Statement& statement, std::string& refusals) {
    Tensors results[call_count];
    try {
      for (std::size_t call = 0; call < call_count; ++call) results[call] = called(statement, call);
    } catch (const UserError& error) {
      Statement drawn = statement;
      for (Operand& operand : drawn.operands) operand.source = -1;
      refusals += text("  ", error.what(), "\n");
      try {
        for (std::size_t call = 0; call < call_count; ++call) called(drawn, call);
      } catch (const UserError&) {
        return false;
      }
      program_.statements.push_back(statement);
      throw std::logic_error(text(statement.row->name, " takes what is drawn but not what flows in: ", error.what(),
                                  "\n", text_of(without_values())));
    }
    statement.detached = !has_gradient(statement);
    program_.statements.push_back(statement);
    bool late = statement.row->kind == Kind::late;
    for (const Operand& operand : statement.operands)
      late = late || (operand.source >= 0 && operand.path == Path::direct && value(operand.source).late);
    for (std::size_t r = 0; r < results[0].size(); ++r) take(results[0][r], results[1][r], late);
    return true;
  }

  Tensors called(const Statement& statement, std::size_t call) {
    Tensors arguments, operands;
    append_arguments(program_, statement, call, arguments);
    std::size_t at = 0;
    for (const Operand& operand : statement.operands) {
      Tensor argument = operand.has_argument() ? arguments.at(at++) : Tensor();
      Tensor source = operand.source < 0 ? Tensor() : held_[call][static_cast<std::size_t>(operand.source)];
      operands.push_back(
          operand_of(operand, source, argument, operand.source >= 0 && value(operand.source).late, nullptr));
    }
    return run_statement(statement, operands, at < arguments.size() ? arguments[at] : Tensor());
  }

  /// Whether a tape can go through the row; those that cannot are reached by constants.
  bool has_gradient(const Statement& statement) {
    if (statement.row->kind == Kind::map) return true;
    return statement.row->gradient != nullptr;
  }

  void take(const Tensor& first, const Tensor& second, bool late) {
    ValueInfo info;
    info.dtype = first.dtype();
    info.form = {op_test::sizes_of(first), op_test::sizes_of(second)};
    info.late = late;
    bool any = false;
    for (const Tensor& tensor : {first, second})
      for (op_test::Value element : op_test::values_of(tensor)) {
        auto x = static_cast<double>(element);
        if (!std::isfinite(x)) {
          info.finite = false;
          continue;
        }
        info.largest = std::max(info.largest, std::abs(x));
        info.low = any ? std::min(info.low, x) : x;
        info.high = any ? std::max(info.high, x) : x;
        any = true;
      }
    program_.values.push_back(info);
    held_[0].push_back(first);
    held_[1].push_back(second);
  }

  // --- operands out of values

  const ValueInfo& value(int number) const { return program_.values[static_cast<std::size_t>(number)]; }

  /// A value, late ones more often; -1: none will do.
  template <class Condition>
  int pick(Condition&& fits) {
    if (program_.values.empty()) return -1;
    for (int tries = 0; tries < 8; ++tries) {
      auto count = program_.values.size();
      std::size_t number = chance(0.5) ? count - 1 - below(std::min<std::size_t>(count, 4)) : below(count);
      if (fits(program_.values[number])) return static_cast<int>(number);
    }
    return -1;
  }

  void find_source(Operand& operand, const OpDef& row, Rounding rounding) {
    if (chance(0.15)) return;
    bool floating = is_floating(operand.dtype);
    int number = pick([&](const ValueInfo& info) {
      if (is_floating(info.dtype) != floating && !chance(0.25)) return false;
      return !paths_between(info, operand).empty();
    });
    if (number < 0) return;
    std::vector<std::pair<Path, std::vector<int>>> paths = paths_between(value(number), operand);
    // The first ones keep the most; one number for all of it, which is the last, is always possible.
    if (paths.size() > 1 && paths.back().first == Path::whole && chance(0.7)) paths.pop_back();
    auto& [path, axes] = paths[chance(0.3) ? 0 : below(paths.size())];
    operand.axes = axes;
    set_source(operand, number, path, row, rounding);
  }

  std::vector<std::pair<Path, std::vector<int>>> paths_between(const ValueInfo& from, const Operand& to) {
    std::vector<std::pair<Path, std::vector<int>>> out;
    const Form &s = from.form, &t = to.form;
    if (from.late) return {{Path::whole, {}}};
    if (s == t) out.push_back({Path::direct, {}});
    bool as_many =
        op_test::count_of(s[0]) == op_test::count_of(t[0]) && op_test::count_of(s[1]) == op_test::count_of(t[1]);
    if (as_many && s != t) out.push_back({Path::reshaped, {}});
    if (s != t && repeats(s, t)) out.push_back({Path::repeated, {}});
    if (std::vector<int> order = order_between(s, t); !order.empty()) out.push_back({Path::transposed, order});
    if (is_empty(s) || count_of(s) > most_) return out;
    if (std::vector<int> axes = axes_beside(s, t); !axes.empty()) out.push_back({Path::reduced, axes});
    bool all_less = rank_of(s) == rank_of(t) && s != t, all_greater = all_less;
    for (int axis = 0; all_less | all_greater && axis < rank_of(t); ++axis) {
      AxisSizes a = axis_of(s, axis), b = axis_of(t, axis);
      all_less = all_less && a.first <= b.first && a.second <= b.second;
      all_greater = all_greater && a.first >= b.first && a.second >= b.second;
    }
    if (all_greater) out.push_back({Path::cut, {}});
    if (all_less) out.push_back({Path::padded, {}});
    out.push_back({Path::picked, {}});
    out.push_back({Path::whole, {}});
    return out;
  }

  static bool repeats(const Form& s, const Form& t) {
    int extra = rank_of(t) - rank_of(s);
    if (extra < 0) return false;
    for (int axis = 0; axis < rank_of(s); ++axis)
      if (axis_of(s, axis) != axis_of(t, axis + extra) &&
          !(axis_of(s, axis) == AxisSizes{1, 1} && repeats_alike(axis_of(t, axis + extra))))
        return false;
    return true;
  }
  std::vector<int> order_between(const Form& s, const Form& t) {
    if (rank_of(s) != rank_of(t) || rank_of(s) < 2) return {};
    std::vector<int> order(static_cast<std::size_t>(rank_of(s)));
    std::iota(order.begin(), order.end(), 0);
    for (int tries = 0; tries < 6; ++tries) {
      std::shuffle(order.begin(), order.end(), random_);
      bool fits = !std::ranges::is_sorted(order);
      for (int axis = 0; axis < rank_of(t); ++axis)
        fits = fits && axis_of(s, order[static_cast<std::size_t>(axis)]) == axis_of(t, axis);
      if (fits) return order;
    }
    return {};
  }
  /// The axes of `s` that are left over when the others are those of `t`.
  static std::vector<int> axes_beside(const Form& s, const Form& t) {
    std::vector<int> out;
    int at = 0;
    for (int axis = 0; axis < rank_of(s); ++axis)
      if (at < rank_of(t) && axis_of(s, axis) == axis_of(t, at))
        ++at;
      else
        out.push_back(axis);
    return at == rank_of(t) ? out : std::vector<int>{};
  }

  void set_source(Operand& operand, int number, Path path, const OpDef& row, Rounding rounding) {
    const ValueInfo& from = value(number);
    operand.source = number;
    operand.path = path;
    bool summed = path == Path::whole && from.late;
    if (is_floating(operand.dtype))
      fit_real(operand, from, summed, row, rounding);
    else if (operand.dtype != DType::bool_)
      fit_integer(operand, from, summed);
    else if (operand.sample.draw == Draw::ordered)
      operand.fit = Fit::ordered;
  }

  void fit_real(Operand& operand, const ValueInfo& from, bool summed, const OpDef& row, Rounding rounding) {
    bool real = is_floating(from.dtype);
    operand.tame = real && (!from.finite || from.largest > 1000);
    bool small = !real || (from.finite && from.largest <= 4 && !summed);
    Draw draw = operand.sample.draw;
    if (draw == Draw::definite) {
      operand.fit = Fit::definite;
    } else if (rounding == Rounding::factorisation || draw == Draw::regular) {
      operand.fit = Fit::matrices;
    } else if (draw == Draw::factors) {
      operand.fit = Fit::factors;
    } else if (draw == Draw::marks) {
      operand.fit = Fit::marks;
    } else if (draw == Draw::ordered) {
      operand.fit = Fit::ordered;
    } else if (operand.domain && row.domain.low != -2) {  // -2: small integers, for which any numbers will do
      fit_domain(operand, from, small && real && operand.path != Path::padded);
    } else {
      bool repeated = operand.path == Path::whole || operand.path == Path::repeated;
      if (!small) operand.fit = chance(0.3) ? Fit::squashed : Fit::none, operand.tame = true;
      if (repeated && chance(0.7)) operand.fit = Fit::blended;
    }
  }

  void fit_domain(Operand& operand, const ValueInfo& from, bool inside_allowed) {
    Domain domain = *operand.domain;
    bool away = !domain.without_zero || from.low >= 0.5 || from.high <= -0.5;
    if (inside_allowed && from.low >= domain.low && from.high <= domain.high && away) return;
    operand.fit = Fit::into;
    operand.low = std::max(domain.low, -4.0);
    operand.high = std::min(domain.high, 4.0);
    if (!domain.without_zero) return;
    if (chance(0.5))
      operand.low = 0.5;
    else
      operand.high = -0.5;
  }

  void fit_integer(Operand& operand, const ValueInfo& from, bool summed) {
    bool whole = !is_floating(from.dtype);
    if (operand.sample.draw == Draw::factors) {
      operand.fit = Fit::factors;
    } else if (operand.sample.draw == Draw::marks) {
      operand.fit = Fit::marks;
    } else if (operand.sample.below >= 0) {
      operand.fit = Fit::modulo;
      operand.high = static_cast<double>(std::max<std::int64_t>(operand.sample.below, 1));
    } else if (operand.domain) {
      double low = std::max(std::ceil(operand.domain->low), operand.dtype == DType::u8 ? 0.0 : -10.0);
      double high = std::min(std::floor(operand.domain->high), 20.0);
      if (operand.domain->without_zero) low = 1;
      if (whole && !summed && from.low >= low && from.high <= high && operand.path != Path::padded) return;
      operand.fit = Fit::modulo;
      operand.low = low;
      operand.high = high - low + 1;
    } else if (operand.sample.draw == Draw::ordered) {
      operand.fit = Fit::ordered;
    } else if (summed || from.largest > 100 || (operand.dtype == DType::u8 && from.low < 0)) {
      operand.fit = Fit::modulo;
      operand.high = 101;
      operand.low = operand.dtype == DType::u8 ? 0 : -50;
    }
  }

  // --- shapes

  Form random_form() {
    Sizes sizes, larger;
    for (std::uint64_t rank = below(4); rank > 0; --rank) sizes.push_back(static_cast<std::int64_t>(1 + below(9)));
    if (chance(0.1)) sizes.push_back(17);
    if (program_.large && chance(0.7))
      sizes = {static_cast<std::int64_t>(20 + below(200)), static_cast<std::int64_t>(300 + below(300))};
    for (std::int64_t size : sizes) larger.push_back(op_test::grown(size));
    return {sizes, larger};
  }
  /// A shape that repeats to the given one.
  Form broadcasting(const Form& form) {
    if (chance(0.5)) return form;
    Form out = form;
    std::size_t dropped = below(form[0].size() + 1);
    for (Sizes& sizes : out) sizes.erase(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(dropped));
    for (std::size_t axis = 0; axis < out[0].size(); ++axis)
      if (repeats_alike(axis_of(form, static_cast<int>(axis + dropped))) && chance(0.3))
        out[0][axis] = out[1][axis] = 1;
    return out;
  }

  Program without_values() const {
    Program out = program_;
    out.values.resize(out.values.size() + out.statements.back().row->result_count());
    return out;
  }

  /// What nobody uses, and some others.
  void choose_results() {
    std::vector<bool> used(program_.values.size());
    for (const Statement& statement : program_.statements)
      for (const Operand& operand : statement.operands)
        if (operand.source >= 0) used[static_cast<std::size_t>(operand.source)] = true;
    for (std::size_t number = 0; number < used.size(); ++number)
      if (!used[number] || chance(0.15)) program_.results.push_back(static_cast<int>(number));
  }

  std::mt19937_64 random_;
  Program program_;
  DType main_ = DType::f32;
  bool special_ = false;
  std::int64_t most_ = 0;  // elements of a value
  Tensors held_[call_count];
};

}  // namespace

Program generate(std::uint64_t seed, const std::vector<const OpDef*>& forced) { return Generator(seed).grown(forced); }

}  // namespace stet::table_programs
