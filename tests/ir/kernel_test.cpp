#include "stet/ir/kernel.h"

#include <gtest/gtest.h>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "tests/cpu/kernel_harness.h"

namespace stet {
namespace {

using cpu::memory;
using cpu::number_access;

struct KernelTest : testing::Test {
  RecordingScope scope;
  Dim a = scope.symbol("a", 3), b = scope.symbol("b", 5), c = scope.symbol("c", 7);

  /// out[i, j] = x[i, j] * y[j], dense.
  Kernel product() const {
    Kernel kernel;
    kernel.name = "product";
    kernel.loops = {{a, false}, {b, false}};
    kernel.operands = {memory(f32, 0, 0, {b, 1}), memory(f32, 1, 0, {0, 1})};
    kernel.body = operand(0, f32) * operand(1, f32);
    kernel.result = memory(f32, 2, 0, {b, 1});
    kernel.buffer_count = 3;
    return kernel;
  }
  /// out[i] = mean of x[i, :].
  Kernel mean() const {
    Kernel kernel;
    kernel.name = "mean";
    kernel.loops = {{a, false}, {b, true}};
    kernel.operands = {memory(f32, 0, 0, {b, 1})};
    kernel.body = operand(0, f32);
    kernel.combine = Combine::sum;
    Access count = number_access(f32, 0);
    count.address.offset = b;
    kernel.epilogue_operands = {count};
    kernel.epilogue = operand(0, f32) / operand(1, f32);
    kernel.result = memory(f32, 1, 0, {1, 0});
    kernel.buffer_count = 2;
    return kernel;
  }
  /// out[i, j] = x[indices[i], j - 1], 0 where j - 1 is outside.
  Kernel gather() const {
    Kernel kernel;
    kernel.name = "gather";
    kernel.loops = {{a, false}, {b, false}};
    Access x = memory(f32, 1, -1, {0, 1});
    x.guards = {{{-1, {0, 1}}, c}};
    x.indirections = {{.operand = 0, .stride = c, .extent = 9, .check = 1}};
    kernel.operands = {memory(i64, 0, 0, {1, 0}), x};
    kernel.body = operand(1, f32);
    kernel.result = memory(f32, 2, 0, {b, 1});
    kernel.buffer_count = 3;
    return kernel;
  }
};

// --- text, numbers, key

TEST_F(KernelTest, TextOfAMap) {
  EXPECT_EQ(product().str(),
            "kernel product\n"
            "  i0 < a\n"
            "  i1 < b\n"
            "  x0 = buffer 0 f32 [0 + i0*(b) + i1*(1)]\n"
            "  x1 = buffer 1 f32 [0 + i1*(1)]\n"
            "  value = x0 * x1\n"
            "  to buffer 2 f32 [0 + i0*(b) + i1*(1)]\n");
}

TEST_F(KernelTest, TextOfAReduction) {
  EXPECT_EQ(mean().str(),
            "kernel mean\n"
            "  i0 < a\n"
            "  i1 < b  (reduced)\n"
            "  x0 = buffer 0 f32 [0 + i0*(b) + i1*(1)]\n"
            "  value = x0\n"
            "  combined by sum\n"
            "  e1 = number f32 b\n"
            "  stored = x0 / x1  (x0 is the combined value)\n"
            "  to buffer 1 f32 [0 + i0*(1)]\n");
}

TEST_F(KernelTest, TextOfGuardsIndirectionsAndAccumulation) {
  Kernel kernel = gather();
  kernel.accumulate = true;
  EXPECT_EQ(kernel.str(),
            "kernel gather\n"
            "  i0 < a\n"
            "  i1 < b\n"
            "  x0 = buffer 0 i64 [0 + i0*(1)]\n"
            "  x1 = buffer 1 f32 [-1 + i1*(1)] where 0 <= -1 + i1*(1) < c moved by x0*(c) < 9\n"
            "  value = x1\n"
            "  to buffer 2 f32 [0 + i0*(b) + i1*(1)], added\n");
}

TEST_F(KernelTest, NumbersAreTheDistinctDimsInOrder) {
  auto names = [](const Kernel& kernel) {
    std::string out;
    for (const Dim& dim : kernel.numbers()) out += Inside::str(dim) + " ";
    return out;
  };
  EXPECT_EQ(names(product()), "a b ");
  EXPECT_EQ(names(gather()), "a b c 9 ");
  Kernel constants = product();
  constants.loops = {{1, false}, {b, false}};
  EXPECT_EQ(names(constants), "b ");
}

/// Code for memory that is read backwards is for that stride alone.
TEST_F(KernelTest, BackwardsIsStructure) {
  auto with_stride = [this](const Dim& stride) {
    Kernel kernel = product();
    kernel.operands[0].address.strides.back() = stride;
    return kernel.key();
  };
  EXPECT_EQ(with_stride(-2), with_stride(3));
  EXPECT_NE(with_stride(-1), with_stride(-2));
  EXPECT_NE(with_stride(-1), with_stride(1));
}

TEST_F(KernelTest, KeyText) {
  EXPECT_EQ(
      product().key(),
      "loops kn0 kn1; in b0:f32[0,n1,1]; in b1:f32[0,0,1]; body x0:f32 * x1:f32; none; out b2:f32[0,n1,1]; buffers 3");
}

TEST_F(KernelTest, KernelsThatDifferInNumbersShareTheirKey) {
  Kernel one = product(), two = product();
  two.name = "another";
  two.loops = {{7, false}, {12, false}};
  two.operands = {memory(f32, 0, 0, {12, 1}), memory(f32, 1, 0, {0, 1})};
  two.result = memory(f32, 2, 0, {12, 1});
  EXPECT_EQ(one.key(), two.key());
  EXPECT_EQ(one.numbers().size(), two.numbers().size());
  // Here the stride is not the extent: one number more.
  two.operands[0].address.strides[0] = 13;
  EXPECT_NE(one.key(), two.key());
}

TEST_F(KernelTest, EverythingElseIsInTheKey) {
  std::vector<Kernel> different{product(), mean(), gather()};
  auto change = [&](const Kernel& from, auto&& how) {
    different.push_back(from);
    how(different.back());
  };
  change(product(), [](Kernel& k) { k.body = operand(0, f32) + operand(1, f32); });
  change(product(), [](Kernel& k) { k.operands[1].address.strides[1] = 0; });
  change(product(), [](Kernel& k) { k.operands[1].address.offset = 1; });
  change(product(), [](Kernel& k) { k.operands[1].buffer = 0; });
  change(product(), [](Kernel& k) { k.accumulate = true; });
  change(product(), [](Kernel& k) { k.buffer_count = 4; });
  change(product(), [](Kernel& k) { k.loops[0].extent = 1; });
  change(product(), [](Kernel& k) {
    for (Access* access : {&k.operands[0], &k.operands[1], &k.result}) access->dtype = f64;
    k.body = operand(0, f64) * operand(1, f64);
  });
  change(mean(), [](Kernel& k) { k.combine = Combine::maximum; });
  change(mean(), [](Kernel& k) { k.loops[0].reduced = true; });
  change(mean(), [](Kernel& k) { k.epilogue = operand(0, f32) * operand(1, f32); });
  change(mean(), [](Kernel& k) { k.epilogue_operands[0].dtype = f64; });
  change(mean(), [](Kernel& k) { k.epilogue = Expr(); });
  change(gather(), [](Kernel& k) { k.operands[1].guards.clear(); });
  change(gather(), [](Kernel& k) { k.operands[1].indirections.clear(); });
  change(gather(), [](Kernel& k) { k.operands[1].indirections[0].check = 2; });
  change(gather(), [](Kernel& k) { k.operands[1].indirections[0].stride = 1; });
  change(gather(), [](Kernel& k) { k.operands[1].guards[0].position.offset = 0; });
  change(gather(), [](Kernel& k) { k.operands[0].dtype = i32; });
  for (std::size_t i = 0; i < different.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(different[i].key(), different[j].key()) << i << " " << j;
}

// --- collapse_loops

std::string loops_of(const Kernel& kernel) {
  std::string out;
  for (const Loop& loop : kernel.loops) out += text(loop.reduced ? "r" : "", "[", loop.extent, "]");
  return out;
}

TEST_F(KernelTest, DenseLoopsBecomeOne) {
  Kernel kernel = product();
  kernel.operands[1] = memory(f32, 1, 0, {b, 1});
  Kernel merged = collapse_loops(kernel);
  EXPECT_EQ(loops_of(merged), "[a*b]");
  EXPECT_EQ(merged.operands[0].address.strides.size(), 1u);
  EXPECT_NO_THROW(verify(merged));
  Kernel three = kernel;
  three.loops = {{a, false}, {b, false}, {c, false}};
  for (Access* access : {&three.operands[0], &three.operands[1], &three.result})
    access->address.strides = {b * c, c, 1};
  EXPECT_EQ(loops_of(collapse_loops(three)), "[a*b*c]");
}

TEST_F(KernelTest, LoopsThatOneAccessWalksApartStay) {
  EXPECT_EQ(loops_of(collapse_loops(product())), "[a][b]");  // a repeated operand
  Kernel padded = product();
  padded.operands[1] = memory(f32, 1, 0, {b + 1, 1});
  EXPECT_EQ(loops_of(collapse_loops(padded)), "[a][b]");
  // Only the outer two of three belong together.
  Kernel kernel = product();
  kernel.loops = {{a, false}, {b, false}, {c, false}};
  kernel.operands = {memory(f32, 0, 0, {b * c, c, 1}), memory(f32, 1, 0, {b, 1, 0})};
  kernel.result = memory(f32, 2, 0, {b * c, c, 1});
  EXPECT_EQ(loops_of(collapse_loops(kernel)), "[a*b][c]");
}

TEST_F(KernelTest, GuardsKeepTheirLoopsApart) {
  Kernel kernel = gather();
  kernel.operands = {memory(f32, 0, 0, {b, 1})};
  kernel.body = operand(0, f32);
  kernel.operands[0].guards = {{{-1, {0, 1}}, c}};
  EXPECT_EQ(loops_of(collapse_loops(kernel)), "[a][b]");
  kernel.operands[0].guards = {{{-1, {b, 1}}, c}};
  EXPECT_EQ(loops_of(collapse_loops(kernel)), "[a*b]");
}

TEST_F(KernelTest, UnitLoopsGo) {
  Kernel kernel = product();
  kernel.loops = {{1, false}, {b, false}, {1, false}};
  kernel.operands = {memory(f32, 0, 0, {b, 1, 7}), memory(f32, 1, 0, {0, 2, 0})};
  kernel.result = memory(f32, 2, 0, {b, 1, 1});
  Kernel merged = collapse_loops(kernel);
  EXPECT_EQ(loops_of(merged), "[b]");
  EXPECT_EQ(merged.operands[1].address.strides[0].str(), "2");
  kernel.loops = {{1, false}, {1, false}, {1, false}};
  EXPECT_EQ(loops_of(collapse_loops(kernel)), "[1]") << "one loop stays";
}

TEST_F(KernelTest, AReductionKeepsAReducedLoop) {
  Kernel kernel = mean();
  kernel.loops = {{a, false}, {1, true}};
  EXPECT_EQ(loops_of(collapse_loops(kernel)), "[a]r[1]");
  kernel.loops = {{1, false}, {1, true}};
  EXPECT_EQ(loops_of(collapse_loops(kernel)), "r[1]");
}

TEST_F(KernelTest, KeptAndReducedLoopsDoNotMerge) {
  EXPECT_EQ(loops_of(collapse_loops(mean())), "[a]r[b]");
  Kernel all = mean();
  all.loops[0].reduced = true;
  all.result.address.strides = {0, 0};
  EXPECT_EQ(loops_of(collapse_loops(all)), "r[a*b]");
}

TEST_F(KernelTest, LoopsWhoseIndexIsUsedStay) {
  Kernel kernel = product();
  kernel.operands[1] = memory(f32, 1, 0, {b, 1});
  kernel.body = kernel.body + scalar::cast(loop_index(1), f32);
  EXPECT_EQ(loops_of(collapse_loops(kernel)), "[a][b]");
  // A unit loop before it goes, and the index keeps meaning the same loop.
  kernel.loops = {{1, false}, {b, false}};
  Kernel merged = collapse_loops(kernel);
  EXPECT_EQ(loops_of(merged), "[b]");
  EXPECT_EQ(merged.body.str(), "x0 * x1 + f32(i0)");
  // A unit loop whose own index is used stays.
  kernel.body = operand(0, f32) + scalar::cast(loop_index(0), f32);
  EXPECT_EQ(loops_of(collapse_loops(kernel)), "[1][b]");
}

TEST_F(KernelTest, PositionsKeepTheirLoop) {
  Kernel kernel = mean();
  kernel.combine = Combine::argmax;
  kernel.epilogue = Expr();
  kernel.epilogue_operands.clear();
  kernel.result = memory(i64, 1, 0, {1, 0});
  kernel.loops = {{1, false}, {1, true}};
  EXPECT_EQ(loops_of(collapse_loops(kernel)), "r[1]");
  kernel.loops = {{a, false}, {b, false}, {c, true}};
  kernel.operands = {memory(f32, 0, 0, {b * c, c, 1})};
  kernel.result.address.strides = {b, 1, 0};
  EXPECT_EQ(loops_of(collapse_loops(kernel)), "[a*b]r[c]");
}

TEST(CollapseLoops, KeepsTheMeaning) {
  // Constant sizes, so that both kernels can be run: random strides, some of them mergeable.
  std::uint64_t state = 1;
  auto below = [&](std::uint64_t n) {
    return static_cast<std::int64_t>((state = state * 6364136223846793005u + 1442695040888963407u) >> 33) %
           static_cast<std::int64_t>(n);
  };
  for (int round = 0; round < 300; ++round) {
    Kernel kernel;
    kernel.name = "random";
    std::int64_t sizes[3];
    for (std::int64_t& size : sizes) size = 1 + below(3);
    bool reduction = below(2);
    for (int i = 0; i < 3; ++i) kernel.loops.push_back({sizes[i], reduction && (i == 2 || below(2) == 1)});
    std::vector<Dim> dense{sizes[1] * sizes[2], sizes[2], 1}, turned{1, sizes[0], sizes[0] * sizes[1]},
        row{0, sizes[2], 1};
    kernel.operands = {memory(i64, 0, 0, below(2) ? dense : turned), memory(i64, 0, 0, below(2) ? dense : row)};
    kernel.body = operand(0, i64) * 100 + operand(1, i64);
    if (below(3) == 0) kernel.body = kernel.body + loop_index(static_cast<int>(below(3))) * 10000;
    std::vector<Dim> to(3, Dim(0));
    std::int64_t kept = 1;
    for (std::size_t i = 3; i-- > 0;)
      if (!kernel.loops[i].reduced) {
        to[i] = kept;
        kept *= sizes[i];
      }
    if (reduction) kernel.combine = Combine::sum;
    kernel.result = memory(i64, 1, 0, to);
    kernel.buffer_count = 2;
    std::vector<cpu::GuardedMemory> plain;
    plain.push_back(cpu::GuardedMemory::filled(i64, 27, [](std::int64_t i) { return i; }));
    plain.emplace_back(i64, kept);
    std::vector<cpu::GuardedMemory> merged = plain;
    Kernel collapsed = collapse_loops(kernel);
    ASSERT_NO_THROW(verify(collapsed)) << kernel.str() << collapsed.str();
    cpu::KernelReference(kernel, plain).run();
    cpu::KernelReference(collapsed, merged).run();
    ASSERT_TRUE(plain[1].same(merged[1])) << kernel.str() << collapsed.str();
  }
}

// --- the verifier: one broken kernel per rule

std::string refusal(const Kernel& kernel) {
  try {
    verify(kernel);
  } catch (const InternalError& error) {
    std::string text = error.what();
    std::string start = "kernel breaks the rule: ";
    EXPECT_TRUE(text.starts_with(start)) << text;
    return text.substr(start.size(), text.find('\n') - start.size());
  }
  return "";
}
template <class Change>
std::string refusal(Kernel kernel, Change change) {
  EXPECT_EQ(refusal(kernel), "");
  change(kernel);
  return refusal(kernel);
}

TEST_F(KernelTest, VerifyRefusesMissingParts) {
  EXPECT_EQ(refusal(product(), [](Kernel& k) { k.body = Expr(); }), "it has a body");
  EXPECT_EQ(refusal(product(), [](Kernel& k) { k.loops.clear(); }), "it has a loop");
}

TEST_F(KernelTest, VerifyRefusesBrokenAccesses) {
  EXPECT_EQ(refusal(product(), [](Kernel& k) { k.operands[0].address.strides.pop_back(); }),
            "an access has a stride per loop");
  EXPECT_EQ(refusal(product(), [](Kernel& k) { k.result.address.strides.pop_back(); }),
            "an access has a stride per loop");
  EXPECT_EQ(refusal(product(), [](Kernel& k) { k.operands[1].buffer = 3; }), "an access is to one of the buffers");
  EXPECT_EQ(refusal(product(), [](Kernel& k) { k.result.buffer = -1; }), "an access is to one of the buffers");
  EXPECT_EQ(refusal(product(), [](Kernel& k) { k.result.source = Access::number; }), "the result is in memory");
  EXPECT_EQ(refusal(gather(), [](Kernel& k) { k.operands[1].guards[0].position.strides.pop_back(); }),
            "a guard has a stride per loop");
  EXPECT_EQ(refusal(gather(), [](Kernel& k) { k.result.guards = k.operands[1].guards; }), "a result has no guards");
}

TEST_F(KernelTest, VerifyRefusesBrokenIndirections) {
  for (int wrong : {1, 2, -1})
    EXPECT_EQ(refusal(gather(), [&](Kernel& k) { k.operands[1].indirections[0].operand = wrong; }),
              "an indirection is through an earlier operand");
  EXPECT_EQ(refusal(gather(), [](Kernel& k) { k.operands[0].dtype = f32; }), "an indirection is through integers");
  EXPECT_EQ(refusal(gather(),
                    [](Kernel& k) {
                      k.result.indirections = k.operands[1].indirections;
                      k.operands[0].address.strides = {0, 1};
                    }),
            "a result's indirection stands still along the last loop");
}

TEST_F(KernelTest, VerifyRefusesBrokenExpressions) {
  EXPECT_EQ(refusal(product(), [](Kernel& k) { k.body = operand(2, f32); }), "the body's operands exist");
  EXPECT_EQ(refusal(product(), [](Kernel& k) { k.body = scalar::cast(operand(0, f64), f32); }),
            "an operand has its access's type");
  EXPECT_EQ(refusal(product(), [](Kernel& k) { k.body = scalar::cast(loop_index(2), f32); }),
            "a loop index is of a loop");
  EXPECT_EQ(refusal(product(), [](Kernel& k) { k.body = scalar::cast(k.body, f64); }),
            "the stored value has the result's type");
  EXPECT_EQ(refusal(product(), [](Kernel& k) { k.epilogue = operand(0, f32); }), "an epilogue follows a reduction");
  EXPECT_EQ(refusal(mean(), [](Kernel& k) { k.epilogue = operand(2, f32); }), "the epilogue's operands exist");
  EXPECT_EQ(refusal(mean(), [](Kernel& k) { k.epilogue = scalar::cast(loop_index(0), f32); }),
            "an epilogue has no loop index");
  EXPECT_EQ(refusal(mean(), [](Kernel& k) { k.epilogue_operands[0].dtype = f64; }), "an operand has its access's type");
  EXPECT_EQ(refusal(mean(),
                    [](Kernel& k) {
                      k.epilogue_operands[0] = k.operands[0];
                      k.epilogue_operands[0].guards = {{{0, {0, 0}}, 3}};
                    }),
            "an epilogue operand is read as it is");
}

TEST_F(KernelTest, VerifyRefusesBrokenReductions) {
  EXPECT_EQ(refusal(mean(),
                    [](Kernel& k) {
                      k.combine = Combine::none;
                      k.epilogue = Expr();
                    }),
            "reduced loops and a combine go together");
  EXPECT_EQ(refusal(product(), [](Kernel& k) { k.combine = Combine::sum; }), "reduced loops and a combine go together");
  EXPECT_EQ(refusal(mean(),
                    [](Kernel& k) {
                      k.result.address.strides = {1, 1};
                    }),
            "the result does not move along reduced loops");
  EXPECT_EQ(refusal(mean(),
                    [](Kernel& k) {
                      k.operands[0].dtype = f16;
                      k.body = operand(0, f16);
                    }),
            "an accumulator is not f16 or bf16");
  Kernel position = mean();
  position.combine = Combine::argmax;
  position.epilogue = Expr();
  position.result.dtype = i64;
  EXPECT_EQ(refusal(position, [](Kernel& k) { k.result.dtype = i32; }), "a position is an i64");
  EXPECT_EQ(refusal(position,
                    [](Kernel& k) {
                      k.loops[0].reduced = true;
                      k.result.address.strides = {0, 0};
                    }),
            "a position is along one loop");
  EXPECT_EQ(refusal(mean(),
                    [](Kernel& k) {
                      k.operands.push_back(memory(i64, 0, 0, {0, 0}));
                      k.result.indirections = {{.operand = 1, .stride = 1, .extent = 2, .check = 1}};
                    }),
            "a reduction stores at a fixed place");
}

TEST_F(KernelTest, FurtherResults) {
  Kernel kernel = product();
  kernel.further = {{operand(0, f32) < operand(1, f32), memory(DType::bool_, 3, 0, {b, 1})}};
  kernel.buffer_count = 4;
  verify(kernel);
  EXPECT_NE(kernel.key(), product().key());
  EXPECT_NE(kernel.str().find("value = x0 < x1\n  to buffer 3 bool [0 + i0*(b) + i1*(1)]"), std::string::npos)
      << kernel.str();
  // One that is stored by another order of loops keeps them apart.
  Kernel dense = kernel;
  dense.operands[1] = memory(f32, 1, 0, {b, 1});
  EXPECT_EQ(collapse_loops(dense).loops.size(), 1u);
  dense.further[0].to = memory(DType::bool_, 3, 0, {1, a});
  EXPECT_EQ(collapse_loops(dense).loops.size(), 2u);
  dense = kernel;
  dense.operands[1] = memory(f32, 1, 0, {b, 1});
  dense.further[0].body = loop_index(1) < constant(3, i64);
  EXPECT_EQ(collapse_loops(dense).loops.size(), 2u);

  Kernel broken = kernel;
  broken.further[0].to.buffer = 2;
  broken.further[0].to.dtype = f32;
  broken.further[0].body = operand(0, f32);
  EXPECT_THROW(verify(broken), InternalError) << "two results in one buffer";
  broken = kernel;
  broken.further[0].to.dtype = f32;
  EXPECT_THROW(verify(broken), InternalError) << "another type";
  broken = kernel;
  broken.accumulate = true;
  EXPECT_THROW(verify(broken), InternalError) << "added to";
  broken = mean();
  broken.further = {{operand(0, f32), memory(f32, 2, 0, {1, 0})}};
  broken.buffer_count = 3;
  EXPECT_THROW(verify(broken), InternalError) << "of a reduction";
}

TEST_F(KernelTest, VerifyRefusesBrokenAccumulation) {
  EXPECT_EQ(refusal(product(), [](Kernel& k) { k.accumulate = true; }), "");
  EXPECT_EQ(refusal(mean(), [](Kernel& k) { k.accumulate = true; }), "only a map adds to memory");
  EXPECT_EQ(refusal(product(),
                    [](Kernel& k) {
                      k.accumulate = true;
                      k.result.address.strides[1] = 2;
                    }),
            "what adds to memory has lanes side by side");
}

}  // namespace
}  // namespace stet
