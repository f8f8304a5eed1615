/* The machine that runs a pickle: a stack, a memo, a table of instructions. */
#include <stdlib.h>
#include <string.h>

#include "base/little.h"
#include "convert/pickle_value.h"

typedef sp_pickle_value value;

typedef struct machine {
    const char *path;
    const uint8_t *p, *end;
    sp_arena *arena;
    sp_pickle_list stack, memo;
    value *result; /* set by STOP */
    /* The argument of the instruction under way. */
    int64_t number;
    const char *text;
} machine;

sp_err sp_pickle_add(sp_arena *arena, sp_pickle_list *l, value *v)
{
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 4;
        value **at = sp_arena_alloc(arena, room * sizeof *at);
        if (!at)
            return sp_fail(SP_ENOMEM, "out of memory for what a pickle holds");
        if (l->count)
            memcpy(at, l->at, l->count * sizeof *at);
        l->at = at;
        l->room = room;
    }
    l->at[l->count++] = v;
    return SP_OK;
}

static sp_err refuse(const machine *m, const char *what)
{
    return sp_fail(SP_EFORMAT,
                   "%s: its pickle is damaged, or no state dict: "
                   "%s",
                   m->path, what);
}

/* ---- The stack --------------------------------------------------------- */

static sp_err push(machine *m, value v)
{
    value *kept = sp_arena_copy(m->arena, &v, sizeof v);

    if (!kept)
        return sp_fail(SP_ENOMEM, "%s: out of memory", m->path);
    return sp_pickle_add(m->arena, &m->stack, kept);
}

static sp_err pop(machine *m, value **out)
{
    if (m->stack.count == 0 ||
        m->stack.at[m->stack.count - 1]->kind == SP_PICKLE_MARK)
        return refuse(m, "an instruction lacks its operand");
    *out = m->stack.at[--m->stack.count];
    return SP_OK;
}

static sp_err top(machine *m, sp_pickle_kind kind, value **out)
{
    SP_TRY(pop(m, out));
    m->stack.count++;
    if ((*out)->kind != kind)
        return refuse(m, "an instruction has an operand of another kind");
    return SP_OK;
}

/* The first place behind the last mark, which is where the values are that the
 * next instruction takes. */
static sp_err find_mark(machine *m, size_t *first)
{
    size_t i = m->stack.count;

    while (i > 0 && m->stack.at[i - 1]->kind != SP_PICKLE_MARK)
        i--;
    if (i == 0)
        return refuse(m, "an instruction lacks its mark");
    *first = i;
    return SP_OK;
}

/* ---- Instructions ------------------------------------------------------ */

typedef struct instruction instruction;

static sp_err nothing(machine *m, const instruction *i)
{
    (void)m;
    (void)i;
    return SP_OK;
}

/* How an instruction is followed by its argument. */
typedef enum argument {
    NONE,
    BYTES_1, /* a number of so many bytes, without sign */
    BYTES_2,
    BYTES_4,
    SIGNED_4,
    SKIP_8, /* 8 bytes of no interest */
    TEXT_1, /* a text, behind its length of so many bytes */
    TEXT_4,
    LONG_1, /* a number, behind its length of 1 byte */
    LINES   /* two lines */
} argument;

struct instruction {
    uint8_t code;
    argument argument;
    sp_err (*run)(machine *m, const instruction *i);
    sp_pickle_kind kind; /* of what it makes */
    int count;           /* of the values that it takes */
};

static sp_err check_protocol(machine *m, const instruction *i)
{
    (void)i;
    return m->number <= 5 ? SP_OK : refuse(m, "its protocol is above 5");
}

static sp_err make(machine *m, const instruction *i)
{
    return push(
        m, (value){ .kind = i->kind, .integer = m->number, .text = m->text });
}

/* Memo entries are numbered as they come. */
static sp_err memoize(machine *m, const instruction *i)
{
    bool numbered = i->argument != NONE;
    size_t at = numbered ? (size_t)m->number : m->memo.count;
    value *v = NULL;

    SP_TRY(pop(m, &v));
    m->stack.count++;
    if (at > m->memo.count)
        return refuse(m, "its memo has a gap");
    if (at < m->memo.count) {
        m->memo.at[at] = v;
        return SP_OK;
    }
    return sp_pickle_add(m->arena, &m->memo, v);
}

