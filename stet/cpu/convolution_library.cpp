#include "stet/cpu/convolution_library.h"

#include <algorithm>
#include <atomic>
#include <dnnl.hpp>
#include <set>
#include <string>
#include <string_view>

#include "stet/base/error.h"
#include "stet/base/lock.h"
#include "stet/base/process_end.h"
#include "stet/base/text.h"
#include "stet/base/thread_end.h"
#include "stet/cpu/openmp.h"
#include "stet/cpu/parallel_throwing.h"
#include "stet/runtime/buffer.h"

namespace stet::cpu {
namespace {

using Dims = dnnl::memory::dims;
using Description = dnnl::memory::desc;

/// Multiply-adds of a piece of several images: ten microseconds and more, as to call a primitive costs one or two, and
/// some hundred at most. Between them the images are cut into as many pieces as threads can share evenly.
constexpr std::int64_t least_work = 1'000'000, most_work = 16'000'000, enough_pieces = 16;
/// A filter's gradient has a sum for each piece, in memory of its own.
constexpr std::int64_t most_sums = 8;
/// Beyond these oneDNN's 32-bit numbers would not do.
constexpr std::int64_t largest_size = 1 << 20, largest_elements = std::int64_t{1} << 30;

const dnnl::engine& engine() {
  static const auto* made = new dnnl::engine(dnnl::engine::kind::cpu, 0);  // never destroyed: see base/thread_end.h
  return *made;
}

/// oneDNN ends with the process, before static objects that were made before its own: the tables in which it finds its
/// implementations, each made when it is first asked for. Primitives that are there go on running.
constinit std::atomic<bool> ended{false};

/// To be called behind what may be the library's first answer of this kind, for which it may have made statics.
void expect_its_end(const std::string& kind) {
  static auto* const lock = new Lock;
  static auto* const known = new std::set<std::string>;
  std::scoped_lock locked(*lock);
  if (known->insert(kind).second) at_process_end([] { ended = true; });
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
bool is_fast(std::string_view name) { return name.find("jit") == 0 || name.find("brg") == 0 || name.find("brd") == 0; }

struct Argument {
  int number;
  Description description;
};

/// A primitive, and what it takes; the last argument is its scratch memory.
struct Primitive {
  template <class Made>
  Primitive(const Made& made, std::vector<Argument> taken)
      : primitive(made.get()), implementation(made.impl_info_str()), arguments(std::move(taken)) {
    arguments.push_back({DNNL_ARG_SCRATCHPAD, made.scratchpad_desc()});
  }
  /// At the addresses of all arguments but the scratch memory.
  void execute(std::initializer_list<void*> addresses) const;

  dnnl::primitive primitive;
  std::string implementation;
  std::vector<Argument> arguments;

 private:
  static std::uint64_t another() {
    static std::atomic<std::uint64_t> made{0};
    return ++made;
  }
  std::uint64_t number_ = another();  // of all that were ever made
};

/// What the library wants to be told at each call, made once for the calls that a thread makes one after the other: to
/// make it takes as long as a small piece.
struct CallsOfThread {
  dnnl::stream stream{engine()};
  std::uint64_t primitive = 0;  // whose arguments these are
  std::vector<dnnl::memory> memory;
  std::vector<dnnl_exec_arg_t> arguments;
};
thread_local CallsOfThread* calls_of_this_thread = nullptr;

void Primitive::execute(std::initializer_list<void*> addresses) const {
  SingleOpenMpThread single;
  CallsOfThread& calls = calls_of_this_thread ? *calls_of_this_thread : make_for_this_thread(calls_of_this_thread);
  if (calls.primitive != number_) {
    calls.primitive = 0;
    calls.memory.clear();
    calls.arguments.clear();
    for (const Argument& argument : arguments) {
      calls.memory.emplace_back(argument.description, engine(), nullptr);
      calls.arguments.push_back({argument.number, calls.memory.back().get()});
    }
    calls.primitive = number_;
  }
  const Buffer scratch = Buffer::allocate(std::max<std::size_t>(arguments.back().description.get_size(), 1));
  std::size_t at = 0;
  for (void* address : addresses) calls.memory[at++].set_data_handle(address, calls.stream);
  calls.memory[at].set_data_handle(scratch.data(), calls.stream);
  dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive.get(), calls.stream.get(),
                                                 static_cast<int>(calls.arguments.size()), calls.arguments.data()),
                          "a primitive did not run");
  calls.stream.wait();
}

/// Nothing where the library has no fast code.
std::unique_ptr<Primitive> piece_of(const ConvolutionSizes& s, const Geometry& geometry, std::int64_t batch) {
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
    return std::make_unique<Primitive>(
        forward, std::vector<Argument>{
                     {DNNL_ARG_SRC, input}, {DNNL_ARG_WEIGHTS, forward.weights_desc()}, {DNNL_ARG_DST, output}});
  }
  if (s.result == ConvolutionResult::input) {
    convolution_backward_data::primitive_desc made(
        {direct, input, filter, output, g.strides, g.dilations, g.low, g.high}, attributes, engine(), forward);
    if (!is_fast(made.impl_info_str())) return nullptr;
    return std::make_unique<Primitive>(
        made, std::vector<Argument>{
                  {DNNL_ARG_DIFF_SRC, input}, {DNNL_ARG_WEIGHTS, made.weights_desc()}, {DNNL_ARG_DIFF_DST, output}});
  }
  convolution_backward_weights::primitive_desc made(
      {direct, input, filter, output, g.strides, g.dilations, g.low, g.high}, attributes, engine(), forward);
  if (!is_fast(made.impl_info_str())) return nullptr;
  return std::make_unique<Primitive>(
      made, std::vector<Argument>{
                {DNNL_ARG_SRC, input}, {DNNL_ARG_DIFF_WEIGHTS, made.diff_weights_desc()}, {DNNL_ARG_DIFF_DST, output}});
}

