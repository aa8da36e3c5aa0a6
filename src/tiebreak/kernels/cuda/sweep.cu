// One sweep of variational Bayes on a CUDA device. `plan.py` lays responses out and launches this.
//
// A response is a row: its code (worker * answers + answer) moved up by 32, or by a rank where rows
// are ranked by frequency. Rows 0..31 are padding, one per lane: scores of zero, counts that nobody
// reads. Tables and counts have C = K - 1 columns: scores are log odds against state 0, and state 0
// counts what is left of a code's responses.
//
// Counts are integers, ONE = 1.0, so that sums have the same bits in any order, on any grid. A q is
// rounded up or down by a number fixed per task, so that small q are not lost in the mean.
//
// Short tasks lie in slices of 32, lane = task:
//
//     slice of tasks a b c …   word 0: a0 b0 c0 …   word 1: a1 b1 c1 …      (128 neighbouring bytes)
//
// All others (long, weighted, counted several times, or many states) lie one after the other, cut
// into segments; a warp has a segment, lane = column.

typedef unsigned long long u64;
#define C (K - 1)             // columns
#define PER (32 / BITS)       // rows in a word
#define STEP (W < 4 ? W : 4)  // words at a time, of tasks that have more than W
#define ALL 0xffffffffu
#define ONE_BITS 22
static_assert(K >= 2, "one state leaves nothing to infer");

enum { SCORE = 1, COUNT = 2 };

// Sums over tasks: of q in columns 0 to C - 1, of entropy in column C, the largest change after it.
struct Sums { u64* at; };

__device__ __forceinline__ unsigned fixed(float x, unsigned dither) {  // x below 4, dither in 0..255
  return (__float2uint_rn(x * (float)(1u << (ONE_BITS + 8))) + dither) >> 8;
}

__device__ __forceinline__ u64 fixed_wide(double x) { return (u64)__double2ll_rn(x * (double)(1u << ONE_BITS)); }

#if K <= 16
// ---- slices ------------------------------------------------------------------------------------

struct Table { const float* hot; unsigned n_hot; const float* all; };  // the first rows: shared memory
struct Tally { unsigned* hot; unsigned n_hot; u64* all; unsigned copy; };

__device__ __forceinline__ unsigned row_of(const unsigned* w, int i) {
  return PER == 1 ? w[i] : i % 2 ? w[i / 2] >> 16 : w[i / 2] & 0xffffu;
}

template <int L> __device__ __forceinline__ void score(float (&a)[C], const unsigned* w, const Table& table) {
  #pragma unroll
  for (int i = 0; i < L * PER; ++i) {
    const unsigned row = row_of(w, i);
    #pragma unroll
    for (int k = 0; k < C; ++k) {
      float near = 0.f, far = 0.f;
      if (!COLD || row < table.n_hot) near = table.hot[row * C + k];
      if (COLD && row >= table.n_hot) far = __ldg(table.all + (size_t)row * C + k);
      a[k] += COLD ? near + far : near;
    }
  }
}

// No branch between additions, so that all are under way together. A 32-bit sum that ran over hands
// 2^32 to its 64-bit total: asked once for all of a task's responses.
template <int L> __device__ __forceinline__ void count(const unsigned (&v)[C], const unsigned* w, const Tally& tally) {
  #pragma unroll
  for (int k = 0; k < C; ++k) {
    if (!v[k]) continue;  // most q of many states are zero: lanes that wait make fewer conflicts
    unsigned old[L * PER], most = 0;
    #pragma unroll
    for (int i = 0; i < L * PER; ++i) {
      const unsigned row = row_of(w, i);
      old[i] = 0;
      if (!COLD || row < tally.n_hot) old[i] = atomicAdd(tally.hot + (row * C + k) * COPIES + tally.copy, v[k]);
      if (COLD && row >= tally.n_hot) atomicAdd(tally.all + (size_t)row * C + k, (u64)v[k]);
    }
    #pragma unroll
    for (int i = 0; i < L * PER; ++i) most = max(most, old[i]);
    if (most > ~v[k])
      #pragma unroll
      for (int i = 0; i < L * PER; ++i)
        if (old[i] > ~v[k]) atomicAdd(tally.all + (size_t)row_of(w, i) * C + k, 1ull << 32);
  }
}

