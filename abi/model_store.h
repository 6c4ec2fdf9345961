/* What a program and the node say to each other about models on the GPU: packets over the SOCK_SEQPACKET socket that
 * $FAIRLEAD_MODELS names, in the byte order of the machine. One request, one answer with its number, in any order.
 *
 *   OPEN id, bytes, digest  ->  READY  + descriptors     it is there, sealed: map them read only
 *                               FILL   + descriptors     it was not: map them, write all bytes, then SEAL
 *                               an error
 *   SEAL tensor             ->  READY  + descriptors     of this tensor, or of an older one with the same content
 *   CLOSE tensor            ->  (nothing)                what is not sealed yet is given up
 *
 * A tensor of n bytes is blocks of MODEL_BLOCK_BYTES, the last one shorter, in whole MODEL_GRANULE_BYTES. Each block is a
 * file descriptor for cuMemImportFromShareableHandle(), in order; those that one packet has no room for come in MORE
 * packets with the same number. Who the program is, the socket says: no field of a request does. */
#pragma once

#include <stdint.h>

enum {
  MODEL_PROTOCOL = 1,
  MODEL_ID_BYTES = 256, /* with the NUL */
  MODEL_DIGEST_BYTES = 32,
  MODEL_MESSAGE_BYTES = 256,
  MODEL_FDS_PER_PACKET = 250,
  MODEL_GRANULE_BYTES = 2 << 20,
  MODEL_BLOCK_BYTES = 64 << 20,
};

enum ModelRequestKind {
  MODEL_OPEN = 1, /* bytes 0: only if it is there (GET), else what to store (STORE) */
  MODEL_SEAL = 2,
  MODEL_CLOSE = 3,
};

enum ModelFlags {
  MODEL_HAS_DIGEST = 1, /* OPEN: `digest` is the content's; one that is there already is found by it */
  MODEL_WAIT = 2,       /* OPEN: where another fills it, answer when that is over; else MODEL_PENDING at once */
};

struct ModelRequest {
  uint32_t version; /* MODEL_PROTOCOL */
  uint32_t kind;
  uint64_t number; /* the program's own; comes back in the answer */
  uint64_t tensor; /* SEAL, CLOSE */
  uint64_t bytes;
  uint32_t flags;
  uint32_t reserved;                  /* 0 */
  uint8_t digest[MODEL_DIGEST_BYTES]; /* BLAKE2b-256 */
  char id[MODEL_ID_BYTES];            /* OPEN: 1 to 255 bytes without control characters, then NULs */
};

enum ModelAnswerKind {
  MODEL_READY = 1,
  MODEL_FILL = 2,
  MODEL_MORE = 3,
  MODEL_ERROR = 4,
};

enum ModelError {
  MODEL_OK = 0,
  MODEL_ABSENT = 1,      /* GET: there is none of that id */
  MODEL_PENDING = 2,     /* somebody fills it */
  MODEL_AGAIN = 3,       /* who filled it gave up, or the server ended: open it again */
  MODEL_REFUSED = 4,     /* the request is wrong, or not this program's to make */
  MODEL_NO_ROOM = 5,     /* a budget or the device is full */
  MODEL_UNAVAILABLE = 6, /* there is no model server and none could be started */
};

struct ModelAnswer {
  uint32_t version;
  uint32_t kind;
  uint64_t number;
  uint64_t tensor;
  uint64_t bytes;
  uint32_t blocks; /* of the whole tensor */
  uint32_t error;
  uint8_t digest[MODEL_DIGEST_BYTES]; /* READY */
  char message[MODEL_MESSAGE_BYTES];
};
