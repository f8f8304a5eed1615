/* Logits of a checkpoint, for the comparison with other programs:
 *   logits RUN CHECKPOINT INPUTS LOGITS
 * INPUTS: images of floats, channel by channel, as PyTorch has them; or tokens
 * of text, one column. LOGITS: floats, written for each. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "train/trained.h"

/* From channel by channel to pixel by pixel. */
static void put_image(const sp_tensor *x, const uint8_t *bytes)
{
    size_t pixels = (size_t)x->shape.h * (size_t)x->shape.w;
    size_t c = (size_t)x->shape.c;

    for (size_t k = 0; k < c; k++)
        for (size_t p = 0; p < pixels; p++)
            memcpy((float *)x->data + p * c + k,
                   bytes + (k * pixels + p) * sizeof(float), sizeof(float));
}

static sp_err run(const sp_session *s, const char *inputs, FILE *out)
{
    const sp_program *p = &s->eval;
    size_t each = sp_count(p->input->shape) * 4, size;
    sp_run r = { .n = 1, .t = 1, .weight = 1 };
    uint8_t *bytes;

    SP_TRY(sp_file_read(inputs, 1 << 28, &bytes, &size));
    *(int32_t *)p->label->data = 0;
    for (size_t i = 0; i + each <= size; i += each) {
        if (s->info.text)
            memcpy(p->input->data, bytes + i, each);
        else
            put_image(p->input, bytes + i);
        sp_carry_forward((sp_carry *)&p->carry, &r, 0);
        sp_carry_advance((sp_carry *)&p->carry);
        fwrite(p->logits->data, sizeof(float), (size_t)s->classes, out);
    }
    free(bytes);
    return SP_OK;
}

int main(int argc, char **argv)
{
    sp_registry *registry = sp_registry_new();
    FILE *out = argc == 5 ? fopen(argv[4], "wb") : NULL;
    sp_session s = { 0 };
    sp_trained t;
    sp_err e;

    if (!out || !registry)
        return 2;
    e = sp_trained_open(&t, registry, argv[1], argv[2]);
    if (e == SP_OK) {
        e = sp_trained_session(&t, &s);
        if (e == SP_OK)
            e = run(&s, argv[3], out);
        sp_session_close(&s);
        sp_trained_close(&t);
    }
    if (e != SP_OK)
        fprintf(stderr, "%s\n", sp_last_error());
    sp_registry_free(registry);
    return fclose(out) == 0 && e == SP_OK ? 0 : 1;
}
