// Writes random programs.
#include <cmath>

#include "rows.h"

namespace stet::random_programs {
namespace {

class Generator {
 public:
  Generator(std::uint64_t seed, const Features& features) : b_(seed, features) {
    b_.program.seed = seed;
    b_.program.real = b_.chance(0.7) ? DType::f32 : DType::f64;
    budget_ = 4 + static_cast<int>(b_.below(18));
  }

  Program run() {
    Program& p = b_.program;
    for (std::int64_t i = 0; i < 2; ++i) bases_.push_back(b_.role({Role::base, i, 0}));
    choose_sizes();
    Sight sight;
    b_.sight = &sight;
    make_arguments(sight);
    make_state(sight);
    make_routines();
    b_.sight = &sight;
    write(p.body, sight, budget_);
    finish(p.body, sight);
    return std::move(p);
  }

 private:
  using Set = std::vector<std::int64_t>;

  void choose_sizes() {
    // The first call is generic; later ones are of other sizes, of one, empty, and the first again.
    Set first{2 + b_.below(3), 5 + b_.below(3)};
    std::vector<Set> sets{first};
    for (int i = 0; i < 2; ++i) {
      auto size = [&] {
        std::int64_t way = b_.below(8);
        return way == 0 ? 0 : way == 1 ? 1 : 1 + b_.below(9);
      };
      std::int64_t b = size(), n = size();
      sets.push_back({b, n});
    }
    sets.push_back(first);
    if (b_.chance(0.1)) std::swap(sets[0], sets[1]);
    b_.program.size_sets = sets;
  }

  int a_shape_role() {
    switch (b_.below(6)) {
      case 0:
      case 1:
        return bases_[0];
      case 2:
        return bases_[1];
      case 3:
        return b_.constant(3);
      case 4:
        return b_.constant(4);
      default:
        return b_.constant(b_.chance(0.5) ? 1 : 3);
    }
  }

  void make_arguments(Sight& sight) {
    std::vector<std::vector<int>> shapes{{bases_[0], b_.constant(3)}};
    std::int64_t count = 1 + b_.below(3);
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<int> shape;
      for (std::int64_t r = b_.below(4); r > 0; --r) shape.push_back(a_shape_role());
      shapes.push_back(shape);
    }
    for (const auto& shape : shapes) add_argument(sight, {b_.program.real, shape});
    if (b_.chance(0.3)) add_argument(sight, {DType::i64, {bases_[0]}}, 0, 2);
    if (b_.chance(0.2)) add_argument(sight, {DType::bool_, {bases_[0], b_.constant(3)}}, 0, 1);
    // Roles that an argument must give.
    if (!b_.size(bases_[1])) add_argument(sight, {b_.program.real, {bases_[1]}});
  }
  void add_argument(Sight& sight, ValueType type, double low = -2, double high = 2) {
    int id = b_.value(std::move(type), low, high);
    b_.program.arguments.push_back(id);
    b_.program.argument_seeds.push_back(b_.number());
    sight.values.push_back(id);
  }

  void make_state(Sight& sight) {
    Program& p = b_.program;
    int three = b_.constant(3), four = b_.constant(4);
    std::vector<std::vector<int>> shapes{{}, {three}, {three, four}};
    if (b_.features.variables)
      for (std::int64_t i = b_.below(4); i > 0; --i)
        p.variables.push_back(
            {{p.real, shapes[static_cast<std::size_t>(b_.below(3))]}, b_.number(), b_.chance(0.85), b_.chance(0.3)});
    if (b_.features.captures)
      for (std::int64_t i = b_.below(3); i > 0; --i) {
        std::vector<int> shape = shapes[static_cast<std::size_t>(b_.below(3))];
        if (b_.chance(0.3)) shape = {b_.constant(20)};
        int id = b_.value({p.real, shape}, -2, 2);
        p.captured.push_back({{p.real, shape}, b_.number()});
        p.captured_values.push_back(id);
        sight.values.push_back(id);
        captured_.push_back(id);
      }
  }

