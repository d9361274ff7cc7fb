/* The memory that the engine leases to C code, generated from package lease by a test of lib/gen. */
#ifndef ZRL_LEASE_H
#define ZRL_LEASE_H

#include <stddef.h>
#include <stdint.h>

#define ZRL_MAX_COMMS 4u
#define ZRL_MAX_RANKS 64u
#define ZRL_MAX_SHAPES 32u
#define ZRL_MAX_EVENTS 64u
#define ZRL_MAX_PAYLOAD 1024u
#define ZRL_MAX_TYPES 1024u
#define ZRL_KEPT 0u
#define ZRL_LEASED 1u
#define ZRL_BUSY 2u
#define ZRL_BARRIER 1u
#define ZRL_BCAST 2u
#define ZRL_REDUCE 3u
#define ZRL_ALLREDUCE 4u
#define ZRL_ALLGATHER 5u
#define ZRL_ALLTOALL 6u
#define ZRL_SENT 1u
#define ZRL_RECEIVED 2u
#define ZRL_CALLED 3u
#define ZRL_SHORT_HEADER 24u
#define ZRL_MAX_TAG 2147483647u
#define ZRL_ACK_EVERY 64u
#define ZRL_COUNT_BITS 24u
#define ZRL_CALLS 536870911u
#define ZRL_SUM 1u
#define ZRL_PROD 2u
#define ZRL_MAX 3u
#define ZRL_MIN 4u
#define ZRL_LAND 5u
#define ZRL_LOR 6u
#define ZRL_BAND 8u
#define ZRL_BOR 9u
#define ZRL_BXOR 10u
#define ZRL_INT32 3u
#define ZRL_INT64 4u
#define ZRL_UINT32 7u
#define ZRL_UINT64 8u
#define ZRL_FLOAT32 9u
#define ZRL_FLOAT64 10u
#define ZRL_ALIGN 64u
#define ZRL_WORD 8u
#define ZRL_PADDING 4294967295u
#define ZRL_PREPARE 256u
#define ZRL_SHORT 536870912u
#define ZRL_PUBLISH_PARTS 16u
#define ZRL_LONGEST 32792u
#define ZRL_SEQUENCE_WORD 0u
#define ZRL_EPOCH_WORD 1u
#define ZRL_FAILED_WORD 2u
#define ZRL_DIGEST_WORD 4u
#define ZRL_DESCRIPTION_WORD 6u

typedef struct {
    uint64_t flag;
    int64_t descriptor;
} zrl_doorbell;
_Static_assert(offsetof(zrl_doorbell, flag) == 0, "layout");
_Static_assert(offsetof(zrl_doorbell, descriptor) == 8, "layout");
_Static_assert(sizeof(zrl_doorbell) == 16, "layout");

typedef struct {
    uint32_t self;
    uint32_t members;
    uint32_t used;
    uint32_t lastTag;
    uint64_t epoch;
    uint64_t posted;
    uint64_t digests[2];
    uint64_t descriptions[2];
    uint64_t half;
    uint64_t lastSeen[8];
    uint64_t states[8];
    uint64_t slots[8];
    zrl_doorbell doorbells[8];
} zrl_sharing;
_Static_assert(offsetof(zrl_sharing, self) == 0, "layout");
_Static_assert(offsetof(zrl_sharing, members) == 4, "layout");
_Static_assert(offsetof(zrl_sharing, used) == 8, "layout");
_Static_assert(offsetof(zrl_sharing, lastTag) == 12, "layout");
_Static_assert(offsetof(zrl_sharing, epoch) == 16, "layout");
_Static_assert(offsetof(zrl_sharing, posted) == 24, "layout");
_Static_assert(offsetof(zrl_sharing, digests) == 32, "layout");
_Static_assert(offsetof(zrl_sharing, descriptions) == 48, "layout");
_Static_assert(offsetof(zrl_sharing, half) == 64, "layout");
_Static_assert(offsetof(zrl_sharing, lastSeen) == 72, "layout");
_Static_assert(offsetof(zrl_sharing, states) == 136, "layout");
_Static_assert(offsetof(zrl_sharing, slots) == 200, "layout");
_Static_assert(offsetof(zrl_sharing, doorbells) == 264, "layout");
_Static_assert(sizeof(zrl_sharing) == 392, "layout");