__device__ __forceinline__ float softmax(float (&a)[C]) {  // log odds to q; returns the entropy
  float top = 0.f;
  #pragma unroll
  for (int k = 0; k < C; ++k) top = fmaxf(top, a[k]);
  float norm = expf(-top), mean = norm * -top;
  #pragma unroll
  for (int k = 0; k < C; ++k) {
    const float below = a[k] - top;
    a[k] = expf(below);
    norm += a[k];
    mean += a[k] * fmaxf(below, -1e30f);
  }
  const float inverse = __fdividef(1.f, norm);
  #pragma unroll
  for (int k = 0; k < C; ++k) a[k] *= inverse;
  return fmaxf(logf(norm) - mean * inverse, 0.f);
}

template <int N> __device__ __forceinline__ void load(unsigned (&w)[N], const unsigned* from, unsigned n, unsigned rest) {
  asm("" : "+l"(from));  // one address for all: the compiler would work it out anew for each
  #pragma unroll
  for (int j = 0; j < N; ++j) w[j] = j < n ? __ldcs(from + 32 * j) : rest;
}

// F(L, words) for a slice of any length: unrolled where the words are in registers, the rest in steps
#define CASE(L) case L: if (L <= W) { F(L, w); break; }
#define BY_LENGTH switch (length) { case 0: break; CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) default: \
  F(W, w); for (unsigned j = W; j < length; j += STEP) { unsigned x[STEP]; load(x, here + 32 * j, length - j, pad); F(STEP, x); } }

// Slices first..last of a piece. Tasks are numbered over all pieces (`place`), q lies by these
// numbers, and so does the dither: pieces give the same bits as all at once. The next slice and its q
// are read while one is worked on; q read just before it is overwritten takes six times as long.
extern "C" __global__ void __launch_bounds__(THREADS, 1) sweep_slices(
    const unsigned* __restrict__ words, const unsigned* __restrict__ slice_start, unsigned n_slices, unsigned place, unsigned n_places,
    unsigned end_place, unsigned batch, const float* __restrict__ scores, const float* __restrict__ log_odds, unsigned n_hot, int what,
    float* q, u64* __restrict__ counts, u64* __restrict__ sums) {
  extern __shared__ unsigned shared[];
  const bool scoring = what & SCORE, counting = what & COUNT;
  unsigned* hot_counts = shared + (scoring ? n_hot * C : 0);
  if (scoring) for (unsigned i = threadIdx.x; i < n_hot * C; i += THREADS) shared[i] = __float_as_uint(scores[i]);
  if (counting) for (unsigned i = threadIdx.x; i < n_hot * C * COPIES; i += THREADS) hot_counts[i] = 0;
  __syncthreads();
  const unsigned lane = threadIdx.x % 32, pad = PER == 2 ? lane * 0x10001u : lane;
  const Table table = {(float*)shared, n_hot, scores};
  const Tally tally = {hot_counts, n_hot, counts, lane % COPIES};
  float odds[C], change = 0.f;
  #pragma unroll
  for (int k = 0; k < C; ++k) odds[k] = log_odds[k];
  u64 sum = 0;  // over tasks: of q in lanes 0 to C - 1, of entropy in lane C
  for (unsigned first = (threadIdx.x / 32 * gridDim.x + blockIdx.x) * batch; first < n_slices; first += gridDim.x * (THREADS / 32) * batch) {
    const unsigned starts = slice_start[min(first + lane, n_slices)], last = min(first + batch, n_slices) - 1;
    unsigned begin = __shfl_sync(ALL, starts, 0), end = __shfl_sync(ALL, starts, 1), next[W];
    const unsigned* from = words + (size_t)(begin - slice_start[0]) * 32 + lane;
    float q_next[C];
    load(next, from, end - begin, pad);
    #pragma unroll
    for (int k = 0; k < C; ++k) q_next[k] = __ldcs(q + (size_t)k * n_places + place + first * 32 + lane);
    for (unsigned slice = first; slice <= last; ++slice) {
      const unsigned length = end - begin, task = place + slice * 32 + lane, dither = task * 0x9e3779b9u >> 24;
      const unsigned* here = from;
      const bool real = task < end_place;
      unsigned w[W], v[C];
      float a[C], was[C];
      #pragma unroll
      for (int j = 0; j < W; ++j) w[j] = next[j];
      #pragma unroll
      for (int k = 0; k < C; ++k) was[k] = q_next[k];
      if (slice < last) {
        begin = end; end = __shfl_sync(ALL, starts, slice - first + 2); from = here + (size_t)length * 32;
        load(next, from, end - begin, pad);
        #pragma unroll
        for (int k = 0; k < C; ++k) q_next[k] = __ldcs(q + (size_t)k * n_places + task + 32);
      }
      #pragma unroll
      for (int k = 0; k < C; ++k) a[k] = scoring ? odds[k] : was[k];
      if (scoring) {
#define F(L, w) score<L>(a, w, table)
        BY_LENGTH
#undef F
        const float entropy = softmax(a);
        if (real) {
          float rest = 0.f;  // what state 0 loses
          #pragma unroll
          for (int k = 0; k < C; ++k) {
            const float gain = a[k] - was[k];
            rest += gain;
            change = fmaxf(change, fabsf(gain));
            __stcs(q + (size_t)k * n_places + task, a[k]);
          }
          if (C > 1) change = fmaxf(change, fabsf(rest));
        }
        const unsigned t = __reduce_add_sync(ALL, real ? fixed(entropy, dither) : 0u);
        if (lane == C) sum += t;
      }
      if (counting) {
        #pragma unroll
        for (int k = 0; k < C; ++k) {
          v[k] = real ? fixed(a[k], dither) : 0u;
          const unsigned t = __reduce_add_sync(ALL, v[k]);
          if (lane == k) sum += t;
        }
#define F(L, w) count<L>(v, w, tally)
        BY_LENGTH
#undef F
      }
    }
  }
  // a pass that only counts after one that only scored must not add q twice: it alone adds it
  if (lane < C ? counting : lane == C && scoring) atomicAdd(sums + lane, sum);
  for (int o = 16; o; o /= 2) change = fmaxf(change, __shfl_xor_sync(ALL, change, o));
  if (lane == 0 && scoring) atomicMax(sums + K, (u64)__float_as_uint(change));
  if (!counting) return;
  __syncthreads();
  for (unsigned i = threadIdx.x; i < n_hot * C; i += THREADS) {
    u64 t = 0;
    for (int c = 0; c < COPIES; ++c) t += hot_counts[i * COPIES + (i + c) % COPIES];
    if (t) atomicAdd(counts + i, t);
  }
}

