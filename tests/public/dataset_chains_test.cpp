// Random chains of stages beside a plain model: vectors and loops. Every chain is iterated twice, resumed from every
// position, and counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>

#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

using Numbers = std::vector<std::int64_t>;

/// An element: a tensor of i64.
struct Value {
  Numbers shape, data;
  bool operator==(const Value&) const = default;
};
using Values = std::vector<Value>;

std::string str(const Values& values) {
  std::string out;
  for (const Value& value : values) {
    out += "[" + joined(value.shape, ",") + "]:" + joined(value.data, ",") + " ";
    if (out.size() > 600) return out + "…";
  }
  return out;
}

Values rest_of(data::Iteration iteration) {
  Values out;
  while (iteration.next()) {
    const Tensor& x = iteration.tensors()[0];
    out.push_back({x.shape().sizes(), x.to_vector<std::int64_t>()});
  }
  return out;
}

/// A pipeline and what it gives.
struct Chain {
  data::Dataset<Tensor> dataset;
  Values values;
  std::string made;
};

std::int64_t sum_of(const Value& value) {
  return std::accumulate(value.data.begin(), value.data.end(), std::int64_t{0});
}

Value plus(Value value, std::int64_t more) {
  for (std::int64_t& one : value.data) one += more;
  return value;
}
Value stack(std::span<const Value> rows) {
  Value out{rows[0].shape, {}};
  out.shape.insert(out.shape.begin(), static_cast<std::int64_t>(rows.size()));
  for (const Value& row : rows) out.data.insert(out.data.end(), row.data.begin(), row.data.end());
  return out;
}
/// Padded at its end, one element at a time.
Value pad(const Value& value, const Numbers& shape, std::int64_t padding) {
  Value out{shape, {}};
  const std::int64_t count = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  for (std::int64_t at = 0; at < count; ++at) {
    std::int64_t left = at, from = 0, inside = 1;
    Numbers index(shape.size());
    for (std::size_t axis = shape.size(); axis-- > 0; left /= shape[axis]) index[axis] = left % shape[axis];
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      inside &= index[axis] < value.shape[axis];
      from = from * value.shape[axis] + index[axis];
    }
    out.data.push_back(inside ? value.data[static_cast<std::size_t>(from)] : padding);
  }
  return out;
}
Values cut(const Values& values, std::size_t from, std::size_t to) {
  from = std::min(from, values.size());
  to = std::clamp(to, from, values.size());
  return {values.begin() + static_cast<std::ptrdiff_t>(from), values.begin() + static_cast<std::ptrdiff_t>(to)};
}
bool one_shape(const Values& values) {
  return std::all_of(values.begin(), values.end(), [&](const Value& v) { return v.shape == values[0].shape; });
}
bool one_rank(const Values& values) {
  return std::all_of(values.begin(), values.end(),
                     [&](const Value& v) { return v.shape.size() == values[0].shape.size(); });
}