  void make_routines() {
    Program& p = b_.program;
    if (b_.features.layers)
      for (std::int64_t i = b_.chance(0.5) ? 0 : 1 + b_.below(2); i > 0; --i) {
        LayerPart part;
        std::int64_t way = p.real == DType::f32 ? b_.below(6) : 0;
        if (way == 4) part.kind = LayerPart::dropout;
        if (way == 5) part.kind = LayerPart::dense, part.units = 3;
        if (part.kind == LayerPart::custom) {
          int x = b_.value({p.real, {bases_[0], b_.constant(3)}});
          part.routine.parameters = {x};
          Sight inner = inside({x}, static_cast<int>(p.layers.size()), true);
          write_routine(part.routine, inner, {p.real, {bases_[0], b_.constant(3)}});
        }
        p.layers.push_back(part);
      }
    if (b_.features.functions)
      for (std::int64_t i = b_.chance(0.5) ? 0 : 1 + b_.below(2); i > 0; --i) {
        Routine routine;
        int x = b_.value({p.real, {bases_[0], b_.constant(3)}}), y = b_.value({p.real, {}});
        routine.parameters = {x, y};
        Sight inner = inside({x, y}, static_cast<int>(p.functions.size()), false);
        write_routine(routine, inner, {p.real, {bases_[0], b_.constant(3)}});
        p.functions.push_back(routine);
      }
  }
  Sight inside(std::vector<int> parameters, int limit, bool layer) {
    Sight sight;
    sight.values = std::move(parameters);
    sight.values.insert(sight.values.end(), captured_.begin(), captured_.end());
    sight.routine_limit = limit;
    sight.in_layer = layer;
    sight.depth = 1;
    return sight;
  }
  void write_routine(Routine& routine, Sight& sight, const ValueType& result) {
    Sight* before = b_.sight;
    b_.sight = &sight;
    int whole = std::exchange(budget_, 6);
    write(routine.body, sight, 1 + static_cast<int>(b_.below(4)));
    budget_ = whole;
    routine.body.results = {of_type(routine.body, sight, result)};
    b_.sight = before;
  }

  // --- blocks

  void write(Block& block, Sight& sight, int wanted) {
    Sight* before = b_.sight;
    b_.sight = &sight;
    for (int made = 0, tries = 0; made < wanted && budget_ > 0 && tries < wanted * 12; ++tries)
      if (statement(block, sight)) ++made, --budget_;
    b_.sight = before;
  }

  bool statement(Block& block, Sight& sight) {
    Statement s;
    std::int64_t way = b_.below(100);
    bool made = false;
    if (way < 52)
      made = an_op(s);
    else if (way < 64)
      made = state(s, sight);
    else if (way < 84)
      made = structure(block, s, sight);
    else if (way < 90)
      made = routine(s, sight);
    else
      made = differentiate(s, sight);
    if (!made) return false;
    place(block, sight, std::move(s));
    return true;
  }
  static bool takes_gradients(const Statement& s) {
    return s.kind == Statement::gradient || std::any_of(s.blocks.begin(), s.blocks.end(), [](const Block& block) {
             return std::any_of(block.statements.begin(), block.statements.end(), takes_gradients);
           });
  }
  void place(Block& block, Sight& sight, Statement s) {
    using enum Statement::Kind;
    for (std::size_t i = 0; i < s.outputs.size(); ++i) {
      sight.values.push_back(s.outputs[i]);
      bool given = s.kind == read || s.kind == assign || s.kind == scope || s.kind == cond || s.kind == layer ||
                   s.kind == call || s.kind == loop;
      std::vector<int> could_be;
      for (const Block& inner : s.blocks)
        if (i < inner.results.size()) could_be.push_back(inner.results[i]);
      if (s.kind == loop && i < s.turns.carried) could_be.push_back(s.inputs[i]);
      if (s.kind == layer || s.kind == call) {
        could_be = s.inputs;
        could_be.insert(could_be.end(), captured_.begin(), captured_.end());
      }
      std::set<int>& same = b_.could_be[s.outputs[i]];
      for (int id : could_be) {
        given = given || b_.given.contains(id);
        same.insert(id);
        same.insert(b_.could_be[id].begin(), b_.could_be[id].end());
      }
      if (given) b_.given.insert(s.outputs[i]);
      if (given) b_.went_in.insert(same.begin(), same.end());
      bool derived = takes_gradients(s) ||
                     std::any_of(s.inputs.begin(), s.inputs.end(), [&](int id) { return b_.derived.contains(id); });
      if (derived) b_.derived.insert(s.outputs[i]);
    }
    block.statements.push_back(std::move(s));
  }

