// A thin C++ face on LLVM's C API: what the emitters of kernels and of GEMM need, and nothing else.
//
// The C API is used because its headers cost 0.03 s to include; LLJIT.h costs 5.8. Optimisation passes are not run:
// emitters write vector IR that is already what the code generator should see.
#pragma once
#include <llvm-c/Core.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "stet/base/dtype.h"

namespace stet::cpu {

using Value = LLVMValueRef;
using Type = LLVMTypeRef;
using BasicBlock = LLVMBasicBlockRef;

/// One module with its own context and an insertion point.
class LlvmBuilder {
 public:
  explicit LlvmBuilder(const std::string& module_name);
  ~LlvmBuilder();
  LlvmBuilder(const LlvmBuilder&) = delete;
  LlvmBuilder& operator=(const LlvmBuilder&) = delete;

  LLVMContextRef context() const { return context_; }
  LLVMModuleRef module() const { return module_; }
  LLVMBuilderRef raw() const { return builder_; }
  /// The module as text.
  std::string str() const;

  // --- types
  Type boolean() const { return LLVMInt1TypeInContext(context_); }
  Type integer(int bits) const { return LLVMIntTypeInContext(context_, static_cast<unsigned>(bits)); }
  Type index() const { return integer(64); }
  Type pointer() const { return LLVMPointerTypeInContext(context_, 0); }
  /// How an element lies in memory: bool is i8, f16 is half, bf16 is i16. (LLVM 19 carries a scalar bfloat from block
  /// to block as a float, and converts it back with an instruction that flushes subnormals.)
  Type storage(DType) const;
  /// How an element is computed with: bool is i1, f16 and bf16 as in memory (cast before use).
  Type computed(DType) const;
  /// A vector of `lanes`; a scalar when lanes is 1.
  Type vector(Type element, int lanes) const {
    return lanes == 1 ? element : LLVMVectorType(element, static_cast<unsigned>(lanes));
  }
  static int lanes_of(Value);

  // --- constants
  Value constant(Type integer_type, std::int64_t value) const;  // also of vectors: every lane
  Value real(Type floating_type, double value) const;           // also of vectors: every lane
  Value index(std::int64_t value) const { return constant(index(), value); }
  Value zero(Type type) const { return LLVMConstNull(type); }
  Value poison(Type type) const { return LLVMGetPoison(type); }

  // --- functions and blocks
  /// A nounwind function with noalias pointer parameters where `noalias`; the insertion point moves to its entry.
  Value begin_function(const std::string& name, Type result, std::initializer_list<Type> parameters);
  Value parameter(int number) const { return LLVMGetParam(function_, static_cast<unsigned>(number)); }
  Value function() const { return function_; }
  void add_attribute(Value function, const char* name, const char* value);        // string attribute
  void add_parameter_attribute(Value function, int parameter, const char* name);  // enum attribute, e.g. noalias
  BasicBlock block(const char* name) { return LLVMAppendBasicBlockInContext(context_, function_, name); }
  BasicBlock current() const { return LLVMGetInsertBlock(builder_); }
  void position(BasicBlock at) { LLVMPositionBuilderAtEnd(builder_, at); }
  void branch(BasicBlock to) { LLVMBuildBr(builder_, to); }
  void branch_if(Value condition, BasicBlock then, BasicBlock otherwise) {
    LLVMBuildCondBr(builder_, condition, then, otherwise);
  }
  void result(Value value) { LLVMBuildRet(builder_, value); }
  /// Emits `body` under a condition; both ways meet after it.
  void when(Value condition, const std::function<void()>& body);

  /// for (i = begin; i < end; i += step), signed. Carried values start as `initial`; `body` returns the next ones. The
  /// result holds them as they are after the loop. Bodies may create blocks.
  using LoopBody = std::function<std::vector<Value>(Value i, std::span<const Value> carried)>;
  std::vector<Value> loop(Value begin, Value end, Value step, std::span<const Value> initial, const LoopBody& body);
  void loop(Value begin, Value end, Value step, const std::function<void(Value i)>& body);

  // --- arithmetic; scalars or vectors
  Value add(Value a, Value b) { return LLVMBuildAdd(builder_, a, b, ""); }
  Value subtract(Value a, Value b) { return LLVMBuildSub(builder_, a, b, ""); }
  Value multiply(Value a, Value b) { return LLVMBuildMul(builder_, a, b, ""); }
  Value fadd(Value a, Value b) { return LLVMBuildFAdd(builder_, a, b, ""); }
  Value fsubtract(Value a, Value b) { return LLVMBuildFSub(builder_, a, b, ""); }
  Value fmultiply(Value a, Value b) { return LLVMBuildFMul(builder_, a, b, ""); }
  Value fdivide(Value a, Value b) { return LLVMBuildFDiv(builder_, a, b, ""); }
  Value fma(Value a, Value b, Value c) { return intrinsic("llvm.fma", {type_of(a)}, {a, b, c}); }
  Value compare(LLVMIntPredicate how, Value a, Value b) { return LLVMBuildICmp(builder_, how, a, b, ""); }
  Value fcompare(LLVMRealPredicate how, Value a, Value b) { return LLVMBuildFCmp(builder_, how, a, b, ""); }
  Value bit_and(Value a, Value b) { return LLVMBuildAnd(builder_, a, b, ""); }
  Value bit_or(Value a, Value b) { return LLVMBuildOr(builder_, a, b, ""); }
  Value bit_xor(Value a, Value b) { return LLVMBuildXor(builder_, a, b, ""); }
  Value bit_not(Value a) { return LLVMBuildNot(builder_, a, ""); }
  Value select(Value condition, Value a, Value b) { return LLVMBuildSelect(builder_, condition, a, b, ""); }
  Value minimum(Value a, Value b) { return select(compare(LLVMIntSLT, a, b), a, b); }  // signed
  Value bitcast(Value a, Type to) { return LLVMBuildBitCast(builder_, a, to, ""); }
  static Type type_of(Value v) { return LLVMTypeOf(v); }

  // --- vectors
  Value splat(Value scalar, int lanes);  // the scalar itself when lanes is 1
  Value extract(Value vector, int lane) {
    return LLVMBuildExtractElement(builder_, vector, constant(integer(32), lane), "");
  }
  Value shuffle(Value a, Value b, std::span<const int> lanes);
  Value lane_numbers(Type integer_type, int lanes);  // <0, 1, 2, …>
  /// i1 lanes that are true for lane < count (an i64).
  Value mask_below(Value count, int lanes);

  // --- memory; `align` in bytes
  Value element_pointer(Type element, Value base, Value index) {
    return LLVMBuildGEP2(builder_, element, base, &index, 1, "");
  }
  Value load(Type type, Value pointer, int align);
  void store(Value value, Value pointer, int align);
  void store_nontemporal(Value value, Value pointer, int align);
  Value masked_load(Type type, Value pointer, Value mask, int align);  // zero where the mask is false
  void masked_store(Value value, Value pointer, Value mask, int align);
  /// One element per lane from base + indices[lane] elements; zero where the mask is false.
  Value gather(Type element, Value base, Value indices, Value mask, int align);
  void scatter(Value value, Type element, Value base, Value indices, Value mask, int align);
  void prefetch(Value pointer);

  Value intrinsic(const char* name, std::initializer_list<Type> overloads, std::initializer_list<Value> arguments);

 private:
  LLVMContextRef context_;
  LLVMModuleRef module_;
  LLVMBuilderRef builder_;
  Value function_ = nullptr;
};

}  // namespace stet::cpu
