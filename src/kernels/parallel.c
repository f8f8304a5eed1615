/* The one place that runs threads: a team that waits for work.
 *
 * The parts of a loop are taken one by one, so a thread that the system has
 * put aside holds up the part it is at and nothing else; the caller works too
 * and, with nobody free to help, does it all. Idle threads look for work for
 * some microseconds, then sleep: on shared cores, OpenMP's barriers, which
 * spin, took 3 times as long for a step of ResNet-20 at a load of 4 a core.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "kernels/kernels.h"

enum {
    LOOKS = 1000 /* before sleeping: some 10 to 40 microseconds */
};

/* One loop. */
typedef struct sp_loop {
    sp_body body;
    void *arg;
    size_t count, grain, parts;
    int threads;
    atomic_size_t next; /* part */
} sp_loop;

/* The team is the process's, as its cores are. The lock guards it; what is
 * atomic may be looked at without. */
static struct {
    pthread_mutex_t lock, use; /* use: held by the loop that runs */
    pthread_cond_t work, done;
    sp_loop *loop;    /* NULL: none that may be joined */
    atomic_uint turn; /* changes when a loop starts */
    atomic_int busy;  /* members at work on the loop */
    int members, asleep;
} team = { .lock = PTHREAD_MUTEX_INITIALIZER,
           .use = PTHREAD_MUTEX_INITIALIZER,
           .work = PTHREAD_COND_INITIALIZER,
           .done = PTHREAD_COND_INITIALIZER };

static _Thread_local int worker; /* 0: the caller of a loop */

int sp_worker(int threads) { return threads > 1 ? worker : 0; }

static void pause_a_little(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void run_part(const sp_loop *l, size_t p)
{
    size_t begin = p * l->grain, left = l->count - begin;

    l->body(l->arg, begin, begin + (left < l->grain ? left : l->grain));
}

static void take_parts(sp_loop *l)
{
    size_t p;

    while ((p = atomic_fetch_add(&l->next, 1)) < l->parts)
        run_part(l, p);
}

/* Wait for a turn that is not `seen`. */
static unsigned next_turn(unsigned seen)
{
    for (int i = 0; i < LOOKS; i++) {
        unsigned turn = atomic_load(&team.turn);
        if (turn != seen)
            return turn;
        pause_a_little();
    }
    pthread_mutex_lock(&team.lock);
    team.asleep++;
    while (atomic_load(&team.turn) == seen)
        pthread_cond_wait(&team.work, &team.lock);
    team.asleep--;
    seen = atomic_load(&team.turn);
    pthread_mutex_unlock(&team.lock);
    return seen;
}

static void *member(void *number)
{
    worker = (int)(intptr_t)number;
    for (unsigned seen = 0;;) {
        seen = next_turn(seen);
        pthread_mutex_lock(&team.lock);
        sp_loop *l = team.loop;
        bool join = l && worker < l->threads;
        team.busy += join;
        pthread_mutex_unlock(&team.lock);
        if (!join)
            continue;
        take_parts(l);
        pthread_mutex_lock(&team.lock);
        if (--team.busy == 0)
            pthread_cond_signal(&team.done);
        pthread_mutex_unlock(&team.lock);
    }
    return NULL;
}

/* Called with the lock held. Threads that cannot be had are done without. */
static void enlarge(int threads)
{
    pthread_attr_t detached;
    pthread_t id;

    if (threads > SP_MAX_THREADS)
        threads = SP_MAX_THREADS;
    if (team.members + 1 >= threads || pthread_attr_init(&detached) != 0)
        return;
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    while (team.members + 1 < threads &&
           pthread_create(&id, &detached, member,
                          (void *)(intptr_t)(team.members + 1)) == 0)
        team.members++;
    pthread_attr_destroy(&detached);
}

/* A fork copies the caller alone, and the lock as it is just then: it is held
 * meanwhile, by no member, and the child begins a team of its own. If another
 * thread's loop was running, `use` stays held in the child, whose loops then
 * run on their own thread. */
static void before_fork(void) { pthread_mutex_lock(&team.lock); }

static void after_fork(void) { pthread_mutex_unlock(&team.lock); }

static void after_fork_in_child(void)
{
    team.work = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    team.done = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    team.members = team.asleep = 0;
    atomic_store(&team.busy, 0);
    pthread_mutex_unlock(&team.lock);
}

/* Fails where there is no memory for three pointers: then the next allocation
 * ends the program anyway. */
static void expect_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

static void start(sp_loop *l)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, expect_forks);
    pthread_mutex_lock(&team.lock);
    enlarge(l->threads);
    team.loop = l;
    atomic_fetch_add(&team.turn, 1);
    if (team.asleep > 0)
        pthread_cond_broadcast(&team.work);
    pthread_mutex_unlock(&team.lock);
}

/* Close the loop to those who have not joined, and wait for those who have. */
static void finish(void)
{
    pthread_mutex_lock(&team.lock);
    team.loop = NULL;
    pthread_mutex_unlock(&team.lock);
    for (int i = 0; i < LOOKS && atomic_load(&team.busy) > 0; i++)
        pause_a_little();
    pthread_mutex_lock(&team.lock);
    while (atomic_load(&team.busy) > 0)
        pthread_cond_wait(&team.done, &team.lock);
    pthread_mutex_unlock(&team.lock);
}

void sp_parallel_for(int threads, size_t count, size_t grain, sp_body body,
                     void *arg)
{
    sp_loop l = { body,    arg, count, grain, (count + grain - 1) / grain,
                  threads, 0 };

    /* A loop inside a loop, or of a second caller, runs on its own thread,
     * which is the first of that loop. */
    if (threads <= 1 || l.parts <= 1 || pthread_mutex_trylock(&team.use) != 0) {
        int outer = worker;
        worker = 0;
        for (size_t p = 0; p < l.parts; p++)
            run_part(&l, p);
        worker = outer;
        return;
    }
    start(&l);
    take_parts(&l);
    finish();
    pthread_mutex_unlock(&team.use);
}
