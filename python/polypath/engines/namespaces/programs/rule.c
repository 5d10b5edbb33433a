/* The rules of a player: the same sums in the same order as the simulator's (crates/lab/src/application/video/rule.rs). */

#include "rule.h"

#include <stdlib.h>
#include <string.h>

void rule_configure(struct rule *rule, int count, char **argument)
{
	const char *kind = need_option(count, argument, "rule"), *rates = need_option(count, argument, "rates");
	char *end = NULL;

	for (rule->rates = 0; *rates && rule->rates < MOST_RATES; rates = *end ? end + 1 : end)
		rule->rate[rule->rates++] = strtoull(rates, &end, 10);
	if (*rates || !rule->rates)
		die("a video has 1 to %d rates", MOST_RATES);
	if (!strcmp(kind, "throughput"))
		rule->kind = THROUGHPUT;
	else if (!strcmp(kind, "buffer"))
		rule->kind = BUFFER;
	else if (!strcmp(kind, "fixed"))
		rule->kind = FIXED;
	else
		die("no rule is called %s", kind);
	rule->window = number_option(count, argument, "window", 0);
	rule->safety = strtod(text_option(count, argument, "safety", "1"), NULL);
	rule->reservoir = number_option(count, argument, "reservoir", 0);
	rule->cushion = number_option(count, argument, "cushion", 0);
	rule->representation = number_option(count, argument, "representation", 0);
}

/* The highest representation of at most that rate, or below it; the lowest where there is none. */
static size_t highest(const struct rule *rule, double rate, bool below)
{
	for (size_t i = rule->rates; i-- > 1;)
		if (below ? (double)rule->rate[i] < rate : (double)rule->rate[i] <= rate)
			return i;
	return 0;
}

static size_t throughput(const struct rule *rule, const double *measured, size_t segments)
{
	size_t first = segments > rule->window ? segments - rule->window : 0;
	double count = 0.0, slowness = 0.0;

	for (size_t i = first; i < segments; i++) {
		count += 1.0;
		slowness += 1.0 / measured[i];
	}
	return count == 0.0 ? 0 : highest(rule, rule->safety * count / slowness, false);
}

static size_t buffer(const struct rule *rule, size_t last, uint64_t buffered)
{
	size_t top = rule->rates - 1;
	double low = rule->rate[0], high = rule->rate[top], line;

	if (buffered <= rule->reservoir)
		return 0;
	if (buffered >= rule->reservoir + rule->cushion)
		return top;
	line = low + (high - low) * (double)(buffered - rule->reservoir) / (double)rule->cushion;
	if (line >= (double)rule->rate[last < top ? last + 1 : top])
		return highest(rule, line, true);
	if (line > (double)rule->rate[last ? last - 1 : 0])
		return last;
	for (size_t i = 0; i < top; i++)
		if ((double)rule->rate[i] > line)
			return i;
	return top;
}

size_t rule_choose(const struct rule *rule, const double *measured, size_t segments, size_t last, uint64_t buffered)
{
	switch (rule->kind) {
	case THROUGHPUT:
		return throughput(rule, measured, segments);
	case BUFFER:
		return buffer(rule, last, buffered);
	default:
		return rule->representation < rule->rates ? rule->representation : rule->rates - 1;
	}
}
