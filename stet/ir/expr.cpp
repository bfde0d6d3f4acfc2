#include "stet/ir/expr.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "stet/base/error.h"
#include "stet/base/lock.h"
#include "stet/base/text.h"

namespace stet {

// --- Interning

namespace {

struct SameNode {
  bool operator()(const ExprNode* a, const ExprNode* b) const {
    return a->hash == b->hash && a->primitive == b->primitive && a->dtype == b->dtype &&
           a->argument_count == b->argument_count && a->custom_derivative == b->custom_derivative &&
           a->arguments[0] == b->arguments[0] && a->arguments[1] == b->arguments[1] &&
           a->arguments[2] == b->arguments[2] && a->bits == b->bits && a->number == b->number &&
           a->derivative == b->derivative;
  }
};
struct StoredHash {
  std::size_t operator()(const ExprNode* node) const { return node->hash; }
};

}  // namespace

/// Every expression that anyone holds.
struct ExprTable {
  Lock guard;
  std::unordered_set<const ExprNode*, StoredHash, SameNode> known;
  std::uint64_t made = 0;

  Expr find_or_add(ExprNode node) {
    std::lock_guard lock(guard);
    auto found = known.find(&node);
    if (found == known.end()) {
      node.id = made++;
      found = known.insert(new ExprNode(std::move(node))).first;
    }
    (*found)->holders.count.fetch_add(1, std::memory_order_relaxed);
    return Expr(*found);
  }

