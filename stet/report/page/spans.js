// The spans of the recording as arrays, and what follows from them: who contains whom, which lane each is drawn in.
//
// They come sorted by (thread, begin, -duration), so a span's parent is the last one before it that has not ended.

function read_spans(given) {
  const numbers = {
    thread: numbers_of(given.thread, Uint16Array), kind: numbers_of(given.kind, Uint8Array),
    name: numbers_of(given.name, Uint32Array), begin: numbers_of(given.begin, Float64Array),
    duration: numbers_of(given.duration, Float64Array), bytes: numbers_of(given.bytes, Float64Array),
    flops: numbers_of(given.flops, Float64Array),
  };
  const count = Math.min(given.count || 0, numbers.thread.length, numbers.kind.length, numbers.name.length,
    numbers.begin.length, numbers.duration.length);
  for (let at = 0; at < count; ++at) {
    // Of one that never ended nobody knows how long it took.
    if (!(numbers.duration[at] >= 0)) numbers.duration[at] = 0;
  }
  return {...numbers, count, ...nesting(numbers, count)};
}

/** Per span: parent (-1: none), self time, place in its lane. Lanes: one per thread and depth. */
function nesting({thread, begin, duration}, count) {
  const parent = new Int32Array(count).fill(-1);
  const self = new Float64Array(count);
  const depth = new Uint32Array(count);
  const sizes = [];  // per thread, spans at each depth
  const open = [];
  let now = -1;
  for (let at = 0; at < count; ++at) {
    if (thread[at] !== now) {
      now = thread[at];
      open.length = 0;
      sizes[now] = sizes[now] || [];
    }
    while (open.length && begin[open[open.length - 1]] + duration[open[open.length - 1]] <= begin[at]) open.pop();
    if (open.length) parent[at] = open[open.length - 1];
    depth[at] = open.length;
    self[at] += duration[at];
    if (parent[at] >= 0) self[parent[at]] -= duration[at];
    sizes[now][open.length] = (sizes[now][open.length] || 0) + 1;
    open.push(at);
  }
  const lanes = new Map();  // thread → lanes by depth
  sizes.forEach((by_depth, of) => lanes.set(of, by_depth.map((size) => new Uint32Array(size))));
  const filled = new Map([...lanes].map(([of, all]) => [of, all.map(() => 0)]));
  for (let at = 0; at < count; ++at) {
    lanes.get(thread[at])[depth[at]][filled.get(thread[at])[depth[at]]++] = at;
  }
  return {parent, self, depth, lanes};
}

/** For a lane: how long its first k spans took together. */
function durations_before(lane, duration) {
  const sums = new Float64Array(lane.length + 1);
  for (let at = 0; at < lane.length; ++at) sums[at + 1] = sums[at] + duration[lane[at]];
  return sums;
}

/** Those of a lane that `keeps` keeps. */
const lane_where = (lane, keeps) => lane.filter(keeps);
