/* The loader of images: a ring of batches that threads fill. */
#include "data/image_loader.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sprat/random.h"

/* Batches that are ready or being prepared beyond one for each worker: the
 * one in use and one more. */
enum { SPARE_SLOTS = 2, MESSAGE_SIZE = 1024 };

/* One batch of the ring. */
struct slot {
    bool ready;
    sp_batch batch;
    float *x;
    int *labels;
    size_t *ids;
    sp_err err;
    char message[MESSAGE_SIZE];
};

/* Batches are numbered through all epochs: number = epoch * batches + index;
 * batch `number` is in slot number % slots. */
struct sp_image_loader {
    sp_loader_opt opt;
    size_t count, batches, capacity, image; /* image: bytes, floats */
    struct slot *slot;
    int slots;
    pthread_t *thread;
    int threads; /* running */

    pthread_mutex_t lock; /* guards all that follows and slot[].ready */
    pthread_cond_t ready; /* a slot became ready, or a worker idle */
    pthread_cond_t space; /* a slot became free, or stop */
    uint64_t taken;       /* first batch that no worker has begun */
    uint64_t next;        /* batch for the next sp_image_loader_next() */
    uint64_t free_from;   /* batches from here on may be overwritten: its
                             slot and all before are given back */
    int busy;             /* workers preparing a batch */
    int numbered;         /* workers that have begun */
    bool pause, stop;
    bool at_end;     /* the end mark is due */
    int end_epoch;   /* of which epoch */
    int order_epoch; /* that `order` is for; -1: none */
    size_t *order;   /* of the samples of the part */
};

/* Under the lock: numbers are handed out in order, so one order suffices. */
static void set_order(sp_image_loader *l, int epoch)
{
    if (l->order_epoch == epoch)
        return;
    l->order_epoch = epoch;
    if (l->opt.shuffle)
        sp_permute(l->opt.seed, SP_FOR_SHUFFLE, (uint64_t)epoch, l->order,
                   l->count);
    else
        for (size_t i = 0; i < l->count; i++)
            l->order[i] = i;
}

/* Under the lock: say in the slot which samples batch `number` consists of. */
static void describe(sp_image_loader *l, uint64_t number, struct slot *s)
{
    const sp_loader_opt *o = &l->opt;
    sp_batch *b = &s->batch;
    size_t start, n;

    *b = (sp_batch){ .x = s->x, .labels = s->labels, .ids = s->ids };
    b->epoch = (int)(number / l->batches);
    b->index = (size_t)(number % l->batches);
    b->last = b->index + 1 == l->batches;
    start = b->index * o->batch;
    b->rows = l->count - start < o->batch ? l->count - start : o->batch;
    sp_share(b->rows, o->rank, o->ranks, &b->row, &n);
    b->n = (int)n;
    b->t = 1;
    b->targets = b->rows;
    set_order(l, b->epoch);
    for (size_t i = 0; i < n; i++)
        s->ids[i] =
            sp_dataset_id(o->data, o->part, l->order[start + b->row + i]);
}

static sp_err fill(const sp_image_loader *l, struct slot *s, uint8_t *image)
{
    const sp_loader_opt *o = &l->opt;
    const sp_augment *a = &o->data->augment;

    for (size_t i = 0; i < (size_t)s->batch.n; i++) {
        sp_cut cut = { 0 };

        SP_TRY(
            sp_dataset_read(o->data, o->part, s->ids[i], image, &s->labels[i]));
        if (o->augment)
            cut = sp_augment_draw(a, o->seed, s->batch.epoch, s->ids[i]);
        sp_augment_apply(a, cut, image, s->x + i * l->image);
    }
    return SP_OK;
}

static void prepare(const sp_image_loader *l, struct slot *s)
{
    uint8_t *image = malloc(l->image);

    s->err = image ? fill(l, s, image)
                   : sp_fail(SP_ENOMEM, "batch: no memory for an image");
    /* The text is this thread's; the consumer needs it in its own. */
    if (s->err)
        snprintf(s->message, sizeof s->message, "%s", sp_last_error());
    free(image);
}

static bool may_begin(const sp_image_loader *l)
{
    return !l->pause && l->taken - l->free_from < (uint64_t)l->slots;
}

