#include "stet/cpu/llvm_builder.h"

#include <cstring>

#include "stet/base/error.h"
#include "stet/base/text.h"

namespace stet::cpu {

LlvmBuilder::LlvmBuilder(const std::string& module_name)
    : context_(LLVMContextCreate()),
      module_(LLVMModuleCreateWithNameInContext(module_name.c_str(), context_)),
      builder_(LLVMCreateBuilderInContext(context_)) {}

LlvmBuilder::~LlvmBuilder() {
  LLVMDisposeBuilder(builder_);
  LLVMDisposeModule(module_);
  LLVMContextDispose(context_);
}

std::string LlvmBuilder::str() const {
  char* raw_text = LLVMPrintModuleToString(module_);
  std::string out = raw_text;
  LLVMDisposeMessage(raw_text);
  return out;
}

Type LlvmBuilder::storage(DType d) const {
  switch (d) {
    case DType::f16:
      return LLVMHalfTypeInContext(context_);
    case DType::f32:
      return LLVMFloatTypeInContext(context_);
    case DType::f64:
      return LLVMDoubleTypeInContext(context_);
    default:
      return integer(8 * size_of(d));
  }
}

Type LlvmBuilder::computed(DType d) const { return d == DType::bool_ ? boolean() : storage(d); }

int LlvmBuilder::lanes_of(Value value) {
  Type type = LLVMTypeOf(value);
  return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? static_cast<int>(LLVMGetVectorSize(type)) : 1;
}

namespace {
Value every_lane(Type type, const std::function<Value(Type)>& scalar) {
  if (LLVMGetTypeKind(type) != LLVMVectorTypeKind) return scalar(type);
  std::vector<Value> lanes(LLVMGetVectorSize(type), scalar(LLVMGetElementType(type)));
  return LLVMConstVector(lanes.data(), static_cast<unsigned>(lanes.size()));
}
}  // namespace

Value LlvmBuilder::constant(Type type, std::int64_t value) const {
  return every_lane(type, [&](Type t) { return LLVMConstInt(t, static_cast<unsigned long long>(value), true); });
}

Value LlvmBuilder::real(Type type, double value) const {
  return every_lane(type, [&](Type t) { return LLVMConstReal(t, value); });
}

Value LlvmBuilder::begin_function(const std::string& name, Type result_type, std::initializer_list<Type> parameters) {
  std::vector<Type> types(parameters);
  Type type = LLVMFunctionType(result_type, types.data(), static_cast<unsigned>(types.size()), false);
  function_ = LLVMAddFunction(module_, name.c_str(), type);
  unsigned nounwind = LLVMGetEnumAttributeKindForName("nounwind", 8);
  LLVMAddAttributeAtIndex(function_, LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(context_, nounwind, 0));
  add_attribute(function_, "prefer-vector-width", "512");
  position(block("entry"));
  return function_;
}

void LlvmBuilder::add_attribute(Value function, const char* name, const char* value) {
  LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex,
                          LLVMCreateStringAttribute(context_, name, static_cast<unsigned>(std::strlen(name)), value,
                                                    static_cast<unsigned>(std::strlen(value))));
}

void LlvmBuilder::add_parameter_attribute(Value function, int parameter, const char* name) {
  unsigned kind = LLVMGetEnumAttributeKindForName(name, std::strlen(name));
  LLVMAddAttributeAtIndex(function, static_cast<unsigned>(parameter + 1), LLVMCreateEnumAttribute(context_, kind, 0));
}

void LlvmBuilder::when(Value condition, const std::function<void()>& body) {
  BasicBlock then = block("then"), after = block("after");
  branch_if(condition, then, after);
  position(then);
  body();
  branch(after);
  position(after);
}

std::vector<Value> LlvmBuilder::loop(Value begin, Value end, Value step, std::span<const Value> initial,
                                     const LoopBody& body) {
  BasicBlock before = current(), inside = block("loop"), after = block("done");
  branch_if(compare(LLVMIntSLT, begin, end), inside, after);
  position(inside);
  Value i = LLVMBuildPhi(builder_, type_of(begin), "i");
  std::vector<Value> carried;
  for (Value value : initial) carried.push_back(LLVMBuildPhi(builder_, type_of(value), ""));
  std::vector<Value> next = body(i, carried);
  Value next_i = add(i, step);
  BasicBlock latch = current();
  branch_if(compare(LLVMIntSLT, next_i, end), inside, after);
  auto incoming = [](Value phi, Value first, BasicBlock first_from, Value second, BasicBlock second_from) {
    Value values[] = {first, second};
    BasicBlock blocks[] = {first_from, second_from};
    LLVMAddIncoming(phi, values, blocks, 2);
  };
  incoming(i, begin, before, next_i, latch);
  for (std::size_t k = 0; k < carried.size(); ++k) incoming(carried[k], initial[k], before, next[k], latch);
  position(after);
  std::vector<Value> results;
  for (std::size_t k = 0; k < carried.size(); ++k) {
    Value phi = LLVMBuildPhi(builder_, type_of(initial[k]), "");
    incoming(phi, initial[k], before, next[k], latch);
    results.push_back(phi);
  }
  return results;
}