// Responses of tasks, one after the other, to slices. `order` says which task lies at each place
// (-1: none); null: they come in the order of places.
extern "C" __global__ void pack(const int* __restrict__ code, const long long* __restrict__ start, const int* __restrict__ order,
    const unsigned* __restrict__ rows, const unsigned* __restrict__ slice_start, unsigned n_slices, unsigned n_tasks, unsigned* __restrict__ words) {
  const unsigned lane = threadIdx.x % 32, slice = (blockIdx.x * (u64)blockDim.x + threadIdx.x) / 32, at = slice * 32 + lane;
  if (slice >= n_slices) return;
  const int task = order ? order[at] : at < n_tasks ? (int)at : -1;
  const long long from = task < 0 ? 0 : start[task], till = task < 0 ? 0 : start[task + 1];
  const unsigned base = slice_start[0];
  for (unsigned j = slice_start[slice]; j < slice_start[slice + 1]; ++j) {
    const long long i = from + (long long)(j - slice_start[slice]) * PER;
    const unsigned low = i < till ? rows[code[i]] : lane, high = i + 1 < till ? rows[code[i + 1]] : lane;
    words[(size_t)(j - base) * 32 + lane] = PER == 2 ? low | high << 16 : low;
  }
}
#endif

// ---- segments ----------------------------------------------------------------------------------
// segment_task[s] and segment_start[s .. s + 1] say whose responses, and which, a segment has.

extern "C" __global__ void score_segments(const unsigned* __restrict__ row, const double* __restrict__ weight,
    const long long* __restrict__ segment_start, unsigned n_segments, const float* __restrict__ scores, double* __restrict__ partial) {
  const unsigned lane = threadIdx.x % 32, s = (blockIdx.x * (u64)blockDim.x + threadIdx.x) / 32;
  if (s >= n_segments) return;
  for (unsigned k = lane; k < C; k += 32) {
    double a = 0.;
    for (long long i = segment_start[s]; i < segment_start[s + 1]; ++i)
      a += (weight ? weight[i] : 1.) * (double)__ldg(scores + (size_t)row[i] * C + k);
    partial[(size_t)s * C + k] = a;
  }
}

