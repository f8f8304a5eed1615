#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compress/wire.h"
#include "sprat/random.h"

static const sp_wire kinds[] = {
    { 0, SP_RUN16, SP_FLOATS, "w" },
    { 0, SP_INDEX32, SP_FLOATS, "w" },
    { 0, SP_RUN16, SP_HALFS, "w" },
    { 0, SP_INDEX32, SP_HALFS, "w" },
};
enum { KINDS = 4, GUARD = 32, MOST = 4096 };

static sp_wire wire(int kind, size_t n)
{
    sp_wire w = kinds[kind];

    w.n = n;
    return w;
}

/* A packet of k entries in a block of just its size, to be freed. */
static sp_packet packet_of(const sp_wire *w, const uint32_t *index,
                           const float *value, size_t k)
{
    size_t room = sp_wire_room(w, k);
    uint32_t *i = malloc((k + 1) * sizeof *i);
    float *v = malloc((k + 1) * sizeof *v);
    sp_packet p = { .bytes = malloc(room + GUARD) };

    memcpy(i, index, k * sizeof *i);
    memcpy(v, value, k * sizeof *v);
    memset(p.bytes, 0xA5, room + GUARD);
    sp_wire_write(w, i, v, k, &p);
    ck_assert_uint_le(sp_packet_size(&p), room);
    for (size_t b = 0; b < GUARD; b++)
        if (p.bytes[room + b] != 0xA5)
            ck_abort_msg("written %zu bytes beyond the packet", b + 1);
    free(i);
    free(v);
    return p;
}

/* Read all into arrays of MOST; returns how reading ended. */
static sp_err read_all(const sp_wire *w, const void *bytes, size_t size,
                       sp_wire_entry *e, size_t *count)
{
    sp_wire_reader r;
    bool more = true;

    *count = 0;
    SP_TRY(sp_wire_open(&r, w, bytes, size));
    for (;; ++*count) {
        sp_wire_entry next;
        SP_TRY(sp_wire_next(&r, &next, &more));
        if (!more)
            return SP_OK;
        if (next.index >= w->n || !isfinite(next.value))
            ck_abort_msg("%g at %u was accepted", (double)next.value,
                         (unsigned)next.index);
        if (*count < MOST)
            e[*count] = next;
    }
}

/* ---- decode(encode) ------------------------------------------------------ */

/* Zeros before each of the entries, and behind the last. */
static const struct {
    size_t count, gap[5], rest, skips;
} layouts[] = {
    { 0, { 0 }, 0, 0 },
    { 0, { 0 }, 70000, 0 },
    { 1, { 0 }, 0, 0 },
    { 1, { 0 }, 99, 0 },
    { 1, { 99 }, 0, 0 },
    { 2, { 0, 65534 }, 0, 0 },
    { 2, { 0, 65535 }, 0, 1 },
    { 2, { 0, 65536 }, 1, 1 },
    { 1, { 65534 }, 0, 0 },
    { 1, { 65535 }, 0, 1 },
    { 3, { 200000, 0, 200000 }, 200000, 6 },
    { 2, { 131070, 131069 }, 0, 3 },
    { 5, { 0, 0, 0, 0, 0 }, 0, 0 },
    { 5, { 1, 65535, 0, 65534, 65536 }, 3, 2 },
};

