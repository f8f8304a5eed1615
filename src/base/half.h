/* Half-precision numbers, IEEE 754 binary16: conversion and sums.
 *
 * Rounded to the nearest, of two equally near to the even one; what is beyond
 * the largest (65,504; 65,520 and above) becomes infinite, what is below the
 * smallest normal one (2^-14) a multiple of 2^-24. What is not a number stays
 * so.
 */
#ifndef SPRAT_BASE_HALF_H
#define SPRAT_BASE_HALF_H

#include <stddef.h>
#include <stdint.h>

enum { SP_HALF_EXPONENT = 126 };

uint16_t sp_half(float x);
float sp_half_float(uint16_t h);

/* The exponent e, within +-SP_HALF_EXPONENT, with which 2^e * most is below
 * 2^top and (if it can be) not below 2^(top - 1); most is finite. For powers of
 * two that bring numbers into the range of halfs: 2^e and 2^-e are floats. */
int sp_half_exponent(float most, int top);

/* h[i] = scale * x[i]. */
void sp_half_from(size_t n, const float *x, float scale, uint16_t *h);

/* x[i] = scale * h[i]. */
void sp_half_to(size_t n, const uint16_t *h, float scale, float *x);

/* a[i] = a[i] + b[i], rounded. */
void sp_half_add(size_t n, const uint16_t *b, uint16_t *a);

#endif
