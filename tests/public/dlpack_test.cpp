// Memory shared with others: DLPack in both directions, by a producer and a consumer of the test's own, and memory with
// an owner. Counters tell when memory is let go of.
#include "stet/core/dlpack.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "expect_error.h"
#include "stet/stet.h"

// As another library declares them: other types with the same layout.
namespace other {
enum DLDeviceType : int { kDLCPU = 1, kDLCUDA = 2 };
struct DLDevice {
  DLDeviceType device_type;
  int32_t device_id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
};
struct DLPackVersion {
  uint32_t major, minor;
};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};
}  // namespace other

using namespace stet;

namespace {

/// A tensor of another library: elements, sizes and strides that live until the deleter is called.
template <class Managed, class T>
struct Producer {
  Producer(std::vector<T> values, std::vector<std::int64_t> shape, std::vector<std::int64_t> steps, uint8_t code)
      : elements(std::move(values)), sizes(std::move(shape)), strides(std::move(steps)) {
    managed = Managed{};
    managed.dl_tensor.data = elements.data();
    managed.dl_tensor.device.device_type = decltype(managed.dl_tensor.device.device_type)(1);
    managed.dl_tensor.ndim = static_cast<int32_t>(sizes.size());
    managed.dl_tensor.dtype = {code, sizeof(T) * 8, 1};
    managed.dl_tensor.shape = sizes.empty() ? nullptr : sizes.data();
    managed.dl_tensor.strides = strides.empty() ? nullptr : strides.data();
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Producer*>(self->manager_ctx)->deleted; };
    if constexpr (requires { managed.version; }) managed.version = {1, 0};
  }
  std::vector<T> elements;
  std::vector<std::int64_t> sizes, strides;
  Managed managed;
  int deleted = 0;
};
template <class T>
using Plain = Producer<dlpack::DLManagedTensor, T>;

constexpr uint8_t code_int = 0, code_uint = 1, code_float = 2, code_bfloat = 4, code_complex = 5, code_bool = 6;

// --- in

TEST(FromDLPack, SharesMemoryUntilTheLastTensorIsGone) {
  Plain<float> source({1, 2, 3, 4, 5, 6}, {2, 3}, {}, code_float);
  {
    Tensor x = from_dlpack(&source.managed);
    EXPECT_EQ(x.dtype(), f32);
    EXPECT_EQ(x.shape().str(), "[2,3]");
    EXPECT_EQ(x.data<float>(), source.elements.data());
    Tensor row = x[1];
    x = Tensor();
    EXPECT_EQ(source.deleted, 0);
    EXPECT_EQ(sum(row).item<float>(), 15);
  }
  EXPECT_EQ(source.deleted, 1);
}

TEST(FromDLPack, StridesAndOffset) {
  // A column-major matrix that begins at the third element.
  Plain<double> source({-1, -1, 1, 4, 2, 5, 3, 6}, {2, 3}, {1, 2}, code_float);
  source.managed.dl_tensor.byte_offset = 2 * sizeof(double);
  {
    Tensor x = from_dlpack(&source.managed);
    EXPECT_FALSE(x.is_dense());
    EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ((x + x).to_vector<double>(), (std::vector<double>{2, 4, 6, 8, 10, 12}));
    EXPECT_EQ(matmul(x, x.T()).to_vector<double>(), (std::vector<double>{14, 32, 32, 77}));
    EXPECT_TRUE(x.T().is_dense());
  }
  EXPECT_EQ(source.deleted, 1);

  // One element repeated by strides of 0, and strides that say nothing because an axis has one element.
  Plain<std::int32_t> one({7}, {4, 1}, {0, -123}, code_int);
  Tensor repeated = from_dlpack(&one.managed);
  EXPECT_EQ(repeated.to_vector<int>(), (std::vector<int>{7, 7, 7, 7}));
}