  bool an_op(Statement& s) {
    const auto& table = rows();
    const Row& r = table[static_cast<std::size_t>(b_.below(static_cast<std::int64_t>(table.size())))];
    s.name = r.name;
    return r.propose(b_, s, r);
  }

  bool state(Statement& s, Sight& sight) {
    Program& p = b_.program;
    if (p.variables.empty() || sight.tapes.size() > 5) return false;
    s.which = static_cast<int>(b_.below(static_cast<std::int64_t>(p.variables.size())));
    const ValueType type = p.variables[static_cast<std::size_t>(s.which)].type;
    if (b_.chance(0.5)) {
      s.kind = Statement::read;
      s.outputs = {b_.value(type, -100, 100)};
      return true;
    }
    int x = b_.pick([&](int id) { return b_.type(id) == type && b_.bound(id) <= 100; });
    if (x < 0) return false;
    s.kind = Statement::assign;
    s.numbers = {b_.features.updates ? b_.below(3) : 0};
    s.inputs = {x};
    s.outputs = {b_.value(type, -100, 100)};
    return true;
  }

  int condition(Block& block, Sight& sight) {
    int x = b_.pick([&](int id) { return b_.type(id) == ValueType{DType::bool_, {}}; });
    if (x >= 0 && b_.chance(0.3)) return x;
    Statement s;
    s.name = "sum_greater";
    const Row& r = row(s.name);
    if (!r.propose(b_, s, r)) return -1;
    int id = s.outputs[0];
    place(block, sight, std::move(s));
    return id;
  }

  Sight deeper(const Sight& sight, bool own_scope = false) {
    Sight inner = sight;
    ++inner.depth;
    if (own_scope) inner.decisions = std::make_shared<int>(0);
    return inner;
  }

  bool structure(Block& block, Statement& s, Sight& sight) {
    if (sight.depth >= 4) return false;
    if (b_.features.loops && b_.chance(0.4)) return a_loop(s, sight);
    switch (b_.below(5)) {
      case 0:
        return b_.features.scopes && a_scope(s, sight);
      case 1:
        return b_.features.conds && sides(block, s, sight, Statement::cond);
      case 2:
        return b_.features.tapes && a_tape(s, sight);
      default:
        return b_.features.decisions && *sight.decisions < 4 && sides(block, s, sight, Statement::decide);
    }
  }

  bool a_scope(Statement& s, Sight& sight) {
    s.kind = Statement::scope;
    s.blocks.resize(1);
    Sight inner = deeper(sight, true);
    write(s.blocks[0], inner, 1 + static_cast<int>(b_.below(4)));
    give(s, s.blocks[0], inner, 1 + b_.below(2));
    return true;
  }

  /// Values of the block as its results, and fresh ones of their types as the statement's outputs.
  void give(Statement& s, Block& block, Sight& inner, std::int64_t count) {
    Sight* before = b_.sight;
    b_.sight = &inner;
    for (std::int64_t i = 0; i < count; ++i) {
      int id = b_.pick([&](int v) { return b_.real(v) || b_.chance(0.2); });
      if (id < 0) continue;
      block.results.push_back(id);
      s.outputs.push_back(b_.value(b_.type(id), b_.low(id), b_.high(id)));
    }
    b_.sight = before;
  }