// A warp per task: adds up the segments of a task in their order, and makes q of the sums. Then, or
// where q is to stay, adds q and entropy to the sums over tasks, as often as the task counts.
extern "C" __global__ void join_segments(const double* __restrict__ partial, const unsigned* __restrict__ first_segment, unsigned n_tasks,
    unsigned place, unsigned n_places, const float* __restrict__ log_odds, const double* __restrict__ copies, int what, float* q, u64* __restrict__ sums) {
  const unsigned lane = threadIdx.x % 32, t = (blockIdx.x * (u64)blockDim.x + threadIdx.x) / 32;
  if (t >= n_tasks) return;
  const double times = copies ? copies[t] : 1.;
  float* mine = q + place + t;
  if (what & SCORE) {
    double top = 0.;  // of log odds; state 0 has 0
    float change = 0.f, rest = 0.f;  // rest: what state 0 loses
    const unsigned from = first_segment[t], till = first_segment[t + 1];
    for (unsigned k = lane; k < C; k += 32) {
      double a = log_odds[k];
      for (unsigned s = from; s < till; ++s) a += partial[(size_t)s * C + k];
      top = fmax(top, a);
    }
    for (int o = 16; o; o /= 2) top = fmax(top, __shfl_xor_sync(ALL, top, o));
    double norm = lane ? 0. : exp(-top), mean = lane ? 0. : norm * -top;
    for (unsigned k = lane; k < C; k += 32) {
      double a = log_odds[k] - top;
      for (unsigned s = from; s < till; ++s) a += partial[(size_t)s * C + k];
      norm += exp(a);
      mean += exp(a) * a;
    }
    for (int o = 16; o; o /= 2) { norm += __shfl_xor_sync(ALL, norm, o); mean += __shfl_xor_sync(ALL, mean, o); }
    for (unsigned k = lane; k < C; k += 32) {
      double a = log_odds[k] - top;
      for (unsigned s = from; s < till; ++s) a += partial[(size_t)s * C + k];
      const float value = (float)(exp(a) / norm);
      const float gain = value - mine[(size_t)k * n_places];
      rest += gain;
      change = fmaxf(change, fabsf(gain));
      mine[(size_t)k * n_places] = value;
    }
    for (int o = 16; o; o /= 2) { change = fmaxf(change, __shfl_xor_sync(ALL, change, o)); rest += __shfl_xor_sync(ALL, rest, o); }
    change = fmaxf(change, fabsf(rest));
    if (lane == 0) {
      atomicAdd(sums + C, fixed_wide(times * fmax(log(norm) - mean / norm, 0.)));
      atomicMax(sums + K, (u64)__float_as_uint(change));
    }
  }
  if (what & COUNT)
    for (unsigned k = lane; k < C; k += 32) atomicAdd(sums + k, fixed_wide(times * mine[(size_t)k * n_places]));
}

extern "C" __global__ void count_segments(const unsigned* __restrict__ row, const double* __restrict__ weight,
    const long long* __restrict__ segment_start, const unsigned* __restrict__ segment_task, unsigned n_segments,
    unsigned place, unsigned n_places, const double* __restrict__ copies, const float* __restrict__ q, u64* __restrict__ counts) {
  const unsigned lane = threadIdx.x % 32, s = (blockIdx.x * (u64)blockDim.x + threadIdx.x) / 32;
  if (s >= n_segments) return;
  const unsigned t = segment_task[s];
  const double times = copies ? copies[t] : 1.;
  for (unsigned k = lane; k < C; k += 32) {
    const double value = times * q[(size_t)k * n_places + place + t];
    if (value == 0.) continue;
    for (long long i = segment_start[s]; i < segment_start[s + 1]; ++i)
      atomicAdd(counts + (size_t)row[i] * C + k, fixed_wide(weight ? weight[i] * value : value));
  }
}

// ---- parameters --------------------------------------------------------------------------------

