/* How the signal of `cut.rs` leaves a body. This is C because a Rust frame must not be left in its middle.

       lockwright_cut_body     sigsetjmp; body(...) ............. X       returns EAGAIN
                                                  the signal comes ^      ^
       on_signal                checks, sets the thread's next instruction; |
       the kernel               restores what it saved at X: registers, floating point, mask, alternate stack
       land                     where the body was: siglongjmp ------------+

   Only frames between X and the body's own are left, and only if X is in the body or in a function that it called:
   not in another handler, in the library, or in the dynamic linker. In doubt the body continues, and the commit
   finds the conflict. */

#define _GNU_SOURCE
/* The fortified longjmp checks that it goes up the stack. The jump here always does. */
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* A body that has more than this on the stack, in bytes, is not cut. Older contents of this part are wiped out
   first. */
enum { STACK_MAX = 4096 };

/* `Cut` of `cut.rs`. Only its thread and the handlers on that thread use it. */
struct cut {
    struct cut *outer;
    _Atomic(void *) section;
    int (*is_lost)(const void *section);
    _Atomic(sigjmp_buf *) jump;
    /* Where the body's stack begins: the frames above belong to the library. */
    _Atomic(void *) end;
    /* The signal mask at the begin of the section, in the kernel's format. */
    uint64_t mask;
    /* Whether the body is in progress. */
    atomic_int is_open;
    /* How many calls of the library the body is inside: it cannot be left there. */
    atomic_int inside;
    /* Whether a signal came that could not cut the body. */
    atomic_int note;
};

typedef int body_fn(void *section, void *argument);

/* The thread's innermost section that may be cut. It is in initial-exec TLS, so that a handler allocates nothing. */
static _Thread_local _Atomic(struct cut *) current __attribute__((tls_model("initial-exec")));

HIDDEN void *lockwright_cut_current(void);
HIDDEN int lockwright_cut_install(int signal);
HIDDEN int lockwright_cut_prepare(struct cut *cut, int signal);
HIDDEN int lockwright_cut_body(struct cut *cut, body_fn *body, void *section, void *argument, int *was_cut);

void *lockwright_cut_current(void)
{
    return &current;
}

#ifdef __x86_64__

/* The address range of the dynamic linker's instructions. */
static uintptr_t linker_begin, linker_end;

static int find_linker(struct dl_phdr_info *object, size_t size, void *place)
{
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t begin = object->dlpi_addr + part->p_vaddr;

        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) && (uintptr_t)place - begin < part->p_memsz) {
            linker_begin = begin;
            linker_end = begin + part->p_memsz;
            return 1;
        }
    }
    return 0;
}

/* Whether the body, or a function that it called, was interrupted at `sp`: the mask is the body's, and the stack
   holds neither the frame of a signal nor a return address in the dynamic linker. A word that looks like one by
   chance only prevents the cut, which does no harm.

   BOUND: STACK_MAX. */
static int is_bodys(const struct cut *cut, const ucontext_t *at, uintptr_t ip, uintptr_t sp)
{
    uintptr_t end = (uintptr_t)atomic_load_explicit(&cut->end, memory_order_relaxed);
    /* Where the handler returns to. The kernel puts this word below the frame of each signal. */
    uintptr_t restorer = ((const uintptr_t *)at)[-1];
    uint64_t mask;

    memcpy(&mask, &at->uc_sigmask, sizeof mask);
    if (mask != cut->mask || sp > end || end - sp > STACK_MAX || (linker_begin <= ip && ip < linker_end))
        return 0;
    /* Begins one word below `sp`: the return address of a handler that has just returned is there. */
    for (const uintptr_t *word = (const uintptr_t *)(sp & ~(uintptr_t)7) - 1; (uintptr_t)word < end; word++)
        if (*word == restorer || (linker_begin <= *word && *word < linker_end))
            return 0;
    return 1;
}

