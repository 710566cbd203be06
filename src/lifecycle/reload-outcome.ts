/** What came of a reload. In all cases but `applied` everything is as it was. */
export type ReloadOutcome =
  | { readonly kind: 'applied'; readonly hash: string }
  | { readonly kind: 'unchanged'; readonly hash: string }
  /** One line for each fault: place, key and what is wrong. */
  | { readonly kind: 'invalid'; readonly faults: readonly string[] }
  | { readonly kind: 'restart-needed'; readonly keys: readonly string[] }
  | { readonly kind: 'failed'; readonly cause: unknown }