TEST(FromDLPack, EveryType) {
  auto read = [](auto value, uint8_t code) {
    Plain<decltype(value)> source({value, value}, {2}, {}, code);
    Tensor x = from_dlpack(&source.managed);
    return to_string(x) + " " + std::string(name(x.dtype()));
  };
  EXPECT_EQ(read(std::uint8_t{1}, code_bool), "[ True  True] bool");
  EXPECT_EQ(read(std::uint8_t{200}, code_uint), "[200 200] u8");
  EXPECT_EQ(read(std::int8_t{-3}, code_int), "[-3 -3] i8");
  EXPECT_EQ(read(std::int16_t{-300}, code_int), "[-300 -300] i16");
  EXPECT_EQ(read(std::int32_t{1 << 20}, code_int), "[1048576 1048576] i32");
  EXPECT_EQ(read(std::int64_t{1} << 40, code_int), "[1099511627776 1099511627776] i64");
  EXPECT_EQ(read(Half(1.5f), code_float), "[1.5 1.5] f16");
  EXPECT_EQ(read(BFloat16(1.5f), code_bfloat), "[1.5 1.5] bf16");
  EXPECT_EQ(read(0.25f, code_float), "[0.25 0.25] f32");
  EXPECT_EQ(read(0.1, code_float), "[0.1 0.1] f64");
}

TEST(FromDLPack, NumbersAndNothing) {
  Plain<double> number({2.5}, {}, {}, code_float);
  EXPECT_EQ(from_dlpack(&number.managed).item<double>(), 2.5);
  Plain<float> nothing({}, {3, 0}, {0, 1}, code_float);
  nothing.managed.dl_tensor.data = nullptr;
  {
    Tensor x = from_dlpack(&nothing.managed);
    EXPECT_EQ(x.shape().str(), "[3,0]");
    EXPECT_EQ(sum(x).item<float>(), 0);
  }
  EXPECT_EQ(nothing.deleted, 1);
  Plain<float> kept({1, 2}, {2}, {}, code_float);
  kept.managed.deleter = nullptr;  // allowed: nothing to do
  EXPECT_EQ(sum(from_dlpack(&kept.managed)).item<float>(), 3);
}

TEST(FromDLPack, TakesOtherDeclarationsOfTheStructs) {
  Producer<other::DLManagedTensor, float> plain({1, 2}, {2}, {}, code_float);
  Producer<other::DLManagedTensorVersioned, float> versioned({3, 4}, {2}, {}, code_float);
  {
    Tensor both = from_dlpack(&plain.managed) + from_dlpack(&versioned.managed);
    EXPECT_EQ(both.to_vector<float>(), (std::vector<float>{4, 6}));
  }
  EXPECT_EQ(plain.deleted + versioned.deleted, 2);
}

TEST(FromDLPack, WhatHasNoTensorIsNamedAndStaysTheCallers) {
  auto error = [](auto change, auto value, uint8_t code, std::vector<std::int64_t> strides = {}) {
    Plain<decltype(value)> source({value, value}, {2}, std::move(strides), code);
    change(source.managed);
    std::string text = error_of([&] { from_dlpack(&source.managed); });
    EXPECT_EQ(source.deleted, 0) << text;
    return text;
  };
  auto as_it_is = [](dlpack::DLManagedTensor&) {};
  std::string complex = error(as_it_is, 0.0, code_complex);
  EXPECT_CONTAINS(complex, "from_dlpack: there is no element type for complex of 64 bits");
  EXPECT_CONTAINS(complex, "dlpack_test.cpp:");
  EXPECT_CONTAINS(complex, "fix: convert it before it is exported, to one of bool, u8, i8");
  EXPECT_CONTAINS(error(as_it_is, std::uint16_t{1}, code_uint), "no element type for uint of 16 bits");
  EXPECT_CONTAINS(error(as_it_is, std::uint64_t{1}, code_uint), "no element type for uint of 64 bits");
  EXPECT_CONTAINS(error(as_it_is, std::uint8_t{1}, 10), "no element type for type code 10 of 8 bits");
  EXPECT_CONTAINS(error([](auto& m) { m.dl_tensor.dtype.lanes = 4; }, 1.f, code_float),
                  "no element type for float of 32 bits in 4 lanes");
  EXPECT_CONTAINS(error([](auto& m) { m.dl_tensor.dtype.bits = 4; }, std::int8_t{1}, code_int), "int of 4 bits");
  EXPECT_CONTAINS(error(
                      [](auto& m) {
                        m.dl_tensor.device = {2, 1};
                      },
                      1.f, code_float),
                  "the tensor lies on device CUDA:1, not in the CPU's memory");
  EXPECT_CONTAINS(error([](auto& m) { m.dl_tensor.device = {99, 0}; }, 1.f, code_float), "device type 99:0");
  EXPECT_CONTAINS(error(as_it_is, 1.f, code_float, {-1}), "the stride -1 of axis 0 is negative");
  EXPECT_CONTAINS(error(as_it_is, 1.f, code_float, {std::int64_t{1} << 62}), "reach beyond all memory");
  EXPECT_CONTAINS(error([](auto& m) { m.dl_tensor.ndim = 9; }, 1.f, code_float), "the tensor has 9 axes");
  EXPECT_CONTAINS(error([](auto& m) { m.dl_tensor.shape = nullptr; }, 1.f, code_float), "axes, but no sizes");
  EXPECT_CONTAINS(error([](auto& m) { m.dl_tensor.shape[0] = -2; }, 1.f, code_float), "the size -2 is negative");
  EXPECT_CONTAINS(error([](auto& m) { m.dl_tensor.data = nullptr; }, 1.f, code_float), "no memory for f32[2]");
  EXPECT_CONTAINS(error([](auto& m) { m.dl_tensor.byte_offset = 2; }, 1.f, code_float),
                  "the address is not a multiple of the size of f32");
  EXPECT_CONTAINS(error_of([] { from_dlpack(static_cast<dlpack::DLManagedTensor*>(nullptr)); }), "a null pointer");
  Producer<dlpack::DLManagedTensorVersioned, float> later({1}, {1}, {}, code_float);
  later.managed.version = {2, 3};
  EXPECT_CONTAINS(error_of([&] { from_dlpack(&later.managed); }), "the tensor is of version 2.3 of DLPack");
  EXPECT_EQ(later.deleted, 0);
}

