#include "stet/cpu/convolution_library.h"

#include <algorithm>
#include <dnnl.hpp>
#include <string_view>
#include <unordered_map>

#include "stet/base/error.h"
#include "stet/cpu/openmp.h"
#include "stet/cpu/parallel_throwing.h"
#include "stet/runtime/buffer.h"

namespace stet::cpu {
namespace {

using Dims = dnnl::memory::dims;
using Description = dnnl::memory::desc;

/// Multiply-adds of a piece, about 20 microseconds: the call of a primitive costs less than one.
constexpr std::int64_t piece_work = 1'000'000;
/// A filter's gradient has a sum for each piece, in memory of its own.
constexpr std::int64_t most_sums = 8;
/// Beyond these oneDNN's 32-bit numbers would not do.
constexpr std::int64_t largest_size = 1 << 20, largest_elements = std::int64_t{1} << 30;

const dnnl::engine& engine() {
  static const auto* made = new dnnl::engine(dnnl::engine::kind::cpu, 0);  // never destroyed: see base/thread_end.h
  return *made;
}

/// [batch, positions…, channels], channels last, as oneDNN counts axes: batch, channels, positions.
Description images(std::int64_t batch, std::int64_t channels, const Dims& positions) {
  Dims dims{batch, channels}, strides(positions.size() + 2, 1);
  dims.insert(dims.end(), positions.begin(), positions.end());
  std::int64_t step = channels;
  for (std::size_t a = positions.size(); a-- > 0;) {
    strides[a + 2] = step;
    step *= positions[a];
  }
  strides[0] = step;
  return {dims, dnnl::memory::data_type::f32, strides};
}

struct Geometry {
  explicit Geometry(const ConvolutionSizes& s) : grouped(s.groups > 1) {
    for (const auto& axis : s.axes) {
      input.push_back(axis.input);
      output.push_back(axis.output);
      window.push_back(axis.filter);
      low.push_back(axis.low);
      high.push_back(axis.high());
      strides.push_back(axis.stride);
      dilations.push_back(axis.dilation - 1);
    }
    // [window…, channels, groups, features] as oneDNN counts axes: groups, features, channels, window.
    filter = grouped ? Dims{s.groups, s.features, s.channels} : Dims{s.features, s.channels};
    filter_strides = grouped ? Dims{s.features, 1, s.groups * s.features} : Dims{1, s.features};
    std::size_t first = filter.size();
    filter.insert(filter.end(), window.begin(), window.end());
    filter_strides.resize(filter.size());
    std::int64_t step = s.groups * s.features * s.channels;
    for (std::size_t a = window.size(); a-- > 0; step *= window[a]) filter_strides[first + a] = step;
  }
  Description plain_filter() const { return {filter, dnnl::memory::data_type::f32, filter_strides}; }
  Description any_filter() const { return {filter, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any}; }

