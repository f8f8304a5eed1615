/* Opening what a configuration describes. */
#include "train/session.h"

#include "dist/agree.h"
#include "kernels/kernels.h"
#include "sprat/nn.h"
#include "train/alike.h"
#include "train/machine.h"
#include "train/weights.h"

static const char *kind(bool text)
{
    return text ? "tokens of text" : "images";
}

static sp_err check_kind(const sp_session *s)
{
    const sp_model *m = s->set.model;

    if (m->text == s->info.text)
        return SP_OK;
    return sp_fail(SP_ECONFIG,
                   "model.name: %s takes %s, but the data set %s gives %s: "
                   "choose another model or other data",
                   m->entry.name, kind(m->text), s->set.set->entry.name,
                   kind(s->info.text));
}

/* Image size and classes: from the opened data set, from its keys alone, or as
 * the caller knows them. */
static sp_err open_data(sp_session *s, sp_session_opt opt)
{
    const sp_settings *set = &s->set;

    if (opt.from) {
        s->data = opt.from->data;
        s->info = opt.from->info;
        s->borrowed = true;
    } else if (opt.info) {
        s->info = *opt.info;
    } else if (!opt.data) {
        SP_TRY(set->set->describe(set->set_own, &s->info));
        SP_TRY(sp_dataset_check(set->data, &s->info));
    } else {
        SP_TRY(sp_dataset_open(&s->data, set->set, set->set_own, set->data));
        s->info = s->data->info;
    }
    SP_TRY(check_kind(s));
    s->classes =
        set->model_cfg->classes ? set->model_cfg->classes : s->info.classes;
    if (s->classes < s->info.classes)
        return sp_fail(SP_ECONFIG,
                       "%s: model.classes is %d, but the data set %s has %d "
                       "classes",
                       sp_config_source(set->config, "model", "classes"),
                       s->classes, set->set->entry.name, s->info.classes);
    return SP_OK;
}

static sp_err check_batch(const sp_session *s)
{
    const sp_train_cfg *cfg = s->set.train;
    size_t samples = s->data->count[SP_PART_TRAIN];

    if (samples == 0)
        return sp_fail(SP_EDATA,
                       s->info.text ? "the training text of %s is empty"
                                    : "data.valid holds out all training "
                                      "samples of %s: make it smaller",
                       s->set.set->entry.name);
    if (!s->info.text && cfg->drop_last && (size_t)cfg->batch > samples)
        return sp_fail(SP_ECONFIG,
                       "%s: train.batch is %d, but there are only %zu training "
                       "samples: make it smaller, or set train.drop_last=false",
                       sp_config_source(s->set.config, "train", "batch"),
                       cfg->batch, samples);
    return SP_OK;
}

static sp_graph_opt graph_opt(const sp_session *s, bool train,
                              const sp_session_opt *opt)
{
    const sp_train_cfg *cfg = s->set.train;

    return (sp_graph_opt){
        .train = train,
        .no_planner = !cfg->planner,
        .recompute = cfg->recompute != 0,
        .threads = s->threads,
        .isa = s->isa,
        .reference = cfg->reference,
        .winograd = (sp_winograd)cfg->winograd,
        .tiles = opt->tiles,
        .no_memory = opt->no_memory,
    };
}

/* Record the network. A program's own model may be anything. */
static sp_tensor *record_model(const sp_session *s, sp_graph *g, sp_tensor *x)
{
    sp_model_args args = { .classes = s->classes, .own = s->set.model_own };
    const sp_model *m = s->set.model;
    sp_tensor *y = m->build ? m->build(g, x, &args) : NULL;
    sp_shape z;

    if (!y) {
        sp_graph_fail(g, SP_EARG, "model %s: its builder gives no tensor",
                      m->entry.name);
        return x;
    }
    z = y->shape;
    if (y->dtype != SP_F32 || z.t != x->shape.t || z.n != x->shape.n ||
        z.h != 1 || z.w != 1 || z.c != s->classes)
        sp_graph_fail(g, SP_ESHAPE,
                      "model %s: its builder gives %d x %d rows of %d x %d x "
                      "%d for %d %s; must be a row of 1 x 1 x %d floats "
                      "for each, a logit for each class",
                      m->entry.name, z.t, z.n, z.h, z.w, z.c,
                      x->shape.t * x->shape.n, kind(s->info.text), s->classes);
    return y;
}