static sp_err recall(machine *m, const instruction *i)
{
    (void)i;
    if ((size_t)m->number >= m->memo.count)
        return refuse(m, "its memo has no such entry");
    return sp_pickle_add(m->arena, &m->stack, m->memo.at[m->number]);
}

/* Move the values from `first` on, to the top of the stack, into `v`. */
static sp_err gather(machine *m, value *v, size_t first)
{
    for (size_t k = first; k < m->stack.count; k++)
        SP_TRY(sp_pickle_add(m->arena, &v->items, m->stack.at[k]));
    m->stack.count = first;
    return SP_OK;
}

static sp_err tuple_of(machine *m, const instruction *i)
{
    value v = { .kind = SP_PICKLE_TUPLE }, *last;
    size_t n = (size_t)i->count;

    if (m->stack.count < n)
        return refuse(m, "a tuple lacks values");
    SP_TRY(gather(m, &v, m->stack.count - n));
    for (size_t k = 0; k < n; k++) {
        last = v.items.at[k];
        if (last->kind == SP_PICKLE_MARK)
            return refuse(m, "a tuple lacks values");
    }
    return push(m, v);
}

static sp_err tuple_to_mark(machine *m, const instruction *i)
{
    value v = { .kind = SP_PICKLE_TUPLE };
    size_t first = 0;

    (void)i;
    SP_TRY(find_mark(m, &first));
    SP_TRY(gather(m, &v, first));
    m->stack.count--;
    return push(m, v);
}

/* Append `count` values to the list or dictionary below them. */
static sp_err append(machine *m, const instruction *i)
{
    size_t n = (size_t)i->count;
    value *into = NULL, *taken[2];

    for (size_t k = n; k-- > 0;)
        SP_TRY(pop(m, &taken[k]));
    SP_TRY(top(m, i->kind, &into));
    for (size_t k = 0; k < n; k++)
        SP_TRY(sp_pickle_add(m->arena, &into->items, taken[k]));
    return SP_OK;
}

static sp_err append_to_mark(machine *m, const instruction *i)
{
    size_t first = 0;
    value *into = NULL;

    SP_TRY(find_mark(m, &first));
    if (first < 2 || m->stack.at[first - 2]->kind != i->kind)
        return refuse(m, "values are added to something else");
    if ((m->stack.count - first) % (size_t)i->count != 0)
        return refuse(m, "a key has no value");
    into = m->stack.at[first - 2];
    SP_TRY(gather(m, into, first));
    m->stack.count--;
    return SP_OK;
}

static sp_err global_of(machine *m, const char *module, const char *name)
{
    size_t a = strlen(module), b = strlen(name);
    char *text = sp_arena_alloc(m->arena, a + b + 2);

    if (!text)
        return sp_fail(SP_ENOMEM, "%s: out of memory", m->path);
    memcpy(text, module, a);
    text[a] = ' ';
    memcpy(text + a + 1, name, b);
    return push(m, (value){ .kind = SP_PICKLE_GLOBAL, .text = text });
}

static sp_err global_on_stack(machine *m, const instruction *i)
{
    value *module = NULL, *name = NULL;

    (void)i;
    SP_TRY(pop(m, &name));
    SP_TRY(pop(m, &module));
    if (name->kind != SP_PICKLE_TEXT || module->kind != SP_PICKLE_TEXT)
        return refuse(m, "a name is none");
    return global_of(m, module->text, name->text);
}

/* PyTorch's persistent things are storages. */
static sp_err persistent(machine *m, const instruction *i)
{
    value *id = NULL;

    (void)i;
    SP_TRY(pop(m, &id));
    if (id->kind != SP_PICKLE_TUPLE)
        return refuse(m, "a storage is not described as PyTorch does");
    return push(m, (value){ .kind = SP_PICKLE_STORAGE, .items = id->items });
}

/* ---- Calls ------------------------------------------------------------- */