static void *work(void *arg)
{
    sp_image_loader *l = arg;
    int worker;

    pthread_mutex_lock(&l->lock);
    worker = l->numbered++;
    for (;;) {
        while (!l->stop && !may_begin(l))
            pthread_cond_wait(&l->space, &l->lock);
        if (l->stop)
            break;
        struct slot *s = &l->slot[l->taken % (uint64_t)l->slots];

        describe(l, l->taken++, s);
        l->busy++;
        pthread_mutex_unlock(&l->lock);
        s->batch.worker = worker;
        s->batch.begun = sp_now();
        prepare(l, s);
        s->batch.ended = sp_now();
        pthread_mutex_lock(&l->lock);
        l->busy--;
        s->ready = true;
        pthread_cond_broadcast(&l->ready);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Signals are for the program's own threads. */
static sp_err start_threads(sp_image_loader *l)
{
    sigset_t all, old;
    int failed = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    while (l->threads < l->opt.workers && !failed) {
        failed = pthread_create(&l->thread[l->threads], NULL, work, l);
        l->threads += !failed;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed)
        return sp_fail(SP_ENOMEM, "data.workers: thread %d cannot start (%s)",
                       l->threads, strerror(failed));
    return SP_OK;
}

static sp_err allocate(sp_image_loader *l)
{
    size_t n = l->capacity > 0 ? l->capacity : 1;

    l->slot = calloc((size_t)l->slots, sizeof *l->slot);
    l->thread = calloc((size_t)l->opt.workers, sizeof *l->thread);
    l->order = malloc((l->count > 0 ? l->count : 1) * sizeof *l->order);
    if (!l->slot || !l->thread || !l->order)
        return sp_fail(SP_ENOMEM, "batches: out of memory");
    for (int i = 0; i < l->slots; i++) {
        struct slot *s = &l->slot[i];

        s->x = malloc(n * l->image * sizeof *s->x);
        s->labels = malloc(n * sizeof *s->labels);
        s->ids = malloc(n * sizeof *s->ids);
        if (!s->x || !s->labels || !s->ids)
            return sp_fail(SP_ENOMEM,
                           "batches: no memory for %d of %zu images; use a "
                           "smaller train.%s or fewer data.workers",
                           l->slots, n,
                           l->opt.scoring ? "eval_batch" : "batch");
    }
    return SP_OK;
}

static sp_err measure(sp_image_loader *l)
{
    sp_loader_opt *o = &l->opt;
    const sp_data_info *info = &o->data->info;

    if (o->workers == 0)
        o->workers = o->data->workers;
    if (o->workers < 1)
        return sp_fail(SP_EARG, "batches: %d workers: out of range",
                       o->workers);
    l->count = o->data->count[o->part];
    l->image = (size_t)info->h * (size_t)info->w * (size_t)info->c;
    l->batches = l->count / o->batch;
    if (!o->drop_last && l->count % o->batch != 0)
        l->batches++;
    if (l->batches == 0 && l->count > 0)
        return sp_fail(SP_EDATA,
                       "train.batch: %zu rows are more than the %zu images, "
                       "and train.drop_last leaves short batches out; use a "
                       "smaller batch or set it to false",
                       o->batch, l->count);
    l->capacity = (o->batch + (size_t)o->ranks - 1) / (size_t)o->ranks;
    l->slots = o->workers + SPARE_SLOTS;
    return SP_OK;
}

sp_err sp_image_loader_new(sp_image_loader **out, const sp_loader_opt *opt)
{
    sp_image_loader *l = calloc(1, sizeof *l);
    sp_err err;

    if (!l)
        return sp_fail(SP_ENOMEM, "batches: out of memory");
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->ready, NULL);
    pthread_cond_init(&l->space, NULL);
    l->opt = *opt;
    l->order_epoch = -1;
    err = measure(l);
    if (err == SP_OK)
        err = allocate(l);
    if (err == SP_OK && l->batches > 0)
        err = start_threads(l);
    if (err) {
        sp_image_loader_free(l);
        return err;
    }
    *out = l;
    return SP_OK;
}

void sp_image_loader_free(sp_image_loader *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->space);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->threads; i++)
        pthread_join(l->thread[i], NULL);
    for (int i = 0; l->slot && i < l->slots; i++) {
        free(l->slot[i].x);
        free(l->slot[i].labels);
        free(l->slot[i].ids);
    }
    pthread_cond_destroy(&l->space);
    pthread_cond_destroy(&l->ready);
    pthread_mutex_destroy(&l->lock);
    free(l->slot);
    free(l->thread);
    free(l->order);
    free(l);
}

size_t sp_image_loader_batches(const sp_image_loader *l) { return l->batches; }

size_t sp_image_loader_capacity(const sp_image_loader *l)
{
    return l->capacity;
}

void sp_image_loader_seek(sp_image_loader *l, int epoch, size_t index)
{
    pthread_mutex_lock(&l->lock);
    l->pause = true;
    while (l->busy > 0)
        pthread_cond_wait(&l->ready, &l->lock);
    for (int i = 0; i < l->slots; i++)
        l->slot[i].ready = false;
    l->next = (uint64_t)epoch * l->batches + index;
    l->taken = l->free_from = l->next;
    l->order_epoch = -1;
    l->at_end = index == l->batches;
    l->end_epoch = epoch;
    l->pause = false;
    pthread_cond_broadcast(&l->space);
    pthread_mutex_unlock(&l->lock);
}

/* Under the lock: the slots before the next batch are given back. */
static void release(sp_image_loader *l)
{
    for (; l->free_from < l->next; l->free_from++)
        l->slot[l->free_from % (uint64_t)l->slots].ready = false;
    pthread_cond_broadcast(&l->space);
}

/* Under the lock: wait for the next batch and take it. */
static sp_err take(sp_image_loader *l, sp_batch *batch)
{
    struct slot *s = &l->slot[l->next % (uint64_t)l->slots];

    while (!s->ready)
        pthread_cond_wait(&l->ready, &l->lock);
    if (s->err)
        return sp_fail(s->err, "%s", s->message);
    *batch = s->batch;
    l->next++;
    l->at_end = batch->last;
    l->end_epoch = batch->epoch;
    return SP_OK;
}

sp_err sp_image_loader_next(sp_image_loader *l, sp_batch *batch)
{
    sp_err err = SP_OK;

    pthread_mutex_lock(&l->lock);
    release(l);
    if (l->at_end || l->batches == 0) {
        *batch = (sp_batch){ .end = true, .epoch = l->end_epoch };
        l->at_end = false;
        l->end_epoch += l->batches == 0;
    } else {
        err = take(l, batch);
    }
    pthread_mutex_unlock(&l->lock);
    return err;
}
