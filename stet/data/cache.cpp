// The elements of the first pass, kept in memory or in a file.
//
// Whether they are read again or made again, they are those of one pass, the first: a pass that was given up has kept
// nothing, and the next one makes the same.
#include <utility>
#include <vector>

#include "stet/base/text.h"
#include "stet/data/cache_file.h"
#include "stet/data/stage.h"

namespace stet::data {
namespace {

using Kept = std::shared_ptr<const std::vector<Tensors>>;

class KeptElements : public Elements {
 public:
  explicit KeptElements(Kept kept) : kept_(std::move(kept)) {}
  bool next(Tensors& out) override {
    if (at_ == kept_->size()) return false;
    out = (*kept_)[at_++];
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    const auto skipped = std::min(static_cast<std::uint64_t>(count), std::uint64_t{kept_->size() - at_});
    at_ += skipped;
    return static_cast<std::int64_t>(skipped);
  }

 private:
  Kept kept_;
  std::size_t at_ = 0;
};

class ReadElements : public Elements {
 public:
  explicit ReadElements(std::shared_ptr<const CacheReader> file) : file_(std::move(file)) {}
  bool next(Tensors& out) override {
    if (at_ == file_->count()) return false;
    file_->read(at_++, out);
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t skipped = std::min(count, file_->count() - at_);
    at_ += skipped;
    return skipped;
  }

 private:
  std::shared_ptr<const CacheReader> file_;
  std::int64_t at_ = 0;
};

/// `Keep` has add(element) and finish(), which is called when all elements have come: with the last one, where their
/// number is known, because nobody may ask for more (a take, a zip whose other side ends first), otherwise at the end
/// of upstream.
template <class Keep>
class KeepingElements : public Elements {
 public:
  /// `count` of the upstream's elements.
  KeepingElements(std::unique_ptr<Elements> upstream, std::int64_t count, Keep keep)
      : upstream_(std::move(upstream)), left_(count), keep_(std::move(keep)) {}
  bool next(Tensors& out) override {
    if (left_ == 0 || !upstream_->next(out)) {
      finish();
      return false;
    }
    keep_.add(out);
    if (left_ != unknown_count && --left_ == 0) finish();
    return true;
  }

 private:
  void finish() {
    if (!std::exchange(finished_, true)) keep_.finish();
  }
  std::unique_ptr<Elements> upstream_;
  std::int64_t left_;  // or unknown_count
  bool finished_ = false;
  Keep keep_;
};

class CacheStage : public LaterStage {
 public:
  CacheStage(StagePointer before, std::string arguments, Where where)
      : LaterStage(before,
                   {.name = "cache", .arguments = std::move(arguments), .where = where, .count = before->count()}) {}
  const FirstPass* first_pass() const override { return &first_; }
  std::optional<std::vector<TensorSpec>> spec() const override { return upstream.spec(); }

 protected:
  /// What is kept follows from the first pass alone, not from what comes after the cache: several that use one cache
  /// may each come first.
  std::unique_ptr<Elements> open_upstream(const Pass& pass) const {
    const FirstPass::Value value = first_.get();
    return upstream.elements(
        {.drawn = combined(value.drawn, 0x6b657074), .iteration = value.iteration, .statistics = pass.statistics});
  }

 private:
  FirstPass first_;
};

class MemoryCache : public CacheStage {
 public:
  MemoryCache(StagePointer before, Where where) : CacheStage(std::move(before), "", where) {}

 private:
  class Keep {
   public:
    explicit Keep(const MemoryCache& cache)
        : cache_(cache), elements_(std::make_unique<std::vector<Tensors>>()), first_(cache.first_pass()->get()) {}
    void add(const Tensors& element) { elements_->push_back(element); }
    void finish() {
      std::lock_guard lock(cache_.guard_);
      cache_.kept_ = {Kept(std::move(elements_)), first_};
    }

   private:
    const MemoryCache& cache_;
    std::unique_ptr<std::vector<Tensors>> elements_;
    FirstPass::Value first_;
  };

  std::unique_ptr<Elements> open(const Pass& pass) const override {
    const FirstPass::Value first = first_pass()->get();
    {
      std::lock_guard lock(guard_);
      // A position of another process may have said what the first pass was.
      if (kept_.elements && kept_.of.drawn == first.drawn && kept_.of.iteration == first.iteration)
        return std::make_unique<KeptElements>(kept_.elements);
    }
    return std::make_unique<KeepingElements<Keep>>(open_upstream(pass), upstream.count(), Keep(*this));
  }

  struct Whole {
    Kept elements;
    FirstPass::Value of;
  };
  mutable Lock guard_;
  mutable Whole kept_{};
};

class FileCache : public CacheStage {
 public:
  FileCache(StagePointer before, std::string file, Where where)
      : CacheStage(before, "file", where),
        file_(std::move(file)),
        identity_{before->fingerprint(), described(*before)} {}

 private:
  class Keep {
   public:
    explicit Keep(std::unique_ptr<CacheWriter> writer) : writer_(std::move(writer)) {}
    void add(const Tensors& element) { writer_->add(element); }
    void finish() { writer_->finish(); }

   private:
    std::unique_ptr<CacheWriter> writer_;
  };

  std::unique_ptr<Elements> open(const Pass& pass) const override {
    if (std::shared_ptr<const CacheReader> reader = CacheReader::open(file_, identity_, facts().where))
      return std::make_unique<ReadElements>(std::move(reader));
    return std::make_unique<KeepingElements<Keep>>(
        open_upstream(pass), upstream.count(), Keep(std::make_unique<CacheWriter>(file_, identity_, facts().where)));
  }

  std::string file_;
  CacheIdentity identity_;
};

}  // namespace

StagePointer cache_stage(StagePointer upstream, Where where) {
  return std::make_shared<MemoryCache>(std::move(upstream), where);
}
StagePointer file_cache_stage(StagePointer upstream, std::string file, Where where) {
  return std::make_shared<FileCache>(std::move(upstream), std::move(file), where);
}

}  // namespace stet::data