/* What may be called, and what comes of it. A parameter is its tensor. */
static const struct callable {
    const char *name;
    sp_pickle_kind kind;
    bool first; /* the first argument, which is of that kind, unchanged */
} callables[] = {
    { "collections OrderedDict", SP_PICKLE_DICT, false },
    { "torch._utils _rebuild_tensor_v2", SP_PICKLE_TENSOR, false },
    { "torch._utils _rebuild_parameter", SP_PICKLE_TENSOR, true },
};

static sp_err call(machine *m, const instruction *i)
{
    value *args = NULL, *what = NULL;

    (void)i;
    SP_TRY(pop(m, &args));
    SP_TRY(pop(m, &what));
    if (args->kind != SP_PICKLE_TUPLE || what->kind != SP_PICKLE_GLOBAL)
        return refuse(m, "a call is none");
    for (size_t k = 0; k < sizeof callables / sizeof *callables; k++) {
        const struct callable *c = &callables[k];
        if (strcmp(c->name, what->text) != 0)
            continue;
        if (c->kind == SP_PICKLE_DICT && args->items.count > 0)
            return refuse(m, "a dictionary is made from another one");
        if (!c->first)
            return push(m, (value){ .kind = c->kind, .items = args->items });
        if (args->items.count == 0 || args->items.at[0]->kind != c->kind)
            return refuse(m, "a parameter is no tensor");
        return sp_pickle_add(m->arena, &m->stack, args->items.at[0]);
    }
    return sp_fail(SP_EFORMAT,
                   "%s: it would call %.100s, which no state dict does; save "
                   "the weights alone: torch.save(model.state_dict(), FILE)",
                   m->path, what->text);
}

/* What belongs to a dictionary besides its items is of no interest. */
static sp_err build(machine *m, const instruction *i)
{
    value *state = NULL, *into = NULL;

    (void)i;
    SP_TRY(pop(m, &state));
    return top(m, SP_PICKLE_DICT, &into);
}

static sp_err stop(machine *m, const instruction *i)
{
    (void)i;
    return pop(m, &m->result);
}

static sp_err global(machine *m, const instruction *i);

static const instruction instructions[] = {
    { 0x80, BYTES_1, check_protocol, 0, 0 },
    { 0x95, SKIP_8, nothing, 0, 0 }, /* of a frame */
    { '(', NONE, make, SP_PICKLE_MARK, 0 },
    { ')', NONE, make, SP_PICKLE_TUPLE, 0 },
    { ']', NONE, make, SP_PICKLE_LIST, 0 },
    { '}', NONE, make, SP_PICKLE_DICT, 0 },
    { 'N', NONE, make, SP_PICKLE_OTHER, 0 },   /* None, */
    { 0x88, NONE, make, SP_PICKLE_OTHER, 0 },  /* True, */
    { 0x89, NONE, make, SP_PICKLE_OTHER, 0 },  /* False, */
    { 'G', SKIP_8, make, SP_PICKLE_OTHER, 0 }, /* a float */
    { 'J', SIGNED_4, make, SP_PICKLE_INT, 0 },
    { 'K', BYTES_1, make, SP_PICKLE_INT, 0 },
    { 'M', BYTES_2, make, SP_PICKLE_INT, 0 },
    { 0x8a, LONG_1, make, SP_PICKLE_INT, 0 },
    { 'X', TEXT_4, make, SP_PICKLE_TEXT, 0 },
    { 0x8c, TEXT_1, make, SP_PICKLE_TEXT, 0 },
    { 'q', BYTES_1, memoize, 0, 0 },
    { 'r', BYTES_4, memoize, 0, 0 },
    { 0x94, NONE, memoize, 0, 0 },
    { 'h', BYTES_1, recall, 0, 0 },
    { 'j', BYTES_4, recall, 0, 0 },
    { 0x85, NONE, tuple_of, 0, 1 },
    { 0x86, NONE, tuple_of, 0, 2 },
    { 0x87, NONE, tuple_of, 0, 3 },
    { 't', NONE, tuple_to_mark, 0, 0 },
    { 's', NONE, append, SP_PICKLE_DICT, 2 },
    { 'a', NONE, append, SP_PICKLE_LIST, 1 },
    { 'u', NONE, append_to_mark, SP_PICKLE_DICT, 2 },
    { 'e', NONE, append_to_mark, SP_PICKLE_LIST, 1 },
    { 'c', LINES, global, 0, 0 },
    { 0x93, NONE, global_on_stack, 0, 0 },
    { 'Q', NONE, persistent, 0, 0 },
    { 'R', NONE, call, 0, 0 },
    { 'b', NONE, build, 0, 0 },
    { '.', NONE, stop, 0, 0 },
};

