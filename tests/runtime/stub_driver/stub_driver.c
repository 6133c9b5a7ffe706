/* A CUDA driver in host memory: the entry points that tilearray_cuda calls, with the driver's rules and none of its work.
 *
 * cuda-bindings loads it as libcuda.so.1 and asks cuGetProcAddress for the rest. Device memory is malloc'ed, copies are
 * memcpy, streams run at once. What the rules are about is kept: contexts per thread, handles of the wrong context or
 * destroyed, memory limits, double frees, capture, use after fork. Every call that orders work is logged, so that a
 * test can work out what happens before what. Tests steer it through the stub_* functions at the end.
 *
 * A module is any bytes; "STUB 5" has functions of five parameters. A function called stub_add computes
 * out[i] = a[i] + b[i] over int64 with parameters (out, a, b, n, ...); any other does nothing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
typedef uint64_t u64;
enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101,
       INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, NOT_SUPPORTED = 801,
       PEER_ACCESS_ALREADY_ENABLED = 704,
       CAPTURE_UNSUPPORTED = 900, CAPTURE_ISOLATION = 905, CAPTURED_EVENT = 907 };
enum { MAX_DEVICES = 8, MAX_LOG = 1 << 20, MAX_FAILURES = 16 };
#define STREAM 0x57534d52u
#define EVENT 0x45564e54u
#define BLOCK 0x424c4f43u
#define DEAD 0xdeadbeefu

struct stream { uint32_t magic; int device; u64 capture; int held; };
struct event { uint32_t magic; int device; struct stream *stream; int recorded, captured; };
struct block { uint32_t magic; u64 size; int device; struct block *next; };
struct module { int parameters; void *context; };
struct function { struct module *module; char name[64]; int shared; };
struct entry { const char *name; u64 stream, object, size, arguments[4]; };
struct failure { char name[40]; int code, skip, times; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int initialised, device_count = -1, legacy_held[MAX_DEVICES], yielding;
static int forked;
static void after_fork(void) { forked = 1; }
static u64 used[MAX_DEVICES], capacity;
static struct block *live;
static struct entry log_entries[MAX_LOG];
static u64 log_size;
static int logging;
static struct failure failures[MAX_FAILURES];
static int failure_count;
static __thread void *stack[16];
static __thread int depth;
static __thread int capture_mode; /* 0 global, 2 relaxed */
static int captures;

static int contexts[MAX_DEVICES];
static void *current(void) { return depth ? stack[depth - 1] : NULL; }
static int device_of(void *context) { return (int)((int *)context - contexts); }

static u64 calls;

static CUresult enter(const char *name) {
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    if (!initialised || forked) return NOT_INITIALIZED;
    if (!failure_count) return OK;
    CUresult result = OK;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < failure_count; i++) {
        struct failure *f = &failures[i];
        if (strcmp(f->name, name) || f->times == 0) continue;
        if (f->skip > 0) { f->skip--; continue; }
        f->times--;
        result = f->code;
        break;
    }
    pthread_mutex_unlock(&lock);
    return result;
}
#define ENTER CUresult entered = enter(__func__); if (entered) return entered
#define NEEDS_CONTEXT if (!current()) return INVALID_CONTEXT

static void record(const char *name, void *stream, u64 object, u64 size, const u64 *arguments) {
    if (!logging) return;
    pthread_mutex_lock(&lock);
    if (log_size < MAX_LOG) {
        struct entry *e = &log_entries[log_size++];
        memset(e, 0, sizeof *e);
        e->name = name; e->stream = (u64)stream; e->object = object; e->size = size;
        if (arguments) memcpy(e->arguments, arguments, sizeof e->arguments);
    }
    pthread_mutex_unlock(&lock);
}
#define LOG(stream, object, size) record(__func__, stream, (u64)(object), size, NULL)

/* The device of a stream; the legacy stream is that of the current context. */
static CUresult stream_device(struct stream *s, int *device) {
    if ((u64)s <= 2) { NEEDS_CONTEXT; *device = device_of(current()); return OK; }
    if (s->magic != STREAM) return INVALID_HANDLE;
    *device = s->device;
    return OK;
}
#define STREAM_DEVICE(s) int device = 0; { CUresult r = stream_device(s, &device); if (r) return r; }
#define REAL(s) ((u64)(s) > 2)
#define CAPTURING(s) (REAL(s) && (s)->capture)

