// Runs a CUDA kernel on one thread of the host: blocks one after another, and the threads of a block
// as fibers, which give way to each other where they wait for the block or the warp.
//
// A thread that waits for something that can no longer happen is a bug in the kernel; so is a barrier
// that the threads of a block reach on different lines. Both end the launch with a message, where a
// GPU would hang or compute nonsense.
//
// Where threads need not take turns in any order, the order varies from block to block, so that a
// kernel that lacks a barrier does not pass by luck. It is the same in every run.

#define LZ_EMU_RUNTIME
#include "shim.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

// ---------------------------------------------------------------------------------------------
// What a launch consists of.

/// The request, as the Rust side lays it out.
struct lz_emu_launch_request {
    const lz_emu_kernel* kernel;
    void** arguments;
    unsigned grid[3], block[3];
    unsigned dynamic_shared_bytes;
    unsigned lines[4];    // out: the lines of the source that the message speaks of; 0 for none
    char message[1024];   // out: why the launch failed
};

namespace {

constexpr unsigned MAX_THREADS = 1024;
constexpr unsigned WARP = 32;
constexpr size_t STACK_BYTES = 256 << 10;
constexpr size_t GUARD_BYTES = 64 << 10;  // at the low end, not accessible; a multiple of any page size
constexpr size_t SHARED_BYTES = 227 << 10;
constexpr size_t FENCE_BYTES = 256;  // behind dynamic shared memory, to see writes past its end
constexpr char POISON = '\xff';      // what shared memory holds before it is written: NaN for a float
constexpr char FENCE = '\xa5';

/// A place to run threads: one after another, until one has to wait there.
struct Fiber {
    char* top;
    void* stack_pointer;
};

/// What a thread copies while it goes on.
struct Copy {
    char* to;
    const char* from;
    unsigned bytes, given, group;
    int line;
};

/// What a thread's group of warps multiplies while it goes on.
struct Product {
    lz_emu_product add;
    float* sums;
    const unsigned short *left, *right;
    unsigned columns;
    bool turned_left, turned_right;
    unsigned group;
    int line;
};

/// One CUDA thread.
struct Thread {
    lz_emu_context context;  // first, so that a context is its thread
    unsigned index;
    bool finished;
    Fiber* fiber;               // where it runs or waits
    // While it waits: what it brings, whose value it asks for, and what it gets.
    unsigned long long value;
    unsigned source;
    unsigned long long result;
    std::vector<Copy> copies;   // that nobody has waited for yet
    unsigned groups;            // of copies that it has committed
    std::vector<Product> products;  // that it has not awaited yet
    unsigned product_groups;    // of products that it has committed
    bool unpublished;           // copies have landed that products do not see
};

/// Some lanes of a warp that wait for each other.
struct Gate {
    unsigned mask, arrived;
    lz_emu_warp_operation operation;
    int line;
};

struct Warp {
    unsigned existing;         // its lanes: fewer than 32 in the last warp of a block
    std::vector<Gate> gates;
};

/// Runs launches, one at a time. It is costly to make (stacks) and is used again.
class Machine {
public:
    static std::unique_ptr<Machine> create();
    ~Machine() { munmap(stacks, MAX_THREADS * STACK_BYTES); }
    bool launch(lz_emu_launch_request& request);
    unsigned barrier(unsigned predicate, int line);
    unsigned long long warp(lz_emu_warp_operation operation, unsigned mask, unsigned long long value,
                            unsigned source, int line);
    /// Ends the launch from within a thread.
    [[noreturn]] __attribute__((format(printf, 3, 4))) void fail(int line, const char* format, ...);

private:
    bool run_block(unsigned long long number);
    void choose_order(unsigned long long block_number);
    void go_on(void** leave);
    void wait();
    void wake(Thread& thread) { ready.push_back(&thread); }
    static void fiber_main();
    void report(const char* format, va_list arguments);
    __attribute__((format(printf, 2, 3))) void report(const char* format, ...);
    void report_line(int line);
    void report_stuck();
    unsigned finished_lanes(unsigned warp, unsigned mask) const;