typedef struct {
    uint64_t handle;
    uint64_t sequence;
    uint32_t number;
    uint32_t mayRecv;
    uint32_t shares;
    uint32_t rank;
    uint32_t ranks;
    uint8_t peers[64];
    zrl_sharing sharing;
} zrl_comm;
_Static_assert(offsetof(zrl_comm, handle) == 0, "layout");
_Static_assert(offsetof(zrl_comm, sequence) == 8, "layout");
_Static_assert(offsetof(zrl_comm, number) == 16, "layout");
_Static_assert(offsetof(zrl_comm, mayRecv) == 20, "layout");
_Static_assert(offsetof(zrl_comm, shares) == 24, "layout");
_Static_assert(offsetof(zrl_comm, rank) == 28, "layout");
_Static_assert(offsetof(zrl_comm, ranks) == 32, "layout");
_Static_assert(offsetof(zrl_comm, peers) == 36, "layout");
_Static_assert(offsetof(zrl_comm, sharing) == 104, "layout");
_Static_assert(sizeof(zrl_comm) == 496, "layout");

typedef struct {
    uint32_t digest;
    uint32_t number;
    uint32_t message;
    uint32_t packets;
    uint32_t bytes;
} zrl_sends;
_Static_assert(offsetof(zrl_sends, digest) == 0, "layout");
_Static_assert(offsetof(zrl_sends, number) == 4, "layout");
_Static_assert(offsetof(zrl_sends, message) == 8, "layout");
_Static_assert(offsetof(zrl_sends, packets) == 12, "layout");
_Static_assert(offsetof(zrl_sends, bytes) == 16, "layout");
_Static_assert(sizeof(zrl_sends) == 20, "layout");

typedef struct {
    uint32_t digest;
    uint32_t number;
    uint32_t message;
    uint32_t packets;
    uint32_t bytes;
    uint32_t unacked;
} zrl_recvs;
_Static_assert(offsetof(zrl_recvs, digest) == 0, "layout");
_Static_assert(offsetof(zrl_recvs, number) == 4, "layout");
_Static_assert(offsetof(zrl_recvs, message) == 8, "layout");
_Static_assert(offsetof(zrl_recvs, packets) == 12, "layout");
_Static_assert(offsetof(zrl_recvs, bytes) == 16, "layout");
_Static_assert(offsetof(zrl_recvs, unacked) == 20, "layout");
_Static_assert(sizeof(zrl_recvs) == 24, "layout");

typedef struct {
    uint64_t out;
    uint64_t in;
    uint64_t size;
    uint64_t outHead;
    uint64_t inHead;
    uint64_t outPos;
    uint64_t outReadHead;
    uint64_t outCleared;
    uint64_t inPos;
    uint64_t inPublished;
    zrl_doorbell doorbell;
} zrl_link;
_Static_assert(offsetof(zrl_link, out) == 0, "layout");
_Static_assert(offsetof(zrl_link, in) == 8, "layout");
_Static_assert(offsetof(zrl_link, size) == 16, "layout");
_Static_assert(offsetof(zrl_link, outHead) == 24, "layout");
_Static_assert(offsetof(zrl_link, inHead) == 32, "layout");
_Static_assert(offsetof(zrl_link, outPos) == 40, "layout");
_Static_assert(offsetof(zrl_link, outReadHead) == 48, "layout");
_Static_assert(offsetof(zrl_link, outCleared) == 56, "layout");
_Static_assert(offsetof(zrl_link, inPos) == 64, "layout");
_Static_assert(offsetof(zrl_link, inPublished) == 72, "layout");
_Static_assert(offsetof(zrl_link, doorbell) == 80, "layout");
_Static_assert(sizeof(zrl_link) == 96, "layout");

typedef struct {
    uint32_t isLeased;
    uint32_t used;
    uint32_t keeps;
    zrl_sends sends;
    zrl_recvs recvs;
    zrl_link link;
} zrl_peer;
_Static_assert(offsetof(zrl_peer, isLeased) == 0, "layout");
_Static_assert(offsetof(zrl_peer, used) == 4, "layout");
_Static_assert(offsetof(zrl_peer, keeps) == 8, "layout");
_Static_assert(offsetof(zrl_peer, sends) == 12, "layout");
_Static_assert(offsetof(zrl_peer, recvs) == 32, "layout");
_Static_assert(offsetof(zrl_peer, link) == 56, "layout");
_Static_assert(sizeof(zrl_peer) == 152, "layout");

