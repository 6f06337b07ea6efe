/* fourier: transforms of any length. A power of two is halved recursively; a short line is summed directly; any other length is a
 * convolution with a chirp, by power-of-two transforms (Bluestein). */
#include "kern/signal/signal.h"

#include <math.h>
#include <string.h>

enum { SHORT = 24 };

static int64_t padded_length(int64_t n)
{
    int64_t m = 1;
    if (n > 0 && (n & (n - 1)) == 0)
        return n;
    if (n <= SHORT)
        return 0;
    while (m < 2 * n - 1)
        m *= 2;
    return m;
}

int64_t fourier_table(int64_t n)
{
    int64_t m = padded_length(n);
    return m == n ? 2 * n : m == 0 ? 2 * n : 2 * m + 2 * n + 2 * m;
}

int64_t fourier_scratch(int64_t n)
{
    int64_t m = padded_length(n);
    return m == n ? 0 : 2 * (m ? m : n);
}

/* exp(-2 pi i k / n) */
static void roots(int64_t n, double *re, double *im)
{
    for (int64_t k = 0; k < n; k++) {
        double angle = -2 * 3.14159265358979323846 * (double)k / (double)n;
        re[k] = cos(angle);
        im[k] = sin(angle);
    }
}

static void swap_bits(int64_t n, double *re, double *im)
{
    for (int64_t i = 1, j = 0; i < n; i++) {
        int64_t bit = n >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i >= j)
            continue;
        double a = re[i], b = im[i];
        re[i] = re[j];
        im[i] = im[j];
        re[j] = a;
        im[j] = b;
    }
}

/* For a power of two, in place. */
static void halve(int64_t n, const double *turn_re, const double *turn_im, double *re, double *im)
{
    swap_bits(n, re, im);
    for (int64_t len = 2; len <= n; len *= 2)
        for (int64_t i = 0; i < n; i += len)
            for (int64_t j = 0; j < len / 2; j++) {
                int64_t p = i + j, q = p + len / 2, k = j * (n / len);
                double a = re[q] * turn_re[k] - im[q] * turn_im[k], b = re[q] * turn_im[k] + im[q] * turn_re[k];
                re[q] = re[p] - a;
                im[q] = im[p] - b;
                re[p] += a;
                im[p] += b;
            }
}

/* exp(-pi i k^2 / n) */
static void chirp(int64_t n, double *re, double *im)
{
    for (int64_t k = 0, square = 0; k < n; k++) {
        double angle = -3.14159265358979323846 * (double)square / (double)n;
        re[k] = cos(angle);
        im[k] = sin(angle);
        square = (square + 2 * k + 1) % (2 * n);
    }
}

struct fourier fourier_prepare(int64_t n, double *table)
{
    int64_t m = padded_length(n), turns = m ? m : n;
    struct fourier f = {.n = n, .padded = m, .turn_re = table, .turn_im = table + turns};
    roots(turns, table, table + turns);
    if (m == n || m == 0)
        return f;
    double *chirp_re = table + 2 * m, *chirp_im = chirp_re + n, *re = chirp_im + n, *im = re + m;
    chirp(n, chirp_re, chirp_im);
    memset(re, 0, (size_t)(2 * m) * sizeof *re);
    for (int64_t k = 0; k < n; k++) {
        int64_t mirror = k ? m - k : 0;
        re[k] = re[mirror] = chirp_re[k];
        im[k] = im[mirror] = -chirp_im[k];
    }
    halve(m, f.turn_re, f.turn_im, re, im);
    f.chirp_re = chirp_re;
    f.chirp_im = chirp_im;
    f.other_re = re;
    f.other_im = im;
    return f;
}

/* Multiplies x and y by complex factors. */
static void times(int64_t n, const double *a, const double *b, double *re, double *im)
{
    for (int64_t j = 0; j < n; j++) {
        double x = re[j] * a[j] - im[j] * b[j];
        im[j] = re[j] * b[j] + im[j] * a[j];
        re[j] = x;
    }
}

static void by_chirp(const struct fourier *f, double *re, double *im, double *scratch)
{
    int64_t m = f->padded, n = f->n;
    double *a = scratch, *b = a + m;
    times(n, f->chirp_re, f->chirp_im, re, im);
    memset(scratch, 0, (size_t)(2 * m) * sizeof *scratch);
    memcpy(a, re, (size_t)n * sizeof *a);
    memcpy(b, im, (size_t)n * sizeof *b);
    halve(m, f->turn_re, f->turn_im, a, b);
    times(m, f->other_re, f->other_im, a, b);
    halve(m, f->turn_re, f->turn_im, b, a); /* with real and imaginary parts swapped: the inverse */
    for (int64_t k = 0; k < n; k++) {
        re[k] = a[k] / (double)m;
        im[k] = b[k] / (double)m;
    }
    times(n, f->chirp_re, f->chirp_im, re, im);
}

static void by_sum(const struct fourier *f, double *re, double *im, double *scratch)
{
    int64_t n = f->n;
    memcpy(scratch, re, (size_t)n * sizeof *re);
    memcpy(scratch + n, im, (size_t)n * sizeof *im);
    for (int64_t k = 0; k < n; k++) {
        double a = 0, b = 0;
        for (int64_t j = 0, turn = 0; j < n; j++, turn = (turn + k) % n) {
            a += scratch[j] * f->turn_re[turn] - scratch[n + j] * f->turn_im[turn];
            b += scratch[j] * f->turn_im[turn] + scratch[n + j] * f->turn_re[turn];
        }
        re[k] = a;
        im[k] = b;
    }
}

void fourier_transform(const struct fourier *f, bool inverse, double *re, double *im, double *scratch)
{
    double *a = inverse ? im : re, *b = inverse ? re : im;
    if (f->padded == f->n)
        halve(f->n, f->turn_re, f->turn_im, a, b);
    else if (f->padded)
        by_chirp(f, a, b, scratch);
    else
        by_sum(f, a, b, scratch);
    for (int64_t k = 0; inverse && k < f->n; k++) {
        re[k] /= (double)f->n;
        im[k] /= (double)f->n;
    }
}