  /// Lets go of a node's last holder, unless another was given out meanwhile. Arguments follow; not by recursion, which
  /// long chains would overflow.
  void release(const ExprNode* node) {
    std::vector<const ExprNode*> dying;
    auto let_go = [&](const ExprNode* of) {
      if (of->holders.count.fetch_sub(1, std::memory_order_acq_rel) == 1) dying.push_back(of);
    };
    std::lock_guard lock(guard);
    let_go(node);
    while (!dying.empty()) {
      auto* dead = const_cast<ExprNode*>(dying.back());
      dying.pop_back();
      known.erase(dead);
      for (Expr* part : {&dead->arguments[0], &dead->arguments[1], &dead->arguments[2], &dead->derivative})
        if (const ExprNode* held = std::exchange(part->node_, nullptr)) let_go(held);
      delete dead;
    }
  }
};

namespace {

ExprTable& table() {
  static ExprTable* const instance = new ExprTable;  // never destroyed: see thread_end.h
  return *instance;
}

std::size_t mix(std::size_t seed, std::uint64_t value) {
  seed ^= value + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2);
  seed *= 0xff51afd7ed558ccdull;
  return seed ^ (seed >> 32);
}

std::size_t hash_of(const ExprNode& node) {
  // Ids, not addresses, so that equal programs hash equally in every process that builds them in the same order.
  auto id = [](Expr e) -> std::uint64_t { return e.defined() ? e->id + 1 : 0; };
  std::size_t hash = static_cast<std::size_t>(node.primitive) * 64 + static_cast<std::size_t>(node.dtype) * 4 +
                     (node.custom_derivative ? 1 : 0);
  for (Expr argument : node.arguments) hash = mix(hash, id(argument));
  hash = mix(hash, node.bits);
  hash = mix(hash, static_cast<std::uint64_t>(node.number));
  return mix(hash, id(node.derivative));
}

Expr intern(ExprNode node) {
  node.hash = hash_of(node);
  return table().find_or_add(std::move(node));
}

// --- The primitives, one row each

/// Which types a primitive's arguments may have, and its result.
enum class TypeRule : std::uint8_t {
  leaf,
  number,      // integers and floating, result the same
  ordered,     // bool too
  floating,    // floating, result the same
  comparison,  // any type, result bool
  logic,       // bool and integers
  integer,     // integers, result the same
  select,
  cast,
  bitcast,
};
enum class Notation : std::uint8_t { function, infix, prefix };

struct PrimitiveRow {
  Primitive primitive;
  const char* name;
  int arguments;
  TypeRule rule;
  Notation notation = Notation::function;
  int binding = 0;  // of infix: higher binds tighter
};

constexpr int function_binding = 9, prefix_binding = 7;
constexpr PrimitiveRow rows[] = {
    {Primitive::operand, "x", 0, TypeRule::leaf},
    {Primitive::index, "i", 0, TypeRule::leaf},
    {Primitive::constant, "constant", 0, TypeRule::leaf},
    {Primitive::add, "+", 2, TypeRule::number, Notation::infix, 5},
    {Primitive::subtract, "-", 2, TypeRule::number, Notation::infix, 5},
    {Primitive::multiply, "*", 2, TypeRule::number, Notation::infix, 6},
    {Primitive::divide, "/", 2, TypeRule::number, Notation::infix, 6},
    {Primitive::modulo, "%", 2, TypeRule::number, Notation::infix, 6},
    {Primitive::minimum, "min", 2, TypeRule::ordered},
    {Primitive::maximum, "max", 2, TypeRule::ordered},
    {Primitive::power, "pow", 2, TypeRule::number},
    {Primitive::negate, "-", 1, TypeRule::number, Notation::prefix, prefix_binding},
    {Primitive::absolute, "abs", 1, TypeRule::number},
    {Primitive::floor, "floor", 1, TypeRule::floating},
    {Primitive::ceil, "ceil", 1, TypeRule::floating},
    {Primitive::round, "round", 1, TypeRule::floating},
    {Primitive::sqrt, "sqrt", 1, TypeRule::floating},
    {Primitive::exp, "exp", 1, TypeRule::floating},
    {Primitive::log, "log", 1, TypeRule::floating},
    {Primitive::sin, "sin", 1, TypeRule::floating},
    {Primitive::cos, "cos", 1, TypeRule::floating},
    {Primitive::tanh, "tanh", 1, TypeRule::floating},
    {Primitive::erf, "erf", 1, TypeRule::floating},
    {Primitive::erfc, "erfc", 1, TypeRule::floating},
    {Primitive::exp2, "exp2", 1, TypeRule::floating},
    {Primitive::expm1, "expm1", 1, TypeRule::floating},
    {Primitive::log2, "log2", 1, TypeRule::floating},
    {Primitive::log10, "log10", 1, TypeRule::floating},
    {Primitive::erfinv, "erfinv", 1, TypeRule::floating},
    {Primitive::log_gamma, "log_gamma", 1, TypeRule::floating},
    {Primitive::digamma, "digamma", 1, TypeRule::floating},
    {Primitive::atan2, "atan2", 2, TypeRule::floating},
    {Primitive::fma, "fma", 3, TypeRule::floating},
    {Primitive::less, "<", 2, TypeRule::comparison, Notation::infix, 3},
    {Primitive::less_equal, "<=", 2, TypeRule::comparison, Notation::infix, 3},
    {Primitive::equal, "==", 2, TypeRule::comparison, Notation::infix, 3},
    {Primitive::logical_and, "&", 2, TypeRule::logic, Notation::infix, 2},
    {Primitive::logical_or, "|", 2, TypeRule::logic, Notation::infix, 1},
    {Primitive::logical_xor, "^", 2, TypeRule::logic, Notation::infix, 1},
    {Primitive::logical_not, "~", 1, TypeRule::logic, Notation::prefix, prefix_binding},
    {Primitive::shift_left, "<<", 2, TypeRule::integer, Notation::infix, 4},
    {Primitive::shift_right, ">>", 2, TypeRule::integer, Notation::infix, 4},
    {Primitive::select, "select", 3, TypeRule::select},
    {Primitive::cast, "cast", 1, TypeRule::cast},
    {Primitive::bitcast, "bitcast", 1, TypeRule::bitcast},
    {Primitive::select_rarely, "select_rarely", 3, TypeRule::select},
};

constexpr bool rows_in_order() {
  for (std::size_t i = 0; i < std::size(rows); ++i)
    if (static_cast<std::size_t>(rows[i].primitive) != i) return false;
  return std::size(rows) == static_cast<std::size_t>(Primitive::select_rarely) + 1;
}
static_assert(rows_in_order());

const PrimitiveRow& row_of(Primitive primitive) { return rows[static_cast<std::size_t>(primitive)]; }

bool is_number(DType d) { return d != DType::bool_; }

/// Whether arguments and result fit the rule; all arguments have been counted and are defined.
bool types_fit(const ExprNode& node, TypeRule rule) {
  DType first = node.arguments[0].defined() ? node.arguments[0].dtype() : node.dtype;
  for (int i = 1; i < node.argument_count; ++i)
    if (rule != TypeRule::select && node.arguments[i].dtype() != first) return false;
  bool same = node.dtype == first;
  switch (rule) {
    case TypeRule::leaf:
      return node.primitive != Primitive::index || node.dtype == DType::i64;
    case TypeRule::number:
      return same && is_number(first);
    case TypeRule::ordered:
      return same;
    case TypeRule::floating:
      return same && is_floating(first);
    case TypeRule::comparison:
      return node.dtype == DType::bool_;
    case TypeRule::logic:
      return same && !is_floating(first);
    case TypeRule::integer:
      return same && is_integer(first);
    case TypeRule::select:
      return first == DType::bool_ && node.arguments[1].dtype() == node.dtype &&
             node.arguments[2].dtype() == node.dtype;
    case TypeRule::cast:
      return true;
    case TypeRule::bitcast:
      return first != DType::bool_ && node.dtype != DType::bool_ && size_of(first) == size_of(node.dtype);
  }
  return false;
}

/// What is wrong with a node; empty when nothing is.
std::string fault_of(const ExprNode& node) {
  const PrimitiveRow& row = row_of(node.primitive);
  if (node.argument_count != row.arguments)
    return text(row.name, " takes ", row.arguments, " arguments, not ", int{node.argument_count});
  for (int i = 0; i < node.argument_count; ++i)
    if (!node.arguments[i].defined()) return text(row.name, " has an undefined argument ", i);
  if (types_fit(node, row.rule)) return {};
  std::string types;
  for (int i = 0; i < node.argument_count; ++i) types += text(i ? ", " : "", name(node.arguments[i].dtype()));
  return text(row.name, "(", types, ") -> ", name(node.dtype), " is not an expression");
}

Expr checked(const ExprNode& node) {
  if (std::string fault = fault_of(node); !fault.empty()) throw InternalError(fault);
  return intern(node);
}

Expr unary(Primitive primitive, Expr a) { return make(primitive, std::span(&a, 1), a.dtype()); }
Expr binary(Primitive primitive, Expr a, Expr b) {
  Expr arguments[] = {a, b};
  return make(primitive, arguments, a.dtype());
}
Expr compared(Primitive primitive, Expr a, Expr b) {
  Expr arguments[] = {a, b};
  return make(primitive, arguments, DType::bool_);
}

/// The count of a shift that is written down: one that leaves nothing is a mistake.
Expr known_count(Expr shifted, int count) {
  if (count < 0 || count >= 8 * size_of(shifted.dtype()))
    throw InternalError(text("a shift of ", name(shifted.dtype()), " by ", count));
  return constant(count, shifted.dtype());
}

}  // namespace