START_TEST(what_is_written_is_read)
{
    sp_wire w = wire(_i % KINDS, 0);
    int at = _i / KINDS;
    uint32_t index[5];
    float value[5];
    sp_wire_entry e[MOST];
    size_t count;
    sp_packet p;

    for (size_t i = 0; i < layouts[at].count; i++) {
        w.n += layouts[at].gap[i];
        index[i] = (uint32_t)w.n++;
        value[i] = ldexpf(i % 2 ? -1.25f : 1.5f, (int)i);
    }
    w.n += layouts[at].rest;
    p = packet_of(&w, index, value, layouts[at].count);
    ck_assert_uint_eq(p.headers, w.values == SP_HALFS ? 6 : 4);
    ck_assert_uint_eq(p.values,
                      layouts[at].count * (w.values == SP_HALFS ? 2 : 4));
    ck_assert_uint_eq(p.places,
                      w.places == SP_INDEX32
                          ? 4 * layouts[at].count
                          : 2 * (layouts[at].count + layouts[at].skips));
    ck_assert_int_eq(read_all(&w, p.bytes, sp_packet_size(&p), e, &count),
                     SP_OK);
    ck_assert_uint_eq(count, layouts[at].count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(e[i].index, index[i]);
        ck_assert_float_eq(e[i].value, value[i]);
    }
    free(p.bytes);
}
END_TEST

START_TEST(full_tensors_survive)
{
    sp_wire w = wire(_i, MOST);
    uint32_t index[MOST];
    float value[MOST];
    sp_wire_entry e[MOST];
    size_t count;
    sp_packet p;

    for (uint32_t i = 0; i < MOST; i++) {
        index[i] = i;
        value[i] = (float)(i + 1);
    }
    p = packet_of(&w, index, value, MOST);
    /* Nothing is skipped: a count, perhaps an exponent, and the entries. */
    ck_assert_uint_eq(sp_packet_size(&p), (w.values == SP_HALFS ? 6 : 4) +
                                              MOST * sp_wire_entry_bytes(&w));
    ck_assert_int_eq(read_all(&w, p.bytes, sp_packet_size(&p), e, &count),
                     SP_OK);
    ck_assert_uint_eq(count, MOST);
    for (uint32_t i = 0; i < MOST; i++) {
        ck_assert_uint_eq(e[i].index, i);
        /* Above 2048, halfs of numbers up to 4096 are even. */
        ck_assert_float_le(fabsf(e[i].value - value[i]),
                           w.values == SP_HALFS && i >= 2048 ? 1.0f : 0.0f);
    }
    free(p.bytes);
}
END_TEST

START_TEST(bytes_are_as_documented)
{
    sp_wire w = wire(_i, 100000);
    const uint32_t index[] = { 2, 3, 80000 };
    const float value[] = { 1.0f, -2.0f, 0.5f };
    /* Halfs: 2^13 brings -2 to -2^14. */
    static const uint8_t floats[] = { 3, 0, 0, 0,    0, 0, 0x80, 0x3F,
                                      0, 0, 0, 0xC0, 0, 0, 0,    0x3F };
    static const uint8_t halfs[] = { 3, 0,    0, 0,    13, 0,
                                     0, 0x70, 0, 0xF4, 0,  0x6C };
    /* 80000 - 4 = 65535 + 14461. */
    static const uint8_t runs[] = { 2, 0, 0, 0, 0xFF, 0xFF, 0x7D, 0x38 };
    static const uint8_t indices[] = {
        2, 0, 0, 0, 3, 0, 0, 0, 0x80, 0x38, 1, 0
    };
    bool half = w.values == SP_HALFS, run = w.places == SP_RUN16;
    size_t first = half ? sizeof halfs : sizeof floats;
    sp_packet p = packet_of(&w, index, value, 3);

    ck_assert_uint_eq(sp_packet_size(&p),
                      first + (run ? sizeof runs : sizeof indices));
    ck_assert_mem_eq(p.bytes, half ? halfs : floats, first);
    ck_assert_mem_eq(p.bytes + first, run ? runs : indices,
                     run ? sizeof runs : sizeof indices);
    free(p.bytes);
}
END_TEST

/* ---- Halfs --------------------------------------------------------------- */