  bool grouped;
  Dims input, output, window, low, high, strides, dilations;
  Dims filter, filter_strides;
};

/// Sizes that the library takes and is tested with; what is stranger goes by patches.
bool is_ordinary(const ConvolutionSizes& s) {
  if (s.batch < 1 || s.groups < 1 || s.channels < 1 || s.features < 1) return false;
  std::int64_t channels = s.groups * std::max(s.channels, s.features);
  auto small = [](std::int64_t size) { return size >= 1 && size <= largest_size; };
  if (!small(channels)) return false;
  for (const auto& axis : s.axes) {
    if (!small(axis.input) || !small(axis.filter) || !small(axis.output) || !small(axis.stride) ||
        !small(axis.dilation))
      return false;
    std::int64_t reach = (axis.filter - 1) * axis.dilation + 1;
    if (reach > largest_size || axis.low < 0 || axis.low >= reach || axis.high() >= reach ||
        axis.high() <= -axis.stride)
      return false;
  }
  auto few = [&](std::int64_t positions, std::int64_t each) { return positions <= largest_elements / each; };
  return few(s.inputs, channels) && few(s.outputs, channels) && few(s.windows, channels * s.channels);
}

/// What runs as it is compiled for the machine, and not as a reference or by a product of all patches.
bool is_fast(const char* implementation) {
  std::string_view name(implementation);
  return name.find("jit") == 0 || name.find("brg") == 0 || name.find("brd") == 0;
}

/// A primitive for pieces of one size.
struct Piece {
  dnnl::primitive primitive;
  Description input, filter, output, scratch;
};

template <class Made>
Piece described(const Made& made, Description input, Description filter, Description output) {
  return {dnnl::primitive(made), std::move(input), std::move(filter), std::move(output), made.scratchpad_desc()};
}

/// Nothing where the library has no fast code.
std::unique_ptr<Piece> piece_of(const ConvolutionSizes& s, const Geometry& geometry, std::int64_t batch) {
  using namespace dnnl;
  Description input = images(batch, s.groups * s.channels, geometry.input),
              output = images(batch, s.groups * s.features, geometry.output), filter = geometry.any_filter();
  primitive_attr attributes;
  attributes.set_scratchpad_mode(scratchpad_mode::user);
  constexpr auto direct = algorithm::convolution_direct;
  const Geometry& g = geometry;
  convolution_forward::primitive_desc forward(
      {prop_kind::forward_training, direct, input, filter, output, g.strides, g.dilations, g.low, g.high}, attributes,
      engine());
  if (s.result == ConvolutionResult::output) {
    if (!is_fast(forward.impl_info_str())) return nullptr;
    return std::make_unique<Piece>(described(forward, input, forward.weights_desc(), output));
  }
  if (s.result == ConvolutionResult::input) {
    convolution_backward_data::primitive_desc made(
        {direct, input, filter, output, g.strides, g.dilations, g.low, g.high}, attributes, engine(), forward);
    if (!is_fast(made.impl_info_str())) return nullptr;
    return std::make_unique<Piece>(described(made, input, made.weights_desc(), output));
  }
  convolution_backward_weights::primitive_desc made(
      {direct, input, filter, output, g.strides, g.dilations, g.low, g.high}, attributes, engine(), forward);
  if (!is_fast(made.impl_info_str())) return nullptr;
  return std::make_unique<Piece>(described(made, input, made.diff_weights_desc(), output));
}

class LibraryConvolution : public BoundStep {
 public:
  /// Throws dnnl::error or leaves `usable` false where the library has no code.
  explicit LibraryConvolution(const ConvolutionSizes& sizes) : s_(sizes) {
    Geometry geometry(s_);
    std::int64_t work = s_.outputs * s_.windows * s_.groups * s_.channels * s_.features;
    each_ = std::clamp<std::int64_t>(piece_work / std::max<std::int64_t>(work, 1), 1, s_.batch);
    if (s_.result == ConvolutionResult::filter) each_ = std::max(each_, (s_.batch + most_sums - 1) / most_sums);
    pieces_ = (s_.batch + each_ - 1) / each_;
    std::int64_t rest = s_.batch - (pieces_ - 1) * each_;
    whole_ = piece_of(s_, geometry, each_);
    if (!whole_) return;
    if (rest != each_) {
      last_ = piece_of(s_, geometry, rest);
      // Pieces share one form of the filter.
      if (!last_ || last_->filter != whole_->filter) return;
    }
    plain_filter_ = geometry.plain_filter();
    filter_as_is_ = whole_->filter == plain_filter_;
    if (!filter_as_is_) {
      bool to_plain = s_.result == ConvolutionResult::filter;
      const Description &from = to_plain ? whole_->filter : plain_filter_,
                        &to = to_plain ? plain_filter_ : whole_->filter;
      dnnl::primitive_attr attributes;
      attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
      dnnl::reorder::primitive_desc made(engine(), from, engine(), to, attributes);
      reorder_ = dnnl::reorder(made);
      reorder_scratch_ = made.scratchpad_desc();
    }
    usable = true;
  }

  void run(void* const* table) const override {
    try {
      if (s_.result == ConvolutionResult::filter)
        run_sums(table);
      else
        run_pieces(table);
    } catch (const dnnl::error& error) {
      throw InternalError(std::string("oneDNN failed in a convolution: ") + error.what());
    }
  }

  bool usable = false;

 private:
  using Arguments = std::unordered_map<int, dnnl::memory>;

  static void execute(const dnnl::primitive& primitive, Arguments arguments, const Description& scratch) {
    SingleOpenMpThread single;
    Buffer memory = Buffer::allocate(std::max<std::size_t>(scratch.get_size(), 1));
    arguments.insert({DNNL_ARG_SCRATCHPAD, {scratch, engine(), memory.data()}});
    dnnl::stream stream(engine());
    primitive.execute(stream, arguments);
    stream.wait();
  }
  void reorder(const Description& from_as, void* from, const Description& to_as, void* to) const {
    execute(reorder_, {{DNNL_ARG_FROM, {from_as, engine(), from}}, {DNNL_ARG_TO, {to_as, engine(), to}}},
            reorder_scratch_);
  }

