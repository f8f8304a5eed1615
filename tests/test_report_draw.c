#include <check.h>
#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "fixture.h"
#include "report/chart.h"
#include "report/font.h"
#include "report/page.h"
#include "report/palette.h"
#include "report/raster.h"
#include "report/svg.h"
#include "sprat/report.h"

static char *folder;

static void setup(void) { folder = sp_scratch_new(); }
static void teardown(void) { sp_scratch_free(folder); }

/* ---- Text --------------------------------------------------------------- */

static const char *const escapes[][2] = {
    { "a<b>&\"c'", "a&lt;b&gt;&amp;&quot;c&#39;" },
    { "\xc3\xa4\n\t", "\xc3\xa4\n\t" },
    { "\x01\x7f", "\xef\xbf\xbd\xef\xbf\xbd" },
    { "x\xff\xc3", "x\xef\xbf\xbd\xef\xbf\xbd" },
    { "", "" },
};

START_TEST(texts_are_escaped)
{
    sp_text out = { 0 };

    sp_escape(&out, escapes[_i][0]);
    ck_assert_str_eq(sp_text_string(&out), escapes[_i][1]);
    sp_text_free(&out);
}
END_TEST

START_TEST(long_names_lose_their_middle)
{
    char out[64];

    sp_text_fit(out, sizeof out, "resnet20-dgc-seed-17", 10, 60);
    ck_assert_double_le(sp_text_width(out, 10), 60);
    ck_assert_ptr_nonnull(strstr(out, "\xe2\x80\xa6"));
    ck_assert_int_eq(strncmp(out, "re", 2), 0);
    ck_assert_str_eq(out + strlen(out) - 2, "17");
    sp_text_fit(out, sizeof out, "short", 10, 60);
    ck_assert_str_eq(out, "short");
}
END_TEST

/* Every printable letter is drawn, within its grid, unlike any other. */
START_TEST(the_font_has_all_letters)
{
    for (char c = '!'; c <= '~'; c++) {
        char text[2] = { c, 0 };
        size_t bytes;
        sp_glyph g = sp_font_glyph(text, &bytes);
        ck_assert_uint_eq(bytes, 1);
        ck_assert_uint_ge(strlen(g.strokes), 4);
        ck_assert(g.left >= 0 && g.left <= g.right && g.right <= 4);
        for (char d = '!'; d < c; d++) {
            text[0] = d;
            ck_assert_msg(
                strcmp(sp_font_glyph(text, &bytes).strokes, g.strokes) != 0 ||
                    (d == '0' && c == 'O'),
                "%c looks like %c", d, c);
        }
        /* Each stroke is of whole pairs. */
        for (const char *s = g.strokes; *s; s += *s == ',') {
            size_t n = strcspn(s, ",");
            ck_assert_uint_ge(n, 4);
            ck_assert_uint_eq(n % 2, 0);
            s += n;
        }
    }
}
END_TEST

