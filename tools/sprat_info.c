/* sprat info, sprat check. */
#include <stdio.h>

#include "dist/agree.h"
#include "sprat.h"
#include "sprat/train.h"

static const double mib = 1024.0 * 1024.0;

/* Write a parameter's dimensions as "16x3x3x3". */
static void shape_text(const sp_param *p, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (int i = 0; i < p->ndim && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, i ? "x%d" : "%d",
                                 p->dims[i]);
}

static bool packed(const sp_info *info)
{
    return info->packet_bytes != info->dense_bytes;
}

/* A line for each parameter, with the bytes that it takes in a step where that
 * is not 4 for each element. */
static void print_table(const sp_info *info)
{
    const sp_param *p;
    char shape[64];

    if (packed(info))
        printf("%-36s %16s %10s %12s\n", "parameter", "shape", "elements",
               "bytes");
    for (int i = 0; (p = sp_params_at(info->tensors, i)); i++) {
        if (p->buffer)
            continue;
        shape_text(p, shape, sizeof shape);
        printf("%-36s %16s %10zu", p->name, shape, p->count);
        if (packed(info))
            printf(" %12.0f", info->tensor_bytes[i]);
        putchar('\n');
    }
}

static void print_facts(const sp_info *info)
{
    printf("parameters     %zu, of them %zu in 1-D tensors\n", info->params,
           info->params_1d);
    printf("MACs           %.0f a %s, forward\n", info->macs,
           info->text ? "token" : "sample");
    printf("activations    %.1f MiB a step (%.1f unplanned, no plan can do "
           "with less than %.1f)\n",
           (double)info->memory.planned / mib,
           (double)info->memory.unplanned / mib,
           (double)info->memory.lower_bound / mib);
    printf("work space     %.1f MiB\n", (double)info->memory.scratch / mib);
    printf("on the wire    %.0f bytes a step, dense %.0f (%.1fx)\n",
           info->packet_bytes, info->dense_bytes,
           info->dense_bytes / info->packet_bytes);
    for (int i = 0; i < SP_INFO_RANKS && packed(info); i++)
        printf("%3d ranks      %.0f bytes to MPI by each, dense %.0f (%.1fx)\n",
               info->on[i].ranks, info->on[i].mpi_bytes,
               info->on[i].dense_bytes,
               info->on[i].dense_bytes / info->on[i].mpi_bytes);
}

static void print_text(const sp_info *start, const sp_info *end)
{
    if (!start->low && end->low) {
        printf("At full rank:\n");
        print_table(start);
        putchar('\n');
        print_facts(start);
        printf("\nOf low rank, from the switch on:\n");
    }
    print_table(end);
    putchar('\n');
    print_facts(end);
    if (end->unknown)
        printf("\nOf low rank, from the switch on: unknown, the ranks are "
               "found in training (lowrank.rank: auto)\n");
}

static void print_ranks(sp_json *j, const sp_info *info)
{
    sp_json_list(j, "ranks");
    for (int i = 0; i < SP_INFO_RANKS; i++) {
        sp_json_open(j, NULL);
        sp_json_int(j, "ranks", info->on[i].ranks);
        sp_json_number(j, "mpi_bytes", info->on[i].mpi_bytes);
        sp_json_number(j, "dense_mpi_bytes", info->on[i].dense_bytes);
        sp_json_close(j);
    }
    sp_json_close(j);
}

static void print_tensors(sp_json *j, const sp_info *info)
{
    const sp_param *p;

    sp_json_list(j, "tensors");
    for (int i = 0; (p = sp_params_at(info->tensors, i)); i++) {
        if (p->buffer)
            continue;
        sp_json_open(j, NULL);
        sp_json_text(j, "name", p->name);
        sp_json_list(j, "shape");
        for (int d = 0; d < p->ndim; d++)
            sp_json_int(j, NULL, p->dims[d]);
        sp_json_close(j);
        sp_json_int(j, "params", (int64_t)p->count);
        sp_json_number(j, "packet_bytes", info->tensor_bytes[i]);
        sp_json_close(j);
    }
    sp_json_close(j);
}