typedef struct {
    uint64_t comm;
    uint64_t type;
    uint64_t op;
    int64_t count;
    uint32_t call;
    uint32_t root;
    uint32_t bytes;
    uint32_t elem;
    uint32_t reduction;
    uint32_t digest;
    uint64_t description;
} zrl_shape;
_Static_assert(offsetof(zrl_shape, comm) == 0, "layout");
_Static_assert(offsetof(zrl_shape, type) == 8, "layout");
_Static_assert(offsetof(zrl_shape, op) == 16, "layout");
_Static_assert(offsetof(zrl_shape, count) == 24, "layout");
_Static_assert(offsetof(zrl_shape, call) == 32, "layout");
_Static_assert(offsetof(zrl_shape, root) == 36, "layout");
_Static_assert(offsetof(zrl_shape, bytes) == 40, "layout");
_Static_assert(offsetof(zrl_shape, elem) == 44, "layout");
_Static_assert(offsetof(zrl_shape, reduction) == 48, "layout");
_Static_assert(offsetof(zrl_shape, digest) == 52, "layout");
_Static_assert(offsetof(zrl_shape, description) == 56, "layout");
_Static_assert(sizeof(zrl_shape) == 64, "layout");

typedef struct {
    uint32_t kind;
    uint32_t peer;
    uint32_t shape;
    uint32_t comm;
    uint32_t tag;
    uint32_t wire;
    uint32_t length;
    uint32_t acknowledged;
    uint32_t payload;
    uint64_t began;
    uint64_t ended;
} zrl_event;
_Static_assert(offsetof(zrl_event, kind) == 0, "layout");
_Static_assert(offsetof(zrl_event, peer) == 4, "layout");
_Static_assert(offsetof(zrl_event, shape) == 8, "layout");
_Static_assert(offsetof(zrl_event, comm) == 12, "layout");
_Static_assert(offsetof(zrl_event, tag) == 16, "layout");
_Static_assert(offsetof(zrl_event, wire) == 20, "layout");
_Static_assert(offsetof(zrl_event, length) == 24, "layout");
_Static_assert(offsetof(zrl_event, acknowledged) == 28, "layout");
_Static_assert(offsetof(zrl_event, payload) == 32, "layout");
_Static_assert(offsetof(zrl_event, began) == 40, "layout");
_Static_assert(offsetof(zrl_event, ended) == 48, "layout");
_Static_assert(sizeof(zrl_event) == 56, "layout");

typedef struct {
    uint64_t handle;
    uint32_t size;
    uint32_t wire;
} zrl_type;
_Static_assert(offsetof(zrl_type, handle) == 0, "layout");
_Static_assert(offsetof(zrl_type, size) == 8, "layout");
_Static_assert(offsetof(zrl_type, wire) == 12, "layout");
_Static_assert(sizeof(zrl_type) == 16, "layout");

typedef struct {
    uint32_t state;
    uint32_t recall;
    uint32_t polls;
    uint32_t stamps;
    uint64_t calls;
    uint32_t events;
    uint32_t payloadLen;
    zrl_comm comms[4];
    zrl_peer peers[16];
    zrl_shape shapes[32];
    zrl_event log[64];
    uint8_t payload[65536];
    zrl_type types[1024];
} zrl_block;
_Static_assert(offsetof(zrl_block, state) == 0, "layout");
_Static_assert(offsetof(zrl_block, recall) == 4, "layout");
_Static_assert(offsetof(zrl_block, polls) == 8, "layout");
_Static_assert(offsetof(zrl_block, stamps) == 12, "layout");
_Static_assert(offsetof(zrl_block, calls) == 16, "layout");
_Static_assert(offsetof(zrl_block, events) == 24, "layout");
_Static_assert(offsetof(zrl_block, payloadLen) == 28, "layout");
_Static_assert(offsetof(zrl_block, comms) == 32, "layout");
_Static_assert(offsetof(zrl_block, peers) == 2016, "layout");
_Static_assert(offsetof(zrl_block, shapes) == 4448, "layout");
_Static_assert(offsetof(zrl_block, log) == 6496, "layout");
_Static_assert(offsetof(zrl_block, payload) == 10080, "layout");
_Static_assert(offsetof(zrl_block, types) == 75616, "layout");
_Static_assert(sizeof(zrl_block) == 92000, "layout");

#endif