/* The digest of the empty text, from RFC 6234's SHA-256 in base64. */
START_TEST(digests_are_base64)
{
    char out[48];

    sp_page_digest(out, "");
    ck_assert_str_eq(out, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    sp_page_digest(out, "abc");
    ck_assert_str_eq(out, "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
}
END_TEST

/* ---- Pixels ---------------------------------------------------------------
 */

static uint32_t pixel(const sp_raster *r, int x, int y)
{
    const uint8_t *at = r->rgb + 3 * ((size_t)y * (size_t)r->w + (size_t)x);

    return (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
}

START_TEST(shapes_are_where_they_must_be)
{
    const sp_palette *p = &sp_palette_light;
    sp_figure f = { .w = 60, .h = 40 };
    sp_drawn_shape line = { .paint = SP_RUN, .number = 2, .width = 3 };
    sp_raster r = { 0 };

    sp_draw_straight(&f, line, (sp_xy){ 5, 10 }, (sp_xy){ 55, 10 });
    sp_draw_box(&f, (sp_drawn_shape){ .paint = SP_SHARE,
                                      .number = 1,
                                      .x = 5,
                                      .y = 20,
                                      .w = 10,
                                      .h = 10 });
    sp_draw_mark(
        &f, (sp_drawn_shape){
                .paint = SP_RUN, .number = 0, .x = 30, .y = 25, .width = 4 });
    ck_assert_int_eq(sp_raster_draw(&r, &f), SP_OK);
    ck_assert_int_eq(r.w, 60 * SP_RASTER_SCALE);
    ck_assert_int_eq(r.h, 40 * SP_RASTER_SCALE);
    /* The line's middle, and outside of it on both sides. */
    for (int x = 6; x < 54; x++)
        ck_assert_uint_eq(pixel(&r, x * SP_RASTER_SCALE, 20), p->run[2]);
    ck_assert_uint_eq(pixel(&r, 60, 14), p->paper);
    ck_assert_uint_eq(pixel(&r, 60, 26), p->paper);
    ck_assert_uint_eq(pixel(&r, 3, 20), p->paper);
    /* All of the box and nothing beside it. */
    for (int y = 40; y < 60; y++)
        for (int x = 10; x < 30; x++)
            ck_assert_uint_eq(pixel(&r, x, y), p->share[1]);
    ck_assert_uint_eq(pixel(&r, 9, 50), p->paper);
    ck_assert_uint_eq(pixel(&r, 30, 50), p->paper);
    ck_assert_uint_eq(pixel(&r, 20, 39), p->paper);
    /* The mark's middle. */
    ck_assert_uint_eq(pixel(&r, 60, 50), p->run[0]);
    free(r.rgb);
    sp_figure_free(&f);
}
END_TEST

/* Along a dashed line, on and off lengths are as its pattern says. */
START_TEST(dashes_leave_gaps)
{
    sp_figure f = { .w = 120, .h = 10 };
    sp_drawn_shape line = {
        .paint = SP_RUN, .number = 1, .width = 1, .dash = 2
    };
    const double *dash = sp_dash(2);
    sp_raster r = { 0 };
    int drawn = 0;

    ck_assert_double_gt(dash[0], 0);
    sp_draw_straight(&f, line, (sp_xy){ 0, 5 }, (sp_xy){ 120, 5 });
    ck_assert_int_eq(sp_raster_draw(&r, &f), SP_OK);
    for (int x = 0; x < r.w; x++)
        drawn += pixel(&r, x, 10) != sp_palette_light.paper;
    /* Round ends add half the width at each side of a dash. */
    ck_assert_double_eq_tol((double)drawn / r.w,
                            (dash[0] + 1) / (dash[0] + dash[1]), 0.08);
    free(r.rgb);
    sp_figure_free(&f);
}
END_TEST

/* The edges of a line are smooth: between two rows of pixels it gives each
 * half. */
START_TEST(edges_are_smooth)
{
    sp_figure f = { .w = 20, .h = 10 };
    sp_drawn_shape line = { .paint = SP_INK, .width = 1 };
    sp_raster r = { 0 };
    uint32_t full, half;

    line.width = 0.5; /* one pixel */
    sp_draw_straight(&f, line, (sp_xy){ 2, 2.25 }, (sp_xy){ 18, 2.25 });
    sp_draw_straight(&f, line, (sp_xy){ 2, 6 }, (sp_xy){ 18, 6 });
    ck_assert_int_eq(sp_raster_draw(&r, &f), SP_OK);
    full = pixel(&r, 20, 4) & 0xff;
    half = pixel(&r, 20, 11) & 0xff;
    ck_assert_uint_eq(full, sp_palette_light.ink & 0xff);
    ck_assert_uint_eq(half, pixel(&r, 20, 12) & 0xff);
    ck_assert_uint_eq(half, (255 + full + 1) / 2);
    free(r.rgb);
    sp_figure_free(&f);
}
END_TEST

START_TEST(pictures_are_png_files)
{
    sp_figure f = { .w = 30, .h = 20 };
    sp_raster r = { 0 };
    png_image image = { .version = PNG_IMAGE_VERSION };
    const char *path = sp_scratch_path(folder, "a.png");
    uint8_t rgb[60 * 40 * 3];

    sp_draw_label(
        &f, (sp_drawn_shape){ .paint = SP_INK, .x = 2, .y = 15, .width = 12 },
        "Ag\xe2\x80\xa6\xc3\xa4");
    ck_assert_int_eq(sp_raster_draw(&r, &f), SP_OK);
    ck_assert_int_eq(sp_raster_write(&r, path), SP_OK);
    ck_assert(png_image_begin_read_from_file(&image, path));
    ck_assert_uint_eq(image.width, 60);
    ck_assert_uint_eq(image.height, 40);
    image.format = PNG_FORMAT_RGB;
    ck_assert(png_image_finish_read(&image, NULL, rgb, 0, NULL));
    ck_assert_int_eq(memcmp(rgb, r.rgb, sizeof rgb), 0);
    free(r.rgb);
    sp_figure_free(&f);
}
END_TEST

/* ---- Charts ---------------------------------------------------------------
 */

/* Whether tags close in the order in which they opened. */
static void check_balance(const char *text)
{
    char open[64][16];
    int depth = 0;

    for (const char *at = text; (at = strchr(at, '<')); at++) {
        const char *end = strchr(at, '>');
        char name[16];
        ck_assert_ptr_nonnull(end);
        ck_assert_int_eq(sscanf(at + 1 + (at[1] == '/'), "%15[a-z0-9?!]", name),
                         1);
        if (at[1] == '/')
            ck_assert_str_eq(open[--depth], name);
        else if (at[1] != '?' && at[1] != '!' && end[-1] != '/')
            strcpy(open[depth++], name);
        ck_assert(depth >= 0 && depth < 60);
        at = end;
    }
    ck_assert_int_eq(depth, 0);
}

/* Twelve curves whose names want escaping, with gaps, a single point, equal
 * ends and a curve of nothing but gaps. */
START_TEST(charts_of_odd_curves_are_sound)
{
    sp_chart c = {
        .id = "odd", .title = "a <b> & \"c\"", .note = "n", .x_name = "epoch"
    };
    sp_figure f = { 0 };
    sp_raster r = { 0 };
    sp_text svg = { 0 };

    for (int i = 0; i < 12; i++) {
        sp_xy_list p = { 0 };
        for (int k = 0; k < (i == 3 ? 1 : 40); k++)
            sp_xy_list_add(&p, k,
                           i == 5 || k % 7 == 6 ? NAN
                           : i == 6             ? 1e30
                                                : 1.0 / (k + 1));
        sp_chart_add(&c, "<&\"' \xff", "test", i, i != 4, &p);
    }
    ck_assert_int_eq(sp_chart_draw(&c, &f), SP_OK);
    ck_assert(f.y.log);
    for (size_t i = 0; i < sp_figure_count(&f); i++) {
        const sp_drawn_shape *s = sp_figure_shape(&f, i);
        for (size_t k = 0; s->kind == SP_LINE && k < s->count; k++) {
            sp_xy at = sp_figure_points(&f, s)[k];
            ck_assert(at.x >= 0 && at.x <= f.w && at.y >= 0 && at.y <= f.h);
        }
        if (s->kind == SP_LABEL)
            ck_assert(s->y > 0 && s->y < f.h);
    }
    sp_svg_put_file(&svg, &f);
    ck_assert_int_eq(sp_text_check(&svg), SP_OK);
    check_balance(sp_text_string(&svg));
    ck_assert_ptr_null(strstr(sp_text_string(&svg), "nan"));
    ck_assert_ptr_null(strstr(sp_text_string(&svg), "<&\""));
    ck_assert_int_eq(sp_raster_draw(&r, &f), SP_OK);
    free(r.rgb);
    sp_text_free(&svg);
    sp_figure_free(&f);
    sp_chart_free(&c);
}
END_TEST

/* Names at the ends stand apart, however close the ends are. */
START_TEST(names_do_not_cover_each_other)
{
    sp_chart c = { .id = "ends", .title = "t", .note = "n", .x_name = "epoch" };
    sp_figure f = { 0 };
    double ys[16];
    int count = 0;

    for (int i = 0; i < 12; i++) {
        sp_xy_list p = { 0 };
        sp_xy_list_add(&p, 0, 0);
        sp_xy_list_add(&p, 10, 0.97 + 0.001 * (i % 4));
        sp_chart_add(&c, "run", "", i, true, &p);
    }
    ck_assert_int_eq(sp_chart_draw(&c, &f), SP_OK);
    for (size_t i = 0; i < sp_figure_count(&f); i++) {
        const sp_drawn_shape *s = sp_figure_shape(&f, i);
        if (s->kind == SP_LABEL && s->paint == SP_RUN)
            ys[count++] = s->y;
    }
    ck_assert_int_eq(count, 12);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            ck_assert_double_ge(fabs(ys[i] - ys[k]), 12);
    sp_figure_free(&f);
    sp_chart_free(&c);
}
END_TEST

/* ---- The page -------------------------------------------------------------
 */

static void put(const char *name, const char *text)
{
    sp_scratch_write(folder, name, text, strlen(text));
}

static char *read_page(const char *name, size_t *size)
{
    uint8_t *bytes;

    ck_assert_int_eq(
        sp_file_read(sp_scratch_path(folder, name), 1 << 22, &bytes, size),
        SP_OK);
    return (char *)bytes;
}

static void write_page(const char *const *paths, size_t count, const char *file)
{
    sp_report_opt o = { .paths = paths,
                        .path_count = count,
                        .file = sp_scratch_path(folder, file),
                        .title = "<script>" };
    sp_report_told told;

    ck_assert_msg(sp_report_write(&o, &told) == SP_OK, "%s", sp_last_error());
    ck_assert_uint_eq(told.runs, count);
}

/* Everything that a run may say is escaped; nothing of it becomes a tag. */
START_TEST(pages_escape_what_runs_say)
{
    char odd[160], plain[160], *page, *again;
    const char *paths[] = { odd, plain };
    size_t size, size_again;

    snprintf(odd, sizeof odd, "%s/<i>&\"'", folder);
    snprintf(plain, sizeof plain, "%s/b", folder);
    put("<i>&\"'/config.yaml", "model:\n  name: <i>m\n  <i>k: 1 # <i>s\n");
    put("<i>&\"'/log.txt", "warning: <i>w\n");
    put("<i>&\"'/result.json", "{\"status\":\"<i>t\",\"reason\":\"<i>r\","
                               "\"commit\":\"<i>c\",\"isa\":\"<i>a\","
                               "\"bytes\":{\"tensors\":[{\"name\":\"<i>n\","
                               "\"values\":5}]}}");
    put("<i>&\"'/metrics.jsonl",
        "{\"kind\":\"epoch\",\"epoch\":1,\"step\":1,\"train_loss\":1}\n");
    put("<i>&\"'/tensors.jsonl",
        "{\"kind\":\"names\",\"names\":[\"<i>p\"],\"elements\":[1]}\n"
        "{\"kind\":\"tensors\",\"epoch\":1,\"weight_norm\":[1]}\n");
    put("b/config.yaml", "model:\n  name: other\n");
    write_page(paths, 2, "a.html");
    write_page(paths, 2, "b.html");
    page = read_page("a.html", &size);
    again = read_page("b.html", &size_again);
    /* Tags of our own have a class or stand behind a setting. */
    ck_assert_ptr_null(strstr(page, "<i>m"));
    for (const char *c = "mkstrcanpw&"; *c; c++) {
        char tag[] = { '<', 'i', '>', *c, 0 };
        char shown[] = { '&', 'l', 't', ';', 'i', '&', 'g', 't', ';', *c, 0 };
        ck_assert_msg(!strstr(page, tag), "%s is in the page", tag);
        ck_assert_msg(strstr(page, shown) != NULL, "%s is not", shown);
    }
    ck_assert_ptr_nonnull(strstr(page, "<h1>&lt;script&gt;</h1>"));
    /* The same runs give the same bytes. */
    ck_assert_uint_eq(size, size_again);
    ck_assert_int_eq(memcmp(page, again, size), 0);
    free(page);
    free(again);
}
END_TEST

/* Seeds of a row are drawn by their mean: (50 + 60) / 2 and (60 + 80) / 2, and
 * none where one of them has no value. */
START_TEST(seeds_have_a_mean)
{
    char path[160], *page;
    const char *paths[] = { path };
    sp_report_opt o = { .paths = paths, .path_count = 1 };
    size_t size;

    snprintf(path, sizeof path, "%s/T", folder);
    for (int seed = 1; seed <= 2; seed++) {
        char name[64], text[512];
        snprintf(name, sizeof name, "T/row/seed-%d/metrics.jsonl", seed);
        snprintf(text, sizeof text,
                 "{\"kind\":\"epoch\",\"epoch\":1,\"step\":5,"
                 "\"test_top1\":%d}\n"
                 "{\"kind\":\"epoch\",\"epoch\":2,\"step\":10,"
                 "\"test_top1\":%d}\n%s",
                 40 + 10 * seed, 40 + 20 * seed,
                 seed == 1 ? "{\"kind\":\"epoch\",\"epoch\":3,\"step\":15,"
                             "\"test_top1\":90}\n"
                           : "");
        put(name, text);
    }
    o.file = sp_scratch_path(folder, "seeds.html");
    ck_assert_int_eq(sp_report_write(&o, NULL), SP_OK);
    page = read_page("seeds.html", &size);
    ck_assert_ptr_nonnull(strstr(
        page, "<th scope=\"col\">row</th></tr></thead><tbody>\n"
              "<tr><th scope=\"row\">1</th><td>55.00\xc2\xa0%</td></tr>\n"
              "<tr><th scope=\"row\">2</th><td>70.00\xc2\xa0%</td></tr>\n"
              "<tr><th scope=\"row\">3</th><td>\xe2\x80\x93</td>"));
    ck_assert_ptr_nonnull(
        strstr(page, "bold: mean over seeds (test), thin: each seed"));
    free(page);
}
END_TEST

static void put_long_run(const char *name, int epochs, int steps)
{
    sp_text t = { 0 };

    for (int e = 1; e <= epochs; e++) {
        for (int s = 1; s <= steps; s++)
            sp_text_add(&t,
                        "{\"kind\":\"step\",\"epoch\":%d,\"step\":%d,"
                        "\"lr\":0.1,\"train_loss\":%d.%d,\"grad_norm\":%d,"
                        "\"items_per_s\":%d,\"packet_bytes\":%d,"
                        "\"mpi_bytes\":%d}\n",
                        e, (e - 1) * steps + s, s * 7 % 5, e, s * 11 % 17,
                        s * 13 % 101, 1000 + s * 7 % 31, 3000 + s * 7 % 37);
        sp_text_add(&t,
                    "{\"kind\":\"epoch\",\"epoch\":%d,\"step\":%d,"
                    "\"train_loss\":%d,\"test_loss\":%d,\"train_top1\":%d,"
                    "\"test_top1\":%d,\"items_per_s\":%d,"
                    "\"compression_ratio\":%d}\n",
                    e, e * steps, e % 7, e % 5, e % 91, e % 83, e % 71, e % 13);
    }
    ck_assert_int_eq(sp_text_check(&t), SP_OK);
    sp_scratch_write(folder, name, t.bytes, t.size);
    sp_text_free(&t);
}

START_TEST(pages_of_long_runs_are_small)
{
    char names[10][160];
    const char *paths[10];
    size_t size;
    char *page;

    for (int i = 0; i < 10; i++) {
        char file[32];
        snprintf(file, sizeof file, "r%d/metrics.jsonl", i);
        snprintf(names[i], sizeof names[i], "%s/r%d", folder, i);
        put_long_run(file, 300, 8);
        paths[i] = names[i];
    }
    write_page(paths, 10, "long.html");
    page = read_page("long.html", &size);
    ck_assert_uint_lt(size, 2000000);
    free(page);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

int main(void)
{
    Suite *s = suite_create("report_draw");
    TCase *tc = tcase_create("report_draw");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, texts_are_escaped, 0, COUNT(escapes));
    tcase_add_test(tc, long_names_lose_their_middle);
    tcase_add_test(tc, the_font_has_all_letters);
    tcase_add_test(tc, digests_are_base64);
    tcase_add_test(tc, shapes_are_where_they_must_be);
    tcase_add_test(tc, dashes_leave_gaps);
    tcase_add_test(tc, edges_are_smooth);
    tcase_add_test(tc, pictures_are_png_files);
    tcase_add_test(tc, charts_of_odd_curves_are_sound);
    tcase_add_test(tc, names_do_not_cover_each_other);
    tcase_add_test(tc, pages_escape_what_runs_say);
    tcase_add_test(tc, seeds_have_a_mean);
    tcase_add_test(tc, pages_of_long_runs_are_small);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