    lz_emu_launch_request* request = nullptr;
    char* stacks = nullptr;
    std::vector<Fiber> fibers;   // as many as a block may have threads
    std::vector<Fiber*> idle;    // those that run no thread
    std::vector<Thread> threads;
    std::vector<Warp> warps;
    std::vector<unsigned> order;    // in which the threads start, and leave a barrier
    std::vector<Thread*> ready;     // a queue: those before `ready_head` have gone
    size_t ready_head = 0;
    unsigned started = 0, finished = 0;
    unsigned at_barrier = 0, barrier_sum = 0;
    int barrier_line = 0;
    bool failed = false;
    Fiber* entered = nullptr;    // the fiber that was just given to a thread that starts
    void* scheduler_stack_pointer = nullptr;
    alignas(1024) char dynamic_shared[SHARED_BYTES + FENCE_BYTES];
};

/// The machine that this thread of the operating system is running.
__thread Machine* machine;

Thread& running() { return *reinterpret_cast<Thread*>(lz_emu_current); }

const char* name_of(lz_emu_warp_operation operation) {
    switch (operation) {
    case LZ_EMU_SYNC: return "__syncwarp";
    case LZ_EMU_SHUFFLE: return "a shuffle";
    case LZ_EMU_BALLOT: return "a vote";
    case LZ_EMU_MATCH: return "a match";
    case LZ_EMU_TOGETHER: return "an operation on matrices";
    }
    return "";
}

// ---------------------------------------------------------------------------------------------
// Scheduling.

std::unique_ptr<Machine> Machine::create() {
    void* memory = mmap(nullptr, MAX_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    std::unique_ptr<Machine> created(new Machine);
    created->stacks = static_cast<char*>(memory);
    for (size_t n = 0; n < MAX_THREADS; n++) {
        char* base = created->stacks + n * STACK_BYTES;
        if (mprotect(base, GUARD_BYTES, PROT_NONE) != 0) return nullptr;
        size_t colour = n % 32 * 128;  // spreads the tops of the stacks over the sets of the cache
        created->fibers.push_back({base + STACK_BYTES - colour, nullptr});
    }
    return created;
}

/// Runs threads until one has to wait; then it is left here and goes on from here.
void Machine::fiber_main() {
    Machine& m = *machine;
    Fiber* fiber = m.entered;
    do {
        Thread& thread = m.threads[m.order[m.started++]];
        thread.fiber = fiber;
        lz_emu_current = &thread.context;
        m.request->kernel->entry(m.request->arguments);
        if (!thread.copies.empty()) {
            int line = thread.copies[0].line;
            m.fail(line, "thread %u returns, and has not waited for the copy that it began on line %d", thread.index, line);
        }
        if (!thread.products.empty()) {
            int line = thread.products[0].line;
            m.fail(line, "thread %u returns, and has not waited for the product that it began on line %d", thread.index, line);
        }
        thread.finished = true;
        m.finished++;
        // A thread that need not wait costs no switch: the next starts on the same stack.
    } while (m.ready_head == m.ready.size() && m.started < m.threads.size());
    m.idle.push_back(fiber);
    void* nowhere;
    m.go_on(&nowhere);
    abort();  // an idle fiber is not entered here again, but from the start
}

/// Leaves what is running, noting in `leave` where to come back to, for the next thread that can run;
/// where there is none, for the scheduler.
void Machine::go_on(void** leave) {
    void* enter;
    if (ready_head < ready.size()) {
        Thread* next = ready[ready_head++];
        if (ready_head == ready.size()) ready.clear(), ready_head = 0;
        lz_emu_current = &next->context;
        enter = next->fiber->stack_pointer;
    } else if (started < threads.size()) {
        entered = idle.back();
        idle.pop_back();
        enter = prepare_stack(entered->top, &fiber_main);
    } else {
        enter = scheduler_stack_pointer;
    }
    lz_emu_switch(leave, enter);
}

/// The running thread waits; returns when it has been woken and its turn has come.
void Machine::wait() { go_on(&running().fiber->stack_pointer); }

/// Forwards, backwards, or the warps and the lanes of each shuffled, by the block's number. The threads of a
/// warp stay together: they wait for each other often, and find their stacks still in the cache.
void Machine::choose_order(unsigned long long block_number) {
    size_t n = threads.size();
    order.resize(n);
    for (size_t i = 0; i < n; i++) order[i] = unsigned(block_number % 4 == 0 ? n - 1 - i : i);
    if (block_number % 4 < 2) return;
    uint64_t state = block_number * 0x9e3779b97f4a7c15 | 1;
    auto random = [&state](size_t below) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;  // xorshift64
        return size_t((state >> 32) * below >> 32);
    };
    for (size_t w = n / WARP; w > 1; w--) {  // only whole warps change places
        unsigned *last = &order[(w - 1) * WARP], *other = &order[random(w) * WARP];
        if (other != last) std::swap_ranges(last, last + WARP, other);
    }
    for (size_t i = n; i-- > 0;) {
        size_t first = i / WARP * WARP;
        std::swap(order[i], order[first + random(i - first + 1)]);
    }
}

bool Machine::run_block(unsigned long long number) {
    const lz_emu_launch_request& r = *request;
    const lz_emu_kernel& kernel = *r.kernel;
    uint3 block = {unsigned(number % r.grid[0]), unsigned(number / r.grid[0] % r.grid[1]),
                   unsigned(number / r.grid[0] / r.grid[1])};
    if (kernel.shared_begin) memset(kernel.shared_begin, POISON, kernel.shared_end - kernel.shared_begin);
    memset(dynamic_shared, POISON, r.dynamic_shared_bytes);
    for (Thread& thread : threads) {
        thread.context.block = block;
        thread.finished = false;
        thread.copies.clear();
        thread.groups = 0;
        thread.products.clear();
        thread.product_groups = 0;
        thread.unpublished = false;
    }
    choose_order(number);
    ready.clear();
    ready_head = started = finished = at_barrier = 0;

    go_on(&scheduler_stack_pointer);  // comes back when no thread can run
    if (failed) return false;
    if (finished != threads.size()) {
        report_stuck();
        return false;
    }
    for (size_t i = 0; i < FENCE_BYTES; i++) {
        if (dynamic_shared[r.dynamic_shared_bytes + i] != FENCE) {
            report("block (%u, %u, %u) wrote at byte %zu of its %u bytes of dynamic shared memory", block.x, block.y,
                   block.z, r.dynamic_shared_bytes + i, r.dynamic_shared_bytes);
            return false;
        }
    }
    return true;
}

bool Machine::launch(lz_emu_launch_request& r) {
    request = &r;
    failed = false;
    threads.assign(size_t(r.block[0]) * r.block[1] * r.block[2], Thread());
    for (unsigned i = 0; i < threads.size(); i++) {
        lz_emu_context& context = threads[i].context;
        context.thread = {i % r.block[0], i / r.block[0] % r.block[1], i / r.block[0] / r.block[1]};
        context.block_dim = dim3(r.block[0], r.block[1], r.block[2]);
        context.grid_dim = dim3(r.grid[0], r.grid[1], r.grid[2]);
        context.dynamic_shared = dynamic_shared;
        threads[i].index = i;
    }
    warps.assign((threads.size() + WARP - 1) / WARP, Warp());
    for (size_t w = 0; w < warps.size(); w++) {
        size_t lanes = threads.size() - w * WARP;
        warps[w].existing = lanes < WARP ? (1u << lanes) - 1 : ~0u;
    }
    // Stacks that a failed launch left behind are free again.
    idle.clear();
    for (Fiber& fiber : fibers) idle.push_back(&fiber);
    memset(dynamic_shared + r.dynamic_shared_bytes, FENCE, FENCE_BYTES);

    unsigned long long blocks = (unsigned long long)r.grid[0] * r.grid[1] * r.grid[2];
    for (unsigned long long number = 0; number < blocks; number++) {
        if (!run_block(number)) return false;
    }
    return true;
}

// ---------------------------------------------------------------------------------------------
// Waiting for each other.

unsigned Machine::barrier(unsigned predicate, int line) {
    Thread& self = running();
    if (at_barrier == 0) {
        barrier_line = line;
        barrier_sum = 0;
    } else if (line != barrier_line) {
        report_line(barrier_line);
        fail(line, "divergent barrier: thread %u is at the barrier on line %d, while %u of its block wait at that on line %d",
             self.index, line, at_barrier, barrier_line);
    }
    barrier_sum += predicate;
    at_barrier++;
    if (at_barrier < threads.size()) {
        wait();
        return unsigned(self.result);
    }
    at_barrier = 0;
    for (unsigned index : order) {
        threads[index].result = barrier_sum;
        if (&threads[index] != &self) wake(threads[index]);
    }
    return barrier_sum;
}

unsigned long long Machine::warp(lz_emu_warp_operation operation, unsigned mask, unsigned long long value,
                                 unsigned source, int line) {
    Thread& self = running();
    unsigned lane = self.index % WARP, first = self.index - lane;
    Warp& warp = warps[first / WARP];
    if (!(mask >> lane & 1)) {
        fail(line, "thread %u (lane %u) calls %s on line %d with mask 0x%08x, which does not name it", self.index,
             lane, name_of(operation), line, mask);
    }
    mask &= warp.existing;  // kernels name all 32 lanes also in a warp that has fewer
    self.value = value;
    self.source = source;

    size_t g = 0;
    while (g < warp.gates.size() && warp.gates[g].mask != mask) g++;
    if (g == warp.gates.size()) warp.gates.push_back({mask, 0, operation, line});
    Gate& gate = warp.gates[g];
    if (gate.operation != operation || gate.line != line) {
        report_line(gate.line);
        fail(line, "divergent warp: thread %u calls %s on line %d, while lanes 0x%08x of its warp wait in %s on line %d",
             self.index, name_of(operation), line, gate.arrived, name_of(gate.operation), gate.line);
    }
    gate.arrived |= 1u << lane;
    if (gate.arrived != mask) {
        wait();
        return self.result;
    }

    // The last lane to come works out what each of them gets.
    if (operation == LZ_EMU_TOGETHER) {
        if (mask != ~0u) fail(line, "%s on line %d needs all 32 lanes of a warp", name_of(operation), line);
        lz_emu_together* lanes[WARP];
        for (unsigned i = 0; i < WARP; i++) lanes[i] = reinterpret_cast<lz_emu_together*>(threads[first + i].value);
        lanes[0]->carry_out(lanes);
    }
    unsigned long long votes = 0;
    for (unsigned i = 0; i < WARP; i++) {
        if (mask >> i & 1) votes |= (threads[first + i].value & 1) << i;
    }
    for (unsigned i = 0; i < WARP; i++) {
        if (!(mask >> i & 1)) continue;
        Thread& other = threads[first + i];
        switch (operation) {
        case LZ_EMU_SYNC:
        case LZ_EMU_TOGETHER: break;
        case LZ_EMU_BALLOT: other.result = votes; break;
        case LZ_EMU_MATCH:
            other.result = 0;
            for (unsigned j = 0; j < WARP; j++) {
                if (mask >> j & 1 && threads[first + j].value == other.value) other.result |= 1ull << j;
            }
            break;
        case LZ_EMU_SHUFFLE: {
            // The value of a lane that does not take part is undefined.
            bool defined = other.source < WARP && mask >> other.source & 1;
            other.result = defined ? threads[first + other.source].value : ~0ull;
            break;
        }
        }
        if (&other != &self) wake(other);
    }
    warp.gates.erase(warp.gates.begin() + g);
    return self.result;
}

// ---------------------------------------------------------------------------------------------
// Messages.

void Machine::report(const char* format, va_list arguments) {
    size_t length = strlen(request->message);
    vsnprintf(request->message + length, sizeof request->message - length, format, arguments);
}

void Machine::report(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    report(format, arguments);
    va_end(arguments);
}

void Machine::report_line(int line) {
    for (unsigned& slot : request->lines) {
        if (slot == 0) slot = unsigned(line);
        if (slot == unsigned(line)) return;
    }
}

void Machine::fail(int line, const char* format, ...) {
    const uint3& block = running().context.block;
    report("block (%u, %u, %u): ", block.x, block.y, block.z);
    va_list arguments;
    va_start(arguments, format);
    report(format, arguments);
    va_end(arguments);
    report_line(line);
    failed = true;
    // All fibers are left as they are: a kernel holds nothing that would have to be released.
    void* nowhere;
    lz_emu_switch(&nowhere, scheduler_stack_pointer);
    abort();
}

/// Those of the lanes `mask` of a warp that have returned.
unsigned Machine::finished_lanes(unsigned warp, unsigned mask) const {
    unsigned lanes = 0;
    for (unsigned i = 0; i < WARP; i++) {
        if (mask >> i & 1 && threads[warp * WARP + i].finished) lanes |= 1u << i;
    }
    return lanes;
}

/// No thread can run, and not all have finished: says who waits where, and for whom in vain.
void Machine::report_stuck() {
    const uint3& block = threads[0].context.block;
    report("block (%u, %u, %u): ", block.x, block.y, block.z);
    if (at_barrier > 0 && at_barrier + finished == threads.size()) {
        report_line(barrier_line);
        report("divergent barrier: %u of %zu threads wait at the barrier on line %d, which the others returned without reaching",
               at_barrier, threads.size(), barrier_line);
        return;
    }
    for (unsigned w = 0; w < warps.size(); w++) {
        for (const Gate& gate : warps[w].gates) {
            unsigned gone = finished_lanes(w, gate.mask);
            if (gone == 0) continue;
            report_line(gate.line);
            report("exited lanes: %s on line %d waits for lanes 0x%08x of warp %u, of which 0x%08x have returned",
                   name_of(gate.operation), gate.line, gate.mask, w, gone);
            return;
        }
    }
    report("deadlock: %u of %zu threads have returned", finished, threads.size());
    if (at_barrier > 0) {
        report_line(barrier_line);
        report("; %u wait at the barrier on line %d", at_barrier, barrier_line);
    }
    unsigned told = 0;
    for (unsigned w = 0; w < warps.size(); w++) {
        for (const Gate& gate : warps[w].gates) {
            if (told++ == 4) {
                report("; and more");
                return;
            }
            report_line(gate.line);
            report("; lanes 0x%08x of warp %u wait in %s on line %d for lanes 0x%08x", gate.arrived, w,
                   name_of(gate.operation), gate.line, gate.mask & ~gate.arrived);
        }
    }
}

/// Machines that no launch is using.
std::mutex pool_lock;
std::vector<std::unique_ptr<Machine>>& pool() {
    // Never destroyed: threads may launch until the process ends.
    static auto* machines = new std::vector<std::unique_ptr<Machine>>;
    return *machines;
}

/// Two launches of one kernel would share its static shared memory: they take turns.
std::mutex& lock_of(const lz_emu_kernel* kernel) {
    static std::mutex locks[64];
    return locks[reinterpret_cast<uintptr_t>(kernel) / 64 % 64 ^ reinterpret_cast<uintptr_t>(kernel) / 4096 % 64];
}

}  // namespace