static _Noreturn void land(struct cut *cut)
{
    /* A function begins and ends with an empty x87 stack. Pending exceptions of the body are dropped. */
    __asm__ volatile("fnclex; emms");
    siglongjmp(*atomic_load_explicit(&cut->jump, memory_order_relaxed), 1);
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
    struct cut *cut = atomic_load_explicit(&current, memory_order_relaxed);
    ucontext_t *at = context;
    greg_t *registers = at->uc_mcontext.gregs;
    uintptr_t sp = (uintptr_t)registers[REG_RSP], ip = (uintptr_t)registers[REG_RIP];

    (void)signal;
    (void)info;
    /* BOUND: the nesting depth of the thread's sections. */
    for (struct cut *each = cut; each; each = each->outer)
        atomic_store_explicit(&each->note, 1, memory_order_relaxed);
    if (!cut || !atomic_load_explicit(&cut->is_open, memory_order_relaxed)
        || atomic_load_explicit(&cut->inside, memory_order_relaxed) || !is_bodys(cut, at, ip, sp)
        || !cut->is_lost(atomic_load_explicit(&cut->section, memory_order_relaxed)))
        return;
    atomic_store_explicit(&cut->is_open, 0, memory_order_relaxed);
    /* As if `land` was called there, beyond the 128 bytes that functions use below their stack. Nothing is written,
       because the kernel's frame may be there. */
    registers[REG_RSP] = (greg_t)(((sp - 128) & ~(uintptr_t)15) - 8);
    registers[REG_RDI] = (greg_t)cut;
    registers[REG_RIP] = (greg_t)land;
    /* A function begins with a clear direction flag. */
    registers[REG_EFL] &= ~(greg_t)0x400;
}

/* Makes `on_signal` the handler of the signal. Returns EBUSY if the signal has another handler. */
int lockwright_cut_install(int signal)
{
    struct sigaction before, ours;
    void *place = dlsym(RTLD_DEFAULT, "__tls_get_addr");

    if (place)
        dl_iterate_phdr(find_linker, place);
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigfillset(&ours.sa_mask);
    if (sigaction(signal, NULL, &before))
        return errno;
    if ((before.sa_flags & SA_SIGINFO) || before.sa_handler != SIG_DFL)
        return EBUSY;
    return sigaction(signal, &ours, NULL) ? errno : 0;
}

/* Returns the calling thread's id, or 0 if it has blocked the signal or if the kernel does not tell the mask. */
int lockwright_cut_prepare(struct cut *cut, int signal)
{
    if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &cut->mask, sizeof cut->mask)
        || (cut->mask >> (signal - 1) & 1))
        return 0;
    return (int)syscall(SYS_gettid);
}

/* Wipes the stack that the body will use, so that older contents are not taken for frames of the body. */
static __attribute__((noinline)) void wipe(void)
{
    char stack[STACK_MAX];

    memset(stack, 0, sizeof stack);
    __asm__ volatile("" : : "r"(stack) : "memory");
}

static int has_noted_loss(struct cut *cut, const void *section)
{
    int is_lost;

    if (!atomic_load_explicit(&cut->note, memory_order_relaxed))
        return 0;
    atomic_store_explicit(&cut->inside, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    is_lost = cut->is_lost(section);
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&cut->inside, 0, memory_order_relaxed);
    return is_lost;
}

/* Calls the body. If it was cut, returns EAGAIN. */
int lockwright_cut_body(struct cut *cut, body_fn *body, void *section, void *argument, int *was_cut)
{
    sigjmp_buf jump;
    void *end;
    uint32_t vectors;
    uint16_t x87;
    int answer = EAGAIN;

    /* The kernel restores the rounding modes of the interrupted instruction, and a function that the body called may
       have changed them. */
    __asm__ volatile("stmxcsr %0" : "=m"(vectors));
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    __asm__ volatile("mov %%rsp, %0" : "=r"(end));
    atomic_store_explicit(&cut->end, end, memory_order_relaxed);
    wipe();
    *was_cut = 0;
    atomic_store_explicit(&cut->section, section, memory_order_relaxed);
    atomic_store_explicit(&cut->jump, &jump, memory_order_relaxed);
    if (sigsetjmp(jump, 0)) {
        __asm__ volatile("fnclex; fldcw %0" : : "m"(x87));
        __asm__ volatile("ldmxcsr %0" : : "m"(vectors));
        *was_cut = 1;
        return EAGAIN;
    }
    atomic_store_explicit(&cut->is_open, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    /* A signal may have come since the slot published this section. */
    if (!has_noted_loss(cut, section))
        answer = body(section, argument);
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&cut->is_open, 0, memory_order_relaxed);
    return answer;
}

#else

int lockwright_cut_install(int signal)
{
    (void)signal;
    return ENOTSUP;
}

int lockwright_cut_prepare(struct cut *cut, int signal)
{
    (void)cut;
    (void)signal;
    return 0;
}

int lockwright_cut_body(struct cut *cut, body_fn *body, void *section, void *argument, int *was_cut)
{
    (void)cut;
    *was_cut = 0;
    return body(section, argument);
}

#endif