/// As tf.data's documentation has it: places of a cycle, each gives a block in turn.
Values interleaved(const std::vector<Values>& inner, std::size_t cycle, std::size_t block) {
  Values out;
  std::vector<std::pair<const Values*, std::size_t>> places(cycle, {nullptr, 0});
  std::size_t next = 0, place = 0, open = 0;
  while (next < inner.size() || open > 0) {
    auto& [values, at] = places[place];
    if (!values && next < inner.size()) {
      values = &inner[next++];
      at = 0;
      ++open;
    }
    bool ended = false;
    for (std::size_t i = 0; values && i < block && !ended; ++i) {
      if (at == values->size())
        ended = true;
      else
        out.push_back((*values)[at++]);
    }
    if (ended) {
      values = nullptr;
      --open;
    }
    place = (place + 1) % cycle;
  }
  return out;
}

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(bound));
  }

  Chain source() {
    const std::int64_t count = below(13);
    Chain chain{data::range(0), {}, ""};
    switch (below(4)) {
      case 0:
        chain.dataset = data::range(5, 5 + 2 * count, 2);
        for (std::int64_t i = 0; i < count; ++i) chain.values.push_back({{}, {5 + 2 * i}});
        chain.made = "range";
        break;
      case 1:
        chain.dataset = data::from_tensor_slices(reshape(arange(count * 3), {count, 3}));
        for (std::int64_t i = 0; i < count; ++i) chain.values.push_back({{3}, {3 * i, 3 * i + 1, 3 * i + 2}});
        chain.made = "slices";
        break;
      case 2: {
        Numbers lengths;
        for (std::int64_t i = 0; i < count; ++i) {
          lengths.push_back(below(4));
          chain.values.push_back({{lengths.back()}, Numbers(static_cast<std::size_t>(lengths.back()), 10 * i)});
        }
        Numbers numbers(static_cast<std::size_t>(count));
        std::iota(numbers.begin(), numbers.end(), 0);
        chain.dataset = data::from_range(numbers, [lengths](std::int64_t i) {
          return cast(full({lengths[static_cast<std::size_t>(i)]}, 10 * i), i64);
        });
        chain.made = "from_range";
        break;
      }
      default:
        chain.dataset = data::from_generator([count] {
          return [count, at = std::int64_t{0}]() mutable -> std::optional<std::int64_t> {
            if (at == count) return std::nullopt;
            return at++ * 7;
          };
        });
        for (std::int64_t i = 0; i < count; ++i) chain.values.push_back({{}, {7 * i}});
        chain.made = "from_generator";
    }
    chain.made += "(" + std::to_string(count) + ")";
    return chain;
  }

  /// One stage more, of a kind that these elements allow.
  Chain longer(const Chain& before) {
    Chain chain = before;
    const Values& v = before.values;
    const auto& d = before.dataset;
    Values& out = chain.values;
    const auto n = static_cast<std::int64_t>(v.size());
    auto name = [&](const std::string& text) { chain.made += " > " + text; };
    auto size = [](std::int64_t i) { return static_cast<std::size_t>(i); };
    switch (below(22)) {
      case 0: {
        const std::int64_t count = below(n + 3);
        chain.dataset = d.take(count);
        out = cut(v, 0, size(count));
        name("take " + std::to_string(count));
        break;
      }
      case 1: {
        const std::int64_t count = below(n + 3);
        chain.dataset = d.skip(count);
        out = cut(v, size(count), v.size());
        name("skip " + std::to_string(count));
        break;
      }
      case 2: {
        const std::int64_t count = 1 + below(3), index = below(count);
        chain.dataset = d.shard(count, index);
        out.clear();
        for (std::int64_t i = index; i < n; i += count) out.push_back(v[size(i)]);
        name("shard " + std::to_string(count) + "," + std::to_string(index));
        break;
      }
      case 3: {
        const std::int64_t count = below(4);
        chain.dataset = d.repeat(count);
        out.clear();
        for (std::int64_t i = 0; i < count; ++i) out.insert(out.end(), v.begin(), v.end());
        name("repeat " + std::to_string(count));
        break;
      }
      case 4: {
        const std::int64_t buffer = 1 + below(n + 2);
        const data::ShuffleOptions options{.seed = random_(), .reshuffle_each_iteration = false};
        chain.dataset = d.shuffle(buffer, options);
        out.clear();
        for (Tensor i : data::range(n).shuffle(buffer, options)) out.push_back(v[i.item<std::size_t>()]);
        name("shuffle " + std::to_string(buffer));
        break;
      }
      case 5:
      case 6: {
        const data::MapOptions options{.num_parallel_calls = below(4)};
        const bool host = below(2);
        chain.dataset = host ? d.map_host([](const Tensor& x) { return x + 3; }, options)
                             : d.map([](Tensor x) { return x + 3; }, options);
        for (Value& one : out) one = plus(one, 3);
        name((host ? "map_host " : "map ") + std::to_string(options.num_parallel_calls));
        break;
      }
      case 7: {
        if (below(2))
          chain.dataset = d.filter([](Tensor x) { return sum(x) % 3 != 0; });
        else
          chain.dataset = d.filter_host([](const Tensor& x) { return sum(x).item<std::int64_t>() % 3 != 0; });
        std::erase_if(out, [](const Value& one) { return sum_of(one) % 3 == 0; });
        name("filter");
        break;
      }
      case 8: {
        chain.dataset = d.take_while([](Tensor x) { return sum(x) < 90; });
        const auto end = std::find_if(v.begin(), v.end(), [](const Value& one) { return sum_of(one) >= 90; });
        out.assign(v.begin(), end);
        name("take_while");
        break;
      }
      case 9: {
        if (!one_shape(v)) return before;
        const std::int64_t count = 1 + below(5);
        const bool drop = below(2);
        chain.dataset = d.batch(count, {.drop_remainder = drop});
        out.clear();
        for (std::int64_t i = 0; i < n; i += count)
          if (!drop || i + count <= n) out.push_back(stack(cut(v, size(i), size(i + count))));
        name("batch " + std::to_string(count) + (drop ? " drop" : ""));
        break;
      }
      case 10: {
        if (!one_rank(v) || (n > 0 && v[0].shape.size() > 3)) return before;
        const std::int64_t count = 1 + below(4);
        chain.dataset = d.padded_batch(count, {.padding_values = {-7}});
        out.clear();
        for (std::int64_t i = 0; i < n; i += count) {
          Values rows = cut(v, size(i), size(i + count));
          Numbers shape = rows[0].shape;
          for (const Value& row : rows)
            for (std::size_t axis = 0; axis < shape.size(); ++axis)
              shape[axis] = std::max(shape[axis], row.shape[axis]);
          for (Value& row : rows) row = pad(row, shape, -7);
          out.push_back(stack(rows));
        }
        name("padded_batch " + std::to_string(count));
        break;
      }
      case 11: {
        if (!one_rank(v) || n == 0 || v[0].shape.empty()) return before;
        chain.dataset = d.unbatch();
        out.clear();
        for (const Value& one : v) {
          const Numbers shape(one.shape.begin() + 1, one.shape.end());
          const std::size_t each = one.shape[0] == 0 ? 0 : one.data.size() / size(one.shape[0]);
          for (std::size_t i = 0; i < size(one.shape[0]); ++i)
            out.push_back({shape, Numbers(one.data.begin() + static_cast<std::ptrdiff_t>(i * each),
                                          one.data.begin() + static_cast<std::ptrdiff_t>((i + 1) * each))});
        }
        name("unbatch");
        break;
      }
      case 12: {
        if (!one_shape(v)) return before;
        const std::int64_t count = 1 + below(4), shift = 1 + below(5), stride = 1 + below(3);
        const bool drop = below(2);
        chain.dataset = d.window(count, {.shift = shift, .stride = stride, .drop_remainder = drop});
        out.clear();
        for (std::int64_t first = 0; first < n; first += shift) {
          Values rows;
          for (std::int64_t i = 0; i < count && first + i * stride < n; ++i)
            rows.push_back(v[size(first + i * stride)]);
          if (!drop || static_cast<std::int64_t>(rows.size()) == count) out.push_back(stack(rows));
        }
        name("window " + std::to_string(count) + "," + std::to_string(shift) + "," + std::to_string(stride) +
             (drop ? " drop" : ""));
        break;
      }
      case 13: {
        chain.dataset = d.prefetch(below(2) ? 1 + below(3) : data::autotune);
        name("prefetch");
        break;
      }
      case 14: {
        chain.dataset = d.cache();
        name("cache");
        break;
      }
      case 15: {
        Chain other = source();
        if (!one_rank(v) || !one_rank(other.values)) return before;
        if (below(3) == 0) other = {before.dataset.take(3), cut(v, 0, 3), "its first 3"};
        chain.dataset = d.concatenate(other.dataset);
        out.insert(out.end(), other.values.begin(), other.values.end());
        name("concatenate(" + other.made + ")");
        break;
      }
      case 16: {
        chain.dataset = d.enumerate(4).map([](Tensor i, Tensor x) { return x + i; });
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = plus(out[i], static_cast<std::int64_t>(i) + 4);
        name("enumerate");
        break;
      }
      case 17: {
        Chain other = source();
        chain.dataset = data::zip(d, other.dataset.map([](Tensor x) { return sum(x); })).map([](Tensor x, Tensor y) {
          return x + y;
        });
        out.resize(std::min(out.size(), other.values.size()));
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = plus(out[i], sum_of(other.values[i]));
        name("zip(" + other.made + ")");
        break;
      }
      case 18: {
        chain.dataset = d.scan(std::int64_t{2}, [](Tensor state, Tensor x) {
          return std::pair{state + sum(x), x + state};
        });
        std::int64_t state = 2;
        for (Value& one : out) {
          const std::int64_t next = state + sum_of(one);
          one = plus(one, state);
          state = next;
        }
        name("scan");
        break;
      }
      default: {
        const data::InterleaveOptions options{
            .cycle_length = 1 + below(4), .block_length = 1 + below(3), .num_parallel_calls = below(3)};
        const bool flat = below(3) == 0;
        auto open = [](const Tensor& x) {
          const std::int64_t copies = (sum(x).item<std::int64_t>() % 4 + 4) % 4;
          return data::from_tensor_slices(arange(copies)).map([x](Tensor i) { return x + i * 100; });
        };
        chain.dataset = flat ? d.flat_map(open) : d.interleave(open, options);
        std::vector<Values> inner;
        for (const Value& one : v) {
          inner.emplace_back();
          for (std::int64_t i = 0; i < (sum_of(one) % 4 + 4) % 4; ++i) inner.back().push_back(plus(one, 100 * i));
        }
        out = flat ? interleaved(inner, 1, 1)
                   : interleaved(inner, size(options.cycle_length), size(options.block_length));
        name(flat ? "flat_map"
                  : "interleave " + std::to_string(options.cycle_length) + "," + std::to_string(options.block_length) +
                        "," + std::to_string(options.num_parallel_calls));
        break;
      }
    }
    std::size_t numbers = 0;
    for (const Value& one : out) numbers += one.data.size() + 1;
    return numbers > 600 || (!out.empty() && out[0].shape.size() > 5) ? before : chain;
  }

 private:
  std::mt19937_64 random_;
};