static sp_tensor *record_input(const sp_session *s, const sp_program *p)
{
    const sp_data_info *i = &s->info;

    if (i->text)
        return sp_input(p->graph, "token",
                        (sp_shape){ .t = p->steps, .n = p->rows }, SP_I32);
    return sp_input(p->graph, "image",
                    (sp_shape){ 1, p->rows, i->h, i->w, i->c }, SP_F32);
}

/* Record the network and its loss for up to `rows` samples, or columns of text
 * of up to `steps` tokens. */
static sp_err open_program(sp_session *s, sp_program *p, sp_graph_opt opt,
                           int rows, int steps)
{
    bool kept = !(s->info.text && opt.train);
    sp_graph *g = sp_graph_new(s->params, opt);
    sp_tensor *logits, *loss;

    if (!g)
        return sp_fail(SP_ENOMEM, "recording the program: out of memory");
    p->graph = g;
    p->rows = rows;
    p->steps = s->info.text ? steps : 1;
    p->input = record_input(s, p);
    p->label =
        sp_input(g, "label", (sp_shape){ .t = p->steps, .n = rows }, SP_I32);
    logits = record_model(s, g, p->input);
    /* Smoothing is a means of training; scores are of the plain loss. */
    loss = sp_cross_entropy(g, logits, p->label,
                            opt.train ? (float)s->set.train->label_smoothing
                                      : 0.0f);
    sp_output(g, "loss", loss);
    if (kept) {
        p->logits = logits;
        sp_output(g, "logits", logits);
    }
    return sp_compile(g);
}

/* Of so many rows of the whole job, the most that a rank has. */
static int share_of(const sp_session *s, int rows)
{
    int ranks = sp_comm_ranks(s->comm);

    return (rows + ranks - 1) / ranks;
}

/* Columns of a text that would have no target to score need no memory. */
static int eval_rows(const sp_session *s, const sp_session_opt *opt)
{
    int rows = opt->eval_rows ? opt->eval_rows : s->set.train->eval_batch;
    size_t most = 1;

    rows = share_of(s, rows);
    if (!s->info.text || !s->data)
        return rows;
    for (int part = 0; part < SP_PARTS; part++)
        if (s->data->count[part] > most)
            most = s->data->count[part];
    return (size_t)rows < most ? rows : (int)most;
}

static int train_rows(const sp_session *s)
{
    int rows = share_of(s, s->set.train->batch);
    int micro = s->set.train->micro_batch;

    return micro && micro < rows ? micro : rows;
}

static sp_err open_programs(sp_session *s, sp_session_opt opt)
{
    const sp_train_cfg *cfg = s->set.train;
    sp_graph_opt train = graph_opt(s, true, &opt);
    sp_graph_opt eval = graph_opt(s, false, &opt);
    sp_rank_rule rule;

    s->params = sp_params_new();
    if (!s->params)
        return sp_fail(SP_ENOMEM, "out of memory");
    s->low = opt.low;
    if (opt.low && !s->set.lowrank)
        return sp_fail(SP_ECONFIG,
                       "lowrank.name: is none, but this run's layers are of "
                       "low rank already: leave it as it was");
    if (opt.low) {
        rule = sp_lowrank_rule(s->set.lowrank, s->set.model, s->set.model_own,
                               &s->ranks);
        s->ranks.chosen = opt.chosen;
        train.ranks = eval.ranks = &rule;
    }
    if (opt.train)
        SP_TRY(open_program(s, &s->train, train, train_rows(s), cfg->bptt));
    if (opt.eval)
        SP_TRY(open_program(s, &s->eval, eval, eval_rows(s, &opt),
                            opt.eval_steps ? opt.eval_steps : cfg->bptt));
    if (opt.low)
        SP_TRY(sp_lowrank_check(s->set.lowrank, s->params));
    s->isa = sp_graph_isa(opt.train ? s->train.graph : s->eval.graph);
    return SP_OK;
}

static sp_err open_exchange(sp_session *s, const sp_session_opt *opt)
{
    const sp_settings *set = &s->set;
    sp_exchange_args a = {
        .comm = s->comm,
        .params = s->params,
        .optim = s->optim,
        .compressor = set->compressor,
        .own = set->compressor_own,
        .clip = set->optim->clip,
        .node = set->dist->hierarchy != 0,
        .merge = set->dist->exchange != 0,
        .always_gather = opt->always_gather,
        .window = opt->window,
        .seed = (uint64_t)set->train->seed,
        .threads = s->threads,
    };

    if (sp_comm_ranks(s->comm) == 1 && !set->compressor->encode)
        return SP_OK;
    if (set->optimizer->momentum)
        set->optimizer->momentum(set->optimizer_own, &a.momentum, &a.nesterov);
    return sp_exchange_new(&s->exchange, &a);
}