CUresult cuInit(unsigned flags) {
    if (device_count < 0) {
        const char *text = getenv("STUB_DEVICES"), *memory = getenv("STUB_MEMORY");
        device_count = text ? atoi(text) : 1;
        capacity = memory ? strtoull(memory, NULL, 10) : 1ull << 30;
    }
    if (!device_count) return NO_DEVICE;
    if (initialised && forked) return NOT_INITIALIZED;
    if (!initialised) pthread_atfork(NULL, NULL, after_fork);
    initialised = 1;
    return OK;
}
CUresult cuDriverGetVersion(int *version) { *version = 13000; return OK; }
CUresult cuGetErrorName(int code, const char **text) {
    switch (code) {
    case OK: *text = "CUDA_SUCCESS"; return OK;
    case INVALID_VALUE: *text = "CUDA_ERROR_INVALID_VALUE"; return OK;
    case OUT_OF_MEMORY: *text = "CUDA_ERROR_OUT_OF_MEMORY"; return OK;
    case NOT_INITIALIZED: *text = "CUDA_ERROR_NOT_INITIALIZED"; return OK;
    case NO_DEVICE: *text = "CUDA_ERROR_NO_DEVICE"; return OK;
    case INVALID_CONTEXT: *text = "CUDA_ERROR_INVALID_CONTEXT"; return OK;
    case INVALID_HANDLE: *text = "CUDA_ERROR_INVALID_HANDLE"; return OK;
    case 700: *text = "CUDA_ERROR_ILLEGAL_ADDRESS"; return OK;
    case CAPTURE_ISOLATION: *text = "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"; return OK;
    }
    *text = NULL;
    return INVALID_VALUE;
}
CUresult cuGetErrorString(int code, const char **text) {
    static char buffer[64];
    snprintf(buffer, sizeof buffer, "the stub's meaning of %d", code);
    *text = buffer;
    return OK;
}
CUresult cuDeviceGetCount(int *count) { ENTER; *count = device_count; return OK; }
CUresult cuDeviceGet(int *device, int ordinal) {
    ENTER;
    if (ordinal < 0 || ordinal >= device_count) return INVALID_DEVICE;
    *device = ordinal;
    return OK;
}
CUresult cuDeviceTotalMem(size_t *bytes, int device) { ENTER; *bytes = capacity; return OK; }
CUresult cuDeviceGetName(char *name, int length, int device) { ENTER; snprintf(name, length, "Stub %d", device); return OK; }
CUresult cuDeviceGetAttribute(int *value, int attribute, int device) {
    ENTER;
    switch (attribute) {
    case 75: *value = 9; break;       /* compute capability */
    case 76: *value = 0; break;
    case 97: *value = 232448; break;  /* shared memory a block, opt-in */
    case 115: *value = 1; break;      /* memory pools */
    case 16: *value = 132; break;     /* multiprocessors */
    default: *value = 0;
    }
    return OK;
}
CUresult cuDevicePrimaryCtxRetain(void **context, int device) { ENTER; *context = &contexts[device]; return OK; }
CUresult cuCtxGetCurrent(void **context) { ENTER; *context = current(); return OK; }
CUresult cuCtxSetCurrent(void *context) {
    ENTER;
    if (!depth) depth = 1;
    stack[depth - 1] = context;
    return OK;
}
CUresult cuCtxPushCurrent(void *context) { ENTER; stack[depth++] = context; return OK; }
CUresult cuCtxPopCurrent(void **context) { ENTER; NEEDS_CONTEXT; *context = stack[--depth]; return OK; }
CUresult cuCtxGetDevice(int *device) { ENTER; NEEDS_CONTEXT; *device = device_of(current()); return OK; }
CUresult cuCtxSynchronize(void) { ENTER; NEEDS_CONTEXT; LOG(0, current(), 0); return OK; }

/* peer access: which contexts may access which, and which pools other devices may access */
static int no_peers;
static int enabled[MAX_DEVICES][MAX_DEVICES], shared_pools[MAX_DEVICES][MAX_DEVICES];
CUresult cuDeviceCanAccessPeer(int *can, int device, int peer) { ENTER; *can = device != peer && !no_peers; return OK; }
CUresult cuCtxEnablePeerAccess(void *peer, unsigned flags) {
    ENTER; NEEDS_CONTEXT;
    int *on = &enabled[device_of(current())][device_of(peer)];
    if (*on) return PEER_ACCESS_ALREADY_ENABLED;
    *on = 1;
    LOG(0, peer, device_of(current()));
    return OK;
}