  void run_piece(std::int64_t number, void* input, void* filter, void* output) const {
    const Piece& piece = last_ && number == pieces_ - 1 ? *last_ : *whole_;
    auto at = [&](void* first, const Description& as, std::int64_t image) {
      return dnnl::memory(as, engine(), static_cast<float*>(first) + number * each_ * image);
    };
    dnnl::memory x = at(input, piece.input, s_.inputs * s_.groups * s_.channels),
                 y = at(output, piece.output, s_.outputs * s_.groups * s_.features), w(piece.filter, engine(), filter);
    switch (s_.result) {
      case ConvolutionResult::output:
        return execute(piece.primitive, {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}}, piece.scratch);
      case ConvolutionResult::input:
        return execute(piece.primitive, {{DNNL_ARG_DIFF_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DIFF_DST, y}},
                       piece.scratch);
      case ConvolutionResult::filter:
        return execute(piece.primitive, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_WEIGHTS, w}, {DNNL_ARG_DIFF_DST, y}},
                       piece.scratch);
    }
  }

  void run_pieces(void* const* table) const {
    void* filter = table[s_.filter];
    Buffer turned;
    if (!filter_as_is_) {
      turned = Buffer::allocate(whole_->filter.get_size());
      reorder(plain_filter_, filter, whole_->filter, turned.data());
      filter = turned.data();
    }
    parallel_for_throwing(pieces_,
                          [&](std::int64_t piece) { run_piece(piece, table[s_.input], filter, table[s_.output]); });
  }

  void run_sums(void* const* table) const {
    std::size_t bytes = whole_->filter.get_size(), floats = bytes / sizeof(float);
    // The first sum goes straight to the result where the forms agree.
    Buffer sums = Buffer::allocate(bytes * static_cast<std::size_t>(pieces_));
    auto* first = filter_as_is_ ? static_cast<float*>(table[s_.filter]) : reinterpret_cast<float*>(sums.data());
    auto sum_at = [&](std::int64_t piece) {
      return piece == 0 ? first : reinterpret_cast<float*>(sums.data()) + static_cast<std::size_t>(piece) * floats;
    };
    parallel_for_throwing(
        pieces_, [&](std::int64_t piece) { run_piece(piece, table[s_.input], sum_at(piece), table[s_.output]); });
    for (std::int64_t piece = 1; piece < pieces_; ++piece) {
      const float* other = sum_at(piece);
      for (std::size_t i = 0; i < floats; ++i) first[i] += other[i];
    }
    if (!filter_as_is_) reorder(whole_->filter, first, plain_filter_, table[s_.filter]);
  }

  ConvolutionSizes s_;
  std::int64_t each_ = 1, pieces_ = 1;
  std::unique_ptr<Piece> whole_, last_;  // last_: where the last piece is smaller
  Description plain_filter_, reorder_scratch_;
  bool filter_as_is_ = false;
  dnnl::reorder reorder_;
};

/// Depthwise with several features for a channel, which the library has no code for: depthwise with one, of the input
/// with its channels repeated.
class RepeatedDepthwise : public BoundStep {
 public:
  RepeatedDepthwise(const ConvolutionSizes& sizes, std::unique_ptr<BoundStep> repeated)
      : s_(sizes), repeated_(std::move(repeated)) {}

  /// The same convolution of repeated channels, on buffers 0, 1 and 2.
  static ConvolutionSizes sizes_of(ConvolutionSizes sizes) {
    sizes.groups *= sizes.features;
    sizes.features = 1;
    sizes.input = 0;
    sizes.filter = 1;
    sizes.output = 2;
    return sizes;
  }

  void run(void* const* table) const override {
    std::int64_t row = s_.inputs * s_.groups;
    Buffer wide = Buffer::allocate(static_cast<std::size_t>(s_.batch * row * s_.features) * sizeof(float));
    auto* repeated = reinterpret_cast<float*>(wide.data());
    auto* plain = static_cast<float*>(table[s_.input]);
    auto repeat = [&](std::int64_t image) {
      for (std::int64_t i = image * row; i < (image + 1) * row; ++i)
        for (std::int64_t f = 0; f < s_.features; ++f) repeated[i * s_.features + f] = plain[i];
    };
    auto add_up = [&](std::int64_t image) {
      for (std::int64_t i = image * row; i < (image + 1) * row; ++i) {
        plain[i] = repeated[i * s_.features];
        for (std::int64_t f = 1; f < s_.features; ++f) plain[i] += repeated[i * s_.features + f];
      }
    };
    void* buffers[] = {repeated, table[s_.filter], table[s_.output]};
    if (s_.result != ConvolutionResult::input) parallel_for(s_.batch, repeat);
    repeated_->run(buffers);
    if (s_.result == ConvolutionResult::input) parallel_for(s_.batch, add_up);
  }

 private:
  ConvolutionSizes s_;
  std::unique_ptr<BoundStep> repeated_;
};

}  // namespace

std::unique_ptr<BoundStep> bind_library_convolution(const ConvolutionSizes& sizes) {
  if (!is_ordinary(sizes)) return nullptr;
  bool repeats = sizes.groups > 1 && sizes.channels == 1 && sizes.features > 1;
  try {
    SingleOpenMpThread single;  // how a primitive cuts its work depends on the threads it is made for
    auto made = std::make_unique<LibraryConvolution>(repeats ? RepeatedDepthwise::sizes_of(sizes) : sizes);
    if (!made->usable) return nullptr;
    if (repeats) return std::make_unique<RepeatedDepthwise>(sizes, std::move(made));
    return made;
  } catch (const dnnl::error&) {
    return nullptr;  // not implemented
  }
}

}  // namespace stet::cpu