class LibraryConvolution : public BoundStep {
 public:
  /// Throws dnnl::error or leaves `usable` false where the library has no code.
  explicit LibraryConvolution(const ConvolutionSizes& sizes) : s_(sizes) {
    Geometry geometry(s_);
    std::int64_t work = s_.outputs * s_.windows * s_.groups * s_.channels * s_.features;
    work = std::max<std::int64_t>(work, 1);
    each_ = std::min((s_.batch + enough_pieces - 1) / enough_pieces, most_work / work);
    each_ = std::clamp(std::max(each_, least_work / work), std::int64_t{1}, s_.batch);
    if (s_.result == ConvolutionResult::filter) each_ = std::max(each_, (s_.batch + most_sums - 1) / most_sums);
    pieces_ = (s_.batch + each_ - 1) / each_;
    std::int64_t rest = s_.batch - (pieces_ - 1) * each_;
    whole_ = piece_of(s_, geometry, each_);
    if (!whole_) return;
    if (rest != each_) {
      last_ = piece_of(s_, geometry, rest);
      // Pieces share one form of the filter.
      if (!last_ || filter_of(*last_) != filter_of(*whole_)) return;
    }
    const Description plain = geometry.plain_filter(), turned = filter_of(*whole_);
    filter_bytes_ = turned.get_size();
    if (turned != plain) {
      bool to_plain = s_.result == ConvolutionResult::filter;
      const Description &from = to_plain ? turned : plain, &to = to_plain ? plain : turned;
      dnnl::primitive_attr attributes;
      attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
      dnnl::reorder::primitive_desc made(engine(), from, engine(), to, attributes);
      turn_filter_ = std::make_unique<Primitive>(made, std::vector<Argument>{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
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

  /// Of all primitives.
  std::string implementations() const {
    std::string names;
    for (const Primitive* made : {whole_.get(), last_.get(), turn_filter_.get()})
      if (made) names += made->implementation + " ";
    return names;
  }

  bool usable = false;

 private:
  static const Description& filter_of(const Primitive& piece) { return piece.arguments[1].description; }

  void run_piece(std::int64_t number, void* input, void* filter, void* output) const {
    const Primitive& piece = last_ && number == pieces_ - 1 ? *last_ : *whole_;
    auto at = [&](void* first, std::int64_t image) { return static_cast<float*>(first) + number * each_ * image; };
    piece.execute(
        {at(input, s_.inputs * s_.groups * s_.channels), filter, at(output, s_.outputs * s_.groups * s_.features)});
  }

  void run_pieces(void* const* table) const {
    void* filter = table[s_.filter];
    Buffer turned;
    if (turn_filter_) {
      turned = Buffer::allocate(filter_bytes_);
      turn_filter_->execute({filter, turned.data()});
      filter = turned.data();
    }
    parallel_for_throwing(pieces_,
                          [&](std::int64_t piece) { run_piece(piece, table[s_.input], filter, table[s_.output]); });
  }

  void run_sums(void* const* table) const {
    const std::size_t floats = filter_bytes_ / sizeof(float);
    // The first sum goes straight to the result where the forms agree.
    Buffer sums = Buffer::allocate(filter_bytes_ * static_cast<std::size_t>(pieces_));
    auto* first = turn_filter_ ? reinterpret_cast<float*>(sums.data()) : static_cast<float*>(table[s_.filter]);
    auto sum_at = [&](std::int64_t piece) {
      return piece == 0 ? first : reinterpret_cast<float*>(sums.data()) + static_cast<std::size_t>(piece) * floats;
    };
    parallel_for_throwing(
        pieces_, [&](std::int64_t piece) { run_piece(piece, table[s_.input], sum_at(piece), table[s_.output]); });
    for (std::int64_t piece = 1; piece < pieces_; ++piece) {
      const float* other = sum_at(piece);
      for (std::size_t i = 0; i < floats; ++i) first[i] += other[i];
    }
    if (turn_filter_) turn_filter_->execute({first, table[s_.filter]});
  }

  ConvolutionSizes s_;
  std::int64_t each_ = 1, pieces_ = 1;
  std::unique_ptr<Primitive> whole_, last_;  // last_: where the last piece is smaller
  std::unique_ptr<Primitive> turn_filter_;   // null: the filter is taken, or given, as it lies
  std::size_t filter_bytes_ = 0;             // as the pieces take it
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
  if (ended || !is_ordinary(sizes)) return nullptr;
  bool repeats = sizes.groups > 1 && sizes.channels == 1 && sizes.features > 1;
  std::unique_ptr<LibraryConvolution> made;
  try {
    SingleOpenMpThread single;  // how a primitive cuts its work depends on the threads it is made for
    made = std::make_unique<LibraryConvolution>(repeats ? RepeatedDepthwise::sizes_of(sizes) : sizes);
  } catch (const dnnl::error&) {  // not implemented
  }
  expect_its_end(text(static_cast<int>(sizes.result), " ", sizes.groups > 1, " ", sizes.axes.size(), " ",
                      made ? made->implementations() : "none"));
  if (!made || !made->usable) return nullptr;
  if (repeats) return std::make_unique<RepeatedDepthwise>(sizes, std::move(made));
  return made;
}

}  // namespace stet::cpu
