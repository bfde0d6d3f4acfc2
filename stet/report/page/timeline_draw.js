// How a lane of spans is drawn: those that are wide enough one by one, all others together, a pixel at a time. So what it
// costs is a matter of pixels, however many spans there are.

/** The first of the lane that ends after `time`. */
function first_ending_after(spans, lane, time) {
  let low = 0, high = lane.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans.begin[lane[middle]] + spans.duration[lane[middle]] > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The first of the lane from `from` on that begins at `time` or later. It is near: steps double until it is passed. */
function first_beginning_at(spans, lane, from, time) {
  let step = 1, high = from;
  while (high < lane.length && spans.begin[lane[high]] < time) {
    from = high + 1;
    high += step;
    step *= 2;
  }
  let low = from;
  high = Math.min(high, lane.length);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans.begin[lane[middle]] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * view: {from, to, width}; pixel: the size of one of the screen; each(span, x, width) is called for wide ones,
 * many(first, past, x, share) for a pixel's worth of narrow ones, of which `share` is busy.
 */
function walk_lane(spans, lane, sums, view, pixel, each, many) {
  const scale = view.width / (view.to - view.from);
  const narrow = Math.max(1.2, pixel);
  for (let at = first_ending_after(spans, lane, view.from); at < lane.length;) {
    const span = lane[at];
    const begin = spans.begin[span];
    if (begin >= view.to) return;
    const x = (begin - view.from) * scale, wide = spans.duration[span] * scale;
    if (wide >= narrow) {
      const left = Math.max(x, -2), right = Math.min(x + wide, view.width + 2);
      each(span, left, right - left);
      ++at;
      continue;
    }
    const column = Math.floor(x);
    let past = Math.max(at + 1, first_beginning_at(spans, lane, at + 1, view.from + (column + 1) / scale));
    // Only the last one can be wide: they do not overlap.
    if (past - at > 1 && spans.duration[lane[past - 1]] * scale >= narrow) --past;
    many(at, past, column, Math.min(1, (sums[past] - sums[at]) * scale));
    at = past;
  }
}

/** Which of a few, taken evenly from lane[first, past), took longest: it stands for all of them. */
function longest_of(spans, lane, first, past) {
  const step = Math.max(1, Math.floor((past - first) / 8));
  let best = lane[first];
  for (let at = first; at < past; at += step) if (spans.duration[lane[at]] > spans.duration[best]) best = lane[at];
  return best;
}