static sp_err open_optim(sp_session *s)
{
    const sp_settings *set = &s->set;
    sp_conv_how how = { .kernels = sp_kernels_find(s->isa),
                        .threads = s->threads,
                        .reference = set->train->reference };

    SP_TRY(sp_optim_new(&s->optim, &(sp_optim_args){
                                       .params = s->params,
                                       .rule = set->optimizer,
                                       .own = set->optimizer_own,
                                       .cfg = set->optim,
                                       .threads = s->threads,
                                   }));
    if (!s->low || !set->lowrank->frobenius_decay)
        return SP_OK;
    return sp_frobenius_new(&s->frobenius, s->params, s->optim, how);
}

static sp_err open_values(sp_session *s, sp_session_opt opt)
{
    const sp_settings *set = &s->set;
    size_t first, columns;

    sp_share((size_t)set->train->batch, sp_comm_rank(s->comm),
             sp_comm_ranks(s->comm), &first, &columns);
    if (opt.train)
        SP_TRY(sp_carry_open(&s->train.carry, s->train.graph, (int)columns));
    if (opt.eval)
        SP_TRY(sp_carry_open(&s->eval.carry, s->eval.graph, s->eval.rows));
    sp_params_init(s->params, (uint64_t)set->train->seed);
    if (set->model_cfg->init[0] && !opt.no_init)
        SP_TRY(sp_weights_init(set->model_cfg->init, s->params, s->low));
    return opt.train ? open_optim(s) : SP_OK;
}

/* What this rank does by itself. */
static sp_err open_own(sp_session *s, sp_session_opt opt)
{
    SP_TRY(open_data(s, opt));
    if (opt.data && opt.train)
        SP_TRY(check_batch(s));
    SP_TRY(open_programs(s, opt));
    return opt.no_memory ? SP_OK : open_values(s, opt);
}

/* Batch norm over all ranks. An operator cannot fail: that others are missing
 * is remembered, for the step to end with. */
static void sum_across(void *arg, double *x, size_t n)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_NORM };
    sp_session *s = arg;

    if (s->lost == SP_OK)
        s->lost = sp_op_wait(s->comm, sp_sum_doubles(s->comm, on, x, n));
}

/* Ranks that fail, fail together. */
static sp_err open_all(sp_session *s, sp_session_opt opt)
{
    SP_TRY(sp_machine_open(s));
    SP_TRY(sp_agree(s->comm, open_own(s, opt)));
    if (!opt.train || (opt.no_memory && !opt.exchange))
        return SP_OK;
    if (s->set.dist->sync_bn && sp_comm_ranks(s->comm) > 1)
        s->across = (sp_across){ sum_across, s };
    return sp_agree(s->comm, open_exchange(s, &opt));
}

sp_err sp_session_open(sp_session *s, const sp_config *c, sp_session_opt opt)
{
    sp_err e;

    *s = (sp_session){ .comm = opt.comm };
    SP_TRY(sp_agree(opt.comm, sp_settings_view(c, &s->set)));
    SP_TRY(sp_config_agree(c, opt.comm));
    e = open_all(s, opt);
    if (e != SP_OK)
        sp_session_close(s);
    return sp_settings_locate(c, e);
}

sp_err sp_session_batches(const sp_session *s, sp_loader **out)
{
    const sp_train_cfg *cfg = s->set.train;
    sp_loader_opt opt = {
        .data = s->data,
        .part = SP_PART_TRAIN,
        .batch = (size_t)cfg->batch,
        .steps = cfg->bptt,
        .rank = sp_comm_rank(s->comm),
        .ranks = sp_comm_ranks(s->comm),
        .shuffle = true,
        .augment = true,
        .drop_last = cfg->drop_last,
        .seed = (uint64_t)cfg->seed,
    };

    return sp_settings_locate(s->set.config, sp_loader_new(out, &opt));
}

void sp_session_close(sp_session *s)
{
    sp_exchange_free(s->exchange);
    sp_optim_free(s->optim);
    sp_frobenius_free(s->frobenius);
    sp_carry_close(&s->train.carry);
    sp_carry_close(&s->eval.carry);
    sp_graph_free(s->train.graph);
    sp_graph_free(s->eval.graph);
    sp_params_free(s->params);
    if (!s->borrowed)
        sp_dataset_close(s->data);
    *s = (sp_session){ 0 };
}
