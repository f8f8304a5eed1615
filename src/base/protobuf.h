/* Protocol buffers: a writer of messages, appended field by field to a text
 * that serves as a buffer of bytes.
 *
 *   sp_text inner = { 0 }, outer = { 0 };
 *   sp_pb_int(&inner, 1, 150);
 *   sp_pb_message(&outer, 3, &inner);    1a 03 08 96 01
 *
 * `field` is the field's number in the message's definition, from 1 to
 * SP_PB_FIELDS. Out of memory sticks, as with every sp_text: of an inner
 * message to the outer one, too. Several calls with one number are a repeated
 * field. A value of 0 is written like any other, as readers allow.
 *
 * Source: Google, "Protocol Buffers: Encoding".
 */
#ifndef SPRAT_BASE_PROTOBUF_H
#define SPRAT_BASE_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum { SP_PB_FIELDS = 536870911 }; /* 2^29 - 1: the largest number of a field */

/* An int32, int64 (negative ones take ten bytes), bool or enum. */
void sp_pb_int(sp_text *t, int field, int64_t value);

void sp_pb_float(sp_text *t, int field, float value);
void sp_pb_double(sp_text *t, int field, double value);

/* A bytes field; and a string: UTF-8, which the caller sees to. */
void sp_pb_bytes(sp_text *t, int field, const void *bytes, size_t n);
void sp_pb_string(sp_text *t, int field, const char *value);

/* A message within. */
void sp_pb_message(sp_text *t, int field, const sp_text *inner);

#endif