__device__ double digamma(double x) {  // recurrence up to 10, then the asymptotic series
  double shift = 0.;
  for (; x < 10.; x += 1.) shift -= 1. / x;
  const double i = 1. / (x * x);
  return shift + log(x) - .5 / x - i * (1. / 12 - i * (1. / 120 - i * (1. / 252 - i * (1. / 240 - i * (1. / 132 - i * (691. / 32760 - i / 12))))));
}

// Expected logs of Dirichlet parameters, as log odds against state 0: a thread per code. beta lies as
// (worker, answer, state); the logs of a state are against the sum over its answers.
extern "C" __global__ void expect(const double* __restrict__ alpha, const double* __restrict__ beta, const unsigned* __restrict__ rows,
    unsigned n_codes, unsigned n_answers, float* __restrict__ scores, float* __restrict__ log_odds) {
  const unsigned code = blockIdx.x * blockDim.x + threadIdx.x;
  if (code == 0) {
    const double first = digamma(alpha[0]);
    for (int k = 1; k < K; ++k) log_odds[k - 1] = (float)(digamma(alpha[k]) - first);
  }
  if (code >= n_codes) return;
  const double* of_worker = beta + (size_t)(code - code % n_answers) * K;
  double first = 0.;
  for (int k = 0; k < K; ++k) {
    double sum = 0.;
    for (unsigned l = 0; l < n_answers; ++l) sum += of_worker[(size_t)l * K + k];
    const double x = digamma(beta[(size_t)code * K + k]) - digamma(sum);
    if (k) scores[(size_t)rows[code] * C + k - 1] = (float)(x - first); else first = x;
  }
}

// Counts to parameters, prior plus what was counted, and to the parts of the bound: a thread per
// (worker, state). `parts` has log B of each, and of alpha in its last place.
extern "C" __global__ void collect(const u64* __restrict__ counts, const u64* __restrict__ sums, const unsigned* __restrict__ rows,
    const double* __restrict__ n_of_code, double n_tasks, const double* __restrict__ alpha0, const double* __restrict__ beta0, int one_prior,
    unsigned n_workers, unsigned n_answers, double* __restrict__ alpha, double* __restrict__ beta, double* __restrict__ parts) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, worker = i / K, k = i % K;
  const double scale = 1. / (1u << ONE_BITS);
  if (i == 0) {
    double rest = n_tasks, all = 0., value = 0.;
    for (int j = C; j >= 0; --j) {
      const double added = j ? sums[j - 1] * scale : fmax(rest, 0.);
      rest -= added;
      alpha[j] = alpha0[j] + added;
      all += alpha[j];
      value += lgamma(alpha[j]);
    }
    parts[(size_t)n_workers * K] = value - lgamma(all);
  }
  if (worker >= n_workers) return;
  double sum = 0., value = 0.;
  for (unsigned l = 0; l < n_answers; ++l) {
    const unsigned code = worker * n_answers + l;
    const u64* counted = counts + (size_t)rows[code] * C;
    double added = n_of_code[code];
    if (k) added = counted[k - 1] * scale;
    else for (int j = 0; j < C; ++j) added -= counted[j] * scale;
    const double b = beta0[((size_t)(one_prior ? 0 : worker) * n_answers + l) * K + k] + fmax(added, 0.);
    beta[(size_t)code * K + k] = b;
    sum += b;
    value += lgamma(b);
  }
  parts[i] = value - lgamma(sum);
}

// q to (task, state), in the order in which tasks came; state 0 has what the others leave.
extern "C" __global__ void unpack(const float* __restrict__ q, const int* __restrict__ order, unsigned n_places, double* __restrict__ out) {
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= n_places || order[at] < 0) return;
  double* mine = out + (size_t)order[at] * K;
  double rest = 1.;
  for (int k = 1; k < K; ++k) { mine[k] = q[(size_t)(k - 1) * n_places + at]; rest -= mine[k]; }
  mine[0] = fmax(rest, 0.);
}

extern "C" __global__ void put(const double* __restrict__ in, const int* __restrict__ order, unsigned n_places, float* __restrict__ q) {
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= n_places) return;
  for (int k = 1; k < K; ++k) q[(size_t)(k - 1) * n_places + at] = order[at] < 0 ? 0.f : (float)in[(size_t)order[at] * K + k];
}
