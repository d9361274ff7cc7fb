/* Short calls that C code finishes by itself, in memory that the engine leases (package mpe/lease). Each function returns
   1 if it has made the call. Otherwise it has done nothing that a second attempt would not do again, and the caller must
   call the engine, which knows all rules, and judges whatever is unusual. The memory of other processes is hostile: it
   may contain anything, and change at any time. */
#ifndef ZRL_FAST_H
#define ZRL_FAST_H

#include "lease.h"
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ZRL_LOAD(at) __atomic_load_n(at, __ATOMIC_ACQUIRE)
#define ZRL_READ(at) __atomic_load_n(at, __ATOMIC_RELAXED)
#define ZRL_WRITE(at, value) __atomic_store_n(at, value, __ATOMIC_RELAXED)

/* The memory at an address in the block. */
static inline uint64_t *zrl_word(uint64_t at) { return (uint64_t *)(uintptr_t)at; }
static inline char *zrl_bytes(uint64_t at) { return (char *)(uintptr_t)at; }

/* Takes the block, if it is leased and no other thread uses it. */
static inline int zrl_enter(zrl_block *b) {
    uint32_t leased = ZRL_LEASED;
    return b != NULL && ZRL_READ(&b->state) == ZRL_LEASED && !ZRL_READ(&b->recall) &&
           __atomic_compare_exchange_n(&b->state, &leased, ZRL_BUSY, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline int zrl_leave(zrl_block *b, int done) {
    ZRL_WRITE(&b->calls, b->calls + (uint64_t)done);
    __atomic_store_n(&b->state, ZRL_LEASED, __ATOMIC_RELEASE);
    return done;
}

static inline void zrl_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Reports whether to poll again. */
static inline int zrl_again(zrl_block *b, uint32_t *polls) {
    if (++*polls >= b->polls || ZRL_READ(&b->recall))
        return 0;
    zrl_pause();
    return 1;
}

/* The time of an event, if the engine needs it. */
static inline uint64_t zrl_stamp(zrl_block *b) {
    struct timespec now;
    if (!b->stamps)
        return 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Reports whether a buffer of n bytes is memory, and not a constant such as MPI_BOTTOM or MPI_IN_PLACE. */
static inline int zrl_memory(const void *buf, uint64_t n) {
    return (uintptr_t)buf + 4096 >= 2 * 4096 || (buf == NULL && n == 0);
}

/* Sets *n to the length of count elements. Returns NULL if they are long, or if their datatype is not a basic one. */
static inline zrl_type *zrl_length(zrl_block *b, int64_t count, uint64_t type, uint64_t *n) {
    zrl_type *t = &b->types[type % ZRL_MAX_TYPES];
    if (t->handle != type || (uint64_t)count > ZRL_MAX_PAYLOAD)
        return NULL;
    *n = (uint64_t)count * t->size;
    return *n <= ZRL_MAX_PAYLOAD ? t : NULL;
}

static inline zrl_comm *zrl_find(zrl_block *b, uint64_t handle) {
    for (zrl_comm *c = b->comms; c < b->comms + ZRL_MAX_COMMS; c++)
        if (c->handle == handle)
            return c;
    return NULL;
}

/* The peer with the given rank, or NULL. */
static inline zrl_peer *zrl_find_peer(zrl_block *b, zrl_comm *c, int rank) {
    if (c == NULL || (uint32_t)rank >= c->ranks || c->peers[rank] == 0 || b->events == ZRL_MAX_EVENTS)
        return NULL;
    zrl_peer *p = &b->peers[c->peers[rank] - 1];
    return p->isLeased ? p : NULL;
}

/* Adds a message to the log. payload is NULL if the engine does not need it. */
static inline void zrl_log(zrl_block *b, uint32_t kind, zrl_peer *p, zrl_comm *c, uint32_t tag, uint32_t wire, uint32_t ack,
                           const void *payload, uint32_t n) {
    zrl_event *e = &b->log[b->events++];
    e->kind = kind, e->peer = (uint32_t)(p - b->peers), e->comm = c->number, e->tag = tag, e->wire = wire;
    e->acknowledged = ack, e->length = n, e->payload = 0, e->ended = zrl_stamp(b);
    if (payload != NULL && n > 0) {
        e->payload = b->payloadLen;
        memcpy(b->payload + b->payloadLen, payload, n);
        b->payloadLen += n;
    }
    p->used = 1;
}

/* Wakes a rank that sleeps. */
static inline void zrl_wake(zrl_doorbell *d) {
    uint64_t asleep = 1, ring = 1;
    if (ZRL_LOAD(zrl_word(d->flag)) != 0 &&
        __atomic_compare_exchange_n(zrl_word(d->flag), &asleep, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        if (write((int)d->descriptor, &ring, sizeof ring) < 0)
            return; /* the descriptor is readable already */
}

/* Clears the words in a ring at which later records begin, up to the word at pos (writer.clearUpTo in package shm). */
static inline void zrl_clear(zrl_link *l, uint64_t pos) {
    if (pos < l->outCleared)
        return;
    ZRL_WRITE(zrl_word(l->out + (pos & (l->size - 1))), 0);
    l->outCleared = pos + ZRL_ALIGN;
}

static inline uint64_t zrl_record(uint64_t n) { return (ZRL_WORD + n + ZRL_ALIGN - 1) & ~(uint64_t)(ZRL_ALIGN - 1); }

/* Reserves space for a record (writer.reserve in package shm). Returns 0 if the ring is full. */
static inline int zrl_reserve(zrl_link *l, uint64_t record) {
    uint64_t left = l->size - (l->outPos & (l->size - 1)), pad = record > left ? left : 0;
    uint64_t until = l->outPos + pad + record + ZRL_ALIGN;
    if (until - l->outReadHead > l->size) {
        uint64_t head = ZRL_LOAD(zrl_word(l->outHead));
        if (head > l->outPos || head < l->outReadHead || until - head > l->size)
            return 0;
        l->outReadHead = head;
    }
    if (pad > 0) {
        zrl_clear(l, l->outPos + pad);
        __atomic_store_n(zrl_word(l->out + (l->outPos & (l->size - 1))), l->outPos / ZRL_ALIGN << 32 | ZRL_PADDING,
                         __ATOMIC_RELEASE);
        l->outPos += pad;
    }
    return 1;
}

static inline int zrl_put(zrl_block *b, const void *buf, int64_t count, uint64_t type, int dest, int tag, uint64_t comm) {
    uint64_t n;
    zrl_comm *c = zrl_find(b, comm);
    zrl_peer *p = zrl_find_peer(b, c, dest);
    zrl_type *t = zrl_length(b, count, type, &n);
    if (p == NULL || t == NULL || tag < 0 || !zrl_memory(buf, n))
        return 0;
    zrl_sends *s = &p->sends;
    zrl_link *l = &p->link;
    uint64_t record = zrl_record(ZRL_SHORT_HEADER + n);
    if (s->packets == 0 || s->bytes < n || !zrl_reserve(l, record))
        return 0;
    char *to = zrl_bytes(l->out + (l->outPos & (l->size - 1)));
    uint32_t header[] = {s->digest, s->number, p->recvs.number, s->message, c->number, (uint32_t)tag | t->wire << 31};
    memcpy(to + ZRL_WORD, header, sizeof header);
    if (n > 0)
        memcpy(to + ZRL_WORD + sizeof header, buf, n);
    zrl_clear(l, l->outPos + record);
    __atomic_exchange_n((uint64_t *)(void *)to, l->outPos / ZRL_ALIGN << 32 | ZRL_SHORT | (ZRL_SHORT_HEADER + n),
                        __ATOMIC_SEQ_CST);
    l->outPos += record;
    zrl_wake(&l->doorbell);
    zrl_log(b, ZRL_SENT, p, c, (uint32_t)tag, t->wire, header[2], buf, (uint32_t)n);
    s->number++, s->message++, s->packets--, s->bytes -= (uint32_t)n;
    p->recvs.unacked = 0;
    while (l->outCleared < l->outPos + ZRL_PREPARE && l->outCleared + ZRL_ALIGN - l->outReadHead <= l->size)
        zrl_clear(l, l->outCleared);
    return 1;
}

/* MPI_Send. */
static inline int zrl_fast_send(zrl_block *b, const void *buf, int64_t count, uint64_t type, int dest, int tag,
                                uint64_t comm) {
    return zrl_enter(b) && zrl_leave(b, zrl_put(b, buf, count, type, dest, tag, comm));
}

/* Waits for the next record, and returns it if it contains a packet with a short header, whose length it stores. */
static inline const char *zrl_next(zrl_block *b, zrl_link *l, uint64_t *length) {
    uint32_t polls = 0;
    for (;;) {
        uint64_t off = l->inPos & (l->size - 1), word = ZRL_LOAD(zrl_word(l->in + off));
        if (word == 0) {
            if (!zrl_again(b, &polls))
                return NULL;
            continue;
        }
        if (word >> 32 != (uint32_t)(l->inPos / ZRL_ALIGN))
            return NULL;
        if ((uint32_t)word == ZRL_PADDING && off > 0) {
            l->inPos += l->size - off;
            continue;
        }
        *length = (uint32_t)word & ~ZRL_SHORT;
        if (!(word & ZRL_SHORT) || *length < ZRL_SHORT_HEADER || *length > ZRL_SHORT_HEADER + ZRL_MAX_PAYLOAD ||
            zrl_record(*length) > l->size - off)
            return NULL;
        return zrl_bytes(l->in + off + ZRL_WORD);
    }
}

/* Receives a message, and sets *length and *tag to its length and tag. A negative *tag allows any. */
static inline int zrl_take(zrl_block *b, void *buf, int64_t count, uint64_t type, int source, int *tag, uint64_t comm,
                           uint64_t *length) {
    uint64_t space, packet;
    uint32_t header[ZRL_SHORT_HEADER / 4];
    zrl_comm *c = zrl_find(b, comm);
    zrl_peer *p = zrl_find_peer(b, c, source);
    if (p == NULL || !c->mayRecv || zrl_length(b, count, type, &space) == NULL || !zrl_memory(buf, space))
        return 0;
    zrl_recvs *r = &p->recvs;
    zrl_link *l = &p->link;
    const char *from = zrl_next(b, l, &packet);
    if (from == NULL)
        return 0;
    memcpy(header, from, sizeof header);
    uint64_t n = packet - ZRL_SHORT_HEADER;
    uint32_t ack = header[2], got = header[5] & ZRL_MAX_TAG;
    if (header[0] != r->digest || header[1] != r->number || header[3] != r->message || header[4] != c->number ||
        (int32_t)(ack - p->sends.number) > 0 || (*tag >= 0 && got != (uint32_t)*tag) || n > space ||
        r->packets == 0 || r->bytes < n || r->unacked + 1 >= ZRL_ACK_EVERY)
        return 0;
    if (n > 0)
        memcpy(buf, from + sizeof header, n);
    *tag = (int)got, *length = n;
    zrl_log(b, ZRL_RECEIVED, p, c, got, header[5] >> 31, ack, p->keeps ? buf : NULL, (uint32_t)n);
    r->number++, r->message++, r->packets--, r->bytes -= (uint32_t)n, r->unacked++;
    l->inPos += zrl_record(packet);
    if (l->inPos - l->inPublished >= l->size / ZRL_PUBLISH_PARTS) {
        l->inPublished = l->inPos;
        __atomic_store_n(zrl_word(l->inHead), l->inPos, __ATOMIC_RELEASE);
    }
    return 1;
}

/* MPI_Recv; see zrl_take. */
static inline int zrl_fast_take(zrl_block *b, void *buf, int64_t count, uint64_t type, int source, int *tag, uint64_t comm,
                                uint64_t *length) {
    return zrl_enter(b) && zrl_leave(b, zrl_take(b, buf, count, type, source, tag, comm, length));
}

/* A collective call. */
typedef struct {
    zrl_block *block;
    zrl_comm *comm;
    zrl_sharing *sharing;
    zrl_shape *shape;
    uint64_t number, digest, began;
    uint32_t tag, polls, published;
} zrl_call_state;

static inline uint64_t zrl_sequence(uint64_t call, uint64_t count) { return call << ZRL_COUNT_BITS | count; }

/* The half of a member's slot that the call uses. */
static inline char *zrl_half(zrl_call_state *k, uint32_t member) {
    return zrl_bytes(k->sharing->slots[member] + (k->number & 1) * k->sharing->half);
}

/* Begins a call that is like a call that the engine has executed. */
static inline int zrl_begin(zrl_call_state *k, zrl_block *b, uint32_t call, int64_t count, uint64_t type, uint64_t op,
                            int root, uint64_t comm) {
    uint64_t h = comm ^ type << 3 ^ op << 5 ^ (uint64_t)count ^ (uint64_t)call << 2 ^ (uint32_t)root;
    zrl_shape *s = &b->shapes[(uint32_t)(h ^ h >> 7) % ZRL_MAX_SHAPES];
    zrl_comm *c = zrl_find(b, comm);
    if (c == NULL || !c->shares || b->events == ZRL_MAX_EVENTS || s->call != call || s->comm != comm ||
        s->type != type || s->op != op || s->count != count || s->root != (uint32_t)root)
        return 0;
    k->block = b, k->comm = c, k->sharing = &c->sharing, k->shape = s, k->polls = 0, k->published = 0;
    k->number = c->sharing.posted + 1, k->began = zrl_stamp(b);
    k->tag = *(uint32_t *)(uintptr_t)c->sequence % ZRL_CALLS + 1;
    k->digest = (uint64_t)k->tag << 32 | s->digest;
    return 1;
}

/* Waits until a member has reached a sequence, or until the engine has to find out why it does not
   (sharing.checkMember in package collective). */
static inline int zrl_await(zrl_call_state *k, uint32_t member, uint64_t until) {
    zrl_sharing *s = k->sharing;
    uint64_t *w = zrl_word(s->states[member]), half = k->number & 1, at;
    if (member == s->self || s->lastSeen[member] >= until)
        return 1;
    while ((at = ZRL_LOAD(&w[ZRL_SEQUENCE_WORD])) < until)
        if (!zrl_again(k->block, &k->polls))
            return 0;
    if (ZRL_READ(&w[ZRL_EPOCH_WORD]) != s->epoch)
        return 0;
    if (at > zrl_sequence(k->number, 0)) {
        uint64_t before = ZRL_READ(&w[ZRL_DIGEST_WORD + (half ^ 1)]), ours = s->digests[half ^ 1];
        if (ZRL_READ(&w[ZRL_DIGEST_WORD + half]) != k->digest || ZRL_READ(&w[ZRL_FAILED_WORD + half]) == k->number ||
            (ZRL_READ(&w[ZRL_FAILED_WORD + (half ^ 1)]) != k->number - 1 && before != ours && before >> 32 == ours >> 32 &&
             (uint32_t)before != 0 && (uint32_t)ours != 0))
            return 0;
        if (at > zrl_sequence(k->number + 1, 0))
            at = zrl_sequence(k->number + 1, 0);
    }
    s->lastSeen[member] = at;
    return 1;
}

static inline int zrl_await_all(zrl_call_state *k, uint64_t until) {
    for (uint32_t i = 0; i < k->sharing->members; i++)
        if (!zrl_await(k, i, until))
            return 0;
    return 1;
}

/* Waits until no member still reads this rank's half. */
static inline int zrl_claim(zrl_call_state *k) { return zrl_await_all(k, zrl_sequence(k->number - 1, 0)); }

static inline void zrl_set_sequence(zrl_call_state *k, uint64_t sequence) {
    zrl_sharing *s = k->sharing;
    s->lastSeen[s->self] = sequence;
    __atomic_exchange_n(&zrl_word(s->states[s->self])[ZRL_SEQUENCE_WORD], sequence, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < s->members; i++)
        if (i != s->self)
            zrl_wake(&s->doorbells[i]);
}

/* Publishes the data in this rank's half. */
static inline void zrl_publish(zrl_call_state *k) {
    zrl_sharing *s = k->sharing;
    uint64_t *w = zrl_word(s->states[s->self]), half = k->number & 1;
    ZRL_WRITE(&w[ZRL_DIGEST_WORD + half], k->digest);
    ZRL_WRITE(&w[ZRL_DESCRIPTION_WORD + half], k->shape->description);
    s->digests[half] = k->digest, s->descriptions[half] = k->shape->description;
    zrl_set_sequence(k, zrl_sequence(k->number, 1));
    k->published = 1;
}

/* Waits for a member's data. */
static inline int zrl_await_data(zrl_call_state *k, uint32_t member) {
    return zrl_await(k, member, zrl_sequence(k->number, 1));
}

static inline int zrl_end(zrl_call_state *k) {
    zrl_block *b = k->block;
    zrl_sharing *s = k->sharing;
    if (!k->published)
        zrl_set_sequence(k, zrl_sequence(k->number + 1, 0));
    s->posted = k->number, s->lastTag = k->tag, s->used = 1;
    *(uint32_t *)(uintptr_t)k->comm->sequence = k->tag;
    zrl_event *e = &b->log[b->events++];
    e->kind = ZRL_CALLED, e->peer = (uint32_t)(k->comm - b->comms), e->shape = (uint32_t)(k->shape - b->shapes);
    e->tag = k->tag, e->length = 0, e->payload = 0, e->began = k->began, e->ended = zrl_stamp(b);
    return 1;
}

static inline int zrl_barrier(zrl_block *b, uint64_t comm) {
    zrl_call_state k;
    if (!zrl_begin(&k, b, ZRL_BARRIER, 0, 0, 0, 0, comm) || !zrl_claim(&k))
        return 0;
    zrl_publish(&k);
    return zrl_await_all(&k, zrl_sequence(k.number, 1)) && zrl_end(&k);
}

/* MPI_Barrier. */
static inline int zrl_fast_barrier(zrl_block *b, uint64_t comm) { return zrl_enter(b) && zrl_leave(b, zrl_barrier(b, comm)); }

static inline int zrl_bcast(zrl_block *b, void *buf, int64_t count, uint64_t type, int root, uint64_t comm) {
    zrl_call_state k;
    if (!zrl_begin(&k, b, ZRL_BCAST, count, type, 0, root, comm) || !zrl_memory(buf, k.shape->bytes))
        return 0;
    if (k.sharing->self == (uint32_t)root) {
        if (!zrl_claim(&k))
            return 0;
        memcpy(zrl_half(&k, k.sharing->self), buf, k.shape->bytes);
        zrl_publish(&k);
    } else {
        if (!zrl_await_data(&k, (uint32_t)root))
            return 0;
        memcpy(buf, zrl_half(&k, (uint32_t)root), k.shape->bytes);
    }
    return zrl_end(&k);
}

/* MPI_Bcast. */
static inline int zrl_fast_bcast(zrl_block *b, void *buf, int64_t count, uint64_t type, int root, uint64_t comm) {
    return zrl_enter(b) && zrl_leave(b, zrl_bcast(b, buf, count, type, root, comm));
}

/* Combines n bytes of elements: into = from op into. */
#define ZRL_COMBINE(type, expression)                                                                                          \
    for (uint32_t i = 0; i < n; i += sizeof(type)) {                                                                           \
        type x, y;                                                                                                             \
        memcpy(&x, from + i, sizeof x), memcpy(&y, into + i, sizeof y);                                                        \
        y = (type)(expression);                                                                                                \
        memcpy(into + i, &y, sizeof y);                                                                                        \
    }                                                                                                                          \
    break;
#define ZRL_INTEGERS(name, type, wide)                                                                                         \
    static void zrl_combine_##name(uint32_t op, const char *from, char *into, uint32_t n) {                                    \
        switch (op) {                                                                                                          \
        case ZRL_SUM: ZRL_COMBINE(type, (wide)x + (wide)y)                                                                     \
        case ZRL_PROD: ZRL_COMBINE(type, (wide)x * (wide)y)                                                                    \
        case ZRL_MAX: ZRL_COMBINE(type, x > y ? x : y)                                                                         \
        case ZRL_MIN: ZRL_COMBINE(type, x < y ? x : y)                                                                         \
        case ZRL_LAND: ZRL_COMBINE(type, x && y)                                                                               \
        case ZRL_LOR: ZRL_COMBINE(type, x || y)                                                                                \
        case ZRL_BAND: ZRL_COMBINE(type, x & y)                                                                                \
        case ZRL_BOR: ZRL_COMBINE(type, x | y)                                                                                 \
        case ZRL_BXOR: ZRL_COMBINE(type, x ^ y)                                                                                \
        }                                                                                                                      \
    }
/* As in Go, the result is NaN if an operand is, and 0 is greater than -0. */
#define ZRL_REALS(name, type)                                                                                                  \
    static void zrl_combine_##name(uint32_t op, const char *from, char *into, uint32_t n) {                                    \
        switch (op) {                                                                                                          \
        case ZRL_SUM: ZRL_COMBINE(type, x + y)                                                                                 \
        case ZRL_PROD: ZRL_COMBINE(type, x * y)                                                                                \
        case ZRL_MAX: ZRL_COMBINE(type, x > y || x != x ? x : x == y ? (x == 0 ? x + y : x) : y)                               \
        case ZRL_MIN: ZRL_COMBINE(type, x < y || x != x ? x : x == y ? (x == 0 ? -(-x - y) : x) : y)                           \
        }                                                                                                                      \
    }
ZRL_INTEGERS(int32, int32_t, uint32_t)
ZRL_INTEGERS(uint32, uint32_t, uint32_t)
ZRL_INTEGERS(int64, int64_t, uint64_t)
ZRL_INTEGERS(uint64, uint64_t, uint64_t)
ZRL_REALS(float32, float)
ZRL_REALS(float64, double)

static inline void zrl_combine(zrl_shape *s, const void *from, void *into) {
    switch (s->elem) {
    case ZRL_INT32: zrl_combine_int32(s->reduction, from, into, s->bytes); break;
    case ZRL_UINT32: zrl_combine_uint32(s->reduction, from, into, s->bytes); break;
    case ZRL_INT64: zrl_combine_int64(s->reduction, from, into, s->bytes); break;
    case ZRL_UINT64: zrl_combine_uint64(s->reduction, from, into, s->bytes); break;
    case ZRL_FLOAT32: zrl_combine_float32(s->reduction, from, into, s->bytes); break;
    case ZRL_FLOAT64: zrl_combine_float64(s->reduction, from, into, s->bytes); break;
    }
}

/* Reports whether n bytes of reals of an element type contain a NaN. */
static inline int zrl_has_nan(uint32_t elem, const char *reals, uint32_t n) {
    uint64_t found = 0, x = 0, infinity = elem == ZRL_FLOAT32 ? 0x7f800000u : 0x7ff0000000000000u;
    uint32_t size = elem == ZRL_FLOAT32 ? 4 : 8;
    if (elem != ZRL_FLOAT32 && elem != ZRL_FLOAT64)
        return 0;
    for (uint32_t i = 0; i < n; i += size) {
        memcpy(&x, reals + i, size);
        found |= (x & ~(1ull << (8 * size - 1))) > infinity;
    }
    return found != 0;
}

/* The contribution of a member to a reduction. */
static inline const char *zrl_contribution(zrl_call_state *k, uint32_t member, const void *send) {
    return member == k->sharing->self ? send : zrl_half(k, member);
}

/* MPI_Reduce and, with result set on all ranks, MPI_Allreduce. */
static inline int zrl_reduce(zrl_call_state *k, const void *send, void *recv, int result, int publishes) {
    uint32_t n = k->shape->bytes, last = k->sharing->members - 1;
    if (send == recv || !zrl_memory(send, n) || (result && !zrl_memory(recv, n)))
        return 0;
    if (publishes) {
        if (!zrl_claim(k))
            return 0;
        memcpy(zrl_half(k, k->sharing->self), send, n);
        zrl_publish(k);
    }
    if (result) {
        if (!zrl_await_all(k, zrl_sequence(k->number, 1)))
            return 0;
        memcpy(recv, zrl_contribution(k, last, send), n);
        for (uint32_t i = last; i-- > 0;)
            zrl_combine(k->shape, zrl_contribution(k, i, send), recv);
        if (zrl_has_nan(k->shape->elem, recv, n)) /* which NaN results depends on the instructions of the engine */
            return 0;
    }
    return zrl_end(k);
}

/* MPI_Reduce. */
static inline int zrl_fast_reduce(zrl_block *b, const void *send, void *recv, int64_t count, uint64_t type, uint64_t op,
                                  int root, uint64_t comm) {
    zrl_call_state k;
    return zrl_enter(b) && zrl_leave(b, zrl_begin(&k, b, ZRL_REDUCE, count, type, op, root, comm) &&
                                            zrl_reduce(&k, send, recv, k.sharing->self == (uint32_t)root,
                                                       k.sharing->self != (uint32_t)root));
}

/* MPI_Allreduce. */
static inline int zrl_fast_allreduce(zrl_block *b, const void *send, void *recv, int64_t count, uint64_t type, uint64_t op,
                                     uint64_t comm) {
    zrl_call_state k;
    return zrl_enter(b) && zrl_leave(b, zrl_begin(&k, b, ZRL_ALLREDUCE, count, type, op, 0, comm) &&
                                            zrl_reduce(&k, send, recv, 1, 1));
}

/* MPI_Allgather, and MPI_Alltoall, whose ranks publish a block for each rank. */
static inline int zrl_blocks(zrl_block *b, uint32_t call, const void *send, int64_t count, uint64_t type, void *recv,
                             uint64_t comm) {
    zrl_call_state k;
    if (!zrl_begin(&k, b, call, count, type, 0, 0, comm))
        return 0;
    uint32_t n = k.shape->bytes, members = k.sharing->members, self = k.sharing->self;
    uint32_t blocks = call == ZRL_ALLTOALL ? members : 1, own = call == ZRL_ALLTOALL ? self : 0;
    if (send == recv || !zrl_memory(send, n) || !zrl_memory(recv, n) || !zrl_claim(&k))
        return 0;
    memcpy(zrl_half(&k, self), send, (size_t)n * blocks);
    zrl_publish(&k);
    memcpy((char *)recv + (size_t)n * self, (const char *)send + (size_t)n * own, n);
    for (uint32_t i = 1; i < members; i++) {
        uint32_t r = (self + i) % members;
        if (!zrl_await_data(&k, r))
            return 0;
        memcpy((char *)recv + (size_t)n * r, zrl_half(&k, r) + (size_t)n * own, n);
    }
    return zrl_end(&k);
}

static inline int zrl_fast_blocks(zrl_block *b, uint32_t call, const void *send, int64_t sends, uint64_t sent, void *recv,
                                  int64_t count, uint64_t type, uint64_t comm) {
    return sends == count && sent == type && zrl_enter(b) &&
           zrl_leave(b, zrl_blocks(b, call, send, count, type, recv, comm));
}

#endif
