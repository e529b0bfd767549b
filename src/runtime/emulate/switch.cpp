// How one stack is left for another one. `lz_emu_switch` puts the registers that a called function must keep
// on the stack, notes the stack pointer in `*leave`, and goes on from where the stack pointer `enter` was noted.

#include <string.h>

extern "C" __attribute__((visibility("hidden"))) void lz_emu_switch(void** leave, void* enter);

#if defined(__x86_64__)
asm(R"(
    .text
    .globl lz_emu_switch
    .hidden lz_emu_switch
    .type lz_emu_switch, @function
lz_emu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size lz_emu_switch, . - lz_emu_switch
    .section .note.GNU-stack, "", @progbits
    .text
)");
/// A stack that `lz_emu_switch` can enter: six registers, where to return to, and no caller above.
static void* prepare_stack(char* top, void (*function)()) {
    void** sp = reinterpret_cast<void**>(top) - 8;
    memset(sp, 0, 8 * sizeof *sp);
    sp[6] = reinterpret_cast<void*>(function);
    return sp;
}
#elif defined(__aarch64__)
asm(R"(
    .text
    .globl lz_emu_switch
    .hidden lz_emu_switch
    .type lz_emu_switch, %function
lz_emu_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size lz_emu_switch, . - lz_emu_switch
    .section .note.GNU-stack, "", %progbits
    .text
)");
/// A stack that `lz_emu_switch` can enter: the registers of above, x30 being where to return to.
static void* prepare_stack(char* top, void (*function)()) {
    void** sp = reinterpret_cast<void**>(top) - 20;
    memset(sp, 0, 20 * sizeof *sp);
    sp[11] = reinterpret_cast<void*>(function);
    return sp;
}
#else
#error "fibers need a context switch for this processor"
#endif