/* streams and events */
CUresult cuStreamCreate(struct stream **stream, unsigned flags) {
    ENTER; NEEDS_CONTEXT;
    *stream = calloc(1, sizeof **stream);
    (*stream)->magic = STREAM;
    (*stream)->device = device_of(current());
    return OK;
}
CUresult cuStreamCreateWithPriority(struct stream **stream, unsigned flags, int priority) {
    return cuStreamCreate(stream, flags);
}
CUresult cuStreamDestroy(struct stream *stream) { ENTER; STREAM_DEVICE(stream); LOG(stream, 0, 0); stream->magic = DEAD; return OK; }
CUresult cuStreamSynchronize(struct stream *stream) { ENTER; STREAM_DEVICE(stream); LOG(stream, 0, 0); return OK; }
CUresult cuStreamQuery(struct stream *stream) { ENTER; STREAM_DEVICE(stream); return OK; }
CUresult cuStreamGetDevice(struct stream *stream, int *result) { ENTER; STREAM_DEVICE(stream); *result = device; return OK; }
CUresult cuStreamIsCapturing(struct stream *stream, int *status) {
    ENTER;
    if (REAL(stream) && stream->magic != STREAM) return INVALID_HANDLE;
    *status = CAPTURING(stream) ? 1 : 0;
    return OK;
}
CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
    ENTER;
    int before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return OK;
}
CUresult cuStreamGetCaptureInfo(struct stream *stream, int *status, u64 *id, void *graph, void *dependencies, void *edges,
                                size_t *count) {
    ENTER;
    *status = CAPTURING(stream) ? 1 : 0;
    if (id) *id = CAPTURING(stream) ? stream->capture : 0;
    if (count) *count = 0;
    return OK;
}
static u64 capture_ids;
static int graphs;
CUresult cuStreamBeginCapture(struct stream *stream, int mode) {
    ENTER; STREAM_DEVICE(stream);
    if (!REAL(stream) || CAPTURING(stream)) return INVALID_HANDLE;
    captures++;
    stream->capture = 1000 + ++capture_ids;
    LOG(stream, 0, mode);
    return OK;
}
CUresult cuStreamEndCapture(struct stream *stream, void **graph) {
    STREAM_DEVICE(stream);
    if (CAPTURING(stream)) { captures--; stream->capture = 0; }  /* an invalid capture ends, too, without a graph */
    else return INVALID_HANDLE;
    ENTER;
    *graph = calloc(1, 8);
    graphs++;
    LOG(stream, *graph, 0);
    return OK;
}
CUresult cuGraphInstantiateWithFlags(void **executable, void *graph, u64 flags) {
    ENTER; NEEDS_CONTEXT; *executable = calloc(1, 8); LOG(0, *executable, flags); return OK;
}
CUresult cuGraphExecUpdate(void *executable, void *graph, void *result) { ENTER; LOG(0, executable, 0); return OK; }
CUresult cuGraphLaunch(void *executable, struct stream *stream) {
    ENTER; STREAM_DEVICE(stream); LOG(stream, executable, 0); return OK;
}
CUresult cuGraphDestroy(void *graph) { ENTER; free(graph); graphs--; return OK; }
CUresult cuGraphExecDestroy(void *executable) { ENTER; LOG(0, executable, 0); free(executable); return OK; }
int stub_graphs(void) { return graphs; }
CUresult cuStreamWaitEvent(struct stream *stream, struct event *event, unsigned flags) {
    ENTER; STREAM_DEVICE(stream);
    if (event->magic != EVENT) return INVALID_HANDLE;
    if (CAPTURING(stream) && !event->captured) return CAPTURE_ISOLATION;
    LOG(stream, event, 0);
    return OK;
}
CUresult cuEventCreate(struct event **event, unsigned flags) {
    ENTER; NEEDS_CONTEXT;
    *event = calloc(1, sizeof **event);
    (*event)->magic = EVENT;
    (*event)->device = device_of(current());
    return OK;
}
CUresult cuEventDestroy(struct event *event) { ENTER; if (event->magic != EVENT) return INVALID_HANDLE; event->magic = DEAD; return OK; }
CUresult cuEventRecord(struct event *event, struct stream *stream) {
    ENTER; STREAM_DEVICE(stream);
    if (event->magic != EVENT || event->device != device) return INVALID_HANDLE;
    event->stream = stream;
    event->recorded = 1;
    event->captured = CAPTURING(stream) ? 1 : 0;
    LOG(stream, event, 0);
    return OK;
}
CUresult cuEventQuery(struct event *event) {
    ENTER;
    if (event->magic != EVENT) return INVALID_HANDLE;
    if (event->captured) return CAPTURED_EVENT;
    if (captures && capture_mode != 2) return CAPTURE_UNSUPPORTED;
    if (event->recorded && (REAL(event->stream) ? event->stream->held : legacy_held[event->device])) return NOT_READY;
    LOG(0, event, 0);
    return OK;
}
CUresult cuEventSynchronize(struct event *event) {
    ENTER;
    if (event->magic != EVENT) return INVALID_HANDLE;
    LOG(0, event, 0);
    return OK;
}
CUresult cuEventElapsedTime(float *milliseconds, struct event *start, struct event *end) { ENTER; *milliseconds = 1.5f; return OK; }