  bool sides(Block& block, Statement& s, Sight& sight, Statement::Kind kind) {
    int c = condition(block, sight);
    if (c < 0) return false;
    s.kind = kind;
    s.inputs = {c};
    s.blocks.resize(2);
    if (kind == Statement::decide) ++*sight.decisions;
    Sight shared = deeper(sight, kind == Statement::cond);
    std::vector<Sight> inner{shared, shared};
    for (int i = 0; i < 2; ++i)
      write(s.blocks[static_cast<std::size_t>(i)], inner[static_cast<std::size_t>(i)], static_cast<int>(b_.below(4)));
    give(s, s.blocks[0], inner[0], 1 + b_.below(2));
    for (std::size_t i = 0; i < s.outputs.size();) {
      int id = s.outputs[i], other = -1;
      const ValueType type = b_.type(id);
      b_.sight = &inner[1];
      // Sides of different size: that axis of the result is known when the branch has run.
      if (b_.features.late && type.shape.size() == 1 && b_.chance(0.15)) {
        other = b_.pick([&](int v) { return b_.type(v).dtype == type.dtype && b_.rank(v) == 1; });
        b_.program.facts = true;  // that they are equal, where they are by chance in the first call
        if (other >= 0 && b_.type(other).shape != type.shape)
          b_.program.values[static_cast<std::size_t>(id)].shape = {b_.role({Role::late})};
      }
      if (other < 0) other = of_type(s.blocks[1], inner[1], type);
      if (other < 0) {
        s.outputs.erase(s.outputs.begin() + static_cast<std::ptrdiff_t>(i));
        s.blocks[0].results.erase(s.blocks[0].results.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        s.blocks[1].results.push_back(other);
        b_.widen(id, other);
        ++i;
      }
    }
    b_.sight = &sight;
    if (b_.features.throws && b_.chance(0.06)) {
      Statement fail;
      fail.kind = Statement::fail;
      fail.numbers = {b_.below(1000)};
      s.blocks[static_cast<std::size_t>(b_.below(2))].statements.push_back(fail);
    }
    return true;
  }

  // --- loops

  bool a_loop(Statement& s, Sight& sight) {
    static constexpr Turns::Kind kinds[] = {Turns::number, Turns::size, Turns::value, Turns::condition,
                                            Turns::scan,   Turns::scan, Turns::scan,  Turns::map};
    s.kind = Statement::loop;
    Turns& turns = s.turns;
    turns.kind = kinds[b_.below(8)];
    const bool scans = turns.kind == Turns::scan || turns.kind == Turns::map;
    turns.count = turns.kind == Turns::condition ? 1 + b_.below(4) : b_.below(4);
    if (b_.chance(0.3)) turns.checkpoint_every = 1 + b_.below(3);
    turns.reverse = turns.kind == Turns::scan && b_.chance(0.3);
    if (turns.kind == Turns::size || turns.kind == Turns::value) {
      auto size = b_.size(bases_[static_cast<std::size_t>(b_.below(2))]);
      if (!size) return false;
      s.sizes = {*size};
    }
    // Values stay within what they are known to be at the beginning.
    if (turns.kind != Turns::map)
      for (std::int64_t i = b_.below(2); i >= 0; --i) {
        int x = b_.pick(
            [&](int id) { return !b_.has_late(b_.type(id)) && b_.bound(id) <= 4 && (b_.real(id) || b_.chance(0.1)); });
        if (x >= 0) s.inputs.push_back(x);
      }
    turns.carried = s.inputs.size();
    if (turns.carried == 0 && turns.kind != Turns::map) return false;
    int length = -1;
    for (std::int64_t i = b_.below(2); scans && i >= 0; --i) {
      int x = b_.pick([&](int id) {
        const ValueType& type = b_.type(id);
        return !type.shape.empty() && !b_.has_late(type) && (length < 0 || type.shape[0] == length);
      });
      if (x < 0) continue;
      length = b_.type(x).shape[0];
      s.inputs.push_back(x);
    }
    turns.sequences = s.inputs.size() - turns.carried;
    if (scans && turns.sequences == 0) return false;
    Sight inner = deeper(sight, true);
    inner.tapes.clear();
    s.blocks.resize(turns.kind == Turns::condition ? 2 : 1);
    write_turn(s, inner, length);
    if (s.outputs.empty()) return false;
    if (turns.kind == Turns::condition) return write_condition(s, sight);
    return true;
  }

  /// What a turn is handed: in sight, and nothing that is watched or asked for. A carried value may be the first one.
  int parameter(Block& block, Sight& inner, ValueType type, double low, double high, int first) {
    int id = b_.value(std::move(type), low, high);
    block.parameters.push_back(id);
    inner.values.push_back(id);
    b_.given.insert(id);
    if (first < 0) return id;
    b_.went_in.insert(first);
    b_.went_in.insert(b_.could_be[first].begin(), b_.could_be[first].end());
    b_.could_be[id] = b_.could_be[first];
    b_.could_be[id].insert(first);
    if (b_.derived.contains(first)) b_.derived.insert(id);
    return id;
  }

  void write_turn(Statement& s, Sight& inner, int length) {
    Block& body = s.blocks[0];
    Turns& turns = s.turns;
    for (std::size_t i = 0; i < s.inputs.size(); ++i) {
      const int x = s.inputs[i];
      ValueType type = b_.type(x);
      if (i < turns.carried) {
        const bool real = b_.real(x);
        parameter(body, inner, type, real ? std::min(b_.low(x), -1.) : b_.low(x),
                  real ? std::max(b_.high(x), 1.) : b_.high(x), x);
      } else {
        type.shape.erase(type.shape.begin());
        parameter(body, inner, type, b_.low(x), b_.high(x), -1);
      }
    }
    if (turns.counted()) parameter(body, inner, {DType::i64, {}}, 0, 9, -1);
    write(body, inner, 1 + static_cast<int>(b_.below(5)));
    for (std::size_t i = 0; i < turns.carried; ++i) {
      const int from = body.parameters[i];
      int next = b_.chance(0.1) ? from : of_type(body, inner, b_.type(from));
      if (next < 0) next = from;
      bool within = b_.low(next) >= b_.low(from) && b_.high(next) <= b_.high(from);
      if (!within && !b_.real(from)) next = from, within = true;
      turns.bounded.push_back(!within || (b_.real(from) && b_.chance(0.3)));
      body.results.push_back(next);
      s.outputs.push_back(b_.value(b_.type(from), b_.low(from), b_.high(from)));
    }
    if (length < 0) return;
    Sight* before = b_.sight;
    b_.sight = &inner;
    for (std::int64_t i = b_.below(3); i >= 0; --i) {
      int id =
          b_.pick([&](int v) { return (b_.real(v) || b_.chance(0.2)) && !b_.has_late(b_.type(v)) && b_.rank(v) < 4; });
      if (id < 0) continue;
      ValueType type = b_.type(id);
      type.shape.insert(type.shape.begin(), length);
      body.results.push_back(id);
      s.outputs.push_back(b_.value(type, b_.low(id), b_.high(id)));
    }
    b_.sight = before;
  }

  bool write_condition(Statement& s, Sight& sight) {
    Sight inner = deeper(sight, true);
    inner.tapes.clear();
    Block& block = s.blocks[1];
    for (std::size_t i = 0; i < s.turns.carried; ++i) {
      const int like = s.blocks[0].parameters[i];
      parameter(block, inner, b_.type(like), b_.low(like), b_.high(like), s.inputs[i]);
    }
    Sight* before = b_.sight;
    b_.sight = &inner;
    int decided = condition(block, inner);
    b_.sight = before;
    block.results = {decided};
    return decided >= 0;
  }

  /// A value of the wanted type, made if none is in sight; -1 if its sizes are not in sight.
  int of_type(Block& block, Sight& sight, const ValueType& type) {
    Sight* before = b_.sight;
    b_.sight = &sight;
    int id = b_.pick([&](int v) { return b_.type(v) == type; });
    auto sizes = b_.sizes(type.shape);
    if (id < 0 && sizes) {
      Statement s;
      int x = b_.pick_real();
      s.name = "fill_with";
      s.inputs = {x};
      s.sizes = *sizes;
      int made = b_.value({b_.program.real, type.shape}, -1, 1);
      s.outputs = {made};
      place(block, sight, std::move(s));
      id = made;
      if (type.dtype != b_.program.real) {
        Statement other;
        other.name = "cast_to";
        other.inputs = {made};
        other.numbers = {static_cast<std::int64_t>(type.dtype)};
        id = b_.value(type, 0, 1);
        other.outputs = {id};
        place(block, sight, std::move(other));
      }
    }
    b_.sight = before;
    return id;
  }

  // --- routines

  bool routine(Statement& s, Sight& sight) {
    Program& p = b_.program;
    const ValueType type{p.real, {bases_[0], b_.constant(3)}};
    int x = b_.pick([&](int id) { return b_.type(id) == type && b_.bound(id) < 100; });
    if (x < 0) return false;
    bool layer = b_.chance(0.5);
    std::int64_t count =
        layer ? static_cast<std::int64_t>(p.layers.size()) : static_cast<std::int64_t>(p.functions.size());
    // Code in a routine calls those of its kind that were written before it; functions call layers, not the other way.
    if (!layer && sight.in_layer) return false;
    if (layer == sight.in_layer) count = std::min<std::int64_t>(count, sight.routine_limit);
    if (count == 0) return false;
    s.which = static_cast<int>(b_.below(count));
    s.kind = layer ? Statement::layer : Statement::call;
    s.inputs = {x};
    if (!layer) {
      int y = b_.pick([&](int id) { return b_.type(id) == ValueType{p.real, {}} && b_.bound(id) < 100; });
      if (y < 0) return false;
      s.inputs.push_back(y);
    }
    s.outputs = {b_.value(type, -200, 200)};
    return true;
  }

  // --- tapes

  bool a_tape(Statement& s, Sight& sight) {
    if (sight.tapes.size() >= 2) return false;
    s.kind = Statement::tape;
    bool persistent = b_.chance(0.5);
    s.numbers = {persistent};
    s.blocks.resize(1);
    Sight inner = deeper(sight);
    inner.tapes.push_back({persistent, inner.depth, false, {}, static_cast<int>(b_.program.values.size())});
    Sight* before = b_.sight;
    b_.sight = &inner;
    Block& block = s.blocks[0];
    for (std::int64_t i = b_.below(3); i >= 0; --i) {
      int x = b_.pick([&](int id) { return b_.real(id) && !b_.given.contains(id) && !b_.went_in.contains(id); });
      if (x < 0) continue;
      Statement watch;
      watch.kind = Statement::watch;
      watch.which = static_cast<int>(inner.tapes.size()) - 1;
      watch.inputs = {x};
      inner.tapes.back().sources.push_back(x);
      place(block, inner, std::move(watch));
    }
    write(block, inner, 1 + static_cast<int>(b_.below(5)));
    if (!inner.tapes.back().spent) {
      Statement last;
      if (gradient(last, inner, static_cast<int>(inner.tapes.size()) - 1)) place(block, inner, std::move(last));
    }
    b_.sight = before;
    give(s, block, inner, 1 + b_.below(3));
    return true;
  }

  bool differentiate(Statement& s, Sight& sight) {
    if (sight.tapes.empty()) return false;
    int which = static_cast<int>(b_.below(static_cast<std::int64_t>(sight.tapes.size())));
    if (!sight.tapes[static_cast<std::size_t>(which)].persistent) return false;
    return gradient(s, sight, which);
  }

  bool gradient(Statement& s, Sight& sight, int which) {
    Sight::Tape& tape = sight.tapes[static_cast<std::size_t>(which)];
    int target = b_.pick([&](int id) {
      return b_.real(id) && !b_.has_late(b_.type(id)) && (id >= tape.first_value || !b_.given.contains(id)) &&
             (!tape.persistent || !b_.derived.contains(id));
    });
    if (target < 0) return false;
    s.kind = Statement::gradient;
    s.which = which;
    s.inputs = {target};
    std::vector<int> sources = tape.sources;
    if (b_.chance(0.3)) {
      int more = b_.pick([&](int id) {
        return b_.real(id) && !b_.has_late(b_.type(id)) && !b_.given.contains(id) && !b_.went_in.contains(id);
      });
      if (more >= 0) sources.push_back(more);
    }
    for (int id : sources)
      if (s.inputs.size() < 4 && b_.chance(0.7) && !b_.has_late(b_.type(id))) s.inputs.push_back(id);
    for (std::size_t v = 0; v < b_.program.variables.size(); ++v)
      if (b_.chance(0.5)) s.numbers.push_back(static_cast<std::int64_t>(v));
    for (std::size_t i = 1; i < s.inputs.size(); ++i) s.outputs.push_back(b_.value(b_.type(s.inputs[i]), -1000, 1000));
    for (std::int64_t v : s.numbers)
      s.outputs.push_back(b_.value(b_.program.variables[static_cast<std::size_t>(v)].type, -1000, 1000));
    if (s.outputs.empty()) return false;
    tape.spent = !tape.persistent;
    return true;
  }

  void finish(Block& block, Sight& sight) {
    b_.sight = &sight;
    std::int64_t count = 1 + b_.below(3);
    for (std::int64_t i = 0; i < count; ++i) block.results.push_back(b_.pick([](int) { return true; }));
    // What was computed last is looked at.
    block.results.push_back(sight.values.back());
  }

  Builder b_;
  std::vector<int> bases_, captured_;
  int budget_ = 0;
};

}  // namespace

Program generate(std::uint64_t seed, const Features& features) { return Generator(seed, features).run(); }

}  // namespace stet::random_programs
