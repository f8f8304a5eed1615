#include <check.h>
#include <stdlib.h>

#include "compress/wire.h"

static const sp_wire kinds[] = {
    { 0, SP_RUN16, SP_FLOATS, "w" },
    { 0, SP_INDEX32, SP_FLOATS, "w" },
    { 0, SP_RUN16, SP_HALFS, "w" },
    { 0, SP_INDEX32, SP_HALFS, "w" },
};
enum { KINDS = 4 };

static sp_wire wire(int kind, size_t n)
{
    sp_wire w = kinds[kind];

    w.n = n;
    return w;
}

/* A packet of one entry. */
static sp_packet one(const sp_wire *w, float value)
{
    sp_packet p = { .bytes = malloc(sp_wire_room(w, 1)) };
    uint32_t index = 4;

    ck_assert_ptr_nonnull(p.bytes);
    ck_assert_uint_eq(sp_wire_write(w, &index, &value, 1, &p), 1);
    return p;
}

/* That entries are not finite is a packet of its own, without any. */
START_TEST(what_is_not_finite_is_told)
{
    sp_wire w = wire(_i, 10);
    sp_packet p = { .bytes = malloc(sp_wire_room(&w, 1)) };
    sp_wire_reader r;
    sp_wire_entry e;
    bool more = true;

    sp_wire_write_not_finite(&w, &p);
    ck_assert_uint_eq(sp_packet_size(&p), w.values == SP_HALFS ? 6 : 4);
    ck_assert_int_eq(sp_wire_open(&r, &w, p.bytes, sp_packet_size(&p)), SP_OK);
    ck_assert(r.not_finite);
    ck_assert_int_eq(sp_wire_next(&r, &e, &more), SP_OK);
    ck_assert(!more);
    free(p.bytes);
}
END_TEST

/* Of a sum that overflows, and of whatever such a packet is merged with. */
START_TEST(merging_tells_what_is_not_finite)
{
    sp_wire w = wire(_i / 2, 10);
    sp_packet a = one(&w, 3e38f);
    size_t size = sp_packet_size(&a);
    sp_packet broken = { .bytes = malloc(2 * size) };
    sp_packet out = { .bytes = malloc(2 * size) };
    const sp_packet *with = _i % 2 ? &a : &broken;
    sp_wire_reader r;

    if (_i % 2)
        sp_wire_write_not_finite(&w, &broken);
    else
        ck_assert_int_eq(
            sp_wire_merge(&w, a.bytes, size, a.bytes, size, &broken), SP_OK);
    ck_assert_int_eq(
        sp_wire_open(&r, &w, broken.bytes, sp_packet_size(&broken)), SP_OK);
    ck_assert(r.not_finite);
    for (int order = 0; order < 2; order++) {
        const sp_packet *x = order ? with : &broken;
        const sp_packet *y = order ? &broken : with;

        ck_assert_int_eq(sp_wire_merge(&w, x->bytes, sp_packet_size(x),
                                       y->bytes, sp_packet_size(y), &out),
                         SP_OK);
        ck_assert_int_eq(sp_wire_open(&r, &w, out.bytes, sp_packet_size(&out)),
                         SP_OK);
        ck_assert(r.not_finite);
    }
    free(a.bytes);
    free(broken.bytes);
    free(out.bytes);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wire_not_finite");
    TCase *tc = tcase_create("wire_not_finite");
    SRunner *run = srunner_create(s);

    tcase_add_loop_test(tc, what_is_not_finite_is_told, 0, KINDS);
    tcase_add_loop_test(tc, merging_tells_what_is_not_finite, 0, 4);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
