#include "stet/runtime/recording.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <deque>
#include <fstream>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "stet/base/error.h"
#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/base/thread_end.h"
#include "stet/base/version.h"
#include "stet/files/utf8.h"
#include "stet/runtime/buffer.h"
#include "stet/runtime/log.h"
#include "stet/runtime/parallel.h"
#include "stet/runtime/recording_format.h"

namespace stet::recording {

constinit std::atomic<bool> active{false};

namespace {

constexpr const char* kind_names[kind_count] = {"call",  "trace", "pass",     "compile", "bind",
                                                "run",   "step",  "region",   "stage",   "wait",
                                                "epoch", "batch", "callback", "audit",   "user"};
constexpr std::size_t most_names = 65536, most_name_length = 512;
constexpr std::size_t fewest_chunks = 16;

/// Memory of a recording: its own, or a part of the file. Lives as long as a thread may write to it.
class Memory {
 public:
  /// Null if there is none.
  static std::shared_ptr<Memory> taken(std::size_t bytes) {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return data == MAP_FAILED ? nullptr : std::make_shared<Memory>(data, bytes);
  }
  /// The file's own memory, so that what is written is there when the process is killed. Null where the disk is full.
  static std::shared_ptr<Memory> of_file(int file, std::size_t offset, std::size_t bytes) {
    // Room now: what is written into a mapping that the disk has no room for ends the process. So does the signal of a
    // file that grows beyond what the process may write.
    rlimit most;
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY && offset + bytes > most.rlim_cur) {
      errno = EFBIG;
      return nullptr;
    }
    int problem = 0;
    while ((problem = posix_fallocate(file, static_cast<off_t>(offset), static_cast<off_t>(bytes))) == EINTR) {
    }
    if (problem != 0) {
      errno = problem;
      return nullptr;
    }
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
    return data == MAP_FAILED ? nullptr : std::make_shared<Memory>(data, bytes);
  }
  Memory(void* data, std::size_t bytes) : data_(static_cast<char*>(data)), bytes_(bytes) {}
  ~Memory() { munmap(data_, bytes_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  char* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  template <class T>
  T& at(std::size_t offset) const {
    return *reinterpret_cast<T*>(data_ + offset);
  }

 private:
  char* data_;
  std::size_t bytes_;
};

using Chunk = std::shared_ptr<Memory>;
ChunkHead& head_of(const Chunk& chunk) { return chunk->at<ChunkHead>(0); }

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (std::size_t at = line.find(": "); at != std::string::npos) return line.substr(at + 2);
  return "";
}

std::string program_name() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? last_part(std::string(path, static_cast<std::size_t>(length))) : "program";
}

/// A new file, whatever stood under the name: another program may be recording into that one, and would end if it were
/// cut. A link stays, and what it leads to is written. -1, with errno, where there is none.
int new_file(const std::string& path) {
  constexpr int flags = O_RDWR | O_CREAT | O_CLOEXEC;
  constexpr mode_t mode = 0644;
  struct stat about;
  if (stat(path.c_str(), &about) != 0) return open(path.c_str(), flags, mode);
  if (!S_ISREG(about.st_mode)) {
    errno = S_ISDIR(about.st_mode) ? EISDIR : EINVAL;
    return -1;
  }
  if (access(path.c_str(), W_OK) != 0) return -1;
  const std::unique_ptr<char, void (*)(void*)> target(realpath(path.c_str(), nullptr), std::free);
  if (target && unlink(target.get()) == 0) return open(target.get(), flags | O_EXCL, mode);
  return open(path.c_str(), flags | O_TRUNC, mode);  // in a folder that may not be changed
}

/// "run.stet-profile", "run-2.stet-profile", … until there is no such file. Another process may look for one, too.
int file_beside(std::string& path) {
  const std::size_t dot = std::min(path.rfind('.'), path.size());
  const std::string name = path.substr(0, dot), ending = path.substr(dot);
  for (int number = 2;; ++number) {
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file >= 0 || errno != EEXIST) return file;
    path = text(name, "-", number, ending);
  }
}