TEST(FromDLPack, InTracedFunctions) {
  Plain<float> source({1, 2, 3}, {3}, {}, code_float);
  {
    Tensor shared = from_dlpack(&source.managed);
    Function f = function("f(x)", [&](Tensor x) { return x * shared; });
    EXPECT_EQ(f(tensor({2.f, 2.f, 2.f})).to_vector<float>(), (std::vector<float>{2, 4, 6}));
    Function g = function("g(x)", [](Tensor x) { return x + 1; });
    EXPECT_EQ(g(shared).to_vector<float>(), (std::vector<float>{2, 3, 4}));
  }
  EXPECT_EQ(source.deleted, 1);
}

// --- out

TEST(ToDLPack, KeepsTheTensorUntilTheDeleter) {
  int released = 0;
  std::vector<float> memory{1, 2, 3, 4, 5, 6};
  Tensor x = from_memory(f32, memory.data(), {2, 3}, [&] { ++released; });
  auto* managed = to_dlpack(x[{Range{}, range(1, 3)}]);
  x = Tensor();
  EXPECT_EQ(released, 0);
  const dlpack::DLTensor& out = managed->dl_tensor;
  EXPECT_EQ(out.device.device_type, 1);
  EXPECT_EQ(out.device.device_id, 0);
  ASSERT_EQ(out.ndim, 2);
  EXPECT_EQ(out.dtype.code, code_float);
  EXPECT_EQ(out.dtype.bits, 32);
  EXPECT_EQ(out.dtype.lanes, 1);
  EXPECT_EQ(std::vector<std::int64_t>(out.shape, out.shape + 2), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(std::vector<std::int64_t>(out.strides, out.strides + 2), (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(static_cast<char*>(out.data) + out.byte_offset, reinterpret_cast<char*>(&memory[1]));
  std::thread([&] { managed->deleter(managed); }).join();
  EXPECT_EQ(released, 1);
}

TEST(ToDLPack, TypesVersionAndFlags) {
  struct Expected {
    DType dtype;
    int code, bits;
  };
  for (const Expected& e : {Expected{bool_, 6, 8},
                            {u8, 1, 8},
                            {i8, 0, 8},
                            {i16, 0, 16},
                            {i32, 0, 32},
                            {i64, 0, 64},
                            {f16, 2, 16},
                            {bf16, 4, 16},
                            {f32, 2, 32},
                            {f64, 2, 64}}) {
    auto* managed = to_dlpack_versioned(ones({2}, e.dtype));
    EXPECT_EQ(managed->version.major, 1u);
    EXPECT_EQ(managed->flags, 1u);  // read-only
    EXPECT_EQ(managed->dl_tensor.dtype.code, e.code);
    EXPECT_EQ(managed->dl_tensor.dtype.bits, e.bits);
    managed->deleter(managed);
  }
  auto* theirs = to_dlpack<other::DLManagedTensorVersioned>(tensor({1.f, 2.f}));
  EXPECT_EQ(theirs->dl_tensor.device.device_type, other::kDLCPU);
  EXPECT_EQ(static_cast<float*>(theirs->dl_tensor.data)[1], 2);
  theirs->deleter(theirs);
}

TEST(ToDLPack, ThereAndBack) {
  Tensor x = reshape(arange(24), {2, 3, 4});
  for (const Tensor& one : {x, x.T(), x[{Range{}, 1, Range{.step = 2}}], tensor(3), zeros({0, 2})}) {
    Tensor back = from_dlpack(to_dlpack(one)), versioned = from_dlpack(to_dlpack_versioned(one));
    EXPECT_EQ(to_string(back), to_string(one));
    EXPECT_EQ(to_string(versioned), to_string(one));
    EXPECT_EQ(back.shape().str(), one.shape().str());
  }
  EXPECT_EQ(from_dlpack(to_dlpack(x)).data<std::int64_t>(), x.data<std::int64_t>());
}

TEST(ToDLPack, NotOfWhatHasNoMemory) {
  EXPECT_CONTAINS(error_of([] { to_dlpack(Tensor()); }), "to_dlpack: the tensor is undefined");
  Function f = function("f(x)", [](Tensor x) {
    to_dlpack(x);
    return x;
  });
  SKIP_WHEN_VERIFYING();
  EXPECT_CONTAINS(error_of([&] { f(ones({2})); }), "to_dlpack: the value of f32[2] does not exist while 'f'");
}

// --- memory with an owner

TEST(FromMemory, WithAnOwner) {
  auto owner = std::make_shared<std::vector<double>>(std::vector<double>{1, 2, 3, 4, 5, 6});
  std::weak_ptr<std::vector<double>> watch = owner;
  {
    const double* data = owner->data();
    Tensor x = from_memory(f64, data, {2, 3}, std::move(owner));
    EXPECT_EQ(x.data<double>(), data);
    Tensor part = x[1];
    x = Tensor();
    EXPECT_FALSE(watch.expired());
    EXPECT_EQ(sum(part).item<double>(), 15);
  }
  EXPECT_TRUE(watch.expired());
  static const int forever[] = {1, 2, 3};
  EXPECT_EQ(from_memory(i32, forever, {3}, nullptr).to_vector<int>(), (std::vector<int>{1, 2, 3}));
}

TEST(FromMemory, WithSomethingToCall) {
  std::vector<float> memory(6, 1.f);
  int released = 0;
  {
    Tensor x = from_memory(f32, memory.data(), {6}, [&released] { ++released; });
  }
  EXPECT_EQ(released, 1);
  // A call that throws takes nothing over.
  EXPECT_CONTAINS(error_of([&] { from_memory(f32, nullptr, {6}, [&released] { ++released; }); }), "no memory");
  EXPECT_EQ(released, 1);
}

TEST(FromMemory, WithStrides) {
  std::vector<float> memory{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  auto tensor_with = [&](Shape shape, std::vector<std::int64_t> strides) {
    return from_memory(f32, memory.data(), shape, nullptr, {.strides = std::move(strides)});
  };
  EXPECT_EQ(tensor_with({3, 2}, {4, 1}).to_vector<float>(), (std::vector<float>{0, 1, 4, 5, 8, 9}));
  EXPECT_EQ(tensor_with({2, 3}, {1, 4}).to_vector<float>(), (std::vector<float>{0, 4, 8, 1, 5, 9}));
  EXPECT_EQ(sum(tensor_with({3, 2}, {4, 1}), 0).to_vector<float>(), (std::vector<float>{12, 15}));
  EXPECT_TRUE(tensor_with({3, 4}, {4, 1}).is_dense());
  EXPECT_FALSE(tensor_with({3, 2}, {4, 1}).is_dense());
  // A Hankel matrix: rows overlap.
  EXPECT_EQ(tensor_with({2, 3}, {1, 1}).to_vector<float>(), (std::vector<float>{0, 1, 2, 1, 2, 3}));
  EXPECT_EQ(tensor_with({0, 3}, {7, 7}).size().value(), 0);
  EXPECT_CONTAINS(error_of([&] { tensor_with({2, 3}, {1}); }), "from_memory: 1 strides for f32[2,3]");
  EXPECT_CONTAINS(error_of([&] { tensor_with({2}, {-1}); }), "from_memory: the stride -1 of axis 0 is negative");
  EXPECT_CONTAINS(error_of([&] { tensor_with({2}, {-1}); }), "flip(x, axis)");
}

}  // namespace
