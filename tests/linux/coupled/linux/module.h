/* Of the kernel's headers what the coupled congestion controls use, for a program of one thread. */
#ifndef SHIM_LINUX_MODULE_H
#define SHIM_LINUX_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#define U64_MAX UINT64_MAX
#define BIT(n) (1ul << (n))
#define READ_ONCE(value) (value)
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define div_u64(a, b) ((u64)(a) / (u32)(b))
#define div64_u64(a, b) ((u64)(a) / (u64)(b))
#define div_s64(a, b) ((s64)(a) / (int32_t)(b))
#define mul_u64_u64_shr(a, b, shift) ((u64)(((unsigned __int128)(a) * (b)) >> (shift)))

#define THIS_MODULE NULL
#define __init
#define EXPORT_SYMBOL_GPL(symbol)
#define BUILD_BUG_ON(condition) ((void)sizeof(char[1 - 2 * !!(condition)]))
#define late_initcall(call) int start(void) { return call(); }

#define GFP_ATOMIC 0
#define kzalloc(size, flags) calloc(1, size)
#define kfree free

typedef int spinlock_t;
#define DEFINE_SPINLOCK(name) spinlock_t name
#define spin_lock_bh(lock) ((void)(lock))
#define spin_unlock_bh(lock) ((void)(lock))

struct list_head {
	struct list_head *next, *prev;
};

#define LIST_HEAD(name) struct list_head name = { &(name), &(name) }
#define INIT_LIST_HEAD(list) ((list)->next = (list)->prev = (list))
#define list_empty(list) ((list)->next == (list))
#define list_entry(item, type, member) ((type *)((char *)(item) - offsetof(type, member)))
#define list_for_each_entry(item, list, member)                                                  \
	for (item = list_entry((list)->next, __typeof__(*item), member); &item->member != (list); \
	     item = list_entry(item->member.next, __typeof__(*item), member))

static inline void list_add(struct list_head *item, struct list_head *list)
{
	item->next = list->next;
	item->prev = list;
	list->next->prev = item;
	list->next = item;
}

#define list_add_tail(item, list) list_add(item, (list)->prev)
#define list_del(item) ((item)->prev->next = (item)->next, (item)->next->prev = (item)->prev)

#endif