void LlvmBuilder::loop(Value begin, Value end, Value step, const std::function<void(Value)>& body) {
  loop(begin, end, step, {}, [&](Value i, std::span<const Value>) {
    body(i);
    return std::vector<Value>{};
  });
}

Value LlvmBuilder::splat(Value scalar, int lanes) {
  if (lanes == 1) return scalar;
  Type type = vector(type_of(scalar), lanes);
  Value one = LLVMBuildInsertElement(builder_, poison(type), scalar, constant(integer(32), 0), "");
  return LLVMBuildShuffleVector(builder_, one, poison(type), zero(vector(integer(32), lanes)), "");
}

Value LlvmBuilder::shuffle(Value a, Value b, std::span<const int> lanes) {
  std::vector<Value> numbers;
  for (int lane : lanes) numbers.push_back(constant(integer(32), lane));
  return LLVMBuildShuffleVector(builder_, a, b, LLVMConstVector(numbers.data(), static_cast<unsigned>(numbers.size())),
                                "");
}

Value LlvmBuilder::lane_numbers(Type type, int lanes) {
  if (lanes == 1) return zero(type);
  std::vector<Value> numbers;
  for (int lane = 0; lane < lanes; ++lane) numbers.push_back(constant(type, lane));
  return LLVMConstVector(numbers.data(), static_cast<unsigned>(numbers.size()));
}

Value LlvmBuilder::mask_below(Value count, int lanes) {
  // Compared in 32 bits: twice the lanes of an i64 comparison. Counts above the lanes are cut to them first.
  Value bounded = minimum(count, index(lanes));
  Value small = LLVMBuildTrunc(builder_, bounded, integer(32), "");
  return compare(LLVMIntSLT, lane_numbers(integer(32), lanes), splat(small, lanes));
}

Value LlvmBuilder::load(Type type, Value pointer, int align) {
  Value value = LLVMBuildLoad2(builder_, type, pointer, "");
  LLVMSetAlignment(value, static_cast<unsigned>(align));
  return value;
}

void LlvmBuilder::store(Value value, Value pointer, int align) {
  LLVMSetAlignment(LLVMBuildStore(builder_, value, pointer), static_cast<unsigned>(align));
}

void LlvmBuilder::store_nontemporal(Value value, Value pointer, int align) {
  Value stored = LLVMBuildStore(builder_, value, pointer);
  LLVMSetAlignment(stored, static_cast<unsigned>(align));
  LLVMMetadataRef one = LLVMValueAsMetadata(constant(integer(32), 1));
  Value node = LLVMMetadataAsValue(context_, LLVMMDNodeInContext2(context_, &one, 1));
  LLVMSetMetadata(stored, LLVMGetMDKindIDInContext(context_, "nontemporal", 11), node);
}

Value LlvmBuilder::masked_load(Type type, Value pointer, Value mask, int align) {
  return intrinsic("llvm.masked.load", {type, this->pointer()},
                   {pointer, constant(integer(32), align), mask, zero(type)});
}

void LlvmBuilder::masked_store(Value value, Value pointer, Value mask, int align) {
  intrinsic("llvm.masked.store", {type_of(value), this->pointer()},
            {value, pointer, constant(integer(32), align), mask});
}

Value LlvmBuilder::gather(Type element, Value base, Value indices, Value mask, int align) {
  int lanes = lanes_of(indices);
  Value pointers = LLVMBuildGEP2(builder_, element, base, &indices, 1, "");
  Type type = vector(element, lanes);
  return intrinsic("llvm.masked.gather", {type, vector(pointer(), lanes)},
                   {pointers, constant(integer(32), align), mask, zero(type)});
}

void LlvmBuilder::scatter(Value value, Type element, Value base, Value indices, Value mask, int align) {
  Value pointers = LLVMBuildGEP2(builder_, element, base, &indices, 1, "");
  intrinsic("llvm.masked.scatter", {type_of(value), vector(pointer(), lanes_of(indices))},
            {value, pointers, constant(integer(32), align), mask});
}

void LlvmBuilder::prefetch(Value at) {
  Type small = integer(32);
  intrinsic("llvm.prefetch", {pointer()}, {at, constant(small, 0), constant(small, 3), constant(small, 1)});
}

Value LlvmBuilder::intrinsic(const char* name, std::initializer_list<Type> overloads,
                             std::initializer_list<Value> arguments) {
  unsigned id = LLVMLookupIntrinsicID(name, std::strlen(name));
  if (id == 0) throw InternalError(text("unknown LLVM intrinsic ", name));
  std::vector<Type> types(overloads);
  std::vector<Value> values(arguments);
  Value declaration = LLVMGetIntrinsicDeclaration(module_, id, types.data(), types.size());
  Type type = LLVMIntrinsicGetType(context_, id, types.data(), types.size());
  return LLVMBuildCall2(builder_, type, declaration, values.data(), static_cast<unsigned>(values.size()), "");
}

}  // namespace stet::cpu