// --- Expr

void Expr::release() {
  // The count goes to zero under the table's lock only, where it can be found and given out again.
  std::uint32_t count = node_->holders.count.load(std::memory_order_relaxed);
  while (count > 1)
    if (node_->holders.count.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel)) return;
  table().release(node_);
}

std::size_t live_expressions() {
  std::lock_guard lock(table().guard);
  return table().known.size();
}

DType Expr::dtype() const {
  if (!node_) throw InternalError("an undefined expression has no dtype");
  return node_->dtype;
}

bool Expr::is(Primitive primitive) const { return node_ && node_->primitive == primitive; }

std::optional<double> Expr::constant() const {
  if (!is(Primitive::constant)) return std::nullopt;
  ScalarValue value = value_of(node_->bits, node_->dtype);
  return is_floating(node_->dtype) ? value.real : static_cast<double>(value.integer);
}

int Expr::operand_count() const {
  int count = 0;
  for (Expr e : topological(*this))
    if (e.is(Primitive::operand)) count = std::max(count, e->number + 1);
  return count;
}

int Expr::size() const { return static_cast<int>(topological(*this).size()); }

// --- Building

Expr operand(int number, DType dtype) {
  if (number < 0) throw InternalError(text("operand number ", number));
  return intern({.primitive = Primitive::operand, .dtype = dtype, .number = number});
}

Expr loop_index(int loop) {
  if (loop < 0) throw InternalError(text("loop number ", loop));
  return intern({.primitive = Primitive::index, .dtype = DType::i64, .number = loop});
}

Expr constant_bits(ScalarBits bits, DType dtype) {
  if (size_of(dtype) < 8) bits &= (ScalarBits{1} << (8 * size_of(dtype))) - 1;
  if (dtype == DType::bool_) bits = bits != 0;
  return intern({.primitive = Primitive::constant, .dtype = dtype, .bits = bits});
}

Expr constant(double value, DType dtype) {
  return constant_bits(bits_of(convert({.real = value}, DType::f64, dtype), dtype), dtype);
}

Expr constant(std::int64_t value, DType dtype) {
  return constant_bits(bits_of(convert({.integer = value}, DType::i64, dtype), dtype), dtype);
}

