/** The store of request counts that several processes share. */
export type RateLimitStore = {
  /** Adds one to a key of a limit; returns the count of the current window and the time until it ends. */
  increment(
    limit: string,
    key: string,
    windowMs: number,
  ): Promise<{ readonly count: number; readonly leftMs: number }>
}

/** An answer that is kept to be given again. */
export type KeptAnswer = { readonly status: number; readonly contentType: string; readonly content: Buffer }

/** The state of a key when a request with it arrives. */
export type KeyState =
  /** Unused so far: this request has it now, and must end it with `finish` or `abandon`. */
  | { readonly kind: 'begun' }
  | { readonly kind: 'in-flight' }
  /** It was used for a different request. */
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'finished'; readonly answer: KeptAnswer }
  /** The request has been carried out, but its answer was too large to keep. */
  | { readonly kind: 'not-kept' }

/**
 * Where the keys of requests that must not be carried out twice are remembered. A store that several instances share can
 * replace the one in memory: `begin` must be atomic across them.
 */
export type IdempotencyStore = {
  /** Hashes: `key` of the caller and the key, `fingerprint` of the request. */
  begin(key: string, fingerprint: string): Promise<KeyState>
  finish(key: string, fingerprint: string, answer: KeptAnswer): Promise<void>
  /** Nothing was carried out: the key may be used again. */
  abandon(key: string): Promise<void>
}