START_TEST(halfs_are_scaled_and_round)
{
    sp_wire w = wire(2, 1000);
    uint32_t index[] = { 0, 10, 20, 30, 40 };
    /* The largest takes the exponent 15: all are worth 2^-15 times what they
     * are sent as. 1 + 2^-11 lies between two halfs, 1 + 3 * 2^-11, too; 2^-40
     * would be 2^-25, and is 0; so is half of it. */
    float value[] = { 0.75f, 0x1.002p-1f, -0x1.006p-1f, 0x1p-40f, 0x1p-38f };
    sp_packet p = { .bytes = malloc(sp_wire_room(&w, 5)) };
    sp_wire_entry e[MOST];
    size_t count;

    ck_assert_uint_eq(sp_wire_write(&w, index, value, 5, &p), 4);
    ck_assert_int_eq(p.bytes[4], 15);
    ck_assert_float_eq(value[0], 0.75f);
    ck_assert_float_eq(value[1], 0.5f);
    ck_assert_float_eq(value[2], -0x1.008p-1f);
    ck_assert_float_eq(value[3], 0x1p-38f);
    ck_assert_uint_eq(index[3], 40);
    ck_assert_int_eq(read_all(&w, p.bytes, sp_packet_size(&p), e, &count),
                     SP_OK);
    ck_assert_uint_eq(count, 4);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(e[i].index, index[i]);
        ck_assert_float_eq(e[i].value, value[i]);
    }
    free(p.bytes);
}
END_TEST

/* From the smallest float to the largest, nothing becomes 0 or infinite. */
START_TEST(halfs_of_any_size_arrive)
{
    static const float sizes[] = { 0x1p-149f,      0x1.8p-148f, 1e-38f,
                                   1e-20f,         1.0f,        1e20f,
                                   0x1.fffffep127f };
    sp_wire w = wire(2, 3);
    uint32_t index = 1;
    float value = -sizes[_i];
    sp_packet p = { .bytes = malloc(sp_wire_room(&w, 1)) };
    sp_wire_entry e[MOST];
    size_t count;

    ck_assert_uint_eq(sp_wire_write(&w, &index, &value, 1, &p), 1);
    ck_assert_int_eq(read_all(&w, p.bytes, sp_packet_size(&p), e, &count),
                     SP_OK);
    ck_assert_float_eq(e[0].value, value);
    ck_assert_float_le(fabsf(value + sizes[_i]), sizes[_i] * 0x1p-10f);
    free(p.bytes);
}
END_TEST

/* ---- Damage -------------------------------------------------------------- */

static const struct {
    int kind;
    size_t n, size;
    uint8_t bytes[24];
    const char *text;
} damaged[] = {
    { 0, 9, 0, { 0 }, "header alone takes 4" },
    { 0, 9, 3, { 0 }, "header alone takes 4" },
    { 2, 9, 5, { 0 }, "header alone takes 6" },
    { 0, 9, 16, { 10, 0, 0, 0 }, "10 entries for 9 elements" },
    { 0, 9, 14, { 0, 0, 0, 128 }, "2147483648 entries for 9" },
    { 0, 9, 9, { 1, 0, 0, 0 }, "9 bytes cannot hold 1 entries" },
    { 0, 9, 11, { 1, 0, 0, 0 }, "3 bytes are left" },
    { 1, 9, 16, { 1, 0, 0, 0 }, "8 bytes are left" },
    { 1, 9, 8, { 0 }, "4 bytes are left" },
    { 0, 9, 10, { 1, 0, 0, 0, 0, 0, 0, 0, 9, 0 }, "at 9, beyond its 9" },
    { 1, 9, 12, { 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0 }, "at 9, beyond its 9" },
    { 0, 9, 10, { 1, 0, 0, 0, 0, 0, 0, 0, 255, 255 }, "beyond its 9" },
    { 0, 70000, 10, { 1, 0, 0, 0, 0, 0, 0, 0, 255, 255 }, "1 runs for 1" },
    { 0, 9, 12, { 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0 }, "1 runs are left" },
    { 0, 9, 6, { 0 }, "1 runs are left" },
    { 1,
      9,
      20,
      { 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0 },
      "at 5, not behind" },
    { 0, 9, 10, { 1, 0, 0, 0, 0, 0, 0x80, 0x7F, 0, 0 }, "not a finite" },
    { 0, 9, 10, { 1, 0, 0, 0, 0, 0, 0xC0, 0xFF, 0, 0 }, "not a finite" },
    { 2, 9, 10, { 1, 0, 0, 0, 0, 0, 0, 0x7C, 0, 0 }, "not a finite" },
    { 2, 9, 6, { 0, 0, 0, 0, 127, 0 }, "exponent 127" },
    { 2, 9, 6, { 0, 0, 0, 0, 0, 0x80 }, "exponent -32768" },
    { 2, 9, 10, { 1, 0, 0, 0, 0x82, 0xFF, 0, 0x70, 0, 0 }, "not a finite" },
};