Expr make(Primitive primitive, std::span<const Expr> arguments, DType result) {
  if (arguments.size() > 3) throw InternalError(text(row_of(primitive).name, " with ", arguments.size(), " arguments"));
  ExprNode node{.primitive = primitive, .dtype = result};
  node.argument_count = static_cast<std::uint8_t>(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) node.arguments[i] = arguments[i];
  return checked(node);
}

Expr Literal::as(DType dtype) const { return integral ? constant(integer, dtype) : constant(real, dtype); }

#define STET_BINARY(symbol, build)                                             \
  Expr operator symbol(Expr a, Expr b) { return build; }                       \
  Expr operator symbol(Expr a, Literal b) { return a symbol b.as(a.dtype()); } \
  Expr operator symbol(Literal a, Expr b) { return a.as(b.dtype()) symbol b; }
STET_BINARY(+, binary(Primitive::add, a, b))
STET_BINARY(-, binary(Primitive::subtract, a, b))
STET_BINARY(*, binary(Primitive::multiply, a, b))
STET_BINARY(/, binary(Primitive::divide, a, b))
STET_BINARY(<, compared(Primitive::less, a, b))
STET_BINARY(<=, compared(Primitive::less_equal, a, b))
#undef STET_BINARY
Expr operator-(Expr a) { return unary(Primitive::negate, a); }

namespace scalar {
Expr modulo(Expr a, Expr b) { return binary(Primitive::modulo, a, b); }
Expr minimum(Expr a, Expr b) { return binary(Primitive::minimum, a, b); }
Expr minimum(Expr a, Literal b) { return minimum(a, b.as(a.dtype())); }
Expr maximum(Expr a, Expr b) { return binary(Primitive::maximum, a, b); }
Expr maximum(Expr a, Literal b) { return maximum(a, b.as(a.dtype())); }
Expr power(Expr a, Expr b) { return binary(Primitive::power, a, b); }
Expr abs(Expr a) { return unary(Primitive::absolute, a); }
Expr floor(Expr a) { return unary(Primitive::floor, a); }
Expr ceil(Expr a) { return unary(Primitive::ceil, a); }
Expr round(Expr a) { return unary(Primitive::round, a); }
Expr sqrt(Expr a) { return unary(Primitive::sqrt, a); }
Expr exp(Expr a) { return unary(Primitive::exp, a); }
Expr log(Expr a) { return unary(Primitive::log, a); }
Expr sin(Expr a) { return unary(Primitive::sin, a); }
Expr cos(Expr a) { return unary(Primitive::cos, a); }
Expr tanh(Expr a) { return unary(Primitive::tanh, a); }
Expr erf(Expr a) { return unary(Primitive::erf, a); }
Expr erfc(Expr a) { return unary(Primitive::erfc, a); }
Expr exp2(Expr a) { return unary(Primitive::exp2, a); }
Expr expm1(Expr a) { return unary(Primitive::expm1, a); }
Expr log2(Expr a) { return unary(Primitive::log2, a); }
Expr log10(Expr a) { return unary(Primitive::log10, a); }
Expr erfinv(Expr a) { return unary(Primitive::erfinv, a); }
Expr log_gamma(Expr a) { return unary(Primitive::log_gamma, a); }
Expr digamma(Expr a) { return unary(Primitive::digamma, a); }
Expr atan2(Expr y, Expr x) { return binary(Primitive::atan2, y, x); }
Expr fma(Expr a, Expr b, Expr c) {
  Expr arguments[] = {a, b, c};
  return make(Primitive::fma, arguments, a.dtype());
}
Expr equal(Expr a, Expr b) { return compared(Primitive::equal, a, b); }
Expr equal(Expr a, Literal b) { return equal(a, b.as(a.dtype())); }
Expr logical_and(Expr a, Expr b) { return binary(Primitive::logical_and, a, b); }
Expr logical_or(Expr a, Expr b) { return binary(Primitive::logical_or, a, b); }
Expr logical_xor(Expr a, Expr b) { return binary(Primitive::logical_xor, a, b); }
Expr logical_not(Expr a) { return unary(Primitive::logical_not, a); }
Expr shift_left(Expr a, int count) { return shift_left(a, known_count(a, count)); }
Expr shift_left(Expr a, Expr count) { return binary(Primitive::shift_left, a, count); }
Expr shift_right(Expr a, int count) { return shift_right(a, known_count(a, count)); }
Expr shift_right(Expr a, Expr count) { return binary(Primitive::shift_right, a, count); }
Expr select(Expr condition, Expr a, Expr b) {
  Expr arguments[] = {condition, a, b};
  return make(Primitive::select, arguments, a.dtype());
}
Expr select_rarely(Expr condition, Expr a, Expr b) {
  Expr arguments[] = {condition, a, b};
  return make(Primitive::select_rarely, arguments, a.dtype());
}
Expr select(Expr condition, Expr a, Literal b) { return select(condition, a, b.as(a.dtype())); }
Expr select(Expr condition, Literal a, Expr b) { return select(condition, a.as(b.dtype()), b); }
Expr cast(Expr a, DType dtype) { return a.dtype() == dtype ? a : make(Primitive::cast, std::span(&a, 1), dtype); }
Expr bitcast(Expr a, DType dtype) { return a.dtype() == dtype ? a : make(Primitive::bitcast, std::span(&a, 1), dtype); }

Expr with_derivative(Expr value, Expr operand, Expr derivative) {
  if (!value.defined() || !operand.defined() || !derivative.defined() || !is_floating(value.dtype()) ||
      derivative.dtype() != value.dtype() || operand.dtype() != value.dtype())
    throw InternalError("with_derivative: value, operand and derivative must have one floating dtype");
  // A cast to its own type: whoever does not differentiate sees a node that does nothing, with one argument.
  ExprNode node{.primitive = Primitive::cast, .dtype = value.dtype(), .argument_count = 1, .custom_derivative = true};
  node.arguments[0] = value;
  node.arguments[1] = operand;
  node.derivative = derivative;
  return checked(node);
}

Expr with_derivatives(Expr value, std::span<const Partial> partials) {
  // The chain rule goes through the sum of the operands, each with its own slope. Nobody computes that sum.
  Expr along;
  for (const Partial& part : partials) {
    Expr one = with_derivative(part.operand, part.operand, part.derivative);
    along = along.defined() ? along + one : one;
  }
  return with_derivative(value, along, constant(1, value.dtype()));
}
}  // namespace scalar

