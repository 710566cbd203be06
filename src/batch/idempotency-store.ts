/** An answer that is kept to be given again. */
export type KeptAnswer = { readonly status: number; readonly contentType: string; readonly content: Buffer }

/** What is known of a key when a request with it arrives. */
export type KeyState =
  /** Nobody has used it: now it is this request's, which must end it with `finish` or `abandon`. */
  | { readonly kind: 'begun' }
  | { readonly kind: 'in-flight' }
  /** It was used for a request that said something else. */
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'finished'; readonly answer: KeptAnswer }
  /** The request has been carried out, but its answer was too large to keep. */
  | { readonly kind: 'not-kept' }

/**
 * Where the keys of requests that must not be carried out twice are remembered. A store that several instances share can
 * take the place of the one in memory: `begin` must be one step for all of them.
 */
export type IdempotencyStore = {
  /** `key` and `fingerprint` are hashes: of who asks and the key, and of what is asked. */
  begin(key: string, fingerprint: string): Promise<KeyState>
  finish(key: string, fingerprint: string, answer: KeptAnswer): Promise<void>
  /** Nothing was carried out: the key may be used again. */
  abandon(key: string): Promise<void>
}