/* memory */
struct pool { u64 threshold; int device; };
struct location { int type, id; };
struct pool_properties { int allocation, handles; struct location location; };
struct access { struct location location; int flags; };
CUresult cuMemPoolCreate(struct pool **pool, struct pool_properties *properties) {
    ENTER;
    *pool = calloc(1, sizeof **pool);
    (*pool)->device = properties->location.id;
    return OK;
}
CUresult cuMemPoolSetAccess(struct pool *pool, const struct access *map, size_t count) {
    ENTER;
    for (size_t i = 0; i < count; i++) {
        if (map[i].location.type != 1 || map[i].flags != 3) return INVALID_VALUE;
        shared_pools[pool->device][map[i].location.id] = 1;
        LOG(0, pool->device, map[i].location.id);
    }
    return OK;
}
CUresult cuMemPoolSetAttribute(void *pool, int attribute, void *value) { ENTER; *(u64 *)pool = *(u64 *)value; return OK; }
CUresult cuMemPoolGetAttribute(void *pool, int attribute, void *value) { ENTER; *(u64 *)value = *(u64 *)pool; return OK; }
CUresult cuMemPoolTrimTo(void *pool, size_t keep) { ENTER; LOG(0, pool, keep); return OK; }
CUresult cuMemGetInfo(size_t *available, size_t *total) {
    ENTER; NEEDS_CONTEXT;
    *total = capacity;
    *available = capacity - used[device_of(current())];
    return OK;
}
CUresult cuMemAllocFromPoolAsync(u64 *pointer, size_t size, void *pool, struct stream *stream) {
    ENTER; STREAM_DEVICE(stream);
    pthread_mutex_lock(&lock);
    int full = used[device] + size > capacity;
    if (!full) used[device] += size;
    pthread_mutex_unlock(&lock);
    if (full) return OUT_OF_MEMORY;
    char *memory = NULL;
    if (posix_memalign((void **)&memory, 512, size + 512)) return OUT_OF_MEMORY;
    struct block *block = (struct block *)memory;
    block->magic = BLOCK; block->size = size; block->device = device;
    pthread_mutex_lock(&lock);
    block->next = live;
    live = block;
    pthread_mutex_unlock(&lock);
    *pointer = (u64)(memory + 512);
    LOG(stream, *pointer, size);
    return OK;
}
CUresult cuMemFreeAsync(u64 pointer, struct stream *stream) {
    ENTER; STREAM_DEVICE(stream);
    struct block *block = (struct block *)(pointer - 512);
    if (block->magic != BLOCK) return INVALID_VALUE;
    LOG(stream, pointer, block->size);
    block->magic = DEAD;
    pthread_mutex_lock(&lock);
    used[block->device] -= block->size;
    struct block **place = &live;
    while (*place != block) place = &(*place)->next;
    *place = block->next;
    pthread_mutex_unlock(&lock);
    free(block);
    return OK;
}
static struct pinned { struct pinned *next; size_t size; } *pinned;

