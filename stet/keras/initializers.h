// Keras's initializers, with their arguments.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stet/keras/initializer.h"

namespace stet::keras::initializers {

/// All 0.
class STET_API Zeros : public Initializer {
 public:
  Zeros();
};
/// All 1.
class STET_API Ones : public Initializer {
 public:
  Ones();
};
/// A number, or a tensor that is repeated to the weight's shape.
class STET_API Constant : public Initializer {
 public:
  explicit Constant(double value = 0);
  explicit Constant(const Tensor& value, Where where = Where::here());
};

struct IdentityOptions {
  double gain = 1;
};
/// gain on the diagonal of a matrix, 0 elsewhere.
class STET_API Identity : public Initializer {
 public:
  explicit Identity(IdentityOptions options = {}, Where where = Where::here());
};

// Random ones. With a seed they give the same numbers whenever they are asked for the same shape; without, each weight
// gets its own.

struct RandomNormalOptions {
  double mean = 0;
  double stddev = 0.05;
  std::optional<std::int64_t> seed = {};
};
class STET_API RandomNormal : public Initializer {
 public:
  explicit RandomNormal(RandomNormalOptions options = {}, Where where = Where::here());
};

struct RandomUniformOptions {
  double minval = -0.05;
  double maxval = 0.05;
  std::optional<std::int64_t> seed = {};
};
class STET_API RandomUniform : public Initializer {
 public:
  explicit RandomUniform(RandomUniformOptions options = {}, Where where = Where::here());
};

struct TruncatedNormalOptions {
  double mean = 0;
  double stddev = 0.05;
  std::optional<std::int64_t> seed = {};
};
/// Normal numbers within two standard deviations of the mean.
class STET_API TruncatedNormal : public Initializer {
 public:
  explicit TruncatedNormal(TruncatedNormalOptions options = {}, Where where = Where::here());
};

struct VarianceScalingOptions {
  double scale = 1;
  std::string mode = "fan_in";                    // or "fan_out", "fan_avg"
  std::string distribution = "truncated_normal";  // or "untruncated_normal", "uniform"
  std::optional<std::int64_t> seed = {};
  std::vector<int> input_axes = {};  // which axes count inputs, and which outputs; none: the last two, times all others
  std::vector<int> output_axes = {};
};
/// Random numbers of variance scale / fan, where a fan is how many inputs or outputs meet in one weight.
class STET_API VarianceScaling : public Initializer {
 public:
  explicit VarianceScaling(VarianceScalingOptions options = {}, Where where = Where::here());
};

struct FanOptions {
  std::optional<std::int64_t> seed = {};
  std::vector<int> input_axes = {};
  std::vector<int> output_axes = {};
};
/// Variance 2 / (inputs + outputs).
class STET_API GlorotNormal : public Initializer {
 public:
  explicit GlorotNormal(FanOptions options = {}, Where where = Where::here());
};
class STET_API GlorotUniform : public Initializer {
 public:
  explicit GlorotUniform(FanOptions options = {}, Where where = Where::here());
};
/// Variance 2 / inputs.
class STET_API HeNormal : public Initializer {
 public:
  explicit HeNormal(FanOptions options = {}, Where where = Where::here());
};
class STET_API HeUniform : public Initializer {
 public:
  explicit HeUniform(FanOptions options = {}, Where where = Where::here());
};
/// Variance 1 / inputs.
class STET_API LecunNormal : public Initializer {
 public:
  explicit LecunNormal(FanOptions options = {}, Where where = Where::here());
};
class STET_API LecunUniform : public Initializer {
 public:
  explicit LecunUniform(FanOptions options = {}, Where where = Where::here());
};

struct OrthogonalOptions {
  double gain = 1;
  std::optional<std::int64_t> seed = {};
};
/// A random matrix with orthogonal rows or columns, whichever are fewer, of length gain. All axes but the last make
/// one.
class STET_API Orthogonal : public Initializer {
 public:
  explicit Orthogonal(OrthogonalOptions options = {}, Where where = Where::here());
};

struct STFTOptions {
  std::string side = "real";                       // or "imag"
  std::string window = "hann";                     // or "hamming", "blackman"; "": none
  std::optional<std::string> scaling = "density";  // or "spectrum", or nothing
  bool periodic = false;
};
/// The kernel of a convolution that computes a short-time Fourier transform: [frame length, channels, bins].
class STET_API STFT : public Initializer {
 public:
  explicit STFT(STFTOptions options = {}, Where where = Where::here());
};

}  // namespace stet::keras::initializers