// --- Walking

namespace {

/// The nodes below `root` in dependency order. `stated`: also what with_derivative nodes carry.
std::vector<Expr> ordered(Expr root, bool stated) {
  std::vector<Expr> order;
  if (!root.defined()) return order;
  std::unordered_set<const ExprNode*> done;
  struct Visit {
    Expr expr;
    int next;
  };
  std::vector<Visit> stack{{root, 0}};
  auto child = [&](const ExprNode& node, int i) -> Expr {
    if (i < node.argument_count) return node.arguments[i];
    if (!stated || !node.custom_derivative) return Expr();
    int extra = i - node.argument_count;
    return extra == 0 ? node.arguments[1] : extra == 1 ? node.derivative : Expr();
  };
  while (!stack.empty()) {
    Visit& top = stack.back();
    Expr next = done.contains(&*top.expr) ? Expr() : child(*top.expr, top.next++);
    if (next.defined()) {
      if (!done.contains(&*next)) stack.push_back({next, 0});
      continue;
    }
    Expr finished = top.expr;
    stack.pop_back();
    if (done.insert(&*finished).second) order.push_back(finished);
  }
  return order;
}

/// The expression rebuilt with every leaf passed through `leaf`.
Expr rebuilt(Expr root, const std::function<Expr(Expr)>& leaf) {
  std::unordered_map<const ExprNode*, Expr> replaced;
  for (Expr e : ordered(root, true)) {
    if (e->argument_count == 0) {
      replaced[&*e] = leaf(e);
      continue;
    }
    ExprNode node = *e;
    auto renew = [&](Expr& part) {
      if (part.defined()) part = replaced.at(&*part);
    };
    for (Expr& argument : node.arguments) renew(argument);
    renew(node.derivative);
    replaced[&*e] = checked(node);
  }
  return replaced.at(&*root);
}

}  // namespace

std::vector<Expr> topological(Expr root) { return ordered(root, false); }

Expr substitute(Expr root, std::span<const Expr> replacements) {
  return rebuilt(root, [&](Expr leaf) {
    if (!leaf.is(Primitive::operand)) return leaf;
    auto number = static_cast<std::size_t>(leaf->number);
    if (number >= replacements.size() || !replacements[number].defined() ||
        replacements[number].dtype() != leaf.dtype())
      throw InternalError(text("substitute: no replacement of type ", name(leaf.dtype()), " for x", number));
    return replacements[number];
  });
}