CUresult cuPointerGetAttribute(void *value, int attribute, u64 pointer) {
    ENTER;
    CUresult result = INVALID_VALUE;
    pthread_mutex_lock(&lock);
    for (struct block *block = live; block; block = block->next)
        if (attribute == 9 && pointer >= (u64)block + 512 && pointer < (u64)block + 512 + block->size) {
            *(int *)value = block->device;
            result = OK;
        }
    for (struct pinned *block = pinned; block; block = block->next)
        if (attribute == 2 && pointer >= (u64)(block + 1) && pointer < (u64)(block + 1) + block->size) {
            *(int *)value = 1;
            result = OK;
        }
    pthread_mutex_unlock(&lock);
    return result;
}
CUresult cuMemHostAlloc(void **pointer, size_t size, unsigned flags) {
    ENTER; NEEDS_CONTEXT;
    struct pinned *block = malloc(sizeof(struct pinned) + size);
    block->size = size;
    pthread_mutex_lock(&lock);
    block->next = pinned;
    pinned = block;
    pthread_mutex_unlock(&lock);
    *pointer = block + 1;
    LOG(0, *pointer, size);
    return OK;
}
CUresult cuMemFreeHost(void *pointer) {
    ENTER; LOG(0, pointer, 0);
    pthread_mutex_lock(&lock);
    struct pinned **place = &pinned, *block = (struct pinned *)pointer - 1;
    while (*place != block) place = &(*place)->next;
    *place = block->next;
    pthread_mutex_unlock(&lock);
    free(block);
    return OK;
}
CUresult cuMemcpyHtoDAsync(u64 to, const void *from, size_t size, struct stream *stream) {
    ENTER; STREAM_DEVICE(stream); LOG(stream, to, size); memcpy((void *)to, from, size); return OK;
}
CUresult cuMemcpyDtoHAsync(void *to, u64 from, size_t size, struct stream *stream) {
    ENTER; STREAM_DEVICE(stream); LOG(stream, from, size); memcpy(to, (void *)from, size); return OK;
}
CUresult cuMemcpyDtoDAsync(u64 to, u64 from, size_t size, struct stream *stream) {
    ENTER; STREAM_DEVICE(stream); LOG(stream, to, size); memmove((void *)to, (void *)from, size); return OK;
}
CUresult cuMemsetD32Async(u64 to, unsigned value, size_t count, struct stream *stream) {
    ENTER; STREAM_DEVICE(stream); LOG(stream, to, 4 * count);
    for (size_t i = 0; i < count; i++) ((unsigned *)to)[i] = value;
    return OK;
}
CUresult cuMemcpyPeerAsync(u64 to, void *to_context, u64 from, void *from_context, size_t size, struct stream *stream) {
    ENTER; STREAM_DEVICE(stream);
    int source = device_of(from_context), target = device_of(to_context);
    int direct = enabled[source][target] && enabled[target][source] && shared_pools[source][target] &&
                 shared_pools[target][source];
    u64 arguments[4] = {from, direct};
    record(__func__, stream, to, size, arguments);
    memmove((void *)to, (void *)from, size);
    return OK;
}

/* modules and launches */
CUresult cuModuleLoadData(struct module **module, const void *image) {
    ENTER; NEEDS_CONTEXT;
    if (captures && capture_mode != 2) return CAPTURE_UNSUPPORTED;
    *module = calloc(1, sizeof **module);
    (*module)->parameters = strncmp(image, "STUB ", 5) ? -1 : atoi((const char *)image + 5);
    (*module)->context = current();
    return OK;
}
CUresult cuModuleUnload(struct module *module) { ENTER; return OK; }
CUresult cuModuleGetFunction(struct function **function, struct module *module, const char *name) {
    ENTER;
    if (!strcmp(name, "missing")) return NOT_FOUND;
    *function = calloc(1, sizeof **function);
    (*function)->module = module;
    snprintf((*function)->name, sizeof (*function)->name, "%s", name);
    return OK;
}
CUresult cuFuncSetAttribute(struct function *function, int attribute, int value) {
    ENTER;
    if (attribute == 8) function->shared = value;
    return OK;
}
CUresult cuFuncGetAttribute(int *value, int attribute, struct function *function) { ENTER; *value = function->shared; return OK; }
CUresult cuFuncGetParamInfo(struct function *function, size_t index, size_t *offset, size_t *size) {
    ENTER;
    if (function->module->parameters < 0) return NOT_SUPPORTED;
    if ((long)index >= function->module->parameters) return INVALID_VALUE;
    *offset = 8 * index;
    *size = 8;
    return OK;
}
CUresult cuLaunchKernel(struct function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, struct stream *stream, void **parameters, void **extra) {
    ENTER; STREAM_DEVICE(stream);
    if (&contexts[device] != function->module->context) return INVALID_HANDLE;
    if (yielding) sched_yield();
    if (logging) {
        u64 arguments[4] = {0};
        for (int i = 0; i < 4 && i < function->module->parameters; i++) arguments[i] = *(u64 *)parameters[i];
        record(__func__, stream, (u64)function, ((u64)gx << 32) | bx, arguments);
    }
    if (!strcmp(function->name, "stub_add")) {
        int64_t *out = *(int64_t **)parameters[0], *a = *(int64_t **)parameters[1];
        if (yielding) sched_yield();
        int64_t *b = *(int64_t **)parameters[2], n = *(int64_t *)parameters[3];
        if (!out || !a || !b) return OK; /* a GPU would fault: struct.pack_into clears a frame before it fills it */
        for (int64_t i = 0; i < n; i++) out[i] = a[i] + b[i];
    }
    return OK;
}