/// One recording. All but the writing of spans happens with the recorder's lock held.
class Session {
 public:
  Session(const Place& place, Where where) : path_(place.file) {
    most_chunks_ = std::max(fewest_chunks, (place.most_bytes - std::min(place.most_bytes, head_bytes)) / chunk_bytes);
    chunks_.reserve(most_chunks_);
    if (!path_.empty()) {
      file_ = place.beside_others ? file_beside(path_) : new_file(path_);
      if (file_ < 0) fail(where);
    }
    memory_ = path_.empty() ? Memory::taken(head_bytes) : Memory::of_file(file_, 0, head_bytes);
    if (!memory_) {
      const int problem = errno;
      if (file_ >= 0) {
        unlink(path_.c_str());
        close(std::exchange(file_, -1));
      }
      errno = problem;
      fail(where);
    }
    Head& head = this->head();
    std::copy(std::begin(magic), std::end(magic), head.magic);
    head.version = format_version;
    head.chunk_bytes = chunk_bytes;
    head.began = now();
    head.began_at = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count());
    head.process = static_cast<std::uint64_t>(getpid());
  }
  ~Session() {
    if (file_ >= 0) close(file_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Head& head() const { return memory_->at<Head>(0); }
  const std::string& path() const { return path_; }
  bool writes_to(const std::string& path) const {
    struct stat mine, other;
    return file_ >= 0 && fstat(file_, &mine) == 0 && stat(path.c_str(), &other) == 0 && mine.st_dev == other.st_dev &&
           mine.st_ino == other.st_ino;
  }
  /// What there is to say, once: the disk has become full.
  std::string take_problem() { return std::exchange(problem_, {}); }

  /// There is no room for it.
  void lose(const SpanRecord& record) {
    if (record.type != SpanRecord::span) return;
    Head& head = this->head();
    const std::uint64_t until = head.lost_until.load(std::memory_order_relaxed);
    head.lost.fetch_add(1, std::memory_order_relaxed);
    head.lost_until.store(std::max(until, record.begin + record.duration), std::memory_order_relaxed);
  }

  /// A chunk for spans instead of `full` (or none): one that a thread has left, a new one, or the oldest. Null: there
  /// is none.
  Chunk take(const Chunk& full) {
    if (full) std::erase(held_, full.get());
    if (!left_.empty()) {
      Chunk chunk = std::move(left_.back());
      left_.pop_back();
      held_.push_back(chunk.get());
      return chunk;
    }
    Chunk chunk = fresh();
    if (!chunk) chunk = oldest();
    if (!chunk) return nullptr;
    begin(chunk, Content::spans);
    held_.push_back(chunk.get());
    return chunk;
  }
  /// A thread goes, and its chunk is not full.
  void leave(Chunk chunk) {
    std::erase(held_, chunk.get());
    left_.push_back(std::move(chunk));
  }

  /// Whole or not at all, which is false: it takes its chunks first.
  bool add_text(TextHead::Kind kind, std::string_view bytes) {
    const TextHead head{kind, static_cast<std::uint32_t>(bytes.size())};
    std::size_t room = text_.empty() ? 0 : text_room() - head_of(text_.back()).used.load(std::memory_order_relaxed);
    std::vector<Chunk> more;
    for (; room < sizeof head + bytes.size(); room += text_room()) {
      Chunk chunk = text_.size() + more.size() < most_chunks_ / 4 ? fresh() : nullptr;
      if (!chunk) {
        for (Chunk& unused : more) spare_.push_back(std::move(unused));
        return false;
      }
      more.push_back(std::move(chunk));
    }
    std::size_t next = 0;
    auto write = [&](std::string_view rest) {
      while (!rest.empty()) {
        if (text_.empty() || head_of(text_.back()).used.load(std::memory_order_relaxed) == text_room()) {
          begin(more[next], Content::text);
          text_.push_back(more[next++]);
        }
        ChunkHead& chunk = head_of(text_.back());
        const std::uint32_t used = chunk.used.load(std::memory_order_relaxed);
        const std::size_t count = std::min(rest.size(), text_room() - used);
        std::memcpy(text_.back()->data() + sizeof(ChunkHead) + used, rest.data(), count);
        chunk.used.store(used + static_cast<std::uint32_t>(count), std::memory_order_release);
        rest.remove_prefix(count);
      }
    };
    write({reinterpret_cast<const char*>(&head), sizeof head});
    write(bytes);
    return true;
  }

  /// `more`: entries of text that stand behind the others there, and not in the recording.
  std::string contents(std::string_view more) const {
    std::string out(memory_->data(), head_bytes);
    auto add_chunk = [&](std::uint64_t number, Content content, std::string_view used) {
      // By its fields: threads go on writing.
      const std::size_t at = out.size();
      const auto bytes = static_cast<std::uint32_t>(used.size());
      out.append(sizeof(ChunkHead), '\0');
      std::memcpy(out.data() + at + offsetof(ChunkHead, number), &number, sizeof number);
      std::memcpy(out.data() + at + offsetof(ChunkHead, content), &content, sizeof content);
      std::memcpy(out.data() + at + offsetof(ChunkHead, used), &bytes, sizeof bytes);
      out += used;
      out.append(text_room() - used.size(), '\0');
    };
    for (const Chunk& chunk : chunks_) {
      const ChunkHead& head = head_of(chunk);
      const std::size_t used = head.used.load(std::memory_order_acquire);
      add_chunk(head.number.load(std::memory_order_relaxed), head.content, {chunk->data() + sizeof(ChunkHead), used});
    }
    std::uint64_t number = head().chunks.load(std::memory_order_relaxed);
    for (; !more.empty(); more.remove_prefix(std::min(more.size(), text_room())))
      add_chunk(++number, Content::text, more.substr(0, text_room()));
    return out;
  }

 private:
  static constexpr std::size_t text_room() { return chunk_bytes - sizeof(ChunkHead); }

  [[noreturn]] void fail(Where where) const {
    throw UserError(error_text(text("a recording cannot be written to '", path_, "': ", std::strerror(errno)), where,
                               "name a file in a folder that exists and may be written to"));
  }

  void begin(const Chunk& chunk, Content content) {
    ChunkHead& head = head_of(chunk);
    head.number.store(0, std::memory_order_release);
    head.used.store(0, std::memory_order_release);
    head.content = content;
    head.number.store(this->head().chunks.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  /// Null: there may be no more, or there is no room.
  Chunk fresh() {
    if (!spare_.empty()) {
      Chunk chunk = std::move(spare_.back());
      spare_.pop_back();
      return chunk;
    }
    if (chunks_.size() >= most_chunks_) return nullptr;
    Chunk chunk = file_ >= 0 ? Memory::of_file(file_, head_bytes + chunks_.size() * chunk_bytes, chunk_bytes)
                             : Memory::taken(chunk_bytes);
    if (chunk) {
      chunks_.push_back(chunk);
      return chunk;
    }
    problem_ =
        text(path_.empty() ? std::string("a recording finds no more memory")
                           : text("the recording '", path_, "' finds no more room"),
             ": ", std::strerror(errno), "\n  from here on the oldest spans make room for new ones, and are counted\n");
    most_chunks_ = std::max<std::size_t>(chunks_.size(), 1);  // not asked for at every turn
    return chunk;
  }

  /// The chunk of spans with the lowest number that no thread writes to; what is in it is lost.
  Chunk oldest() {
    Chunk least;
    for (const Chunk& chunk : chunks_) {
      const ChunkHead& head = head_of(chunk);
      if (head.content != Content::spans || std::find(held_.begin(), held_.end(), chunk.get()) != held_.end()) continue;
      if (!least || head.number.load(std::memory_order_relaxed) < head_of(least).number.load(std::memory_order_relaxed))
        least = chunk;
    }
    if (!least) return least;
    const std::size_t count = head_of(least).used.load() / sizeof(SpanRecord);
    const auto* records = &least->at<SpanRecord>(sizeof(ChunkHead));
    for (std::size_t i = 0; i < count; ++i) lose(records[i]);
    return least;
  }

  std::string path_;
  std::string problem_ = {};
  int file_ = -1;
  std::shared_ptr<Memory> memory_;  // of the head
  std::size_t most_chunks_ = 0;
  std::vector<Chunk> chunks_;
  std::vector<Chunk> left_;          // spans, not full, of threads that have ended
  std::vector<Chunk> spare_;         // taken, and not needed
  std::vector<Chunk> text_;          // in order
  std::vector<const Memory*> held_;  // that threads write to
};

/// What watch() was told of.
struct Watches {
  struct Watch {
    const char* name;
    std::uint64_t (*value)();
    std::uint64_t base = 0;  // when the recording began
    std::uint64_t told = 0;  // of this recording, from there
  };
  Lock guard;
  std::vector<Watch> all;
  std::atomic<std::uint64_t> next{0};  // when they are looked at again
};
Watches& watches() {
  static auto* const one = new Watches;  // never destroyed: see thread_end.h
  return *one;
}

struct Recorder {
  Lock guard;  // of what follows
  std::shared_ptr<Session> session;
  int users = 0;
  std::vector<AtEnd> enders;
  std::uint32_t next_thread = 0;
  std::deque<std::uint32_t> free_threads;  // numbers of threads that have ended, the longest ago first
  std::unordered_map<std::string, Name> names{{"(others)", 0}};
  std::vector<const std::string*> names_in_order{&names.begin()->first};
};
Recorder& recorder() {
  static auto* const one = new Recorder;  // never destroyed: see thread_end.h
  return *one;
}
/// Of the recording that runs: what a thread compares with the one that it wrote to last.
constinit std::atomic<std::uint64_t> current{0};
std::atomic<std::uint64_t> last_number{0};

/// The recorder's lock, and what there is to say when it is free again.
class Locked {
 public:
  Locked() { recorder().guard.lock(); }
  ~Locked() {
    const std::shared_ptr<Session>& session = recorder().session;
    const std::string problem = session ? session->take_problem() : std::string();
    recorder().guard.unlock();
    if (!problem.empty()) warn("profile", text("stet: ", problem));
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
};

/// Records have 16 bits for it. A number is given again when there is no other; what has it then never ran beside the
/// thread that had it before.
std::uint32_t take_thread_number() {
  constexpr std::uint32_t most = 65536;
  Recorder& all = recorder();
  Locked lock;
  if (all.next_thread < most) return all.next_thread++;
  if (all.free_threads.empty()) return most - 1;
  const std::uint32_t number = all.free_threads.front();
  all.free_threads.pop_front();
  return number;
}

/// What users name is in their encoding; a reader takes none but UTF-8.
void make_utf8(files::Json& value) {
  if (const std::string* words = value.if_string()) {
    if (!files::is_utf8(*words)) value = files::as_utf8(*words);
  } else if (files::Json::List* list = value.if_list()) {
    for (files::Json& one : *list) make_utf8(one);
  } else if (files::Json::Object* object = value.if_object()) {
    for (files::Json::Member& member : *object) make_utf8(member.second);
  }
}

void add_name(Session& session, Name number, std::string_view name) {
  std::string bytes(reinterpret_cast<const char*>(&number), sizeof number);
  bytes += files::as_utf8(name);
  if (!session.add_text(TextHead::name, bytes)) session.head().lost_text.fetch_add(1, std::memory_order_relaxed);
}

std::string note_text(files::Json::Object what) {
  what.emplace_back("time", static_cast<std::int64_t>(now()));
  files::Json note(std::move(what));
  make_utf8(note);
  return files::to_text(note);
}
void add_note(Session& session, files::Json::Object what) {
  if (session.add_text(TextHead::note, note_text(what))) return;
  // Where there is no room for graphs there may be some for the rest.
  session.head().lost_text.fetch_add(1, std::memory_order_relaxed);
  if (std::erase_if(what, [](const files::Json::Member& one) { return one.second.if_object() != nullptr; }) > 0)
    session.add_text(TextHead::note, note_text(std::move(what)));
}

std::string thread_name(std::uint32_t number) {
  if (syscall(SYS_gettid) == getpid()) return "main";
  char name[64] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  // A thread that nobody named is called like the program.
  if (*name == '\0' || program_name().starts_with(name)) return text("thread ", number);
  return text(name, " ", number);
}

/// Where a thread writes.
struct ThreadPlace {
  std::uint64_t session = 0;
  Chunk chunk;
  SpanRecord* next = nullptr;
  std::uint32_t used = 0;
  std::uint64_t began = 0;    // the recording
  std::uint64_t sampled = 0;  // when memory was
  std::uint32_t number = take_thread_number();

  ~ThreadPlace() {
    Recorder& all = recorder();
    Locked lock;
    all.free_threads.push_back(number);
    if (chunk && all.session && session == current.load(std::memory_order_relaxed))
      all.session->leave(std::move(chunk));
  }

  /// Room for a record; null where there is none.
  SpanRecord* room() {
    if (session == current.load(std::memory_order_acquire) && used < spans_in_chunk && chunk) return next;
    return renew();
  }
  void written() {
    ++next;
    ++used;
    head_of(chunk).used.store(static_cast<std::uint32_t>(used * sizeof(SpanRecord)), std::memory_order_release);
  }

 private:
  [[gnu::noinline]] SpanRecord* renew() {
    Recorder& all = recorder();
    Locked lock;
    const std::uint64_t number_now = current.load(std::memory_order_relaxed);
    if (!all.session || number_now == 0) return nullptr;
    const bool is_first = session != number_now;
    if (is_first) chunk = nullptr;
    session = number_now;
    began = all.session->head().began;
    if (is_first)
      add_note(*all.session,
               {{"note", "thread"}, {"thread", static_cast<std::int64_t>(number)}, {"name", thread_name(number)}});
    do {  // again if a thread had just filled the one that it left
      Chunk taken = all.session->take(chunk);
      chunk = std::move(taken);
      if (!chunk) return nullptr;
      used = static_cast<std::uint32_t>(head_of(chunk).used.load(std::memory_order_relaxed) / sizeof(SpanRecord));
    } while (used == spans_in_chunk);
    next = &chunk->at<SpanRecord>(sizeof(ChunkHead)) + used;
    return next;
  }
};
[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadPlace* this_place = nullptr;
ThreadPlace& place_of_this_thread() { return this_place ? *this_place : make_for_this_thread(this_place); }

/// The file is the parent's: a child does not write to it, and closes it.
void in_child() {
  active.store(false);
  current.store(0);
  Recorder& all = recorder();
  all.session = nullptr;
  all.users = 0;
}

void write(SpanRecord record) noexcept {
  try {
    ThreadPlace& place = place_of_this_thread();
    SpanRecord* room = place.room();
    if (!room) {
      Locked lock;
      if (recorder().session) recorder().session->lose(record);
      return;
    }
    // It ended in an earlier recording, and this thread had to wait since.
    if (record.type == SpanRecord::span && record.begin + record.duration < place.began) return;
    record.thread = static_cast<std::uint16_t>(place.number);
    *room = record;
    place.written();
  } catch (const std::exception&) {  // no memory: nothing is told
  }
}

/// With the lock held.
void begin_session(const Place& place, Where where) {
  Recorder& all = recorder();
  auto fresh = std::make_shared<Session>(place, where);
  files::Json::List kinds;
  for (const char* one : kind_names) kinds.emplace_back(one);
  add_note(*fresh, {{"note", "begin"},
                    {"program", program_name()},
                    {"stet", STET_VERSION},
                    {"threads", thread_count()},
                    {"cpu", cpu_name()},
                    {"kinds", std::move(kinds)}});
  for (std::size_t i = 0; i < all.names_in_order.size(); ++i)
    add_name(*fresh, static_cast<Name>(i), *all.names_in_order[i]);
  all.session = std::move(fresh);
  current.store(last_number.fetch_add(1) + 1);
  active.store(true);
}

constexpr std::uint64_t between_looks = 10'000'000;  // ns

void begin_watches() {
  const std::vector<Count> reached = counts();
  std::lock_guard lock(watches().guard);
  for (std::size_t i = 0; i < reached.size(); ++i) {
    watches().all[i].base = reached[i].value;
    watches().all[i].told = 0;
    counter(name_of(reached[i].name), 0);
  }
}

void look_at_watches() {
  const std::vector<Count> reached = counts();
  std::lock_guard lock(watches().guard);
  for (std::size_t i = 0; i < reached.size(); ++i) {
    Watches::Watch& watch = watches().all[i];
    const std::uint64_t value = reached[i].value - std::min(reached[i].value, watch.base);
    if (value <= watch.told) continue;  // another thread has looked since
    watch.told = value;
    counter(name_of(watch.name), static_cast<double>(value));
  }
}

/// "counts" of a recording or, since these counts, of a part of it.
files::Json::Object counts_told(const std::vector<Count>& since) {
  files::Json::Object out{{"note", "counts"}};
  const std::vector<Count> reached = counts();
  std::lock_guard lock(watches().guard);
  for (std::size_t i = 0; i < reached.size(); ++i) {
    std::uint64_t base = watches().all[i].base;
    for (const Count& count : since)
      if (std::string_view(count.name) == reached[i].name) base = count.value;
    out.emplace_back(reached[i].name, static_cast<std::int64_t>(reached[i].value - std::min(reached[i].value, base)));
  }
  return out;
}

/// What there is to tell of the whole recording. Without the lock: those who are asked add notes of their own.
Notes notes_at_end(const std::vector<Count>& since) {
  std::vector<AtEnd> enders;
  {
    Locked lock;
    if (!recorder().session) return {};
    enders = recorder().enders;
  }
  look_at_watches();
  Notes out;
  out.push_back(counts_told(since));
  for (AtEnd told : enders) told(out);
  return out;
}

}  // namespace

const char* kind_name(Kind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

std::uint64_t now() noexcept {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

Name name_of(std::string_view given) noexcept try {
  std::string name(given.substr(0, most_name_length));
  Recorder& all = recorder();
  Locked lock;
  if (auto found = all.names.find(name); found != all.names.end()) return found->second;
  if (all.names.size() >= most_names) return 0;
  const auto number = static_cast<Name>(all.names.size());
  const auto added = all.names.emplace(std::move(name), number).first;
  all.names_in_order.push_back(&added->first);
  if (all.session) add_name(*all.session, number, added->first);
  return number;
} catch (const std::exception&) {
  return 0;
}

void span(Kind kind, Name name, std::uint64_t begin, std::uint64_t end, double bytes, double flops) noexcept {
  if (!on()) return;
  write({SpanRecord::span, static_cast<std::uint8_t>(kind), 0, name, begin, end - begin, bytes, flops});
}

void counter(Name name, double value) noexcept {
  if (!on()) return;
  write({SpanRecord::counter, 0, 0, name, now(), std::bit_cast<std::uint64_t>(value), 0, 0});
}

void sample_memory_now() noexcept {
  try {
    ThreadPlace& place = place_of_this_thread();
    const std::uint64_t time = now();
    if (time - place.sampled < 100'000) return;
    place.sampled = time;
    static const Name name = name_of("memory of tensors");
    counter(name, static_cast<double>(memory_statistics().bytes_in_use));
    std::uint64_t next = watches().next.load(std::memory_order_relaxed);
    if (time >= next && watches().next.compare_exchange_strong(next, time + between_looks)) look_at_watches();
  } catch (const std::exception&) {
  }
}

void note(files::Json::Object what) noexcept {
  if (!on()) return;
  try {
    Recorder& all = recorder();
    Locked lock;
    if (all.session) add_note(*all.session, std::move(what));
  } catch (const std::exception&) {
  }
}

std::uint64_t begin(const Place& place, Where where) {
  Recorder& all = recorder();
  static const int watched = pthread_atfork(nullptr, nullptr, in_child);
  static_cast<void>(watched);
  watch("allocations", [] { return memory_statistics().allocations; });
  watch("allocations from the system", [] {
    const MemoryStatistics now = memory_statistics();
    return now.allocations - now.cache_hits;
  });
  bool is_first = false;
  std::uint64_t number = 0;
  {
    Locked lock;
    is_first = !all.session;
    if (is_first) begin_session(place, where);
    ++all.users;
    number = current.load();
  }
  if (is_first) begin_watches();
  return number;
}

bool end_if_last(std::uint64_t number) {
  if (number == 0 || number != current.load()) return true;  // of a process that this one was forked from
  Recorder& all = recorder();
  {
    Locked lock;
    if (all.users > 1) return false;
  }
  Notes last = notes_at_end({});
  std::shared_ptr<Session> ended;  // its memory goes when the lock is free
  Locked lock;
  if (all.users > 1) return false;  // somebody has joined meanwhile
  all.users = 0;
  for (files::Json::Object& note : last) add_note(*all.session, std::move(note));
  active.store(false);
  current.store(0);
  all.session->head().ended.store(now());
  ended = std::move(all.session);
  all.session = nullptr;
  return true;
}

void end(std::uint64_t number) {
  while (!end_if_last(number)) {
    Recorder& all = recorder();
    Locked lock;
    if (all.users > 1) {
      --all.users;
      return;
    }
  }
}

std::string contents(const std::vector<Count>& since) {
  std::string more;
  for (files::Json::Object& note : notes_at_end(since)) {
    const std::string words = note_text(std::move(note));
    const TextHead head{TextHead::note, static_cast<std::uint32_t>(words.size())};
    more.append(reinterpret_cast<const char*>(&head), sizeof head);
    more += words;
  }
  Locked lock;
  return recorder().session ? recorder().session->contents(more) : std::string();
}

void watch(const char* name, std::uint64_t (*value)()) {
  std::lock_guard lock(watches().guard);
  for (const Watches::Watch& known : watches().all)
    if (std::string_view(known.name) == name) return;
  watches().all.push_back({name, value});
}

std::vector<Count> counts() {
  // Values are asked for without the lock: one may wait for what is being made, whose maker waits for the lock to have
  // it watched, too. The list only grows.
  std::vector<Count> out;
  std::vector<std::uint64_t (*)()> values;
  {
    std::lock_guard lock(watches().guard);
    for (const Watches::Watch& watch : watches().all) {
      out.push_back({watch.name, 0});
      values.push_back(watch.value);
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i].value = values[i]();
  return out;
}

bool writes_to(const std::string& path) {
  Locked lock;
  return recorder().session && recorder().session->writes_to(path);
}

void at_end(AtEnd told) {
  Locked lock;
  recorder().enders.push_back(told);
}

std::uint64_t session() { return current.load(std::memory_order_relaxed); }

}  // namespace stet::recording