/* ---- Arguments --------------------------------------------------------- */

static sp_err take(machine *m, size_t n, const uint8_t **out)
{
    if ((size_t)(m->end - m->p) < n)
        return refuse(m, "it is cut off");
    *out = m->p;
    m->p += n;
    return SP_OK;
}

static sp_err take_number(machine *m, size_t n, uint64_t *out)
{
    const uint8_t *p = NULL;

    SP_TRY(take(m, n, &p));
    *out = sp_little_get(p, n);
    return SP_OK;
}

static sp_err keep_text(machine *m, size_t n, const char **out)
{
    const uint8_t *p = NULL;
    char *text;

    SP_TRY(take(m, n, &p));
    if (n > 0 && memchr(p, 0, n))
        return refuse(m, "a text has a 0 byte within");
    text = sp_arena_alloc(m->arena, n + 1);
    if (!text)
        return sp_fail(SP_ENOMEM, "%s: out of memory", m->path);
    if (n > 0)
        memcpy(text, p, n);
    *out = text;
    return SP_OK;
}

static sp_err keep_line(machine *m, const char **out)
{
    const uint8_t *end = memchr(m->p, '\n', (size_t)(m->end - m->p));

    if (!end)
        return refuse(m, "it is cut off");
    SP_TRY(keep_text(m, (size_t)(end - m->p), out));
    m->p++;
    return SP_OK;
}

static sp_err global(machine *m, const instruction *i)
{
    const char *module = NULL, *name = NULL;

    (void)i;
    SP_TRY(keep_line(m, &module));
    SP_TRY(keep_line(m, &name));
    return global_of(m, module, name);
}

/* A number of n bytes with a sign. */
static sp_err take_long(machine *m, size_t n)
{
    uint64_t x = 0;

    if (n > 8)
        return refuse(m, "a number has more than 64 bits");
    SP_TRY(take_number(m, n, &x));
    if (n > 0 && n < 8 && x >> (8 * n - 1))
        x |= UINT64_MAX << 8 * n;
    m->number = (int64_t)x;
    return SP_OK;
}

static sp_err take_argument(machine *m, argument a)
{
    static const size_t bytes[] = {
        [BYTES_1] = 1, [BYTES_2] = 2, [BYTES_4] = 4,
        [TEXT_1] = 1,  [TEXT_4] = 4,  [LONG_1] = 1,
    };
    const uint8_t *skipped = NULL;
    uint64_t x = 0;

    m->number = 0;
    m->text = "";
    if (a == NONE || a == LINES)
        return SP_OK;
    if (a == SKIP_8)
        return take(m, 8, &skipped);
    if (a == SIGNED_4)
        return take_long(m, 4);
    SP_TRY(take_number(m, bytes[a], &x));
    m->number = (int64_t)x;
    if (a == TEXT_1 || a == TEXT_4)
        return keep_text(m, (size_t)x, &m->text);
    return a == LONG_1 ? take_long(m, (size_t)x) : SP_OK;
}

static sp_err step(machine *m)
{
    const uint8_t *code = NULL;

    SP_TRY(take(m, 1, &code));
    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++)
        if (instructions[i].code == *code) {
            SP_TRY(take_argument(m, instructions[i].argument));
            return instructions[i].run(m, &instructions[i]);
        }
    return sp_fail(SP_EFORMAT,
                   "%s: its pickle has instruction 0x%02x, which no state "
                   "dict has; save the weights alone: "
                   "torch.save(model.state_dict(), FILE)",
                   m->path, *code);
}

sp_err sp_pickle_run(const char *path, const uint8_t *bytes, size_t size,
                     sp_arena *arena, value **out)
{
    machine m = {
        .path = path, .p = bytes, .end = bytes + size, .arena = arena
    };

    while (!m.result)
        SP_TRY(step(&m));
    *out = m.result;
    return SP_OK;
}