struct launch_config {
    unsigned gx, gy, gz, bx, by, bz, shared;
    struct stream *stream;
    void *attributes;
    unsigned attribute_count;
};
CUresult cuLaunchKernelEx(const struct launch_config *c, struct function *function, void **parameters, void **extra) {
    return cuLaunchKernel(function, c->gx, c->gy, c->gz, c->bx, c->by, c->bz, c->shared, c->stream, parameters, extra);
}

/* what cuda-bindings looks functions up with */
static void *lookup(const char *name) {
    static void *self;
    if (!self) {
        Dl_info info;
        if (!dladdr((void *)&cuInit, &info)) return NULL;
        self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    }
    if (!strcmp(name, "cuGetProcAddress")) name = "cuGetProcAddress_v2";
    return self ? dlsym(self, name) : NULL;
}
CUresult cuGetProcAddress_v2(const char *name, void **function, int version, u64 flags, int *status) {
    *function = lookup(name);
    if (status) *status = *function ? 0 : 1;
    return *function ? OK : NOT_FOUND;
}
CUresult cuGetProcAddress(const char *name, void **function, int version, u64 flags) {
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

/* what only cuTile loads, at its first call, and needs no result of to read the arguments of a kernel */
#define UNSUPPORTED(name) CUresult name(void) { return NOT_SUPPORTED; }
UNSUPPORTED(cuLibraryGetKernel) UNSUPPORTED(cuCtxGetId) UNSUPPORTED(cuKernelGetFunction)
UNSUPPORTED(cuKernelGetAttribute) UNSUPPORTED(cuKernelSetAttribute) UNSUPPORTED(cuMemAlloc)
UNSUPPORTED(cuMemAllocHost) UNSUPPORTED(cuMemFree) UNSUPPORTED(cuMemGetAddressRange) UNSUPPORTED(cuIpcGetMemHandle)
UNSUPPORTED(cuIpcOpenMemHandle) UNSUPPORTED(cuIpcCloseMemHandle) UNSUPPORTED(cuStreamGetCtx)
UNSUPPORTED(cuStreamGetId) UNSUPPORTED(cuGraphCreate) UNSUPPORTED(cuGraphAddEventRecordNode)
UNSUPPORTED(cuGraphAddKernelNode) UNSUPPORTED(cuGraphAddMemsetNode) UNSUPPORTED(cuGraphAddMemAllocNode)
UNSUPPORTED(cuGraphAddMemFreeNode) UNSUPPORTED(cuTensorMapEncodeTiled) UNSUPPORTED(cuLibraryLoadData)
UNSUPPORTED(cuLibraryUnload)

/* steering, for tests */
void stub_fail(const char *name, int code, int skip, int times) {
    pthread_mutex_lock(&lock);
    struct failure *f = &failures[failure_count++];
    snprintf(f->name, sizeof f->name, "%s", name);
    f->code = code; f->skip = skip; f->times = times;
    pthread_mutex_unlock(&lock);
}
void stub_clear_failures(void) { failure_count = 0; }
void stub_logging(int on) { log_size = 0; logging = on; }
u64 stub_log(struct entry **entries) { *entries = log_entries; return log_size; }
void stub_capture(struct stream *stream, u64 id) { captures += !!id - !!stream->capture; stream->capture = id; }
void stub_hold(struct stream *stream, int device, int held) {
    if (REAL(stream)) stream->held = held; else legacy_held[device] = held;
}
void stub_yield(int on) { yielding = on; }
void stub_peers(int on) { no_peers = !on; memset(enabled, 0, sizeof enabled); memset(shared_pools, 0, sizeof shared_pools); }
u64 stub_calls(void) { return calls; }
u64 stub_used(int device) { return used[device]; }
int stub_shared(struct function *function) { return function->shared; }