START_TEST(damage_is_named)
{
    sp_wire w = wire(damaged[_i].kind, damaged[_i].n);
    uint8_t *bytes = malloc(damaged[_i].size + 1);
    sp_wire_entry e[MOST];
    size_t count;

    memcpy(bytes, damaged[_i].bytes, damaged[_i].size);
    ck_assert_int_eq(read_all(&w, bytes, damaged[_i].size, e, &count),
                     SP_EFORMAT);
    ck_assert_msg(strstr(sp_last_error(), damaged[_i].text) != NULL,
                  "\"%s\" in: %s", damaged[_i].text, sp_last_error());
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "packet of w:"));
    free(bytes);
}
END_TEST

/* ---- Merging ------------------------------------------------------------- */

/* Some of n places, and values that add up without rounding. */
static sp_packet some(const sp_wire *w, uint64_t which, double share, float *x)
{
    uint32_t index[MOST];
    float value[MOST];
    size_t k = 0;

    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t r[4];
        sp_random(3, SP_FOR_TEST, which, i, r);
        if ((double)sp_unit(r[0]) >= share || k == MOST)
            continue;
        index[k] = i;
        value[k] = (float)(1 + r[1] % 7) - 4.5f;
        x[i] += value[k++];
    }
    return packet_of(w, index, value, k);
}

static const struct {
    size_t n;
    double share[2];
} merges[] = {
    { 500, { 0.1, 0.1 } },   { 500, { 1, 1 } }, { 500, { 0, 0.2 } },
    { 500, { 0, 0 } },       { 1, { 1, 1 } },   { 300000, { 1e-4, 1e-5 } },
    { 300000, { 1e-5, 0 } },
};
enum { MERGES = sizeof merges / sizeof *merges };

START_TEST(merging_adds)
{
    int at = _i % MERGES;
    sp_wire w = wire(_i / MERGES, merges[at].n);
    float *x = calloc(w.n, sizeof *x), *y = calloc(w.n, sizeof *y);
    sp_packet a = some(&w, 2 * (uint64_t)_i, merges[at].share[0], x);
    sp_packet b = some(&w, 2 * (uint64_t)_i + 1, merges[at].share[1], x);
    size_t both = sp_packet_size(&a) + sp_packet_size(&b), count;
    sp_packet ab = { .bytes = malloc(both) }, ba = { .bytes = malloc(both) };
    sp_wire_entry e[MOST];

    ck_assert_int_eq(sp_wire_merge(&w, a.bytes, sp_packet_size(&a), b.bytes,
                                   sp_packet_size(&b), &ab),
                     SP_OK);
    ck_assert_int_eq(sp_wire_merge(&w, b.bytes, sp_packet_size(&b), a.bytes,
                                   sp_packet_size(&a), &ba),
                     SP_OK);
    ck_assert_uint_le(sp_packet_size(&ab), both);
    ck_assert_uint_eq(sp_packet_size(&ab), sp_packet_size(&ba));
    ck_assert_mem_eq(ab.bytes, ba.bytes, sp_packet_size(&ab));
    ck_assert_int_eq(read_all(&w, ab.bytes, sp_packet_size(&ab), e, &count),
                     SP_OK);
    for (size_t i = 0; i < count; i++)
        y[e[i].index] = e[i].value;
    for (size_t i = 0; i < w.n; i++)
        if (x[i] != y[i])
            ck_abort_msg("%g at %zu instead of %g", (double)y[i], i,
                         (double)x[i]);
    free(a.bytes);
    free(b.bytes);
    free(ab.bytes);
    free(ba.bytes);
    free(x);
    free(y);
}
END_TEST