// ---------------------------------------------------------------------------------------------
// What kernels and the Rust side call.

#pragma GCC visibility push(default)
extern "C" {

__thread lz_emu_context* lz_emu_current;

unsigned lz_emu_barrier(unsigned predicate, int line) { return machine->barrier(predicate, line); }

unsigned long long lz_emu_warp(lz_emu_warp_operation operation, unsigned mask, unsigned long long value,
                               unsigned source, int line) {
    return machine->warp(operation, mask, value, source, line);
}

void lz_emu_begin_copy(void* to, const void* from, unsigned bytes, unsigned given, int line) {
    if ((uintptr_t)to % bytes) lz_emu_misaligned(to, bytes, line);
    if ((uintptr_t)from % bytes) lz_emu_misaligned(from, bytes, line);
    Thread& self = running();
    self.copies.push_back({static_cast<char*>(to), static_cast<const char*>(from), bytes, given, self.groups, line});
    memset(to, POISON, bytes);  // whoever still reads there, or already, finds no number
}

void lz_emu_commit_copies() { running().groups++; }

void lz_emu_await_copies(unsigned but) {
    Thread& self = running();
    auto lands = [&](const Copy& copy) {
        if (copy.group + but >= self.groups) return false;
        self.unpublished = true;
        memcpy(copy.to, copy.from, copy.given);
        memset(copy.to + copy.given, 0, copy.bytes - copy.given);
        return true;
    };
    self.copies.erase(std::remove_if(self.copies.begin(), self.copies.end(), lands), self.copies.end());
}

void lz_emu_begin_product(lz_emu_product add, float* sums, const unsigned short* left, const unsigned short* right,
                          unsigned columns, bool turned_left, bool turned_right, int line) {
    Thread& self = running();
    if (self.unpublished) machine->fail(line, "thread %u multiplies on line %d what it has copied and not published", self.index, line);
    self.products.push_back({add, sums, left, right, columns, turned_left, turned_right, self.product_groups, line});
}

void lz_emu_publish() { running().unpublished = false; }

void lz_emu_begin_products() {}

void lz_emu_commit_products() { running().product_groups++; }

void lz_emu_await_products(unsigned but) {
    Thread& self = running();
    auto ends = [&](const Product& product) {
        if (product.group + but >= self.product_groups) return false;
        product.add(product.sums, product.left, product.right, product.columns, product.turned_left, product.turned_right);
        return true;
    };
    self.products.erase(std::remove_if(self.products.begin(), self.products.end(), ends), self.products.end());
}

void lz_emu_trap(int line) {
    machine->fail(line, "thread %u executes __trap() on line %d", running().index, line);
}

void lz_emu_misaligned(const volatile void* address, unsigned alignment, int line) {
    machine->fail(line, "misaligned access: thread %u uses address %p on line %d as if aligned to %u bytes",
                  running().index, const_cast<const void*>(address), line, alignment);
}

/// What kernels compiled with -fsanitize=alignment call before an access that is not aligned.
struct lz_emu_type_mismatch {
    const char* file;
    unsigned line, column;
    const void* type;
    unsigned char log_alignment, kind;
};
[[noreturn]] void __ubsan_handle_type_mismatch_v1_abort(lz_emu_type_mismatch* data, void* address) {
    lz_emu_misaligned(address, 1u << data->log_alignment, int(data->line));
}

/// Runs a kernel; 0, or -1 with the request's message set. The request must be valid for a GPU.
int lz_emu_launch(lz_emu_launch_request* request) {
    memset(request->lines, 0, sizeof request->lines);
    request->message[0] = 0;
    std::unique_ptr<Machine> mine;
    {
        std::lock_guard<std::mutex> guard(pool_lock);
        if (!pool().empty()) {
            mine = std::move(pool().back());
            pool().pop_back();
        }
    }
    if (!mine) mine = Machine::create();
    if (!mine) {
        snprintf(request->message, sizeof request->message, "no address space for the stacks of a block");
        return -1;
    }
    bool done;
    {
        std::lock_guard<std::mutex> guard(lock_of(request->kernel));
        machine = mine.get();
        done = mine->launch(*request);
        machine = nullptr;
    }
    std::lock_guard<std::mutex> guard(pool_lock);
    pool().push_back(std::move(mine));
    return done ? 0 : -1;
}

}  // extern "C"
#pragma GCC visibility pop