Expr renumber_loops(Expr root, std::span<const int> loops) {
  return rebuilt(root, [&](Expr leaf) {
    if (!leaf.is(Primitive::index)) return leaf;
    auto number = static_cast<std::size_t>(leaf->number);
    if (number >= loops.size()) throw InternalError(text("renumber_loops: no number for i", number));
    return loop_index(loops[number]);
  });
}

void verify(Expr root) {
  if (!root.defined()) throw InternalError("verify: undefined expression");
  for (Expr e : ordered(root, true)) {
    std::string fault = fault_of(*e);
    for (int i = 0; i < e->argument_count && fault.empty(); ++i)
      if (e->arguments[i]->id >= e->id) fault = "an argument is younger than its user";
    if (!fault.empty()) throw InternalError(text("verify: ", fault, ", in ", root.str(true)));
  }
}

// --- Text

namespace {

template <class Float>
std::string shortest(Float value) {
  char buffer[64];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

std::string constant_text(const ExprNode& node) {
  ScalarValue value = value_of(node.bits, node.dtype);
  if (node.dtype == DType::bool_) return value.integer ? "true" : "false";
  if (!is_floating(node.dtype)) return std::to_string(value.integer);
  if (std::isnan(value.real)) {
    // Which NaN it is can be seen through a bitcast.
    char digits[32];
    return text("nan_", std::string(digits, std::to_chars(digits, digits + sizeof digits, node.bits, 16).ptr));
  }
  return node.dtype == DType::f64 ? shortest(value.real) : shortest(static_cast<float>(value.real));
}

struct Phrase {
  std::string words;
  int binding = function_binding;
};

std::string wrapped(const Phrase& phrase, int at_least) {
  return phrase.binding >= at_least ? phrase.words : text("(", phrase.words, ")");
}

Phrase leaf_phrase(const ExprNode& node, bool typed) {
  Phrase phrase;
  if (node.primitive == Primitive::constant) {
    phrase.words = constant_text(node);
    if (phrase.words.starts_with('-')) phrase.binding = prefix_binding;
  } else {
    phrase.words = text(row_of(node.primitive).name, node.number);
  }
  if (typed && node.primitive != Primitive::index) phrase.words += text(":", name(node.dtype));
  return phrase;
}

Phrase phrase_of(const ExprNode& node, std::span<const Phrase> parts) {
  const PrimitiveRow& row = row_of(node.primitive);
  if (row.notation == Notation::infix)
    return {text(wrapped(parts[0], row.binding), " ", row.name, " ", wrapped(parts[1], row.binding + 1)), row.binding};
  if (row.notation == Notation::prefix) return {text(row.name, wrapped(parts[0], row.binding + 1)), row.binding};
  std::string list;
  for (std::size_t i = 0; i < parts.size(); ++i) list += text(i ? ", " : "", parts[i].words);
  if (node.primitive == Primitive::cast) return {text(name(node.dtype), "(", list, ")")};
  if (node.primitive == Primitive::bitcast) return {text("bitcast_", name(node.dtype), "(", list, ")")};
  return {text(row.name, "(", list, ")")};
}

}  // namespace

std::string Expr::str(bool typed) const {
  if (!node_) return "undefined";
  std::vector<Expr> order = topological(*this);
  std::unordered_map<const ExprNode*, int> uses;
  for (Expr e : order)
    for (int i = 0; i < e->argument_count; ++i) ++uses[&*e->arguments[i]];
  // What is used twice or is long gets a name, so that the text grows like the expression, and making it like the text.
  constexpr std::size_t long_phrase = 400;
  std::string definitions;
  std::unordered_map<const ExprNode*, Phrase> phrases;
  int names = 0;
  for (Expr e : order) {
    std::vector<Phrase> parts;
    for (int i = 0; i < e->argument_count; ++i) parts.push_back(phrases.at(&*e->arguments[i]));
    if (e->custom_derivative) {
      phrases[&*e] = parts[0];
      continue;
    }
    Phrase phrase = e->argument_count == 0 ? leaf_phrase(*e, typed) : phrase_of(*e, parts);
    if (e->argument_count > 0 && (uses[&*e] > 1 || phrase.words.size() > long_phrase)) {
      std::string label = text("t", names++);
      definitions += text(label, " = ", phrase.words, "; ");
      phrase = {label};
    }
    phrases[&*e] = std::move(phrase);
  }
  return definitions + phrases.at(node_).words;
}

}  // namespace stet
