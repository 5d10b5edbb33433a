/* Which representation of a video comes next. */
#ifndef POLYPATH_RULE_H
#define POLYPATH_RULE_H

#include "guest.h"

#define MOST_RATES 100

struct rule {
	uint64_t rate[MOST_RATES];
	size_t rates;
	enum { THROUGHPUT, BUFFER, FIXED } kind;
	/* of throughput */
	size_t window;
	double safety;
	/* of buffer */
	uint64_t reservoir, cushion;
	/* of fixed */
	size_t representation;
};

void rule_configure(struct rule *rule, int count, char **argument);
/* The representation to ask for. `measured`: the rates in bit/s at which the segments so far came; `last`: the last
 * one's representation; `buffered`: what there is to play.
 */
size_t rule_choose(const struct rule *rule, const double *measured, size_t segments, size_t last, uint64_t buffered);

#endif
