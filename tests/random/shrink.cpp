// Makes a program that differs smaller, as long as it differs in the same way.
#include <algorithm>
#include <chrono>
#include <functional>

#include "compare.h"

namespace stet::random_programs {
namespace {

struct Place {
  Block* block;
  std::vector<int> visible;  // when it begins
};

void visit(Block& block, std::vector<int> visible, std::vector<Place>& out) {
  visible.insert(visible.end(), block.parameters.begin(), block.parameters.end());
  out.push_back({&block, visible});
  for (Statement& s : block.statements) {
    for (Block& inner : s.blocks) visit(inner, visible, out);
    visible.insert(visible.end(), s.outputs.begin(), s.outputs.end());
  }
}

std::vector<Place> places(Program& p) {
  std::vector<Place> out;
  std::vector<int> visible = p.arguments;
  visible.insert(visible.end(), p.captured_values.begin(), p.captured_values.end());
  visit(p.body, visible, out);
  auto routine = [&](Routine& r) {
    std::vector<int> inside = r.parameters;
    inside.insert(inside.end(), p.captured_values.begin(), p.captured_values.end());
    visit(r.body, inside, out);
  };
  for (LayerPart& part : p.layers) routine(part.routine);
  for (Routine& r : p.functions) routine(r);
  return out;
}

void for_each_use(Block& block, const std::function<void(int&)>& use) {
  for (Statement& s : block.statements) {
    for (int& id : s.inputs) use(id);
    for (SizeSource& from : s.sizes)
      if (from.value >= 0) use(from.value);
    for (Block& inner : s.blocks) for_each_use(inner, use);
  }
  for (int& id : block.results) use(id);
}
void for_each_use(Program& p, const std::function<void(int&)>& use) {
  for_each_use(p.body, use);
  for (LayerPart& part : p.layers) for_each_use(part.routine.body, use);
  for (Routine& r : p.functions) for_each_use(r.body, use);
}
bool used(Program& p, int id) {
  bool found = false;
  for_each_use(p, [&](int& other) { found = found || other == id; });
  return found;
}
void replace(Program& p, int from, int to) {
  for_each_use(p, [&](int& id) {
    if (id == from) id = to;
  });
}

bool has_tapes(const Block& block) {
  for (const Statement& s : block.statements) {
    if (s.kind == Statement::tape || s.kind == Statement::watch || s.kind == Statement::gradient) return true;
    for (const Block& inner : s.blocks)
      if (has_tapes(inner)) return true;
  }
  return false;
}

class Edits {
 public:
  /// Applies edit `number` to the program. False: it does not apply there. `end`: there is no such edit.
  bool apply(Program& p, int number, bool& end) {
    end = false;
    int left = number;
    if (left < static_cast<int>(p.size_sets.size())) {
      if (p.size_sets.size() == 1) return false;
      p.size_sets.erase(p.size_sets.begin() + left);
      return true;
    }
    left -= static_cast<int>(p.size_sets.size());
    for (Place& place : places(p)) {
      int results = static_cast<int>(place.block->results.size());
      if (place.block == &p.body) {
        if (left < results) {
          if (results == 1) return false;
          place.block->results.erase(place.block->results.begin() + left);
          return true;
        }
        left -= results;
      }
      for (std::size_t i = 0; i < place.block->statements.size(); ++i) {
        if (left < kinds) return edit(p, place, i, left);
        left -= kinds;
      }
    }
    end = true;
    return false;
  }

 private:
  static constexpr int kinds = 5;

  std::vector<int> visible_at(const Place& place, std::size_t index) {
    std::vector<int> out = place.visible;
    for (std::size_t i = 0; i < index; ++i) {
      const std::vector<int>& made = place.block->statements[i].outputs;
      out.insert(out.end(), made.begin(), made.end());
    }
    return out;
  }