/* ---- Foreign bytes ------------------------------------------------------- */

static uint32_t dice(uint64_t round, uint64_t b)
{
    uint32_t r[4];

    sp_random(11, SP_FOR_TEST, round, b, r);
    return r[0];
}

/* A copy of a packet, damaged: bytes changed, cut off or appended. */
static size_t damage(const sp_packet *p, uint64_t round, uint8_t *to)
{
    size_t size = sp_packet_size(p);
    uint32_t how = dice(round, 0);

    memcpy(to, p->bytes, size);
    for (uint32_t i = 0; i < how % 4 && size > 0; i++)
        to[dice(round, 1 + i) % size] = (uint8_t)dice(round, 5 + i);
    if (how % 5 == 1)
        size -= dice(round, 10) % (size + 1);
    for (uint32_t i = 0; how % 5 == 2 && i < dice(round, 11) % 9; i++)
        to[size++] = (uint8_t)dice(round, 12 + i);
    return size;
}

START_TEST(any_bytes_are_refused_or_read)
{
    enum { ROUNDS = 30000, N = 3000 };
    sp_wire w = wire(_i, N);
    static float x[N];
    sp_packet p = some(&w, 9, 0.01, x), q = some(&w, 10, 0.003, x);
    size_t refused = 0;
    sp_wire_entry e[MOST];

    ck_assert_uint_lt(sp_packet_size(&p) + 16, MOST);
    ck_assert_uint_lt(sp_packet_size(&q) + 16, MOST);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint8_t bytes[MOST], *block;
        size_t size = damage(round % 2 ? &p : &q, round, bytes), count;

        /* A block of its own, so that sanitizers see each byte beyond it. */
        block = malloc(size + 1);
        memcpy(block, bytes, size);
        sp_fail(SP_OK, "%s", "");
        if (read_all(&w, block, size, e, &count) != SP_OK) {
            refused++;
            if (sp_last_error()[0] == 0)
                ck_abort_msg("refused without a word");
        }
        if (w.values == SP_FLOATS) {
            size_t both = size + sp_packet_size(&p);
            sp_packet out = { .bytes = malloc(both + 1) };
            out.bytes[both] = 0xA5;
            if (sp_wire_merge(&w, p.bytes, sp_packet_size(&p), block, size,
                              &out) == SP_OK &&
                sp_packet_size(&out) > both)
                ck_abort_msg("%zu bytes of two packets with %zu",
                             sp_packet_size(&out), both);
            if (out.bytes[both] != 0xA5)
                ck_abort_msg("written beyond the packet");
            free(out.bytes);
        }
        free(block);
    }
    /* Most are seen; a changed value is not. */
    ck_assert_uint_gt(refused, ROUNDS / 4);
    ck_assert_uint_lt(refused, ROUNDS);
    free(p.bytes);
    free(q.bytes);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wire");
    TCase *tc = tcase_create("wire");
    SRunner *run = srunner_create(s);

    tcase_add_loop_test(tc, what_is_written_is_read, 0,
                        KINDS * (sizeof layouts / sizeof *layouts));
    tcase_add_loop_test(tc, full_tensors_survive, 0, KINDS);
    tcase_add_loop_test(tc, bytes_are_as_documented, 0, KINDS);
    tcase_add_test(tc, halfs_are_scaled_and_round);
    tcase_add_loop_test(tc, halfs_of_any_size_arrive, 0, 7);
    tcase_add_loop_test(tc, damage_is_named, 0,
                        sizeof damaged / sizeof *damaged);
    tcase_add_loop_test(tc, merging_adds, 0, 2 * MERGES);
    tcase_add_loop_test(tc, any_bytes_are_refused_or_read, 0, KINDS);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
