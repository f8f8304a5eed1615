/* LSTM language model: embedding, LSTM layers, a decoder over the vocabulary,
 * with dropout before, between and behind the layers.
 *
 * Sources: Zaremba, Sutskever, Vinyals 2014, "Recurrent neural network
 *          regularization"; tied weights: Press, Wolf 2017, "Using the output
 *          embedding to improve language models".
 */
#include "sprat/model.h"
#include "sprat/nn.h"

typedef struct lm_cfg {
    int layers, hidden, embedding, biases;
    bool tied;
    double dropout, bound;
} lm_cfg;

#define AT(field) offsetof(lm_cfg, field)

static const sp_key keys[] = {
    { "layers", SP_INT, AT(layers), "2", 1, 64, "LSTM layers", NULL },
    { "hidden", SP_INT, AT(hidden), "200", 1, 1 << 16, "units of each layer",
      NULL },
    { "embedding", SP_INT, AT(embedding), "0", 0, 1 << 16,
      "size of a token's vector; 0: as hidden", NULL },
    { "tied", SP_BOOL, AT(tied), "false", 0, 0,
      "the decoder's weights are the embedding's", NULL },
    { "dropout", SP_FLOAT, AT(dropout), "0", 0, 0.999,
      "share of units left out: of the embedding, between layers, behind the "
      "last",
      NULL },
    { "biases", SP_INT, AT(biases), "2", 1, 2,
      "bias vectors of a layer; PyTorch has two", NULL },
    { "bound", SP_FLOAT, AT(bound), "0", 0, 10,
      "all parameters start uniform in +-bound; 0: as in PyTorch's example: "
      "embedding and decoder 0.1, decoder's bias 0, layers 1/sqrt(hidden)",
      NULL },
};

static sp_tensor *build(sp_graph *g, sp_tensor *x, const sp_model_args *a)
{
    /* Of embedding and decoder in PyTorch's example. */
    static const float table_bound = 0.1f;
    const lm_cfg *c = a->own;
    float bound = (float)c->bound, dropout = (float)c->dropout;
    float outer = c->bound > 0 ? bound : table_bound;
    int size = c->embedding ? c->embedding : c->hidden;

    if (c->tied && size != c->hidden)
        sp_graph_fail(g, SP_ECONFIG,
                      "model.tied: the decoder can have the embedding's "
                      "weights only if model.embedding, %d, is model.hidden, "
                      "%d",
                      size, c->hidden);
    x = sp_embedding(
        g, "encoder", x,
        (sp_embedding_opt){ .rows = a->classes, .out = size, .bound = outer });
    x = sp_dropout(g, "dropout_in", x, dropout);
    x = sp_rnn(g, "rnn", x,
               (sp_rnn_opt){ .kind = SP_LSTM,
                             .hidden = c->hidden,
                             .layers = c->layers,
                             .biases = c->biases,
                             .dropout = dropout,
                             .bound = bound });
    x = sp_dropout(g, "dropout_out", x, dropout);
    return sp_linear(
        g, "decoder", x,
        (sp_linear_opt){ .out = a->classes,
                         .bound = outer,
                         .zero_bias = bound == 0,
                         .tied = c->tied ? "encoder.weight" : NULL });
}

/* Wang et al. 2021, "Pufferfish": the LSTM layers alone are of low rank. */
static const char *full(const void *own)
{
    (void)own;
    return "encoder decoder";
}

const sp_model sp_model_lstm_lm = {
    .entry = { "lstm_lm", "LSTM language model", sizeof(lm_cfg), keys,
               sizeof keys / sizeof *keys },
    .text = true,
    .build = build,
    .full = full,
};