static void print_later(sp_json *j, const char *key, const sp_info *end,
                        double value)
{
    if (end->unknown)
        sp_json_null(j, key);
    else
        sp_json_number(j, key, value);
}

static int print_object(const sp_info *info, const sp_info *end)
{
    sp_json j = { 0 };

    sp_json_open(&j, NULL);
    sp_json_int(&j, "params", (int64_t)info->params);
    if (end->unknown)
        sp_json_null(&j, "params_after_switch");
    else
        sp_json_int(&j, "params_after_switch", (int64_t)end->params);
    sp_json_int(&j, "params_1d", (int64_t)info->params_1d);
    sp_json_number(&j, "macs", info->macs);
    print_later(&j, "macs_after_switch", end, end->macs);
    sp_json_number(&j, "activation_mib", (double)info->memory.planned / mib);
    sp_json_number(&j, "unplanned_mib", (double)info->memory.unplanned / mib);
    sp_json_number(&j, "lower_bound_mib",
                   (double)info->memory.lower_bound / mib);
    print_tensors(&j, info);
    sp_json_number(&j, "dense_bytes", info->dense_bytes);
    sp_json_number(&j, "packet_bytes", info->packet_bytes);
    sp_json_number(&j, "compression_ratio",
                   info->dense_bytes / info->packet_bytes);
    print_later(&j, "dense_bytes_after_switch", end, end->dense_bytes);
    print_later(&j, "packet_bytes_after_switch", end, end->packet_bytes);
    print_ranks(&j, info);
    sp_json_close(&j);
    return sp_print_json(&j);
}

static int info(const sp_args *a)
{
    sp_opened o = { 0 };
    sp_info start = { 0 }, later = { 0 }, *end = &start;
    sp_err e = sp_opened_config(&o, a);
    int status = SP_EXIT_DONE;

    if (e == SP_OK)
        e = sp_info_open(o.config, false, &start);
    if (e == SP_OK && sp_config_own(o.config, "lowrank")) {
        end = &later;
        e = sp_info_open(o.config, true, end);
    }
    if (e != SP_OK)
        status = sp_refuse(e);
    else if (sp_args_flag(a, "json"))
        status = print_object(&start, end);
    else
        print_text(&start, end);
    sp_info_close(&start);
    sp_info_close(&later);
    sp_opened_free(&o);
    return status;
}

static int check(const sp_args *a)
{
    sp_opened o = { 0 };
    sp_err e = sp_agree(a->comm, sp_opened_config(&o, a));

    if (e == SP_OK)
        e = sp_check(o.config, a->comm, stdout);
    sp_opened_free(&o);
    return e == SP_OK ? SP_EXIT_DONE : sp_refuse_all(a, e);
}

const sp_verb sp_verb_info = {
    .name = "info",
    .words = "CONFIG...",
    .least = 1,
    .most = -1,
    .overrides = true,
    .help = "tell parameters, MACs, memory and bytes on the wire",
    .flags = {
        { "json", NULL, "print one JSON object and nothing else" },
    },
    .examples =
        "Opens no data. The object's keys: params params_after_switch "
        "params_1d macs\nmacs_after_switch activation_mib unplanned_mib "
        "lower_bound_mib tensors[{name,\nshape,params,packet_bytes}] "
        "dense_bytes packet_bytes compression_ratio\n"
        "dense_bytes_after_switch packet_bytes_after_switch "
        "ranks[{ranks,mpi_bytes,\ndense_mpi_bytes}]; without a switch to low "
        "rank those after it are the same; with ranks found in training, "
        "null.\n\n"
        "  sprat info configs/cifar10/resnet20.yaml\n"
        "  sprat info configs/cifar10/resnet20.yaml model.depth=56 --json\n",
    .run = info,
};

const sp_verb sp_verb_check = {
    .name = "check",
    .words = "CONFIG...",
    .least = 1,
    .most = -1,
    .overrides = true,
    .ranks = true,
    .help = "find everything that can be wrong before step 0",
    .examples =
        "Reads the configuration, opens the data, builds the network, and "
        "trains\nnothing.\n\n"
        "  sprat check configs/cifar10/resnet20.yaml data.root=my/cifar10\n",
    .run = check,
};