void check(const Chain& chain) {
  SCOPED_TRACE(chain.made);
  data::Iteration iteration = chain.dataset.iterate();
  std::vector<data::IterationPosition> positions{iteration.position()};
  Values all;
  while (iteration.next()) {
    all.push_back({iteration.tensors()[0].shape().sizes(), iteration.tensors()[0].to_vector<std::int64_t>()});
    positions.push_back(iteration.position());
    ASSERT_LE(all.size(), chain.values.size()) << str(all) << "\nexpected " << str(chain.values);
  }
  ASSERT_EQ(all, chain.values) << str(all) << "\nexpected " << str(chain.values);
  EXPECT_EQ(rest_of(chain.dataset.iterate()), all);
  const auto count = static_cast<std::int64_t>(all.size());
  EXPECT_EQ(chain.dataset.cardinality().value_or(count), count);
  for (std::size_t at = 0; at < positions.size(); at += 1 + at / 12)
    ASSERT_EQ(rest_of(chain.dataset.iterate_from(positions[at])), cut(all, at, all.size())) << "from " << at;
  if (!all.empty()) {
    const std::vector<TensorSpec> specs = chain.dataset.element_spec();
    ASSERT_EQ(specs.size(), 1u);
    EXPECT_EQ(specs[0].dtype, i64);
    EXPECT_EQ(specs[0].shape.rank(), static_cast<int>(all[0].shape.size()));
  }
  EXPECT_CONTAINS(chain.dataset.explain(), "stage");
}

TEST(DatasetChains, AreWhatTheirStagesSay) {
  on_retrace([](const RetraceEvent&) {});  // every chain has functions of its own
  const char* asked = std::getenv("STET_CHAINS");
  const std::uint64_t chains = asked ? std::strtoull(asked, nullptr, 10) : 300;
  const char* from = std::getenv("STET_CHAINS_FROM");
  const std::uint64_t first = from ? std::strtoull(from, nullptr, 10) : 0;
  for (std::uint64_t seed = first; seed < first + chains; ++seed) {
    SCOPED_TRACE("STET_CHAINS=1 STET_CHAINS_FROM=" + std::to_string(seed));
    Maker maker(seed);
    Chain chain = maker.source();
    for (std::int64_t stages = 1 + maker.below(6); stages > 0; --stages) chain = maker.longer(chain);
    check(chain);
    if (HasFailure()) break;
  }
  on_retrace({});
}

}  // namespace