  bool edit(Program& p, Place& place, std::size_t index, int kind) {
    Block& block = *place.block;
    Statement& s = block.statements[index];
    if (kind == 0) return remove(p, place, index);
    if (kind == 1) return into_a_constant(p, place, index);
    if (kind == 2 || kind == 3) {
      auto side = static_cast<std::size_t>(kind - 2);
      if (s.kind == Statement::loop) return simpler_loop(s, kind == 3);
      if (side >= s.blocks.size() || (s.kind == Statement::tape && has_tapes(s.blocks[side]))) return false;
      Statement whole = s;
      for (std::size_t i = 0; i < whole.outputs.size(); ++i)
        replace(p, whole.outputs[i], whole.blocks[side].results[i]);
      std::vector<Statement>& list = block.statements;
      std::vector<Statement> inner = std::move(whole.blocks[side].statements);
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(index));
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(index), inner.begin(), inner.end());
      return true;
    }
    // Fewer outputs.
    for (std::size_t i = s.kind == Statement::loop ? s.turns.carried : 0; i < s.outputs.size(); ++i)
      if (!s.blocks.empty() && !used(p, s.outputs[i])) {
        s.outputs.erase(s.outputs.begin() + static_cast<std::ptrdiff_t>(i));
        for (Block& inner : s.blocks)
          if (i < inner.results.size()) inner.results.erase(inner.results.begin() + static_cast<std::ptrdiff_t>(i));
        return true;
      }
    if (s.kind == Statement::gradient && s.outputs.size() > 1)
      for (std::size_t i = 0; i < s.outputs.size(); ++i)
        if (!used(p, s.outputs[i])) {
          s.outputs.erase(s.outputs.begin() + static_cast<std::ptrdiff_t>(i));
          if (i + 1 < s.inputs.size())
            s.inputs.erase(s.inputs.begin() + static_cast<std::ptrdiff_t>(i) + 1);
          else
            s.numbers.erase(s.numbers.begin() + static_cast<std::ptrdiff_t>(i - (s.inputs.size() - 1)));
          return true;
        }
    return false;
  }

  /// Without options, or with next values that are the last ones.
  bool simpler_loop(Statement& s, bool idle) {
    if (!idle) {
      if (!s.turns.reverse && !s.turns.checkpoint_every) return false;
      s.turns.reverse = false;
      s.turns.checkpoint_every = 0;
      return true;
    }
    for (std::size_t i = 0; i < s.turns.carried; ++i) {
      Block& body = s.blocks[0];
      if (body.results[i] == body.parameters[i]) continue;
      body.results[i] = body.parameters[i];
      return true;
    }
    return false;
  }

  bool remove(Program& p, Place& place, std::size_t index) {
    std::vector<int> visible = visible_at(place, index);
    std::vector<int> outputs = place.block->statements[index].outputs;
    for (int id : outputs) {
      if (!used(p, id)) continue;
      const ValueType& type = p.values[static_cast<std::size_t>(id)];
      auto other = std::find_if(visible.rbegin(), visible.rend(),
                                [&](int v) { return p.values[static_cast<std::size_t>(v)] == type; });
      if (other == visible.rend()) return false;
      replace(p, id, *other);
    }
    place.block->statements.erase(place.block->statements.begin() + static_cast<std::ptrdiff_t>(index));
    return true;
  }

  bool into_a_constant(Program& p, Place& place, std::size_t index) {
    Statement& s = place.block->statements[index];
    if (s.outputs.size() != 1 || (s.kind == Statement::op && s.name == "fill")) return false;
    const ValueType& type = p.values[static_cast<std::size_t>(s.outputs[0])];
    if (type.dtype != p.real) return false;
    Statement made;
    made.name = "fill";
    made.reals = {0.5};
    made.outputs = s.outputs;
    std::vector<int> visible = visible_at(place, index);
    for (int role : type.shape) {
      SizeSource from;
      const Role& r = p.roles[static_cast<std::size_t>(role)];
      if (r.kind == Role::constant) {
        from.constant = r.a;
      } else {
        for (int v : visible) {
          const std::vector<int>& shape = p.values[static_cast<std::size_t>(v)].shape;
          auto axis = std::find(shape.begin(), shape.end(), role);
          if (axis != shape.end()) from = {v, static_cast<int>(axis - shape.begin()), 0};
        }
        if (from.value < 0) return false;
      }
      made.sizes.push_back(from);
    }
    s = made;
    return true;
  }
};

}  // namespace

Program shrunk(const Program& program, const std::function<bool(const Program&)>& fails) {
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  Program best = program;
  Edits edits;
  for (bool smaller = true; smaller;) {
    smaller = false;
    bool end = false;
    for (int number = 0; !end && std::chrono::steady_clock::now() < until; ++number) {
      Program next = best;
      if (!edits.apply(next, number, end)) continue;
      if (fails(next)) {
        best = next;
        smaller = true;
        --number;
      }
    }
  }
  return best;
}

}  // namespace stet::random_programs
