/* What the tests of models share: a model's program by its settings. Failures
 * end the test. */
#ifndef SPRAT_TESTS_NETS_H
#define SPRAT_TESTS_NETS_H

#include "sprat/model.h"

extern const sp_model sp_model_alexnet, sp_model_lstm_lm, sp_model_mlp,
    sp_model_resnet, sp_model_vgg;

enum { OWN_BYTES = 4096 };

/* A model's program; `settings` are "key=value" apart by spaces. */
typedef struct net {
    _Alignas(16) char own[OWN_BYTES];
    sp_params *p;
    sp_graph *g;
    sp_tensor *y;
} net;

/* Record the model on images with 10 classes; its output is "logits". */
void nets_record(net *t, const sp_model *m, const char *settings,
                 sp_shape image, sp_graph_opt opt);

/* On 2 columns of 3 tokens. */
void nets_record_text(net *t, const sp_model *m, const char *settings,
                      int vocabulary, sp_graph_opt opt);

/* On one image of size x size pixels in 3 channels, with 1,000 classes, for a
 * report; `ranks` may be NULL. */
void nets_record_large(net *t, const sp_model *m, const char *settings,
                       int size, const sp_rank_rule *ranks);

void nets_close(net *t);

#endif
